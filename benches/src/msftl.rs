//! The MSFTL paper's device at full size: mappings programmed for 126.14 GiB written in 16 KiB chunks.
//!
//! `ftlab-bench msftl` runs each FTL and pattern in a process of its own; `ftlab-bench msftl FTL PATTERN`
//! runs one. FTLs: base, minipage, 2KiB, 1KiB; patterns: sequential, random.

use std::process::{Command, ExitCode};

use ftlab_config::{Base, Override, resolve};
use ftlab_core::config::Settings;
use ftlab_core::metrics::Report;
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record, Source, SourceError};

use super::{cpu_seconds, peak_bytes};

/// Bytes of a write (section 4.2).
const CHUNK: u64 = 16 << 10;
/// Chunks between two mapping flushes: 9 MiB.
const PER_FLUSH: u64 = 576;
const FLUSHES: u64 = 14_352;

/// An FTL: its name here, its keys, pages programmed in order, pages a flush when random, bytes of the
/// directory.
struct Ftl {
    name: &'static str,
    keys: &'static [(&'static str, &'static str)],
    in_order: u64,
    per_flush: f64,
    directory: u64,
}

const FTLS: &[Ftl] = &[
    Ftl {
        name: "base",
        keys: &[("ftl.kind", "dftl")],
        in_order: 21_528,
        per_flush: 556.0,
        directory: 32_292,
    },
    Ftl {
        name: "minipage",
        keys: &[("ftl.kind", "minipage")],
        in_order: 14_352,
        per_flush: 143.0,
        directory: 129_168,
    },
    Ftl {
        name: "2KiB",
        keys: &[("ftl.segment", "2KiB")],
        in_order: 14_352,
        per_flush: 72.0,
        directory: 258_336,
    },
    Ftl {
        name: "1KiB",
        keys: &[("ftl.segment", "1KiB")],
        in_order: 14_352,
        per_flush: 36.0,
        directory: 516_672,
    },
];

/// Writes of one chunk each, as many as the user space has.
struct Chunks {
    next: u64,
    chunks: u64,
    /// State of the generator (splitmix64); `None`: in order.
    random: Option<u64>,
}

impl Source for Chunks {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.next == self.chunks {
            return Ok(None);
        }
        let chunk = match &mut self.random {
            None => self.next,
            Some(state) => {
                *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut mixed = *state;
                mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
                ((u128::from(mixed ^ mixed >> 31) * u128::from(self.chunks)) >> 64) as u64
            }
        };
        self.next += 1;
        Ok(Some(Record { time_ns: 0, op: Op::Write, offset: chunk * CHUNK, size: CHUNK, line: 0 }))
    }
}

fn settings(ftl: &Ftl) -> Settings {
    let own = [("workload.replay", "closed"), ("host.queue_depth", "32")];
    let set = |&(key, value): &(&str, &str)| Override {
        origin: format!("case msftl {}", ftl.name),
        key: key.into(),
        value: value.into(),
    };
    let overrides: Vec<_> = own.iter().chain(ftl.keys).map(set).collect();
    match resolve(Base::Preset("msftl"), &overrides) {
        Ok(resolved) => resolved.settings,
        Err(error) => panic!("{error}"),
    }
}

/// Prints what was measured beside what must come out; whether they agree.
fn compare(ftl: &Ftl, random: bool, report: &Report) -> bool {
    let of = |cause: &str| report.flash.programs[cause];
    let (map, gc_map, dir) = (of("map"), of("gc-map"), of("dir"));
    let user = report.flash.programs["host"];
    let agrees = if random {
        (map as f64 / report.mapping.flushes as f64 / ftl.per_flush - 1.0).abs() < 0.01
    } else {
        map == ftl.in_order && report.mapping.flushes == FLUSHES
    } && report.mapping.directory_bytes == ftl.directory;
    println!(
        "{:8} {:10} map {map:7} pages, {:6.2} a flush (expected {:6.2}: {})  gc-map {gc_map:5}  dir {dir:5}  {:6.2} % of user data  gc {:8}  updated {:5.2} %  {:5.1} CPU-s  {:6.1} MB",
        ftl.name,
        if random { "random" } else { "sequential" },
        map as f64 / report.mapping.flushes as f64,
        if random { ftl.per_flush } else { ftl.in_order as f64 / FLUSHES as f64 },
        if agrees { "agrees" } else { "DIFFERS" },
        100.0 * (map + gc_map + dir) as f64 / user as f64,
        of("gc"),
        100.0 * report.mapping.updated_ratio.unwrap_or(0.0),
        cpu_seconds(),
        peak_bytes() as f64 / 1e6,
    );
    agrees
}

/// Runs the case that is named, or all.
pub fn msftl(name: Option<&str>, pattern: Option<&str>) -> ExitCode {
    let Some(name) = name else {
        let program = std::env::current_exe().expect("own path");
        let mut agree = true;
        for pattern in ["sequential", "random"] {
            for ftl in FTLS {
                let status = Command::new(&program).args(["msftl", ftl.name, pattern]).status();
                agree &= status.is_ok_and(|status| status.success());
            }
        }
        return if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    };
    let (Some(ftl), Some(pattern @ ("sequential" | "random"))) =
        (FTLS.iter().find(|ftl| ftl.name == name), pattern)
    else {
        eprintln!("error: msftl takes base, minipage, 2KiB or 1KiB, and sequential or random");
        return ExitCode::from(2);
    };
    let settings = settings(ftl);
    let chunks = settings.user_bytes() / CHUNK;
    assert_eq!(chunks, FLUSHES * PER_FLUSH, "126.14 GiB");
    let random = pattern == "random";
    let mut source = Chunks { next: 0, chunks, random: random.then_some(1) };
    let report = run(&settings, &mut source, &mut (), false).expect("a sound run");
    if compare(ftl, random, &report) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

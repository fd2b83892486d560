//! The MSFTL paper's device at full size: mappings programmed for 126.14 GiB written in 16 KiB chunks.
//!
//! `ftlab-bench msftl` runs each FTL, in order and at random, in a process of its own; `ftlab-bench msftl FTL
//! PATTERN` runs one. FTLs: base, minipage, 2KiB, 1KiB; patterns: sequential, random, and the localities of
//! the paper's Fig. 4: 9:1 (nine tenths of the writes go to one tenth of the space), 8:2, 7:3, 6:4, 5:5.
//! `ftlab-bench msftl fig4` runs these localities.

use std::process::{Command, ExitCode};

use ftlab_config::{Base, Override, resolve};
use ftlab_core::flash::Cause;
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record, Source, SourceError};

use super::{cpu_seconds, peak_bytes};

/// Size of a write, bytes (section 4.2).
const CHUNK: u64 = 16 << 10;
/// Number of chunks between two mapping flushes; together they have 9 MiB.
const PER_FLUSH: u64 = 576;
const FLUSHES: u64 = 14_352;

/// An FTL: its name in this table, its keys, the number of mapping pages that are programmed in all for writes in
/// order, the number programmed per flush for random writes, and the size of its directory in bytes.
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

/// A source of writes of one chunk each, as many as there are chunks in the user space.
struct Chunks {
    next: u64,
    chunks: u64,
    /// State of the generator (splitmix64); `None` if writes are in order.
    random: Option<u64>,
    /// This many tenths of the writes go to the first part of the space, which has the remaining tenths of it: 9 sends
    /// nine tenths of the writes to one tenth of the space.
    hot: u64,
}

/// Returns a number below `bound`.
fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((u128::from(mixed ^ mixed >> 31) * u128::from(bound)) >> 64) as u64
}

impl Source for Chunks {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.next == self.chunks {
            return Ok(None);
        }
        let chunk = match &mut self.random {
            None => self.next,
            Some(state) => {
                let edge = self.chunks * (10 - self.hot) / 10;
                if draw(state, 10) < self.hot {
                    draw(state, edge)
                } else {
                    edge + draw(state, self.chunks - edge)
                }
            }
        };
        self.next += 1;
        Ok(Some(Record { op: Op::Write, offset: chunk * CHUNK, size: CHUNK, ..Record::FLUSH }))
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
        Ok(resolved) => resolved.settings.below,
        Err(error) => panic!("{error}"),
    }
}

/// Prints what was measured and what was expected; returns whether they agree.
fn compare(ftl: &Ftl, pattern: &str, report: &Report) -> bool {
    let [map, gc_map, dir, user] =
        [Cause::Map, Cause::GcMap, Cause::Dir, Cause::Host].map(|cause| report.flash.programs[cause]);
    let per_flush = map as f64 / report.mapping.flushes as f64;
    let expected = match pattern {
        "sequential" => Some(ftl.in_order as f64 / FLUSHES as f64),
        "random" | "5:5" => Some(ftl.per_flush),
        _ => None,
    };
    let agrees = report.mapping.flushes == FLUSHES
        && report.mapping.directory_bytes == ftl.directory
        && (pattern != "sequential" || map == ftl.in_order)
        && expected.is_none_or(|expected| (per_flush / expected - 1.0).abs() < 0.01);
    let expectation = expected.map_or(String::new(), |expected| {
        format!(" (expected {expected:6.2}: {})", if agrees { "agrees" } else { "DIFFERS" })
    });
    println!(
        "{:8} {:10} map {map:7} pages, {:6.2} a flush{}  gc-map {gc_map:5}  dir {dir:5}  {:6.2} % of user data  gc {:8}  updated {:5.2} %  {:5.1} CPU-s  {:6.1} MB",
        ftl.name,
        pattern,
        per_flush,
        expectation,
        100.0 * (map + gc_map + dir) as f64 / user as f64,
        report.flash.programs[Cause::Gc],
        100.0 * report.mapping.updated_ratio.unwrap_or(0.0),
        cpu_seconds(),
        peak_bytes() as f64 / 1e6,
    );
    agrees
}

/// Runs the named case, or all cases.
pub fn msftl(name: Option<&str>, pattern: Option<&str>) -> ExitCode {
    let all = match name {
        None => &["sequential", "random"][..],
        Some("fig4") => &["9:1", "8:2", "7:3", "6:4", "5:5"],
        Some(_) => &[],
    };
    if !all.is_empty() {
        let program = std::env::current_exe().expect("own path");
        let mut agree = true;
        for pattern in all {
            for ftl in FTLS {
                let status = Command::new(&program).args(["msftl", ftl.name, pattern]).status();
                agree &= status.is_ok_and(|status| status.success());
            }
        }
        return if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let hot = |pattern: &str| match pattern {
        "sequential" => Some((None, 5)),
        "random" => Some((Some(1), 5)),
        _ => ["5:5", "6:4", "7:3", "8:2", "9:1"]
            .iter()
            .position(|&p| p == pattern)
            .map(|at| (Some(1), at as u64 + 5)),
    };
    let ftl = FTLS.iter().find(|ftl| Some(ftl.name) == name);
    let (Some(ftl), Some(pattern), Some((random, hot))) = (ftl, pattern, pattern.and_then(hot)) else {
        eprintln!(
            "error: msftl takes nothing, fig4, or base, minipage, 2KiB or 1KiB with sequential, random, 9:1, ... or 5:5"
        );
        return ExitCode::from(2);
    };
    let settings = settings(ftl);
    let chunks = settings.user_bytes() / CHUNK;
    assert_eq!(chunks, FLUSHES * PER_FLUSH, "126.14 GiB");
    let mut source = Chunks { next: 0, chunks, random, hot };
    let report = run(&settings, &mut source, &mut (), false).expect("a sound run");
    if compare(ftl, pattern, &report) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

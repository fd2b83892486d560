//! Benchmark: requests per CPU-second of the whole process, and its peak memory.
//!
//! `ftlab-bench CASE [REQUESTS [KEY=VALUE ...]]` runs one case, with keys of its own if there are any; without
//! arguments it runs every case in a process of its own. A case is 4 KiB requests, uniformly random, 70 % writes, on a
//! 1 GiB device that was filled in order first; the fill counts towards the process's time but not towards the
//! requests.
//!
//! `ftlab-bench limit [REQUESTS [GIB]]` runs the same random loads and stores as case `page`, on a device of GIB GiB,
//! without a model of time, then the case itself, and prints the ratio of the two times.
//!
//! `ftlab-bench msftl` writes 126.14 GiB to the device of the MSFTL paper, in order and at random, with each
//! of its four FTLs, and compares the number of mappings programmed with the expected one.
//!
//! `ftlab-bench replays [REQUESTS]` records case `page`, replays the recording by its times and dependent, and prints
//! the ratio of the two speeds, the fill left out.
//!
//! `ftlab-bench theory` compares write amplification with its closed forms instead.

mod closed_forms;
mod drive;
mod limit;
mod msftl;
mod replays;
mod tenants;
mod theory;

use std::process::{Command, ExitCode};

use ftlab_config::{Base, Override, resolve};
use ftlab_core::settings::Settings;
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record, Source, SourceError};

/// A case: its name, what it measures, and the keys that it sets on top of the preset map-plus.
pub(crate) struct Case {
    name: &'static str,
    doc: &'static str,
    common: &'static [(&'static str, &'static str)],
    keys: &'static [(&'static str, &'static str)],
}

/// The keys that every case sets: closed replay on a device that was filled in order.
const COMMON: &[(&str, &str)] = &[("workload.replay", "closed"), ("device.precondition", "fill")];

/// Flash of 4 GiB, of which the user has 1 GiB, so that no garbage is collected.
const ROOMY: (&str, &str) = ("flash.blocks_per_plane", "16384");
const QUARTER: (&str, &str) = ("ftl.over_provisioning", "75%");

/// The common keys of the page-map cases.
const PAGE: &[(&str, &str)] = &[
    ("ftl.kind", "page"),
    ("host.scheduler", "noop"),
    ("device.queue_depth", "32"),
    ("flash.channels", "8"),
];

const CASES: &[Case] = &[
    Case {
        name: "page",
        doc: "page map, 8 channels x 2 chips, queue depth 32, garbage collection (7 % withheld)",
        common: PAGE,
        keys: &[("flash.chips_per_channel", "2"), ("flash.blocks_per_plane", "256")],
    },
    Case {
        name: "dftl",
        doc: "dftl, 16 KiB mapping cache, one chip served serially",
        common: &[],
        keys: &[("host.scheduler", "noop"), ROOMY, QUARTER],
    },
    Case {
        name: "dftl-gc",
        doc: "as dftl, and garbage collection (7 % withheld)",
        common: &[],
        keys: &[("host.scheduler", "noop"), ("flash.blocks_per_plane", "4096")],
    },
    Case {
        name: "map+",
        doc: "as dftl, scheduler map+ with 128 pending",
        common: &[],
        keys: &[("host.scheduler", "map+"), ROOMY, QUARTER],
    },
    Case {
        name: "map-rate",
        doc: "as map+, scheduler map-rate",
        common: &[],
        keys: &[("host.scheduler", "map-rate"), ROOMY, QUARTER],
    },
    Case {
        name: "map-ratio",
        doc: "as map+, scheduler map-ratio",
        common: &[],
        keys: &[("host.scheduler", "map-ratio"), ROOMY, QUARTER],
    },
    Case {
        name: "bast",
        doc: "one log block for one data block, one chip, 5 % log blocks: a merge for nearly every write",
        common: &[],
        keys: &[("host.scheduler", "noop"), ("ftl.kind", "bast"), ("flash.blocks_per_plane", "4096")],
    },
    Case {
        name: "fast",
        doc: "as bast, log blocks shared by all data blocks",
        common: &[],
        keys: &[("host.scheduler", "noop"), ("ftl.kind", "fast"), ("flash.blocks_per_plane", "4096")],
    },
    Case {
        name: "vios",
        doc: "as page, scheduler vios in the device, blocks of different speed, 25 ns a byte on the bus",
        common: PAGE,
        keys: &[
            ("device.scheduler", "vios"),
            ("flash.variation.model", "ispp"),
            ("flash.transfer", "25ns"),
            ("flash.chips_per_channel", "2"),
            ("flash.blocks_per_plane", "256"),
        ],
    },
    Case {
        name: "page-bus",
        doc: "as page, 8 channels x 1 chip, 25 ns a byte on the bus",
        common: PAGE,
        keys: &[("flash.transfer", "25ns"), ("flash.blocks_per_plane", "512")],
    },
    Case {
        name: "page-shared-bus",
        doc: "as page, 25 ns a byte on the bus",
        common: PAGE,
        keys: &[
            ("flash.transfer", "25ns"),
            ("flash.chips_per_channel", "2"),
            ("flash.blocks_per_plane", "256"),
        ],
    },
    Case {
        name: "page-dies",
        doc: "as page, 8 channels x 1 chip of two interleaved dies",
        common: PAGE,
        keys: &[
            ("flash.dies_per_chip", "2"),
            ("flash.interleave", "true"),
            ("flash.blocks_per_plane", "256"),
        ],
    },
];

/// Returns all cases.
fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(tenants::CASES).chain(drive::CASES)
}

/// Returns the preset map-plus with these keys and those that every case has.
fn settings<'a>(name: &str, keys: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> Settings {
    let set = |&(key, value): &(&str, &str)| Override {
        origin: format!("case {name}"),
        key: key.into(),
        value: value.into(),
    };
    let overrides: Vec<_> = COMMON.iter().chain(keys).map(set).collect();
    match resolve(Base::Preset("map-plus"), &overrides) {
        Ok(resolved) => resolved.settings.below,
        Err(error) => panic!("{error}"),
    }
}

/// Uniform random requests; they come from xorshift, so that the cost of generating them does not distort the
/// measurement.
struct Uniform {
    left: u64,
    state: u64,
    pages: u64,
    /// The page from which on requests are of stream 1; those before it are of none.
    second: u64,
}

impl Source for Uniform {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let lpn = ((self.state >> 32) * self.pages) >> 32;
        let op = if (self.state & 0xFFFF) * 10 < 7 * 0x1_0000 { Op::Write } else { Op::Read };
        let stream = u16::from(lpn >= self.second);
        Ok(Some(Record { op, offset: lpn * 4096, size: 4096, stream, ..Record::FLUSH }))
    }
}

/// Returns the CPU time that the process's main thread has used, seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux's /proc");
    let ns: f64 = stat.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    ns / 1e9
}

/// Returns the peak resident memory of this process, bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux's /proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number") * 1024
}

/// Makes the requests of every case.
fn uniform(settings: &Settings, requests: u64) -> Uniform {
    let pages = settings.user_pages();
    // Placed by stream, the halves of the device are of two streams.
    let second = if settings.ftl.placement.as_deref() == Some("stream") { pages.div_ceil(2) } else { pages };
    Uniform { left: requests, state: 0x9E37_79B9_7F4A_7C15, pages, second }
}

fn measure_limit(requests: u64, gibibytes: u64) {
    let blocks = (gibibytes * 256).to_string();
    let larger = [("flash.blocks_per_plane", blocks.as_str())];
    let settings = settings("limit", CASES[0].common.iter().chain(CASES[0].keys).chain(&larger));
    let (least, waf) = limit::limit(&settings, &mut uniform(&settings, requests));
    let began = cpu_seconds();
    let report = run(&settings, &mut uniform(&settings, requests), &mut (), false).expect("a sound run");
    let cpu = cpu_seconds() - began;
    println!(
        "{:8} {:10.0} requests/CPU-s  {least:6.3} CPU-s  WAF {waf:.3}; page with its model of time {:.2} times \
         as long ({cpu:.3} CPU-s, WAF {:.3})  {gibibytes} GiB, no model of time",
        "limit",
        requests as f64 / least,
        cpu / least,
        report.waf.total.unwrap_or(0.0),
    );
}

fn measure(case: &Case, requests: u64, own: &[(&str, &str)]) {
    let settings = settings(case.name, case.common.iter().chain(case.keys).chain(own));
    let report = if settings.tenants.0.is_empty() {
        run(&settings, &mut uniform(&settings, requests), &mut (), false).expect("a sound run")
    } else {
        tenants::run(&settings, requests)
    };
    let cpu = cpu_seconds();
    let physical = settings.flash.pages();
    let operations: u64 = report.flash.reads.total() + report.flash.programs.total();
    println!(
        "{:8} {:10.0} requests/CPU-s  {:6.1} M flash operations/CPU-s  {:6.3} CPU-s  {:6.1} MB peak ({:4.1} B/page + 10 MB allowed: {})  WAF {:.3}  {}",
        case.name,
        requests as f64 / cpu,
        operations as f64 / cpu / 1e6,
        cpu,
        peak_bytes() as f64 / 1e6,
        (peak_bytes() as f64 - 10e6).max(0.0) / physical as f64,
        if peak_bytes() <= 16 * physical + 10_000_000 { "within" } else { "ABOVE" },
        report.waf.total.unwrap_or(0.0),
        case.doc
    );
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = arguments.get(1).filter(|_| arguments[0] != "msftl");
    let requests = match number.map(|n| n.parse()) {
        None => 1_000_000,
        Some(Ok(n)) => n,
        Some(Err(_)) => {
            eprintln!("error: REQUESTS must be a whole number");
            return ExitCode::from(2);
        }
    };
    let Some(name) = arguments.first() else {
        let program = std::env::current_exe().expect("own path");
        let all = cases()
            .all(|case| Command::new(&program).arg(case.name).status().is_ok_and(|status| status.success()));
        let limit = Command::new(&program).arg("limit").status().is_ok_and(|status| status.success());
        return if all && limit { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    };
    if name == "limit" {
        let gibibytes = arguments.get(2).map_or(Ok(1), |number| number.parse());
        let Ok(gibibytes) = gibibytes else {
            eprintln!("error: GIB must be a whole number");
            return ExitCode::from(2);
        };
        measure_limit(requests, gibibytes);
        return ExitCode::SUCCESS;
    }
    if name == "replays" {
        replays::replays(requests);
        return ExitCode::SUCCESS;
    }
    if name == "theory" {
        return theory::theory();
    }
    if name == "msftl" {
        return msftl::msftl(arguments.get(1).map(String::as_str), arguments.get(2).map(String::as_str));
    }
    match cases().find(|case| case.name == name) {
        Some(case) => {
            let own: Option<Vec<_>> = arguments.iter().skip(2).map(|key| key.split_once('=')).collect();
            let Some(own) = own else {
                eprintln!("error: after REQUESTS come keys, as KEY=VALUE");
                return ExitCode::from(2);
            };
            measure(case, requests, &own);
        }
        None => {
            let names: Vec<_> = cases().map(|case| case.name).collect();
            eprintln!(
                "error: no case {name}; there are {}, limit, msftl, replays and theory",
                names.join(", ")
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

//! Requests per CPU-second of the whole process, and its peak memory.
//!
//! `ftlab-bench CASE [REQUESTS]` runs one case; without arguments it runs every case in a process
//! of its own. A case is 4 KiB requests, uniformly random, 70 % writes, on a 1 GiB device that was
//! filled in order first; the fill is part of the process's time and not of the requests.
//!
//! `ftlab-bench theory` compares write amplification with its closed forms instead.

mod theory;

use std::process::{Command, ExitCode};

use ftlab_core::config::{Device, Flash, Ftl, Host, OutOfRange, Replay, Settings, Workload};
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record, Source, SourceError};

/// A case: name, what it measures, and the settings.
type Case = (&'static str, &'static str, fn() -> Settings);

const CASES: &[Case] = &[
    ("page", "page map, 8 channels x 2 chips, queue depth 32, garbage collection", page),
    ("dftl", "dftl, 16 KiB mapping cache, one chip served serially", dftl),
    ("dftl-gc", "as dftl, and garbage collection (7 % withheld)", dftl_gc),
    ("map+", "as dftl, scheduler map+ with 128 pending", map_plus),
];

/// 1 GiB of 4 KiB pages in 64-page blocks; times of the MAP+ paper.
fn base() -> Settings {
    Settings {
        seed: 1,
        workload: Workload {
            trace: None,
            format: "auto".into(),
            dedup_ns: 0,
            max_gap_ns: None,
            skip_bad: 0,
            repeat: 1,
            out_of_range: OutOfRange::Error,
            replay: Replay::Closed,
            speed: 1.0,
            fio_time_unit_ns: None,
            synthetic: None,
        },
        host: Host {
            scheduler: "noop".into(),
            queue_depth: 128,
            deadline_ns: Some(10_000_000),
            awareness: "full".into(),
            alternate: false,
        },
        device: Device { scheduler: "noop".into(), queue_depth: 1, fill: true },
        ftl: Ftl {
            kind: "dftl".into(),
            mapping_cache_bytes: Some(16 << 10),
            cache_policy: "slru".into(),
            batch_update: true,
            background_flush: false,
            logical_page_bytes: 4096,
            read_modify_write: false,
            over_provisioning_ppm: 70_000,
            gc: "greedy".into(),
            gc_choices: 2,
            gc_window: 64,
            wear_threshold: None,
            gc_free_blocks: 1,
            entry_bytes: 8,
        },
        flash: Flash {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 4096,
            pages_per_block: 64,
            page_bytes: 4096,
            read_ns: 35_000,
            program_ns: 350_000,
            erase_ns: 1_500_000,
            transfer_ps: 0,
            pe_cycles: 0,
        },
    }
}

fn page() -> Settings {
    let mut settings = base();
    settings.ftl.kind = "page".into();
    settings.device.queue_depth = 32;
    settings.flash.channels = 8;
    settings.flash.chips_per_channel = 2;
    settings.flash.blocks_per_plane = 256;
    settings
}

/// The user addresses 1 GiB; the flash is 4 GiB, so that no garbage is collected.
fn dftl() -> Settings {
    let mut settings = base();
    settings.flash.blocks_per_plane = 16_384;
    settings.ftl.over_provisioning_ppm = 750_000;
    settings
}

fn dftl_gc() -> Settings {
    base()
}

fn map_plus() -> Settings {
    let mut settings = dftl();
    settings.host.scheduler = "map+".into();
    settings
}

/// Uniform random requests; xorshift, so that the generator is not what is measured.
struct Uniform {
    left: u64,
    state: u64,
    pages: u64,
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
        Ok(Some(Record { time_ns: 0, op, offset: lpn * 4096, size: 4096, line: 0 }))
    }
}

/// User and system time of this process, seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux's /proc");
    let ns: f64 = stat.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    ns / 1e9
}

/// Peak resident memory of this process, bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux's /proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number") * 1024
}

fn measure(case: &Case, requests: u64) {
    let settings = case.2();
    let pages = settings.user_pages();
    let mut source = Uniform { left: requests, state: 0x9E37_79B9_7F4A_7C15, pages };
    let report = run(&settings, &mut source, &mut (), false).expect("a sound run");
    let cpu = cpu_seconds();
    let physical = settings.flash.pages();
    println!(
        "{:8} {:10.0} requests/CPU-s  {:6.3} CPU-s  {:6.1} MB peak ({:4.1} B/page + 10 MB allowed: {})  WAF {:.3}  {}",
        case.0,
        requests as f64 / cpu,
        cpu,
        peak_bytes() as f64 / 1e6,
        (peak_bytes() as f64 - 10e6).max(0.0) / physical as f64,
        if peak_bytes() <= 16 * physical + 10_000_000 { "within" } else { "ABOVE" },
        report.waf.total.unwrap_or(0.0),
        case.1
    );
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let requests = match arguments.get(1).map(|n| n.parse()) {
        None => 1_000_000,
        Some(Ok(n)) => n,
        Some(Err(_)) => {
            eprintln!("error: REQUESTS must be a whole number");
            return ExitCode::from(2);
        }
    };
    let Some(name) = arguments.first() else {
        let program = std::env::current_exe().expect("own path");
        let all = CASES
            .iter()
            .all(|case| Command::new(&program).arg(case.0).status().is_ok_and(|status| status.success()));
        return if all { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    };
    if name == "theory" {
        return theory::theory();
    }
    match CASES.iter().find(|case| case.0 == name) {
        Some(case) => measure(case, requests),
        None => {
            let names: Vec<_> = CASES.iter().map(|case| case.0).collect();
            eprintln!("error: no case {name}; there are {}, and theory", names.join(", "));
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

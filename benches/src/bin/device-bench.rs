//! Benchmark of the device's schedulers on the preset vios: CPU time of 500,000 requests after the device was filled,
//! and peak memory.
//!
//! `device-bench SCHEDULER WIDEST GAP [REQUESTS [CHIPS]]` runs one case: requests of 1 to WIDEST pages at random
//! places, 70 % of them writes, GAP ns apart; if GAP is 0, all wait from the start. CHIPS is the number of chips over
//! which the same flash is spread, 64 if left out. Without arguments it runs every case in a process of its own.

use std::process::{Command, ExitCode};

use ftlab_config::{Base, Override, resolve};
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record, Source, SourceError};

const PAGE: u64 = 2048;
/// CPU seconds that 500,000 requests may take.
const ALLOWED_S: f64 = 2.0;
/// Memory that the whole run may take, bytes.
const ALLOWED_BYTES: u64 = 1_288_490_189;

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

/// Uniform random requests; they come from xorshift, so that the cost of generating them does not distort the
/// measurement.
struct Uniform {
    made: u64,
    requests: u64,
    state: u64,
    pages: u64,
    widest: u64,
    gap_ns: u64,
    /// CPU time when the first request was asked for; by then, the device has been filled.
    began_s: f64,
}

impl Uniform {
    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((self.state >> 32) * bound) >> 32
    }
}

impl Source for Uniform {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.made == 0 {
            self.began_s = cpu_seconds();
        }
        if self.made == self.requests {
            return Ok(None);
        }
        let count = 1 + self.below(self.widest);
        let offset = self.below(self.pages - self.widest) * PAGE;
        let op = if self.below(10) < 7 { Op::Write } else { Op::Read };
        let time_ns = self.made * self.gap_ns;
        self.made += 1;
        Ok(Some(Record { time_ns, op, offset, size: count * PAGE, ..Record::FLUSH }))
    }
}

fn measure(scheduler: &str, widest: u64, gap_ns: u64, requests: u64, chips: u64) -> Result<(), String> {
    let set = |key: &str, value: String| Override { origin: "device-bench".into(), key: key.into(), value };
    let keys = [
        set("device.scheduler", scheduler.into()),
        set("flash.chips_per_channel", (chips / 8).to_string()),
        set("flash.blocks_per_plane", (2048 * 64 / chips).to_string()),
    ];
    let settings = resolve(Base::Preset("vios"), &keys).map_err(|error| error.to_string())?.settings;
    let state = 0x9E37_79B9_7F4A_7C15;
    let pages = settings.user_pages();
    let mut source = Uniform { made: 0, requests, state, pages, widest, gap_ns, began_s: 0.0 };
    let report = run(&settings, &mut source, &mut (), false).map_err(|error| error.to_string())?;
    let cpu = cpu_seconds() - source.began_s;
    let allowed = cpu <= ALLOWED_S * requests as f64 / 500_000.0 && peak_bytes() <= ALLOWED_BYTES;
    println!(
        "{scheduler:5} to {widest:2} pages, {gap_ns:6} ns apart: {cpu:6.3} CPU-s (and {:.1} to fill)  {:6.1} MB \
         peak  {}  read {:9.0} us, write {:9.0} us, batches {}",
        source.began_s,
        peak_bytes() as f64 / 1e6,
        if allowed { "within" } else { "ABOVE" },
        report.latency.read.mean_ns / 1e3,
        report.latency.write.mean_ns / 1e3,
        report.device.batches,
    );
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        let program = std::env::current_exe().expect("own path");
        let cases = [("1", "0"), ("8", "0"), ("8", "50000"), ("8", "100000")];
        let all = cases.iter().all(|(widest, gap)| {
            ["noop", "piq", "vios"].iter().all(|scheduler| {
                let status = Command::new(&program).args([scheduler, widest, gap]).status();
                status.is_ok_and(|status| status.success())
            })
        });
        return if all { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let number = |at: usize| arguments.get(at).map_or(Some(500_000), |text| text.parse().ok());
    let chips = arguments.get(4).map_or(Some(64), |text| text.parse().ok());
    let done = match (arguments.len(), number(1), number(2), number(3), chips) {
        (3..=5, Some(widest @ 1..=4096), Some(gap_ns), Some(requests), Some(chips @ 8..=1024)) => {
            measure(&arguments[0], widest, gap_ns, requests, chips)
        }
        _ => Err("usage: device-bench SCHEDULER WIDEST GAP [REQUESTS [CHIPS]]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

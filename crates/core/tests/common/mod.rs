//! Settings and runs for the tests.
#![allow(dead_code)]

use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Completion, Observer, run};
use ftlab_core::workload::{Op, Record};

/// The device of the MAP+ paper, smaller: one chip, 35 us reads, 350 us programs, no bus time.
pub fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.host.deadline_ns = None;
    settings.ftl.kind = "dftl".into();
    settings.flash.blocks_per_plane = 256;
    settings
}

/// A request of whole pages of `page` bytes.
pub fn pages(time_ns: u64, op: Op, page: u64, lpn: u64, count: u64) -> Record {
    Record { time_ns, op, offset: lpn * page, size: count * page, line: 0, flags: 0 }
}

/// Keeps every completion.
#[derive(Default)]
pub struct Log(pub Vec<Completion>);

impl Observer for Log {
    fn complete(&mut self, completion: &Completion) {
        self.0.push(*completion);
    }
}

/// Runs in check mode; completions in the order of ids.
pub fn checked(settings: &Settings, records: Vec<Record>) -> (Report, Vec<Completion>) {
    let mut log = Log::default();
    let report = run(settings, &mut records.into_iter(), &mut log, true).expect("every invariant holds");
    log.0.sort_by_key(|completion| completion.id);
    (report, log.0)
}

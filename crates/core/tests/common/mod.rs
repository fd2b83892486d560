//! Settings and runs for the tests.
#![allow(dead_code)]

use ftlab_core::config::Choice;
use ftlab_core::ftl::{self, gathers, gc, is_hybrid, maps_on_flash};
use ftlab_core::host::sched;
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

fn names(choices: Vec<Choice>) -> Vec<&'static str> {
    choices.iter().map(|choice| choice.name).collect()
}

/// An FTL as the tests name it: the name it is registered by, or `base-` with one that flushes its mappings by
/// amount where it need not.
pub fn set_ftl(settings: &mut Settings, kind: &str) {
    settings.ftl.kind = kind.trim_start_matches("base-").into();
    settings.ftl.flush_bytes = (kind.starts_with("base-") || gathers(settings)).then_some(64 << 10);
}

/// The registered FTLs of which, with their defaults, this is true. Whoever adds one is tested without saying so.
pub fn ftls(is: impl Fn(&Settings) -> bool) -> Vec<&'static str> {
    names(ftl::choices()).into_iter().filter(|kind| is(&with_ftl(kind))).collect()
}

fn with_ftl(kind: &str) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings
}

/// All of them.
pub fn all_ftls() -> Vec<&'static str> {
    ftls(|_| true)
}

/// Those that map pages.
pub fn page_mapped() -> Vec<&'static str> {
    ftls(|settings| !is_hybrid(settings))
}

/// Those that map pages and write mappings back by eviction, if at all.
pub fn by_eviction() -> Vec<&'static str> {
    ftls(|settings| !is_hybrid(settings) && !gathers(settings))
}

/// Those of them with translation pages.
pub fn demand_cached() -> Vec<&'static str> {
    ftls(|settings| maps_on_flash(settings) && !gathers(settings))
}

/// Those that map blocks.
pub fn hybrids() -> Vec<&'static str> {
    ftls(|settings| is_hybrid(settings))
}

/// Those that map pages, and those of them that can flush by amount and need not as `base-` with their name.
pub fn page_mapped_both_ways() -> Vec<&'static str> {
    let by_amount = |kind: &&'static str| {
        let mut settings = with_ftl(kind);
        settings.ftl.flush_bytes = Some(64 << 10);
        gathers(&settings) && !gathers(&with_ftl(kind))
    };
    let base = page_mapped().into_iter().filter(by_amount).map(|kind| &*format!("base-{kind}").leak());
    page_mapped().into_iter().chain(base).collect()
}

/// Host schedulers that work by flash blocks, or those that do not.
pub fn schedulers(by_blocks: bool) -> Vec<&'static str> {
    names(sched::choices()).into_iter().filter(|name| sched::needs(name).blocks == by_blocks).collect()
}

/// Schedulers of the device.
pub fn device_schedulers() -> Vec<&'static str> {
    names(ftlab_core::device::sched::choices())
}

/// Lets a policy choose the victims of all blocks.
pub fn set_gc(settings: &mut Settings, gc: &str) {
    (settings.ftl.gc, settings.ftl.translation_gc) = (gc.into(), gc.into());
}

/// Victim policies.
pub fn victim_policies() -> Vec<&'static str> {
    names(gc::choices())
}

/// Power cuts that a campaign makes of each FTL; `FTLAB_CUTS` for more.
pub fn cuts() -> u64 {
    std::env::var("FTLAB_CUTS").map_or(300, |count| count.parse().expect("a number"))
}

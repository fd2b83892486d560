//! Campaigns of power cuts.

use ftlab_conformance::{cuts as count, tiny};
use ftlab_core::ftl::recovery::Flaw;
use ftlab_core::settings::Settings;
use ftlab_crash::{CrashError, Cuts, Options, Requests, Summary, crash};

/// Cuts the power `count` times, each time during a random operation.
pub fn cuts(settings: &Settings, count: u64, seed: u64, flaw: Flaw) -> Result<Summary, CrashError> {
    let options = Options { cuts: Cuts::Random { count, mean: 60 }, seed, flaw };
    crash(settings, &mut || Ok(Box::new(Requests::new(settings, seed))), &options, &mut |_| true)
}

/// Checks that this FTL loses nothing durable, and that the campaign tried everything.
pub fn nothing_durable(kind: &str) {
    let summary = cuts(&tiny(kind), count(), 1, Flaw::None).unwrap_or_else(|fault| panic!("{kind}: {fault}"));
    println!("{kind}: {summary:#?}");
    assert_eq!(summary.cuts, count());
    let least = [summary.torn_programs, summary.torn_erases, summary.durable_writes, summary.durable_trims];
    assert!(least.iter().all(|&seen| seen > 0), "{kind}: nothing was tried: {summary:?}");
    assert!(summary.recovery.cut > 0 && summary.recovery.count == count(), "{kind}: {summary:?}");
    let scan = summary.recovery.scan_reads;
    assert!(scan.mean > 0.0 && scan.mean <= scan.max as f64, "{kind}: {summary:?}");
}

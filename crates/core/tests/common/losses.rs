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

/// Checks that this FTL loses nothing durable, and that the campaign had torn operations, durable requests and cut
/// recoveries.
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

/// Regression: where programs and transfers take no time, a load that waits for its answers takes place within one
/// instant. A cut between two programs that had finished then left their data on flash, although no such write had been
/// accounted for.
pub fn operations_without_time(kind: &str) {
    let mut settings = tiny(kind);
    (settings.flash.program, settings.flash.transfer_ps) = (0.into(), 0);
    for seed in 1..4 {
        cuts(&settings, count() / 4, seed, Flaw::None)
            .unwrap_or_else(|fault| panic!("{kind} {seed}: {fault}"));
    }
}

//! Static wear levelling bounds the spread of erase counts, is charged for the data that it moves, and is off by
//! default.

use ftlab_conformance as common;

use common::{pages, settings};
use ftlab_core::flash::Cause;
use ftlab_core::ftl::settings::StaticLeveling;
use ftlab_core::metrics::Report;
use ftlab_core::settings::{Precondition, Settings};
use ftlab_core::sim::run;
use ftlab_core::workload::Op;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Runs a full device; 95 % of the writes, or all of them if `frozen`, go to a twentieth of its pages.
fn hot_and_cold(settings: &Settings, writes: u64, frozen: bool, check: bool) -> Report {
    let user = settings.user_pages();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let write = |_| {
        let hot = frozen || random.random_bool(0.95);
        let lpn = if hot { random.random_range(0..user / 20) } else { random.random_range(0..user) };
        pages(0, Op::Write, u64::from(settings.ftl.logical_page_bytes), lpn, 1)
    };
    let trace: Vec<_> = (0..writes).map(write).collect();
    run(settings, &mut trace.into_iter(), &mut (), check).expect("a sound run")
}

fn device(kind: &str, gc: &str, threshold: Option<u32>) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    common::set_gc(&mut settings, gc);
    settings.ftl.victims.windowed_greedy.window = 16;
    settings.ftl.wear_leveling = threshold.map(|threshold| StaticLeveling { threshold });
    settings.ftl.over_provisioning_ppm = 150_000;
    settings.flash.blocks_per_plane = 64;
    settings.flash.pages_per_block = 16;
    settings.device.precondition = Precondition::fill();
    settings
}

/// By how much the spread may exceed the threshold: a block past the threshold is moved when it is next erased, unless
/// it is used and erased again within the same host write. Where victims are drawn at random, the excess may be twice
/// as large.
const SLACK: u32 = 16;

fn spread(report: &Report) -> u32 {
    report.wear.max - report.wear.min
}

#[test]
fn it_bounds_the_spread_and_is_charged() {
    for gc in ["greedy", "cost-benefit", "d-choices", "random", "windowed-greedy"] {
        for frozen in [false, true] {
            let without = hot_and_cold(&device("page", gc, None), 200_000, frozen, false);
            assert_eq!((without.flash.programs[Cause::Wear], without.flash.erases[Cause::Wear]), (0, 0));
            for threshold in [4, 32] {
                let with = hot_and_cold(&device("page", gc, Some(threshold)), 200_000, frozen, false);
                let what = format!("{gc}, frozen {frozen}, threshold {threshold}");
                println!(
                    "{what}: spread {} -> {}, WAF {:.3} -> {:.3}",
                    spread(&without),
                    spread(&with),
                    without.waf.total.unwrap(),
                    with.waf.total.unwrap()
                );
                let slack = if gc == "random" || gc == "d-choices" { 2 * SLACK } else { SLACK };
                assert!(spread(&with) <= threshold + slack, "{what}: {:?}", with.wear);
                let programs = &with.flash.programs;
                assert_eq!(programs[Cause::Wear], with.flash.reads[Cause::Wear]);
                let moved =
                    (programs[Cause::Gc] + programs[Cause::Wear]) as f64 / programs[Cause::Host] as f64;
                assert!((with.waf.gc.unwrap() - moved).abs() < 1e-12);
                if spread(&without) > threshold + SLACK {
                    assert!(programs[Cause::Wear] > 0 && with.flash.erases[Cause::Wear] > 0, "{what}");
                }
            }
            // Without wear levelling the spread is far beyond the bound.
            assert!(gc == "random" || gc == "d-choices" || spread(&without) > 60, "{gc}: {:?}", without.wear);
        }
    }
}

/// Levelling includes the few blocks of the translation pages, which otherwise are erased most often (with a small
/// cache), or never (with a large one).
#[test]
fn it_levels_translation_blocks_with_the_data() {
    for (cache, reserve) in [(Some(1 << 10), 1), (None, 1), (Some(1 << 10), 3)] {
        for kind in common::demand_cached() {
            let mut settings = device(kind, "greedy", None);
            settings.ftl.mapping_cache_bytes = cache.map(|bytes: u64| bytes.max(8192));
            settings.ftl.gc_free_blocks = reserve;
            let without = hot_and_cold(&settings, 60_000, false, false);
            settings.ftl.wear_leveling = Some(StaticLeveling { threshold: 32 });
            let with = hot_and_cold(&settings, 60_000, false, false);
            let what = format!("{kind}, cache {cache:?}, {reserve} reserved");
            println!("{what}: spread {} -> {}", spread(&without), spread(&with));
            assert!(spread(&without) > 100, "{what}: {:?}", without.wear);
            if kind == "leaftl" {
                // Its map is written seldom enough that the block that is open for it stays open for most of the run,
                // and an open block is not moved.
                assert!(spread(&with) < spread(&without), "{what}: {:?}", with.wear);
                continue;
            }
            // A host write may erase several translation blocks but moves only one; if translation pages are never
            // written, a block stays open and is moved late.
            let bound = if cache.is_none() { 3 * 32 } else { 32 + 2 * SLACK };
            assert!(spread(&with) <= bound, "{what}: {:?}", with.wear);
        }
    }
}

/// Check mode finds no fault in many wear-levelling moves, with one chip or two, and with slots as large as pages or
/// smaller.
#[test]
fn it_keeps_every_invariant() {
    for (kind, logical, chips) in
        [("page", 4096, 1), ("dftl", 4096, 2), ("cdftl", 4096, 1), ("page", 1024, 2), ("dftl", 1024, 1)]
    {
        for gc in ["greedy", "fifo", "random"] {
            let mut settings = device(kind, gc, Some(2));
            settings.ftl.logical_page_bytes = logical;
            settings.ftl.mapping_cache_bytes = Some(8192);
            settings.ftl.over_provisioning_ppm = 300_000;
            settings.flash.channels = chips;
            settings.flash.blocks_per_plane = 16;
            settings.flash.pages_per_block = 8;
            let report = hot_and_cold(&settings, 12_000, false, true);
            assert!(gc == "fifo" || report.flash.erases[Cause::Wear] > 0, "{kind}, {gc}, {logical} B");
        }
    }
}

/// A threshold that is never reached changes only which erased block is used next.
#[test]
fn a_threshold_out_of_reach_costs_nothing() {
    for kind in ["page", "dftl"] {
        let [off, on] = [None, Some(1 << 30)].map(|threshold| {
            let mut settings = device(kind, "greedy", threshold);
            settings.ftl.mapping_cache_bytes = Some(1024);
            let mut report = hot_and_cold(&settings, 30_000, false, false);
            assert!(report.flash.erases[Cause::Gc] > 1000);
            report.wear.stddev = 0.0;
            (report.wear.min, report.wear.max) = (0, 0);
            format!("{report:?}")
        });
        assert_eq!(off, on);
    }
}

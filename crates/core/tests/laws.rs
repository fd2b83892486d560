//! Laws that hold for every configuration.

use ftlab_conformance as common;

use common::{bursts, checked, page_mapped, pages, settings, small};
use ftlab_core::flash::Cause;
use ftlab_core::host::awareness::AwarenessKind;
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Little's law, exactly: the integral over time of the number of requests in the system is the sum of their latencies.
#[test]
fn littles_law() {
    let mut settings = small("dftl", 1);
    settings.host.scheduler = "map+".into();
    let (report, done) = checked(&settings, bursts(5, 2000, settings.user_pages()));
    let mut events: Vec<(u64, i64)> =
        done.iter().flat_map(|c| [(c.arrival_ns, 1), (c.complete_ns, -1)]).collect();
    events.sort_unstable();
    let (mut inside, mut integral, mut last) = (0i64, 0i128, 0);
    for (time, change) in events {
        integral += i128::from(inside) * i128::from(time - last);
        last = time;
        inside += change;
    }
    let latencies: i128 = done.iter().map(|c| i128::from(c.complete_ns - c.arrival_ns)).sum();
    assert_eq!(integral, latencies);
    assert_eq!(report.latency.all.count, 2000);
}

/// More mapping cache does not cost more flash time on one and the same order of requests, but for collections that
/// take other victims. Regression: translation pages that waited in the page buffer of a word line were read for
/// nothing, so that a cache smaller than that buffer was best.
#[test]
fn more_mapping_cache_costs_no_more_flash_time() {
    for kind in common::demand_cached() {
        let mut settings = common::word_lines(kind);
        settings.flash.blocks_per_plane = 40;
        settings.flash.pages_per_block = 24;
        (settings.host.queue_depth, settings.device.queue_depth) = (1, 1);
        let (page, user) = (u64::from(settings.ftl.logical_page_bytes), settings.user_pages());
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut near = 0;
        let mut request = |at: u64| {
            // Most requests are near the one before.
            let far = random.random_range(0..8) == 0;
            near = if far { random.random_range(0..user) } else { near + random.random_range(0..9) };
            pages(at, if random.random() { Op::Read } else { Op::Write }, page, near % user, 1)
        };
        let load: Vec<Record> = (0..20_000).map(&mut request).collect();
        let busy_ns = |bytes: Option<u64>| {
            settings.ftl.mapping_cache_bytes = bytes;
            let report = run(&settings, &mut load.clone().into_iter(), &mut (), false).expect("a sound run");
            report.flash.busy_ns.total()
        };
        let sizes = [1024, 4096, 16_384, 65_536].map(Some).into_iter().chain([None]);
        let busy: Vec<u64> = sizes.map(busy_ns).collect();
        assert!(busy.is_sorted_by(|less, more| *more <= less + less / 100), "{kind}: {busy:?}");
        assert!(busy[4] < busy[0], "{kind}: {busy:?}");
    }
}

fn sequential_overwrites(settings: &Settings, passes: u64) -> Report {
    let user = settings.user_pages();
    let write = |index| pages(0, Op::Write, u64::from(settings.ftl.logical_page_bytes), index % user, 1);
    let mut source = (0..user * passes).map(write).collect::<Vec<_>>().into_iter();
    run(settings, &mut source, &mut (), false).expect("a sound run")
}

#[test]
fn sequential_overwrite_moves_no_user_data() {
    for kind in page_mapped() {
        for (chips, blocks, withheld) in [(1, 64, 70_000), (4, 64, 70_000), (3, 100, 100_000)] {
            let mut settings = small(kind, chips);
            settings.flash.blocks_per_plane = blocks;
            settings.flash.pages_per_block = 64;
            // Translation blocks that are filled one at a time need one block more.
            settings.ftl.over_provisioning_ppm =
                if settings.ftl.flush_bytes.is_some() { withheld.max(100_000) } else { withheld };
            let report = sequential_overwrites(&settings, 4);
            assert_eq!(report.waf.gc, Some(0.0), "{kind} on {chips} chips of {blocks} blocks");
            if kind == "page" {
                assert_eq!(report.waf.total, Some(1.0));
            }
        }
    }
}

#[test]
fn a_larger_lru_cache_never_hits_less_under_noop() {
    let mut previous = 0;
    for entries in [1, 2, 7, 16, 61, 250, 1024, 4096] {
        let mut settings = small("dftl", 1);
        settings.ftl.own.dftl.replacement = "lru".to_owned();
        settings.ftl.mapping_cache_bytes = Some(entries * 8);
        settings.flash.blocks_per_plane = 4096;
        let trace = bursts(9, 6000, 3000);
        let hits = run(&settings, &mut trace.into_iter(), &mut (), false).expect("a sound run").mapping.hits;
        assert!(hits >= previous, "{entries} entries hit {hits} times, fewer had {previous}");
        previous = hits;
    }
    assert!(previous > 10_000, "the largest cache must hit often for this test to mean anything");
}

/// Throughput is no higher than the busiest resource allows, be it the cells of a chip or a bus.
#[test]
fn throughput_stays_below_the_bottleneck() {
    for (chips, transfer_ps) in [(1, 0), (4, 0), (4, 25_000), (8, 100_000)] {
        let mut settings = small("page", chips);
        settings.device.queue_depth = 64;
        settings.flash.transfer_ps = transfer_ps;
        let lpns = settings.user_pages();
        let trace: Vec<_> = (0..4000).map(|i| pages(0, Op::Read, 4096, i * 7919 % lpns, 1)).collect();
        let report = run(&settings, &mut trace.into_iter(), &mut (), false).expect("a sound run");
        let transfer_ns = settings.flash.transfer_ns(4096);
        let per_chip = 4096.0 / (35_000 + transfer_ns) as f64 * f64::from(settings.flash.chips());
        let per_bus = 4096.0 / transfer_ns.max(1) as f64 * f64::from(settings.flash.channels);
        let bound = per_chip.min(per_bus) * 1e9;
        assert!(report.throughput_bytes_per_s <= bound * 1.000_001);
        assert!(report.throughput_bytes_per_s >= bound * 0.5, "the bound must be near to mean anything");
    }
}

/// Regression: a flush that is a batch of its own has no translation page; rb once asked the device to prefetch page
/// `u32::MAX` for it and overflowed.
#[test]
fn a_flush_in_a_batch_prefetches_nothing() {
    for scheduler in common::by_translation_page() {
        let mut settings = small("dftl", 1);
        settings.host.scheduler = scheduler.into();
        settings.host.awareness = AwarenessKind::None;
        let flush = Record::FLUSH;
        let (report, done) = checked(&settings, vec![flush, pages(0, Op::Read, 4096, 3, 1), flush]);
        assert_eq!((report.mapping.prefetches, done.len()), (1, 3), "{scheduler}");
    }
}

/// Regression: an entry that was merged into a second-level page several times was counted each time, and the ratio
/// came to 11.7.
#[test]
fn no_more_entries_are_updated_than_are_programmed() {
    let mut settings = settings();
    settings.ftl.kind = "cdftl".into();
    settings.ftl.mapping_cache_bytes = Some(4096 + 8);
    let mut trace: Vec<_> = (0..6000).map(|i| pages(i * 1_000_000, Op::Write, 4096, i % 2, 1)).collect();
    trace.push(pages(7_000_000_000, Op::Read, 4096, 600, 1));
    let report = checked(&settings, trace).0;
    assert_eq!(report.mapping.translation_programs, 1);
    assert_eq!(report.mapping.updated_ratio, Some(2.0 / 512.0));
}

/// Regression: if every block had been erased many times before, the spread was lost in rounding.
#[test]
fn the_spread_of_wear_does_not_depend_on_the_cycles_before() {
    let spread = |pe_cycles| {
        let mut settings = small("page", 1);
        settings.flash.pe_cycles = pe_cycles;
        let trace = bursts(3, 4000, settings.user_pages());
        run(&settings, &mut trace.into_iter(), &mut (), false).expect("a sound run").wear.stddev
    };
    assert!(spread(0) > 0.5);
    assert_eq!(spread(0), spread(100_000_000));
}

/// Regression: an arrival just below the largest time stamp wrapped around, and one exactly at it was never
/// simulated.
#[test]
fn arrivals_beyond_the_clock_are_refused() {
    let settings = small("page", 1);
    for time_ns in [u64::MAX, u64::MAX - 1, 1 << 63] {
        let mut source = vec![Record { time_ns, ..pages(0, Op::Read, 4096, 0, 1) }].into_iter();
        let error = run(&settings, &mut source, &mut (), false).expect_err("beyond the clock");
        assert!(error.to_string().contains("more than a century"), "{error}");
    }
}

/// A device is filled to its user capacity and overwritten ten times, with every invariant verified completely after
/// every request (the device is below check mode's limit for that).
#[test]
fn ten_overwrites_of_a_full_device_with_everything_verified_each_time() {
    for kind in page_mapped() {
        for (chips, depth) in [(1, 1), (2, 4)] {
            let mut settings = small(kind, chips);
            if settings.ftl.flush_bytes.is_none() {
                settings.ftl.mapping_cache_bytes = Some(4096 + 64 * 8);
            }
            settings.flash.blocks_per_plane = 16;
            if settings.ftl.flush_bytes.is_some() {
                settings.ftl.over_provisioning_ppm = 300_000;
            }
            settings.device.queue_depth = depth;
            let user = settings.user_pages();
            assert!(user < 1000, "small enough to be verified whole");
            let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(chips));
            let fill = (0..user).map(|lpn| pages(0, Op::Write, 4096, lpn, 1));
            let mut trace: Vec<_> = fill.collect();
            trace.extend((0..10 * user).map(|_| pages(0, Op::Write, 4096, random.random_range(0..user), 1)));
            let report = checked(&settings, trace).0;
            assert!(report.flash.programs[Cause::Gc] > 0, "{kind} collected");
        }
    }
}

/// The first level of cdftl is ordered by recency: the fifth most recent entry leaves a level of four entries, each of
/// a different translation page, one of which is in the second level.
#[test]
fn cdftl_gives_up_what_was_used_longest_ago() {
    let mut settings = settings();
    settings.ftl.kind = "cdftl".into();
    settings.ftl.mapping_cache_bytes = Some(4096 + 4 * 8);
    let read = |(at, page): (u64, u64)| pages(at * 1_000_000, Op::Read, 4096, page * 512, 1);
    let trace = (0..).zip([0, 1, 2, 3, 0, 4, 0, 1, 2]).map(read).collect();
    let misses: Vec<u32> = checked(&settings, trace).1.iter().map(|done| done.mapping_misses).collect();
    assert_eq!(misses, [1, 1, 1, 1, 0, 1, 0, 1, 1]);
}

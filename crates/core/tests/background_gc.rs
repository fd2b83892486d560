//! Garbage collection in the background: every invariant holds between any two of its steps, a burst
//! no longer waits for a whole collection, and write amplification follows the closed forms.

use ftlab_conformance as common;

use crate::closed_forms;
use crate::devices;
use crate::devices::device;
use crate::driven::Driven;
use common::{Log, checked, pages, settings};
use ftlab_core::flash::Cause;
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::{Ftl, check};
use ftlab_core::metrics::Report;
use ftlab_core::request::Pages;
use ftlab_core::settings::{GcBackground, Precondition, Settings};
use ftlab_core::sim::{Activity, Completion, Observer, run};
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Adds background collection to a device, and enough blocks for it.
fn with_background(mut settings: Settings, above: u32, step_pages: u32) -> Settings {
    let normal_blocks = settings.ftl.gc_free_blocks + above;
    settings.ftl.gc_background = Some(GcBackground { normal_blocks, step_pages });
    while check(&settings).is_err() {
        settings.flash.blocks_per_plane += 1;
    }
    settings
}

/// Makes a full page-mapped device.
fn full(kind: &str, blocks: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings.ftl.over_provisioning_ppm = 200_000;
    settings.ftl.mapping_cache_bytes = Some(16 << 10);
    settings.flash.blocks_per_plane = blocks;
    settings.flash.pages_per_block = 16;
    settings.device.precondition = Precondition::fill();
    settings
}

fn background(normal_blocks: u32, step_pages: u32) -> Option<GcBackground> {
    Some(GcBackground { normal_blocks, step_pages })
}

/// Makes bursts of eight random writes, two hundred milliseconds apart.
fn bursts(settings: &Settings, writes: u64) -> Vec<Record> {
    let user = settings.user_pages();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    (0..writes)
        .map(|at| pages(at / 8 * 200_000_000, Op::Write, 4096, random.random_range(0..user), 1))
        .collect()
}

fn report(settings: &Settings, trace: Vec<Record>) -> Report {
    run(settings, &mut trace.into_iter(), &mut (), true).expect("every invariant holds")
}

#[test]
fn a_burst_no_longer_waits_for_a_collection() {
    for kind in common::by_eviction() {
        let mut settings = full(kind, 64);
        let foreground = report(&settings, bursts(&settings, 4000));
        settings.ftl.gc_background = background(4, 1);
        let background = report(&settings, bursts(&settings, 4000));
        let [before, after] = [&foreground, &background].map(|report| report.latency.write.max_ns);
        println!("{kind}: worst write {before} -> {after} ns");
        assert!(foreground.flash.erases[Cause::Gc] > 100 && background.flash.erases[Cause::Gc] > 100);
        if kind == "page" {
            // The burst takes eight programs; with foreground collection, at least one whole collection was among them.
            assert!(before >= 350_000 + 1_500_000, "{before}");
            assert_eq!(after, 8 * 350_000);
        }
        assert!(after < before, "{kind}: {before} -> {after}");
        // Everything that background collection does is charged like any other collection.
        let moved =
            (background.flash.programs[Cause::Gc]) as f64 / background.flash.programs[Cause::Host] as f64;
        assert!((background.waf.gc.unwrap() - moved).abs() < 1e-12);
    }
}

/// A request that arrives while a step runs waits for at most that step, whatever the step is.
#[test]
fn a_request_waits_for_one_step_at_most() {
    for step_pages in [1, 4] {
        let mut settings = full("page", 64);
        settings.ftl.gc_background = background(6, step_pages);
        let user = settings.user_pages();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        // Writes are far apart, with a read in the middle of the work that they cause.
        let trace: Vec<_> = (0..4000u64)
            .map(|at| {
                let op = if at % 2 == 0 { Op::Write } else { Op::Read };
                let time = at / 2 * 20_000_000
                    + if at % 2 == 0 { 0 } else { 350_000 + random.random_range(0..9_000_000) };
                pages(time, op, 4096, random.random_range(0..user), 1)
            })
            .collect();
        let report = report(&settings, trace);
        let step_ns = (u64::from(step_pages) * 385_000).max(1_500_000);
        let worst = report.latency.read.max_ns;
        println!("steps of {step_pages}: worst read {worst} ns");
        assert!(report.flash.erases[Cause::Gc] > 50);
        assert!(worst > 35_000, "no read met a step");
        assert!(worst <= step_ns + 35_000, "{worst}");
    }
}

/// Overwritten at random, with idle times in which the chip always returns to its threshold G', the device follows the
/// closed form with G' blocks kept erased: a victim is chosen when a frontier has just been opened and holds one page,
/// so that G' b - 1 pages are unused then. In the foreground, with G blocks kept erased, a victim is chosen when the
/// frontier is full, and G b pages are unused.
#[test]
fn write_amplification_is_that_of_the_closed_form() {
    for (normal, step) in [(2, 1), (8, 1), (8, 16), (16, 7)] {
        let mut settings = settings();
        settings.ftl.kind = "page".into();
        settings.ftl.over_provisioning_ppm = 150_000;
        settings.ftl.gc_background = background(normal, step);
        settings.flash.blocks_per_plane = 512;
        let mut work = settings.work();
        let Ftl::Page(mut ftl) = Ftl::new(&settings, false, &mut work) else {
            panic!("a page-mapped device")
        };
        let user = settings.user_pages() as u32;
        ftl.prefill(&Vec::from_iter(0..user), &mut work);
        ftl.collect_in_background(settings.ftl.gc_background.unwrap());
        let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
        let mut programs = |writes: u32| {
            let before = work.counts().programs.total();
            for _ in 0..writes {
                let first = random.random_range(0..user);
                let page = Pages { first, pages: 1, ..Pages::NONE };
                ftl.write(page, &mut work);
                while ftl.background_step(0, &mut work) {
                    work.clear();
                }
                work.clear();
            }
            (work.counts().programs.total() - before) as f64 / f64::from(writes)
        };
        programs(10 * user);
        let found = programs(6 * user);
        let expected =
            closed_forms::shared_frontier(512, normal, 64, f64::from(user), |a| closed_forms::greedy(a, 64));
        let error = (found / expected - 1.0) * 100.0;
        println!("normal {normal}, steps of {step}: {found:.4}, closed form {expected:.4}, {error:+.2} %");
        assert!(error.abs() < 1.0);
    }
}

/// Without idle time there is no background work: the results are the same as without `ftl.gc_background`.
#[test]
fn a_busy_device_collects_as_it_did() {
    let mut settings = full("page", 64);
    settings.device.precondition = Precondition::fill();
    let user = settings.user_pages();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let trace: Vec<_> =
        (0..6000).map(|_| pages(0, Op::Write, 4096, random.random_range(0..user), 1)).collect();
    let off = report(&settings, trace.clone());
    settings.ftl.gc_background = background(6, 1);
    assert_eq!(format!("{off:?}"), format!("{:?}", report(&settings, trace)));
}

/// The timeline shows background steps as garbage collection that belongs to no request, and the run ends with the last
/// completion.
#[test]
fn steps_are_seen_and_end_with_the_trace() {
    #[derive(Default)]
    struct Watch {
        alone: u64,
        latest_ns: u64,
        last_ns: u64,
    }
    impl Observer for Watch {
        fn complete(&mut self, completion: &Completion) {
            self.last_ns = completion.complete_ns;
        }
        fn wants_activity(&self) -> bool {
            true
        }
        fn activity(&mut self, activity: &Activity) {
            if activity.request.is_none() {
                assert_eq!(activity.cause.name(), "gc");
                self.alone += 1;
            }
            self.latest_ns = activity.end_ns;
        }
    }
    let mut settings = full("page", 64);
    settings.ftl.gc_background = background(6, 1);
    let mut watch = Watch::default();
    let trace = bursts(&settings, 2000);
    let report = run(&settings, &mut trace.into_iter(), &mut watch, true).expect("every invariant holds");
    assert!(watch.alone > 100);
    assert_eq!(watch.last_ns, report.elapsed_ns);
    // A step that is running may outlast the last completion; no step begins after that.
    assert!(watch.latest_ns <= watch.last_ns + 1_500_000);
}

/// A flush needs every chip, so steps on one chip after another must not overtake it.
#[test]
fn steps_do_not_starve_a_flush() {
    for (scheduler, logical) in [("noop", 4096), ("noop", 1024), ("piq", 4096), ("vios", 4096)] {
        let mut settings = full("page", 64);
        settings.device.scheduler = scheduler.into();
        settings.ftl.logical_page_bytes = logical;
        settings.flash.channels = 4;
        settings.device.queue_depth = 16;
        settings.ftl.gc_background = background(12, 1);
        let user = settings.user_pages() / 4 * 4;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut trace = Vec::new();
        for at in 0..300u64 {
            let time = at * 6_000_000;
            for _ in 0..8 {
                trace.push(pages(time, Op::Write, u64::from(logical), random.random_range(0..user), 1));
            }
            trace.push(pages(time, Op::Flush, 4096, 0, 0));
        }
        let (report, rows) = checked(&settings, trace);
        assert!(report.flash.programs[Cause::Gc] > 500, "{scheduler}: {:?}", report.flash.programs);
        let worst =
            rows.iter().filter(|row| row.op == Op::Flush).map(|row| row.complete_ns - row.arrival_ns).max();
        println!("{scheduler}, {logical} B: worst flush {worst:?} ns");
        // The flush waits for what was written with it and for the longest step, but for no foreground collection.
        assert!(worst.unwrap() < 40_000_000, "{scheduler}: {worst:?}");
    }
}

proptest! {
    #![proptest_config(devices::cases(96, "tests/properties.regressions"))]

    /// Writes, trims, flushes and write-backs come between any two steps, on a full device: the host invalidates pages
    /// of victims, takes blocks, and collects in the foreground what was begun in the background.
    #[test]
    fn every_invariant_holds_between_any_two_steps(
        settings in device(), above in 1u32..5, step in 1u32..6,
        steps in proptest::collection::vec((0u8..12, any::<u32>(), 1u32..8), 1..500),
    ) {
        let settings = with_background(settings, above, step);
        let chips = settings.flash.chips();
        let mut driven = Driven::new(&settings);
        let lpns = driven.ftl.logical_pages();
        for lpn in 0..lpns {
            driven.operate(Op::Write, lpn, 1);
        }
        for (op, at, pages) in steps {
            let pages = pages.min(lpns);
            let first = at % (lpns - pages + 1);
            match op {
                0 => driven.operate(Op::Trim, first, pages),
                1 => driven.operate(Op::Flush, 0, 0),
                2 => {
                    driven.ftl.write_back(&mut driven.work);
                }
                3..8 => {
                    for _ in 0..pages {
                        driven.work.clear();
                        driven.ftl.background_step(at % chips, &mut driven.work);
                    }
                }
                _ => driven.operate(Op::Write, first, pages),
            }
            driven.verify();
        }
    }

    /// Through the whole stack, every invariant holds, and idle chips come to rest after finitely many steps.
    #[test]
    fn the_whole_stack_keeps_every_invariant(
        settings in device(), above in 1u32..4, step in 1u32..5,
        device_scheduler in prop::sample::select(common::device_schedulers()),
        (depth, transfer, flush) in (any::<u32>(), any::<u64>(), any::<bool>()),
        steps in proptest::collection::vec((0u8..10, any::<u32>(), 1u64..3000, 0u64..9_000_000), 1..300),
    ) {
        let mut settings = with_background(settings, above, step);
        settings.device.queue_depth = 1 + depth % 12;
        settings.device.precondition = Precondition::fill();
        settings.ftl.background_flush = flush;
        settings.flash.transfer_ps = transfer % 3 * 10_000;
        let whole_pages = settings.flash.unit_bytes() == settings.ftl.logical_page_bytes;
        settings.device.scheduler = if whole_pages { device_scheduler } else { "noop" }.into();
        if settings.allocates_by_speed() {
            settings.ftl.wear_leveling = None;
        }
        let user = settings.user_bytes();
        let mut time_ns = 0;
        let trace: Vec<_> = steps.iter().map(|&(op, at, size, gap)| {
            time_ns += if op % 3 == 0 { gap } else { 0 };
            let size = size.min(user);
            let op = match op { 0..2 => Op::Read, 2..8 => Op::Write, 8 => Op::Trim, _ => Op::Flush };
            let offset = u64::from(at) % (user - size + 1);
            Record { time_ns, op, offset, size: if op == Op::Flush { 0 } else { size }, ..Record::FLUSH }
        }).collect();
        let count = trace.len() as u64;
        let mut log = Log::default();
        let report = run(&settings, &mut trace.into_iter(), &mut log, true).expect("every invariant holds");
        prop_assert_eq!(report.trace.requests, count);
        prop_assert_eq!(log.0.len() as u64, count);
    }
}

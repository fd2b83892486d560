//! Random workloads on random small devices, against a plain map, with every invariant of the
//! model verified after every operation.

mod common;
#[path = "common/devices.rs"]
mod devices;

use std::collections::HashMap;

use common::settings;
use devices::device;
use ftlab_core::flash::{Timing, Work};
use ftlab_core::ftl::Ftl;
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::settings::PartialWrite;
use ftlab_core::host::awareness::AwarenessKind;
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// Drives an FTL directly: version of every LPN by a plain map.
struct Oracle {
    ftl: Ftl,
    work: Work,
    versions: HashMap<u32, Option<u32>>,
    writes: HashMap<u32, u32>,
}

impl Oracle {
    fn new(settings: &Settings) -> Oracle {
        let mut work =
            Work::new(Timing::new(&settings.flash, settings.ftl.logical_page_bytes), settings.flash.units());
        let mut ftl = Ftl::new(settings, true, &mut work);
        if settings.allocates_by_speed() {
            ftl.choose_by_speed(settings.unhurried());
        }
        Oracle { ftl, work, versions: HashMap::new(), writes: HashMap::new() }
    }

    fn operate(&mut self, op: Op, first: u32, pages: u32) {
        let request = Pages { first, pages, head_partial: false, tail_partial: false };
        self.work.clear();
        // Where blocks are chosen by speed: some chips are waited for, some are not.
        (0..6).filter(|chip| (first + pages) >> chip & 1 != 0).for_each(|chip| self.work.hurry(chip));
        let work = &mut self.work;
        match op {
            Op::Read => self.ftl.read(request, work),
            Op::Write => self.ftl.write(request, work),
            Op::Trim => self.ftl.trim(request, work),
            Op::Flush => {
                self.ftl.flush(work);
                0
            }
        };
        if matches!(op, Op::Write | Op::Trim) {
            for lpn in first..first + pages {
                let version = self.writes.entry(lpn).or_insert(0);
                *version += 1;
                self.versions.insert(lpn, (op == Op::Write).then_some(*version));
            }
        }
    }

    fn verify(&self) {
        self.ftl.verify().expect("every invariant holds");
        for lpn in 0..self.ftl.logical_pages() {
            let expected = self.versions.get(&lpn).copied().flatten();
            assert_eq!(self.ftl.version(lpn), expected, "LPN {lpn}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/properties.regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_lpn_resolves_to_its_newest_version(
        settings in device(),
        steps in proptest::collection::vec((0u8..16, any::<u32>(), 1u32..8), 1..400),
    ) {
        let mut oracle = Oracle::new(&settings);
        let lpns = oracle.ftl.logical_pages();
        for (op, at, pages) in steps {
            let pages = pages.min(lpns);
            let first = at % (lpns - pages + 1);
            match op {
                0..4 => oracle.operate(Op::Read, first, pages),
                4 => oracle.operate(Op::Trim, first, pages),
                5 => oracle.operate(Op::Flush, 0, 0),
                6 => {
                    oracle.ftl.write_back(&mut oracle.work);
                }
                7 => {
                    let need = Pages { first, pages, head_partial: false, tail_partial: false };
                    let page = oracle.ftl.translation_page(first);
                    oracle.ftl.prefetch(page, &mut [need, need].into_iter(), &mut oracle.work);
                }
                _ => oracle.operate(Op::Write, first, pages),
            }
            oracle.verify();
        }
    }

    /// Filled to the user capacity and overwritten ten times: garbage collection never deadlocks.
    #[test]
    fn a_full_device_runs_on_for_ten_overwrites(settings in device(), seed: u64, skewed: bool) {
        let mut oracle = Oracle::new(&settings);
        let lpns = oracle.ftl.logical_pages();
        for lpn in 0..lpns {
            oracle.operate(Op::Write, lpn, 1);
        }
        oracle.verify();
        let mut state = seed | 1;
        for index in 0..10 * lpns {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut lpn = (state >> 33) as u32 % lpns;
            if skewed && index % 8 != 0 {
                lpn %= lpns.div_ceil(5);
            }
            oracle.operate(Op::Write, lpn, 1);
            if index % 64 == 0 {
                oracle.verify();
            }
        }
        oracle.verify();
    }

    /// The same through the whole stack, in check mode, with every scheduler and awareness.
    #[test]
    fn the_whole_stack_keeps_every_invariant(
        settings in device(),
        scheduler in prop::sample::select(common::schedulers(false)),
        device_scheduler in prop::sample::select(common::device_schedulers()),
        max_passed in prop::sample::select(vec![0u32, 3, 128, u32::MAX]),
        awareness in prop::sample::select(vec![
            AwarenessKind::Full, AwarenessKind::Polled, AwarenessKind::Lru, AwarenessKind::None
        ]),
        (depth, device_depth, deadline, transfer) in (1u32..40, 1u32..12, 0u64..3, 0u64..3),
        background: bool,
        steps in proptest::collection::vec((0u8..10, any::<u32>(), 1u64..3000, 0u64..2_000_000), 1..300),
    ) {
        let mut settings = settings;
        settings.host.scheduler = scheduler.into();
        settings.host.awareness = awareness;
        settings.host.queue_depth = depth;
        settings.host.deadline_ns = (deadline > 0).then(|| (deadline - 1) * 10_000_000);
        settings.device.queue_depth = device_depth;
        settings.device.sched.max_passed = max_passed;
        // Piq and vios go by static allocation.
        settings.device.scheduler = device_scheduler.into();
        if ftlab_core::device::sched::check(&settings).is_err() {
            settings.device.scheduler = "noop".into();
        }
        if settings.allocates_by_speed() {
            settings.ftl.wear_leveling = None;
        }
        settings.flash.transfer_ps = transfer * 10_000;
        settings.ftl.background_flush = background;
        settings.ftl.partial_write = if background { PartialWrite::Rmw } else { PartialWrite::Ignore };
        let user = settings.user_bytes();
        let mut time_ns = 0;
        let trace: Vec<_> = steps.iter().map(|&(op, at, size, gap)| {
            time_ns += if op % 3 == 0 { gap } else { 0 };
            let size = size.min(user);
            let op = match op { 0..4 => Op::Read, 4..8 => Op::Write, 8 => Op::Trim, _ => Op::Flush };
            Record { time_ns, op, offset: u64::from(at) % (user - size + 1), size: if op == Op::Flush { 0 } else { size }, line: 0, flags: 0 }
        }).collect();
        let count = trace.len() as u64;
        let report = run(&settings, &mut trace.into_iter(), &mut (), true).expect("every invariant holds");
        prop_assert_eq!(report.trace.requests, count);
        for busy_ns in &report.utilization.chip_busy_ns {
            prop_assert!(*busy_ns <= report.elapsed_ns);
        }
    }
}

/// A broken FTL is caught: the checks are not vacuous.
#[test]
fn a_lost_mapping_update_is_caught() {
    let settings = settings();
    let mut oracle = Oracle::new(&settings);
    for lpn in 0..100 {
        oracle.operate(Op::Write, lpn, 1);
    }
    oracle.versions.insert(50, Some(7));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| oracle.verify()));
    assert!(caught.is_err());
}

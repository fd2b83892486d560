//! Random workloads on random small devices, compared with a plain map, with every invariant of the model
//! verified after every operation.

use ftlab_conformance as common;

use crate::devices;
use crate::devices::device;
use common::{Driver, settings};
use ftlab_core::ftl::Ftl;
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::settings::PartialWrite;
use ftlab_core::host::awareness::AwarenessKind;
use ftlab_core::settings::Settings;
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

/// Makes the FTL of any settings, together with a plain map.
fn driver(settings: &Settings) -> Driver<Ftl> {
    let mut work = settings.work();
    let mut ftl = Ftl::new(settings, true, &mut work);
    if settings.allocates_by_speed() {
        ftl.choose_by_speed(settings.placement(), settings, work.cells());
    }
    Driver::new(ftl, work)
}

proptest! {
    #![proptest_config(devices::cases(192, "tests/properties.regressions"))]

    #[test]
    fn every_lpn_resolves_to_its_newest_version(
        settings in device(),
        steps in proptest::collection::vec((0u8..16, any::<u32>(), 1u32..8), 1..400),
    ) {
        let mut driver = self::driver(&settings);
        for (op, at, pages) in steps {
            driver.step(op, at, pages);
            driver.verify();
        }
    }

    /// A device is filled to its user capacity and overwritten ten times: garbage collection never deadlocks.
    #[test]
    fn a_full_device_runs_on_for_ten_overwrites(settings in device(), seed: u64, skewed: bool) {
        driver(&settings).overwrite(seed, skewed);
    }

    /// Random loads keep every invariant of the whole stack, in check mode, with every scheduler and awareness.
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
        // Piq and vios need static allocation.
        settings.device.scheduler = device_scheduler.into();
        if ftlab_core::device::check::check(&settings).is_err() {
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
            Record { time_ns, op, offset: u64::from(at) % (user - size + 1), size: if op == Op::Flush { 0 } else { size }, ..Record::FLUSH }
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
    let mut driver = self::driver(&settings);
    for lpn in 0..100 {
        driver.operate(Op::Write, lpn, 1);
    }
    driver.versions.insert(50, Some(7));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| driver.verify()));
    assert!(caught.is_err());
}

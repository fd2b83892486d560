//! Power cuts of hybrid FTLs: everything that was made durable is still there, whatever merge is cut.

use ftlab_conformance as common;
#[path = "common/hybrid_devices.rs"]
mod hybrid_devices;
#[path = "common/hybrids.rs"]
mod hybrids;
#[path = "common/losses.rs"]
mod losses;

use common::tiny;
use ftlab_core::flash::parallel::{MultiPlane, Parallel, Suspend};
use ftlab_core::ftl::recovery::Flaw;
use ftlab_core::ftl::settings::PartialWrite;
use ftlab_core::settings::{Precondition, PreconditionKind};
use ftlab_crash::CrashError;
use hybrid_devices::device;
use losses::cuts;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

#[test]
fn what_was_durable_is_there() {
    common::hybrids().into_iter().for_each(losses::nothing_durable);
}

#[test]
fn cuts_within_an_instant() {
    common::hybrids().into_iter().for_each(losses::operations_without_time);
}

/// Nothing durable is lost where operations of planes and dies overlap, suspend and overtake each other.
#[test]
fn dies_side_by_side() {
    for kind in common::hybrids() {
        let mut settings = tiny(kind);
        (settings.flash.chips_per_channel, settings.flash.planes_per_die) = (1, 2);
        settings.flash.parallel = Parallel {
            interleave: true,
            multi_plane: MultiPlane::Free,
            cache_program: true,
            cache_read: true,
            suspend: Suspend::ProgramErase,
            suspend_ns: 9_000,
            resume_ns: 7_000,
            max_suspensions: 3,
            out_of_order: true,
            max_passed: 4,
        };
        settings.device.queue_depth = 8;
        ftlab_core::ftl::check(&settings).expect("it fits");
        cuts(&settings, common::cuts(), 5, Flaw::None).unwrap_or_else(|fault| panic!("{kind}: {fault}"));
    }
}

/// Nothing durable is lost if cooperative switch merges, padding and whole-block issues are under way when power is
/// cut.
#[test]
fn every_scheduler_by_flash_blocks() {
    for (seed, scheduler) in common::schedulers(true).into_iter().enumerate() {
        for (kind, depth) in common::hybrids().into_iter().flat_map(|kind| [(kind, 1), (kind, 12)]) {
            let mut settings = tiny(kind);
            settings.host.scheduler = scheduler.into();
            settings.host.queue_depth = 16;
            settings.device.queue_depth = depth;
            let outcome = cuts(&settings, common::cuts(), seed as u64, Flaw::None);
            let summary = outcome.unwrap_or_else(|fault| panic!("{kind} {scheduler} {depth}: {fault}"));
            println!("{kind} {scheduler} {depth}: {:?}", summary.recovery);
        }
    }
}

/// Regression: if a device had been used before time 0, its data was put on the media block by block, in the order of
/// block numbers. Recovery relies on the order of programs, so it found the log blocks of FAST in the wrong order.
#[test]
fn what_was_used_before_is_there() {
    for kind in common::hybrids() {
        let mut settings = tiny(kind);
        settings.device.precondition =
            Precondition { kind: PreconditionKind::Steady, ..Precondition::default() };
        settings.device.precondition.rounds = 5;
        for seed in 0..8 {
            settings.seed = seed;
            cuts(&settings, common::cuts() / 10, seed, Flaw::None)
                .unwrap_or_else(|fault| panic!("{kind}: {fault}"));
        }
    }
}

#[test]
fn broken_recovery_is_noticed() {
    for flaw in [Flaw::SkipScan, Flaw::IgnoreOrder, Flaw::ForgetTrims, Flaw::TrustMerges] {
        for kind in common::hybrids() {
            let outcome = cuts(&tiny(kind), 300, 3, flaw);
            assert!(matches!(outcome, Err(CrashError::Fault { .. })), "{kind} with {flaw:?}: {outcome:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/hybrid_crash.regressions"))),
        ..ProptestConfig::default()
    })]

    /// Tests any geometry down to the smallest accepted number of blocks and log blocks, any scheduler of host and
    /// device, and blocks of different speed, used before or not.
    #[test]
    fn any_device(
        mut settings in device(),
        scheduler in prop::sample::select([vec!["noop"], common::schedulers(true)].concat()),
        device_scheduler in prop::sample::select(common::device_schedulers()),
        (depth, queue, merge, rmw) in (1u32..20, 1u32..30, any::<bool>(), any::<bool>()),
        (seed, used) in (0u64..1 << 32, any::<bool>()),
    ) {
        settings.flash.dies_per_chip = 1;
        settings.flash.parallel.interleave = false;
        prop_assume!(ftlab_core::ftl::check(&settings).is_ok());
        settings.host.scheduler = scheduler.into();
        settings.host.queue_depth = queue;
        settings.host.merge_limit = merge.then_some(4096);
        settings.device.scheduler = device_scheduler.into();
        settings.device.queue_depth = depth;
        if used {
            settings.device.precondition.kind = PreconditionKind::Random(900_000);
            settings.device.precondition.request_bytes = 512;
        }
        settings.ftl.partial_write = if rmw { PartialWrite::Rmw } else { PartialWrite::Ignore };
        if let Err(fault) = cuts(&settings, common::cuts() / 10, seed, Flaw::None) {
            return Err(TestCaseError::fail(fault.to_string()));
        }
    }
}

//! Tenants with queues of their own, whose flash operations FLIN orders: power cuts lose nothing durable, and a run
//! from a saved state equals the run that preconditions itself.

use ftlab_conformance as common;

use crate::devices;
use crate::devices::{device, parallel};
use common::{arbiters, buffered, hybrids, page_mapped_both_ways, tiny};
use ftlab_core::device::buffer::settings::Settings as Buffer;
use ftlab_core::flash::parallel::{MultiPlane, Parallel, Suspend};
use ftlab_core::ftl::recovery::Flaw;
use ftlab_core::ftl::{check, keeps_trims};
use ftlab_core::host::settings::Queues;
use ftlab_core::settings::{Precondition, PreconditionKind, Settings};
use ftlab_core::sim::{Identity, Prepared, run_prepared};
use ftlab_core::workload::settings::By;
use ftlab_core::workload::{Record, Source, SourceError};
use ftlab_crash::{CrashError, Cuts, Options, Requests, Summary, crash};
use proptest::prelude::*;

/// Number of tenants.
const TENANTS: u64 = 4;

/// The requests of a campaign, each of one of the tenants, whose addresses overlap. More than half are of the first.
struct OfTenants(Requests);

impl Source for OfTenants {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        let mixed = |line: u64| line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let stream = |line: u64| (mixed(line) % (2 * TENANTS - 1)).saturating_sub(TENANTS - 1) as u16;
        Ok(self.0.next()?.map(|record| Record { stream: stream(record.line), ..record }))
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        Ok(true)
    }
}

/// Lets the streams be tenants with queues of their own, behind this arbiter, and FLIN order the flash operations.
fn tenants(settings: &mut Settings, arbiter: &str) {
    (settings.workload.tenants, settings.host.queues) = (By::Stream, Queues::PerTenant);
    (settings.host.arbiter, settings.device.scheduler) = (arbiter.into(), "direct".into());
    settings.order.name = "flin".into();
    // Short enough for tenants that send much and others that send little.
    settings.order.own.flin.epoch_ns = 2_000_000;
    (settings.order.own.flin.read_bytes, settings.order.own.flin.write_bytes) = (8 << 10, 8 << 10);
    settings.device.queue_depth = 16;
    settings.ftl.power_safe = true;
    while (check(settings).is_err() || !keeps_trims(settings)) && settings.flash.blocks_per_plane < 120 {
        settings.flash.blocks_per_plane += 1;
    }
}

fn cuts(settings: &Settings, count: u64, seed: u64) -> Result<Summary, CrashError> {
    let options = Options { cuts: Cuts::Random { count, mean: 60 }, seed, flaw: Flaw::None };
    let requests = || OfTenants(Requests::new(settings, seed).with_fua(seed));
    crash(settings, &mut || Ok(Box::new(requests())), &options, &mut |_| true)
}

/// Dies and planes work side by side, and reads interrupt.
fn side_by_side(mut settings: Settings) -> Settings {
    (settings.flash.dies_per_chip, settings.flash.planes_per_die) = (2, 2);
    settings.flash.parallel = Parallel {
        interleave: true,
        multi_plane: MultiPlane::Free,
        suspend: Suspend::ProgramErase,
        ..settings.flash.parallel
    };
    settings
}

#[test]
fn what_was_durable_is_there() {
    for (seed, kind) in (0..).zip(page_mapped_both_ways()) {
        for arbiter in arbiters() {
            for (at, base) in [tiny(kind), side_by_side(tiny(kind)), buffered(kind)].into_iter().enumerate() {
                let mut settings = base;
                if at == 0 {
                    settings.ftl.placement = Some("stream".into());
                }
                tenants(&mut settings, arbiter);
                let summary = cuts(&settings, common::cuts() / 4, seed)
                    .unwrap_or_else(|fault| panic!("{kind}, {arbiter}, {at}: {fault}"));
                let least = [summary.torn_programs, summary.durable_writes, summary.durable_trims];
                assert!(least.iter().all(|&seen| seen > 0), "{kind}, {arbiter}, {at}: {summary:?}");
            }
        }
    }
}

/// Merges keep their order under FLIN: hybrid FTLs lose nothing either.
#[test]
fn what_was_durable_is_there_in_hybrid_ftls() {
    for (seed, kind) in (0..).zip(hybrids()) {
        for base in [tiny(kind), side_by_side(tiny(kind))] {
            let mut settings = base;
            tenants(&mut settings, "flin");
            settings.ftl.power_safe = false;
            assert!(check(&settings).is_ok(), "{kind}: {:?}", check(&settings));
            let summary = cuts(&settings, common::cuts(), seed);
            let summary = summary.unwrap_or_else(|fault| panic!("{kind}: {fault}"));
            assert!(summary.torn_programs > 0 && summary.durable_writes > 0, "{kind}: {summary:?}");
        }
    }
}

/// Copies of a collection once passed a program that waited for its mapping. A cut then left them in a block that was
/// not the one programmed last, and recovery, which undoes only that one, found no erased block.
#[test]
fn copies_keep_their_place_among_programs() {
    for seed in 0..3 {
        let mut settings = tiny("dftl");
        tenants(&mut settings, "rr");
        (settings.workload.tenants, settings.host.queues) = (By::None, Queues::Shared);
        let outcome = cuts(&settings, 40, seed);
        outcome.unwrap_or_else(|fault| panic!("{seed}: {fault}"));
    }
}

#[test]
fn what_was_durable_is_there_behind_a_write_buffer() {
    for (seed, kind) in (0..).zip(page_mapped_both_ways()) {
        let mut settings = side_by_side(tiny(kind));
        settings.device.buffer =
            Buffer { bytes: 24 * u64::from(settings.ftl.logical_page_bytes), ..Buffer::default() };
        tenants(&mut settings, "flin");
        let summary = cuts(&settings, common::cuts() / 2, seed);
        let summary = summary.unwrap_or_else(|fault| panic!("{kind}: {fault}"));
        assert!(summary.durable_writes > 0, "{kind}: {summary:?}");
    }
}

proptest! {
    #![proptest_config(devices::cases(24, "tests/tenants_crash.regressions"))]

    #[test]
    fn any_device(settings in device(), options in parallel(), dies in 1u32..3, apart: bool, seed in 0u64..1 << 32) {
        let mut settings = settings;
        (settings.flash.parallel, settings.flash.dies_per_chip) = (options, dies);
        settings.host.scheduler = "noop".into();
        if apart {
            settings.ftl.placement = Some("stream".into());
        }
        if settings.allocates_by_speed() {
            settings.ftl.wear_leveling = None;
        }
        tenants(&mut settings, "flin");
        prop_assume!(check(&settings).is_ok() && keeps_trims(&settings));
        let outcome = cuts(&settings, common::cuts() / 8, seed);
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }
}

/// Runs the requests of a campaign in check mode; returns the report's text.
fn run(settings: &Settings, prepared: Prepared) -> String {
    let mut requests = OfTenants(Requests::new(settings, 5));
    let mut records =
        (0..500).map(|_| requests.next().expect("no source fails").expect("requests without end"));
    let mut records = records.by_ref().collect::<Vec<_>>().into_iter();
    let report = run_prepared(settings, prepared, &mut records, &mut ()).expect("every invariant holds");
    serde_json::to_string(&report).expect("a report is text")
}

/// Which tenants have sent little, and what they wait for, is not part of a saved state: both begin anew with each run.
#[test]
fn tenants_go_on_from_a_saved_state() {
    for kind in page_mapped_both_ways() {
        let mut settings = side_by_side(tiny(kind));
        settings.ftl.placement = Some("stream".into());
        tenants(&mut settings, "flin");
        settings.device.precondition =
            Precondition { kind: PreconditionKind::Steady, rounds: 3, ..Precondition::default() };
        let own = Prepared::new(&settings, &mut (), true).expect("every invariant holds");
        let mut bytes = Vec::new();
        own.save(&Identity::default(), &mut bytes).expect("memory takes everything");
        let expected = run(&settings, own);
        for check in [true, false] {
            let loaded = Prepared::load(&settings, &Identity::default(), &mut &bytes[..], check);
            assert_eq!(expected, run(&settings, loaded.expect("a sound state")), "{kind}");
        }
        settings.order.name = "emission".into();
        let loaded = Prepared::load(&settings, &Identity::default(), &mut &bytes[..], true);
        assert_ne!(
            expected,
            run(&settings, loaded.expect("a sound state")),
            "{kind}: the order has no effect"
        );
    }
}

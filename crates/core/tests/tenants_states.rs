//! Tenants with queues of their own, whose flash operations FLIN orders: a run from a saved state equals the run that
//! preconditions itself.

use ftlab_conformance as common;

use common::{page_mapped_both_ways, tiny};
use ftlab_core::flash::parallel::{MultiPlane, Order, Parallel, Suspend};
use ftlab_core::ftl::{check, keeps_trims};
use ftlab_core::host::settings::Queues;
use ftlab_core::settings::{Precondition, PreconditionKind, Settings};
use ftlab_core::sim::{Identity, Prepared, run_prepared};
use ftlab_core::workload::settings::By;
use ftlab_core::workload::{Record, Source, SourceError};
use ftlab_crash::Requests;

/// The requests of a campaign, each of one of two tenants, whose addresses overlap. A quarter are of the second.
struct OfTenants(Requests);

impl Source for OfTenants {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        Ok(self.0.next()?.map(|record| Record { stream: u16::from(record.line % 4 == 2), ..record }))
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        Ok(true)
    }
}

/// Lets the streams be tenants with queues of their own, and FLIN order the flash operations.
fn tenants(settings: &mut Settings) {
    (settings.workload.tenants, settings.host.queues) = (By::Stream, Queues::PerTenant);
    (settings.host.arbiter, settings.device.scheduler) = ("flin".into(), "direct".into());
    settings.flash.parallel.order = Order::Flin;
    // Short enough for tenants that send much and others that send little.
    settings.flash.fairness.epoch_ns = 2_000_000;
    (settings.flash.fairness.read_bytes, settings.flash.fairness.write_bytes) = (8 << 10, 8 << 10);
    settings.device.queue_depth = 16;
    settings.ftl.power_safe = true;
    while (check(settings).is_err() || !keeps_trims(settings)) && settings.flash.blocks_per_plane < 120 {
        settings.flash.blocks_per_plane += 1;
    }
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
        tenants(&mut settings);
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
        settings.flash.parallel.order = Order::Emission;
        let loaded = Prepared::load(&settings, &Identity::default(), &mut &bytes[..], true);
        assert_ne!(
            expected,
            run(&settings, loaded.expect("a sound state")),
            "{kind}: the order has no effect"
        );
    }
}

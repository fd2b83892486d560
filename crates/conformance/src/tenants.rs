//! Runs of several tenants.

use ftlab_core::host::{Placed, Sender};
use ftlab_core::metrics::Report;
use ftlab_core::settings::{Replay, Settings};
use ftlab_core::sim::{Completion, Prepared, run_tenants};
use ftlab_core::workload::tenants::{Own, Tenant, Tenants};
use ftlab_core::workload::{Record, Source};

use crate::stack::Log;

/// Lets a device have tenants of these names, each with the same workload keys as the device had.
pub fn with_tenants(settings: &Settings, names: &[&str]) -> Settings {
    let tenant = |name: &&str| Tenant {
        name: (*name).to_owned(),
        workload: settings.workload.clone(),
        clients: false,
        own: Own::default(),
    };
    let mut settings = settings.clone();
    settings.tenants = Tenants(names.iter().map(tenant).collect());
    settings
}

/// Runs tenants in check mode, each with its records, whose addresses begin at 0 in the tenant's range; returns the
/// report, and the completions in the order of their ids.
///
/// # Panics
/// If an invariant does not hold.
pub fn shared(settings: &Settings, loads: &[Vec<Record>]) -> (Report, Vec<Completion>) {
    let ranges = settings.tenants.ranges(settings.user_bytes(), u64::from(settings.ftl.logical_page_bytes));
    let mut senders = Vec::new();
    for (number, (load, range)) in (0..).zip(loads.iter().zip(&ranges)) {
        let own = &settings.tenants.0[usize::from(number)];
        let start_ns = if own.workload.replay != Replay::Closed { own.own.start_ns } else { 0 };
        let load: Box<dyn Source + Send> = Box::new(load.clone().into_iter());
        senders.push(Sender::Source(Box::new(Placed::new(load, range.from, start_ns, number))));
    }
    let mut log = Log::default();
    let prepared = Prepared::new(settings, &mut log, true).expect("nothing fails");
    let report = run_tenants(settings, prepared, &mut senders, &mut log).expect("every invariant holds");
    log.0.sort_by_key(|completion| completion.id);
    (report, log.0)
}

//! Tenants with clients of their own: each has a file system and a page cache in its part of the device.

use crate::FileHost;
use crate::clients::Clients;
use crate::settings::Settings;
use ftlab_core::host::{Placed, Sender};
use ftlab_core::metrics::Report;
use ftlab_core::settings::Replay;
use ftlab_core::sim::{self, Observer, Prepared, RunError};
use ftlab_core::workload::Source;

/// What sends a tenant's requests.
pub enum Load {
    /// A source, whose addresses and times begin at 0.
    Source(Box<dyn Source + Send>),
    /// Clients.
    Clients(Clients),
}

/// Runs the loads of the settings' tenants, in their order, until all of them have ended.
///
/// # Errors
/// Those of [`crate::run`], and the sources' errors.
pub fn run_tenants(
    settings: &Settings,
    prepared: Prepared,
    loads: Vec<Load>,
    observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    let (block_bytes, check) = (prepared.block_bytes(settings), prepared.check);
    let ranges = settings.tenants.ranges(settings.user_bytes(), settings.ftl.logical_page_bytes.into());
    let mut senders = Vec::new();
    for (number, ((load, range), tenant)) in (0..).zip(loads.into_iter().zip(ranges).zip(&settings.tenants.0))
    {
        senders.push(match load {
            Load::Source(source) => {
                // A closed replay has no times.
                let start_ns = if tenant.workload.replay != Replay::Closed { tenant.own.start_ns } else { 0 };
                Sender::Source(Box::new(Placed::new(source, range.from, start_ns, number)))
            }
            Load::Clients(clients) => {
                let bytes = range.to - range.from;
                Sender::Above(Box::new(FileHost::new(settings, clients, bytes, block_bytes, check)))
            }
        });
    }
    sim::run_tenants(settings, prepared, &mut senders, observer)
}

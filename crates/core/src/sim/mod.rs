//! The one loop: clock, host, device.

use crate::config::Settings;
use crate::metrics::Report;
use crate::workload::{Op, Source, SourceError};

/// A finished request, as the per-request file shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Number of the request, from 1 in trace order.
    pub id: u64,
    /// Arrival at the host, ns.
    pub arrival_ns: u64,
    /// Handed to the device, ns.
    pub dispatch_ns: u64,
    /// Completed, ns.
    pub complete_ns: u64,
    /// Operation.
    pub op: Op,
    /// First byte on the simulated device (after `out_of_range`).
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Mapping-cache misses of its pages.
    pub mapping_misses: u32,
    /// Dispatched ahead of others by choice (see the scheduler).
    pub prioritized: bool,
    /// Dispatched by deadline.
    pub expired: bool,
    /// Batch, from 1; 0: none.
    pub batch: u64,
    /// Channel batch within its chip batch, from 1; 0: none.
    pub channel_batch: u64,
}

/// Receives what happens in a run.
pub trait Observer {
    /// A request completed. Completions of an instant come in dispatch order.
    fn complete(&mut self, completion: &Completion);

    /// Called every few thousand requests with their number so far; `false` stops the run.
    fn progress(&mut self, _requests: u64) -> bool {
        true
    }
}

/// Ignores everything.
impl Observer for () {
    fn complete(&mut self, _completion: &Completion) {}
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Check mode found a broken invariant: a fault of ftlab. Says which and when.
    #[error("check failed: {0}")]
    Check(String),
}

/// Runs one simulation to its end.
///
/// # Errors
/// [`RunError`] if the source fails or, with `check`, an invariant does not hold.
pub fn run(
    _settings: &Settings,
    _source: &mut dyn Source,
    _observer: &mut dyn Observer,
    _check: bool,
) -> Result<Report, RunError> {
    unimplemented!("lands with the engine")
}

//! What a simulation tells its driver.

use super::{Activity, Handling};
use crate::metrics::Preconditioning;
use crate::workload::{Op, SourceError};

/// A finished request, as the per-request file shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Number of the request, from 1 in trace order.
    pub id: u64,
    /// Arrival at the host, ns.
    pub arrival_ns: u64,
    /// Time at which the request was handed to the device, ns.
    pub dispatch_ns: u64,
    /// Completion time, ns; for a failed request, the time at which it was refused.
    pub complete_ns: u64,
    /// Whether the device was read-only and refused the request, or part of it.
    pub failed: bool,
    /// Operation.
    pub op: Op,
    /// First byte on the simulated device (after `out_of_range`).
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
    /// Number of mapping-cache misses of the request's pages.
    pub mapping_misses: u32,
    /// Whether the request was dispatched ahead of others by choice (see the scheduler).
    pub prioritized: bool,
    /// Whether the request was dispatched because its deadline had passed.
    pub expired: bool,
    /// Number of the request's batch, from 1; 0 if it has none. Batches are the device's if its scheduler makes any,
    /// else the host's.
    pub batch: u64,
    /// Channel batch within its chip batch, from 1; 0 if it has none.
    pub channel_batch: u64,
    /// Number of the request's pages that the write buffer answered.
    pub buffered: u32,
    /// Stream of the request; 0: none.
    pub stream: u16,
}

/// Receives reports of what happens in a run.
pub trait Observer {
    /// Called when a request, which may be several merged ones, has completed; requests that complete at one instant
    /// come in dispatch order.
    fn complete(&mut self, completion: &Completion);

    /// Called when a request submitted from outside has completed; `id` is the number of its submission. If several
    /// submissions merged, there is a call for each, and only the first counts `mapping_misses`.
    fn answer(&mut self, _completion: &Completion) {}

    /// Whether to call [`Observer::complete`] and [`Observer::answer`]; asked each time before time moves on.
    fn wants_completions(&self) -> bool {
        true
    }

    /// Returns the number of answers that the observer has room for; asked each time before time moves on. The
    /// simulation stops after the instant that uses up the room, which may bring more answers than that.
    fn room(&self) -> u64 {
        u64::MAX
    }

    /// Called every few thousand pages before time 0 with what has been done so far; returning `false` stops
    /// preconditioning.
    fn preconditioning(&mut self, _done: &Preconditioning) -> bool {
        true
    }

    /// Called every few thousand events, including completions, with the number of requests completed so far; returning
    /// `false` stops the run.
    fn progress(&mut self, _requests: u64) -> bool {
        true
    }

    /// Whether to report what every LUN and bus does. Asked once, before the run; the results are the same
    /// either way.
    fn wants_activity(&self) -> bool {
        false
    }

    /// Called when a LUN or a bus has worked, before the completion that this leads to. Activities of one LUN
    /// do not overlap, nor do those of one bus; with cache operations the cells and the transfers of one LUN
    /// may overlap ([`super::Tracks::overlap`]).
    fn activity(&mut self, _activity: &Activity) {}

    /// Called while activity is reported, when the link or a core has served a command, before the completion that this
    /// leads to. Services of one direction of the link, or of one core, never overlap.
    fn handled(&mut self, _handling: &Handling) {}

    /// Called while activity is reported, with the number of requests in the scheduler's pending queue from `now_ns`
    /// on.
    fn pending(&mut self, _now_ns: u64, _requests: u32) {}

    /// Called while activity is reported, if there is a write buffer, with the number of its logical pages in use from
    /// `now_ns` on.
    fn buffer(&mut self, _now_ns: u64, _pages: u32) {}
}

/// An observer that ignores everything.
impl Observer for () {
    fn complete(&mut self, _completion: &Completion) {}

    fn wants_completions(&self) -> bool {
        false
    }
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The time asked for is in the past.
    #[error("{until_ns} ns is in the past: the time is {now_ns} ns")]
    Past {
        /// Time asked for, ns.
        until_ns: u64,
        /// Time of the simulation, ns.
        now_ns: u64,
    },
    /// The time asked for is too late.
    #[error("{0} ns is more than a century after the start")]
    Late(u64),
    /// A scheduler withholds requests that nothing will ever release.
    #[error(
        "host.scheduler chooses none of the {pending} requests that are pending at {now_ns} ns, and nothing else happens any more"
    )]
    Held {
        /// Number of pending requests.
        pending: u32,
        /// Time of the simulation, ns.
        now_ns: u64,
    },
    /// Power is off, or the device cannot lose its power.
    #[error("{0}")]
    Power(String),
    /// Check mode found a broken invariant, which is a bug in ftlab. The message says which one and when.
    #[error("check failed: {0}")]
    Check(String),
}

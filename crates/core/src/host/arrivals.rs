//! The interface between the host and its feed of requests.

use crate::metrics::{Done, Report};
use crate::request::{Pool, Request};
use crate::workload::{SourceError, SourceSummary};

/// A function that returns the version of a logical page's data on the device; `None` if the page has no data.
pub type VersionOf<'a> = &'a dyn Fn(u32) -> Option<u32>;

/// A feed of requests, which wait in it, in order of arrival, until the host admits them.
pub trait Arrivals {
    /// Returns when the next request arrives, ns; [`NEVER`](crate::clock::NEVER) if none will, or only after a
    /// completion or a timer.
    fn next_ns(&self) -> u64;

    /// Returns the stream of the request that arrives next, if tenants are told apart.
    fn next_stream(&self) -> u16 {
        0
    }

    /// Notes whether a tenant's queue is full, so that its requests wait here; returns whether the requests of other
    /// tenants pass them.
    fn block(&mut self, _tenant: u32, _full: bool) -> bool {
        false
    }

    /// Whether all requests have arrived.
    fn ended(&self) -> bool;

    /// Whether the host is busy, so that the device gets no request now. A timer expires when the host is no longer
    /// busy.
    fn holds(&self, _now_ns: u64) -> bool {
        false
    }

    /// Puts the request that arrives next into the pool; it arrives at `arrival_ns`, which
    /// [`Arrivals::next_ns`] has just returned.
    ///
    /// # Errors
    /// The workload's error.
    fn take(&mut self, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError>;

    /// Appends writes of the dirty pages that a page cache above the block layer holds for a range of the device's
    /// bytes.
    fn join(&mut self, _from: u64, _to: u64, _joined: &mut Vec<Request>) {}

    /// Notes that a request just taken became part of a pending one, and completes together with it.
    fn merged(&mut self, pending: &mut Request, taken: &Request);

    /// Notes that a request has completed.
    fn completed(&mut self, now_ns: u64, request: &Request);

    /// Returns counts of what was read from the source and of what was dropped.
    fn summary(&self) -> SourceSummary {
        SourceSummary::default()
    }
}

/// A feed above the block layer, where events happen that no completion causes.
pub trait Above: Arrivals + Account {
    /// Returns when the feed's own next event happens, ns; [`NEVER`](crate::clock::NEVER) if none will.
    fn timer_ns(&self) -> u64;

    /// Runs the events that are due.
    ///
    /// # Errors
    /// The workload's error.
    fn tick(&mut self, now_ns: u64) -> Result<(), SourceError>;

    /// Whether the feed was waiting for its requests to be taken, and can go on now that they have been.
    fn goes_on(&self) -> bool;

    /// Lets no more requests come, except for those that the host has. Asked only of a tenant's clients, at the end of
    /// the tenant's time.
    fn stop(&mut self, _now_ns: u64) {}
}

/// The counts of a feed above the block layer, and the promises that it has made.
pub trait Account {
    /// Whether a measured window has begun or ended, so that [`Account::measure`] is due; asked after every tick.
    fn wants_measure(&self) -> bool {
        false
    }

    /// Records what the device has done so far.
    fn measure(&mut self, _done: Done) {}

    /// Fills in the feed's part of a report; `done` is what the device did, `merged` the number of requests that became
    /// part of a pending one.
    fn add_to(&self, _report: &mut Report, _done: &Done, _merged: u64) {}

    /// Notes, in check mode, that a request has completed.
    fn landed(&mut self, _request: &Request, _version: VersionOf) {}

    /// Verifies, in check mode, the promises made since the last call.
    ///
    /// # Errors
    /// A message that says what is lost or stale.
    fn verify(&mut self, _version: VersionOf) -> Result<(), String> {
        Ok(())
    }
}

//! What the host asks of whatever feeds it.

use crate::clock::NEVER;
use crate::request::{Pool, Request};
use crate::workload::SourceError;

/// A feed of requests. They wait in it, in the order of their arrival, until the host admits them.
pub trait Arrivals {
    /// When the next request arrives; `None` if none will, or not before a completion or a timer.
    fn next_ns(&self) -> Option<u64>;

    /// When something happens above the block layer that no completion causes; [`NEVER`] if nothing will.
    fn timer_ns(&self) -> u64 {
        NEVER
    }

    /// Runs what is due above the block layer.
    ///
    /// # Errors
    /// The workload's.
    fn tick(&mut self, _now_ns: u64) -> Result<(), SourceError> {
        Ok(())
    }

    /// Whether it has been waiting for its requests to be taken, and has more to do now that they are.
    fn goes_on(&self) -> bool {
        false
    }

    /// Whether all requests have arrived.
    fn ended(&self) -> bool;

    /// The request that arrives at `now_ns` or before, if any; it is put into the pool.
    ///
    /// # Errors
    /// The workload's.
    fn take(&mut self, now_ns: u64, pool: &mut Pool) -> Result<Option<u32>, SourceError>;

    /// A request just taken became part of one that is pending: both complete with that one.
    fn merged(&mut self, pending: &mut Request, taken: &Request);

    /// A request completed.
    fn completed(&mut self, now_ns: u64, request: &Request);

    /// Appends writes of the dirty pages that a page cache above holds between two bytes of the device.
    fn join(&mut self, _from: u64, _to: u64, _joined: &mut Vec<Request>) {}
}

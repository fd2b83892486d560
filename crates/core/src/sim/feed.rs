//! What feeds a simulation with requests.

use crate::host::{Arrivals, Replayed, Submitted, VersionOf};
use crate::metrics::{Done, Report};
use crate::request::{Pool, Request};
use crate::workload::{SourceError, SourceSummary};

/// The kinds of feed.
#[repr(u8)] // a byte of its own tells which one it is, so that asking is cheap
pub enum Feed<'a> {
    /// Requests submitted from outside.
    Submitted(Submitted),
    /// A trace or a generator.
    Replayed(Replayed<'a>),
    /// Something above the block layer that is told what happens below, for example clients with a file
    /// system.
    Above(Box<dyn Arrivals + Send + 'a>),
}

macro_rules! on {
    ($feed:expr, $it:ident => $body:expr) => {
        match $feed {
            Feed::Submitted($it) => $body,
            Feed::Replayed($it) => $body,
            Feed::Above($it) => $body,
        }
    };
}

impl Arrivals for Feed<'_> {
    #[inline]
    fn next_ns(&self) -> Option<u64> {
        on!(self, it => it.next_ns())
    }

    #[inline]
    fn timer_ns(&self) -> u64 {
        on!(self, it => it.timer_ns())
    }

    #[inline]
    fn tick(&mut self, now_ns: u64) -> Result<(), SourceError> {
        on!(self, it => it.tick(now_ns))
    }

    #[inline]
    fn goes_on(&self) -> bool {
        on!(self, it => it.goes_on())
    }

    #[inline]
    fn holds(&self, now_ns: u64) -> bool {
        on!(self, it => it.holds(now_ns))
    }

    #[inline]
    fn ended(&self) -> bool {
        on!(self, it => it.ended())
    }

    #[inline(always)] // called in one place, for every request
    fn take(&mut self, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        on!(self, it => it.take(arrival_ns, pool))
    }

    fn merged(&mut self, pending: &mut Request, taken: &Request) {
        on!(self, it => it.merged(pending, taken));
    }

    #[inline]
    fn completed(&mut self, now_ns: u64, request: &Request) {
        on!(self, it => it.completed(now_ns, request));
    }

    fn join(&mut self, from: u64, to: u64, joined: &mut Vec<Request>) {
        on!(self, it => it.join(from, to, joined));
    }

    fn summary(&self) -> SourceSummary {
        on!(self, it => it.summary())
    }

    fn wants_measure(&self) -> bool {
        on!(self, it => it.wants_measure())
    }

    fn measure(&mut self, done: Done) {
        on!(self, it => it.measure(done));
    }

    fn add_to(&self, report: &mut Report, done: &Done, merged: u64) {
        on!(self, it => it.add_to(report, done, merged));
    }

    fn landed(&mut self, request: &Request, version: VersionOf) {
        on!(self, it => it.landed(request, version));
    }

    fn verify(&mut self, version: VersionOf) -> Result<(), String> {
        on!(self, it => it.verify(version))
    }
}

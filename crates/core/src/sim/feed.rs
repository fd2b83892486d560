//! The feed that supplies a simulation with requests.

use crate::clock::NEVER;
use crate::config::parts::rare;
use crate::host::{Above, Arrivals, Dependent, Replayed, Several, Submitted};
use crate::request::{Pool, Request};
use crate::workload::{SourceError, SourceSummary};

/// The kinds of feed.
#[repr(u8)] // a separate byte holds the variant, so that testing for one is cheap
pub enum Feed<'a> {
    /// Requests submitted from outside.
    Submitted(Submitted),
    /// A trace or a generator.
    Replayed(Replayed<'a>),
    /// A recording whose requests wait for each other.
    Dependent(Box<Dependent<'a>>),
    /// A trace or a generator for each of several tenants.
    Several(Several<'a>),
    /// Something above the block layer that is told what happens below, for example clients with a file
    /// system.
    Above(Box<dyn Above + Send + 'a>),
}

macro_rules! on {
    ($feed:expr, $it:ident => $body:expr) => {
        // The most frequent one has a test of its own, which is cheaper than a jump by a table.
        if let Feed::Replayed($it) = $feed {
            $body
        } else {
            rare();
            match $feed {
                Feed::Replayed(_) => unreachable!("just tested"),
                Feed::Submitted($it) => $body,
                Feed::Dependent($it) => $body,
                Feed::Several($it) => $body,
                Feed::Above($it) => $body,
            }
        }
    };
}

impl Feed<'_> {
    /// Returns when the next event above the block layer happens, ns; [`NEVER`] if none will.
    #[inline]
    pub fn timer_ns(&self) -> u64 {
        if let Feed::Above(above) = self { above.timer_ns() } else { NEVER }
    }

    /// Whether something above the block layer can go on, now that its requests have been taken.
    #[inline]
    pub fn goes_on(&self) -> bool {
        if let Feed::Above(above) = self { above.goes_on() } else { false }
    }
}

impl Arrivals for Feed<'_> {
    #[inline]
    fn next_ns(&self) -> u64 {
        on!(self, it => it.next_ns())
    }

    #[inline]
    fn next_stream(&self) -> u16 {
        on!(self, it => it.next_stream())
    }

    fn block(&mut self, tenant: u32, full: bool) -> bool {
        on!(self, it => it.block(tenant, full))
    }

    fn ended(&self) -> bool {
        on!(self, it => it.ended())
    }

    #[inline]
    fn holds(&self, now_ns: u64) -> bool {
        if let Feed::Above(above) = self { above.holds(now_ns) } else { false }
    }

    #[inline(always)] // called in one place, for every request
    fn take(&mut self, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        on!(self, it => it.take(arrival_ns, pool))
    }

    fn join(&mut self, from: u64, to: u64, joined: &mut Vec<Request>) {
        on!(self, it => it.join(from, to, joined));
    }

    fn merged(&mut self, pending: &mut Request, taken: &Request) {
        on!(self, it => it.merged(pending, taken));
    }

    #[inline]
    fn completed(&mut self, now_ns: u64, request: &Request) {
        on!(self, it => it.completed(now_ns, request));
    }

    fn summary(&self) -> SourceSummary {
        on!(self, it => it.summary())
    }
}

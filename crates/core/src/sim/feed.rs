//! What feeds a simulation.

use crate::files::FileHost;
use crate::host::{Arrivals, Replayed, Submitted};
use crate::request::{Pool, Request};
use crate::workload::{SourceError, SourceSummary};

/// The feeds there are.
pub enum Feed<'a> {
    /// Requests pushed from outside.
    Submitted(Submitted),
    /// A trace or a generator.
    Replayed(Replayed<'a>),
    /// Clients, their file system and its page cache.
    Files(Box<FileHost>),
}

macro_rules! on {
    ($feed:expr, $it:ident => $body:expr) => {
        match $feed {
            Feed::Submitted($it) => $body,
            Feed::Replayed($it) => $body,
            Feed::Files($it) => $body,
        }
    };
}

impl Feed<'_> {
    /// The file host, if that is what feeds.
    pub fn files(&self) -> Option<&FileHost> {
        if let Feed::Files(files) = self { Some(files) } else { None }
    }

    /// What was read and dropped.
    pub fn summary(&self) -> SourceSummary {
        if let Feed::Replayed(replayed) = self { replayed.summary() } else { SourceSummary::default() }
    }
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
    fn ended(&self) -> bool {
        on!(self, it => it.ended())
    }

    #[inline]
    fn take(&mut self, now_ns: u64, pool: &mut Pool) -> Result<Option<u32>, SourceError> {
        on!(self, it => it.take(now_ns, pool))
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
}

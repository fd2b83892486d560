//! Whose requests asked for how much of the flash's work, where tenants are told apart.

use super::Probe;
use crate::flash::{Counts, Work};

pub type Keys = ();

/// Operations of the flash, and the time for which its cells and buses worked on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Pages read.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Time, ns; waiting is not included.
    pub busy_ns: u64,
}

impl Share {
    /// Returns all the work that was counted.
    pub fn of(counts: &Counts) -> Share {
        Share {
            reads: counts.reads.total(),
            programs: counts.programs.total(),
            erases: counts.erases.total(),
            busy_ns: counts.busy_ns.total(),
        }
    }

    /// Returns the work since `before`.
    pub fn since(self, before: Share) -> Share {
        Share {
            reads: self.reads - before.reads,
            programs: self.programs - before.programs,
            erases: self.erases - before.erases,
            busy_ns: self.busy_ns - before.busy_ns,
        }
    }

    /// Adds work.
    pub fn add(&mut self, more: Share) {
        self.reads += more.reads;
        self.programs += more.programs;
        self.erases += more.erases;
        self.busy_ns += more.busy_ns;
    }
}

/// The work that each stream's requests asked for, including the collections and mapping accesses that they had to wait
/// for, and the destaging of the pages that they wrote.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    by_stream: Vec<Share>,
    /// All the work up to the last request that was charged or passed.
    seen: Share,
}

impl Ledger {
    /// Makes the ledger of a device that has done this work.
    pub(in crate::device) fn new(counts: &Counts) -> Ledger {
        Ledger { by_stream: Vec::new(), seen: Share::of(counts) }
    }

    /// Whether no work has been done since the last call.
    pub(in crate::device) fn is_current(&self, counts: &Counts) -> bool {
        self.seen == Share::of(counts)
    }

    /// Returns a stream's work.
    pub fn of(&self, stream: u16) -> Share {
        self.by_stream.get(usize::from(stream)).copied().unwrap_or_default()
    }
}

impl Probe for Ledger {
    const ISSUES: bool = false;

    /// Charges the work since the last call to a stream, or to nobody.
    fn works(&mut self, stream: Option<u16>, work: &Work, _now_ns: u64) {
        let since = std::mem::replace(&mut self.seen, Share::of(work.counts()));
        let Some(at) = stream.map(usize::from) else { return };
        if at >= self.by_stream.len() {
            self.by_stream.resize(at + 1, Share::default());
        }
        self.by_stream[at].add(self.seen.since(since));
    }
}

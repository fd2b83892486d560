//! Merges of hybrid FTLs: how they proceed, and how many there were of each kind.

use super::store::{Block, Role, Store};
use crate::flash::{Cause, Work};
use crate::util::NONE;

/// How log and data blocks become one data block (Shim et al., TC 2014, sections 2.2 and 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MergeKind {
    /// All valid pages are copied into an erased block.
    Full = 0,
    /// A log block written in order from offset 0 gets the pages that it still lacks.
    Partial = 1,
    /// A log block written in order to its end becomes the data block as it is.
    Switch = 2,
    /// A switch merge of a log block that holds pages the host wrote as padding.
    PaddedSwitch = 3,
    /// The host's block issue goes into an erased block, which then gets the missing pages.
    Cooperative = 4,
}

/// Counts of the merges of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCount {
    /// Number of merges.
    pub count: u64,
    /// Number of pages that the merges copied; for padded switch merges, of padding pages.
    pub pages_copied: u64,
    /// Time of the merges' flash operations, including erasures, ns; for padded switch merges, also of reading and
    /// programming the padding.
    pub busy_ns: u64,
}

/// Counts of the merges, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeStats([MergeCount; 5]);

impl MergeStats {
    /// Returns the counts of the merges of one kind.
    pub fn of(&self, kind: MergeKind) -> MergeCount {
        self.0[kind as usize]
    }

    /// Returns the counts of the merges since `base` was taken.
    pub fn since(&self, base: &MergeStats) -> MergeStats {
        let mut since = *self;
        for (count, base) in since.0.iter_mut().zip(base.0) {
            count.count -= base.count;
            count.pages_copied -= base.pages_copied;
            count.busy_ns -= base.busy_ns;
        }
        since
    }

    /// Returns the counts of one kind of merges, so that they can be changed.
    pub(crate) fn of_mut(&mut self, kind: MergeKind) -> &mut MergeCount {
        &mut self.0[kind as usize]
    }
}

impl Store {
    /// Does a full merge, except that the log block is left to the caller: copies a logical block's valid pages
    /// into an erased block.
    pub(crate) fn merge_full(&mut self, logical: u32, work: &mut Work) {
        let since_ns = merge_ns(work);
        let block = self.take(self.lun(logical), Role::Data, logical);
        let copies = self.fill(block, self.shape.pages_per_block, work);
        if copies > 0 {
            self.adopt(block, work);
        } else {
            // The log block held nothing of the logical block but its trims.
            self.give_back(block);
            let old = std::mem::replace(&mut self.data[logical as usize], NONE);
            if old != NONE {
                self.erase(old, work);
            }
        }
        self.record(MergeKind::Full, copies, since_ns, work);
    }

    /// Does a switch or partial merge: a log block that was written in order gets the pages it lacks and
    /// becomes the data block.
    pub(crate) fn merge_in_order(&mut self, log: u32, work: &mut Work) {
        let since_ns = merge_ns(work);
        let Block { next, padded, .. } = self.blocks[log as usize];
        let kind = match next == self.shape.pages_per_block {
            false => MergeKind::Partial,
            true if padded => MergeKind::PaddedSwitch,
            true => MergeKind::Switch,
        };
        let copies = self.fill(log, self.shape.pages_per_block, work);
        self.adopt(log, work);
        self.record(kind, copies, since_ns, work);
    }

    /// Counts a merge that copied this many pages.
    fn record(&mut self, kind: MergeKind, copies: u32, since_ns: u64, work: &Work) {
        self.merges.of_mut(kind).count += 1;
        self.charge(kind, copies, since_ns, work);
    }

    /// Charges copies, and the merging time beyond `since_ns`, to the merges of one kind.
    pub(crate) fn charge(&mut self, kind: MergeKind, copies: u32, since_ns: u64, work: &Work) {
        let count = self.merges.of_mut(kind);
        count.pages_copied += u64::from(copies);
        count.busy_ns += merge_ns(work) - since_ns;
    }

    /// Erases a log block without valid pages; the time is charged to the merges of this kind.
    pub(crate) fn drop_log(&mut self, log: u32, kind: MergeKind, work: &mut Work) {
        let since_ns = merge_ns(work);
        self.erase(log, work);
        self.charge(kind, 0, since_ns, work);
    }
}

/// Returns the time that merges have taken so far, ns.
#[inline]
pub(crate) fn merge_ns(work: &Work) -> u64 {
    work.counts().busy_ns[Cause::Merge]
}

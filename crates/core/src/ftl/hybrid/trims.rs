//! Trims that power cuts do not undo (`ftl.power_safe`).
//!
//! A trim leaves the trimmed data on flash. So, for each logical block that it concerns, the trim also writes
//! one page (with the cause `pad`) into the log block that takes this logical block's writes. The page has a bit
//! for each offset that has no data. The newest such page of a logical block counts; whatever was written before it to
//! the offsets that it names is void. The page counts as valid, so that its logical block is merged when its log block
//! is reclaimed. After that nothing is left of what it voids, and it is no longer needed:
//!
//! - BAST: the page lies in the log block of its logical block, and this log block is then not in order. A full
//!   merge leaves neither the log block nor the old data block.
//! - FAST: the page lies in an RW log block. When this block is reclaimed, it is the one that was filled first,
//!   so older versions are in the same block, in the data block, in an SW log block or in CSM_Log: the merge
//!   leaves none of these. (It is a full merge if the SW log block or CSM_Log may hold what was trimmed.)

use super::store::Store;
use crate::flash::{Cause, Work};
use crate::util::NONE;

impl Store {
    /// Returns the owner of the pages that hold a logical block's trims.
    fn trims(&self, logical: u32) -> u32 {
        self.shape.lpns + logical
    }

    /// Returns the page that holds a logical block's trims, or [`NONE`].
    pub(crate) fn trims_page(&self, logical: u32) -> u32 {
        match self.shape.power_safe {
            true => self.slots.of(self.trims(logical)),
            false => NONE,
        }
    }

    /// Whether trims of a logical block are kept on flash.
    #[inline]
    pub(crate) fn has_trims(&self, logical: u32) -> bool {
        self.trims_page(logical) != NONE
    }

    /// Returns which offsets of a logical block have no data, as a bit set.
    pub(super) fn trimmed(&self, logical: u32) -> Vec<u32> {
        let pages = self.shape.pages_per_block;
        let first = logical * pages;
        let mut bits = vec![0; pages.div_ceil(32) as usize];
        for offset in (0..pages.min(self.shape.lpns - first)).filter(|o| self.page(first + o) == NONE) {
            bits[(offset / 32) as usize] |= 1 << (offset % 32);
        }
        bits
    }

    /// Writes a logical block's trims into the next page of a log block.
    pub(crate) fn append_trims(&mut self, log: u32, logical: u32, work: &mut Work) {
        let owner = self.trims(logical);
        self.blocks[log as usize].in_order = false;
        let (next, padded) = (self.block(log).next, self.block(log).padded);
        self.write(log, next, owner, Cause::Pad, work);
        self.blocks[log as usize].padded = padded;
        let kind = self.block(log).kind();
        if let Some(tape) = self.slots.tape() {
            tape.hold(kind, owner, self.slots.seq(owner), self.trimmed(logical).into());
        }
    }

    /// Forgets a logical block's trims; called when nothing is left of what they void.
    pub(crate) fn forget_trims(&mut self, logical: u32) {
        let page = self.trims_page(logical);
        if page != NONE {
            let owner = self.trims(logical);
            self.slots.forget(owner);
            self.invalidate(page);
        }
    }
}

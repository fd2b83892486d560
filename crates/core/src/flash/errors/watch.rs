//! Which blocks must be rewritten before they can no longer be read (`ftl.refresh`): those whose next read would need a
//! certain step of a read retry, or a higher one.
//!
//! Reads bring a block there at a moment that is known when it comes; lying does so at a moment that follows from the
//! block's rate. So nothing is scanned: every block that has data is due once, at the earliest moment at which it may
//! have to be rewritten, and is looked at then.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::util::Bits;

/// The blocks to be rewritten, and those that will be.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    /// Retry step from which on a block is rewritten.
    pub step: u32,
    /// The moment at which each block is looked at, ns; each block has at most one.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// The blocks in `due`.
    listed: Bits,
    /// Blocks to be rewritten, by LUN, and the blocks in these lines.
    lines: Vec<VecDeque<u32>>,
    waiting: Bits,
    blocks_per_lun: u32,
}

impl Watch {
    /// Makes a watch over no block.
    pub fn new(step: u32, luns: u32, blocks_per_lun: u32) -> Watch {
        let blocks = (luns * blocks_per_lun) as usize;
        Watch {
            step,
            due: BinaryHeap::with_capacity(blocks),
            listed: Bits::new(blocks),
            lines: (0..luns).map(|_| VecDeque::with_capacity(blocks_per_lun as usize)).collect(),
            waiting: Bits::new(blocks),
            blocks_per_lun,
        }
    }

    /// Makes a watch over no block, for the same flash.
    pub fn anew(&self) -> Watch {
        Watch::new(self.step, self.lines.len() as u32, self.blocks_per_lun)
    }

    /// Whether a block will be looked at.
    pub fn lists(&self, block: u32) -> bool {
        self.listed.get(block)
    }

    /// Makes a block be looked at then.
    pub fn list(&mut self, block: u32, at_ns: u64) {
        self.listed.set(block);
        self.due.push(Reverse((at_ns, block)));
    }

    /// Takes a block that is due.
    pub fn take_due(&mut self, now_ns: u64) -> Option<u32> {
        let &Reverse((_, block)) = self.due.peek().filter(|Reverse((at_ns, _))| *at_ns <= now_ns)?;
        self.due.pop();
        self.listed.clear(block);
        Some(block)
    }

    /// Returns when the next block is due, ns; `None`: none will be.
    pub fn next_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Appends a block to those that are to be rewritten.
    pub fn want(&mut self, block: u32) {
        if !self.waiting.get(block) {
            self.waiting.set(block);
            self.lines[(block / self.blocks_per_lun) as usize].push_back(block);
        }
    }

    /// Takes the first block of a LUN that is to be rewritten.
    pub fn take(&mut self, lun: u32) -> Option<u32> {
        let block = self.lines[lun as usize].pop_front()?;
        self.waiting.clear(block);
        Some(block)
    }
}

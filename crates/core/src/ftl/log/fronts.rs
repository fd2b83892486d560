//! The fronts of a log: by LUN and key, the open blocks that wait while another of their LUN is the frontier.
//!
//! A front is an open block of a class of data or, under vios, of blocks (`speed.rs`). The one that is written is the
//! frontier of its LUN; what wears evenly sets one block aside (front 0) until the frontier is full.

use crate::util::NONE;

/// The open blocks that wait.
#[derive(Clone, Debug)]
pub(super) struct Fronts {
    /// Next slot of each block, by LUN and front; [`NONE`]: there is no block.
    next: Vec<u32>,
    /// Fronts of each LUN that have a block, as a bit set.
    waiting: Vec<u64>,
    per_lun: u32,
}

impl Fronts {
    /// Makes it without waiting blocks; each LUN may have `per_lun` fronts.
    pub(crate) fn new(luns: u32, per_lun: u32) -> Fronts {
        Fronts { next: vec![NONE; (luns * per_lun) as usize], waiting: vec![0; luns as usize], per_lun }
    }

    /// Fronts of a LUN that have a block that waits, as a bit set.
    #[inline]
    pub(crate) fn waiting(&self, lun: u32) -> u64 {
        self.waiting[lun as usize]
    }

    /// Next slot of a front's block, or [`NONE`].
    pub(crate) fn next(&self, lun: u32, front: u32) -> u32 {
        self.next[(lun * self.per_lun + front) as usize]
    }

    /// Notes that the block with this next slot waits; its front has no other.
    pub(crate) fn put(&mut self, lun: u32, front: u32, slot: u32) {
        let next = &mut self.next[(lun * self.per_lun + front) as usize];
        debug_assert_eq!(*next, NONE, "a front has one open block");
        *next = slot;
        self.waiting[lun as usize] |= 1 << front;
    }

    /// Takes the block of a front; returns its next slot, [`NONE`] without a block.
    pub(crate) fn take(&mut self, lun: u32, front: u32) -> u32 {
        self.waiting[lun as usize] &= !(1 << front);
        std::mem::replace(&mut self.next[(lun * self.per_lun + front) as usize], NONE)
    }

    /// Next slot of a block that waits, which has these slots.
    pub(crate) fn next_of(&self, lun: u32, first: u32, end: u32) -> Option<u32> {
        let from = (lun * self.per_lun) as usize;
        let slots = &self.next[from..from + self.per_lun as usize];
        slots.iter().copied().find(|slot| (first..end).contains(slot))
    }
}

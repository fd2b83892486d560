//! The fronts of a log: by chip and key, the open blocks that wait while another of their chip is the frontier.
//!
//! A front is an open block of a class of data or, under vios, of blocks (`speed.rs`). The one that is written is the
//! frontier of its chip; what wears evenly sets one block aside (front 0) until the frontier is full.

use crate::util::NONE;

/// The open blocks that wait.
#[derive(Clone, Debug)]
pub(super) struct Fronts {
    /// Next slot of each, by chip and front; [`NONE`]: there is no block.
    next: Vec<u32>,
    /// Fronts of each chip that have a block, as a bit set.
    waiting: Vec<u64>,
    per_chip: u32,
}

impl Fronts {
    /// No block waits; each chip may have so many fronts.
    pub(crate) fn new(chips: u32, per_chip: u32) -> Fronts {
        Fronts { next: vec![NONE; (chips * per_chip) as usize], waiting: vec![0; chips as usize], per_chip }
    }

    /// Fronts of a chip that have a block that waits, as a bit set.
    #[inline]
    pub(crate) fn waiting(&self, chip: u32) -> u64 {
        self.waiting[chip as usize]
    }

    /// Next slot of a front's block, or [`NONE`].
    pub(crate) fn next(&self, chip: u32, front: u32) -> u32 {
        self.next[(chip * self.per_chip + front) as usize]
    }

    /// The block with this next slot waits; its front has no other.
    pub(crate) fn put(&mut self, chip: u32, front: u32, slot: u32) {
        let next = &mut self.next[(chip * self.per_chip + front) as usize];
        debug_assert_eq!(*next, NONE, "a front has one open block");
        *next = slot;
        self.waiting[chip as usize] |= 1 << front;
    }

    /// Takes the block of a front; returns its next slot, [`NONE`] without a block.
    pub(crate) fn take(&mut self, chip: u32, front: u32) -> u32 {
        self.waiting[chip as usize] &= !(1 << front);
        std::mem::replace(&mut self.next[(chip * self.per_chip + front) as usize], NONE)
    }

    /// Next slot of a block that waits, which has these slots.
    pub(crate) fn next_of(&self, chip: u32, first: u32, end: u32) -> Option<u32> {
        let from = (chip * self.per_chip) as usize;
        let slots = &self.next[from..from + self.per_chip as usize];
        slots.iter().copied().find(|slot| (first..end).contains(slot))
    }
}

//! The fronts of a log: by LUN and front, the open blocks that wait while another open block of their LUN is
//! the frontier.
//!
//! A front is a class of data, or a speed of blocks, with an open block of its own (`placed.rs`). The open
//! block that is being written is the frontier of its LUN. Wear levelling sets one block aside, under a number
//! after those of all fronts, until some frontier is full.

use crate::util::NONE;

/// The open blocks that wait, by LUN and front.
#[derive(Clone, Debug)]
pub(super) struct Fronts {
    /// Next slot of each waiting block, by LUN and front; [`NONE`]: no block waits.
    next: Vec<u32>,
    /// Fronts of each LUN that have a waiting block, as a bit set.
    waiting: Vec<u64>,
    per_lun: u32,
    /// The fronts whose blocks any data may fill, as a bit set.
    anyones: u64,
}

impl Fronts {
    /// Makes `fronts` fronts for each LUN, without waiting blocks. If `any` is true, any data may fill a front's block;
    /// otherwise only the data of that front may fill it, and one more block may be set aside.
    pub(crate) fn new(luns: u32, fronts: u32, any: bool) -> Fronts {
        let per_lun = fronts + u32::from(!any);
        let anyones = if any { u64::MAX } else { 1 << fronts };
        Fronts {
            next: vec![NONE; (luns * per_lun) as usize],
            waiting: vec![0; luns as usize],
            per_lun,
            anyones,
        }
    }

    /// Returns the number of fronts of a LUN, including the one for the block that is set aside.
    pub(crate) fn of_lun(&self) -> u32 {
        self.per_lun
    }

    /// Returns the next slots of all fronts' blocks, by LUN and front; [`NONE`] for a front without a block.
    pub(crate) fn all(&self) -> &[u32] {
        &self.next
    }

    /// Returns the front of the block that is set aside.
    pub(crate) fn aside(&self) -> u32 {
        self.per_lun - 1
    }

    /// Returns the fronts of a LUN that have a waiting block, as a bit set.
    #[inline]
    pub(crate) fn waiting(&self, lun: u32) -> u64 {
        self.waiting[lun as usize]
    }

    /// Whether a front has a block that waits.
    #[inline]
    pub(crate) fn waits(&self, lun: u32, front: u32) -> bool {
        self.waiting[lun as usize] >> front & 1 != 0
    }

    /// Returns the first front of a LUN that has a waiting block which any data may fill.
    #[inline]
    pub(crate) fn anyones(&self, lun: u32) -> Option<u32> {
        let fronts = self.waiting[lun as usize] & self.anyones;
        (fronts != 0).then(|| fronts.trailing_zeros())
    }

    /// Returns the next slot of a front's block, or [`NONE`].
    pub(crate) fn next(&self, lun: u32, front: u32) -> u32 {
        self.next[(lun * self.per_lun + front) as usize]
    }

    /// Notes that the open block with this next slot waits; its front must have no other waiting block.
    pub(crate) fn put(&mut self, lun: u32, front: u32, slot: u32) {
        let next = &mut self.next[(lun * self.per_lun + front) as usize];
        debug_assert_eq!(*next, NONE, "a front has one open block");
        *next = slot;
        self.waiting[lun as usize] |= 1 << front;
    }

    /// Takes the block of a front; returns the block's next slot, or [`NONE`] if there is no block.
    pub(crate) fn take(&mut self, lun: u32, front: u32) -> u32 {
        self.waiting[lun as usize] &= !(1 << front);
        std::mem::replace(&mut self.next[(lun * self.per_lun + front) as usize], NONE)
    }

    /// Returns the front and the next slot of the block with the slots `first..end`, if that block waits.
    pub(crate) fn find(&self, lun: u32, first: u32, end: u32) -> Option<(u32, u32)> {
        let mut fronts = (0..self.per_lun).map(|front| (front, self.next(lun, front)));
        fronts.find(|(_, slot)| (first..end).contains(slot))
    }
}

//! The heads of a log: for each LUN and front, the open block into which pages go.
//!
//! Front 0 comes first for all LUNs, then front 1, and so on: so that the only front of a log has the number of its
//! LUN. After the fronts of the placement come that of the SLC cache, and a head for the block that wear levelling sets
//! aside. If fronts are speeds of blocks, head 0 is the block that is being filled, and the others are blocks that
//! wait, one for each speed.

use std::ops::{Index, IndexMut};

use crate::util::NONE;

/// A head of a LUN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) lun: u32,
    pub(super) head: u32,
}

impl At {
    /// Returns the first head of a LUN, which is the only one unless there is a placement.
    pub(crate) fn first(lun: u32) -> At {
        At { lun, head: 0 }
    }
}

/// The rest of an open block: its next slot, and one past its last; the two are equal if no block is open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    pub(super) next: u32,
    pub(super) end: u32,
}

impl Rest {
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.next == self.end
    }

    /// Returns how many slots are left.
    pub(crate) fn left(&self) -> u32 {
        self.end - self.next
    }

    /// Returns the next slot, or [`NONE`] if no block is open.
    pub(crate) fn slot(&self) -> u32 {
        if self.is_full() { NONE } else { self.next }
    }
}

/// What a head leaves empty: of every `line` slots of a block it fills the first `page`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) head: u32,
    pub(super) line: u32,
    pub(super) page: u32,
    /// Whether the slots left empty are programmed with the page before them.
    pub(super) whole: bool,
}

/// The open blocks.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    rests: Vec<Rest>,
    luns: u32,
    /// The first of the heads that any data may fill; they are the last of each LUN.
    anyones: u32,
    pub(super) gap: Option<Gap>,
}

impl Heads {
    /// Makes the heads of a log of one front, without open blocks.
    pub(crate) fn new(luns: u32) -> Heads {
        Heads { rests: vec![Rest::default(); 2 * luns as usize], luns, anyones: 1, gap: None }
    }

    /// Makes heads for `fronts` fronts and one head more; the first head of each LUN stays as it is. Any data may fill
    /// the last head or, if `any` is true, all heads but the first.
    pub(crate) fn spread(&mut self, fronts: u32, any: bool) {
        self.rests.truncate(self.luns as usize);
        self.rests.resize(((fronts + 1) * self.luns) as usize, Rest::default());
        self.anyones = if any { 1 } else { fronts };
    }

    /// Returns the number of heads of a LUN.
    pub(crate) fn of_lun(&self) -> u32 {
        self.rests.len() as u32 / self.luns
    }

    /// Returns the head of the block that is set aside.
    pub(crate) fn aside(&self, lun: u32) -> At {
        At { lun, head: self.of_lun() - 1 }
    }

    /// Returns all heads of a LUN.
    pub(crate) fn all(&self, lun: u32) -> impl Iterator<Item = At> + use<> {
        (0..self.of_lun()).map(move |head| At { lun, head })
    }

    /// Returns the heads of a LUN that have a block.
    pub(crate) fn open(&self, lun: u32) -> impl Iterator<Item = At> + '_ {
        self.all(lun).filter(|&at| !self[at].is_full())
    }

    /// Returns the first head of a LUN that has a block which any data may fill.
    pub(crate) fn anyones(&self, lun: u32) -> Option<At> {
        (self.anyones..self.of_lun()).map(|head| At { lun, head }).find(|&at| !self[at].is_full())
    }

    /// Returns the head of the open block whose slots end before `end`.
    pub(crate) fn find(&self, lun: u32, end: u32) -> Option<At> {
        self.open(lun).find(|&at| self[at].end == end)
    }

    /// Takes the block of a head away; returns what is left of it.
    pub(crate) fn take(&mut self, at: At) -> Rest {
        let rest = self[at];
        self[at].next = rest.end;
        rest
    }

    /// Whether a head leaves slots empty: neither copies nor trim pages go there.
    pub(crate) fn has_gap(&self, head: u32) -> bool {
        self.gap.is_some_and(|gap| gap.head == head)
    }
}

impl Index<At> for Heads {
    type Output = Rest;

    #[inline]
    fn index(&self, at: At) -> &Rest {
        &self.rests[(at.head * self.luns + at.lun) as usize]
    }
}

impl IndexMut<At> for Heads {
    #[inline]
    fn index_mut(&mut self, at: At) -> &mut Rest {
        &mut self.rests[(at.head * self.luns + at.lun) as usize]
    }
}

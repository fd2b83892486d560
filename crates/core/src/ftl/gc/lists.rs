//! Lists of blocks, in the order of their age or by their number of valid slots.

use super::Space;
use crate::util::{Chain, NONE, Neighbours};

/// The links of several lists that have no block in common.
pub(super) type Links = Vec<Neighbours>;

/// Makes the links of blocks that are in no list.
pub(super) fn links(space: &Space) -> Links {
    vec![Neighbours::NONE; space.blocks() as usize]
}

/// Visits the blocks of a list, the oldest first.
pub(super) fn each(links: &[Neighbours], list: Chain, visit: &mut dyn FnMut(u32)) {
    let mut block = list.head;
    while block != NONE {
        visit(block);
        block = links[block as usize].behind;
    }
}

/// Lists of blocks by LUN and number of valid slots, each in the order in which its blocks came to that number.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    lists: Vec<Chain>,
    pub links: Links,
    /// For each LUN, a lower bound of the number of valid slots of its blocks.
    least: Vec<u32>,
    slots_per_block: u32,
}

impl Buckets {
    pub(crate) fn new(space: &Space) -> Buckets {
        Buckets {
            lists: vec![Chain::default(); (space.luns * (space.slots_per_block + 1)) as usize],
            links: links(space),
            least: vec![space.slots_per_block; space.luns as usize],
            slots_per_block: space.slots_per_block,
        }
    }

    #[inline]
    fn at(&self, lun: u32, valid: u32) -> usize {
        (lun * (self.slots_per_block + 1) + valid) as usize
    }

    #[inline]
    pub(crate) fn push(&mut self, lun: u32, block: u32, valid: u32) {
        let at = self.at(lun, valid);
        self.lists[at].push_tail(block, &mut self.links);
        let least = &mut self.least[lun as usize];
        *least = (*least).min(valid);
    }

    #[inline]
    pub(crate) fn unlink(&mut self, lun: u32, block: u32, valid: u32) {
        let at = self.at(lun, valid);
        self.lists[at].unlink(block, &mut self.links);
    }

    /// Moves a block that has just lost a valid slot, and has `valid` of them left, to the list of its new
    /// number.
    #[inline]
    pub(crate) fn lower(&mut self, lun: u32, block: u32, valid: u32) {
        self.unlink(lun, block, valid + 1);
        self.push(lun, block, valid);
    }

    /// Returns the block of a LUN that was the first to come to this number of valid slots, or [`NONE`].
    #[inline]
    pub(crate) fn head(&self, lun: u32, valid: u32) -> u32 {
        self.lists[self.at(lun, valid)].head
    }

    /// Returns the block with the fewest valid slots on a LUN; of equals, the one that was the first to come to that
    /// number.
    #[inline]
    pub(crate) fn first(&mut self, lun: u32) -> u32 {
        let least = self.least(lun);
        self.head(lun, least)
    }

    /// Returns the least number of valid slots of a LUN's blocks.
    #[inline]
    pub(crate) fn least(&mut self, lun: u32) -> u32 {
        let mut valid = self.least[lun as usize];
        while self.head(lun, valid) == NONE {
            valid += 1;
            assert!(valid <= self.slots_per_block, "LUN {lun} has no closed block");
        }
        self.least[lun as usize] = valid;
        valid
    }

    pub(crate) fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        for valid in 0..=self.slots_per_block {
            each(&self.links, self.lists[self.at(lun, valid)], &mut |block| visit(block, Some(valid)));
        }
    }
}

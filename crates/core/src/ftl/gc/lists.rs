//! Lists of blocks: in order of age, and by the number of valid slots.

use super::Space;
use crate::util::NONE;

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

/// Ends of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub head: u32,
    tail: u32,
}

impl Ends {
    pub const EMPTY: Ends = Ends { head: NONE, tail: NONE };
}

/// Links of lists that have no block in common.
#[derive(Clone, Debug)]
pub(super) struct Links(Vec<Link>);

impl Links {
    pub(crate) fn new(blocks: u32) -> Links {
        Links(vec![Link { prev: NONE, next: NONE }; blocks as usize])
    }

    #[inline]
    pub(crate) fn push_tail(&mut self, ends: &mut Ends, block: u32) {
        let tail = ends.tail;
        ends.tail = block;
        if tail == NONE {
            ends.head = block;
        } else {
            self.0[tail as usize].next = block;
        }
        self.0[block as usize] = Link { prev: tail, next: NONE };
    }

    #[inline]
    pub(crate) fn unlink(&mut self, ends: &mut Ends, block: u32) {
        let Link { prev, next } = self.0[block as usize];
        match prev {
            NONE => ends.head = next,
            prev => self.0[prev as usize].next = next,
        }
        match next {
            NONE => ends.tail = prev,
            next => self.0[next as usize].prev = prev,
        }
    }

    pub(crate) fn each(&self, ends: Ends, visit: &mut dyn FnMut(u32)) {
        let mut block = ends.head;
        while block != NONE {
            visit(block);
            block = self.0[block as usize].next;
        }
    }
}

/// Blocks by LUN and number of valid slots, in the order in which they reached that number.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    ends: Vec<Ends>,
    /// A lower bound for each LUN: no block of it has fewer valid slots.
    least: Vec<u32>,
    slots_per_block: u32,
}

impl Buckets {
    pub(crate) fn new(space: &Space) -> Buckets {
        Buckets {
            ends: vec![Ends::EMPTY; (space.luns * (space.slots_per_block + 1)) as usize],
            least: vec![space.slots_per_block; space.luns as usize],
            slots_per_block: space.slots_per_block,
        }
    }

    #[inline]
    fn at(&self, lun: u32, valid: u32) -> usize {
        (lun * (self.slots_per_block + 1) + valid) as usize
    }

    #[inline]
    pub(crate) fn push(&mut self, links: &mut Links, lun: u32, block: u32, valid: u32) {
        let at = self.at(lun, valid);
        links.push_tail(&mut self.ends[at], block);
        let least = &mut self.least[lun as usize];
        *least = (*least).min(valid);
    }

    #[inline]
    pub(crate) fn unlink(&mut self, links: &mut Links, lun: u32, block: u32, valid: u32) {
        let at = self.at(lun, valid);
        links.unlink(&mut self.ends[at], block);
    }

    /// Returns the block that first reached a number of valid slots, or [`NONE`].
    #[inline]
    pub(crate) fn head(&self, lun: u32, valid: u32) -> u32 {
        self.ends[self.at(lun, valid)].head
    }

    /// Returns the fewest valid slots that a block of the LUN has.
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

    pub(crate) fn each(&self, links: &Links, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        for valid in 0..=self.slots_per_block {
            links.each(self.ends[self.at(lun, valid)], &mut |block| visit(block, Some(valid)));
        }
    }
}

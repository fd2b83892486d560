//! What each block is used for.

use std::ops::{Index, IndexMut};

use crate::util::{Chain, NONE, Neighbours};

/// The role of a block in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The block does not belong to this log.
    Absent,
    Reserve,
    Open,
    Closed,
    /// The block is closed, and its collection was begun in the background.
    Begun,
    /// The block is full, in SLC mode, and waits until it is folded.
    Cached,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) valid: u32,
    pub(super) state: State,
    /// Whether the block counts as closed and empty although it was never written ([`super::Stock::close_unwritten`]).
    pub(super) unwritten: bool,
    /// Whether the block is used with one bit a cell.
    pub(super) slc: bool,
}

impl Block {
    pub(super) fn new(state: State) -> Block {
        Block { valid: 0, state, unwritten: false, slc: false }
    }
}

/// All blocks of the flash, whether they belong to the log or not.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    of: Vec<Block>,
    /// The links of the lists in which a block may be.
    links: Vec<Neighbours>,
}

impl Blocks {
    pub(crate) fn new(count: u32) -> Blocks {
        let of = vec![Block::new(State::Absent); count as usize];
        Blocks { of, links: vec![Neighbours::NONE; count as usize] }
    }

    /// Returns the number of blocks.
    pub(crate) fn count(&self) -> u32 {
        self.of.len() as u32
    }

    /// Returns the blocks as an array.
    pub(super) fn all(&self) -> &[Block] {
        &self.of
    }

    /// Returns the blocks of a list.
    pub(super) fn list(&self, list: Chain) -> impl Iterator<Item = u32> + '_ {
        let some = |block: u32| Some(block).filter(|&block| block != NONE);
        std::iter::successors(some(list.head), move |&block| some(self.links[block as usize].behind))
    }

    /// Puts a block into a list, at the head or at the tail.
    #[inline]
    pub(super) fn link(&mut self, list: &mut Chain, block: u32, at_head: bool) {
        match at_head {
            true => list.push_head(block, &mut self.links),
            false => list.push_tail(block, &mut self.links),
        }
    }

    /// Takes a block out of a list.
    #[inline]
    pub(super) fn unlink(&mut self, list: &mut Chain, block: u32) {
        list.unlink(block, &mut self.links);
    }
}

impl Index<u32> for Blocks {
    type Output = Block;

    #[inline]
    fn index(&self, block: u32) -> &Block {
        &self.of[block as usize]
    }
}

impl IndexMut<u32> for Blocks {
    #[inline]
    fn index_mut(&mut self, block: u32) -> &mut Block {
        &mut self.of[block as usize]
    }
}

//! The closed blocks of each LUN as an array, so that drawing a block takes constant time.

use super::{Need, Space};
use crate::util::below;
use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Closed blocks by LUN, in no particular order.
#[derive(Clone, Debug)]
pub(super) struct Bag {
    space: Space,
    blocks: Vec<u32>,
    /// The index in `blocks` of each closed block.
    place: Vec<u32>,
    len: Vec<u32>,
    pub(super) rng: Xoshiro256PlusPlus,
}

impl Bag {
    pub(crate) fn new(space: Space, rng: Xoshiro256PlusPlus) -> Bag {
        let blocks = space.blocks() as usize;
        Bag { space, blocks: vec![0; blocks], place: vec![0; blocks], len: vec![0; space.luns as usize], rng }
    }

    pub(crate) fn push(&mut self, lun: u32, block: u32) {
        let place = lun * self.space.blocks_per_lun + self.len[lun as usize];
        self.blocks[place as usize] = block;
        self.place[block as usize] = place;
        self.len[lun as usize] += 1;
    }

    pub(crate) fn remove(&mut self, lun: u32, block: u32) {
        self.len[lun as usize] -= 1;
        let last = self.blocks[(lun * self.space.blocks_per_lun + self.len[lun as usize]) as usize];
        let place = self.place[block as usize];
        self.blocks[place as usize] = last;
        self.place[last as usize] = place;
    }

    fn of(&self, lun: u32) -> &[u32] {
        let first = (lun * self.space.blocks_per_lun) as usize;
        &self.blocks[first..first + self.len[lun as usize] as usize]
    }

    /// Draws one of a LUN's closed blocks, each with equal probability.
    #[inline]
    fn draw(&mut self, lun: u32) -> u32 {
        let len = self.len[lun as usize];
        assert!(len > 0, "LUN {lun} has no closed block");
        let at = below(self.rng.next_u64(), u64::from(len)) as u32;
        self.blocks[(lun * self.space.blocks_per_lun + at) as usize]
    }

    /// Draws `count` closed blocks with replacement and returns the one whose collection gains most; of equals, the
    /// one drawn first. After as many gainless collections in a row as there are closed blocks, it chooses among all
    /// closed blocks instead.
    pub(crate) fn fewest_of(&mut self, count: u32, need: Need, valid: &dyn Fn(u32) -> u32) -> u32 {
        if need.gainless >= self.len[need.lun as usize] {
            let all = self.of(need.lun).iter().copied();
            return all.min_by_key(|&block| (valid(block), block)).expect("a gainful block");
        }
        let mut best = self.draw(need.lun);
        let mut least = valid(best);
        for _ in 1..count {
            let block = self.draw(need.lun);
            let count = valid(block);
            if count < least {
                (best, least) = (block, count);
            }
        }
        best
    }

    pub(crate) fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.of(lun).iter().for_each(|&block| visit(block, None));
    }
}

//! The closed blocks of each LUN as an array, so that draws take constant time.

use super::{Need, Space};
use crate::util::below;
use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Closed blocks by LUN, in no particular order.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    space: Space,
    blocks: Vec<u32>,
    /// The index of a closed block in `blocks`.
    place: Vec<u32>,
    len: Vec<u32>,
    pub(super) rng: Xoshiro256PlusPlus,
}

impl Closed {
    pub(crate) fn new(space: Space, rng: Xoshiro256PlusPlus) -> Closed {
        let blocks = space.blocks() as usize;
        Closed {
            space,
            blocks: vec![0; blocks],
            place: vec![0; blocks],
            len: vec![0; space.chips as usize],
            rng,
        }
    }

    pub(crate) fn push(&mut self, chip: u32, block: u32) {
        let place = chip * self.space.blocks_per_chip + self.len[chip as usize];
        self.blocks[place as usize] = block;
        self.place[block as usize] = place;
        self.len[chip as usize] += 1;
    }

    pub(crate) fn remove(&mut self, chip: u32, block: u32) {
        self.len[chip as usize] -= 1;
        let last = self.blocks[(chip * self.space.blocks_per_chip + self.len[chip as usize]) as usize];
        let place = self.place[block as usize];
        self.blocks[place as usize] = last;
        self.place[last as usize] = place;
    }

    fn of(&self, chip: u32) -> &[u32] {
        let first = (chip * self.space.blocks_per_chip) as usize;
        &self.blocks[first..first + self.len[chip as usize] as usize]
    }

    /// Draws a closed block, each with equal probability.
    #[inline]
    fn draw(&mut self, chip: u32) -> u32 {
        let len = self.len[chip as usize];
        assert!(len > 0, "chip {chip} has no closed block");
        let at = below(self.rng.next_u64(), u64::from(len)) as u32;
        self.blocks[(chip * self.space.blocks_per_chip + at) as usize]
    }

    /// Returns the block with the fewest valid slots among `count` draws with replacement, the first of
    /// equals; after as many gainless collections as there are closed blocks, among all of them.
    pub(crate) fn fewest_of(&mut self, count: u32, need: Need, valid: &dyn Fn(u32) -> u32) -> u32 {
        if need.gainless >= self.len[need.chip as usize] {
            let all = self.of(need.chip).iter().copied();
            return all.min_by_key(|&block| (valid(block), block)).expect("a gainful block");
        }
        let mut best = self.draw(need.chip);
        let mut fewest = valid(best);
        for _ in 1..count {
            let block = self.draw(need.chip);
            if valid(block) < fewest {
                (best, fewest) = (block, valid(block));
            }
        }
        best
    }

    pub(crate) fn each(&self, chip: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.of(chip).iter().for_each(|&block| visit(block, None));
    }
}

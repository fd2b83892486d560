//! Cost-benefit: collects the block with the greatest (1 - u) / 2u x age, where u is the share of valid slots.
//!
//! Source: Kawaguchi, Nishioka, Motoda, "A Flash-Memory Based File System", USENIX 1995, after
//! Rosenblum and Ousterhout's log-structured file system (SOSP 1991), which divides by 1 + u.
//!
//! Interpretation: age is the time since the block was last modified, that is, since one of its slots last became
//! invalid or, if none has, since it was closed. Time is counted in writes to the log (without copies), so that the
//! choice does not depend on how fast requests arrive. A block without valid slots is taken before all others; one
//! whose collection gains no page is never taken.
//!
//! The search is exact. It looks at one block for each number of valid slots: the oldest, which has the greatest value
//! and, since every modification moves a block to the end of another list, is at the head of its list.

use super::lists::Buckets;
use super::{Closed, Need, Own, Space, Victims};
use crate::util::NONE;
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) const NAME: &str = "cost-benefit";
pub(super) const DOC: &str = "the block with the greatest (1 - u) / 2u x age (Kawaguchi et al., USENIX 1995)";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct CostBenefit {
    space: Space,
    buckets: Buckets,
    /// Time at which each block was last modified, counted in writes to the log.
    modified: Vec<u64>,
}

impl Victims for CostBenefit {
    fn new(_keys: &Own, space: Space, _rng: Xoshiro256PlusPlus) -> CostBenefit {
        CostBenefit { space, buckets: Buckets::new(&space), modified: vec![0; space.blocks() as usize] }
    }

    fn close(&mut self, Closed { lun, block, valid, now }: Closed) {
        self.modified[block as usize] = now;
        self.buckets.push(lun, block, valid);
    }

    #[inline]
    fn invalidate(&mut self, Closed { lun, block, valid, now }: Closed) {
        self.modified[block as usize] = now;
        self.buckets.lower(lun, block, valid);
    }

    fn choose(&mut self, need: Need, _valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        let least = self.buckets.least(need.lun);
        let mut best = self.buckets.head(need.lun, least);
        // Value of the best block so far: a fraction, compared by cross-multiplication.
        let (mut gain, mut cost) = (0, 1);
        let most = self.space.slots_per_block - self.space.slots_per_page;
        for valid in least..=most {
            let block = self.buckets.head(need.lun, valid);
            if block == NONE {
                continue;
            }
            if valid == 0 {
                return block;
            }
            let age = u128::from(need.now - self.modified[block as usize]);
            let its_gain = u128::from(self.space.slots_per_block - valid) * age;
            let its_cost = u128::from(valid);
            if its_gain * cost > gain * its_cost {
                (best, gain, cost) = (block, its_gain, its_cost);
            }
        }
        best
    }

    fn remove(&mut self, lun: u32, block: u32, valid: &dyn Fn(u32) -> u32) {
        self.buckets.unlink(lun, block, valid(block));
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.buckets.each(lun, visit);
    }

    fn modified(&self, block: u32) -> u64 {
        self.modified[block as usize]
    }
}

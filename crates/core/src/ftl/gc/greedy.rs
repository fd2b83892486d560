//! Greedy: the block with the fewest valid slots; of equals, the one that reached that number first. Constant
//! time: blocks are kept in lists by the number of their valid slots.

use super::lists::{Buckets, Links};
use super::{Need, Own, Space, Victims};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) const NAME: &str = "greedy";
pub(super) const DOC: &str = "the block with the fewest valid pages";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Greedy {
    links: Links,
    buckets: Buckets,
}

impl Victims for Greedy {
    fn new(_keys: &Own, space: Space, _rng: Xoshiro256PlusPlus) -> Greedy {
        Greedy { links: Links::new(space.blocks()), buckets: Buckets::new(&space) }
    }

    #[inline]
    fn close(&mut self, lun: u32, block: u32, valid: u32, _now: u64) {
        self.buckets.push(&mut self.links, lun, block, valid);
    }

    #[inline]
    fn invalidate(&mut self, lun: u32, block: u32, valid: u32, _now: u64) {
        self.buckets.unlink(&mut self.links, lun, block, valid + 1);
        self.buckets.push(&mut self.links, lun, block, valid);
    }

    #[inline]
    fn choose(&mut self, need: Need, _valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        let least = self.buckets.least(need.lun);
        self.buckets.head(need.lun, least)
    }

    #[inline]
    fn remove(&mut self, lun: u32, block: u32, valid: &dyn Fn(u32) -> u32) {
        self.buckets.unlink(&mut self.links, lun, block, valid(block));
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.buckets.each(&self.links, lun, visit);
    }
}

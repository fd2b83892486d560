//! Greedy: collects the block whose collection gains most (among blocks of one size, the one with the fewest valid
//! slots); of equals, the one that was the first to gain that much. The choice takes constant time: blocks are kept in
//! lists according to what they gain.

use super::lists::Buckets;
use super::{Need, Own, Space, Victims};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) const NAME: &str = "greedy";
pub(super) const DOC: &str = "the block with the fewest valid pages";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Greedy(Buckets);

impl Victims for Greedy {
    fn new(_keys: &Own, space: Space, _rng: Xoshiro256PlusPlus) -> Greedy {
        Greedy(Buckets::new(&space))
    }

    #[inline]
    fn close(&mut self, lun: u32, block: u32, valid: u32, _now: u64) {
        self.0.push(lun, block, valid);
    }

    #[inline]
    fn invalidate(&mut self, lun: u32, block: u32, valid: u32, _now: u64) {
        self.0.lower(lun, block, valid);
    }

    #[inline]
    fn choose(&mut self, need: Need, _valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        self.0.first(need.lun)
    }

    #[inline]
    fn remove(&mut self, lun: u32, block: u32, valid: &dyn Fn(u32) -> u32) {
        self.0.unlink(lun, block, valid(block));
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.0.each(lun, visit);
    }
}

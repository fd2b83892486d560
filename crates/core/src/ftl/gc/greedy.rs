//! Greedy: collects the block with the fewest valid slots; of equals, the one that was the first to have that few. The
//! choice takes constant time: blocks are kept in lists by their number of valid slots.

use super::lists::Buckets;
use super::{Closed, Need, Own, Space, Victims};
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
    fn close(&mut self, closed: Closed) {
        self.0.push(closed.lun, closed.block, closed.valid);
    }

    #[inline]
    fn invalidate(&mut self, closed: Closed) {
        self.0.lower(closed.lun, closed.block, closed.valid);
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

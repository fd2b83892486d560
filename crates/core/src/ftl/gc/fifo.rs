//! FIFO: collects the block that was closed first, whatever it holds.
//!
//! This is cyclic cleaning of a log (also called LRU): blocks whose pages are all valid are moved too. The
//! closed form of its write amplification assumes exactly that (Xiang and Kurkoski 2012; Desnoyers, SYSTOR
//! 2012); skipping full blocks would make it a different policy.

use super::lists::{Links, each, links};
use super::{Closed, Need, Own, Space, Victims};
use crate::util::{Chain, NONE};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) const NAME: &str = "fifo";
pub(super) const DOC: &str = "the block that was filled first, in the order of the log";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Fifo {
    links: Links,
    /// Closed blocks of each LUN, oldest first.
    queues: Vec<Chain>,
}

impl Victims for Fifo {
    fn new(_keys: &Own, space: Space, _rng: Xoshiro256PlusPlus) -> Fifo {
        Fifo { links: links(&space), queues: vec![Chain::default(); space.luns as usize] }
    }

    fn close(&mut self, Closed { lun, block, .. }: Closed) {
        self.queues[lun as usize].push_tail(block, &mut self.links);
    }

    fn choose(&mut self, need: Need, _valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        let oldest = self.queues[need.lun as usize].head;
        assert!(oldest != NONE, "LUN {} has no closed block", need.lun);
        oldest
    }

    fn remove(&mut self, lun: u32, block: u32, _valid: &dyn Fn(u32) -> u32) {
        self.queues[lun as usize].unlink(block, &mut self.links);
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        each(&self.links, self.queues[lun as usize], &mut |block| visit(block, None));
    }
}

//! Chooses the block that was closed first among the blocks whose collection gains at least one page.

use ftlab_core::ftl::gc::{Closed, Need, Own, Space, Victims, Xoshiro256PlusPlus};
use ftlab_core::util::Stat;

/// The policy.
#[derive(Clone, Debug)]
pub struct OldestGainful {
    /// Closed blocks of each LUN, in the order of closing.
    closed: Vec<Vec<u32>>,
    space: Space,
    /// Number of blocks that were older than the victim, but would have gained nothing.
    passed_over: u64,
}

impl Victims for OldestGainful {
    fn new(_keys: &Own, space: Space, _rng: Xoshiro256PlusPlus) -> OldestGainful {
        OldestGainful { closed: vec![Vec::new(); space.luns as usize], space, passed_over: 0 }
    }

    fn close(&mut self, closed: Closed) {
        self.closed[closed.lun as usize].push(closed.block);
    }

    fn choose(&mut self, need: Need, valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        let closed = &self.closed[need.lun as usize];
        let oldest = closed.iter().position(|&block| self.space.gainful(valid(block)));
        let oldest = oldest.expect("ftlab asks only when there is one");
        self.passed_over += oldest as u64;
        closed[oldest]
    }

    fn remove(&mut self, lun: u32, block: u32, _valid: &dyn Fn(u32) -> u32) {
        self.closed[lun as usize].retain(|&other| other != block);
    }

    fn stats(&self) -> Vec<Stat> {
        vec![Stat::new(
            "passed_over",
            self.passed_over as f64,
            "blocks",
            "older than the victim, with nothing to gain",
        )]
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.closed[lun as usize].iter().for_each(|&block| visit(block, None));
    }
}

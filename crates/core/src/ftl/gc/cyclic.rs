//! Cyclic: collects the closed blocks of a LUN in the order of their numbers, round and round, whatever they hold.
//!
//! Source: none; it is one of two interpretations that fit the numbers in Kim and Lee, ICSOFT 2020, section
//! 4.3, which does not say how user blocks are chosen (docs/msftl.md).
//!
//! Unlike `fifo` it does not follow the log: a block is due when its number comes up. The next victim is
//! determined when the one before it leaves, so a block closed in between waits for the next round.

use super::{Closed, Need, Own, Space, Victims};
use crate::util::{Bits, NONE};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) const NAME: &str = "cyclic";
pub(super) const DOC: &str = "the blocks of a LUN in the order of their numbers, over and over";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Cyclic {
    space: Space,
    closed: Bits,
    /// For each LUN, the closed block that is due, or [`NONE`] if no block is closed.
    due: Vec<u32>,
}

impl Cyclic {
    /// Returns the first closed block of a LUN at or after `number` or, if there is none, the LUN's first closed block.
    fn next_from(&self, lun: u32, number: u32) -> Option<u32> {
        let first = lun * self.space.blocks_per_lun;
        let end = first + self.space.blocks_per_lun;
        self.closed.next_set(number, end).or_else(|| self.closed.next_set(first, number))
    }
}

impl Victims for Cyclic {
    fn new(_keys: &Own, space: Space, _rng: Xoshiro256PlusPlus) -> Cyclic {
        Cyclic { space, closed: Bits::new(space.blocks() as usize), due: vec![NONE; space.luns as usize] }
    }

    fn close(&mut self, Closed { lun, block, .. }: Closed) {
        self.closed.set(block);
        let due = &mut self.due[lun as usize];
        if *due == NONE {
            *due = block;
        }
    }

    fn choose(&mut self, need: Need, _valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        let due = self.due[need.lun as usize];
        assert!(due != NONE, "LUN {} has no closed block", need.lun);
        due
    }

    fn remove(&mut self, lun: u32, block: u32, _valid: &dyn Fn(u32) -> u32) {
        self.closed.clear(block);
        if self.due[lun as usize] == block {
            self.due[lun as usize] = self.next_from(lun, block).unwrap_or(NONE);
        }
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        let due = self.due[lun as usize];
        let mut next = Some(due).filter(|&due| due != NONE);
        while let Some(block) = next {
            visit(block, None);
            next = self.next_from(lun, block + 1).filter(|&next| next != due);
        }
    }
}

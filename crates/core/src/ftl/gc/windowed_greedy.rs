//! Windowed greedy: collects the block with the fewest valid slots among the `ftl.gc_window` oldest blocks of the LUN;
//! of equals, the one that was the first to have that few within the window.
//!
//! Source: Hu, Eleftheriou, Haas, Iliadis, Pletka, "Write Amplification Analysis in Flash-Based Solid State
//! Drives", SYSTOR 2009. A window of one block is FIFO; a window of all blocks is greedy. The choice takes
//! constant time: the blocks of the window are kept in lists by their number of valid slots, and younger
//! blocks wait in a queue.

use super::lists::{Buckets, each};
use super::{Closed, Need, Own, Space, Victims};
use crate::config::section;
use crate::config::section::count;
use crate::util::{Bits, Chain, NONE};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) const NAME: &str = "windowed-greedy";
pub(super) const DOC: &str =
    "of the ftl.gc_window blocks filled first, the one with the fewest valid pages (Hu et al., SYSTOR 2009)";

section! {
    /// The keys that only windowed-greedy has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Number of each LUN's oldest blocks from which ftl.gc windowed-greedy chooses.
        window: u32 = "ftl.gc_window", count(1, 1 << 30), "64";
    }
}

#[derive(Clone, Debug)]
pub(super) struct WindowedGreedy {
    window: u32,
    buckets: Buckets,
    /// How many blocks the window of each LUN holds; `inside` marks these blocks.
    len: Vec<u32>,
    inside: Bits,
    /// Blocks of each LUN that are younger than the window, oldest first.
    younger: Vec<Chain>,
}

impl WindowedGreedy {
    fn enter(&mut self, lun: u32, block: u32, valid: u32) {
        self.buckets.push(lun, block, valid);
        self.inside.set(block);
        self.len[lun as usize] += 1;
    }
}

impl Victims for WindowedGreedy {
    fn new(keys: &Own, space: Space, _rng: Xoshiro256PlusPlus) -> WindowedGreedy {
        WindowedGreedy {
            window: keys.windowed_greedy.window,
            buckets: Buckets::new(&space),
            len: vec![0; space.luns as usize],
            inside: Bits::new(space.blocks() as usize),
            younger: vec![Chain::default(); space.luns as usize],
        }
    }

    fn close(&mut self, Closed { lun, block, valid, .. }: Closed) {
        // No younger block waits while the window has room.
        if self.len[lun as usize] < self.window {
            self.enter(lun, block, valid);
        } else {
            self.younger[lun as usize].push_tail(block, &mut self.buckets.links);
        }
    }

    #[inline]
    fn invalidate(&mut self, closed: Closed) {
        if self.inside.get(closed.block) {
            self.buckets.lower(closed.lun, closed.block, closed.valid);
        }
    }

    fn choose(&mut self, need: Need, _valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        self.buckets.first(need.lun)
    }

    fn remove(&mut self, lun: u32, block: u32, valid: &dyn Fn(u32) -> u32) {
        let younger = &mut self.younger[lun as usize];
        if !self.inside.get(block) {
            younger.unlink(block, &mut self.buckets.links);
            return;
        }
        self.buckets.unlink(lun, block, valid(block));
        self.inside.clear(block);
        self.len[lun as usize] -= 1;
        let next = younger.head;
        if next != NONE {
            younger.unlink(next, &mut self.buckets.links);
            self.enter(lun, next, valid(next));
        }
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.buckets.each(lun, visit);
        each(&self.buckets.links, self.younger[lun as usize], &mut |block| visit(block, None));
    }
}

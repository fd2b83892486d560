//! Erased blocks sorted by speed, and which of them an unhurried write takes.

use super::pool::{BlockPool, EMPTY, List};
use crate::config::choice;
use crate::flash::Cells;
use crate::flash::variation::Speeds;
use crate::util::NONE;

choice! {
    /// Which erased block of a LUN a write takes, if nobody waits for the write and blocks are chosen by speed.
    pub enum Unhurried {
        /// the next erased block in order, as under the other schedulers
        InOrder = "in-order",
        /// the slowest erased block
        Slowest = "slowest",
    }
}

/// The order in which erased blocks returned to the pool.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// For each block, the number of its latest return; 0: it was never in the pool.
    numbers: Vec<u32>,
    last: u32,
}

impl BlockPool {
    /// Sorts the erased blocks by speed, equally fast ones in the order of their erasure, and keeps them sorted.
    pub(crate) fn sort_by_speed(&mut self, unhurried: Unhurried, cells: &Cells) {
        self.speeds = cells.speeds().map_or(1, Speeds::classes);
        let lists = vec![EMPTY; self.lists.len() * self.speeds as usize];
        if unhurried == Unhurried::InOrder {
            self.order = Some(Order { numbers: vec![0; self.blocks.len()], last: 0 });
        }
        self.free.fill(0);
        self.classes.fill(0);
        for List { head: mut block, .. } in std::mem::replace(&mut self.lists, lists) {
            while block != NONE {
                let next = self.blocks[block as usize].next;
                self.push_class(block, self.class(block, cells));
                block = next;
            }
        }
    }

    /// Returns the speed classes in which a LUN has erased blocks, as a bit set. Blocks must be sorted by
    /// speed. Class 0 is the fastest.
    pub(crate) fn free_classes(&self, lun: u32) -> u64 {
        self.classes[lun as usize]
    }

    /// Whether blocks are sorted by speed and an unhurried write takes the slowest one.
    pub(crate) fn slowest_first(&self) -> bool {
        self.speeds > 1 && self.order.is_none()
    }

    /// Returns a block's place in the order in which blocks returned to the pool; blocks that were in use when
    /// the run began come first.
    #[inline]
    pub(crate) fn place_in_order(&self, block: u32) -> u32 {
        self.order.as_ref().map_or(0, |order| order.numbers[block as usize])
    }

    /// Returns the block that was erased first among a LUN's erased blocks of one class, of which there must be at
    /// least one.
    pub(crate) fn first_of_class(&self, lun: u32, class: u32) -> u32 {
        self.lists[self.list(lun, class)].head
    }

    /// Notes that a block has returned to the pool.
    #[inline]
    pub(super) fn note_order(&mut self, block: u32) {
        if let Some(order) = &mut self.order {
            order.last += 1;
            order.numbers[block as usize] = order.last;
        }
    }

    /// Returns the class of the block that an unhurried write takes from a LUN's erased blocks.
    pub(super) fn next_class(&self, lun: u32, classes: u64) -> u32 {
        if self.order.is_none() {
            return classes.ilog2();
        }
        let with_blocks = (0..u64::BITS).filter(|class| classes >> class & 1 != 0);
        let first = with_blocks.min_by_key(|&class| self.place_in_order(self.first_of_class(lun, class)));
        first.expect("some class has a block")
    }
}

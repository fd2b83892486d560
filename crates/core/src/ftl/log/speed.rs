//! Writable blocks by speed: which block of a chip takes the next page.
//!
//! Source: Cui et al., NPC 2016, sections 3.1 and 3.3. The writable blocks of a chip, partly written
//! ones and erased ones, are ordered by their detected speed. A write to a chip that other requests
//! wait for takes the fastest, any other write and every copy of garbage collection the slowest. A
//! full block leaves the order, an erased one returns at its new place.
//!
//! There are few speeds (ISPP steps), so the order is a list per speed and a word that says which
//! have a block: the paper's red-black tree, with every operation in constant time. Of equally fast
//! blocks a partly written one goes first, then the one erased first; so each speed has at most one
//! partly written block on a chip.
//!
//! **Garbage collection still never deadlocks**: it starts when a chip has no writable block left but
//! its reserve. Then all blocks of the log but the reserve are full, as with a single frontier, and
//! the argument of [`super`] holds.

use super::Log;
use crate::ftl::blocks::pool::BlockPool;
use crate::util::NONE;

/// Partly written blocks that are set aside while another takes the writes.
#[derive(Clone, Debug)]
pub(super) struct Partly {
    /// Next slot of each such block, by chip and class of speed; [`NONE`]: no block.
    next: Vec<u32>,
    /// Classes with such a block, by chip.
    classes: Vec<u64>,
    per_chip: u32,
}

impl Partly {
    /// How many blocks of a chip are set aside.
    pub(crate) fn count(&self, chip: u32) -> u32 {
        self.classes[chip as usize].count_ones()
    }

    fn put(&mut self, chip: u32, class: u32, slot: u32) {
        let next = &mut self.next[(chip * self.per_chip + class) as usize];
        debug_assert_eq!(*next, NONE, "a speed has one partly written block");
        *next = slot;
        self.classes[chip as usize] |= 1 << class;
    }

    fn take(&mut self, chip: u32, class: u32) -> u32 {
        self.classes[chip as usize] &= !(1 << class);
        std::mem::replace(&mut self.next[(chip * self.per_chip + class) as usize], NONE)
    }

    /// Next slot of a block that is set aside.
    pub(crate) fn next_of(&self, chip: u32, first: u32, end: u32) -> Option<u32> {
        let from = (chip * self.per_chip) as usize;
        let slots = &self.next[from..from + self.per_chip as usize];
        slots.iter().copied().find(|&slot| slot != NONE && (first..end).contains(&slot))
    }
}

/// Which writable block is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speed {
    Fastest,
    Slowest,
}

impl Speed {
    fn of(self, classes: u64) -> u32 {
        match self {
            Speed::Fastest => classes.trailing_zeros(),
            Speed::Slowest => classes.ilog2(),
        }
    }
}

impl Log {
    /// Lets writes choose their block by speed. The pool must keep its erased blocks by speed already.
    pub(crate) fn choose_by_speed(&mut self, pool: &BlockPool) {
        assert_eq!(self.shape.slots_per_page, 1, "a page is filled by one write");
        let per_chip = pool.speeds().map_or(1, |speeds| speeds.classes());
        self.by_speed = Some(Partly {
            next: vec![NONE; (self.shape.chips * per_chip) as usize],
            classes: vec![0; self.shape.chips as usize],
            per_chip,
        });
    }

    /// Makes the wanted one of a chip's writable blocks the frontier; there may be none. Erased
    /// blocks are among them if `erased`.
    pub(super) fn choose_frontier(&mut self, chip: u32, wanted: Speed, erased: bool, pool: &mut BlockPool) {
        let Some(parked) = &mut self.by_speed else { return };
        let at = &mut self.chips[chip as usize];
        let active = (!at.is_full()).then(|| pool.class(self.by_block.div(at.next)));
        let partly = parked.classes[chip as usize] | active.map_or(0, |class| 1u64 << class);
        let may_take = erased && at.held < self.shape.limit;
        let classes = partly | if may_take { pool.free_classes(chip) } else { 0 };
        if classes == 0 {
            return;
        }
        let class = wanted.of(classes);
        if active == Some(class) {
            return;
        }
        if let Some(active) = active {
            parked.put(chip, active, at.next);
        }
        if partly >> class & 1 != 0 {
            at.next = parked.take(chip, class);
            at.end = (self.by_block.div(at.next) + 1) * self.slots_per_block;
        } else {
            at.held += 1;
            let block = pool.take_class(chip, class);
            self.open(chip, block);
        }
    }
}

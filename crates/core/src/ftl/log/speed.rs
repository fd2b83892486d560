//! Writable blocks by speed: which block of a LUN takes the next page.
//!
//! Source: Cui et al., NPC 2016, sections 3.1 and 3.3. The writable blocks of a LUN, partly written ones and
//! erased ones, are ordered by their detected speed. A write to a LUN that other requests wait for takes the
//! fastest one; any other write and every copy of garbage collection take the one that `device.unhurried`
//! names: the slowest, or the one next in order. A full block leaves the order, an erased one returns at its
//! new place.
//!
//! **In order** means one block until it is full, then the writable one that was erased first. Blocks begun
//! by hurried writes are among them.
//!
//! There are few speeds (ISPP steps), so the order is a list per speed and a word that says which
//! have a block: the paper's red-black tree, with every operation in constant time. Among equally fast
//! blocks a partly written one goes first, then the one erased first; so each speed has at most one
//! partly written block on a LUN.
//!
//! **Garbage collection still never deadlocks**: it starts when a LUN has no writable block left but
//! its reserve. Then all blocks of the log but the reserve are full, as with a single frontier, and
//! the argument of [`super`] holds.

use super::Log;
use super::fronts::Fronts;
use crate::flash::variation::Speeds;
use crate::flash::{Cells, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::util::NONE;

/// By LUN, if blocks are taken in order: the block that is being filled, and its place in the order.
pub(super) type Filled = Vec<(u32, u32)>;

impl Log {
    /// Lets writes choose their block by speed. The pool must keep its erased blocks by speed already.
    pub(crate) fn choose_by_speed(&mut self, cells: &Cells) {
        assert_eq!(self.shape.slots_per_page, 1, "a page is filled by one write");
        let per_lun = cells.speeds().map_or(1, Speeds::classes);
        // Wear levelling, which sets blocks aside, is not possible together with it.
        self.fronts = Fronts::new(self.shape.luns, per_lun);
        self.by_speed = Some(vec![(NONE, 0); self.shape.luns as usize]);
    }

    /// Makes a LUN's fastest writable block the frontier, for a write that is hurried, else the one that
    /// other writes take; there may be none. With `erased`, erased blocks are included.
    pub(super) fn choose_frontier(
        &mut self,
        lun: u32,
        hurried: bool,
        erased: bool,
        pool: &mut BlockPool,
        work: &Work,
    ) {
        if self.by_speed.is_none() {
            return;
        }
        let at = &self.luns[lun as usize];
        let open = (!at.is_full()).then(|| self.by_block.div(at.next));
        let active = open.map(|block| pool.class(block, work.cells()));
        let partly = self.fronts.waiting(lun) | active.map_or(0, |class| 1u64 << class);
        let may_take = erased && at.held < self.shape.limit;
        let classes = partly | if may_take { pool.free_classes(lun) } else { 0 };
        if classes == 0 {
            return;
        }
        let class = if hurried {
            classes.trailing_zeros()
        } else if pool.slowest_first() {
            classes.ilog2()
        } else {
            self.next_in_order(lun, classes, open, pool, work.cells())
        };
        if active == Some(class) {
            return;
        }
        let at = &mut self.luns[lun as usize];
        if let Some(active) = active {
            self.fronts.put(lun, active, at.next);
        }
        if partly >> class & 1 != 0 {
            self.go_on(lun, class);
        } else {
            at.held += 1;
            let block = pool.take_class(lun, class);
            self.open(lun, block);
        }
    }

    /// Returns the class of the block next in order, among a LUN's writable blocks; `open` is its frontier.
    fn next_in_order(
        &mut self,
        lun: u32,
        classes: u64,
        open: Option<u32>,
        pool: &BlockPool,
        cells: &Cells,
    ) -> u32 {
        let Log { by_speed: Some(filled), fronts, by_block, .. } = self else { return 0 };
        // Each class has at most one partly written block, which was erased before its others.
        let first_of = |class: u32| match open {
            Some(block) if pool.class(block, cells) == class => block,
            _ if fronts.waiting(lun) >> class & 1 != 0 => by_block.div(fronts.next(lun, class)),
            _ => pool.first_of_class(lun, class),
        };
        let (block, place) = filled[lun as usize];
        if block != NONE && pool.place_in_order(block) == place {
            let class = pool.class(block, cells);
            if classes >> class & 1 != 0 && first_of(class) == block {
                return class;
            }
        }
        let writable = (0..u64::BITS).filter(|class| classes >> class & 1 != 0);
        let first = writable.map(first_of).min_by_key(|&block| pool.place_in_order(block));
        let block = first.expect("some class has a block");
        filled[lun as usize] = (block, pool.place_in_order(block));
        pool.class(block, cells)
    }
}

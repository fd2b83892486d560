//! The SLC cache: a head whose blocks are used with one bit a cell, where the host's writes go first.
//!
//! What comes from the host goes into the cache as long as it takes writes, whatever the placement says; the placement
//! is asked all the same, and its answer is kept: it is where the data goes when it is **folded**, that is, moved to
//! blocks of all bits. Blocks are folded oldest first, each as a whole: a fold is a move ([`super::mover`]). A block in
//! SLC mode takes the first page of each of its word lines; the slots of the others stay empty ([`super::heads::Gap`]).
//! Which blocks the cache may have is up to the stock ([`super::stock`]). Folding a block needs what a collection
//! needs, and always gives a block back.
//!
//! Source: the static and the dynamic cache are those that vendors describe (Samsung, "Samsung Solid State Drive
//! TurboWrite Technology", white paper, 2013; Micron, "Optimized Client Computing With Dynamic Write Acceleration",
//! 2014). What was read into them is in `docs/readings/slc-cache.md`.

use super::around::Under;
use super::heads::At;
use super::mover::Mover;
use super::writer::Writer;
use crate::ftl::blocks::pool::BlockPool;

/// The SLC cache of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlcCache {
    /// Whether the host's writes go there: only during a run, so that the cache is empty at time 0.
    pub(super) on: bool,
    /// Whether a full cache is folded before a write, rather than passed by.
    pub(super) folds: bool,
    pub(super) head: u32,
}

impl SlcCache {
    /// Returns the head in which an owner's next version is written: that of the cache if it takes the version, else
    /// that of `front`. It folds and collects what must be for that.
    pub(super) fn head(self, m: &mut Mover, under: &mut Under, lun: u32, (owner, front): (u32, u32)) -> u32 {
        match self.make_room(m, under, lun) {
            true => self.keep(m, owner, front),
            false => front,
        }
    }

    /// Does what [`SlcCache::head`] does where each front has a page buffer.
    pub(super) fn buffer(self, m: &mut Mover, under: &mut Under, (owner, front): (u32, u32)) -> u32 {
        loop {
            let cursor = At { lun: m.route.luns[self.head as usize], head: self.head };
            if m.is_begun(cursor) {
                return self.keep(m, owner, front);
            }
            let lun = self.turn(m, under.pool);
            let chosen = self.head(m, under, lun, (owner, front));
            // A fold may have programmed the cache's page buffer, which lets its cursor move on.
            if chosen != self.head || m.route.luns[chosen as usize] == lun {
                return chosen;
            }
        }
    }

    /// Keeps the front to which an owner's cached version will be folded; returns the head of the cache.
    fn keep(self, w: &mut Writer, owner: u32, front: u32) -> u32 {
        if let Some(kept) = w.route.placed.as_mut().and_then(|placed| placed.kept.get_mut(owner as usize)) {
            *kept = front as u8;
        }
        self.head
    }

    /// Turns the cursor of the cache, whose page buffer is empty, to the next LUN on which the cache takes another
    /// page, after a fold if need be; if there is none, to the next that can take data. Returns that LUN.
    fn turn(self, w: &mut Writer, pool: &BlockPool) -> u32 {
        let takes = |w: &Writer, lun| self.takes(w, lun, pool) || (self.folds && w.stock.folds_on(lun));
        w.turn(self.head, w.route.luns[self.head as usize], takes)
    }

    /// Whether the cache takes another page on a LUN as it is.
    fn takes(self, w: &Writer, lun: u32, pool: &BlockPool) -> bool {
        !w.heads[At { lun, head: self.head }].is_full() || w.stock.may_cache(lun, pool)
    }

    /// Makes room in the cache on a LUN, if it takes writes; returns whether there is any.
    fn make_room(self, m: &mut Mover, under: &mut Under, lun: u32) -> bool {
        let mut gainless = 0;
        while !self.takes(m, lun, under.pool) {
            if m.stock.owes_cache(lun) {
                m.collect(under, lun, &mut gainless);
            } else if !self.folds || !m.fold(under, lun) {
                return false;
            }
        }
        true
    }
}

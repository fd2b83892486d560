//! The SLC cache: a front whose blocks are used with one bit a cell, where the host's writes go first.
//!
//! What comes from the host goes into the cache as long as it takes writes, whatever the placement says; the placement is
//! asked all the same, and its answer is kept: it is where the data goes when it is **folded**, that is, moved to blocks
//! of all bits. Blocks are folded oldest first, each as a whole, by the same copies as a collection. A block in SLC mode
//! takes the first page of each of its word lines; the slots of the others stay empty.
//!
//! **Nothing deadlocks.** On each LUN the cache is sure of some blocks ([`super::Shape::slc_blocks`]), and all other
//! blocks of the log never come to more than its limit less these, except for one for as long as it takes to collect one.
//! So the argument of [`super`] holds for the blocks of all bits by themselves, with the live slots of the cache counted
//! in. Beyond its share the cache takes erased blocks only while there are any, and gives them back when a front of all
//! bits needs one: folding a block needs what a collection needs, and always gives a block back.
//!
//! Source: the static and the dynamic cache are those that vendors describe (Samsung, "Samsung Solid State Drive
//! TurboWrite Technology", white paper, 2013; Micron, "Optimized Client Computing With Dynamic Write Acceleration", 2014).
//! What was read into them is in `docs/readings/slc-cache.md`.

use super::cache::{OfLun, SlcCache};
use super::{Block, Log, State, Under};
use crate::flash::Cause;
use crate::flash::media::Kind;
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::settings::{Settings, SlcFull};
use crate::ftl::slots::Slots;
use crate::util::NONE;

impl Log {
    /// Makes the cache of `settings`, whose front comes after the `fronts` of the placement.
    pub(super) fn make_cache(&mut self, settings: &Settings, fronts: u32) {
        let empty = OfLun { oldest: NONE, youngest: NONE, full: 0, held: 0 };
        let page = self.shape.slots_per_nand_page();
        // In a superblock the first pages of word lines come one after another, unless a word line is programmed at once.
        let wide = self.shape.superblocks.filter(|_| self.shape.nand_pages == 1).map_or(1, |of| of.luns());
        self.slc = Some(Box::new(SlcCache {
            on: false,
            front: fronts,
            folds: settings.ftl.slc_full == SlcFull::Fold,
            line: page * wide * settings.flash.cell.bits(),
            page: page * wide,
            whole: self.shape.nand_pages > 1,
            luns: vec![empty; self.luns.len()],
            kept: vec![0; if fronts > 1 { self.pages() as usize } else { 0 }],
        }));
    }

    /// Lets the host's writes go into the cache from now on, if there is one.
    pub(crate) fn use_cache(&mut self) {
        if let Some(slc) = &mut self.slc {
            slc.on = true;
        }
    }

    /// Whether the host's writes go into a cache.
    pub(super) fn caches(&self, owner: u32) -> bool {
        owner < self.pages() && self.slc.as_ref().is_some_and(|slc| slc.on)
    }

    /// Returns the number of blocks that a LUN has in SLC mode, and how many of them are full.
    pub(super) fn cached_blocks(&self, lun: u32) -> (u32, u32) {
        self.slc.as_ref().map_or((0, 0), |slc| (slc.luns[lun as usize].held, slc.luns[lun as usize].full))
    }

    /// Returns the number of blocks of a LUN that are used with all bits.
    pub(super) fn all_bits(&self, lun: u32) -> u32 {
        self.luns[lun as usize].held - self.cached_blocks(lun).0
    }

    /// Calls `visit` with the first unit of every block in SLC mode.
    pub(crate) fn each_slc(&self, visit: &mut dyn FnMut(u32)) {
        let blocks = (0..self.blocks()).filter(|&block| self.blocks[block as usize].slc);
        blocks.for_each(|block| visit(block * self.shape.pages_per_block));
    }

    /// Returns the front of an owner's version in a slot; of a cached version, the front to which it will be folded.
    pub(super) fn front_at(&self, owner: u32, slot: u32) -> u32 {
        let block = self.addresses.block(slot);
        match &self.slc {
            Some(slc) if self.blocks[block as usize].slc => {
                slc.kept.get(owner as usize).map_or(0, |&at| at.into())
            }
            _ => self.placed.as_ref().map_or(0, |placed| placed.opened[block as usize].0),
        }
    }

    /// Returns the front in which an owner's next version is written: that of the cache if it takes the version, else
    /// `front`. It folds and collects what must be for that.
    pub(super) fn cached_front(
        &mut self,
        under: &mut Under,
        lun: u32,
        (owner, front): (u32, u32),
        moved: &mut dyn FnMut(u32),
    ) -> u32 {
        if !self.caches(owner) || !self.make_cached_room(under, lun, moved) {
            return front;
        }
        self.keep_front(owner, front)
    }

    /// Does what [`Log::cached_front`] does where each front has a page buffer.
    pub(super) fn cached_buffer(
        &mut self,
        under: &mut Under,
        (owner, front): (u32, u32),
        moved: &mut dyn FnMut(u32),
    ) -> u32 {
        loop {
            let Some(slc) = &self.slc else { return front };
            if self.is_begun_in(self.cursor.luns[slc.front as usize], slc.front) {
                return self.keep_front(owner, front);
            }
            let lun = self.turn_cache(under.pool);
            let chosen = self.cached_front(under, lun, (owner, front), moved);
            // A fold may have programmed the cache's page buffer, which lets its cursor move on.
            if !self.is_cache(chosen) || self.cursor.luns[chosen as usize] == lun {
                return chosen;
            }
        }
    }

    /// Keeps the front to which an owner's cached version will be folded; returns the front of the cache.
    #[inline]
    fn keep_front(&mut self, owner: u32, front: u32) -> u32 {
        let Some(slc) = &mut self.slc else { return front };
        if let Some(kept) = slc.kept.get_mut(owner as usize) {
            *kept = front as u8;
        }
        slc.front
    }

    /// Turns the cursor of the cache, whose page buffer is empty, to the next LUN on which the cache takes another
    /// page, after a fold if need be; if there is none, to the next that can take data. Returns that LUN.
    fn turn_cache(&mut self, pool: &BlockPool) -> u32 {
        let Some(slc) = &self.slc else { return 0 };
        let (front, folds) = (slc.front, slc.folds);
        let lun = self.cursor.luns[front as usize];
        let mut turn = (lun..self.shape.luns).chain(0..lun).filter(|&lun| self.has_room(lun));
        let takes = |&lun: &u32| {
            self.has_cached_slot(lun) || self.may_cache(lun, pool) || (folds && self.folds_on(lun))
        };
        let next = turn.clone().find(takes).or_else(|| turn.next());
        let next = next.expect("the user capacity leaves room on some LUN");
        self.cursor.luns[front as usize] = next;
        next
    }

    /// Makes room in the cache on a LUN, if it takes writes; returns whether there is any.
    fn make_cached_room(&mut self, under: &mut Under, lun: u32, moved: &mut dyn FnMut(u32)) -> bool {
        let mut gainless = 0;
        while !self.has_cached_slot(lun) && !self.may_cache(lun, under.pool) {
            let share = self.shape.limit - self.shape.slc_blocks;
            if self.all_bits(lun) > share && self.cached_blocks(lun).0 < self.shape.slc_blocks {
                self.collect(under, lun, &mut gainless, &mut |owner| moved(owner));
            } else if !self.slc.as_ref().is_some_and(|slc| slc.folds) || !self.fold(under, lun, moved) {
                return false;
            }
        }
        true
    }

    /// Whether the open block of the cache on a LUN has room.
    fn has_cached_slot(&self, lun: u32) -> bool {
        let Some(slc) = &self.slc else { return false };
        match self.active(lun) == slc.front {
            true => !self.luns[lun as usize].is_full(),
            false => self.fronts.waits(lun, slc.front),
        }
    }

    /// Whether the cache may take another erased block of a LUN.
    fn may_cache(&self, lun: u32, pool: &BlockPool) -> bool {
        self.luns[lun as usize].held < self.shape.limit
            && self.cached_blocks(lun).0 < self.shape.slc_most
            && pool.free(lun) > 0
    }

    /// Whether the cache has more blocks of a LUN than its share, and can give one back.
    pub(super) fn cache_gives(&self, lun: u32) -> bool {
        let (held, full) = self.cached_blocks(lun);
        held > self.shape.slc_blocks && full > 0
    }

    /// Whether a front is that of the cache.
    pub(super) fn is_cache(&self, front: u32) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.front == front)
    }

    /// Opens another block in SLC mode, which the cache may take.
    pub(super) fn open_cached(&mut self, under: &mut Under, lun: u32) {
        let block = under.pool.take(lun).expect("the cache may take a block");
        self.luns[lun as usize].held += 1;
        self.open(lun, block);
        self.blocks[block as usize].slc = true;
        if let Some(slc) = &mut self.slc {
            slc.luns[lun as usize].held += 1;
        }
        under.work.use_as_slc(block * self.shape.pages_per_block);
    }

    /// Leaves the rest of a word line empty if the frontier of a LUN is in SLC mode and the line's first page is full.
    pub(super) fn leave_line(&mut self, slots: &mut Slots, lun: u32) {
        let active = self.active(lun);
        let Some(slc) = self.slc.as_ref().filter(|slc| slc.front == active) else { return };
        let at = &mut self.luns[lun as usize];
        let block = self.addresses.block(at.next - 1);
        let first = self.addresses.first(block);
        if (at.next - first) % slc.line != slc.page {
            return;
        }
        let rest = (slc.line - slc.page).min(at.end - at.next);
        match slc.whole {
            true => slots.tell(|medium| medium.pad(at.next, rest, Kind::Slc)),
            false => slots.tell(|medium| medium.leave_out(block, at.next + rest - first)),
        }
        at.next += rest;
    }

    /// Closes a full block in SLC mode: it is the next to be folded after all others.
    #[cold]
    pub(super) fn close_cached(&mut self, lun: u32, block: u32) {
        let Some(slc) = &mut self.slc else { return };
        let of = &mut slc.luns[lun as usize];
        (self.blocks[block as usize].state, self.blocks[block as usize].next) = (State::Cached, NONE);
        match of.youngest {
            NONE => of.oldest = block,
            last => self.blocks[last as usize].next = block,
        }
        of.youngest = block;
        of.full += 1;
    }

    /// Folds the oldest full block of a LUN; returns whether there was one.
    pub(crate) fn fold(&mut self, under: &mut Under, lun: u32, moved: &mut dyn FnMut(u32)) -> bool {
        let Some(slc) = &mut self.slc else { return false };
        let of = &mut slc.luns[lun as usize];
        let block = of.oldest;
        if block == NONE {
            return false;
        }
        of.oldest = self.blocks[block as usize].next;
        of.full -= 1;
        if of.oldest == NONE {
            of.youngest = NONE;
        }
        self.end_begun(under, lun, moved);
        self.empty(under, lun, block, Cause::Fold, moved);
        true
    }

    /// Whether a LUN has a block to fold.
    pub(crate) fn folds_on(&self, lun: u32) -> bool {
        self.cached_blocks(lun).1 > 0
    }

    /// Turns a LUN whose frontier is in SLC mode to another front, since copies and trim pages do not go there.
    pub(super) fn leave_cache(&mut self, lun: u32) {
        if self.is_cache(self.active(lun)) {
            self.turn_to(lun, 0);
        }
    }

    /// Notes that a block in SLC mode is erased.
    pub(super) fn cached_erased(&mut self, lun: u32) {
        if let Some(slc) = &mut self.slc {
            slc.luns[lun as usize].held -= 1;
        }
    }

    /// Takes up a block that was found, or saved, in SLC mode; a full one comes after those taken up before.
    pub(super) fn take_up_cached(&mut self, lun: u32, block: u32, full: bool) {
        self.blocks[block as usize].slc = true;
        if let Some(slc) = &mut self.slc {
            slc.luns[lun as usize].held += 1;
        }
        if full {
            self.close_cached(lun, block);
        }
    }

    /// Returns the purpose for which a block was taken.
    pub(super) fn kind_of(&self, block: u32) -> Kind {
        if self.blocks[block as usize].slc { Kind::Slc } else { self.kind() }
    }

    /// Returns what is saved of the cache: the full blocks, oldest first, LUN by LUN, and the fronts that are kept.
    pub(super) fn save_cache(&self) -> (Vec<u32>, Vec<u8>) {
        let Some(slc) = &self.slc else { return Default::default() };
        let mut full = Vec::new();
        for of in &slc.luns {
            let mut block = of.oldest;
            while block != NONE {
                full.push(block);
                block = self.blocks[block as usize].next;
            }
        }
        (full, slc.kept.clone())
    }

    /// Restores the fronts that were kept; returns whether they can be those of this cache.
    pub(super) fn take_kept(&mut self, kept: Vec<u8>) -> bool {
        let Some(slc) = &mut self.slc else { return kept.is_empty() };
        let fits = kept.len() == slc.kept.len() && kept.iter().all(|&front| u32::from(front) < slc.front);
        slc.kept = kept;
        fits
    }

    /// Whether the next slot of an open block in SLC mode may be this many slots after its first.
    pub(super) fn may_go_on(&self, offset: u32) -> bool {
        self.slc.as_ref().is_some_and(|slc| offset % slc.line < slc.page)
    }
}

impl Block {
    /// Whether the block is full and in SLC mode.
    pub(super) fn is_cached(&self) -> bool {
        self.state == State::Cached
    }
}

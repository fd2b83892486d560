//! A log-structured store on erase blocks: out-of-place writes and garbage collection.
//!
//! Every page-mapped FTL keeps its user data in one [`Log`] (owners are LPNs) and
//! its translation pages in a second one (owners are translation pages). Both take
//! erased blocks from one [`BlockPool`]. A slot is the unit of the mapping: the
//! NAND page, or a logical page where that is smaller.
//!
//! A write goes through the parts of a log from the bottom of this list to the top; none knows those below it:
//!
//! - [`stock`]: what each block is used for, where an erased one comes from, which is collected next;
//! - [`heads`]: the open blocks, one for each LUN and front;
//! - [`durable`]: what must be on flash before a block is erased;
//! - [`placed`] and [`route`]: which LUN and which head take a page;
//! - [`writer`]: puts pages under a head;
//! - [`mover`]: moves the data of a block elsewhere and erases it ([`carry`] is the loop);
//! - [`slc`]: the SLC cache;
//! - this file: a write, and what callers ask.
//!
//! **Garbage collection never deadlocks**, because of two invariants, which check mode verifies. A LUN that must
//! collect has a closed block whose collection gains a page ([`stock`]). Moving the data of a block takes no room but a
//! block of the reserve, which it gives back ([`mover`]). If fronts are speeds, whatever block is open is filled before
//! anything is collected, so that all open blocks are full by then, as with one front.

mod addresses;
mod around;
mod asked;
mod blocks;
mod carry;
pub(crate) mod check;
mod durable;
mod found;
mod heads;
mod mover;
mod placed;
mod route;
mod saved;
mod shape;
mod slc;
mod stock;
mod turn;
mod writer;

use std::ops::{Deref, DerefMut};

use addresses::Addresses;
pub(crate) use around::{Keeper, Under};
pub(crate) use asked::Asked;
pub(crate) use blocks::State;
pub use found::FoundBlock;
use heads::{At, Gap};
use mover::Mover;
pub use mover::Refreshed;
use placed::Placed;
pub(crate) use shape::{Shape, blocks_at_least, blocks_wanted, fronts, live_most, slc_blocks, sure_slots};
use slc::SlcCache;
pub(crate) use stock::Stock;
use writer::Writer;

use super::blocks::pool::BlockPool;
use super::slots::Slots;
use crate::flash::{Cause, Cells, Work};
use crate::ftl::placement::FrontCount;
use crate::ftl::settings::{Settings, SlcFull};
use crate::util::{Bits, NONE, Stat, memory};

/// A log-structured store.
#[derive(Clone, Debug)]
pub struct Log {
    mover: Mover,
    /// The SLC cache, if there is one.
    slc: Option<SlcCache>,
    /// Whether something must be chosen or finished before a write.
    chooses: bool,
}

/// A log is a mover, to which it adds writes.
impl Deref for Log {
    type Target = Mover;

    fn deref(&self) -> &Mover {
        &self.mover
    }
}

impl DerefMut for Log {
    fn deref_mut(&mut self) -> &mut Mover {
        &mut self.mover
    }
}

impl Log {
    /// Makes an empty log, which takes its reserve from the pool; with `check`, every operation is policed.
    pub(crate) fn new(
        shape: Shape,
        settings: &Settings,
        (slots, pool): (&mut Slots, &mut BlockPool),
        check: bool,
    ) -> Log {
        let mut log = Log::without_reserve(shape, settings, pool);
        log.stock.take_reserve(pool);
        if check {
            check::police(&log, slots);
        }
        log
    }

    /// Makes an empty log that has no blocks yet.
    fn without_reserve(shape: Shape, settings: &Settings, pool: &BlockPool) -> Log {
        let mover = Mover::new(Writer::new(shape, settings, pool));
        let mut log = Log { mover, slc: None, chooses: shape.dynamic || shape.serial };
        if let Some(name) = shape::placement(settings).filter(|_| shape.gc == Cause::Gc) {
            log.place_by(name, settings, None);
        }
        log
    }

    /// Lets the placement of this name say where pages go. If it chooses by speed, the pool must already keep
    /// its erased blocks sorted by the speed of these cells.
    pub(crate) fn place_by(&mut self, name: &str, settings: &Settings, cells: Option<&Cells>) {
        let placed = Placed::new(name, &self.addresses, settings, cells);
        let Shape { luns, slots_per_page, superblocks, nand_pages, .. } = *self.shape();
        self.heads.spread(placed.fronts, placed.by_speed);
        if slots_per_page > 1 {
            assert!(!placed.by_speed, "a page is filled by one write");
            self.route.luns = (0..placed.fronts).map(|front| front % luns).collect();
        }
        if self.shape().slc_most > 0 {
            // In a superblock the first pages of word lines come one after another, unless a word line is programmed at
            // once.
            let wide = superblocks.filter(|_| nand_pages == 1).map_or(1, |of| of.luns());
            let page = self.shape().slots_per_nand_page() * wide;
            let line = page * settings.flash.cell.bits();
            let head = placed.fronts - 1;
            self.heads.gap = Some(Gap { head, line, page, whole: nand_pages > 1 });
            self.slc = Some(SlcCache { on: false, folds: settings.ftl.slc_full == SlcFull::Fold, head });
        }
        self.route.placed = Some(Box::new(placed));
        self.chooses = true;
    }

    /// Lets the host's writes go into the SLC cache from now on, if there is one.
    pub(crate) fn use_cache(&mut self) {
        self.slc.iter_mut().for_each(|slc| slc.on = true);
    }

    /// Prepares the log for [`Log::background_step`].
    pub(crate) fn collect_in_background(&mut self) {
        self.chooses = true;
        self.mover.collect_in_background();
    }

    /// Forgets the numbers of programs and erases, and what was counted, which begin anew with the run.
    pub(crate) fn forget_numbers(&mut self) {
        self.durable.after.fill(0);
        if let Some(placed) = &mut self.route.placed {
            placed.counts.fill((0, 0));
        }
    }

    /// Writes an owner's new version and invalidates the old version, after collecting garbage if necessary.
    #[inline(always)] // called for every write
    pub(crate) fn write(&mut self, mut under: Under, asked: Asked) {
        if self.chooses {
            return self.write_chosen(&mut under.again(), asked);
        }
        let Asked { owner, cause, .. } = asked;
        let at = At::first(self.route.lun(&self.addresses, owner));
        if self.heads[at].is_full() {
            // Most writes need none of this in memory.
            let mut under = under.again();
            if under.pool.free(at.lun) == 0 && self.wants_block(at.lun) {
                under.ask_back(at.lun);
            }
            self.make_room(&mut under, at);
        }
        let old = self.renew(under.slots, owner);
        let slot = self.place(under.slots, at, owner);
        self.program_placed(under.work, (at, cause), (owner, old), slot);
    }

    /// Does what [`Log::write`] does where something must be chosen or finished first.
    #[inline(never)] // keeps the path of most writes short
    fn write_chosen(&mut self, under: &mut Under, asked: Asked) {
        let Asked { owner, cause, .. } = asked;
        let at = asked.choose(&mut self.mover, under, self.slc.filter(|slc| slc.on));
        if self.heads[at].is_full() {
            self.make_room(under, at);
        }
        let old = self.renew(under.slots, owner);
        let slot = self.place(under.slots, at, owner);
        self.leave_empty(under.slots, at);
        if !self.shape().serial {
            self.program_placed(under.work, (at, cause), (owner, old), slot);
        } else if !self.is_begun(at) {
            self.program_page(at, slot, cause, under.work);
        }
    }

    /// Invalidates an owner's data, if there is any.
    pub(crate) fn trim(&mut self, slots: &mut Slots, owner: u32) {
        let Writer { addresses, stock, route, durable, .. } = &mut *self.mover;
        if let Some(placed) = &mut route.placed {
            placed.invalidated(addresses, stock, owner, slots.of(owner));
        }
        let old = slots.trim(owner);
        if old != NONE {
            durable.note_trim(owner, old);
            self.invalidate(slots, old);
        }
    }

    /// Puts the first versions of owners in place before time 0, like a write but without steps. It
    /// stops at an owner that already has a version, or whose place is not the next slot of an open block;
    /// `owners` then begins with that owner.
    pub(crate) fn prefill(&mut self, slots: &mut Slots, owners: &mut &[u32], work: &mut Work) {
        let kind = self.shape().kind();
        while let Some(&first) = owners.first().filter(|_| !self.route.leads && self.route.placed.is_none()) {
            let at = At::first(self.addresses.home(first));
            let rest = self.heads[at];
            if rest.is_full() || slots.of(first) != NONE {
                break;
            }
            // With several LUNs, the next owner goes to another one.
            let most = if self.shape().luns > 1 { 1 } else { owners.len().min(rest.left() as usize) };
            let laid = slots.prefill(rest.next, &owners[..most], kind);
            self.heads[at].next += laid;
            let block = self.addresses.block(rest.next);
            self.stock.fill(at.lun, block, laid);
            *owners = &owners[laid as usize..];
            self.stock.writes += u64::from(laid);
            work.prefill(rest.next, laid, Cause::Host);
            self.close_if_full(at);
        }
    }
}

/// What only a serial log does: one that gathers owners into pages.
impl Log {
    /// Whether the next owner that is written begins a new page.
    pub(crate) fn begins_page(&self) -> bool {
        !self.is_begun(At::first(0))
    }

    /// Whether the open block is full and the next one is the last that the log may have, so that garbage collection is
    /// due.
    pub(crate) fn takes_last(&self) -> bool {
        self.heads[At::first(0)].is_full() && self.stock.held(0) + 1 >= self.shape().limit
    }

    /// Opens another block if the open one is full, after collecting garbage if necessary.
    pub(crate) fn open_next(&mut self, under: &mut Under) {
        self.make_room(under, At::first(0));
    }

    /// Collects garbage until the log may take another block.
    pub(crate) fn collect_until_free(&mut self, under: &mut Under) {
        let mut gainless = 0;
        while self.stock.held(0) >= self.shape().limit {
            self.collect(under, 0, &mut gainless);
        }
    }

    /// Programs the page that was begun, if there is one, although it is part-full.
    pub(crate) fn finish_page(&mut self, under: &mut Under, cause: Cause) {
        let at = At::first(0);
        if self.pad(under.slots, at) {
            let last = self.heads[at].next - 1;
            self.program_page(at, last, cause, under.work);
        }
    }

    /// Returns the owners whose newest versions are in the NAND page of a slot.
    pub(crate) fn owners_beside(&self, slots: &Slots, slot: u32) -> impl Iterator<Item = u32> {
        let count = self.shape().slots_per_nand_page();
        let first = self.addresses.nand_page(slot) * count;
        (first..first + count).filter(|&slot| slots.valid.get(slot)).map(|slot| slots.spare.of(slot))
    }
}

/// What the host and the device ask.
impl Log {
    /// Begins to load into the CPU cache the slot and block state that a new version of an owner will change. The
    /// owner's map entry has been loaded already.
    #[inline]
    pub(crate) fn fetch_slot(&self, slots: &Slots, owner: u32) {
        let slot = slots.of(owner);
        if slot != NONE {
            slots.valid.fetch(slot);
            memory::fetch(self.stock.blocks.all(), self.addresses.block(slot) as usize);
        }
        if let Some(placed) = &self.route.placed {
            memory::fetch(&placed.kept, owner as usize);
        }
    }

    /// Whether the next page can go to a LUN that is not busy, or goes into the page buffer that was begun.
    pub(crate) fn finds_room(&self, busy: &Bits) -> bool {
        self.page_begun() || (0..self.shape().luns).any(|lun| !busy.get(lun) && self.has_room(lun))
    }

    /// Returns the LUN of an owner's write after `ahead` other slots have been written, as far as it can be
    /// known now.
    #[inline(always)] // called for every request that waits
    pub(crate) fn write_lun_ahead(&self, owner: u32, ahead: u32) -> u32 {
        self.route.lun_ahead(&self.addresses, &self.heads, owner, ahead)
    }

    /// Calls `visit` with the first unit of every block in SLC mode.
    pub(crate) fn each_slc(&self, visit: &mut dyn FnMut(u32)) {
        let blocks = (0..self.stock.blocks.count()).filter(|&block| self.stock.blocks[block].slc);
        blocks.for_each(|block| visit(block * self.shape().pages_per_block));
    }

    /// Returns the placement's own figures.
    pub(crate) fn placement_stats(&self) -> Vec<Stat> {
        self.route.placed.as_ref().map_or(Vec::new(), |placed| placed.policy.stats())
    }

    /// Returns what went to each front in this run; empty if there is one front, or if fronts are speeds.
    pub(crate) fn front_counts(&self) -> Vec<FrontCount> {
        self.route.placed.as_ref().map_or(Vec::new(), |placed| placed.front_counts(&self.heads))
    }
}

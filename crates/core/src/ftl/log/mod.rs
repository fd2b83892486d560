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
mod runs;
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
use placed::Placed;
pub(crate) use shape::{Shape, blocks_at_least, blocks_wanted, fronts, live_most, slc_blocks, sure_slots};
use slc::SlcCache;
pub(crate) use stock::Stock;
use writer::Writer;

use super::blocks::pool::BlockPool;
use super::slots::Slots;
use crate::flash::{Cause, Cells, Work};
use crate::ftl::Refreshed;
use crate::ftl::placement::FrontCount;
use crate::ftl::settings::{Settings, SlcFull};
use crate::util::{Bits, NONE, Stat, memory};

/// A log-structured store.
#[derive(Clone, Debug)]
pub struct Log {
    writer: Writer,
    mover: Mover,
    /// The SLC cache, if there is one.
    slc: Option<SlcCache>,
    /// Whether something must be chosen or finished before a write.
    chooses: bool,
}

/// A log is its writer, to which it adds moves.
impl Deref for Log {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.writer
    }
}

impl DerefMut for Log {
    fn deref_mut(&mut self) -> &mut Writer {
        &mut self.writer
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
        let writer = Writer::new(shape, settings, pool);
        let mover = Mover::new(writer.addresses.space.slots_per_block);
        let chooses = shape.dynamic || shape.serial;
        let mut log = Log { writer, mover, slc: None, chooses };
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
        self.mover.collect_in_background(&self.writer);
    }

    /// Forgets the numbers of programs and erases, and what was counted, which begin anew with the run.
    pub(crate) fn forget_numbers(&mut self) {
        (0..self.stock.blocks.count()).for_each(|block| self.writer.stock.blocks[block].after = 0);
        if let Some(placed) = &mut self.route.placed {
            placed.counts.fill((0, 0));
        }
    }

    /// Writes an owner's new version and invalidates the old version, after collecting garbage if necessary.
    #[inline]
    pub(crate) fn write(&mut self, under: &mut Under, asked: Asked) {
        if self.chooses {
            return self.write_chosen(under, asked);
        }
        let Asked { owner, cause, .. } = asked;
        let Log { writer, mover, .. } = self;
        let at = At::first(writer.route.lun(&writer.addresses, owner));
        if writer.heads[at].is_full() {
            if writer.wants_block(at.lun) {
                under.ask_back(at.lun);
            }
            mover.make_room(writer, under, at);
        }
        let old = writer.renew(under.slots, owner);
        let slot = writer.place(under.slots, at, owner);
        writer.program_placed(under.work, (at, cause), (owner, old), slot);
    }

    /// Does what [`Log::write`] does where something must be chosen or finished first.
    #[inline(never)] // keeps the path of most writes short
    fn write_chosen(&mut self, under: &mut Under, asked: Asked) {
        let Asked { owner, cause, .. } = asked;
        let Log { writer, mover, slc, .. } = self;
        let at = match writer.shape().serial {
            true => At::first(0),
            false => asked.choose((writer, mover, under), slc.filter(|slc| slc.on)),
        };
        if writer.heads[at].is_full() {
            mover.make_room(writer, under, at);
        }
        let old = writer.renew(under.slots, owner);
        let slot = writer.place(under.slots, at, owner);
        writer.leave_empty(under.slots, at);
        if !writer.shape().serial {
            writer.program_placed(under.work, (at, cause), (owner, old), slot);
        } else if !writer.is_begun(at) {
            writer.program_page(at, slot, cause, under.work);
        }
    }

    /// Invalidates an owner's data, if there is any.
    pub(crate) fn trim(&mut self, slots: &mut Slots, owner: u32) {
        let Writer { addresses, stock, route, durable, .. } = &mut self.writer;
        if let Some(placed) = &mut route.placed {
            placed.invalidated(addresses, stock, owner, slots.of(owner));
        }
        let old = slots.trim(owner);
        if old != NONE {
            durable.note_trim(addresses, owner, addresses.block(old));
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
            let laid = if self.shape().luns > 1 {
                // The next owner goes to another LUN.
                slots.tell(|medium| medium.write(first, NONE));
                self.place(slots, at, first);
                1
            } else {
                let laid = slots.prefill(rest.next, &owners[..owners.len().min(rest.left() as usize)], kind);
                self.heads[at].next += laid;
                let block = self.addresses.block(rest.next);
                self.stock.fill(at.lun, block, laid);
                laid
            };
            *owners = &owners[laid as usize..];
            self.stock.writes += u64::from(laid);
            work.prefill(rest.next, laid, Cause::Host);
            self.close_if_full(at);
        }
    }

    /// Notes that a trim page is about to be written ([`durable`]).
    pub(crate) fn trim_page_moves(&mut self, slots: &Slots, owner: u32) {
        self.writer.durable.moves(&self.writer.addresses, slots, owner);
    }

    /// Notes that all trim pages that were due have been programmed.
    pub(crate) fn trim_pages_written(&mut self, work: &mut Work) {
        self.writer.durable.all_written(&mut self.writer.stock, work);
    }

    /// Notes, after a power cut, that a slot holds a version of a trim page on which recovery still relies.
    pub(crate) fn rely(&mut self, slots: &mut Slots, owner: u32, slot: u32) {
        self.writer.durable.rely(&self.writer.addresses, slots, owner, slot);
    }

    /// Performs one step of a LUN's collection in the background, which fills up to `pages` pages ([`mover`]).
    pub(crate) fn background_step(&mut self, under: &mut Under, at: (u32, u32)) {
        self.mover.step(&mut self.writer, under, at);
    }

    /// Whether the collection of a victim on a LUN was begun in the background and has not ended.
    pub(crate) fn is_collecting(&self, lun: u32) -> bool {
        self.mover.is_collecting(lun)
    }

    /// Collects garbage on a LUN until the pool has an erased block of that LUN.
    pub(crate) fn reclaim(&mut self, under: &mut Under, lun: u32) {
        self.mover.reclaim(&mut self.writer, under, lun);
    }

    /// Folds the oldest full block of the SLC cache on a LUN; returns whether there was one.
    pub(crate) fn fold(&mut self, under: &mut Under, lun: u32) -> bool {
        self.mover.fold(&mut self.writer, under, lun)
    }

    /// Moves the data of a closed block elsewhere and erases the block, before it can no longer be read.
    pub(crate) fn refresh(&mut self, under: &mut Under, block: u32) -> Refreshed {
        self.mover.refresh(&mut self.writer, under, block)
    }

    /// Whether [`Log::relocate`] can set aside the rest of its destination.
    pub(crate) fn can_relocate(&self, lun: u32) -> bool {
        Mover::can_relocate(&self.writer, lun)
    }

    /// Programs the page buffers if they hold a newer version of something in a block. That may change which head of a
    /// LUN was last written, so whether [`Log::relocate`] may follow is to be asked afterwards.
    pub(crate) fn program_newer(&mut self, block: u32, slots: &mut Slots, work: &mut Work) {
        if self.durable.is_superseded(block) {
            self.flush(slots, work);
        }
    }

    /// Moves the live slots of one block into a reserve block, for wear levelling.
    ///
    /// # Panics
    /// If [`Log::can_relocate`] is false. Newer versions of what is moved must be programmed already
    /// ([`Log::program_newer`]).
    pub(crate) fn relocate(&mut self, under: &mut Under, blocks: (u32, u32)) {
        self.mover.relocate(&mut self.writer, under, blocks);
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
    #[inline]
    pub(crate) fn takes_last(&self) -> bool {
        self.heads[At::first(0)].is_full() && self.stock.held(0) + 1 >= self.shape().limit
    }

    /// Opens another block if the open one is full, after collecting garbage if necessary.
    pub(crate) fn open_next(&mut self, under: &mut Under) {
        self.mover.make_room(&mut self.writer, under, At::first(0));
    }

    /// Collects garbage until the log may take another block.
    pub(crate) fn collect_until_free(&mut self, under: &mut Under) {
        let mut gainless = 0;
        while self.stock.held(0) >= self.shape().limit {
            self.mover.collect(&mut self.writer, under, 0, &mut gainless);
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
    #[inline]
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

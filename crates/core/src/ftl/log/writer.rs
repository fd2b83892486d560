//! The writer: puts slots under a head, programs the pages that they fill, and closes the blocks.

use std::ops::Range;

use super::around::Under;
use super::durable::Durable;
use super::heads::{At, Heads, Rest};
use super::placed::page;
use super::route::Route;
use super::{Addresses, Shape, State, Stock};
use crate::flash::media::Kind;
use crate::flash::{Cause, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::placement::Page;
use crate::ftl::settings::Settings;
use crate::ftl::slots::Slots;
use crate::util::NONE;

/// What a log is, except for the moves within it.
#[derive(Clone, Debug)]
pub struct Writer {
    pub(crate) addresses: Addresses,
    pub(crate) stock: Stock,
    pub(super) heads: Heads,
    pub(crate) route: Route,
    pub(crate) durable: Durable,
}

impl Writer {
    /// Makes the writer of a log that has no blocks yet.
    pub(crate) fn new(shape: Shape, settings: &Settings, pool: &BlockPool) -> Writer {
        let addresses = Addresses::new(shape, settings, pool);
        let heads = Heads::new(addresses.space.luns);
        let (stock, route) = (Stock::new(&addresses, settings, pool.count()), Route::new(&addresses));
        let durable = Durable::new(&addresses);
        Writer { addresses, stock, heads, route, durable }
    }

    /// Returns the shape of the log.
    pub(crate) fn shape(&self) -> &Shape {
        &self.addresses.shape
    }

    /// Returns the purpose for which a block was taken.
    pub(super) fn kind_of(&self, block: u32) -> Kind {
        if self.stock.blocks[block].slc { Kind::Slc } else { self.shape().kind() }
    }

    /// Whether a LUN can take a page of data and still collect its garbage.
    pub(super) fn has_room(&self, lun: u32) -> bool {
        self.stock.has_room(lun, self.durable.has_trims())
    }

    /// Whether the page that a head fills is part-full.
    #[inline]
    pub(super) fn is_begun(&self, at: At) -> bool {
        self.addresses.in_page(self.heads[at].next) != 0
    }

    /// Whether copies under a head would fill a page that the host has begun.
    pub(super) fn fills_page_of_host(&self, at: At) -> bool {
        self.route.leads && self.is_begun(at)
    }

    /// Whether slots are smaller than pages and a page buffer that is being filled is part-full.
    #[inline]
    pub(crate) fn page_begun(&self) -> bool {
        self.shape().slots_per_page > 1 && self.route.buffers().any(|at| self.is_begun(at))
    }

    /// Whether the page of a slot is still in a page buffer.
    #[inline]
    pub(crate) fn buffered(&self, slot: u32) -> bool {
        self.shape().slots_per_page > 1 && self.fills_page_of(slot)
    }

    fn fills_page_of(&self, slot: u32) -> bool {
        let (block, page) = (self.addresses.block(slot), self.addresses.page(slot));
        let next = |at: At| self.heads[at].next;
        let fills = |at: At| self.is_begun(at) && self.addresses.page(next(at)) == page;
        self.stock.is(block, State::Open)
            && self.heads.find(self.addresses.group(slot), self.addresses.end(block)).is_some_and(fills)
    }

    /// Under dynamic allocation, turns to an idle LUN for the next page, if there is one. A page buffer that was begun
    /// is filled first.
    pub(super) fn choose_lun(&mut self, work: &mut Work) {
        let at = At { lun: self.route.cursor(), head: self.route.front };
        if self.shape().dynamic && (self.shape().slots_per_page == 1 || !self.is_begun(at)) {
            let lun = self.turn(at.head, at.lun, |_, lun| !work.is_busy(lun));
            work.occupy(lun);
        }
    }

    /// Moves the cursor of a front to the first LUN, from `lun` on, that can take data and still collect its garbage;
    /// LUNs that please come before all others. Returns that LUN.
    pub(super) fn turn(&mut self, front: u32, lun: u32, pleases: impl Fn(&Writer, u32) -> bool) -> u32 {
        let mut turn = (lun..self.shape().luns).chain(0..lun).filter(|&lun| self.has_room(lun));
        let next = turn.clone().find(|&lun| pleases(self, lun)).or_else(|| turn.next());
        let next = next.expect("the user capacity leaves room on some LUN");
        self.route.luns[front as usize] = next;
        next
    }

    /// Places the cursors of all fronts, which no page buffer holds to a LUN, on LUNs that can take data.
    pub(super) fn reset_cursors(&mut self) {
        for front in 0..self.route.luns.len() as u32 {
            self.turn(front, front % self.shape().luns, |_, _| true);
        }
    }

    /// Whether the next write on this LUN needs another block and the log may take one.
    #[inline]
    pub(super) fn wants_block(&self, lun: u32) -> bool {
        let by_class = || self.route.placed.as_ref().is_some_and(|placed| !placed.by_speed);
        self.stock.may_take(lun)
            && (self.heads[At::first(lun)].is_full() || by_class())
            && self.heads.anyones(lun).is_none()
    }

    /// Counts a write of an owner, and invalidates the previous version; returns the slot of that version, or [`NONE`].
    #[inline(always)] // called for every write
    pub(super) fn renew(&mut self, slots: &mut Slots, owner: u32) -> u32 {
        self.stock.writes += 1;
        let old = slots.of(owner);
        slots.tell(|medium| medium.write(owner, old));
        if old != NONE {
            self.invalidate(slots, old);
        }
        old
    }

    #[inline(always)] // called for every write
    pub(super) fn invalidate(&mut self, slots: &mut Slots, slot: u32) {
        slots.valid.clear(slot);
        self.stock.invalidate(self.addresses.group(slot), self.addresses.block(slot));
    }

    /// Puts an owner's data into the next slot of a head; returns that slot.
    #[inline(always)] // called for every write
    pub(super) fn place(&mut self, slots: &mut Slots, at: At, owner: u32) -> u32 {
        let rest = &mut self.heads[at];
        let slot = rest.next;
        rest.next += 1;
        let kind = self.addresses.shape.kind();
        slots.valid.set(slot);
        let block = self.stock.fill(at.lun, self.addresses.block(slot), 1);
        slots.place(slot, owner, || if block.slc { Kind::Slc } else { kind });
        slot
    }

    /// Copies slots, which have left their block, to a head that has room for them.
    #[inline]
    pub(super) fn place_copies(&mut self, under: &mut Under, at: At, copies: &[(u32, u32)]) {
        let rest = &mut self.heads[at];
        let first = rest.next;
        rest.next += copies.len() as u32;
        debug_assert!(rest.next <= rest.end, "the head has room for its copies");
        under.slots.valid.fill(first, rest.next);
        self.stock.fill(at.lun, self.addresses.block(first), copies.len() as u32);
        under.slots.place_copies(first, copies, self.shape().kind());
        if let Some(keeper) = &mut under.keeper {
            keeper.moved(copies);
        }
    }

    /// Programs the page of the slot where an owner's new version was placed, if the page is full; `old` is the slot of
    /// the previous version.
    #[inline(always)] // called for every write
    pub(super) fn program_placed(
        &mut self,
        work: &mut Work,
        (at, cause): (At, Cause),
        (owner, old): (u32, u32),
        slot: u32,
    ) {
        let Shape { slots_per_page, dynamic, .. } = self.addresses.shape;
        if slots_per_page == 1 {
            work.program(at.lun, slot, cause);
            self.close_if_full(at);
            if !dynamic {
                return;
            }
            self.durable.supersede(owner, old, 0);
        } else {
            self.durable.supersede(owner, old, self.route.front);
            if self.is_begun(at) {
                return;
            }
            work.program(at.lun, self.addresses.page(slot), cause);
            self.close_if_full(at);
        }
        self.host_goes_on(self.route.front, work);
    }

    /// Programs the page that a slot completes, and closes the block if this was its last page.
    pub(super) fn program_page(&mut self, at: At, slot: u32, cause: Cause, work: &mut Work) {
        work.program(self.addresses.lun(slot), self.addresses.page(slot), cause);
        self.close_if_full(at);
    }

    #[inline]
    pub(super) fn close_if_full(&mut self, at: At) {
        let rest = self.heads[at];
        if rest.is_full() {
            self.stock.close(at.lun, self.addresses.block(rest.end - 1), self.stock.writes);
        }
    }

    /// Skips the rest of a head's current page if that page is part-full; returns whether it was.
    #[inline]
    pub(super) fn pad(&mut self, slots: &mut Slots, at: At) -> bool {
        let next = self.heads[at].next;
        let begun = self.addresses.in_page(next);
        if begun > 0 {
            let (skipped, kind) =
                (self.shape().slots_per_page - begun, self.kind_of(self.addresses.block(next)));
            slots.tell(|medium| medium.pad(next, skipped, kind));
            self.heads[at].next += skipped;
        }
        begun > 0
    }

    /// Leaves empty what a head leaves empty after the slot that was filled last ([`Gap`]).
    pub(super) fn leave_empty(&mut self, slots: &mut Slots, at: At) {
        let Some(gap) = self.heads.gap.filter(|gap| gap.head == at.head) else { return };
        let next = self.heads[at].next;
        let block = self.addresses.block(next - 1);
        let filled = next - self.addresses.first(block);
        if filled % gap.line == gap.page {
            let rest = (gap.line - gap.page).min(self.heads[at].left());
            match gap.whole {
                true => slots.tell(|medium| medium.pad(next, rest, Kind::Slc)),
                false => slots.tell(|medium| medium.leave_out(block, filled + rest)),
            }
            self.heads[at].next += rest;
        }
    }

    /// Programs every part-full page buffer, with cause [`Cause::Pad`]. NAND pages of a word line that are full keep
    /// their own cause.
    pub(crate) fn flush(&mut self, slots: &mut Slots, work: &mut Work) {
        self.flush_of(None, slots, work);
    }

    /// Does what [`Writer::flush`] does or, if owners are given, only for the page buffers that hold their data.
    pub(crate) fn flush_of(&mut self, owners: Option<Range<u32>>, slots: &mut Slots, work: &mut Work) {
        let fronts = if self.shape().slots_per_page > 1 { self.route.luns.len() } else { 0 };
        for front in 0..fronts {
            let at = At { lun: self.route.luns[front], head: front as u32 };
            let page = self.addresses.page(self.heads[at].next);
            let waits = |slot| slot != NONE && self.addresses.page(slot) == page;
            let waits = |mut owners: Range<u32>| owners.any(|owner| waits(slots.of(owner)));
            if self.is_begun(at) && owners.clone().is_none_or(waits) {
                self.flush_buffer(at, slots, work);
            }
        }
    }

    fn flush_buffer(&mut self, at: At, slots: &mut Slots, work: &mut Work) {
        self.route.facing[at.lun as usize] = at.head;
        let begun = self.addresses.in_page(self.heads[at].next);
        self.pad(slots, at);
        work.chain();
        let last = self.heads[at].next - 1;
        self.leave_empty(slots, at);
        self.program_page(at, last, Cause::Pad, work);
        self.charge_full(slots, (last + 1 - self.shape().slots_per_page, begun), work);
        self.host_goes_on(at.head, work);
    }

    /// In a padded page that begins with the slot `first`, and of which `filled` slots have data, charges the NAND
    /// pages that are full to the host, or to the mapping; trim pages stay padding.
    fn charge_full(&self, slots: &Slots, (first, filled): (u32, u32), work: &mut Work) {
        let per_page = self.shape().slots_per_nand_page();
        let cause = if self.shape().gc == Cause::GcMap { Cause::Map } else { Cause::Host };
        let owners = (0..filled / per_page).map(|page| slots.spare.of(first + page * per_page));
        let trims = self.shape().pages()..self.shape().owners;
        work.charge(cause, Cause::Pad, owners.filter(|owner| !trims.contains(owner)).count() as u64);
    }

    /// Lets the host continue a front on the next LUN: what it had in the page buffer has been programmed.
    pub(super) fn host_goes_on(&mut self, front: u32, work: &mut Work) {
        self.durable.settle(front, work);
        let lun = self.route.luns[front as usize] + 1;
        self.turn(front, if lun == self.shape().luns { 0 } else { lun }, |_, _| true);
    }

    /// Opens a block of the log.
    #[inline]
    pub(super) fn open(&mut self, at: At, block: u32) {
        self.heads[at] = Rest { next: self.addresses.first(block), end: self.addresses.end(block) };
        self.stock.blocks[block].state = State::Open;
        let front = self.route.facing[at.lun as usize];
        if let Some(placed) = &mut self.route.placed {
            placed.opened[block as usize] = (front, self.stock.writes);
        }
    }

    /// Opens another block in SLC mode, which the cache may take.
    pub(super) fn open_cached(&mut self, under: &mut Under, at: At) {
        let block = under.pool.take(at.lun).expect("the cache may take a block");
        self.stock.hold(at.lun);
        self.open(at, block);
        self.stock.cache(at.lun, block);
        under.work.use_as_slc(block * self.shape().pages_per_block);
    }

    /// Gives a head without a block the first block of its LUN that any data may fill, if there is one; returns whether
    /// there was.
    #[inline]
    pub(super) fn resume(&mut self, at: At) -> bool {
        let Some(spare) = self.heads.anyones(at.lun) else { return false };
        self.heads[at] = self.heads.take(spare);
        true
    }

    /// Gives a head that is full another block for copies: one of the reserve or, if `fresh` is true, an erased block
    /// of the pool if there is one.
    #[inline]
    pub(super) fn next_for_copies(&mut self, under: &mut Under, at: At, fresh: bool) {
        self.turn_by_speed(under, at.lun, None);
        if self.heads[at].is_full() && !self.resume(at) {
            let fresh = if fresh { self.stock.take(at.lun, under.pool) } else { None };
            let block = fresh.unwrap_or_else(|| self.stock.reserve_pop(at.lun, under.pool, under.work));
            self.open(at, block);
        }
    }

    /// If the placement chooses by speed, makes the block that it chooses the one to be filled, unless there is no
    /// block to choose. For a write, which may be `hurried`, erased blocks are among the choices; for copies (`None`)
    /// they are not.
    #[inline]
    pub(super) fn turn_by_speed(&mut self, under: &mut Under, lun: u32, hurried: Option<bool>) {
        if self.route.is_by_speed() {
            self.fill_by_speed(under, lun, hurried);
        }
    }

    fn fill_by_speed(&mut self, under: &mut Under, lun: u32, hurried: Option<bool>) {
        let Writer { addresses, stock, heads, route, .. } = self;
        let Some(placed) = route.placed.as_deref_mut() else { return };
        let cause = if hurried.is_some() { Cause::Host } else { addresses.shape.gc };
        let page = Page { hurried: hurried == Some(true), ..page(lun, NONE, cause) };
        let parts = (&*addresses, &*stock, heads);
        if let Some(class) = placed.turn(parts, (under.pool, under.work.cells()), page, hurried.is_some()) {
            self.stock.hold(lun);
            let block = under.pool.take_class(lun, class);
            self.open(At::first(lun), block);
        }
    }

    /// Returns how many copies a head takes before something is to be done: in a serial log, up to the end of a page.
    pub(super) fn room_for_copies(&self, at: At) -> u32 {
        match self.shape().serial {
            true => self.shape().slots_per_page - self.addresses.in_page(self.heads[at].next),
            false => self.heads[at].left(),
        }
    }

    /// Names the pages that must be read to copy these slots.
    pub(super) fn name_sources(&self, leaving: &[(u32, u32)], work: &mut Work) {
        if self.shape().slots_per_nand_page() == 1 {
            return work.sources(leaving.iter().map(|&(live, _)| live));
        }
        leaving.iter().for_each(|&(live, _)| work.source(self.addresses.nand_page(live)));
    }

    /// Returns the block of a LUN that is to be collected next; it stays with the policy. `gainless` counts
    /// successive victims that gained nothing.
    #[inline]
    pub(super) fn choose_victim(&mut self, pool: &BlockPool, lun: u32, gainless: &mut u32) -> u32 {
        let victim = self.stock.choose(&self.addresses, lun, gainless, pool);
        if let Some(placed) = &mut self.route.placed {
            placed.collected(&self.stock, victim);
        }
        victim
    }

    /// Erases a block.
    #[inline]
    pub(super) fn erase(&mut self, under: &mut Under, block: u32, cause: Cause) {
        let first = self.addresses.first(block);
        let waits = self.shape().power_safe && self.shape().superblocks.is_some();
        let after = if waits { under.work.mark() } else { self.durable.after[block as usize] };
        under.work.erase_after(self.addresses.lun(first), self.addresses.page(first), cause, after);
        self.durable.after[block as usize] = 0;
        under.slots.erase(block);
        self.stock.regain(&self.addresses, block, under.pool, under.work);
    }
}

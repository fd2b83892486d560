//! The cursor: the LUN that is written next, for logs in which this does not follow from the owner. Pages go to the
//! LUNs in turn if slots are smaller than pages, and to the next idle LUN under dynamic allocation.
//!
//! If slots are smaller than pages, each front has a page buffer and a cursor of its own. Only the page at the front's
//! cursor can be part-full: it was begun by the host, and whoever else fills the rest of it lets the host go on elsewhere.

use std::ops::Range;

use super::{Log, Under};
use crate::flash::superblocks::Superblocks;
use crate::flash::{Cause, Work};
use crate::ftl::slots::Slots;
use crate::util::{Bits, NONE};

impl Log {
    /// Returns the LUN of the cursor.
    #[inline]
    fn cursor_lun(&self) -> u32 {
        self.cursor.luns[self.cursor.front as usize]
    }

    /// Returns the next slot of a front's open block on a LUN, or [`NONE`] if it has none there.
    fn next_of(&self, lun: u32, front: u32) -> u32 {
        let at = &self.luns[lun as usize];
        match self.active(lun) == front {
            true => at.next,
            false => self.fronts.next(lun, front),
        }
    }

    /// Whether the page that a front fills on a LUN is part-full.
    pub(super) fn is_begun_in(&self, lun: u32, front: u32) -> bool {
        let next = self.next_of(lun, front);
        next != NONE && self.addresses.in_page(next) != 0
    }

    /// Programs the page buffer of a front if it is part-full.
    pub(super) fn flush_front(&mut self, front: u32, slots: &mut Slots, work: &mut Work) {
        let lun = self.cursor.luns[front as usize];
        if self.is_begun_in(lun, front) {
            self.turn_to(lun, front);
            let begun = self.addresses.in_page(self.luns[lun as usize].next);
            self.pad(slots, lun);
            work.chain();
            let last = self.luns[lun as usize].next - 1;
            self.leave_line(slots, lun);
            self.program_page(last, Cause::Pad, work);
            self.charge_full(slots, (last + 1 - self.shape.slots_per_page, begun), work);
            self.host_goes_on(front, work);
        }
    }

    /// Does what [`Log::flush`] does, but only for the page buffers that hold data of these owners.
    pub(crate) fn flush_of(&mut self, owners: Range<u32>, slots: &mut Slots, work: &mut Work) {
        let fronts = if self.shape.slots_per_page > 1 { self.cursor.luns.len() as u32 } else { 0 };
        for front in 0..fronts {
            let next = self.next_of(self.cursor.luns[front as usize], front);
            let waits = |slot| slot != NONE && self.addresses.page(slot) == self.addresses.page(next);
            if next != NONE && owners.clone().any(|owner| waits(slots.of(owner))) {
                self.flush_front(front, slots, work);
            }
        }
    }

    /// Whether slots are smaller than pages and a page buffer that is being filled is part-full.
    #[inline]
    pub(crate) fn page_begun(&self) -> bool {
        self.shape.slots_per_page > 1
            && (0..).zip(&self.cursor.luns).any(|(front, &lun)| self.is_begun_in(lun, front))
    }

    /// Whether, before a write, its page buffer or its LUN is to be chosen, or a collection to be finished.
    #[inline]
    pub(crate) fn chooses(&self) -> bool {
        self.chooses
    }

    /// Turns to the page buffer of the front that takes an owner's next version, if slots are smaller than pages.
    #[inline(never)] // keeps the path of most writes short
    pub(super) fn choose_buffer_of_front(
        &mut self,
        under: &mut Under,
        owner: u32,
        cause: Cause,
        moved: &mut dyn FnMut(u32),
    ) {
        if self.shape.slots_per_page > 1 {
            let mut front = self.asked(under.slots, NONE, owner, cause, under.work);
            if self.caches(owner) {
                front = self.cached_buffer(under, (owner, front), moved);
            }
            self.cursor.front = front;
        }
    }

    /// Returns the LUN of the next write of this owner; under dynamic allocation, [`Log::choose_lun`] must have been
    /// called for it. If slots are smaller than pages, pages are filled one after another, and the LUNs take turns.
    #[inline]
    pub(crate) fn write_lun(&self, owner: u32) -> u32 {
        if self.cursor.leads { self.cursor_lun() } else { self.addresses.home(owner) }
    }

    /// Under dynamic allocation, chooses the LUN of the next page.
    #[inline(always)]
    pub(crate) fn choose_lun(&mut self, work: &mut Work) {
        if self.shape.dynamic {
            self.turn(work);
        }
    }

    /// Among the LUNs that can take data and still collect their garbage, turns to the next idle one or, if none
    /// is idle, to the next one. A page buffer that was begun is filled first.
    #[cold]
    fn turn(&mut self, work: &mut Work) {
        let lun = self.cursor_lun();
        if self.shape.slots_per_page == 1 || !self.is_begun_in(lun, self.cursor.front) {
            let mut turn = (lun..self.shape.luns).chain(0..lun).filter(|&lun| self.has_room(lun));
            let next = turn.clone().find(|&lun| !work.is_busy(lun)).or_else(|| turn.next());
            let next = next.expect("the user capacity leaves room on some LUN");
            self.cursor.luns[self.cursor.front as usize] = next;
            work.occupy(next);
        }
    }

    /// Whether the next page can go to a LUN that is not busy, or goes into the page buffer that was begun.
    pub(crate) fn finds_room(&self, busy: &Bits) -> bool {
        self.page_begun() || (0..self.shape.luns).any(|lun| !busy.get(lun) && self.has_room(lun))
    }

    /// Returns the LUN of an owner's write after `ahead` other slots have been written, as far as it can be
    /// known now.
    #[inline]
    pub(crate) fn write_lun_ahead(&self, owner: u32, ahead: u32) -> u32 {
        if let Some(of) = &self.addresses.superblocks {
            return self.superblock_ahead(of, owner, ahead);
        }
        if self.cursor.leads { self.cursor_ahead(ahead) } else { self.addresses.home(owner) }
    }

    /// Does what [`Log::write_lun_ahead`] does where the LUNs of a group take turns; returns a LUN of the flash.
    #[cold]
    fn superblock_ahead(&self, of: &Superblocks, owner: u32, ahead: u32) -> u32 {
        let next = |group, front| match self.next_of(group, front) {
            NONE => 0,
            next => next,
        };
        let (group, front, units) = if self.cursor.leads {
            let (group, front) = (self.cursor_lun(), self.cursor.front);
            let units = self.addresses.page(self.addresses.in_page(next(group, front)) + ahead);
            (self.addresses.luns.rem(group + units), front, units)
        } else {
            let group = self.addresses.home(owner);
            (group, self.active(group), ahead)
        };
        let unit = self.addresses.page(next(group, front)) + self.addresses.luns.div(units);
        of.luns_of(group).start + unit % of.luns()
    }

    fn cursor_ahead(&self, ahead: u32) -> u32 {
        let lun = self.cursor_lun();
        let next = self.next_of(lun, self.cursor.front);
        let filled = if next == NONE { 0 } else { self.addresses.in_page(next) };
        self.addresses.luns.rem(lun + self.addresses.page(filled + ahead))
    }

    /// Moves the cursor to the next LUN that can take data and still collect its garbage.
    pub(super) fn advance_cursor(&mut self) {
        self.advance_front(self.cursor.front);
    }

    fn advance_front(&mut self, front: u32) {
        let mut lun = self.cursor.luns[front as usize];
        for _ in 0..self.shape.luns {
            lun = (lun + 1) % self.shape.luns;
            if self.has_room(lun) {
                self.cursor.luns[front as usize] = lun;
                return;
            }
        }
        unreachable!("the user capacity leaves room on some LUN");
    }

    /// Places the cursors of all fronts, which no page buffer holds to a LUN, on LUNs that can take data.
    pub(super) fn reset_cursors(&mut self) {
        let luns = self.shape.luns;
        for front in 0..self.cursor.luns.len() as u32 {
            self.cursor.luns[front as usize] = (front + luns - 1) % luns;
            self.advance_front(front);
        }
    }

    /// Whether copies that go into the frontier of a LUN fill a page that the host has begun.
    pub(super) fn fills_page_of_host(&self, lun: u32) -> bool {
        self.shape.slots_per_page > 1 && self.addresses.in_page(self.luns[lun as usize].next) != 0
    }

    /// Lets the host continue a front on the next LUN: what it had in the page buffer has been programmed.
    pub(super) fn host_goes_on(&mut self, front: u32, work: &mut Work) {
        self.settle_superseded(front, work);
        self.advance_front(front);
    }

    /// Lets the host continue these fronts, given as a bit set.
    pub(super) fn hosts_go_on(&mut self, mut fronts: u64, work: &mut Work) {
        while fronts != 0 {
            self.host_goes_on(fronts.trailing_zeros(), work);
            fronts &= fronts - 1;
        }
    }

    /// Notes that an owner's new version is still in a page buffer, so that the block of the old version is not
    /// erased before the new one is programmed.
    pub(super) fn supersede(&mut self, owner: u32, old: u32) {
        if !self.shape.power_safe {
            return;
        }
        let front = self.cursor.front;
        if old != NONE {
            self.cursor.superseded.push((self.addresses.block(old), front));
            return;
        }
        let Some(trims) = self.trims.as_ref().filter(|_| owner < self.pages()) else { return };
        if trims.lpns.get(owner) {
            // The slot that held the owner's data until the trim is in one of these blocks.
            let (count, mut from) = (self.blocks.len() as u32, 0);
            while let Some(block) = trims.blocks.next_set(from, count) {
                self.cursor.superseded.push((block, front));
                from = block + 1;
            }
        }
    }

    /// Whether a block has a slot whose owner has a newer version in a page buffer.
    pub(super) fn is_superseded(&self, block: u32) -> bool {
        self.cursor.superseded.iter().any(|&(other, _)| other == block)
    }

    /// Notes that the page buffer of a front has been programmed.
    pub(super) fn settle_superseded(&mut self, front: u32, work: &mut Work) {
        if self.cursor.superseded.is_empty() {
            return;
        }
        let (number, blocks) = (work.mark(), &mut self.blocks);
        self.cursor.superseded.retain(|&(block, of)| {
            if of == front {
                blocks[block as usize].after = number;
            }
            of != front
        });
    }
}

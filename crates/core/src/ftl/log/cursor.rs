//! The cursor: the LUN that is written next, for logs in which this does not follow from the owner. Pages go to the
//! LUNs in turn if slots are smaller than pages, and to the next idle LUN under dynamic allocation.

use super::Log;
use crate::flash::Work;
use crate::util::{Bits, NONE};

impl Log {
    /// Whether slots are smaller than pages and the page buffer that is being filled is part-full.
    #[inline]
    pub(crate) fn page_begun(&self) -> bool {
        self.shape.slots_per_page > 1 && self.addresses.in_page(self.luns[self.cursor.lun as usize].next) != 0
    }

    /// Returns the LUN of the next write of this owner; under dynamic allocation, [`Log::choose_lun`] must have been
    /// called for it. If slots are smaller than pages, pages are filled one after another, and the LUNs take turns.
    #[inline]
    pub(crate) fn write_lun(&self, owner: u32) -> u32 {
        if self.cursor.leads { self.cursor.lun } else { self.addresses.home(owner) }
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
        if self.addresses.in_page(self.luns[self.cursor.lun as usize].next) == 0 {
            let mut turn = (self.cursor.lun..self.shape.luns)
                .chain(0..self.cursor.lun)
                .filter(|&lun| self.has_room(lun));
            let next = turn.clone().find(|&lun| !work.is_busy(lun)).or_else(|| turn.next());
            self.cursor.lun = next.expect("the user capacity leaves room on some LUN");
            work.occupy(self.cursor.lun);
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
        if self.cursor.leads { self.cursor_ahead(ahead) } else { self.addresses.home(owner) }
    }

    fn cursor_ahead(&self, ahead: u32) -> u32 {
        let filled = self.addresses.in_page(self.luns[self.cursor.lun as usize].next);
        self.addresses.luns.rem(self.cursor.lun + self.addresses.page(filled + ahead))
    }

    /// Moves the cursor to the next LUN that can take data and still collect its garbage.
    pub(super) fn advance_cursor(&mut self) {
        for _ in 0..self.shape.luns {
            self.cursor.lun = (self.cursor.lun + 1) % self.shape.luns;
            if self.has_room(self.cursor.lun) {
                return;
            }
        }
        unreachable!("the user capacity leaves room on some LUN");
    }

    /// Whether copies on a LUN fill a page that the host has begun.
    pub(super) fn fills_page_of_host(&self, lun: u32) -> bool {
        lun == self.cursor.lun && self.page_begun()
    }

    /// Lets the host continue on the next LUN: what it had in the page buffer has been programmed with the
    /// copies.
    pub(super) fn host_goes_on(&mut self, work: &mut Work) {
        self.settle_superseded(work);
        self.advance_cursor();
    }

    /// Notes that an owner's new version is still in a page buffer, so that the block of the old version is not
    /// erased before the new one is programmed.
    pub(super) fn supersede(&mut self, owner: u32, old: u32) {
        if !self.shape.power_safe {
            return;
        }
        if old != NONE {
            self.cursor.superseded.push(self.addresses.block(old));
            return;
        }
        let Some(trims) = self.trims.as_ref().filter(|_| owner < self.pages()) else { return };
        if trims.lpns.get(owner) {
            // The slot that held the owner's data until the trim is in one of these blocks.
            let (count, mut from) = (self.blocks.len() as u32, 0);
            while let Some(block) = trims.blocks.next_set(from, count) {
                self.cursor.superseded.push(block);
                from = block + 1;
            }
        }
    }

    /// Notes that the page buffer has been programmed.
    pub(super) fn settle_superseded(&mut self, work: &mut Work) {
        if self.cursor.superseded.is_empty() {
            return;
        }
        let number = work.mark();
        for at in 0..self.cursor.superseded.len() {
            self.blocks[self.cursor.superseded[at] as usize].after = number;
        }
        self.cursor.superseded.clear();
    }
}

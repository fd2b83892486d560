//! The frontier: which LUN and which block take the next slot, and the erased blocks of the reserve.

use super::{Block, Log, Lun, Shape, State, Under};
use crate::flash::{Cause, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::slots::Slots;
use crate::util::{Bits, NONE};

impl Log {
    /// Whether the page buffer that writes fill is part-full, if slots are smaller than pages.
    #[inline]
    pub(crate) fn page_begun(&self) -> bool {
        self.shape.slots_per_page > 1 && self.by_page.rem(self.luns[self.cursor as usize].next) != 0
    }

    /// Whether the slot's page is still in the open block's page buffer.
    #[inline]
    pub(crate) fn buffered(&self, slot: u32) -> bool {
        if self.shape.slots_per_page == 1 {
            return false;
        }
        let next = self.luns[self.slot_lun(slot) as usize].next;
        self.by_page.rem(next) != 0 && self.by_page.div(next) == self.by_page.div(slot)
    }

    /// Returns the LUN where static allocation puts an owner: channel first, then chip (VIOS, eq. (1)),
    /// unless another order is set.
    #[inline]
    pub(crate) fn home(&self, owner: u32) -> u32 {
        let page = self.by_page.div(owner);
        if self.cycle.is_empty() { self.lun_of.rem(page) } else { self.place_in_cycle(page) }
    }

    #[cold]
    fn place_in_cycle(&self, page: u32) -> u32 {
        self.cycle[self.cycle_of.rem(page) as usize]
    }

    /// Returns the LUN of the next write of this owner; under dynamic allocation, once [`Log::choose_lun`] has been
    /// called for it. If slots are smaller than pages, pages go to the LUNs in turn as they fill (model, "The
    /// stack").
    #[inline]
    pub(crate) fn write_lun(&self, owner: u32) -> u32 {
        if self.by_cursor { self.cursor } else { self.home(owner) }
    }

    /// Under dynamic allocation, chooses the LUN of the next page.
    #[inline(always)]
    pub(crate) fn choose_lun(&mut self, work: &mut Work) {
        if self.shape.dynamic {
            self.turn(work);
        }
    }

    /// Turns to the next idle LUN, or to the next one if none is idle, that can take data and still collect
    /// its garbage. A page buffer is filled first.
    #[cold]
    fn turn(&mut self, work: &mut Work) {
        if self.by_page.rem(self.luns[self.cursor as usize].next) == 0 {
            let mut turn =
                (self.cursor..self.shape.luns).chain(0..self.cursor).filter(|&lun| self.has_room(lun));
            let next = turn.clone().find(|&lun| !work.is_busy(lun)).or_else(|| turn.next());
            self.cursor = next.expect("the user capacity leaves room on some LUN");
            work.occupy(self.cursor);
        }
    }

    /// Whether the next page goes to a LUN that is not busy, or into the page buffer that was begun.
    pub(crate) fn finds_room(&self, busy: &Bits) -> bool {
        self.page_begun() || (0..self.shape.luns).any(|lun| !busy.get(lun) && self.has_room(lun))
    }

    /// Returns the LUN of an owner's write after `ahead` other slots have been written, as far as that is
    /// known now.
    #[inline]
    pub(crate) fn write_lun_ahead(&self, owner: u32, ahead: u32) -> u32 {
        if self.by_cursor { self.cursor_ahead(ahead) } else { self.home(owner) }
    }

    fn cursor_ahead(&self, ahead: u32) -> u32 {
        let filled = self.by_page.rem(self.luns[self.cursor as usize].next);
        self.lun_of.rem(self.cursor + self.by_page.div(filled + ahead))
    }

    /// Whether the next write of an owner on this LUN needs another block, which the log may take.
    #[inline]
    pub(crate) fn wants_block(&self, lun: u32) -> bool {
        let at = &self.luns[lun as usize];
        let open = self.placed.as_ref().map_or(!at.is_full(), |placed| placed.by_speed && !at.is_full());
        !open && self.fronts.anyones(lun).is_none() && at.held < self.shape.limit
    }

    /// Returns the number of open blocks of a LUN: the frontier and those that wait.
    #[inline]
    pub(super) fn open_blocks(&self, lun: u32) -> u32 {
        let at = &self.luns[lun as usize];
        u32::from(!at.is_full()) + self.fronts.waiting(lun).count_ones()
    }

    /// Skips the rest of a part-full page; returns whether there was one.
    pub(super) fn pad(&mut self, slots: &mut Slots, lun: u32) -> bool {
        let kind = self.kind();
        let at = &mut self.luns[lun as usize];
        let rest = self.by_page.rem(at.next);
        if rest == 0 {
            return false;
        }
        let skipped = self.shape.slots_per_page - rest;
        slots.tell(|medium| medium.pad(at.next, skipped, kind));
        at.next += skipped;
        true
    }

    /// Whether a LUN can take a page of data and still collect its garbage.
    pub(super) fn has_room(&self, lun: u32) -> bool {
        u64::from(self.luns[lun as usize].live + self.shape.slots_per_page) <= self.room()
    }

    /// Returns how many slots of data a LUN can have and still collect its garbage.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        let Shape { limit, reserve, fronts, slots_per_page, .. } = self.shape;
        let trim_pages = if self.trims.is_some() { self.shape.trim_pages } else { 0 };
        u64::from(limit - reserve - (fronts - 1)) * self.space.sure() - u64::from(slots_per_page + trim_pages)
    }

    /// Moves the cursor to the next LUN that can take data and still collect its garbage.
    pub(super) fn advance_cursor(&mut self) {
        for _ in 0..self.shape.luns {
            self.cursor = (self.cursor + 1) % self.shape.luns;
            if self.has_room(self.cursor) {
                return;
            }
        }
        unreachable!("the user capacity leaves room on some LUN");
    }

    /// Puts first versions of owners in place before time 0: [`Log::append`] without steps. It stops at an
    /// owner that already has a version, or whose place is not the next one of an open block; `owners` then
    /// begins there.
    pub(crate) fn prefill(&mut self, slots: &mut Slots, owners: &mut &[u32], work: &mut Work) {
        let kind = self.kind();
        while let Some(&first) = owners.first().filter(|_| !self.by_cursor && self.placed.is_none()) {
            let lun = self.home(first);
            let Lun { next, end, .. } = self.luns[lun as usize];
            if next == end || slots.of(first) != NONE {
                break;
            }
            let laid = if self.shape.luns > 1 {
                // The next owner goes elsewhere.
                slots.tell(|medium| medium.write(first, NONE));
                self.place(slots, lun, first);
                1
            } else {
                let laid = slots.prefill(next, &owners[..owners.len().min((end - next) as usize)], kind);
                let (at, block) = (&mut self.luns[lun as usize], self.by_block.div(next));
                (at.next, at.live) = (at.next + laid, at.live + laid);
                self.blocks[block as usize].valid += laid;
                laid
            };
            *owners = &owners[laid as usize..];
            self.writes += u64::from(laid);
            work.prefill(next, laid, Cause::Host);
            if next + laid == end {
                self.close_if_full(lun);
            }
        }
    }

    /// Puts an owner's data into the next slot of the frontier; returns that slot.
    #[inline(always)]
    pub(super) fn place(&mut self, slots: &mut Slots, lun: u32, owner: u32) -> u32 {
        let kind = self.kind();
        let at = &mut self.luns[lun as usize];
        let slot = at.next;
        at.next += 1;
        at.live += 1;
        slots.valid.set(slot);
        slots.place(slot, owner, || kind);
        let block = self.by_block.div(slot);
        self.blocks[block as usize].valid += 1;
        slot
    }

    /// Programs the page that a slot completes, and closes the block if it was the last page.
    pub(super) fn program_page(&mut self, slot: u32, cause: Cause, work: &mut Work) {
        work.program(self.slot_lun(slot), self.slot_page(slot), cause);
        self.close_if_full(self.by_group.div(slot));
    }

    #[inline]
    pub(super) fn close_if_full(&mut self, lun: u32) {
        let at = self.luns[lun as usize];
        if at.is_full() {
            let block = self.by_block.div(at.end - 1);
            let state = &mut self.blocks[block as usize];
            state.state = State::Closed;
            self.victims.close(lun, block, state.valid, self.writes);
        }
    }

    #[inline(never)] // keeps the path of most writes short
    pub(super) fn open_frontier(&mut self, under: &mut Under, lun: u32, moved: &mut impl FnMut(u32)) {
        let (mut gainless, front) = (0, self.active(lun));
        while self.luns[lun as usize].is_full() {
            if self.resume(lun) {
                break;
            }
            match self.take_block(lun, under.pool) {
                Some(block) => self.open(lun, block),
                None => self.collect(under, lun, &mut gainless, moved),
            }
            self.turn_to(lun, front);
        }
    }

    /// Takes an erased block, of a LUN or of all if they count as one, if there is one and the log may have
    /// another.
    pub(super) fn take_block(&mut self, lun: u32, pool: &mut BlockPool) -> Option<u32> {
        if self.luns[lun as usize].held >= self.shape.limit {
            return None;
        }
        let block = if self.serial.is_some() { self.take_next(pool) } else { pool.take(lun)? };
        self.luns[lun as usize].held += 1;
        Some(block)
    }

    /// If only blocks of the withheld space count as free: takes erased blocks until each LUN has those of
    /// the user's data, and counts them as closed and empty. Collecting one costs an erasure like any other.
    pub(crate) fn close_unwritten(&mut self, pool: &mut BlockPool) {
        for lun in 0..self.luns.len() as u32 {
            while self.held(lun) < self.shape.user_blocks + self.shape.reserve
                && let Some(block) = self.take_block(lun, pool)
            {
                self.blocks[block as usize] = Block { unwritten: true, ..Block::new(State::Closed) };
                self.victims.close(lun, block, 0, self.writes);
            }
        }
    }

    /// Gives a LUN whose frontier is full another block for copies: in the background an erased block of the
    /// pool, if there is one, before one of the reserve.
    pub(super) fn next_for_copies(&mut self, under: &mut Under, lun: u32, background: bool) {
        self.choose_frontier(under, lun, false, false);
        if self.luns[lun as usize].is_full() && !self.resume(lun) {
            let fresh = if background { self.take_block(lun, under.pool) } else { None };
            let block = fresh.unwrap_or_else(|| self.reserve_pop(lun, under.pool, under.work));
            self.open(lun, block);
        }
    }

    /// Makes an open block that waits, and that any data may fill, the frontier; returns whether there is one.
    pub(super) fn resume(&mut self, lun: u32) -> bool {
        let Some(front) = self.fronts.anyones(lun) else { return false };
        self.go_on(lun, front);
        true
    }

    /// Makes the waiting open block of a front the frontier.
    pub(super) fn go_on(&mut self, lun: u32, front: u32) {
        let next = self.fronts.take(lun, front);
        let end = self.end_of(self.by_block.div(next));
        let at = &mut self.luns[lun as usize];
        (at.next, at.end) = (next, end);
    }

    pub(super) fn open(&mut self, lun: u32, block: u32) {
        let end = self.end_of(block);
        let at = &mut self.luns[lun as usize];
        (at.next, at.end) = (block * self.slots_per_block, end);
        self.blocks[block as usize] = Block::new(State::Open);
        if let Some(placed) = &mut self.placed {
            placed.opened[block as usize] = (placed.active[lun as usize], self.writes);
        }
    }

    pub(super) fn reserve_push(&mut self, lun: u32, block: u32) {
        let at = &mut self.luns[lun as usize];
        self.blocks[block as usize] = Block { next: at.reserve, ..Block::new(State::Reserve) };
        at.reserve = block;
        at.reserve_len += 1;
    }

    /// Takes the reserve block that was erased last or, under wear levelling, the least worn one or, if the
    /// slowest goes first, the slowest.
    pub(super) fn reserve_pop(&mut self, lun: u32, pool: &BlockPool, work: &Work) -> u32 {
        let mut best = self.luns[lun as usize].reserve;
        assert!(best != NONE, "the reserve of LUN {lun} is empty");
        if pool.threshold().is_some() || (self.placed.is_some() && pool.slowest_first()) {
            let rank = |block| (u32::MAX - pool.class(block, work.cells()), pool.erase_count(block));
            let mut block = self.blocks[best as usize].next;
            while block != NONE {
                let levels = pool.threshold().is_some();
                let better = if levels { rank(block) < rank(best) } else { rank(block).0 < rank(best).0 };
                if better {
                    best = block;
                }
                block = self.blocks[block as usize].next;
            }
        }
        self.reserve_remove(lun, best);
        best
    }

    pub(super) fn reserve_remove(&mut self, lun: u32, block: u32) {
        let next = self.blocks[block as usize].next;
        let at = &mut self.luns[lun as usize];
        at.reserve_len -= 1;
        if at.reserve == block {
            at.reserve = next;
            return;
        }
        let mut before = at.reserve;
        while self.blocks[before as usize].next != block {
            before = self.blocks[before as usize].next;
        }
        self.blocks[before as usize].next = next;
    }
}

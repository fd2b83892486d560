//! The frontier of each LUN, which is the block whose next slot is written, and the erased blocks of the reserve.

use super::{Block, Log, Lun, Shape, State, Under};
use crate::flash::media::Kind;
use crate::flash::{Cause, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::slots::Slots;
use crate::util::NONE;

impl Log {
    /// Whether the page of a slot is still in the page buffer of the frontier.
    #[inline]
    pub(crate) fn buffered(&self, slot: u32) -> bool {
        if self.shape.slots_per_page == 1 {
            return false;
        }
        let lun = self.addresses.lun(slot);
        let next = match self.placed.is_some() {
            true => self.next_in(lun, self.addresses.block(slot)),
            false => self.luns[lun as usize].next,
        };
        self.addresses.in_page(next) != 0 && self.addresses.page(next) == self.addresses.page(slot)
    }

    /// Returns the next slot of a block if the block is open, else the first slot of its device, which begins a page.
    fn next_in(&self, lun: u32, block: u32) -> u32 {
        if self.blocks[block as usize].state != State::Open {
            return 0;
        }
        let (at, end) = (&self.luns[lun as usize], self.addresses.end(block));
        let waits = || self.fronts.find(lun, self.addresses.first(block), end);
        if at.end == end { at.next } else { waits().map_or(0, |(_, next)| next) }
    }

    /// Whether the next write on this LUN needs another block and the log may take one.
    #[inline]
    pub(crate) fn wants_block(&self, lun: u32) -> bool {
        let at = &self.luns[lun as usize];
        let open = self.placed.as_ref().map_or(!at.is_full(), |placed| placed.by_speed && !at.is_full());
        !open && self.fronts.anyones(lun).is_none() && self.may_take(lun)
    }

    /// Whether the log may have another block of all bits on a LUN.
    #[inline]
    fn may_take(&self, lun: u32) -> bool {
        let held = self.luns[lun as usize].held;
        held < self.shape.limit
            && (self.slc.is_none() || self.all_bits(lun) < self.shape.limit - self.shape.slc_blocks)
    }

    /// Returns the number of open blocks of a LUN: the frontier and the open blocks that wait.
    #[inline]
    pub(super) fn open_blocks(&self, lun: u32) -> u32 {
        let at = &self.luns[lun as usize];
        u32::from(!at.is_full()) + self.fronts.waiting(lun).count_ones()
    }

    /// Skips the rest of the frontier's current page if that page is part-full; returns whether it was.
    pub(super) fn pad(&mut self, slots: &mut Slots, lun: u32) -> bool {
        let at = self.luns[lun as usize];
        let rest = self.addresses.in_page(at.next);
        if rest == 0 {
            return false;
        }
        let kind = self.kind_of(self.addresses.block(at.next));
        let skipped = self.shape.slots_per_page - rest;
        slots.tell(|medium| medium.pad(at.next, skipped, kind));
        self.luns[lun as usize].next += skipped;
        true
    }

    /// In a padded page that begins with the slot `first`, and of which `filled` slots have data, charges the NAND pages
    /// that are full to the host, or to the mapping; trim pages stay padding.
    pub(super) fn charge_full(&self, slots: &Slots, (first, filled): (u32, u32), work: &mut Work) {
        let per_page = self.shape.slots_per_nand_page();
        let cause = if self.shape.gc == Cause::GcMap { Cause::Map } else { Cause::Host };
        let owners = (0..filled / per_page).map(|page| slots.spare.of(first + page * per_page));
        let trims = self.pages()..self.shape.owners;
        work.charge(cause, Cause::Pad, owners.filter(|owner| !trims.contains(owner)).count() as u64);
    }

    /// Whether a LUN can take a page of data and still collect its garbage.
    pub(super) fn has_room(&self, lun: u32) -> bool {
        u64::from(self.luns[lun as usize].live + self.shape.begun_slots()) <= self.room()
    }

    /// Returns how many slots of data a LUN can hold and still collect its garbage.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        let Shape { sure_blocks, reserve, fronts, slots_per_page, slc_blocks, .. } = self.shape;
        let trim_pages = if self.trims.is_some() { self.shape.trim_pages } else { 0 };
        u64::from(sure_blocks - slc_blocks - reserve - (fronts - 1)) * self.addresses.space.sure()
            - u64::from(slots_per_page + trim_pages)
    }

    /// Puts the first versions of owners in place before time 0, like [`Log::append`] but without steps. It
    /// stops at an owner that already has a version, or whose place is not the next slot of an open block;
    /// `owners` then begins with that owner.
    pub(crate) fn prefill(&mut self, slots: &mut Slots, owners: &mut &[u32], work: &mut Work) {
        let kind = self.kind();
        while let Some(&first) = owners.first().filter(|_| !self.cursor.leads && self.placed.is_none()) {
            let lun = self.addresses.home(first);
            let Lun { next, end, .. } = self.luns[lun as usize];
            if next == end || slots.of(first) != NONE {
                break;
            }
            let laid = if self.shape.luns > 1 {
                // The next owner goes to another LUN.
                slots.tell(|medium| medium.write(first, NONE));
                self.place(slots, lun, first);
                1
            } else {
                let laid = slots.prefill(next, &owners[..owners.len().min((end - next) as usize)], kind);
                let (at, block) = (&mut self.luns[lun as usize], self.addresses.block(next));
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
        let block = &mut self.blocks[self.addresses.block(slot) as usize];
        slots.place(slot, owner, || if block.slc { Kind::Slc } else { kind });
        block.valid += 1;
        slot
    }

    /// Programs the page that a slot completes, and closes the block if this was its last page.
    pub(super) fn program_page(&mut self, slot: u32, cause: Cause, work: &mut Work) {
        work.program(self.addresses.lun(slot), self.addresses.page(slot), cause);
        self.close_if_full(self.addresses.group(slot));
    }

    #[inline]
    pub(super) fn close_if_full(&mut self, lun: u32) {
        let at = self.luns[lun as usize];
        if at.is_full() {
            let block = self.addresses.block(at.end - 1);
            let state = &mut self.blocks[block as usize];
            if state.slc {
                return self.close_cached(lun, block);
            }
            state.state = State::Closed;
            self.victims.close(lun, block, state.valid, self.writes);
        }
    }

    #[inline(never)] // keeps the path of most writes short
    pub(super) fn open_frontier(&mut self, under: &mut Under, lun: u32, moved: &mut impl FnMut(u32)) {
        let (mut gainless, front) = (0, self.active(lun));
        if self.is_cache(front) {
            return self.open_cached(under, lun);
        }
        while self.luns[lun as usize].is_full() {
            if self.resume(lun) {
                break;
            }
            match self.take_block(lun, under.pool) {
                Some(block) => self.open(lun, block),
                None if self.cache_gives(lun) => _ = self.fold(under, lun, moved),
                None => self.collect(under, lun, &mut gainless, moved),
            }
            self.turn_to(lun, front);
        }
    }

    /// Takes an erased block of a LUN (of any LUN, if all LUNs count as one), if there is one and the log may
    /// have another block.
    pub(super) fn take_block(&mut self, lun: u32, pool: &mut BlockPool) -> Option<u32> {
        if !self.may_take(lun) {
            return None;
        }
        let block = if self.serial.is_some() { self.take_next(pool) } else { pool.take(lun)? };
        self.luns[lun as usize].held += 1;
        Some(block)
    }

    /// Takes erased blocks until the log has as many blocks on each LUN as the user's data may fill, and treats them as
    /// closed and empty. This is for settings under which only the blocks of the withheld space count as free.
    /// Collecting such a block costs an erasure, like collecting any other.
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

    /// Gives a LUN whose frontier is full another block for copies: one of the reserve or, in the background,
    /// an erased block of the pool if there is one.
    pub(super) fn next_for_copies(&mut self, under: &mut Under, lun: u32, background: bool) {
        self.choose_frontier(under, lun, false, false);
        if self.luns[lun as usize].is_full() && !self.resume(lun) {
            let fresh = if background { self.take_block(lun, under.pool) } else { None };
            let block = fresh.unwrap_or_else(|| self.reserve_pop(lun, under.pool, under.work));
            self.open(lun, block);
        }
    }

    /// Turns an open block that waits, and that any data may fill, into the frontier; returns whether there was such a
    /// block.
    pub(super) fn resume(&mut self, lun: u32) -> bool {
        let Some(front) = self.fronts.anyones(lun) else { return false };
        self.go_on(lun, front);
        true
    }

    /// Makes a front's waiting open block the frontier.
    pub(super) fn go_on(&mut self, lun: u32, front: u32) {
        let next = self.fronts.take(lun, front);
        let end = self.addresses.end(self.addresses.block(next));
        let at = &mut self.luns[lun as usize];
        (at.next, at.end) = (next, end);
    }

    pub(super) fn open(&mut self, lun: u32, block: u32) {
        let end = self.addresses.end(block);
        let at = &mut self.luns[lun as usize];
        (at.next, at.end) = (self.addresses.first(block), end);
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

    /// Takes a block of the reserve: the one that was erased last; under wear levelling, the least worn one; if blocks
    /// are taken slowest first, the slowest one.
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

//! Garbage collection and relocation: how a log regains erased blocks.

use super::run::Run;
use super::{Block, Log, State, Under};
use crate::flash::{Cause, Target, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::gc::Need;
use crate::ftl::slots::Slots;

impl Log {
    /// Collects garbage on a LUN until the pool has an erased block of that LUN.
    pub(crate) fn reclaim(&mut self, under: &mut Under, lun: u32) {
        let mut gainless = 0;
        self.end_begun(under, lun, &mut |_| ());
        while under.pool.free(lun) == 0 {
            let at = &mut self.luns[lun as usize];
            if self.fronts.anyones(lun).is_none() {
                self.collect(under, lun, &mut gainless, &mut |_| ());
            } else if at.is_full() {
                self.resume(lun);
            } else {
                // Two open blocks are one too many: collecting only closed blocks may then gain nothing.
                let block = self.addresses.block(at.next);
                at.next = at.end;
                self.empty(under, lun, block, self.shape.gc, &mut |_| ());
            }
        }
    }

    /// Collects one victim: moves its live slots and erases it. `gainless` counts successive victims that gained
    /// nothing.
    #[inline(never)] // keeps the path of most writes short
    pub(super) fn collect(
        &mut self,
        under: &mut Under,
        lun: u32,
        gainless: &mut u32,
        moved: &mut impl FnMut(u32),
    ) {
        if self.end_begun(under, lun, moved) {
            return;
        }
        let proven = under.slots.medium().is_none() || self.has_gainful(lun);
        assert!(proven, "LUN {lun} has closed blocks for its live slots and none more");
        let victim = self.choose_victim(lun, gainless, under.pool);
        assert!(*gainless <= self.luns[lun as usize].held, "collecting LUN {lun} gains nothing");
        self.empty(under, lun, victim, self.shape.gc, moved);
    }

    /// Returns the block of a LUN that is to be collected next; it stays with the policy. `gainless` counts
    /// successive victims that gained nothing.
    pub(super) fn choose_victim(&mut self, lun: u32, gainless: &mut u32, pool: &BlockPool) -> u32 {
        let blocks = &self.blocks;
        let need = Need { lun, now: self.writes, gainless: *gainless };
        let valid = |block: u32| blocks[block as usize].valid;
        let victim = self.victims.choose(need, &valid, &|block| pool.erase_count(block));
        let gains = self.addresses.space.gainful(victim, blocks[victim as usize].valid);
        *gainless = if gains { 0 } else { *gainless + 1 };
        if let Some(placed) = &mut self.placed {
            let (front, opened) = placed.opened[victim as usize];
            placed.policy.collected(front, self.writes - opened);
        }
        victim
    }

    /// Moves the live slots of a block to the frontier and erases the block.
    pub(super) fn empty(
        &mut self,
        under: &mut Under,
        lun: u32,
        victim: u32,
        cause: Cause,
        moved: &mut (impl FnMut(u32) + ?Sized),
    ) {
        if self.is_superseded(victim) {
            // Newer versions of the victim's data are in a page buffer: a power cut after the erasure would lose both
            // versions.
            self.flush(under.slots, under.work);
        }
        self.leave_cache(lun);
        let mut run =
            Run { begun: self.fills_page_of_host(lun), copies: false, hosts: 0, slots: 0, trims: 0 };
        let stated = self.trims.is_some() && self.state_trims(under, lun, victim, &mut run);
        let blocks = &self.blocks;
        if blocks[victim as usize].state == State::Closed {
            self.victims.remove(lun, victim, &|block| blocks[block as usize].valid);
        }
        run.copies = stated;
        let mut leaving = self.take_live(under.slots, victim);
        self.sort_copies(lun, (cause, stated), &mut leaving);
        self.name_sources(&leaving, under.work);
        self.choose_frontier(under, lun, false, false);
        let mut rest = &leaving[..];
        while !rest.is_empty() {
            let sorted = self.next_run(lun, &mut run, under);
            if self.luns[lun as usize].is_full() {
                self.note_copies(lun, &mut run, under.work);
                self.next_for_copies(under, lun, false);
            }
            let at = &self.luns[lun as usize];
            let most = sorted.unwrap_or(at.end - at.next);
            let (copies, later) = rest.split_at(rest.len().min(most as usize));
            self.place_copies(under.slots, lun, copies, moved);
            run.slots += copies.len() as u32;
            run.copies = true;
            self.close_if_full(lun);
            rest = later;
        }
        self.leaving = leaving;
        self.note_copies(lun, &mut run, under.work);
        self.end_run(lun, &mut run, under.slots);
        self.copy(lun, victim, cause, under.work);
        self.hosts_go_on(run.hosts, under.work);
        self.erase(under, victim, cause);
        if stated {
            self.trims_settled(under.work.mark());
        }
        if let Some(trims) = &mut self.trims {
            trims.erased(victim);
        }
    }

    /// Takes the live slots of a block, with their owners, and begins to load the owners' map entries into the
    /// CPU cache.
    fn take_live(&mut self, slots: &mut Slots, victim: u32) -> Vec<(u32, u32)> {
        let first = self.addresses.first(victim);
        let end = self.addresses.end(victim);
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.clear();
        leaving.resize(self.blocks[victim as usize].valid as usize, (0, 0));
        let mut count = 0;
        slots.each_live(first, end, |live, owner| {
            leaving[count] = (live, owner);
            count += 1;
        });
        debug_assert_eq!(count, leaving.len(), "a block counts its live slots");
        slots.valid.take(first, end);
        leaving
    }

    /// Names the pages that must be read to copy these slots.
    fn name_sources(&self, leaving: &[(u32, u32)], work: &mut Work) {
        if self.shape.slots_per_nand_page() == 1 {
            return work.sources(leaving.iter().map(|&(live, _)| live));
        }
        for &(live, _) in leaving {
            work.source(self.addresses.nand_page(live));
        }
    }

    /// Copies slots into the frontier, which has room for them; the number of the LUN's live slots does not change.
    fn place_copies(
        &mut self,
        slots: &mut Slots,
        lun: u32,
        run: &[(u32, u32)],
        moved: &mut (impl FnMut(u32) + ?Sized),
    ) {
        let at = &mut self.luns[lun as usize];
        let first = at.next;
        at.next += run.len() as u32;
        debug_assert!(at.next <= at.end, "the frontier of LUN {lun} has room for its copies");
        slots.valid.fill(first, at.next);
        self.blocks[self.addresses.block(first) as usize].valid += run.len() as u32;
        slots.place_copies(first, run, self.kind());
        let pages = self.pages();
        for &(_, owner) in run {
            if owner < pages {
                moved(owner);
            }
        }
    }

    /// Ends a run of copies: they are programmed before the block they come from is erased, so the rest of their last
    /// page stays empty. If there are no copies, a page that the host has begun stays part-full.
    pub(super) fn end_run(&mut self, lun: u32, run: &mut Run, slots: &mut Slots) {
        if std::mem::take(&mut run.copies) {
            run.hosts |= u64::from(run.begun) << self.active(lun);
            if self.pad(slots, lun) {
                self.close_if_full(lun);
            }
        }
    }

    /// Names the pages of the last copies in the frontier as targets, unless they have been named.
    pub(super) fn note_copies(&mut self, lun: u32, run: &mut Run, work: &mut Work) {
        let (slots, trims) = (std::mem::take(&mut run.slots), std::mem::take(&mut run.trims));
        if slots > 0 {
            self.count_moved(lun, slots);
            let last = self.luns[lun as usize].next - 1;
            let placed = last + 1 - slots;
            let first = self.addresses.page(placed);
            work.target(Target {
                first,
                units: self.addresses.page(last) + 1 - first,
                slots: self.shape.slots_per_page,
                // The first copy may be in a page that the host has begun.
                begun: self.addresses.in_page(placed) + trims,
                copies: slots - trims,
            });
        }
    }

    /// Emits the copies from a victim that have been named. Those of a superblock go to several LUNs, and must be there
    /// before it is erased.
    pub(super) fn copy(&mut self, lun: u32, victim: u32, cause: Cause, work: &mut Work) {
        let waits = self.shape.superblocks.is_some() && work.has_targets();
        work.copy(lun, cause);
        if waits {
            self.blocks[victim as usize].after = work.mark();
        }
    }

    /// Erases a block; if it is past its limit it is retired, and a spare block replaces it.
    pub(super) fn erase(&mut self, under: &mut Under, block: u32, cause: Cause) {
        let first = self.addresses.first(block);
        let (lun, group) = (self.addresses.lun(first), self.addresses.group(first));
        if self.shape.power_safe && self.shape.superblocks.is_some() {
            self.blocks[block as usize].after = under.work.mark();
        }
        under.work.erase_after(lun, self.addresses.page(first), cause, self.blocks[block as usize].after);
        under.slots.erase(block);
        under.pool.erased(lun, block);
        if self.blocks[block as usize].slc {
            self.cached_erased(group);
        }
        self.blocks[block as usize] = Block::new(State::Absent);
        let mut spare = under.pool.successor(lun, block);
        if self.is_short(group) {
            self.reserve_push(group, spare);
            return;
        }
        if let Some(serial) = &mut self.serial {
            serial.held[lun as usize] -= 1;
        } else if under.pool.threshold().is_some() {
            // The most worn blocks stay in the reserve, where wear levelling finds them.
            self.reserve_push(group, spare);
            spare = self.reserve_pop(group, under.pool, under.work);
        }
        self.blocks[spare as usize] = Block::new(State::Absent);
        self.luns[group as usize].held -= 1;
        under.pool.push_class(spare, under.pool.class(spare, under.work.cells()));
    }

    /// Whether a block is closed.
    pub(crate) fn is_closed(&self, block: u32) -> bool {
        self.blocks[block as usize].state == State::Closed
    }

    /// Whether a block is an erased block of the reserve.
    pub(crate) fn is_reserve(&self, block: u32) -> bool {
        self.blocks[block as usize].state == State::Reserve
    }

    /// Returns some reserve block of a LUN.
    pub(crate) fn any_reserve(&self, lun: u32) -> u32 {
        self.luns[lun as usize].reserve
    }

    /// Exchanges the reserve block `out` for the erased block `into`.
    pub(crate) fn exchange_reserve(&mut self, lun: u32, out: u32, into: u32) {
        self.reserve_remove(lun, out);
        self.blocks[out as usize] = Block::new(State::Absent);
        self.reserve_push(lun, into);
    }

    /// Whether [`Log::relocate`] can set aside the rest of its destination: the frontier is full or nothing is set
    /// aside yet, no page buffer is part-full, and the reserve is whole.
    pub(crate) fn can_relocate(&self, lun: u32) -> bool {
        let at = &self.luns[lun as usize];
        !self.is_short(lun)
            && (at.is_full() || self.fronts.anyones(lun).is_none())
            && self.addresses.in_page(at.next) == 0
    }

    /// Programs the page buffers if they hold a newer version of something in a block. That may turn a LUN to another
    /// front, so whether [`Log::relocate`] may follow is to be asked afterwards.
    pub(crate) fn program_newer(&mut self, block: u32, slots: &mut Slots, work: &mut Work) {
        if self.is_superseded(block) {
            self.flush(slots, work);
        }
    }

    /// Moves the live slots of the closed or open block `from` into the reserve block `into`, with cause
    /// [`Cause::Wear`], and erases `from`. The frontier stays the same, unless it is `from`; the remainder of `into` is
    /// set aside or takes the place of `from`.
    ///
    /// # Panics
    /// If [`Log::can_relocate`] is false. Newer versions of what is in `from` must be programmed already
    /// ([`Log::program_newer`]).
    pub(crate) fn relocate(
        &mut self,
        under: &mut Under,
        lun: u32,
        (from, into): (u32, u32),
        moved: &mut dyn FnMut(u32),
    ) {
        assert!(self.can_relocate(lun), "LUN {lun} has nowhere to set its frontier aside");
        let at = &mut self.luns[lun as usize];
        let (mut next, end) = (at.next, at.end);
        if self.blocks[from as usize].state == State::Open {
            let first = self.addresses.first(from);
            match self.fronts.find(lun, first, self.addresses.end(from)) {
                Some((front, _)) => _ = self.fronts.take(lun, front),
                None => next = end,
            }
        }
        self.reserve_remove(lun, into);
        self.open(lun, into);
        self.empty(under, lun, from, Cause::Wear, moved);
        if next != end {
            let at = &mut self.luns[lun as usize];
            if !at.is_full() {
                self.fronts.put(lun, self.fronts.aside(), at.next);
            }
            (at.next, at.end) = (next, end);
        }
    }
}

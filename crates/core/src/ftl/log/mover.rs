//! The mover: moves the live slots of a block along the route, and erases the block.
//!
//! Everything that regains or frees a block is a move: collection in the foreground and in the background, a block
//! given back to another log, wear levelling, folding, refresh, and the collection of a serial log. They differ in the
//! block, in the cause, and in how much is moved at once ([`Move`]).
//!
//! **A move takes at most one block of the reserve, and gives one back.** The live slots go to the heads of their
//! fronts; those that find no room there go together into one block of the reserve, which has room for them, as they
//! fill at most one block; the erased block refills the reserve or goes to the pool. A move never writes into another
//! log, so moves do not nest. So a move never runs out of room, whatever block it moves, and collecting a block that
//! gains nothing loses nothing: a victim's live slots never fill more pages than the victim had. Check mode verifies
//! after every move that the reserve is whole.
//!
//! **In the background** (what firmware calls background or idle collection) a victim is copied a few pages at a time
//! while its LUN has nothing to do, and erased in a step of its own; requests can overtake the steps. The victim leaves
//! the policy when its collection begins. Until it is erased its slots stay readable, and the host may invalidate them;
//! slots that it does invalidate are not copied. When a head has no room left, copies go to an erased block of the pool
//! or, if the pool has none, to a block of the reserve, which then takes all later copies of the victim. A log whose
//! reserve is short therefore finishes the victim before anything else is written; one that must move another block
//! first finishes the victim that was begun. The collection of a victim begins in the background only where collecting
//! some closed block gains a page, so that policies that take any block (`fifo`, `random`) do not move the data of a
//! full log over and over.
//!
//! **Wear levelling** moves a block into one that it has chosen from the reserve, and in exchange gives the reserve the
//! block that it has erased. What is left of the destination is set aside, at most one block on each LUN, and is
//! written before anything is collected for a write; before anything is reclaimed for another log, the open block's
//! live slots are moved there. So a log that collects has nothing set aside.

use std::ops::{Deref, DerefMut};

use super::around::Under;
use super::blocks::State;
use super::carry::{Carrier, Move, Run};
use super::heads::At;
use super::writer::Writer;
use crate::flash::{Cause, Work};
use crate::ftl::slots::Slots;
use crate::util::NONE;

/// What became of a block whose data an FTL was to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// The data were moved.
    Moved,
    /// The block cannot be moved now: it is being written, or another collection comes first.
    Later,
    /// The block holds no data that this FTL moves.
    Needless,
}

/// What is being moved.
#[derive(Clone, Debug)]
pub struct Mover {
    writer: Writer,
    /// For each LUN the block whose collection was begun in the background, or [`NONE`], and how many victims in
    /// succession gained nothing; empty if nothing is collected in the background.
    begun: Vec<(u32, u32)>,
    carrier: Carrier,
}

/// A mover is a writer, to which it adds moves.
impl Deref for Mover {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.writer
    }
}

impl DerefMut for Mover {
    fn deref_mut(&mut self) -> &mut Writer {
        &mut self.writer
    }
}

impl Mover {
    pub(crate) fn new(writer: Writer) -> Mover {
        let carrier = Carrier::new(writer.addresses.space.slots_per_block);
        Mover { writer, begun: Vec::new(), carrier }
    }

    /// Prepares for [`Mover::step`].
    pub(crate) fn collect_in_background(&mut self) {
        self.begun = vec![(NONE, 0); self.stock.luns().len()];
    }

    /// Whether there are steps in the background.
    pub(crate) fn in_background(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Whether the collection of a victim on a LUN was begun in the background and has not ended.
    pub(crate) fn is_collecting(&self, lun: u32) -> bool {
        self.begun.get(lun as usize).is_some_and(|&(block, _)| block != NONE)
    }

    /// Finishes the collection that was begun in the background on a LUN; returns whether there was one.
    pub(super) fn end_begun(&mut self, under: &mut Under, lun: u32) -> bool {
        let Some((begun, _)) = self.begun.get_mut(lun as usize) else { return false };
        let block = std::mem::replace(begun, NONE);
        if block != NONE {
            self.empty(under, block, self.shape().gc);
        }
        block != NONE
    }

    /// Collects one victim: moves its live slots and erases it. `gainless` counts successive victims that gained
    /// nothing.
    #[inline]
    pub(super) fn collect(&mut self, under: &mut Under, lun: u32, gainless: &mut u32) {
        if self.end_begun(under, lun) {
            return;
        }
        let proven = under.slots.medium().is_none() || self.stock.has_gainful(lun);
        assert!(proven, "LUN {lun} has closed blocks for its live slots and none more");
        let victim = self.choose_victim(under.pool, lun, gainless);
        assert!(*gainless <= self.stock.held(lun), "collecting LUN {lun} gains nothing");
        self.empty(under, victim, self.shape().gc);
    }

    /// Gives a head that is full another block for writes: one that waits, an erased one, or what the SLC cache gives
    /// or collection regains.
    pub(super) fn make_room(&mut self, under: &mut Under, at: At) {
        let mut gainless = 0;
        if self.heads.has_gap(at.head) {
            return self.open_cached(under, at);
        }
        while self.heads[at].is_full() && !self.resume(at) {
            match self.stock.take(at.lun, under.pool) {
                Some(block) => self.open(at, block),
                None if self.stock.cache_gives(at.lun) => _ = self.fold(under, at.lun),
                None => self.collect(under, at.lun, &mut gainless),
            }
            self.route.facing[at.lun as usize] = at.head;
        }
    }

    /// Collects garbage on a LUN until the pool has an erased block of that LUN.
    pub(crate) fn reclaim(&mut self, under: &mut Under, lun: u32) {
        let (mut gainless, at) = (0, At::first(lun));
        self.end_begun(under, lun);
        while under.pool.free(lun) == 0 {
            if self.heads.anyones(lun).is_none() {
                self.collect(under, lun, &mut gainless);
            } else if self.heads[at].is_full() {
                self.resume(at);
            } else {
                // Two open blocks are one too many: collecting only closed blocks may then gain nothing.
                let next = self.heads[at].next;
                self.heads.take(at);
                let block = self.addresses.block(next);
                self.empty(under, block, self.shape().gc);
            }
        }
    }

    /// Performs one step of a LUN's collection: chooses a victim if none is being collected, and copies its live
    /// slots into up to `pages` pages, or erases it if no live slot is left in it.
    ///
    /// # Panics
    /// If nothing is collected in the background, or the LUN has no closed block.
    pub(crate) fn background_step(&mut self, under: &mut Under, (lun, pages): (u32, u32)) {
        let (victim, gainless) = &mut self.begun[lun as usize];
        if *victim == NONE {
            *victim = self.writer.choose_victim(under.pool, lun, gainless);
            self.writer.stock.begin(lun, *victim);
        }
        let victim = *victim;
        let valid = self.stock.blocks[victim].valid;
        let states = valid <= pages * self.shape().slots_per_page && self.durable.relies(victim);
        let cause = self.shape().gc;
        if valid > 0 && !states {
            let mut run = Run::begin(self, lun);
            let what = Move { lun, block: victim, cause, pages: Some(pages) };
            return self.carrier.carry(&mut self.writer, under, (what, &mut run));
        }
        self.begun[lun as usize].0 = NONE;
        if self.durable.has_trims() || self.durable.is_superseded(victim) {
            // Other data may have to be on flash first. Trim pages are written with the last copies, and
            // the erasure follows in the same step: until then nothing may rely on them.
            self.empty(under, victim, cause);
        } else {
            self.erase(under, victim, cause);
        }
    }

    /// Folds the oldest full block of the SLC cache on a LUN; returns whether there was one.
    pub(crate) fn fold(&mut self, under: &mut Under, lun: u32) -> bool {
        let Some(block) = self.stock.oldest_cached(lun) else { return false };
        self.end_begun(under, lun);
        self.empty(under, block, Cause::Fold);
        true
    }

    /// Moves the live slots of a closed block before they can no longer be read (`ftl.refresh`). A block is refreshed
    /// as a victim is collected, but chosen for its errors, not for what collecting it gains.
    pub(crate) fn refresh(&mut self, under: &mut Under, block: u32) -> Refreshed {
        let lun = self.addresses.group_of(block);
        // Whatever was begun, or set aside, needs the reserve or comes first.
        let comes_first =
            self.is_collecting(lun) || self.stock.is_short(lun) || self.heads.anyones(lun).is_some();
        match self.stock.blocks[block].state {
            // A log that fills one block at a time rewrites its blocks itself.
            _ if self.shape().serial => return Refreshed::Needless,
            // What is in the SLC cache will be folded.
            State::Absent | State::Reserve | State::Cached => return Refreshed::Needless,
            State::Open | State::Begun => return Refreshed::Later,
            State::Closed if comes_first => return Refreshed::Later,
            State::Closed => self.empty(under, block, Cause::Refresh),
        }
        Refreshed::Moved
    }

    /// Whether [`Mover::relocate`] can set aside the rest of its destination: the block being written is full or
    /// nothing is set aside yet, no page buffer is part-full, and the reserve is whole.
    pub(crate) fn can_relocate(&self, lun: u32) -> bool {
        let at = self.route.facing(lun);
        !self.stock.is_short(lun)
            && (self.heads[at].is_full() || self.heads.anyones(lun).is_none())
            && !self.is_begun(at)
    }

    /// Programs the page buffers if they hold a newer version of something in a block. That may change which head of a
    /// LUN was last written, so whether [`Mover::relocate`] may follow is to be asked afterwards.
    pub(crate) fn program_newer(&mut self, block: u32, slots: &mut Slots, work: &mut Work) {
        if self.durable.is_superseded(block) {
            self.flush(slots, work);
        }
    }

    /// Moves the live slots of the closed or open block `from` into the reserve block `into`, with cause
    /// [`Cause::Wear`], and erases `from`. The remainder of `into` is set aside, or takes the place of `from`.
    ///
    /// # Panics
    /// If [`Mover::can_relocate`] is false. Newer versions of what is in `from` must be programmed already
    /// ([`Mover::program_newer`]).
    pub(crate) fn relocate(&mut self, under: &mut Under, (from, into): (u32, u32)) {
        let lun = self.addresses.group_of(from);
        let at = self.route.facing(lun);
        assert!(self.can_relocate(lun), "LUN {lun} has nowhere to set a block aside");
        if let Some(open) = self.heads.find(lun, self.addresses.end(from)) {
            self.heads.take(open);
        }
        let rest = self.heads.take(at);
        self.stock.reserve_remove(lun, into);
        self.open(at, into);
        self.empty(under, from, Cause::Wear);
        if !rest.is_full() {
            let aside = self.heads.aside(lun);
            self.heads[aside] = self.heads.take(at);
            self.heads[at] = rest;
        }
    }

    /// Moves the live slots of a block and erases it.
    #[inline]
    fn empty(&mut self, under: &mut Under, block: u32, cause: Cause) {
        let lun = self.addresses.group_of(block);
        // A power cut after the erasure would lose both versions.
        self.program_newer(block, under.slots, under.work);
        let mut run = Run::begin(self, lun);
        let stated = self.durable.has_trims() && run.state_trims(&mut self.writer, under, block);
        if self.stock.is(block, State::Closed) {
            self.stock.withdraw(lun, block);
        }
        run.copies = stated;
        let what = Move { lun, block, cause, pages: None };
        self.carrier.carry(&mut self.writer, under, (what, &mut run));
        self.erase(under, block, cause);
        if stated {
            self.durable.settle_trims(under.work);
        }
        self.durable.erased(block);
        let whole = under.slots.medium().is_none() || !self.stock.is_short(lun);
        assert!(whole, "moving block {block} has taken a block of the reserve of LUN {lun}");
    }
}

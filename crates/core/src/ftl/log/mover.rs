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

use super::around::Under;
use super::blocks::State;
use super::carry::{Carrier, Move, Run};
use super::heads::At;
use super::writer::Writer;
use crate::flash::Cause;
use crate::ftl::Refreshed;
use crate::util::NONE;

/// What is being moved.
#[derive(Clone, Debug)]
pub(super) struct Mover {
    /// For each LUN the block whose collection was begun in the background, or [`NONE`], and how many victims in
    /// succession gained nothing; empty if nothing is collected in the background.
    begun: Vec<(u32, u32)>,
    carrier: Carrier,
}

impl Mover {
    pub(crate) fn new(slots_per_block: u32) -> Mover {
        Mover { begun: Vec::new(), carrier: Carrier::new(slots_per_block) }
    }

    /// Prepares for [`Mover::step`].
    pub(crate) fn collect_in_background(&mut self, w: &Writer) {
        self.begun = vec![(NONE, 0); w.stock.luns().len()];
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
    pub(super) fn end_begun(&mut self, w: &mut Writer, under: &mut Under, lun: u32) -> bool {
        let Some((begun, _)) = self.begun.get_mut(lun as usize) else { return false };
        let block = std::mem::replace(begun, NONE);
        if block != NONE {
            self.empty(w, under, Move::all(w, block, w.shape().gc));
        }
        block != NONE
    }

    /// Collects one victim: moves its live slots and erases it. `gainless` counts successive victims that gained
    /// nothing.
    #[inline(never)] // keeps the path of most writes short
    pub(super) fn collect(&mut self, w: &mut Writer, under: &mut Under, lun: u32, gainless: &mut u32) {
        if self.end_begun(w, under, lun) {
            return;
        }
        let proven = under.slots.medium().is_none() || w.stock.has_gainful(lun);
        assert!(proven, "LUN {lun} has closed blocks for its live slots and none more");
        let victim = w.choose_victim(under.pool, lun, gainless);
        assert!(*gainless <= w.stock.held(lun), "collecting LUN {lun} gains nothing");
        self.empty(w, under, Move::all(w, victim, w.shape().gc));
    }

    /// Gives a head that is full another block for writes: one that waits, an erased one, or what the SLC cache gives
    /// or collection regains.
    pub(super) fn make_room(&mut self, w: &mut Writer, under: &mut Under, at: At) {
        let mut gainless = 0;
        if w.heads.has_gap(at.head) {
            return w.open_cached(under, at);
        }
        while w.heads[at].is_full() && !w.resume(at) {
            match w.stock.take(at.lun, under.pool) {
                Some(block) => w.open(at, block),
                None if w.stock.cache_gives(at.lun) => _ = self.fold(w, under, at.lun),
                None => self.collect(w, under, at.lun, &mut gainless),
            }
            w.route.facing[at.lun as usize] = at.head;
        }
    }

    /// Collects garbage on a LUN until the pool has an erased block of that LUN.
    pub(super) fn reclaim(&mut self, w: &mut Writer, under: &mut Under, lun: u32) {
        let (mut gainless, at) = (0, At::first(lun));
        self.end_begun(w, under, lun);
        while under.pool.free(lun) == 0 {
            if w.heads.anyones(lun).is_none() {
                self.collect(w, under, lun, &mut gainless);
            } else if w.heads[at].is_full() {
                w.resume(at);
            } else {
                // Two open blocks are one too many: collecting only closed blocks may then gain nothing.
                let block = w.addresses.block(w.heads.take(at).next);
                self.empty(w, under, Move::all(w, block, w.shape().gc));
            }
        }
    }

    /// Performs one step of a LUN's collection: chooses a victim if none is being collected, and copies its live
    /// slots into up to `pages` pages, or erases it if no live slot is left in it.
    ///
    /// # Panics
    /// If nothing is collected in the background, or the LUN has no closed block.
    pub(super) fn step(&mut self, w: &mut Writer, under: &mut Under, (lun, pages): (u32, u32)) {
        let (victim, gainless) = &mut self.begun[lun as usize];
        if *victim == NONE {
            *victim = w.choose_victim(under.pool, lun, gainless);
            w.stock.withdraw(lun, *victim);
            w.stock.blocks[*victim].state = State::Begun;
        }
        let victim = *victim;
        let valid = w.stock.blocks[victim].valid;
        let states = valid <= pages * w.shape().slots_per_page && w.durable.relies(victim);
        let what = Move::all(w, victim, w.shape().gc);
        if valid > 0 && !states {
            let mut run = Run::begin(w, lun);
            return self.carrier.carry(w, under, (Move { pages: Some(pages), ..what }, &mut run));
        }
        self.begun[lun as usize].0 = NONE;
        if w.durable.has_trims() || w.durable.is_superseded(victim) {
            // Other data may have to be on flash first. Trim pages are written with the last copies, and
            // the erasure follows in the same step: until then nothing may rely on them.
            self.empty(w, under, what);
        } else {
            w.erase(under, victim, what.cause);
        }
    }

    /// Folds the oldest full block of the SLC cache on a LUN; returns whether there was one.
    pub(super) fn fold(&mut self, w: &mut Writer, under: &mut Under, lun: u32) -> bool {
        let Some(block) = w.stock.oldest_cached(lun) else { return false };
        self.end_begun(w, under, lun);
        self.empty(w, under, Move::all(w, block, Cause::Fold));
        true
    }

    /// Moves the live slots of a closed block before they can no longer be read (`ftl.refresh`). A block is refreshed
    /// as a victim is collected, but chosen for its errors, not for what collecting it gains.
    pub(super) fn refresh(&mut self, w: &mut Writer, under: &mut Under, block: u32) -> Refreshed {
        let what = Move::all(w, block, Cause::Refresh);
        // Whatever was begun, or set aside, needs the reserve or comes first.
        let comes_first =
            self.is_collecting(what.lun) || w.stock.is_short(what.lun) || w.heads.anyones(what.lun).is_some();
        match w.stock.blocks[block].state {
            // A log that fills one block at a time rewrites its blocks itself.
            _ if w.shape().serial => return Refreshed::Needless,
            // What is in the SLC cache will be folded.
            State::Absent | State::Reserve | State::Cached => return Refreshed::Needless,
            State::Open | State::Begun => return Refreshed::Later,
            State::Closed if comes_first => return Refreshed::Later,
            State::Closed => self.empty(w, under, what),
        }
        Refreshed::Moved
    }

    /// Whether [`Mover::relocate`] can set aside the rest of its destination: the block being written is full or
    /// nothing is set aside yet, no page buffer is part-full, and the reserve is whole.
    pub(super) fn can_relocate(w: &Writer, lun: u32) -> bool {
        let at = w.route.facing(lun);
        !w.stock.is_short(lun) && (w.heads[at].is_full() || w.heads.anyones(lun).is_none()) && !w.is_begun(at)
    }

    /// Moves the live slots of the closed or open block `from` into the reserve block `into`, with cause
    /// [`Cause::Wear`], and erases `from`. The remainder of `into` is set aside, or takes the place of `from`.
    ///
    /// # Panics
    /// If [`Mover::can_relocate`] is false. Newer versions of what is in `from` must be programmed already.
    pub(super) fn relocate(&mut self, w: &mut Writer, under: &mut Under, (from, into): (u32, u32)) {
        let what = Move::all(w, from, Cause::Wear);
        let at = w.route.facing(what.lun);
        assert!(Mover::can_relocate(w, what.lun), "LUN {} has nowhere to set a block aside", what.lun);
        if let Some(open) = w.heads.find(what.lun, w.addresses.end(from)) {
            w.heads.take(open);
        }
        let rest = w.heads.take(at);
        w.stock.reserve_remove(what.lun, into);
        w.open(at, into);
        self.empty(w, under, what);
        if !rest.is_full() {
            let aside = w.heads.aside(what.lun);
            w.heads[aside] = w.heads.take(at);
            w.heads[at] = rest;
        }
    }

    /// Moves the live slots of a block and erases it.
    fn empty(&mut self, w: &mut Writer, under: &mut Under, what: Move) {
        let Move { lun, block, cause, .. } = what;
        if w.durable.is_superseded(block) {
            // Newer versions of the victim's data are in a page buffer: a power cut after the erasure would lose both
            // versions.
            w.flush(under.slots, under.work);
        }
        let mut run = Run::begin(w, lun);
        let stated = w.durable.has_trims() && run.state_trims(w, under, block);
        if w.stock.is(block, State::Closed) {
            w.stock.withdraw(lun, block);
        }
        run.copies = stated;
        self.carrier.carry(w, under, (what, &mut run));
        w.erase(under, block, cause);
        if stated {
            w.durable.settle_trims(&mut w.stock, under.work);
        }
        w.durable.erased(block);
        let whole = under.slots.medium().is_none() || !w.stock.is_short(lun);
        assert!(whole, "moving block {block} has taken a block of the reserve of LUN {lun}");
    }
}

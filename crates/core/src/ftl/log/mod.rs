//! A log-structured store on erase blocks: out-of-place writes and garbage collection.
//!
//! Every page-mapped FTL keeps its user data in one [`Log`] (owners are LPNs) and
//! its translation pages in a second one (owners are translation pages). Both take
//! erased blocks from one [`BlockPool`]. A slot is the unit of the mapping: the
//! NAND page, or a logical page where that is smaller.
//!
//! **Garbage collection never deadlocks.** On each LUN a log has up to `n` open blocks, one for each front
//! ([`super::placement`]), which take new versions and copies alike, and `reserve` erased blocks of its own (at least
//! one). The front that is being written is the frontier. When its block is full, it takes another from the pool; if
//! the log already has as many blocks as its `limit`, or the pool is empty, it collects garbage: the live slots of a
//! victim, chosen by a policy ([`super::gc`]), go into the open blocks of their fronts. Those that find no room there
//! go together into one block of the reserve, which has room for them, as they fill at most one block; the erased
//! victim refills the reserve or goes to the pool. All blocks but the open ones and the reserve are closed and full.
//! When a log collects, the block of the frontier is full, so at most `n - 1` blocks are open, and there are more
//! closed blocks than the live slots need ([`blocks_at_least`]): in one of them the live slots fill fewer pages than
//! the block has, and collecting that block gains a page. Every policy takes such a victim after finitely many others,
//! and collecting the others loses nothing: a victim's live slots never fill more pages than the victim had. Collecting
//! one log never writes into another, so collections do not nest. Check mode verifies before every collection that
//! there are more closed blocks than the live slots need, and after every request that no LUN has more open blocks than
//! fronts. If fronts are speeds, whatever block is open is filled before anything is collected, so that all open blocks
//! are full by then, as with one front.
//!
//! Whoever owns a log must see to it that it has enough blocks: `limit` keeps the data from taking what the
//! translation pages need, and the blocks that translation pages have borrowed can be regained for the data by
//! collecting translation pages ([`Log::reclaim`]). (Where slots are smaller than pages, the copies into each front end on
//! a page boundary, so up to `n (slots_per_page - 1)` slots of each block count as lost.)
//!
//! **Blocks may differ in size** ([`super::gc::Space::slots`]). The argument then counts on the smallest block
//! ([`super::gc::Space::sure`]), and a reserve must have room for the live slots of any victim of its LUN.
//!
//! **Blocks that were never written** may count as closed and empty ([`Log::close_unwritten`]), and so as
//! gainful.
//!
//! **Wear levelling does not invalidate the argument.** [`Log::relocate`] moves a closed block's live slots into one
//! erased block of the reserve, and in exchange gives the reserve the block that it has erased. What is left of the
//! destination is set aside, at most one block on each LUN, and is written before anything is collected for a frontier;
//! before anything is reclaimed for another log, the frontier's live slots are moved there. So a log that collects has
//! nothing set aside.

mod addresses;
mod audit;
mod background;
mod cache;
mod collect;
mod cursor;
mod frontier;
mod fronts;
mod placed;
mod recover;
mod refresh;
mod run;
mod serial;
mod shape;
mod slc;
mod state;
mod trims;

use addresses::Addresses;
use background::Background;
use cache::SlcCache;
use fronts::Fronts;
use placed::Placed;
pub use recover::FoundBlock;
use serial::Serial;
pub(crate) use shape::{Shape, blocks_at_least, blocks_wanted, fronts, live_most, slc_blocks, sure_slots};
use trims::Trims;

use super::blocks::pool::BlockPool;
use super::gc::Policy;
use super::slots::Slots;
use crate::flash::{Cause, Work};
use crate::ftl::settings::Settings;
use crate::util::{NONE, memory, stream};

/// The role of a block in this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The block does not belong to this log.
    Absent,
    Reserve,
    Open,
    Closed,
    /// The block is closed, and its collection was begun in the background.
    Begun,
    /// The block is full, in SLC mode, and waits until it is folded.
    Cached,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    valid: u32,
    /// For a block of the reserve or of the SLC cache, the next block in their list.
    next: u32,
    state: State,
    /// Whether the block counts as closed and empty although it was never written ([`Log::close_unwritten`]).
    unwritten: bool,
    /// Whether the block is used with one bit a cell.
    slc: bool,
    /// The number up to which all programs and erases must finish before the block is erased: the data that
    /// replaces its invalid slots may still be on its way to another LUN ([`Work::mark`]). Used only during a
    /// run.
    after: u32,
}

impl Block {
    fn new(state: State) -> Block {
        Block { valid: 0, next: NONE, state, unwritten: false, slc: false, after: 0 }
    }
}

/// What the log has on one LUN.
#[derive(Clone, Copy, Debug)]
struct Lun {
    /// First block in the list of the reserve.
    reserve: u32,
    reserve_len: u32,
    /// Number of blocks that the log has on the LUN.
    held: u32,
    /// Next slot of the frontier; `end` is one past its last slot, and equal to `next` if there is no frontier.
    next: u32,
    end: u32,
    live: u32,
}

impl Lun {
    /// Whether the frontier is full, or there is none.
    #[inline]
    fn is_full(&self) -> bool {
        self.next == self.end
    }
}

/// Where the next pages are written, and what waits for the pages that are filled there.
#[derive(Clone, Debug)]
struct Cursor {
    /// Whether writes go to the cursor's LUN rather than to the owner's home LUN.
    leads: bool,
    /// Front of the next write, if slots are smaller than pages, so that each front has a page buffer; otherwise 0.
    front: u32,
    /// For each front that has a page buffer, the LUN whose page is filled there next; or one LUN, where dynamic
    /// allocation looks first.
    luns: Vec<u32>,
    /// Blocks with a slot whose owner has a newer version in a page buffer, possibly on another LUN, each with the front
    /// of that page buffer.
    superseded: Vec<(u32, u32)>,
}

/// The layers under a log, which several logs may share.
pub(crate) struct Under<'a> {
    /// Which slot holds the data of which owner.
    pub(crate) slots: &'a mut Slots,
    /// The erased blocks.
    pub(crate) pool: &'a mut BlockPool,
    /// The sink for the steps.
    pub(crate) work: &'a mut Work,
}

/// Number of blocks for which [`Cursor::superseded`] has room before it must grow.
const SUPERSEDED: usize = 16;

/// A log-structured store.
#[derive(Clone, Debug)]
pub struct Log {
    shape: Shape,
    pub(crate) addresses: Addresses,
    blocks: Vec<Block>,
    /// What the log has on each LUN; a single entry for all LUNs if one block is filled at a time.
    luns: Vec<Lun>,
    /// The closed blocks.
    pub(crate) victims: Policy,
    /// Number of writes so far, not counting copies.
    writes: u64,
    cursor: Cursor,
    serial: Option<Serial>,
    /// The open blocks other than the frontiers.
    fronts: Fronts,
    /// The placement, which says which front takes a page; without it there is one front. A placement by speed
    /// exists only during a run, so never in a saved state.
    placed: Option<Box<Placed>>,
    /// The SLC cache, if there is one.
    slc: Option<Box<SlcCache>>,
    /// Whether something must be chosen or finished before a write ([`Log::chooses`]).
    chooses: bool,
    /// What is collected in the background; exists only during a run.
    background: Option<Box<Background>>,
    /// The live slots of the block being collected, with their owners.
    leaving: Vec<(u32, u32)>,
    /// Trims that would not yet survive a power cut.
    trims: Option<Box<Trims>>,
}

impl Log {
    /// Makes an empty log, which takes its reserve from the pool; with `check`, every operation is policed.
    pub(crate) fn new(
        shape: Shape,
        settings: &Settings,
        (slots, pool): (&mut Slots, &mut BlockPool),
        check: bool,
    ) -> Log {
        let addresses = Addresses::new(&shape, settings, pool);
        let space = addresses.space;
        let lun = Lun { reserve: NONE, reserve_len: 0, held: 0, next: 0, end: 0, live: 0 };
        let rng = stream(settings.seed, shape.gc.name());
        let mut log = Log {
            shape,
            addresses,
            blocks: vec![Block::new(State::Absent); pool.count() as usize],
            luns: vec![lun; space.luns as usize],
            victims: Policy::new(shape.policy(settings), &settings.ftl.victims, space, rng),
            writes: 0,
            cursor: Cursor {
                leads: shape.slots_per_page > 1 || shape.dynamic,
                front: 0,
                luns: vec![0],
                superseded: Vec::with_capacity(SUPERSEDED),
            },
            serial: shape.serial.then(|| Serial::new(shape.luns, shape.limit)),
            fronts: Fronts::new(space.luns, 0, false),
            placed: None,
            slc: None,
            chooses: shape.dynamic,
            background: None,
            leaving: Vec::with_capacity(space.slots_per_block as usize),
            trims: None,
        };
        for lun in 0..space.luns {
            for _ in 0..shape.reserve {
                let block = log.take_block(lun, pool).expect("a LUN has more blocks than the reserves");
                log.reserve_push(lun, block);
            }
        }
        if let Some(name) = shape::placement(settings).filter(|_| shape.gc == Cause::Gc) {
            log.place_by(name, settings, None);
        }
        if check {
            log.police(slots);
        }
        log
    }

    /// Returns the shape with which the log was made.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the number of blocks of the flash, whether they belong to this log or not.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Begins to load into the CPU cache the slot and block state that a new version of an owner will change. The
    /// owner's map entry has been loaded already.
    #[inline]
    pub(crate) fn fetch_slot(&self, slots: &Slots, owner: u32) {
        let slot = slots.of(owner);
        if slot != NONE {
            slots.valid.fetch(slot);
            memory::fetch(&self.blocks, self.addresses.block(slot) as usize);
        }
        if let Some(slc) = &self.slc {
            memory::fetch(&slc.kept, owner as usize);
        }
    }

    /// Returns the number of blocks that the log has on a LUN, including its reserve.
    pub(crate) fn held(&self, lun: u32) -> u32 {
        self.luns[lun as usize].held
    }

    /// Finishes the background collection on the LUN of an owner's next write, if the reserve is short; returns
    /// whether it did so. Must be called before [`Log::append`].
    #[inline]
    pub(crate) fn end_short(&mut self, under: &mut Under, owner: u32, moved: &mut impl FnMut(u32)) -> bool {
        if self.background.is_none() {
            return false;
        }
        let lun = self.write_lun(owner);
        self.is_short(lun) && self.end_begun(under, lun, moved)
    }

    /// Writes an owner's new version on `lun`, its [`Log::write_lun`], and invalidates the old version, after
    /// collecting garbage if necessary. `moved` is called with every owner that garbage collection moved.
    #[inline]
    pub(crate) fn append(
        &mut self,
        under: &mut Under,
        lun: u32,
        owner: u32,
        cause: Cause,
        moved: &mut impl FnMut(u32),
    ) {
        debug_assert!(!self.is_short(lun), "a victim is ended first");
        if self.placed.is_some() {
            return self.append_placed(under, lun, owner, cause, moved);
        }
        if self.luns[lun as usize].is_full() {
            self.open_frontier(under, lun, moved);
        }
        let old = self.renew(under.slots, owner);
        let slot = self.place(under.slots, lun, owner);
        self.program_placed(under.work, (lun, cause), (owner, old), (slot, slot + 1));
    }

    /// Programs the page of the slot where an owner's new version was placed, if the page is full; `old` is the slot of
    /// the previous version, and `next` the slot that is written next.
    #[inline(always)] // called for every write
    fn program_placed(
        &mut self,
        work: &mut Work,
        (lun, cause): (u32, Cause),
        (owner, old): (u32, u32),
        (slot, next): (u32, u32),
    ) {
        if self.shape.slots_per_page == 1 {
            work.program(lun, slot, cause);
            self.close_if_full(lun);
            if self.shape.dynamic {
                self.supersede(owner, old);
                self.settle_superseded(0, work);
                self.advance_cursor();
            }
        } else {
            self.supersede(owner, old);
            if self.addresses.in_page(next) == 0 {
                work.program(lun, self.addresses.page(slot), cause);
                self.settle_superseded(self.cursor.front, work);
                self.close_if_full(lun);
                self.advance_cursor();
            }
        }
    }

    /// Forgets the numbers of programs and erases, and what was counted, which begin anew with the run.
    pub(crate) fn forget_numbers(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.after = 0);
        if let Some(placed) = &mut self.placed {
            placed.counts.fill((0, 0));
        }
    }

    /// Invalidates an owner's data, if there is any.
    pub(crate) fn trim(&mut self, slots: &mut Slots, owner: u32) {
        self.tell_invalid(owner, slots.of(owner));
        let old = slots.trim(owner);
        if old != NONE {
            self.note_trim(owner, old);
            self.invalidate(slots, old);
        }
    }

    /// Programs every part-full page buffer, with cause [`Cause::Pad`]. NAND pages of a word line that are full keep
    /// their own cause.
    pub(crate) fn flush(&mut self, slots: &mut Slots, work: &mut Work) {
        if self.shape.slots_per_page > 1 {
            (0..self.cursor.luns.len() as u32).for_each(|front| self.flush_front(front, slots, work));
        }
    }

    /// Counts a write of an owner, and invalidates the previous version; returns the slot of that version, or [`NONE`].
    #[inline(always)] // called for every write
    fn renew(&mut self, slots: &mut Slots, owner: u32) -> u32 {
        self.writes += 1;
        let old = slots.of(owner);
        slots.tell(|medium| medium.write(owner, old));
        if old != NONE {
            self.invalidate(slots, old);
        }
        old
    }

    #[inline]
    fn invalidate(&mut self, slots: &mut Slots, slot: u32) {
        slots.valid.clear(slot);
        let block = self.addresses.block(slot);
        let lun = self.addresses.group(slot);
        self.luns[lun as usize].live -= 1;
        let state = &mut self.blocks[block as usize];
        state.valid -= 1;
        if state.state == State::Closed {
            self.victims.invalidate(lun, block, state.valid, self.writes);
        }
    }
}

//! A log-structured store on erase blocks: out-of-place writes and garbage collection.
//!
//! Every page-mapped FTL keeps its user data in one [`Log`] (owners are LPNs) and
//! its translation pages in a second one (owners are translation pages). Both take
//! erased blocks from one [`BlockPool`]. A slot is the unit of the mapping: the
//! NAND page, or a logical page where that is smaller.
//!
//! **Garbage collection never deadlocks.** On each LUN a log has up to `n` open blocks, one for each front
//! ([`super::placement`]), which take new versions and copies alike, and `reserve` erased blocks of its own
//! (at least one). The front that is written is the frontier. When its block is full it takes one from the
//! pool; if the log has as many as its `limit`, or the pool is empty, it collects: the live slots of a
//! victim, chosen by a policy ([`super::gc`]), go into the open blocks of their fronts. All that find no room
//! there follow together, into one block of the reserve, which they do not fill beyond its end, as they are
//! at most a block's; the erased victim refills the reserve or goes to the pool. All blocks but the open ones
//! and the reserve are closed and full. When a log collects, the block of the frontier is full, so at most
//! `n - 1` are open, and the closed ones are more than the live slots need ([`blocks_at_least`]): one of them
//! fills fewer pages with its live slots than it has, and collecting that one gains a page. Every policy
//! takes such a victim after finitely many others, and those lose nothing: a victim's live slots never fill
//! more pages than the victim had. Collecting one log never writes into another, so collections do not nest.
//! Check mode verifies the premise before every collection, and after every request that no LUN has more open
//! blocks than fronts. By speed, a front takes whatever block is open before anything is collected, so that
//! then all are full, as with one front.
//!
//! The owner must see to it that a log has enough blocks: `limit` keeps the data from taking what the
//! translation pages need, and the data may have the translation pages collected to get back what they
//! borrowed ([`Log::reclaim`]). (Where slots are smaller than pages, copies end on a page boundary, so up to
//! `slots_per_page - 1` slots of each block count as lost, and there is one front.)
//!
//! **Blocks that were never written** may count as closed and empty ([`Log::close_unwritten`]): gainful ones.
//!
//! **Wear levelling keeps that true.** [`Log::relocate`] moves a closed block's live slots
//! into one erased block of the reserve and gives the block it erased for it. What is left
//! of the destination is set aside, at most one block on each LUN, and is written before
//! anything is collected for a frontier; before anything is reclaimed for another log, the
//! frontier's live slots are moved there. So a log that collects has nothing set aside.

mod audit;
mod background;
mod collect;
mod frontier;
mod fronts;
mod placed;
mod recover;
mod serial;
mod shape;
mod state;
mod trims;

use background::Background;
use fronts::Fronts;
use placed::Placed;
pub use recover::FoundBlock;
use serial::Serial;
pub(crate) use shape::{Shape, blocks_at_least, blocks_wanted, fronts, live_most};
use trims::Trims;

use super::blocks::pool::BlockPool;
use super::gc::{Policy, Space};
use super::slots::Slots;
use crate::flash::{Cause, Work};
use crate::ftl::settings::Settings;
use crate::util::{Divider, NONE, memory, stream};

/// What a block is to this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The block does not belong to this log.
    Absent,
    Reserve,
    Open,
    Closed,
    /// The block is closed, and its collection was begun in the background.
    Begun,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    valid: u32,
    /// The next reserve block.
    next: u32,
    state: State,
    /// Closed and empty without ever having been written ([`Log::close_unwritten`]).
    unwritten: bool,
    /// The number up to which everything must have finished before it is erased: the data that replaces its
    /// invalid slots may still be on its way to another LUN ([`Work::mark`]). Only in a run.
    after: u32,
}

impl Block {
    fn new(state: State) -> Block {
        Block { valid: 0, next: NONE, state, unwritten: false, after: 0 }
    }
}

/// What the log has on one LUN.
#[derive(Clone, Copy, Debug)]
struct Lun {
    /// First of the reserve blocks.
    reserve: u32,
    reserve_len: u32,
    /// Blocks of the log.
    held: u32,
    /// Next slot of the frontier, and one past its last; equal if there is no frontier.
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

/// What lies under a log, and what several may share.
pub(crate) struct Under<'a> {
    /// Which slot holds what.
    pub(crate) slots: &'a mut Slots,
    /// The erased blocks.
    pub(crate) pool: &'a mut BlockPool,
    /// The steps.
    pub(crate) work: &'a mut Work,
}

/// Blocks that a page buffer may supersede before the list of them grows.
const SUPERSEDED: usize = 16;

/// The store.
#[derive(Clone, Debug)]
pub struct Log {
    shape: Shape,
    slots_per_block: u32,
    by_block: Divider,
    by_lun: Divider,
    /// Slots that share an entry of `luns`: those of a LUN, or all if one block is filled at a time.
    by_group: Divider,
    by_page: Divider,
    lun_of: Divider,
    /// LUN of each page of a cycle, if the LUNs do not take turns page by page.
    cycle: Vec<u32>,
    cycle_of: Divider,
    blocks: Vec<Block>,
    luns: Vec<Lun>,
    /// The closed blocks.
    pub(crate) victims: Policy,
    space: Space,
    /// Number of writes, without copies.
    writes: u64,
    /// Whether writes go where the cursor is: slots are smaller than pages, or allocation is dynamic.
    by_cursor: bool,
    /// LUN whose page buffer is filled next, if slots are smaller than pages; or where dynamic allocation
    /// looks first.
    cursor: u32,
    serial: Option<Serial>,
    /// Open blocks besides the frontiers.
    fronts: Fronts,
    /// What says which front takes a page, unless all share one; by speed only in a run, so never in a saved state.
    placed: Option<Box<Placed>>,
    /// What is collected in the background: also only in a run.
    background: Option<Box<Background>>,
    /// The live slots of the block being collected, with their owners.
    leaving: Vec<(u32, u32)>,
    /// Blocks with a slot whose owner has a newer version in a page buffer, possibly on another LUN.
    superseded: Vec<u32>,
    /// What was trimmed and would not survive a power cut.
    trims: Option<Box<Trims>>,
}

impl Log {
    /// Makes an empty log, with its reserve from the pool; with `check`, every operation is policed.
    pub(crate) fn new(
        shape: Shape,
        settings: &Settings,
        (slots, pool): (&mut Slots, &mut BlockPool),
        check: bool,
    ) -> Log {
        let slots_per_block = shape.pages_per_block * shape.slots_per_page;
        let blocks = pool.count();
        let groups = if shape.serial { 1 } else { shape.luns };
        let space = Space {
            luns: groups,
            blocks_per_lun: blocks / groups,
            slots_per_block,
            slots_per_page: shape.slots_per_page,
        };
        let lun = Lun { reserve: NONE, reserve_len: 0, held: 0, next: 0, end: 0, live: 0 };
        let spread = settings.spread();
        let cycle = if spread.in_turn() { Vec::new() } else { spread.cycle() };
        let rng = stream(settings.seed, shape.gc.name());
        let mut log = Log {
            shape,
            slots_per_block,
            by_block: Divider::new(slots_per_block),
            by_lun: Divider::new(slots_per_block * pool.blocks_per_lun()),
            by_group: Divider::new(blocks * slots_per_block / groups),
            by_page: Divider::new(shape.slots_per_page),
            lun_of: Divider::new(shape.luns),
            cycle_of: Divider::new(cycle.len().max(1) as u32),
            cycle,
            blocks: vec![Block::new(State::Absent); blocks as usize],
            luns: vec![lun; groups as usize],
            victims: Policy::new(shape.policy(settings), &settings.ftl.victims, space, rng),
            space,
            writes: 0,
            by_cursor: shape.slots_per_page > 1 || shape.dynamic,
            cursor: 0,
            serial: shape.serial.then(|| Serial::new(shape.luns, shape.limit)),
            fronts: Fronts::new(groups, 0, false),
            placed: None,
            background: None,
            leaving: Vec::with_capacity(slots_per_block as usize),
            superseded: Vec::with_capacity(SUPERSEDED),
            trims: None,
        };
        for lun in 0..groups {
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

    /// Returns the shape it was made with.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the number of blocks of the flash, of this log or not.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Begins to load what a new version of an owner will invalidate. Its entry of the map has been loaded.
    #[inline]
    pub(crate) fn fetch_slot(&self, slots: &Slots, owner: u32) {
        let slot = slots.of(owner);
        if slot != NONE {
            slots.valid.fetch(slot);
            memory::fetch(&self.blocks, self.by_block.div(slot) as usize);
        }
    }

    /// Returns the LUN of a slot.
    #[inline]
    pub(crate) fn slot_lun(&self, slot: u32) -> u32 {
        self.by_lun.div(slot)
    }

    /// Returns the NAND page of a slot.
    #[inline]
    pub(crate) fn slot_page(&self, slot: u32) -> u32 {
        self.by_page.div(slot)
    }

    /// Returns the blocks that the log has on a LUN, including its reserve.
    pub(crate) fn held(&self, lun: u32) -> u32 {
        self.luns[lun as usize].held
    }

    /// Ends the background collection on the LUN of an owner's next write, if the reserve is short; returns
    /// whether it was. Must be called before [`Log::append`].
    #[inline]
    pub(crate) fn end_short(&mut self, under: &mut Under, owner: u32, moved: &mut impl FnMut(u32)) -> bool {
        if self.background.is_none() {
            return false;
        }
        let lun = self.write_lun(owner);
        self.is_short(lun) && self.end_begun(under, lun, moved)
    }

    /// Writes the owner's new version on its [`Log::write_lun`] and invalidates the old one, after collecting
    /// garbage if necessary. `moved` is called with every owner that collection moved.
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
            self.face(under, lun, owner, cause);
        }
        if self.luns[lun as usize].is_full() {
            self.open_frontier(under, lun, moved);
        }
        let old = self.renew(under.slots, owner);
        let slot = self.place(under.slots, lun, owner);
        if self.shape.slots_per_page == 1 {
            under.work.program(lun, slot, cause);
            self.close_if_full(lun);
            if self.shape.dynamic {
                self.supersede(owner, old);
                self.settle_superseded(under.work);
                self.advance_cursor();
            }
        } else {
            self.supersede(owner, old);
            if self.by_page.rem(slot + 1) == 0 {
                under.work.program(lun, self.slot_page(slot), cause);
                self.settle_superseded(under.work);
                self.close_if_full(lun);
                self.advance_cursor();
            }
        }
    }

    /// Forgets the numbers of programs and erases, which begin with the run.
    pub(crate) fn forget_numbers(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.after = 0);
    }

    /// Invalidates the owner's data, if any.
    pub(crate) fn trim(&mut self, slots: &mut Slots, owner: u32) {
        self.tell_invalid(owner, slots.of(owner));
        let old = slots.trim(owner);
        if old != NONE {
            self.note_trim(owner, old);
            self.invalidate(slots, old);
        }
    }

    /// Programs every part-full page buffer (cause pad).
    pub(crate) fn flush(&mut self, slots: &mut Slots, work: &mut Work) {
        if self.shape.slots_per_page > 1 {
            for lun in 0..self.shape.luns {
                if self.pad(slots, lun) {
                    work.chain();
                    self.program_page(self.luns[lun as usize].next - 1, Cause::Pad, work);
                    self.settle_superseded(work);
                    if lun == self.cursor {
                        self.advance_cursor();
                    }
                }
            }
        }
    }

    /// Gives an owner a new version; returns the slot of the previous one, or [`NONE`].
    #[inline(always)] // for every write
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
        let block = self.by_block.div(slot);
        let lun = self.by_group.div(slot);
        self.luns[lun as usize].live -= 1;
        let state = &mut self.blocks[block as usize];
        state.valid -= 1;
        if state.state == State::Closed {
            self.victims.invalidate(lun, block, state.valid, self.writes);
        }
    }
}

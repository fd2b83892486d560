//! The stock of a log: what each of its blocks is used for, where an erased block comes from, and where it goes.
//!
//! **There is always a victim that gains** ([`Stock::has_gainful`]). On each LUN a log has `reserve` erased blocks of
//! its own (at least one), up to `n` open blocks, one for each front, and otherwise closed blocks, all of which are
//! full. When it must collect, the block that is to be written is full, so at most `n - 1` blocks are open, and the
//! rest are more than the live slots need ([`super::blocks_at_least`]): the live slots of one of them fill fewer pages
//! than it has. Every policy takes such a victim after finitely many others ([`crate::ftl::gc`]). Check mode verifies
//! it before every collection ([`Stock::has_gainful`]), and the counts behind it after every request
//! ([`super::check`]).
//!
//! Whoever owns a log must see to it that it has enough blocks: `limit` keeps the data from taking what the translation
//! pages need, and the blocks that translation pages have borrowed can be regained for the data by collecting
//! translation pages ([`super::Log::reclaim`]). Where slots are smaller than pages, the copies into each front end on a
//! page boundary, so up to `n (slots_per_page - 1)` slots of each block count as lost. **Blocks that were never
//! written** may count as closed and empty ([`Stock::close_unwritten`]), and so as gainful.
//!
//! **The SLC cache's blocks** are a share of their own: of [`Shape::slc_blocks`] on each LUN the cache is sure, and all
//! other blocks never come to more than the limit less these, except for one for as long as it takes to collect one. So
//! the argument holds for the blocks of all bits by themselves, with the live slots of the cache counted in. Beyond its
//! share the cache takes erased blocks only while there are any, and gives them back when a front of all bits needs
//! one.

use super::blocks::{Block, Blocks, State};
use super::turn::Turn;
use super::{Addresses, Shape};
use crate::flash::{Cause, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::gc::{Closed, Need, Policy};
use crate::ftl::settings::Settings;
use crate::util::{Chain, NONE, stream};

/// What the log has on one LUN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfLun {
    pub(super) reserve_len: u32,
    /// Number of blocks that the log has on the LUN.
    pub(super) held: u32,
    /// Number of blocks that the policy holds.
    pub(super) closed: u32,
    pub(super) live: u32,
    /// Number of blocks in SLC mode, the open one included, and how many of them are full.
    pub(super) in_slc: u32,
    pub(super) cached: u32,
    /// The reserve, the block that is used next at the head, and the full blocks of the SLC cache, oldest first.
    pub(super) reserve: Chain,
    pub(super) full: Chain,
}

/// The blocks of a log.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    pub(super) shape: Shape,
    pub(super) blocks: Blocks,
    /// What the log has on each LUN; a single entry for all LUNs if the log is serial.
    pub(super) luns: Vec<OfLun>,
    blocks_per_lun: u32,
    /// The least number of slots that collection can fill in any block.
    sure: u64,
    /// The closed blocks.
    pub(crate) victims: Policy,
    /// Number of writes so far, not counting copies.
    pub(super) writes: u64,
    pub(super) turn: Option<Turn>,
}

impl Stock {
    /// Makes the stock of a log that has no blocks yet.
    pub(crate) fn new(of: &Addresses, settings: &Settings, blocks: u32) -> Stock {
        let (shape, space) = (of.shape, of.space);
        let luns = space.luns as usize;
        let rng = stream(settings.seed, shape.gc.name());
        Stock {
            shape,
            blocks: Blocks::new(blocks),
            luns: vec![OfLun::default(); luns],
            blocks_per_lun: space.blocks_per_lun,
            sure: space.sure(),
            victims: Policy::new(shape.policy(settings), &settings.ftl.victims, space, rng),
            writes: 0,
            turn: shape.serial.then(|| Turn::new(shape.luns, shape.limit)),
        }
    }

    /// Fills the reserve.
    pub(crate) fn take_reserve(&mut self, pool: &mut BlockPool) {
        for lun in 0..self.luns.len() as u32 {
            for _ in 0..self.shape.reserve {
                let block = self.take(lun, pool).expect("a LUN has more blocks than the reserves");
                self.reserve_push(lun, block);
            }
        }
    }

    /// Returns the LUNs, or 0 alone for a serial log.
    pub(crate) fn luns(&self) -> std::ops::Range<u32> {
        0..self.luns.len() as u32
    }

    /// Returns the blocks of a LUN.
    pub(crate) fn of_lun(&self, lun: u32) -> std::ops::Range<u32> {
        lun * self.blocks_per_lun..(lun + 1) * self.blocks_per_lun
    }

    /// Whether a block belongs to this log.
    pub(crate) fn has(&self, block: u32) -> bool {
        !self.is(block, State::Absent)
    }

    /// Whether a block is used in this way.
    pub(crate) fn is(&self, block: u32, state: State) -> bool {
        self.blocks[block].state == state
    }

    /// Returns the number of blocks that the log has on a LUN, including its reserve.
    pub(crate) fn held(&self, lun: u32) -> u32 {
        self.luns[lun as usize].held
    }

    /// Whether the reserve is one block short, because the copies of a move are filling that block.
    #[inline]
    pub(crate) fn is_short(&self, lun: u32) -> bool {
        self.luns[lun as usize].reserve_len < self.shape.reserve
    }

    /// Whether collecting some closed block of a LUN is certain to gain a page.
    pub(crate) fn has_gainful(&self, lun: u32) -> bool {
        let at = &self.luns[lun as usize];
        u64::from(at.closed) * self.sure > u64::from(at.live)
    }

    /// Whether the log may fill fewer than `blocks` more erased blocks on a LUN, including its reserve, before
    /// it reaches its limit.
    pub(crate) fn nears_limit(&self, lun: u32, blocks: u32) -> bool {
        let most = self.shape.limit - self.shape.slc_blocks;
        most.saturating_sub(self.all_bits(lun)) + self.shape.reserve < blocks
    }

    /// Returns the number of blocks of a LUN that are used with all bits.
    pub(super) fn all_bits(&self, lun: u32) -> u32 {
        self.held(lun) - self.luns[lun as usize].in_slc
    }

    /// Whether the log may have another block of all bits on a LUN.
    #[inline]
    pub(super) fn may_take(&self, lun: u32) -> bool {
        let Shape { limit, slc_blocks, .. } = self.shape;
        self.held(lun) < limit && self.all_bits(lun) < limit - slc_blocks
    }

    /// Whether a LUN can take a page of data and still collect its garbage.
    pub(super) fn has_room(&self, lun: u32, trims: bool) -> bool {
        self.fits(lun, self.shape.begun_slots(), trims)
    }

    /// Whether a LUN can hold this many slots of data more and still collect its garbage; with `trims`, there are trim
    /// pages.
    pub(super) fn fits(&self, lun: u32, more: u32, trims: bool) -> bool {
        let Shape { sure_blocks, reserve, fronts, slots_per_page, slc_blocks, trim_pages, .. } = self.shape;
        let room = u64::from(sure_blocks - slc_blocks - reserve - (fronts - 1)) * self.sure;
        let apart = slots_per_page + if trims { trim_pages } else { 0 };
        u64::from(self.luns[lun as usize].live + more) <= room - u64::from(apart)
    }

    /// Counts live slots that were placed in a block.
    #[inline(always)] // called for every write
    pub(super) fn fill(&mut self, lun: u32, block: u32, slots: u32) -> &Block {
        self.luns[lun as usize].live += slots;
        let block = &mut self.blocks[block];
        block.valid += slots;
        block
    }

    /// Counts a slot of a block that has become invalid.
    pub(super) fn invalidate(&mut self, lun: u32, block: u32) {
        self.luns[lun as usize].live -= 1;
        let state = &mut self.blocks[block];
        state.valid -= 1;
        if state.state == State::Closed {
            self.victims.invalidate(Closed { lun, block, valid: state.valid, now: self.writes });
        }
    }

    /// Counts live slots of a block that leave it for others of its LUN.
    pub(super) fn leave(&mut self, lun: u32, block: u32, slots: u32) {
        self.luns[lun as usize].live -= slots;
        self.blocks[block].valid -= slots;
    }

    /// Closes a full block, last written at `now`; one in SLC mode is the next to be folded after all others.
    #[inline]
    pub(super) fn close(&mut self, lun: u32, block: u32, now: u64) {
        let state = &mut self.blocks[block];
        if state.slc {
            return self.close_cached(lun, block);
        }
        state.state = State::Closed;
        self.luns[lun as usize].closed += 1;
        self.victims.close(Closed { lun, block, valid: state.valid, now });
    }

    #[cold]
    fn close_cached(&mut self, lun: u32, block: u32) {
        self.blocks[block].state = State::Cached;
        self.blocks.link(&mut self.luns[lun as usize].full, block, false);
        self.luns[lun as usize].cached += 1;
    }

    /// Takes erased blocks until the log has as many blocks on each LUN as the user's data may fill, and treats them as
    /// closed and empty. This is for settings under which only the blocks of the withheld space count as free.
    /// Collecting such a block costs an erasure, like collecting any other.
    pub(crate) fn close_unwritten(&mut self, pool: &mut BlockPool) {
        for lun in self.luns() {
            while self.held(lun) < self.shape.user_blocks + self.shape.reserve
                && let Some(block) = self.take(lun, pool)
            {
                self.close(lun, block, self.writes);
                self.blocks[block].unwritten = true;
            }
        }
    }

    /// Returns the block of a LUN that is to be collected next; it stays with the policy. `gainless` counts
    /// successive victims that gained nothing.
    #[inline]
    pub(super) fn choose(&mut self, of: &Addresses, lun: u32, gainless: &mut u32, pool: &BlockPool) -> u32 {
        let blocks = &self.blocks;
        let need = Need { lun, now: self.writes, gainless: *gainless };
        let valid = |block: u32| blocks[block].valid;
        let victim = self.victims.choose(need, &valid, &|block| pool.erase_count(block));
        let gains = of.space.gainful(blocks[victim].valid);
        *gainless = if gains { 0 } else { *gainless + 1 };
        victim
    }

    /// Takes a closed block, whose collection begins in the background, from the policy.
    pub(super) fn begin(&mut self, lun: u32, block: u32) {
        self.withdraw(lun, block);
        self.blocks[block].state = State::Begun;
    }

    /// Takes a closed block, whose data is being moved, from the policy.
    #[inline]
    pub(super) fn withdraw(&mut self, lun: u32, block: u32) {
        let blocks = &self.blocks;
        self.victims.remove(lun, block, &|block| blocks[block].valid);
        self.luns[lun as usize].closed -= 1;
    }

    /// Takes an erased block of a LUN (of any LUN, if the log is serial), if there is one and the log may have another
    /// block.
    #[inline]
    pub(super) fn take(&mut self, lun: u32, pool: &mut BlockPool) -> Option<u32> {
        if !self.may_take(lun) {
            return None;
        }
        let block = match &mut self.turn {
            None => pool.take(lun)?,
            Some(turn) => turn.take(pool),
        };
        self.luns[lun as usize].held += 1;
        Some(block)
    }

    /// Gives an erased block its next use; if it is past its limit it is retired, and a spare block replaces it.
    #[inline]
    pub(super) fn regain(&mut self, of: &Addresses, block: u32, pool: &mut BlockPool, work: &Work) {
        let first = of.first(block);
        let (lun, group) = (of.lun(first), of.group(first));
        pool.erased(lun, block);
        self.luns[group as usize].in_slc -= u32::from(self.blocks[block].slc);
        self.blocks[block] = Block::new(State::Absent);
        let mut spare = pool.successor(lun, block);
        if self.is_short(group) {
            return self.reserve_push(group, spare);
        }
        if let Some(turn) = &mut self.turn {
            turn.held[lun as usize] -= 1;
        } else if pool.threshold().is_some() {
            // The most worn blocks stay in the reserve, where wear levelling finds them.
            self.reserve_push(group, spare);
            spare = self.reserve_pop(group, pool, work);
        }
        self.blocks[spare] = Block::new(State::Absent);
        self.luns[group as usize].held -= 1;
        pool.push_class(spare, pool.class(spare, work.cells()));
    }
}

/// The reserve, as a list.
impl Stock {
    /// Returns some reserve block of a LUN.
    pub(crate) fn any_reserve(&self, lun: u32) -> u32 {
        self.luns[lun as usize].reserve.head
    }

    /// Returns the reserve of a LUN, the block that is used next first.
    pub(super) fn reserve(&self, lun: u32) -> impl Iterator<Item = u32> + '_ {
        self.blocks.list(self.luns[lun as usize].reserve)
    }

    /// Exchanges the reserve block `out` for the erased block `into`.
    pub(crate) fn exchange_reserve(&mut self, lun: u32, out: u32, into: u32) {
        self.reserve_remove(lun, out);
        self.blocks[out] = Block::new(State::Absent);
        self.reserve_push(lun, into);
    }

    #[inline]
    pub(super) fn reserve_push(&mut self, lun: u32, block: u32) {
        self.blocks[block] = Block::new(State::Reserve);
        self.blocks.link(&mut self.luns[lun as usize].reserve, block, true);
        self.luns[lun as usize].reserve_len += 1;
    }

    /// Takes a block of the reserve: the one that was erased last; under wear levelling, the least worn one; if blocks
    /// are taken slowest first, the slowest one.
    #[inline]
    pub(super) fn reserve_pop(&mut self, lun: u32, pool: &BlockPool, work: &Work) -> u32 {
        let mut best = self.any_reserve(lun);
        assert!(best != NONE, "the reserve of LUN {lun} is empty");
        let levels = pool.threshold().is_some();
        if levels || (self.shape.gc == Cause::Gc && pool.slowest_first()) {
            let worn = |block| if levels { pool.erase_count(block) } else { 0 };
            let rank = |&block: &u32| (u32::MAX - pool.class(block, work.cells()), worn(block));
            best = self.reserve(lun).min_by_key(rank).expect("the reserve has a block");
        }
        self.reserve_remove(lun, best);
        best
    }

    #[inline]
    pub(super) fn reserve_remove(&mut self, lun: u32, block: u32) {
        self.blocks.unlink(&mut self.luns[lun as usize].reserve, block);
        self.luns[lun as usize].reserve_len -= 1;
    }
}

/// The blocks of the SLC cache.
impl Stock {
    /// Whether the cache may take another erased block of a LUN.
    pub(super) fn may_cache(&self, lun: u32, pool: &BlockPool) -> bool {
        self.held(lun) < self.shape.limit
            && self.luns[lun as usize].in_slc < self.shape.slc_most
            && pool.free(lun) > 0
    }

    /// Whether a front of all bits has a block of the cache's share of a LUN.
    pub(super) fn owes_cache(&self, lun: u32) -> bool {
        let Shape { limit, slc_blocks, .. } = self.shape;
        self.all_bits(lun) > limit - slc_blocks && self.luns[lun as usize].in_slc < slc_blocks
    }

    /// Whether the cache has more blocks of a LUN than its share, and can give one back.
    pub(super) fn cache_gives(&self, lun: u32) -> bool {
        let of = &self.luns[lun as usize];
        of.in_slc > self.shape.slc_blocks && of.cached > 0
    }

    /// Whether a LUN has a block to fold.
    pub(crate) fn folds_on(&self, lun: u32) -> bool {
        self.luns[lun as usize].cached > 0
    }

    /// Puts an open block into SLC mode.
    pub(super) fn cache(&mut self, lun: u32, block: u32) {
        self.blocks[block].slc = true;
        self.luns[lun as usize].in_slc += 1;
    }

    /// Takes the oldest full block of a LUN off the list, to be folded.
    pub(super) fn oldest_cached(&mut self, lun: u32) -> Option<u32> {
        let block = Some(self.luns[lun as usize].full.head).filter(|&block| block != NONE)?;
        self.blocks.unlink(&mut self.luns[lun as usize].full, block);
        self.luns[lun as usize].cached -= 1;
        Some(block)
    }

    /// Returns the full blocks of the cache on a LUN, oldest first.
    pub(super) fn cached(&self, lun: u32) -> impl Iterator<Item = u32> + '_ {
        self.blocks.list(self.luns[lun as usize].full)
    }
}

/// A stock that was found after a power cut, or saved.
impl Stock {
    /// Counts a block of a LUN, or of a serial log; returns how many there are.
    pub(super) fn hold(&mut self, lun: u32) -> u32 {
        self.luns[lun as usize].held += 1;
        self.held(lun)
    }
}

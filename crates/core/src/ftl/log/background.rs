//! Garbage collection in the background, in steps that requests can overtake.
//!
//! This is what firmware calls background or idle collection: while a LUN has nothing to do, one of its victims is
//! copied a few pages at a time, and erased in a step of its own, as long as the LUN has fewer erased blocks than a
//! normal threshold. A LUN that nevertheless runs out of blocks collects immediately, in the foreground; the reserve is
//! the urgent threshold.
//!
//! The victim, chosen by the policy of the foreground, leaves the policy when its collection begins. Until it is
//! erased its slots stay readable, and the host may invalidate them; slots that it does invalidate are not copied.
//! Copies go where a foreground collection would put them; when there is no room left there, they go to an erased block
//! of the pool or, if the pool has none, to a block of the reserve, which then takes all later copies of the victim.
//!
//! **Nothing deadlocks.** A collection needs the whole reserve. The reserve is short of one block only while a
//! victim's copies fill that block: so a log whose reserve is short finishes the victim before anything else is
//! written ([`Log::append`]); its copies all fit, as they fill at most one block. A log that must collect in the
//! foreground first finishes the victim that was begun; then the argument of [`super`] holds. The collection of a
//! victim begins in the background only where collecting some closed block gains a page, so that policies that take any
//! block (`fifo`, `random`) do not move the data of a full log over and over.

use super::{Log, State, Under};
use crate::flash::Target;
use crate::ftl::blocks::pool::BlockPool;
use crate::util::NONE;

/// What is collected in the background: for each LUN the victim, if a collection was begun, and how many victims in
/// succession gained nothing.
#[derive(Clone, Debug)]
pub(super) struct Background {
    victims: Vec<u32>,
    gainless: Vec<u32>,
}

impl Log {
    /// Prepares the log for [`Log::background_step`].
    pub(crate) fn collect_in_background(&mut self) {
        let luns = self.luns.len();
        self.chooses = true;
        self.background = Some(Box::new(Background { victims: vec![NONE; luns], gainless: vec![0; luns] }));
    }

    /// Returns the block of a LUN whose collection was begun in the background, or [`NONE`].
    #[inline]
    pub(super) fn begun(&self, lun: u32) -> u32 {
        self.background.as_ref().map_or(NONE, |background| background.victims[lun as usize])
    }

    /// Whether a block's collection was begun in the background.
    pub(crate) fn is_begun(&self, block: u32) -> bool {
        self.blocks[block as usize].state == State::Begun
    }

    /// Whether the collection of a victim on a LUN was begun in the background and has not ended.
    pub(crate) fn is_collecting(&self, lun: u32) -> bool {
        self.begun(lun) != NONE
    }

    /// Whether the reserve is one block short, because a victim's copies are filling that block.
    #[inline]
    pub(crate) fn is_short(&self, lun: u32) -> bool {
        self.luns[lun as usize].reserve_len < self.shape.reserve
    }

    /// Whether the log may fill fewer than `blocks` more erased blocks on a LUN, including its reserve, before
    /// it reaches its limit.
    pub(crate) fn nears_limit(&self, lun: u32, blocks: u32) -> bool {
        let most = self.shape.limit - self.shape.slc_blocks;
        most.saturating_sub(self.all_bits(lun)) + self.shape.reserve < blocks
    }

    /// Whether collecting some closed block of a LUN is certain to gain a page.
    pub(crate) fn has_gainful(&self, lun: u32) -> bool {
        let at = &self.luns[lun as usize];
        let begun = u32::from(self.is_collecting(lun));
        let cached = self.cached_blocks(lun).1;
        let closed = u64::from(at.held - at.reserve_len - self.open_blocks(lun) - begun - cached);
        closed * self.addresses.space.sure() > u64::from(at.live)
    }

    /// Finishes the collection that was begun in the background on a LUN; returns whether there was one.
    pub(super) fn end_begun(&mut self, under: &mut Under, lun: u32, moved: &mut dyn FnMut(u32)) -> bool {
        let Some(background) = &mut self.background else { return false };
        let victim = std::mem::replace(&mut background.victims[lun as usize], NONE);
        if victim != NONE {
            self.empty(under, lun, victim, self.shape.gc, moved);
        }
        victim != NONE
    }

    /// Performs one step of a LUN's collection: chooses a victim if none is being collected, and copies its live
    /// slots into up to `pages` pages, or erases it if no live slot is left in it. `moved` is called for every
    /// moved owner.
    ///
    /// # Panics
    /// If the log does not collect in the background, or has no closed block on the LUN.
    pub(crate) fn background_step(
        &mut self,
        under: &mut Under,
        lun: u32,
        pages: u32,
        moved: &mut dyn FnMut(u32),
    ) {
        let victim = match self.begun(lun) {
            NONE => self.begin_victim(lun, under.pool),
            victim => victim,
        };
        let valid = self.blocks[victim as usize].valid;
        let states = valid <= pages * self.shape.slots_per_page && self.relies(victim);
        if valid > 0 && !states {
            self.copy_some(under, lun, victim, pages, moved);
        } else {
            self.background.as_mut().expect("a victim is begun").victims[lun as usize] = NONE;
            if self.trims.is_some() || self.is_superseded(victim) {
                // Other data may have to be on flash first. Trim pages are written with the last copies, and
                // the erasure follows in the same step: until then nothing may rely on them.
                self.empty(under, lun, victim, self.shape.gc, moved);
            } else {
                self.erase(under, victim, self.shape.gc);
            }
        }
    }

    fn begin_victim(&mut self, lun: u32, pool: &BlockPool) -> u32 {
        let at = lun as usize;
        let mut gainless = self.background.as_ref().expect("the log collects in the background").gainless[at];
        let victim = self.choose_victim(lun, &mut gainless, pool);
        let blocks = &self.blocks;
        self.victims.remove(lun, victim, &|block| blocks[block as usize].valid);
        self.blocks[victim as usize].state = State::Begun;
        let background = self.background.as_mut().expect("the log collects in the background");
        (background.victims[at], background.gainless[at]) = (victim, gainless);
        victim
    }

    /// Copies live slots of a victim until `pages` pages are full, or no live slots are left; then pads the last
    /// page.
    fn copy_some(
        &mut self,
        under: &mut Under,
        lun: u32,
        victim: u32,
        mut pages: u32,
        moved: &mut dyn FnMut(u32),
    ) {
        let end = self.addresses.end(victim);
        let mut slot = self.addresses.first(victim);
        let mut copies = 0;
        self.leave_cache(lun);
        let hosts = self.fills_page_of_host(lun);
        self.choose_frontier(under, lun, false, false);
        while pages > 0 && self.blocks[victim as usize].valid > 0 {
            let live = under.slots.valid.next_set(slot, end).expect("the block has a valid slot");
            let owner = under.slots.spare.of(live);
            under.slots.tell(|medium| medium.copy(live, owner));
            under.slots.valid.clear(live);
            // From now on a trim of the owner concerns the copy, not this slot.
            under.slots.spare.set(live, NONE);
            self.blocks[victim as usize].valid -= 1;
            self.luns[lun as usize].live -= 1;
            self.face_copy(under.slots, lun, owner);
            if self.luns[lun as usize].is_full() {
                self.next_for_copies(under, lun, true);
            }
            self.count_moved(lun, 1);
            let placed = self.place(under.slots, lun, owner);
            if owner < self.pages() {
                moved(owner);
            }
            under.work.source(self.addresses.nand_page(live));
            (copies, slot) = (copies + 1, live + 1);
            if self.addresses.in_page(placed + 1) == 0
                || (self.blocks[victim as usize].valid == 0 && self.pad(under.slots, lun))
            {
                let (first, slots) = (self.addresses.page(placed), self.shape.slots_per_page);
                let copies = std::mem::take(&mut copies);
                under.work.target(Target { first, units: 1, slots, begun: slots - copies, copies });
                pages -= 1;
                self.close_if_full(lun);
            }
        }
        let programs = under.work.has_targets();
        self.copy(lun, victim, self.shape.gc, under.work);
        if hosts && programs {
            self.host_goes_on(0, under.work);
        }
    }
}

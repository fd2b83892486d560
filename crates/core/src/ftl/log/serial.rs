//! A log that fills one block at a time, on any LUN: the update-block scheme.
//!
//! Source: Kim and Lee, ICSOFT 2020, section 3.4: translation data goes page by page into one update block;
//! when the log has no other block left, the translation block with the fewest up-to-date units, on any LUN, is
//! collected, and its live units are gathered into full pages.
//!
//! Interpretation: the blocks are taken from the LUNs in turn, so that updates of the mapping do not always go to the
//! same LUN. `limit` and `reserve` of the [`super::Shape`] are those of the whole log; each LUN contributes up to its
//! equal part of the limit, which the FTL keeps free for it, so a block can always be taken below the limit. Within the
//! log all blocks count as blocks of one LUN, so the argument of [`super`] against deadlock holds unchanged.

use super::{Log, Under};
use crate::flash::Cause;
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::slots::Slots;
use crate::util::NONE;

/// The LUNs from which a log that fills one block at a time takes its blocks.
#[derive(Clone, Debug)]
pub(super) struct Serial {
    /// Number of blocks that the log holds on each LUN.
    pub(super) held: Vec<u32>,
    /// The largest number of blocks that the log may hold on each LUN.
    most: u32,
    /// LUN that is asked first for the next block.
    pub(super) next_lun: u32,
}

impl Serial {
    pub(crate) fn new(luns: u32, limit: u32) -> Serial {
        Serial { held: vec![0; luns as usize], most: limit / luns, next_lun: 0 }
    }

    /// Counts a block of a LUN that was found after a power cut or in a saved state.
    pub(crate) fn found(&mut self, lun: u32) {
        self.held[lun as usize] += 1;
    }
}

impl Log {
    /// Takes an erased block from the next LUN that has one to give; the LUNs take turns.
    pub(super) fn take_next(&mut self, pool: &mut BlockPool) -> u32 {
        let serial = self.serial.as_mut().expect("a log of one open block");
        let luns = serial.held.len() as u32;
        for ahead in 0..luns {
            let lun = (serial.next_lun + ahead) % luns;
            if serial.held[lun as usize] < serial.most
                && let Some(block) = pool.take(lun)
            {
                serial.held[lun as usize] += 1;
                serial.next_lun = (lun + 1) % luns;
                return block;
            }
        }
        unreachable!("below its limit the log finds an erased block");
    }

    /// Whether the log fills one block at a time.
    pub(crate) fn is_serial(&self) -> bool {
        self.serial.is_some()
    }

    /// Whether the next owner that is written begins a new page.
    #[inline]
    pub(crate) fn begins_page(&self) -> bool {
        self.addresses.in_page(self.luns[0].next) == 0
    }

    /// Whether the open block is full and the next one is the last that the log may have, so that garbage collection is
    /// due.
    #[inline]
    pub(crate) fn takes_last(&self) -> bool {
        let at = &self.luns[0];
        at.is_full() && at.held + 1 >= self.shape.limit
    }

    /// Opens another block if the open one is full, after collecting garbage if necessary.
    pub(crate) fn open_next(&mut self, under: &mut Under) {
        let mut gainless = 0;
        while self.luns[0].is_full() {
            match self.take_block(0, under.pool) {
                Some(block) => self.open(0, block),
                None => self.collect_next(under, &mut gainless),
            }
        }
    }

    /// Collects garbage until the log may take another block.
    pub(crate) fn collect_until_free(&mut self, under: &mut Under) {
        let mut gainless = 0;
        while self.luns[0].held >= self.shape.limit {
            self.collect_next(under, &mut gainless);
        }
    }

    /// Writes an owner's new version into the slot behind the one written last; the page is programmed once it is full.
    pub(crate) fn append_next(&mut self, under: &mut Under, owner: u32, cause: Cause) {
        if self.luns[0].is_full() {
            self.open_next(under);
        }
        self.renew(under.slots, owner);
        self.place_next(under, owner, cause);
    }

    fn place_next(&mut self, under: &mut Under, owner: u32, cause: Cause) {
        let slot = self.place(under.slots, 0, owner);
        if self.addresses.in_page(slot + 1) == 0 {
            self.program_page(slot, cause, under.work);
        }
    }

    /// Programs the page that was begun, if there is one, although it is part-full.
    pub(crate) fn finish_page(&mut self, under: &mut Under, cause: Cause) {
        if self.pad(under.slots, 0) {
            self.program_page(self.luns[0].next - 1, cause, under.work);
        }
    }

    /// Returns the owners whose newest versions are in the NAND page of a slot.
    pub(crate) fn owners_beside(&self, slots: &Slots, slot: u32) -> impl Iterator<Item = u32> {
        let count = self.shape.slots_per_nand_page();
        let first = self.addresses.nand_page(slot) * count;
        (first..first + count).filter(|&slot| slots.valid.get(slot)).map(|slot| slots.spare.of(slot))
    }

    /// Gathers a victim's live slots into the open block, and erases the victim.
    fn collect_next(&mut self, under: &mut Under, gainless: &mut u32) {
        let victim = self.choose_victim(0, gainless, under.pool);
        assert!(*gainless <= self.luns[0].held, "collecting translation blocks gains nothing");
        let blocks = &self.blocks;
        let copies = blocks[victim as usize].valid;
        self.victims.remove(0, victim, &|block| blocks[block as usize].valid);
        let mut slot = self.addresses.first(victim);
        let end = self.addresses.end(victim);
        let lun = self.addresses.lun(slot);
        let cause = self.shape.gc;
        let mut last_page = NONE;
        under.work.chain();
        while let Some(live) = under.slots.valid.next_set(slot, end) {
            let page = self.addresses.nand_page(live);
            if page != last_page {
                let wanted = self.owners_beside(under.slots, live).count() as u32;
                under.work.read_share(lun, page, cause, [wanted, self.shape.slots_per_nand_page()]);
                last_page = page;
            }
            let owner = under.slots.spare.of(live);
            under.slots.tell(|medium| medium.copy(live, owner));
            under.slots.valid.clear(live);
            if self.luns[0].is_full() {
                let block = self.reserve_pop(0, under.pool, under.work);
                self.open(0, block);
            }
            self.place_next(under, owner, cause);
            slot = live + 1;
        }
        self.luns[0].live -= copies;
        // Copies are programmed before the block they come from is erased.
        self.finish_page(under, cause);
        self.erase(under, victim, cause);
    }

    /// Verifies, in check mode, the block counts of each LUN.
    pub(super) fn verify_serial(&self) -> Result<(), String> {
        let Some(serial) = &self.serial else { return Ok(()) };
        let mut held = vec![0; serial.held.len()];
        for block in (0..self.blocks.len() as u32).filter(|&block| self.has(block)) {
            held[self.addresses.lun(self.addresses.first(block)) as usize] += 1;
        }
        if held != serial.held || held.iter().any(|&blocks| blocks > serial.most) {
            return Err(format!(
                "translation blocks by LUN are {held:?}, counted {:?}, at most {}",
                serial.held, serial.most
            ));
        }
        Ok(())
    }
}

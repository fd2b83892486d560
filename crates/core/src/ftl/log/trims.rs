//! Trims that survive a power cut.
//!
//! A trim leaves nothing on flash, and the trimmed data is still there. So the log of user data has owners
//! besides the logical pages: a *trim page* for every `8 x` (bytes of a logical page) LPNs. It takes one slot
//! and has a bit for each of these LPNs, which says whether the LPN has data. The statement "no data" is about
//! everything written before the trim page, so every version of a trim page that is still on flash stays true,
//! and copies keep their sequence numbers. A trim page is written
//!
//! - at a host flush, if a logical page that it covers was trimmed since the trim page was last written; it
//!   comes after all data that the flush programs, because a page that has data again has its bit cleared;
//! - when garbage collection is about to erase a slot whose page was trimmed since then: an older version of
//!   the page may be elsewhere, and must not come back in place of the trimmed one.
//!
//! Other blocks, on any LUN, with slots that were trimmed before then rely on that trim page too; they are not
//! erased before it is on flash and the collection that wrote it has ended.
//!
//! The second case needs no room beyond the victim's: the victim has at least as many invalid slots as it
//! causes trim pages to be written. Without trims none of this happens, and the trim pages take no room.

use super::run::Run;
use super::{Log, Under};
use crate::flash::Work;
use crate::flash::media::Kind;
use crate::ftl::slots::Slots;
use crate::util::{Bits, NONE};

/// What was trimmed since the trim page that covers it was last written.
#[derive(Clone, Debug)]
pub(super) struct Trims {
    pub(super) lpns: Bits,
    /// Trim pages to be written, in the order of their first trim.
    due: Vec<u32>,
    /// Blocks with a slot that one of these trims made invalid.
    pub(super) blocks: Bits,
}

impl Trims {
    /// Notes that a block has been erased.
    pub(crate) fn erased(&mut self, block: u32) {
        self.blocks.clear(block);
    }
}

impl Log {
    /// Returns the number of owners that are logical or translation pages; later owners are trim pages.
    pub(crate) fn pages(&self) -> u32 {
        self.shape.owners - self.shape.trim_pages
    }

    /// Notes that an owner is trimmed; `slot` holds its data.
    #[cold]
    pub(super) fn note_trim(&mut self, owner: u32, slot: u32) {
        if self.shape.trim_pages == 0 {
            return;
        }
        self.trim_page_needed(self.pages() + owner / self.shape.lpns_per_trim_page, slot).lpns.set(owner);
    }

    /// Notes that a trim page must be written before the block of a slot may be erased.
    fn trim_page_needed(&mut self, owner: u32, slot: u32) -> &mut Trims {
        let (pages, blocks, trim_pages) = (self.pages(), self.blocks.len(), self.shape.trim_pages);
        let block = self.addresses.block(slot);
        let trims = self.trims.get_or_insert_with(|| {
            Box::new(Trims {
                lpns: Bits::new(pages as usize),
                due: Vec::with_capacity(trim_pages as usize),
                blocks: Bits::new(blocks),
            })
        });
        trims.blocks.set(block);
        if !trims.due.contains(&owner) {
            trims.due.push(owner);
        }
        trims
    }

    /// Notes, after a power cut, that a slot holds a version of a trim page that is not the newest one but on
    /// which recovery still relies.
    pub(crate) fn rely(&mut self, slots: &mut Slots, owner: u32, slot: u32) {
        slots.spare.set(slot, owner);
        self.trim_page_needed(owner, slot);
    }

    /// Returns how many trim pages must be written.
    pub(crate) fn trim_pages_due(&self) -> usize {
        self.trims.as_ref().map_or(0, |trims| trims.due.len())
    }

    /// Returns the `at`-th of the trim pages that must be written before the trims so far survive a power cut.
    pub(crate) fn trim_page_due(&self, at: usize) -> Option<u32> {
        self.trims.as_ref()?.due.get(at).copied()
    }

    /// Notes the content of a trim page's newest version on the tape, if there is a tape.
    pub(crate) fn hold_trim_page(&self, slots: &Slots, owner: u32) {
        let Some(tape) = slots.tape() else { return };
        let (first, end) = self.lpns_of(owner);
        let mut bits = vec![0; (end - first).div_ceil(32) as usize];
        for lpn in (first..end).filter(|&lpn| slots.of(lpn) == NONE) {
            // The first LPN of a trim page is a multiple of 32.
            bits[((lpn - first) / 32) as usize] |= 1 << (lpn % 32);
        }
        tape.hold(Kind::Data, owner, slots.seq(owner), bits.into());
    }

    fn lpns_of(&self, owner: u32) -> (u32, u32) {
        let first = (owner - self.pages()) * self.shape.lpns_per_trim_page;
        (first, first.saturating_add(self.shape.lpns_per_trim_page).min(self.pages()))
    }

    /// Notes that a trim page is about to be written, possibly on another LUN; until it has been written, the previous
    /// version is still needed.
    pub(crate) fn trim_page_moves(&mut self, slots: &mut Slots, owner: u32) {
        let old = slots.of(owner);
        if old != NONE {
            let block = self.addresses.block(old);
            self.trims.as_mut().expect("trim pages are due").blocks.set(block);
        }
    }

    /// Notes that a trim page has been written, and with it all trims so far of the LPNs that it covers.
    fn trim_page_written(&mut self, owner: u32) {
        let (first, end) = self.lpns_of(owner);
        let Some(trims) = &mut self.trims else { return };
        trims.due.retain(|&other| other != owner);
        while let Some(lpn) = trims.lpns.next_set(first, end) {
            trims.lpns.clear(lpn);
        }
    }

    /// Notes that all trim pages that were due have been programmed.
    pub(crate) fn trim_pages_written(&mut self, work: &mut Work) {
        while let Some(owner) = self.trim_page_due(0) {
            self.trim_page_written(owner);
        }
        self.trims_settled(work.mark());
    }

    /// Notes that, once all programs and erases up to `number` have finished, the trim pages on which blocks
    /// with trimmed slots rely are on flash for good, whatever a power cut tears.
    pub(super) fn trims_settled(&mut self, number: u32) {
        let Some(trims) = &mut self.trims else { return };
        let count = self.blocks.len() as u32;
        let mut from = 0;
        while let Some(block) = trims.blocks.next_set(from, count) {
            self.blocks[block as usize].after = number;
            from = block + 1;
        }
        if trims.due.is_empty() {
            trims.blocks.reset();
        }
    }

    /// Whether a block has slots that a trim, or a due trim page, made invalid.
    pub(super) fn relies(&self, block: u32) -> bool {
        self.trims.as_ref().is_some_and(|trims| trims.blocks.get(block))
    }

    /// Returns the trim page that is due before a slot is erased, if there is one.
    fn trim_page_awaited(&self, slots: &Slots, slot: u32) -> Option<u32> {
        let trims = self.trims.as_ref().filter(|_| !slots.valid.get(slot))?;
        let owner = slots.spare.of(slot);
        let trimmed = owner < self.pages() && trims.lpns.get(owner);
        let owner = if trimmed { self.pages() + owner / self.shape.lpns_per_trim_page } else { owner };
        (owner >= self.pages() && trims.due.contains(&owner)).then_some(owner)
    }

    /// Writes the trim pages without which trimmed data could come back once `victim` is erased; returns whether
    /// there are any. The trim pages go where the victim's copies will go, and `run` counts them among these
    /// copies.
    pub(super) fn state_trims(&mut self, under: &mut Under, lun: u32, victim: u32, run: &mut Run) -> bool {
        if !self.relies(victim) {
            return false;
        }
        let first = self.addresses.first(victim);
        let mut any = false;
        for slot in first..self.addresses.end(victim) {
            // A trim page that was written for another slot is no longer due.
            let Some(owner) = self.trim_page_awaited(under.slots, slot) else { continue };
            any = true;
            self.trim_page_moves(under.slots, owner);
            let relied = under.slots.spare.of(slot) == owner;
            let old = self.renew(under.slots, owner);
            if relied || (old != NONE && self.addresses.block(old) == victim) {
                // The new version states that there is data, which may still be on its way to another LUN.
                self.blocks[victim as usize].after = under.work.mark();
            }
            if self.luns[lun as usize].is_full() {
                self.note_copies(lun, run, under.work);
                self.next_for_copies(under, lun, false);
            }
            self.place(under.slots, lun, owner);
            run.slots += 1;
            run.trims += 1;
            self.close_if_full(lun);
            self.hold_trim_page(under.slots, owner);
            self.trim_page_written(owner);
        }
        if self.is_by_speed() {
            self.note_copies(lun, run, under.work);
        }
        any
    }
}

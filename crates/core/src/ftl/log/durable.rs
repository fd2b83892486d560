//! What must be on flash before a block is erased: the newer versions of what was in it, and its trims.
//!
//! **Newer versions** of a block's data may still be in a page buffer, or on their way to another LUN: the block is not
//! erased before they are programmed.
//!
//! **Trims** leave nothing on flash, and the trimmed data is still there. So the log of user data has owners
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

use super::{Addresses, Shape};
use crate::flash::Work;
use crate::flash::media::Kind;
use crate::ftl::slots::Slots;
use crate::util::{Bits, Divider, NONE};

/// What was trimmed since the trim page that covers it was last written.
#[derive(Clone, Debug)]
struct Trims {
    lpns: Bits,
    /// Trim pages to be written, in the order of their first trim.
    due: Vec<u32>,
    /// Blocks with a slot that one of these trims made invalid.
    blocks: Bits,
}

/// Number of blocks for which [`Durable::superseded`] has room before it must grow.
const SUPERSEDED: usize = 16;

/// What erases wait for.
#[derive(Clone, Debug)]
pub(crate) struct Durable {
    shape: Shape,
    by_block: Divider,
    /// For each block, the number up to which all programs and erases must finish before it is erased: the data that
    /// replaces its invalid slots may still be on its way to another LUN ([`Work::mark`]). Used only during a run.
    pub(super) after: Vec<u32>,
    /// Blocks with a slot whose owner has a newer version in a page buffer, possibly on another LUN, each with the
    /// front of that page buffer.
    pub(super) superseded: Vec<(u32, u32)>,
    /// Trims that would not yet survive a power cut.
    trims: Option<Box<Trims>>,
}

impl Durable {
    pub(super) fn new(of: &Addresses) -> Durable {
        Durable {
            shape: of.shape,
            by_block: of.by_block,
            after: vec![0; of.blocks() as usize],
            superseded: Vec::with_capacity(SUPERSEDED),
            trims: None,
        }
    }

    /// Notes that an owner's new version is still in the page buffer of a front, so that the block of the old version
    /// is not erased before the new one is programmed.
    #[inline]
    pub(super) fn supersede(&mut self, owner: u32, old: u32, front: u32) {
        if !self.shape.power_safe || self.shape.serial {
            return;
        }
        if old != NONE {
            return self.superseded.push((self.by_block.div(old), front));
        }
        if let Some(trims) = self.trims.as_ref().filter(|_| owner < self.shape.pages())
            && trims.lpns.get(owner)
        {
            // The slot that held the owner's data until the trim is in one of these blocks.
            let blocks = trims.blocks.members(0, self.after.len() as u32);
            self.superseded.extend(blocks.map(|block| (block, front)));
        }
    }

    /// Whether a block has a slot whose owner has a newer version in a page buffer.
    pub(super) fn is_superseded(&self, block: u32) -> bool {
        self.superseded.iter().any(|&(other, _)| other == block)
    }

    /// Notes that the page buffer of a front has been programmed.
    #[inline]
    pub(super) fn settle(&mut self, front: u32, work: &mut Work) {
        if self.superseded.is_empty() {
            return;
        }
        let (number, after) = (work.mark(), &mut self.after);
        self.superseded.retain(|&(block, of)| {
            if of == front {
                after[block as usize] = number;
            }
            of != front
        });
    }

    /// Whether there are trims that would not survive a power cut.
    pub(super) fn has_trims(&self) -> bool {
        self.trims.is_some()
    }

    /// Notes that an owner is trimmed, whose data is in `slot`.
    pub(super) fn note_trim(&mut self, owner: u32, slot: u32) {
        if self.shape.trim_pages > 0 {
            self.need(self.shape.trim_page(owner), slot).lpns.set(owner);
        }
    }

    /// Notes that a trim page must be written before the block of a slot may be erased.
    fn need(&mut self, trim_page: u32, slot: u32) -> &mut Trims {
        let trims = self.trims.get_or_insert_with(|| {
            Box::new(Trims {
                lpns: Bits::new(self.shape.pages() as usize),
                due: Vec::with_capacity(self.shape.trim_pages as usize),
                blocks: Bits::new(self.after.len()),
            })
        });
        trims.blocks.set(self.by_block.div(slot));
        if !trims.due.contains(&trim_page) {
            trims.due.push(trim_page);
        }
        trims
    }

    /// Notes, after a power cut, that a slot holds a version of a trim page that is not the newest one but on
    /// which recovery still relies.
    pub(crate) fn rely(&mut self, slots: &mut Slots, owner: u32, slot: u32) {
        slots.spare.set(slot, owner);
        self.need(owner, slot);
    }

    /// Returns the trim pages that must be written before the trims so far survive a power cut.
    pub(crate) fn due(&self) -> &[u32] {
        self.trims.as_ref().map_or(&[], |trims| &trims.due)
    }

    /// Notes the content of a trim page's newest version on the tape, if there is a tape.
    pub(crate) fn hold(&self, slots: &Slots, owner: u32) {
        let Some(tape) = slots.tape() else { return };
        let lpns = self.shape.lpns_of(owner);
        let mut bits = vec![0; lpns.len().div_ceil(32)];
        for lpn in lpns.clone().filter(|&lpn| slots.of(lpn) == NONE) {
            // The first LPN of a trim page is a multiple of 32.
            bits[((lpn - lpns.start) / 32) as usize] |= 1 << (lpn % 32);
        }
        tape.hold(Kind::Data, owner, slots.seq(owner), bits.into());
    }

    /// Notes that a trim page is about to be written, possibly on another LUN; until it has been written, the previous
    /// version is still needed.
    pub(crate) fn moves(&mut self, slots: &Slots, owner: u32) {
        let old = slots.of(owner);
        if old != NONE {
            self.trims.as_mut().expect("trim pages are due").blocks.set(self.by_block.div(old));
        }
    }

    /// Notes that a trim page has been written, and with it all trims so far of the LPNs that it covers.
    pub(super) fn written(&mut self, owner: u32) {
        let lpns = self.shape.lpns_of(owner);
        let Some(trims) = &mut self.trims else { return };
        trims.due.retain(|&other| other != owner);
        while let Some(lpn) = trims.lpns.next_set(lpns.start, lpns.end) {
            trims.lpns.clear(lpn);
        }
    }

    /// Notes that all trim pages that were due have been programmed.
    pub(crate) fn all_written(&mut self, work: &mut Work) {
        while let Some(&owner) = self.due().first() {
            self.written(owner);
        }
        self.settle_trims(work);
    }

    /// Notes that, once all programs and erases so far have finished, the trim pages on which blocks
    /// with trimmed slots rely are on flash for good, whatever a power cut tears.
    pub(super) fn settle_trims(&mut self, work: &mut Work) {
        let number = work.mark();
        let Some(trims) = &mut self.trims else { return };
        let blocks = trims.blocks.members(0, self.after.len() as u32);
        blocks.for_each(|block| self.after[block as usize] = number);
        if trims.due.is_empty() {
            trims.blocks.reset();
        }
    }

    /// Whether a block has slots that a trim, or a due trim page, made invalid.
    pub(super) fn relies(&self, block: u32) -> bool {
        self.trims.as_ref().is_some_and(|trims| trims.blocks.get(block))
    }

    /// Returns the trim page that is due before a slot is erased, if there is one.
    pub(super) fn awaited(&self, slots: &Slots, slot: u32) -> Option<u32> {
        let trims = self.trims.as_ref().filter(|_| !slots.valid.get(slot))?;
        let owner = slots.spare.of(slot);
        let trimmed = owner < self.shape.pages() && trims.lpns.get(owner);
        let owner = if trimmed { self.shape.trim_page(owner) } else { owner };
        (owner >= self.shape.pages() && trims.due.contains(&owner)).then_some(owner)
    }

    /// Notes that a block has been erased.
    pub(super) fn erased(&mut self, block: u32) {
        self.after[block as usize] = 0;
        if let Some(trims) = &mut self.trims {
            trims.blocks.clear(block);
        }
    }
}

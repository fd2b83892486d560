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

use super::{Addresses, Shape, Stock};
use crate::flash::Work;
use crate::flash::media::Kind;
use crate::ftl::slots::Slots;
use crate::util::{Bits, NONE};

/// What was trimmed since the trim page that covers it was last written.
#[derive(Clone, Debug)]
struct Trims {
    lpns: Bits,
    /// Trim pages to be written, in the order of their first trim.
    due: Vec<u32>,
    /// Blocks with a slot that one of these trims made invalid.
    blocks: Bits,
}

impl Trims {
    /// Returns the blocks that rely on these trims.
    fn blocks(&self, count: u32) -> impl Iterator<Item = u32> + '_ {
        self.blocks.members(0, count)
    }
}

/// Number of blocks for which [`Durable::superseded`] has room before it must grow.
const SUPERSEDED: usize = 16;

/// What erases wait for.
#[derive(Clone, Debug)]
pub(crate) struct Durable {
    shape: Shape,
    /// Blocks with a slot whose owner has a newer version in a page buffer, possibly on another LUN, each with the
    /// front of that page buffer.
    pub(super) superseded: Vec<(u32, u32)>,
    /// Trims that would not yet survive a power cut.
    trims: Option<Box<Trims>>,
}

impl Durable {
    pub(super) fn new(shape: Shape) -> Durable {
        Durable { shape, superseded: Vec::with_capacity(SUPERSEDED), trims: None }
    }

    /// Notes that an owner's new version is still in the page buffer of a front, so that the block of the old version
    /// is not erased before the new one is programmed.
    #[inline]
    pub(super) fn supersede(&mut self, of: &Addresses, owner: u32, old: u32, front: u32) {
        if !self.shape.power_safe || self.shape.serial {
            return;
        }
        if old != NONE {
            return self.superseded.push((of.block(old), front));
        }
        if let Some(trims) = self.trims.as_ref().filter(|_| owner < self.shape.pages())
            && trims.lpns.get(owner)
        {
            // The slot that held the owner's data until the trim is in one of these blocks.
            let count = of.blocks();
            self.superseded.extend(trims.blocks(count).map(|block| (block, front)));
        }
    }

    /// Whether a block has a slot whose owner has a newer version in a page buffer.
    pub(super) fn is_superseded(&self, block: u32) -> bool {
        self.superseded.iter().any(|&(other, _)| other == block)
    }

    /// Notes that the page buffer of a front has been programmed.
    #[inline]
    pub(super) fn settle(&mut self, front: u32, stock: &mut Stock, work: &mut Work) {
        if self.superseded.is_empty() {
            return;
        }
        let (number, blocks) = (work.mark(), &mut stock.blocks);
        self.superseded.retain(|&(block, of)| {
            if of == front {
                blocks[block].after = number;
            }
            of != front
        });
    }

    /// Whether there are trims that would not survive a power cut.
    pub(super) fn has_trims(&self) -> bool {
        self.trims.is_some()
    }

    /// Notes that an owner is trimmed; `block` holds its data.
    #[cold]
    pub(super) fn note_trim(&mut self, of: &Addresses, owner: u32, block: u32) {
        if self.shape.trim_pages > 0 {
            self.need(of, self.shape.trim_page(owner), block).lpns.set(owner);
        }
    }

    /// Notes that a trim page must be written before a block may be erased.
    fn need(&mut self, of: &Addresses, trim_page: u32, block: u32) -> &mut Trims {
        let Shape { trim_pages, .. } = self.shape;
        let trims = self.trims.get_or_insert_with(|| {
            Box::new(Trims {
                lpns: Bits::new(of.shape.pages() as usize),
                due: Vec::with_capacity(trim_pages as usize),
                blocks: Bits::new(of.blocks() as usize),
            })
        });
        trims.blocks.set(block);
        if !trims.due.contains(&trim_page) {
            trims.due.push(trim_page);
        }
        trims
    }

    /// Notes, after a power cut, that a slot holds a version of a trim page that is not the newest one but on
    /// which recovery still relies.
    pub(crate) fn rely(&mut self, of: &Addresses, slots: &mut Slots, owner: u32, slot: u32) {
        slots.spare.set(slot, owner);
        self.need(of, owner, of.block(slot));
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
    pub(crate) fn moves(&mut self, of: &Addresses, slots: &Slots, owner: u32) {
        let old = slots.of(owner);
        if old != NONE {
            self.trims.as_mut().expect("trim pages are due").blocks.set(of.block(old));
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
    pub(crate) fn all_written(&mut self, stock: &mut Stock, work: &mut Work) {
        while let Some(&owner) = self.due().first() {
            self.written(owner);
        }
        self.settle_trims(stock, work);
    }

    /// Notes that, once all programs and erases so far have finished, the trim pages on which blocks
    /// with trimmed slots rely are on flash for good, whatever a power cut tears.
    pub(super) fn settle_trims(&mut self, stock: &mut Stock, work: &mut Work) {
        let number = work.mark();
        let Some(trims) = &mut self.trims else { return };
        let count = stock.blocks.count();
        trims.blocks(count).for_each(|block| stock.blocks[block].after = number);
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
        if let Some(trims) = &mut self.trims {
            trims.blocks.clear(block);
        }
    }
}

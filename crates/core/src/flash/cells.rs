//! How long cells take to read, program or erase, which may depend on the block.
//!
//! Layers above name pages, never times. If all blocks are equally fast (`are_alike`), callers need not say
//! which page they mean.

use super::Flash;
use super::variation::Speeds;
use crate::util::Divider;

/// The cells of a device.
#[derive(Clone, Debug)]
pub struct Cells {
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    by_block: Divider,
    /// How fast each block is, if the blocks differ in speed.
    speeds: Option<Speeds>,
}

impl Cells {
    /// Makes the cells of `flash`, with every block already erased `flash.pe_cycles` times; `seed` seeds the random
    /// numbers.
    pub(super) fn new(flash: &Flash, seed: u64) -> Cells {
        Cells {
            read_ns: flash.read_ns,
            program_ns: flash.program_ns,
            erase_ns: flash.erase_ns,
            by_block: Divider::new(flash.pages_per_block),
            speeds: Speeds::new(flash, seed, flash.pe_cycles as u32),
        }
    }

    /// Whether operations of one kind all take the same time, whichever page they are for.
    #[inline]
    pub(super) fn are_alike(&self) -> bool {
        self.speeds.is_none()
    }

    /// Returns how fast the blocks are, if they differ in speed.
    pub fn speeds(&self) -> Option<&Speeds> {
        self.speeds.as_ref()
    }

    /// Returns the time to read a page, ns; `page` is [`crate::util::NONE`] if the page is not known.
    #[inline]
    pub(super) fn read_ns(&self, _page: u32) -> u64 {
        self.read_ns
    }

    /// Counts programs of consecutive pages of a block; returns the time they take in total, ns.
    #[inline]
    pub(super) fn program_ns(&mut self, first: u32, pages: u32) -> u64 {
        let each_ns = match &mut self.speeds {
            None => self.program_ns,
            Some(speeds) => speeds.program(self.by_block.div(first), pages),
        };
        u64::from(pages) * each_ns
    }

    /// Counts an erasure of the block whose first page is `first`, which may slow the block down; returns the
    /// time that the erasure takes, ns.
    #[inline]
    pub(super) fn erase_ns(&mut self, first: u32) -> u64 {
        if let Some(speeds) = &mut self.speeds {
            speeds.erase(self.by_block.div(first));
        }
        self.erase_ns
    }

    /// Sets the erase count of each block, in block order, to the number of its erasures before this
    /// [`super::Work`] was made.
    pub(super) fn set_erases(&mut self, erases: impl Iterator<Item = u32>) {
        if let Some(speeds) = &mut self.speeds {
            (0..).zip(erases).for_each(|(block, erases)| speeds.set_erases(block, erases));
        }
    }

    /// Sets the counts of programmed pages back to 0.
    pub(super) fn reset_counts(&mut self) {
        if let Some(speeds) = &mut self.speeds {
            speeds.reset_counts();
        }
    }
}

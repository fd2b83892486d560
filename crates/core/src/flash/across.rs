//! The operations of a [`Work`] whose callers name pages of superblocks: each goes to the LUN and the page that
//! [`Superblocks`] says, an erase to all blocks of the superblock, and copies cross from LUN to LUN.
//!
//! The units of a copy are programmed side by side, each once what goes into it has been read: a page that goes into
//! two units is read once, for the first of them.

use super::superblocks::{Filling, Superblocks};
use super::work::{At, Copied};
use super::{Cause, Work};
use crate::util::NONE;

impl Work {
    /// Makes this the sink of a device that fills superblocks: its callers name their pages. If it is `power_safe`,
    /// nothing is programmed in a superblock before all that was emitted earlier, on any LUN, is on flash.
    pub(crate) fn fill_superblocks(&mut self, superblocks: Superblocks, power_safe: bool) {
        self.superblocks = Some(Box::new(Filling { superblocks, power_safe, due: Vec::new() }));
        self.differ = true;
        self.keep_apart();
    }

    /// Returns the LUN and the page of the flash that this page is.
    #[inline]
    pub(super) fn locate(&self, at: At) -> At {
        match &self.superblocks {
            Some(filling) if at.page != NONE => {
                let (lun, page) = filling.superblocks.page(at.page);
                At { lun, page }
            }
            _ => at,
        }
    }

    /// Returns the LUN that reads the `nth` page of a group, in a scan of all its pages, and the page's number in the
    /// scan of that LUN.
    pub(super) fn locate_nth(&self, lun: u32, nth: u32) -> (u32, u32) {
        self.superblocks.as_ref().map_or((lun, nth), |filling| {
            let luns = filling.superblocks.luns();
            (lun * luns + nth % luns, nth / luns)
        })
    }

    /// Notes that a unit of a superblock is about to be programmed on a LUN, which may have to wait.
    pub(super) fn begin_unit(&mut self, lun: u32, unit: u32) {
        let number = self.number;
        let Some(filling) = self.superblocks.as_mut().filter(|filling| filling.power_safe) else { return };
        if filling.superblocks.is_first(unit) {
            let luns = filling.superblocks.luns_of(filling.superblocks.group(lun));
            filling.due.resize(filling.due.len().max(luns.end as usize), 0);
            filling.due[luns.start as usize..luns.end as usize].fill(number);
        }
        if let Some(due) = filling.due.get_mut(lun as usize) {
            self.chain.settled = std::mem::take(due);
        }
    }

    /// Returns the blocks that an erase of the block with this first page erases, each by its LUN and its first page.
    pub(super) fn each_block(&self, first: u32) -> impl Iterator<Item = At> + use<> {
        let superblocks = self.superblocks.as_ref().map(|filling| filling.superblocks);
        let unit_pages = self.timing.unit_pages;
        // The first units of a superblock are the first ones of its blocks.
        superblocks
            .into_iter()
            .flat_map(move |of| (0..of.luns()).map(move |unit| of.page(first + unit * unit_pages)))
            .map(|(lun, page)| At { lun, page })
    }

    /// Copies with a chain of steps for each unit that is programmed.
    pub(super) fn copy_across(&mut self, cause: Cause) {
        let Copied { sources, targets, .. } = &mut self.copied;
        let (pages, units) = (std::mem::take(sources), std::mem::take(targets));
        let begin = self.chain.last;
        let mut sources = pages.iter();
        // Slots that have been read and those that have been programmed, and the load of the last page if it has more.
        let (mut read, mut programmed, mut load) = (0, 0, 0);
        for target in &units {
            let before = programmed;
            for nth in 0..target.units {
                let due = before + target.copies_up_to(nth);
                self.chain.last = begin;
                if read > programmed && due > programmed {
                    self.need(load);
                }
                while read < due
                    && let Some(&(page, copies)) = sources.next()
                {
                    self.read(NONE, page, cause);
                    (read, load) = (read + copies, self.number_load());
                }
                programmed = due;
                self.program(NONE, target.first + nth, cause);
            }
        }
        (self.copied.sources, self.copied.targets) = (pages, units);
        self.copied.sources.clear();
        self.copied.targets.clear();
    }
}

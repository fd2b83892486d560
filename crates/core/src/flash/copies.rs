//! Copies: pages of a LUN that are read, and units of the same LUN that are programmed with their data, which goes
//! through the controller.
//!
//! Reads and programs alternate, so that the controller holds little data; no word line is programmed before all pages
//! whose data it takes have been read.

use super::work::{At, Target};
use super::{Cause, Operation, Timing, Work};
use crate::util::NONE;

impl Target {
    /// Makes a target of one unit, which has one slot.
    pub(crate) fn page(first: u32) -> Target {
        Target { first, units: 1, slots: 1, begun: 0, copies: 1 }
    }

    /// Returns how many slots are copied into the units up to the `nth`, counted from 0.
    pub(super) fn copies_up_to(&self, nth: u32) -> u32 {
        ((nth + 1) * self.slots).saturating_sub(self.begun).min(self.copies)
    }
}

impl Work {
    /// Names NAND pages that the next [`Work::copy`] reads, in the order of the reads; each has one slot.
    #[inline]
    pub(crate) fn sources(&mut self, pages: impl ExactSizeIterator<Item = u32>) {
        self.copied.counts[0] += pages.len() as u32;
        if self.tells_pages() {
            self.copied.sources.extend(pages.map(|page| (page, 1)));
        }
    }

    /// Names the NAND page of one slot that the next [`Work::copy`] copies.
    #[inline]
    pub(crate) fn source(&mut self, page: u32) {
        let again = std::mem::replace(&mut self.copied.last, page + 1) == page + 1;
        self.copied.counts[0] += u32::from(!again);
        if self.tells_pages() {
            match self.copied.sources.last_mut().filter(|_| again) {
                Some((_, copies)) => *copies += 1,
                None => self.copied.sources.push((page, 1)),
            }
        }
    }

    /// Names units that the next [`Work::copy`] programs, in order.
    #[inline]
    pub(crate) fn target(&mut self, target: Target) {
        self.copied.counts[1] += target.units;
        if self.tells_pages() {
            self.copied.targets.push(target);
        }
    }

    /// Whether the next [`Work::copy`] programs anything.
    pub(crate) fn has_targets(&self) -> bool {
        self.copied.counts[1] > 0
    }

    /// Notes how many pages the next [`Work::copy`] reads, and how many units it programs, if it does not matter which
    /// ([`Work::tells_pages`]).
    pub(crate) fn unnamed(&mut self, [reads, units]: [u32; 2]) {
        self.copied.counts = [self.copied.counts[0] + reads, self.copied.counts[1] + units];
    }

    /// Whether it matters which pages a copy reads and programs.
    #[inline]
    pub(crate) fn tells_pages(&self) -> bool {
        self.joining.each
            || !self.cells.are_alike()
            || self.reliability.is_some()
            || (self.timing.unit_pages > 1 && !self.joining.fold && self.has_bus())
    }

    /// Whether reads or programs use the bus.
    fn has_bus(&self) -> bool {
        let Timing { command_ns, page_transfer_ns, program_in_ns, .. } = self.timing;
        command_ns[0] + page_transfer_ns + program_in_ns > 0
    }

    /// Reads the pages of a LUN that [`Work::source`] has named and programs the units that [`Work::target`] has
    /// named.
    pub(crate) fn copy(&mut self, lun: u32, cause: Cause) {
        let [reads, units] = std::mem::take(&mut self.copied.counts);
        self.copied.last = 0;
        let apart = self.joining.each || self.reliability.is_some();
        if self.superblocks.is_some() {
            self.copy_across(cause);
        } else if apart || (!self.joining.fold && self.has_bus()) {
            self.copy_one_by_one(lun, cause, [reads, units]);
        } else if reads + units > 0 {
            let Timing { command_ns, page_transfer_ns, program_in_ns: program_bus_ns, .. } = self.timing;
            let read_bus_ns = command_ns[0] + page_transfer_ns;
            let cell_ns = self.copying_ns(reads, units);
            let (reads, programs) = (u64::from(reads), u64::from(units));
            let bus_ns = reads * read_bus_ns + programs * program_bus_ns;
            self.counts.reads[cause] += reads;
            self.count_programs(cause, units, cell_ns + bus_ns);
            if self.joining.fold {
                let ends_on_bus = reads > programs && page_transfer_ns > 0;
                self.push_folded(lun, (Operation::Read, cause), [cell_ns + bus_ns, bus_ns], ends_on_bus);
            } else {
                self.push(At { lun, page: NONE }, Operation::Read, cause, [0, cell_ns, 0]);
            }
        }
    }

    /// Copies with a step for each operation.
    fn copy_one_by_one(&mut self, lun: u32, cause: Cause, [reads, units]: [u32; 2]) {
        let mut copied = std::mem::take(&mut self.copied);
        let mut sources = copied.sources.drain(..);
        let mut targets = copied.targets.iter();
        let (mut target, mut nth, mut before) = (targets.next(), 0, 0);
        // Where a unit is a page, it waits for one read only (docs/readings/cells.md).
        let waits = self.timing.unit_pages > 1;
        let (mut read, mut there) = (0, 0);
        for at in 0..units {
            let (mut unit, mut due) = (NONE, 0);
            if let Some(of) = target {
                (unit, due) = (of.first + nth, before + of.copies_up_to(nth));
                nth += 1;
                if nth == of.units {
                    (target, nth, before) = (targets.next(), 0, before + of.copies);
                }
            }
            while read < reads && (read <= at || (waits && there < due)) {
                there += self.read_source(lun, cause, sources.next());
                read += 1;
            }
            self.program(lun, unit, cause);
        }
        for _ in read..reads {
            self.read_source(lun, cause, sources.next());
        }
        drop(sources);
        copied.targets.clear();
        self.copied = copied;
    }

    /// Reads a page that is copied; returns the number of slots copied from it.
    fn read_source(&mut self, lun: u32, cause: Cause, source: Option<(u32, u32)>) -> u32 {
        let (page, copies) = source.unwrap_or((NONE, 0));
        self.read(lun, page, cause);
        copies
    }

    /// Returns the cell time of a copy, ns.
    fn copying_ns(&mut self, reads: u32, units: u32) -> u64 {
        let of = self.timing.unit_pages;
        if self.cells.are_alike() {
            return u64::from(reads) * self.cells.read_ns(NONE) + self.cells.program(NONE, units, of).cell_ns;
        }
        let read_ns: u64 = self.copied.sources.drain(..).map(|(page, _)| self.cells.read_ns(page)).sum();
        let cells = &mut self.cells;
        let program = |Target { first, units, .. }| cells.program(first * of, units, of).cell_ns;
        read_ns + self.copied.targets.drain(..).map(program).sum::<u64>()
    }
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;

//! The operations of a [`Work`]: each becomes a step, or part of the one before.

use super::{Cause, Label, Operation, Step, Timing, Work};
use crate::util::NONE;

impl Work {
    /// Reads a page whose content later requests may need, not before it has arrived; returns the
    /// number to wait for ([`Work::need`]), 0 if no request can be too early.
    #[inline]
    pub fn load(&mut self, chip: u32, cause: Cause) -> u32 {
        self.read(chip, cause);
        self.number_load()
    }

    /// Reads `count` of the `of` equal parts of a page whose content later requests may need; see [`Work::load`].
    pub(crate) fn load_share(&mut self, chip: u32, cause: Cause, count: u32, of: u32) -> u32 {
        self.read_share(chip, cause, count, of);
        self.number_load()
    }

    /// Lets whoever names the number it returns wait for the last step.
    #[inline]
    fn number_load(&mut self) -> u32 {
        let Some(loads) = &mut self.loads else { return 0 };
        *loads = loads.checked_add(1).unwrap_or(1);
        let number = *loads;
        self.steps.last_mut().expect("a step was emitted").loads = number;
        self.await_last();
        number
    }

    /// Lets the next step of the chain wait for a load.
    #[inline]
    pub fn need(&mut self, load: u32) {
        self.needs = load;
    }

    #[inline(always)] // for every operation; left to itself it is called
    fn push(&mut self, chip: u32, operation: Operation, cause: Cause, [in_ns, cell_ns, out_ns]: [u64; 3]) {
        let apart = in_ns | out_ns | self.apart | u64::from(self.needs | self.settled | self.marked);
        if apart == 0
            && let Some(step) = self.steps.last_mut()
            && step.chip == chip
            && step.in_ns | step.out_ns == 0
        {
            // In emission order on the same chip it runs right behind anyway.
            step.cell_ns += cell_ns;
        } else {
            if self.fold {
                let times = [in_ns + cell_ns + out_ns, in_ns + out_ns];
                return self.push_folded(chip, operation, times, out_ns > 0);
            }
            self.steps.push(Step {
                chip,
                operation,
                folded: false,
                ends_on_bus: false,
                page: self.page,
                after: self.last,
                needs: self.needs,
                loads: 0,
                number: self.number.wrapping_add(1),
                settled: self.settled,
                in_ns,
                cell_ns,
                out_ns,
            });
            (self.page, self.needs, self.settled, self.marked) = (NONE, 0, 0, 0);
            if self.apart != 0 {
                self.pushed_apart(operation, cause);
            }
        }
        self.last = self.steps.len() as u32 - 1;
    }

    /// Pushes a folded step of so much time, and of so much on the bus within it.
    #[inline(never)] // most devices share buses, or have none that takes time
    fn push_folded(&mut self, chip: u32, operation: Operation, [ns, bus_ns]: [u64; 2], ends_on_bus: bool) {
        let apart = self.apart | u64::from(self.needs | self.settled | self.marked);
        if apart == 0
            && let Some(step) = self.steps.last_mut()
            && step.chip == chip
        {
            step.cell_ns += ns;
            step.out_ns += bus_ns;
            step.ends_on_bus = ends_on_bus;
        } else {
            self.steps.push(Step {
                chip,
                operation,
                folded: true,
                ends_on_bus,
                page: NONE,
                after: self.last,
                needs: self.needs,
                loads: 0,
                number: self.number.wrapping_add(1),
                settled: self.settled,
                in_ns: 0,
                cell_ns: ns,
                out_ns: bus_ns,
            });
            (self.page, self.needs, self.settled, self.marked) = (NONE, 0, 0, 0);
            self.apart = 0;
        }
        self.last = self.steps.len() as u32 - 1;
    }

    /// Labels the last step, if that is wanted; others may be merged into it, if not.
    #[cold]
    fn pushed_apart(&mut self, operation: Operation, cause: Cause) {
        match &mut self.labels {
            None => self.apart = u64::from(self.each),
            Some(labels) => {
                let number = if operation == Operation::Read { NONE } else { self.labelled };
                self.labelled += u32::from(number != NONE);
                labels.truncate(self.steps.len() - 1);
                labels.push(Label { operation, cause, lpn: self.lpn, number });
            }
        }
    }

    /// Reads one page; `out_ns` of bus time bring out what is wanted of it.
    #[inline]
    fn read_with(&mut self, chip: u32, cause: Cause, out_ns: u64) {
        let Timing { command_ns: [command_ns, ..], read_ns, .. } = self.timing;
        self.counts.reads[cause as usize] += 1;
        self.counts.busy_ns[cause as usize] += command_ns + read_ns + out_ns;
        self.push(chip, Operation::Read, cause, [command_ns, read_ns, out_ns]);
    }

    /// Reads a whole page.
    #[inline]
    pub fn read(&mut self, chip: u32, cause: Cause) {
        self.read_with(chip, cause, self.timing.page_transfer_ns);
    }

    /// Reads `count` logical pages out of one NAND page.
    #[inline]
    pub(crate) fn read_part(&mut self, chip: u32, cause: Cause, count: u32) {
        let out_ns = (self.timing.logical_transfer_ns * u64::from(count)).min(self.timing.page_transfer_ns);
        self.read_with(chip, cause, out_ns);
    }

    /// Reads `count` of the `of` equal parts of one NAND page.
    pub(crate) fn read_share(&mut self, chip: u32, cause: Cause, count: u32, of: u32) {
        let out_ns = self.timing.page_transfer_ns * u64::from(count) / u64::from(of);
        self.read_with(chip, cause, out_ns);
    }

    /// Programs a page of a block whose cells take `program_ns`.
    #[inline(always)] // for every write
    pub fn program(&mut self, chip: u32, cause: Cause, program_ns: u64) {
        let in_ns = self.timing.command_ns[1] + self.timing.page_transfer_ns;
        self.push(chip, Operation::Program, cause, [in_ns, program_ns, 0]);
        self.count_programs(cause, 1, program_ns);
    }

    /// Counts programs that no step is made of, so much for the cells of each.
    #[inline]
    pub(crate) fn count_programs(&mut self, cause: Cause, pages: u32, program_ns: u64) {
        let in_ns = self.timing.command_ns[1] + self.timing.page_transfer_ns;
        self.counts.programs[cause as usize] += u64::from(pages);
        self.counts.busy_ns[cause as usize] += u64::from(pages) * (in_ns + program_ns);
        self.number = self.number.wrapping_add(pages);
    }

    /// Reads `reads` pages and programs pages of the same chip, data through the controller.
    /// `programs` says how many, in order, and what the cells of each take, ns.
    pub fn copy(&mut self, chip: u32, cause: Cause, mut reads: u32, programs: &[(u32, u64)]) {
        let Timing { command_ns: [read_command_ns, program_command_ns, _], page_transfer_ns, .. } =
            self.timing;
        let [read_bus_ns, program_bus_ns] =
            [read_command_ns, program_command_ns].map(|command_ns| command_ns + page_transfer_ns);
        if self.each || (read_bus_ns + program_bus_ns > 0 && !self.fold) {
            let (mut read, mut programmed) = (0, 0);
            let named = |pages: &[u32], at: usize| pages.get(at).copied().unwrap_or(NONE);
            for &(pages, program_ns) in programs {
                for _ in 0..pages {
                    if reads > 0 {
                        self.at(named(&self.sources, read)).read(chip, cause);
                        reads -= 1;
                        read += 1;
                    }
                    self.at(named(&self.targets, programmed)).program(chip, cause, program_ns);
                    programmed += 1;
                }
            }
            for _ in 0..reads {
                self.at(named(&self.sources, read)).read(chip, cause);
                read += 1;
            }
            self.sources.clear();
            self.targets.clear();
            return;
        }
        let reads = u64::from(reads);
        let (mut pages, mut cell_ns) = (0, reads * self.timing.read_ns);
        for &(count, program_ns) in programs {
            pages += u64::from(count);
            cell_ns += u64::from(count) * program_ns;
        }
        if reads + pages > 0 {
            let bus_ns = reads * read_bus_ns + pages * program_bus_ns;
            self.counts.reads[cause as usize] += reads;
            self.counts.programs[cause as usize] += pages;
            self.counts.busy_ns[cause as usize] += cell_ns + bus_ns;
            if self.fold {
                let ends_on_bus = reads > pages && self.timing.page_transfer_ns > 0;
                self.push_folded(chip, Operation::Read, [cell_ns + bus_ns, bus_ns], ends_on_bus);
            } else {
                self.push(chip, Operation::Read, cause, [0, cell_ns, 0]);
            }
            self.number = self.number.wrapping_add(pages as u32);
        }
    }

    /// Erases a block.
    pub(crate) fn erase(&mut self, chip: u32, cause: Cause) {
        self.counts.erases[cause as usize] += 1;
        let Timing { command_ns: [.., command_ns], erase_ns, .. } = self.timing;
        self.counts.busy_ns[cause as usize] += command_ns + erase_ns;
        self.push(chip, Operation::Erase, cause, [command_ns, erase_ns, 0]);
        self.number = self.number.wrapping_add(1);
    }

    /// Erases a block, not before every program and erase up to a number has finished; 0: no matter.
    pub(crate) fn erase_after(&mut self, chip: u32, cause: Cause, number: u32) {
        self.settled = number;
        self.erase(chip, cause);
    }

    /// Number of the last program or erase emitted, the first being 1, for [`Work::erase_after`]: what
    /// follows is a step of its own, so that an erase waits for no more than it must.
    pub(crate) fn mark(&mut self) -> u32 {
        self.marked = 1;
        self.number
    }
}

//! The operations of a [`Work`]: each becomes a step of its own, or part of the step before it.

use super::cells::Programs;
use super::work::{At, Chain, Labelled};
use super::{Cause, Label, Operation, Step, Timing, Work};
use crate::util::NONE;

impl Work {
    /// Reads a page whose content later requests may need, in which case they wait for this load; returns the number of
    /// the load, for [`Work::need`], or 0 if no step can overtake a load anyway.
    #[inline]
    pub fn load(&mut self, lun: u32, page: u32, cause: Cause) -> u32 {
        self.read(lun, page, cause);
        self.number_load()
    }

    /// Reads `share[0]` of the `share[1]` equal parts that make up a page, whose content later requests may
    /// need; see [`Work::load`].
    pub(crate) fn load_share(&mut self, lun: u32, page: u32, cause: Cause, share: [u32; 2]) -> u32 {
        self.read_share(lun, page, cause, share);
        self.number_load()
    }

    /// Numbers the last step as a load, so that other steps can wait for it; returns the number.
    #[inline]
    pub(super) fn number_load(&mut self) -> u32 {
        let Some(loads) = &mut self.loads else { return 0 };
        *loads = loads.checked_add(1).unwrap_or(1);
        let number = *loads;
        self.steps.last_mut().expect("a step was emitted").loads = number;
        self.await_last();
        number
    }

    /// Makes the next step of the chain wait for a load.
    #[inline]
    pub fn need(&mut self, load: u32) {
        self.chain.needs = load;
    }

    /// Appends a step that waits for everything its chain waits for.
    #[inline(always)] // called for every operation
    fn append(
        &mut self,
        At { lun, page }: At,
        (operation, cause): (Operation, Cause),
        (folded, ends_on_bus): (bool, bool),
        [in_ns, cell_ns, out_ns]: [u64; 3],
    ) {
        let Chain { last: after, needs, settled, .. } = self.chain;
        let number = self.number.wrapping_add(1);
        self.steps.push(Step {
            lun,
            operation,
            cause,
            folded,
            ends_on_bus,
            page,
            after,
            needs,
            loads: 0,
            number,
            settled,
            in_ns,
            cell_ns,
            out_ns,
        });
        (self.chain.needs, self.chain.settled, self.joining.marked) = (0, 0, 0);
    }

    #[inline(always)] // called for every operation; the compiler would not inline it by itself
    pub(super) fn push(
        &mut self,
        At { lun, page }: At,
        operation: Operation,
        cause: Cause,
        [in_ns, cell_ns, out_ns]: [u64; 3],
    ) {
        let apart = in_ns
            | out_ns
            | self.joining.apart
            | u64::from(self.chain.needs | self.chain.settled | self.joining.marked);
        if apart == 0
            && let Some(step) = self.steps.last_mut()
            && step.lun == lun
            && step.in_ns | step.out_ns == 0
        {
            // The operation would follow the last step immediately anyway: the steps of one LUN run in the order
            // of emission.
            step.cell_ns += cell_ns;
        } else {
            if self.joining.fold {
                let times = [in_ns + cell_ns + out_ns, in_ns + out_ns];
                return self.push_folded(lun, (operation, cause), times, out_ns > 0);
            }
            self.append(At { lun, page }, (operation, cause), (false, false), [in_ns, cell_ns, out_ns]);
            if self.joining.apart != 0 {
                self.pushed_apart(operation, cause);
            }
        }
        self.chain.last = self.steps.len() as u32 - 1;
    }

    /// Pushes a folded step that takes `ns` in all and uses the bus for `bus_ns` of that time.
    #[inline(never)] // rarely called: in most devices LUNs share buses, or transfers take no time
    pub(super) fn push_folded(
        &mut self,
        lun: u32,
        (operation, cause): (Operation, Cause),
        [ns, bus_ns]: [u64; 2],
        ends_on_bus: bool,
    ) {
        let apart =
            self.joining.apart | u64::from(self.chain.needs | self.chain.settled | self.joining.marked);
        if apart == 0
            && let Some(step) = self.steps.last_mut()
            && step.lun == lun
        {
            step.cell_ns += ns;
            step.out_ns += bus_ns;
            step.ends_on_bus = ends_on_bus;
        } else {
            self.append(At { lun, page: NONE }, (operation, cause), (true, ends_on_bus), [0, ns, bus_ns]);
            self.joining.apart = 0;
        }
        self.chain.last = self.steps.len() as u32 - 1;
    }

    /// Counts the last step by page type and labels it, if that is wanted; if it is not labelled, lets later operations
    /// be merged into it again, unless every operation is to be a step of its own.
    #[cold]
    fn pushed_apart(&mut self, operation: Operation, cause: Cause) {
        if let (Some(tally), Some(step)) = (&mut self.tally, self.steps.last()) {
            tally.count(operation, cause, step.page);
        }
        match &mut self.labels {
            None => self.joining.apart = u64::from(self.joining.each),
            Some(Labelled { labels, numbered }) => {
                let number = if operation == Operation::Read { NONE } else { *numbered };
                *numbered += u32::from(number != NONE);
                labels.truncate(self.steps.len() - 1);
                labels.push(Label { operation, cause, lpn: self.chain.lpn, number });
            }
        }
    }

    /// Reads `page`, or an unspecified page of the LUN if `page` is [`NONE`]; the transfer of the data takes `out_ns`.
    #[inline(always)] // called for every read
    fn read_with(&mut self, lun: u32, page: u32, cause: Cause, out_ns: u64) {
        if self.differ {
            return self.read_differing(At { lun, page }, cause, out_ns);
        }
        self.read_for(lun, page, cause, [self.cells.read_ns_of_all(), out_ns]);
    }

    /// Reads a page where pages differ by type, reads meet errors, or pages of superblocks are named.
    #[cold]
    fn read_differing(&mut self, at: At, cause: Cause, out_ns: u64) {
        let at = self.locate(at);
        let cell_ns = self.cells.read_ns(at.page);
        self.read_for(at.lun, at.page, cause, [cell_ns, out_ns]);
        self.repeat(at, cause, [cell_ns, out_ns]);
    }

    #[inline(always)] // called for every read
    fn read_for(&mut self, lun: u32, page: u32, cause: Cause, [cell_ns, out_ns]: [u64; 2]) {
        let command_ns = self.timing.command_ns[0];
        self.counts.reads[cause] += 1;
        self.counts.busy_ns[cause] += command_ns + cell_ns + out_ns;
        self.push(At { lun, page }, Operation::Read, cause, [command_ns, cell_ns, out_ns]);
    }

    /// Reads the `nth` of all pages of a LUN that recovery reads, one after another: of the page only its spare area,
    /// or all of it if it is `whole`.
    pub(crate) fn read_nth(&mut self, lun: u32, nth: u32, whole: bool) {
        let out_ns = if whole { self.timing.page_transfer_ns } else { 0 };
        let (lun, nth) = self.locate_nth(lun, nth);
        self.counts.unsent[Cause::Map] += if whole { 0 } else { u64::from(self.timing.page_bytes) };
        self.read_for(lun, NONE, Cause::Map, [self.cells.read_ns(nth), out_ns]);
    }

    /// Reads a whole page.
    #[inline]
    pub fn read(&mut self, lun: u32, page: u32, cause: Cause) {
        self.read_with(lun, page, cause, self.timing.page_transfer_ns);
    }

    /// Reads some page of a LUN in place of `count` logical pages that hold no data.
    pub(crate) fn read_unwritten(&mut self, lun: u32, cause: Cause, count: u32) {
        self.counts.unwritten += u64::from(count);
        self.read_part(lun, NONE, cause, count);
    }

    /// Reads `count` logical pages from one NAND page.
    #[inline]
    pub(crate) fn read_part(&mut self, lun: u32, page: u32, cause: Cause, count: u32) {
        let whole = self.timing.logical_page_bytes == self.timing.page_bytes;
        let out_ns = if whole { self.timing.page_transfer_ns } else { self.part_ns(cause, count) };
        self.read_with(lun, page, cause, out_ns);
    }

    /// Counts what stays behind when `count` logical pages of a NAND page cross the bus; returns how long they take.
    fn part_ns(&mut self, cause: Cause, count: u32) -> u64 {
        let Timing { page_bytes, logical_page_bytes, logical_transfer_ns, page_transfer_ns, .. } =
            self.timing;
        self.counts.unsent[cause] += u64::from(page_bytes.saturating_sub(count * logical_page_bytes));
        (logical_transfer_ns * u64::from(count)).min(page_transfer_ns)
    }

    /// Reads `count` of the `of` equal parts that make up a NAND page.
    pub(crate) fn read_share(&mut self, lun: u32, page: u32, cause: Cause, [count, of]: [u32; 2]) {
        let out_ns = self.timing.page_transfer_ns * u64::from(count) / u64::from(of);
        self.counts.unsent[cause] += u64::from(self.timing.page_bytes / of * (of - count));
        self.read_with(lun, page, cause, out_ns);
    }

    /// Programs a unit.
    #[inline(always)] // called for every write
    pub fn program(&mut self, lun: u32, unit: u32, cause: Cause) {
        let page = self.first_page(unit);
        if self.differ {
            return self.program_differing(At { lun, page }, unit, cause);
        }
        let cell_ns = self.cells.program_alike(page, self.timing.unit_pages);
        self.program_for(At { lun, page }, cause, cell_ns);
    }

    #[inline(always)] // called for every write
    fn program_for(&mut self, at: At, cause: Cause, cell_ns: u64) {
        let in_ns = self.timing.program_in_ns;
        self.push(at, Operation::Program, cause, [in_ns, cell_ns, 0]);
        self.count_programs(cause, 1, in_ns + cell_ns);
    }

    /// Programs a unit where pages differ by type, reads meet errors, or units of superblocks are named.
    #[cold]
    fn program_differing(&mut self, at: At, unit: u32, cause: Cause) {
        let at = self.locate(at);
        self.begin_unit(at.lun, unit);
        let Programs { cell_ns, slc } = self.cells.program(at.page, 1, self.timing.unit_pages);
        self.note_program(at.page);
        match slc {
            true => self.program_slc(at, cause, cell_ns),
            false => self.program_for(at, cause, cell_ns),
        }
    }

    /// Programs one page of a block that is used with one bit a cell.
    fn program_slc(&mut self, at: At, cause: Cause, cell_ns: u64) {
        let in_ns = self.timing.command_ns[1] + self.timing.page_transfer_ns;
        self.push(at, Operation::Program, cause, [in_ns, cell_ns, 0]);
        self.counts.programs[cause] += 1;
        self.counts.busy_ns[cause] += in_ns + cell_ns;
        self.number = self.number.wrapping_add(1);
    }

    /// Uses the erased block that begins with this unit with one bit a cell, until it is erased.
    pub(crate) fn use_as_slc(&mut self, first: u32) {
        let first = self.first_page(first);
        if self.superblocks.is_none() {
            return self.cells.use_as_slc(first);
        }
        self.each_block(first).for_each(|at| self.cells.use_as_slc(at.page));
    }

    /// Returns the first page of a unit. Where units have several pages, they are known if it matters which.
    #[inline]
    fn first_page(&self, unit: u32) -> u32 {
        unit.wrapping_mul(self.timing.unit_pages)
    }

    /// Counts programs of consecutive units of a block, without making steps for them.
    #[inline]
    pub(crate) fn prefill(&mut self, first: u32, units: u32, cause: Cause) {
        let page = self.first_page(first);
        let of = self.timing.unit_pages;
        let cell_ns = if self.differ {
            self.prefill_differing(page, units)
        } else {
            u64::from(units) * self.cells.program_alike(page, units * of)
        };
        self.count_programs(cause, units, u64::from(units) * self.timing.program_in_ns + cell_ns);
    }

    /// Counts programs where pages differ by type, reads meet errors, or units of superblocks are named; returns their
    /// cell time, ns.
    fn prefill_differing(&mut self, page: u32, units: u32) -> u64 {
        let of = self.timing.unit_pages;
        if self.superblocks.is_none() {
            self.note_program(page);
            return self.cells.program(page, units, of).cell_ns;
        }
        let one = |at| {
            let page = self.locate(At { lun: NONE, page: page + at * of }).page;
            self.note_program(page);
            self.cells.program(page, 1, of).cell_ns
        };
        (0..units).map(one).sum()
    }

    #[inline]
    pub(super) fn count_programs(&mut self, cause: Cause, units: u32, busy_ns: u64) {
        self.counts.programs[cause] += u64::from(units * self.timing.unit_pages);
        self.counts.busy_ns[cause] += busy_ns;
        self.number = self.number.wrapping_add(units);
    }

    /// Charges programs of NAND pages to another cause than the one with which they were emitted.
    pub(crate) fn charge(&mut self, to: Cause, from: Cause, pages: u64) {
        self.counts.programs[from] -= pages;
        self.counts.programs[to] += pages;
    }

    /// Erases the block whose first unit is `first`; of a superblock all blocks, side by side.
    pub(crate) fn erase(&mut self, lun: u32, first: u32, cause: Cause) {
        let first = self.first_page(first);
        if self.superblocks.is_none() {
            return self.erase_one(At { lun, page: first }, cause);
        }
        let (last, settled) = (self.chain.last, self.chain.settled);
        self.each_block(first).for_each(|at| {
            (self.chain.last, self.chain.settled) = (last, settled);
            self.erase_one(at, cause);
        });
    }

    #[inline]
    fn erase_one(&mut self, At { lun, page: first }: At, cause: Cause) {
        let (command_ns, cell_ns) = (self.timing.command_ns[2], self.cells.erase_ns(first));
        if let Some(reliability) = &mut self.reliability {
            reliability.erase(first);
        }
        self.counts.erases[cause] += 1;
        self.counts.busy_ns[cause] += command_ns + cell_ns;
        self.push(At { lun, page: first }, Operation::Erase, cause, [command_ns, cell_ns, 0]);
        self.number = self.number.wrapping_add(1);
    }

    /// Erases a block once every program and erase up to the one numbered `number` has finished; if `number` is 0, the
    /// erase need not wait.
    pub(crate) fn erase_after(&mut self, lun: u32, first: u32, cause: Cause, number: u32) {
        self.chain.settled = number;
        self.erase(lun, first, cause);
    }

    /// Returns the number, counted from 1, of the last program or erase emitted, for [`Work::erase_after`].
    /// Whatever is emitted next begins a new step, so that an erase waits for no more than it must.
    pub(crate) fn mark(&mut self) -> u32 {
        self.joining.marked = 1;
        self.number
    }
}

//! The flash: timing of its operations and the sink an FTL emits them into.
//!
//! An FTL decides *what* happens, in an order; [`Work`] records it as steps with
//! a chip, a duration and a cause, and the device ([`crate::device`]) decides
//! *when* each step runs.

pub mod media;
pub(crate) mod medium;
pub mod parallel;
pub mod settings;
pub mod variation;

pub use settings::{Endurance, Flash};

use crate::util::{Bits, NONE};
use serde::{Deserialize, Serialize};

/// Why a flash operation happened; the keys of `flash.reads`, `flash.programs`, `flash.erases`
/// and `flash.busy_ns` in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Cause {
    /// The host's own data.
    Host = 0,
    /// Mappings programmed or read by lookup, eviction, flush, or GC's updates of mappings.
    Map = 1,
    /// User data moved by garbage collection.
    Gc = 2,
    /// Translation pages moved by garbage collection of translation blocks.
    GcMap = 3,
    /// The directory of translation pages (GTD, MSD).
    Dir = 4,
    /// Merges of hybrid FTLs.
    Merge = 5,
    /// Padding: pages programmed part-full.
    Pad = 6,
    /// Wear levelling.
    Wear = 7,
}

impl Cause {
    /// All causes, in the order of results.
    pub const ALL: [Cause; 8] =
        [Cause::Host, Cause::Map, Cause::Gc, Cause::GcMap, Cause::Dir, Cause::Merge, Cause::Pad, Cause::Wear];

    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Host => "host",
            Cause::Map => "map",
            Cause::Gc => "gc",
            Cause::GcMap => "gc-map",
            Cause::Dir => "dir",
            Cause::Merge => "merge",
            Cause::Pad => "pad",
            Cause::Wear => "wear",
        }
    }
}

/// What a flash operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Reads a page.
    Read = 0,
    /// Programs a page.
    Program = 1,
    /// Erases a block.
    Erase = 2,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 3] = [Operation::Read, Operation::Program, Operation::Erase];

    /// Name in timelines.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Program => "program",
            Operation::Erase => "erase",
        }
    }
}

/// Flash operations by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Page reads.
    pub reads: [u64; 8],
    /// Page programs.
    pub programs: [u64; 8],
    /// Block erases.
    pub erases: [u64; 8],
    /// Time of cells and bus, ns, without waiting.
    pub busy_ns: [u64; 8],
}

/// Durations of the flash operations of one configuration, ns.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Page read, cells only.
    pub read_ns: u64,
    /// Page program, cells only; of a block at the nominal step, where blocks differ.
    pub program_ns: u64,
    /// Block erase.
    pub erase_ns: u64,
    /// A whole page on the channel bus.
    pub page_transfer_ns: u64,
    /// One logical page on the channel bus.
    pub logical_transfer_ns: u64,
    /// A command and its address on the channel bus.
    pub command_ns: u64,
}

impl Timing {
    /// Timing of `flash` with logical pages of `logical_page_bytes`.
    pub fn new(flash: &Flash, logical_page_bytes: u32) -> Timing {
        Timing {
            read_ns: flash.read_ns,
            program_ns: flash.program_ns,
            erase_ns: flash.erase_ns,
            page_transfer_ns: flash.transfer_ns(u64::from(flash.page_bytes)),
            logical_transfer_ns: flash.transfer_ns(u64::from(logical_page_bytes)),
            command_ns: flash.command_ns,
        }
    }
}

/// One stretch of work on one chip: command and data in over the bus, then cells, then data out.
///
/// A chip is here, as everywhere above the device, the least part of the flash to which pages can be
/// directed: a die or a plane where those work on their own ([`parallel`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Chip it runs on.
    pub chip: u32,
    /// What it does; of merged steps, what the first does.
    pub operation: Operation,
    /// NAND page, counted over the device; of an erasure the block's first; [`NONE`]: not known.
    pub page: u32,
    /// Index in the same [`Work`] of the step that must have finished before, or [`NONE`].
    pub after: u32,
    /// Number of the load (of any request) that must have finished before; 0: none.
    pub needs: u32,
    /// Number of the load this step ends, from 1; 0: none.
    pub loads: u32,
    /// Number of the first program or erase in it or, if it has none, behind it ([`Work::mark`]).
    pub number: u32,
    /// All steps up to this number must have finished before, on whatever chip; 0: no matter.
    pub settled: u32,
    /// Bus time before the cells work, ns.
    pub in_ns: u64,
    /// Cell time, ns.
    pub cell_ns: u64,
    /// Bus time after the cells worked, ns.
    pub out_ns: u64,
}

/// What a step is, for timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// What it does.
    pub operation: Operation,
    /// Why.
    pub cause: Cause,
    /// Logical page for which it is done, or [`NONE`].
    pub lpn: u32,
    /// Programs and erases are numbered from 0 in the order of emission; [`NONE`] for a read.
    pub number: u32,
}

/// Collects the steps of one request, in order.
///
/// Steps form chains: within a chain each step waits for the one before; chains
/// (one per logical page) run side by side on different chips. Steps of one chip
/// always run in the order of emission. Neighbours on one chip that need no bus
/// are merged, unless something else may wait for the first of them or they are labelled
/// ([`Work::label`]); that changes no time and saves events.
#[derive(Clone, Debug)]
pub struct Work {
    timing: Timing,
    steps: Vec<Step>,
    last: u32,
    fence: u32,
    /// The load that the next step of the chain waits for.
    needs: u32,
    /// Loads so far; counted only where a load and what needs it can be on different chips.
    loads: Option<u32>,
    /// Programs and erases so far.
    number: u32,
    /// The number up to which all must have finished before the next step; 0: no matter.
    settled: u32,
    /// Not 0: the next step is not merged into the last one.
    marked: u32,
    /// LPN the current chain is for, or [`NONE`].
    lpn: u32,
    /// Not 0: the next step is not merged into the last one, which is waited for, or `each`.
    apart: u64,
    /// Every flash operation is a step of its own.
    each: bool,
    /// NAND page of the next operation, or [`NONE`].
    page: u32,
    /// NAND pages that the next copy reads and programs, where every operation is a step.
    sources: Vec<u32>,
    targets: Vec<u32>,
    /// Label of each step, if that is wanted.
    labels: Option<Vec<Label>>,
    /// Programs and erases labelled so far.
    labelled: u32,
    counts: Counts,
    /// By chip: the work in which requests behind the current one last waited for it.
    hurry: Vec<u64>,
    /// Chips at work, where dynamic allocation asks for them.
    busy: Option<Bits>,
    /// Number of the current request's work, from 1.
    current: u64,
}

impl Work {
    /// An empty sink for a device of so many chips.
    pub fn new(timing: Timing, chips: u32) -> Work {
        Work {
            timing,
            steps: Vec::with_capacity(1024),
            last: NONE,
            fence: NONE,
            needs: 0,
            // On one chip steps run in the order of emission anyway.
            loads: (chips > 1).then_some(0),
            number: 0,
            settled: 0,
            marked: 0,
            lpn: NONE,
            apart: 0,
            each: false,
            page: NONE,
            sources: Vec::new(),
            targets: Vec::new(),
            labels: None,
            labelled: 0,
            counts: Counts::default(),
            hurry: Vec::new(),
            busy: None,
            current: 1,
        }
    }

    /// From now on every flash operation is a step of its own, with a label; no time changes.
    pub fn label(&mut self) {
        self.labels.get_or_insert_default();
        self.keep_apart();
    }

    /// From now on every flash operation is a step of its own, and those of one chip need not run in
    /// the order of emission.
    pub fn keep_apart(&mut self) {
        self.each = true;
        self.apart = 1;
    }

    /// Numbers loads on one chip too: what needs one could pass it.
    pub fn number_loads(&mut self) {
        self.loads.get_or_insert(0);
    }

    /// Operations emitted since the start of the run.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Steps of the current request.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Labels of these steps; none unless they are wanted.
    pub fn labels(&self) -> &[Label] {
        self.labels.as_ref().map_or(&[], |labels| &labels[..self.steps.len()])
    }

    /// Forgets the steps (not the counts): the next request begins.
    #[inline]
    pub fn clear(&mut self) {
        self.steps.clear();
        self.last = NONE;
        self.fence = NONE;
        self.needs = 0;
        self.current += 1;
    }

    /// Marks a chip that requests behind the current one wait for.
    pub fn hurry(&mut self, chip: u32) {
        if chip as usize >= self.hurry.len() {
            self.hurry.resize(chip as usize + 1, 0);
        }
        self.hurry[chip as usize] = self.current;
    }

    /// Whether requests behind the current one wait for a chip.
    pub(crate) fn hurries(&self, chip: u32) -> bool {
        self.hurry.get(chip as usize) == Some(&self.current)
    }

    /// Says which chips are at work, for dynamic allocation.
    pub(crate) fn set_busy(&mut self, busy: &Bits) {
        match &mut self.busy {
            Some(known) => known.copy_from(busy),
            None => self.busy = Some(busy.clone()),
        }
    }

    /// Whether a chip is at work, as far as that is known.
    #[inline]
    pub(crate) fn is_busy(&self, chip: u32) -> bool {
        self.busy.as_ref().is_some_and(|busy| busy.get(chip))
    }

    /// The current request has work for a chip.
    #[inline]
    pub(crate) fn occupy(&mut self, chip: u32) {
        if let Some(busy) = &mut self.busy {
            busy.set(chip);
        }
    }

    /// Names the NAND page, counted over the device, of the next operation.
    #[inline]
    pub fn at(&mut self, page: u32) -> &mut Work {
        self.page = page;
        self
    }

    /// As [`Work::at`], for a page that has to be worked out.
    #[inline]
    pub(crate) fn at_slot(&mut self, page: impl FnOnce() -> u32) -> &mut Work {
        if self.each {
            self.page = page();
        }
        self
    }

    /// Names a NAND page that the next [`Work::copy`] reads; in order.
    #[inline]
    pub fn source(&mut self, page: u32) {
        if self.each {
            self.sources.push(page);
        }
    }

    /// Names consecutive NAND pages that the next [`Work::copy`] programs; in order.
    #[inline]
    pub(crate) fn targets(&mut self, first: u32, pages: u32) {
        if self.each {
            self.targets.extend(first..first + pages);
        }
    }

    /// Forgets counts and steps: what came before is not part of the run.
    pub fn reset(&mut self) {
        self.clear();
        self.counts = Counts::default();
    }

    /// Number of the last load; entries of the mapping cache hold such numbers.
    pub(crate) fn last_load(&self) -> u32 {
        self.loads.unwrap_or(0)
    }

    /// Numbers loads on from `last`.
    pub(crate) fn number_loads_from(&mut self, last: u32) {
        self.loads = self.loads.map(|_| last);
    }

    /// Begins a chain that waits for nothing but the last fence.
    #[inline]
    pub fn chain(&mut self) {
        self.chain_for(NONE);
    }

    /// Begins a chain for a logical page; it waits for nothing but the last fence.
    #[inline]
    pub(crate) fn chain_for(&mut self, lpn: u32) {
        self.last = self.fence;
        self.needs = 0;
        self.lpn = lpn;
    }

    /// Lets every later chain wait for the step emitted last.
    pub(crate) fn fence(&mut self) {
        self.fence = self.last;
        self.await_last();
    }

    /// Whoever waits for the last step would wait for what is merged into it too.
    #[inline]
    fn await_last(&mut self) {
        if self.loads.is_some() {
            self.apart = 1;
        }
    }

    /// Reads a page whose content later requests may need, not before it has arrived; returns the
    /// number to wait for ([`Work::need`]), 0 if nobody can be early.
    #[inline]
    pub fn load(&mut self, chip: u32, cause: Cause) -> u32 {
        self.read(chip, cause);
        self.number_load()
    }

    /// The same of `count` of the `of` equal parts of a page.
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

    #[inline]
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
            self.steps.push(Step {
                chip,
                operation,
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
        let Timing { command_ns, read_ns, .. } = self.timing;
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
    #[inline]
    pub fn program(&mut self, chip: u32, cause: Cause, program_ns: u64) {
        let in_ns = self.timing.command_ns + self.timing.page_transfer_ns;
        self.counts.programs[cause as usize] += 1;
        self.counts.busy_ns[cause as usize] += in_ns + program_ns;
        self.push(chip, Operation::Program, cause, [in_ns, program_ns, 0]);
        self.number = self.number.wrapping_add(1);
    }

    /// Reads `reads` pages and programs pages of the same chip, data through the controller.
    /// `programs` says how many, in order, and what the cells of each take, ns.
    pub fn copy(&mut self, chip: u32, cause: Cause, mut reads: u32, programs: &[(u32, u64)]) {
        if self.timing.command_ns + self.timing.page_transfer_ns > 0 || self.each {
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
        let (mut pages, mut cell_ns) = (0, u64::from(reads) * self.timing.read_ns);
        for &(count, program_ns) in programs {
            pages += u64::from(count);
            cell_ns += u64::from(count) * program_ns;
        }
        if u64::from(reads) + pages > 0 {
            self.counts.reads[cause as usize] += u64::from(reads);
            self.counts.programs[cause as usize] += pages;
            self.counts.busy_ns[cause as usize] += cell_ns;
            self.push(chip, Operation::Read, cause, [0, cell_ns, 0]);
            self.number = self.number.wrapping_add(pages as u32);
        }
    }

    /// Erases a block.
    pub(crate) fn erase(&mut self, chip: u32, cause: Cause) {
        self.counts.erases[cause as usize] += 1;
        let Timing { command_ns, erase_ns, .. } = self.timing;
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
    /// follows is a step of its own, so that nobody waits for more.
    pub(crate) fn mark(&mut self) -> u32 {
        self.marked = 1;
        self.number
    }
}

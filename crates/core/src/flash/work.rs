//! What surrounds the operations of a [`Work`]: chains, labels, counts, and the LUNs for which other requests
//! wait.

use super::superblocks::Filling;
use super::{Cells, Counts, Flash, Label, Reliability, Step, Tally, Timing};
use crate::util::{Bits, NONE};

/// Collects the steps of one request, in order.
///
/// What is programmed at once is a **unit**: a NAND page or, with `flash.programming = "word-line"`, all pages of a
/// word line. Reads name NAND pages, programs and erases name units; both are numbered over the device.
///
/// Steps form chains: within a chain each step waits for the one before; chains (one per logical page) run side
/// by side on different LUNs. Steps of one LUN always run in the order of emission. Neighbouring steps on one
/// LUN that need no bus are merged, unless another step may wait for the first of them or steps are labelled
/// ([`Work::label`]); merging leaves all times as they are and saves events.
#[derive(Clone, Debug)]
pub struct Work {
    pub(super) timing: Timing,
    pub(super) cells: Cells,
    pub(super) counts: Counts,
    pub(super) steps: Vec<Step>,
    pub(super) chain: Chain,
    pub(super) joining: Joining,
    /// Number of loads so far; they are counted only if a load and the step that needs it can be on different LUNs.
    pub(super) loads: Option<u32>,
    /// Number of programs and erases so far.
    pub(super) number: u32,
    pub(super) copied: Copied,
    pub(super) labels: Option<Labelled>,
    /// Counts by page type, if energies differ between the types.
    pub(super) tally: Option<Box<Tally>>,
    pub(super) waited: Waited,
    /// The errors that reads meet, if they can meet any.
    pub(super) reliability: Option<Box<Reliability>>,
    /// Where the pages of superblocks are, if callers name these.
    pub(super) superblocks: Option<Box<Filling>>,
    /// Whether pages differ by type, reads can meet errors, or callers name pages of superblocks.
    pub(super) differ: bool,
}

/// Where an operation goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) lun: u32,
    /// The page, or the first page of a unit or a block; [`NONE`]: unknown.
    pub(super) page: u32,
}

/// What the next step of the current chain waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) last: u32,
    pub(super) fence: u32,
    /// Number of the load for which the step waits; 0: none.
    pub(super) needs: u32,
    /// The number up to which all programs and erases must finish before the step begins; 0: no condition.
    pub(super) settled: u32,
    /// LPN that the chain serves, or [`crate::util::NONE`].
    pub(super) lpn: u32,
}

/// Which operations become part of the step before them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joining {
    /// If this is not 0, the next step is not merged into the step before it.
    pub(super) marked: u32,
    /// If this is not 0, the next step is not merged into the step before it, because some other step may wait for that
    /// step, or because `each` is set.
    pub(super) apart: u64,
    /// Whether every flash operation is a step of its own.
    pub(super) each: bool,
    /// Whether steps are folded.
    pub(super) fold: bool,
}

/// How many NAND pages the next copy reads, how many units it programs and, if it matters, which ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Copied {
    pub(super) counts: [u32; 2],
    /// Pages, each with the number of slots that are copied from it.
    pub(super) sources: Vec<(u32, u32)>,
    pub(super) targets: Vec<Target>,
    /// 1 more than the page that was named last; 0: none was.
    pub(super) last: u32,
}

/// Consecutive units of a block that a copy programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The first unit.
    pub(crate) first: u32,
    pub(crate) units: u32,
    /// Number of slots in a unit.
    pub(crate) slots: u32,
    /// Number of slots, from the first unit's first one on, whose data is not copied.
    pub(crate) begun: u32,
    /// Number of slots that are copied here.
    pub(crate) copies: u32,
}

/// The label of each step, and how many programs and erases have been labelled.
#[derive(Clone, Debug, Default)]
pub(super) struct Labelled {
    pub(super) labels: Vec<Label>,
    pub(super) numbered: u32,
}

/// What the device reports about the LUNs: which of them are busy, and for which of them requests wait.
#[derive(Clone, Debug)]
pub(super) struct Waited {
    /// For each LUN, the number of the latest work behind which other requests waited for that LUN.
    pub(super) hurry: Vec<u64>,
    /// The busy LUNs, if dynamic allocation needs them.
    pub(super) busy: Option<Bits>,
    /// Number of the current request's work, counted from 1.
    pub(super) current: u64,
}

impl Work {
    /// Makes an empty sink for a device that has done no work; which blocks are fast follows from `seed`. If `slc` is
    /// true, blocks may be used with one bit a cell.
    pub fn new(flash: &Flash, logical_page_bytes: u32, seed: u64, slc: bool) -> Work {
        let cells = Cells::new(flash, seed, slc);
        let reliability = Reliability::new(flash, &cells);
        Work {
            timing: Timing::new(flash, logical_page_bytes),
            differ: cells.have_types() || reliability.is_some(),
            reliability,
            cells,
            counts: Counts::default(),
            steps: Vec::with_capacity(1024),
            chain: Chain { last: NONE, fence: NONE, needs: 0, settled: 0, lpn: NONE },
            joining: Joining::default(),
            // On one LUN steps run in the order of emission anyway.
            loads: (flash.luns() > 1).then_some(0),
            number: 0,
            copied: Default::default(),
            labels: None,
            tally: None,
            waited: Waited { hurry: Vec::new(), busy: None, current: 1 },
            superblocks: None,
        }
    }

    /// Makes every flash operation a step of its own, with a label; this does not change the timing.
    pub fn label(&mut self) {
        self.labels.get_or_insert_default();
        self.keep_apart();
    }

    /// Makes every flash operation a step of its own; the steps of one LUN need not run in the order of
    /// emission.
    pub fn keep_apart(&mut self) {
        self.joining.fold = false;
        self.joining.each = true;
        self.joining.apart = 1;
    }

    /// Counts reads and programs by page type from now on; each is then a step of its own.
    pub fn tally(&mut self, flash: &Flash) {
        self.tally = Some(Box::new(Tally::new(flash)));
        self.keep_apart();
    }

    /// Returns the counts by page type, if they are kept.
    pub fn tallied(&self) -> Option<&Tally> {
        self.tally.as_deref()
    }

    /// Folds steps from now on: each is one stretch of time that includes its transfers, and neighbouring steps
    /// on one LUN are merged as if there were no bus. Call this only if no two LUNs share a bus.
    pub(crate) fn fold(&mut self) {
        let Timing { command_ns, page_transfer_ns, .. } = self.timing;
        self.joining.fold = !self.joining.each && command_ns.iter().sum::<u64>() + page_transfer_ns > 0;
    }

    /// Folds nothing while `emit` runs: an operation still under way when the run ends counts only up to that
    /// moment, and a folded step does not tell when it uses the bus.
    pub(crate) fn unfolded<T>(&mut self, emit: impl FnOnce(&mut Work) -> T) -> T {
        let before = std::mem::take(&mut self.joining.fold);
        let result = emit(self);
        self.joining.fold = before;
        result
    }

    /// Numbers loads even on one LUN, in case a step could overtake the load that it needs.
    pub fn number_loads(&mut self) {
        self.loads.get_or_insert(0);
    }

    /// Returns the number of NAND pages in a unit.
    pub(crate) fn unit_pages(&self) -> u32 {
        self.timing.unit_pages
    }

    /// Returns the cells.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Sets the erase count that each block has before the run, in block order.
    pub(crate) fn set_erases(&mut self, erases: impl Iterator<Item = u32>) {
        let erases: Vec<u32> = erases.collect();
        self.cells.set_erases(erases.iter().copied());
        if let Some(reliability) = &mut self.reliability {
            reliability.set_erases(erases.into_iter());
        }
    }

    /// Returns the counts of the operations emitted since the start of the run.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the steps of the current request.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the labels of the current request's steps; there are none unless [`Work::label`] was called.
    pub fn labels(&self) -> &[Label] {
        self.labels.as_ref().map_or(&[], |labelled| &labelled.labels[..self.steps.len()])
    }

    /// Begins the next request: forgets the steps, but not the counts.
    #[inline]
    pub fn clear(&mut self) {
        self.steps.clear();
        (self.chain.last, self.chain.fence, self.chain.needs) = (NONE, NONE, 0);
        self.waited.current += 1;
    }

    /// Marks a LUN as one for which requests behind the current one wait.
    pub fn hurry(&mut self, lun: u32) {
        let Waited { hurry, current, .. } = &mut self.waited;
        if lun as usize >= hurry.len() {
            hurry.resize(lun as usize + 1, 0);
        }
        hurry[lun as usize] = *current;
    }

    /// Whether requests behind the current one wait for a LUN.
    pub(crate) fn hurries(&self, lun: u32) -> bool {
        self.waited.hurry.get(lun as usize) == Some(&self.waited.current)
    }

    /// Sets which LUNs are busy, for dynamic allocation.
    pub(crate) fn set_busy(&mut self, busy: &Bits) {
        match &mut self.waited.busy {
            Some(known) => known.copy_from(busy),
            None => self.waited.busy = Some(busy.clone()),
        }
    }

    /// Whether a LUN is known to be busy.
    #[inline]
    pub(crate) fn is_busy(&self, lun: u32) -> bool {
        self.waited.busy.as_ref().is_some_and(|busy| busy.get(lun))
    }

    /// Notes that the current request has work for a LUN.
    #[inline]
    pub(crate) fn occupy(&mut self, lun: u32) {
        if let Some(busy) = &mut self.waited.busy {
            busy.set(lun);
        }
    }

    /// Forgets counts and steps: what came before is not part of the run.
    pub fn reset(&mut self) {
        self.clear();
        self.counts = Counts::default();
        self.cells.reset_counts();
        if let Some(reliability) = &mut self.reliability {
            reliability.reset_counts();
        }
        if let Some(tally) = &mut self.tally {
            tally.reset();
        }
    }

    /// Begins a chain that waits for nothing but the last fence.
    #[inline]
    pub fn chain(&mut self) {
        self.chain_for(NONE);
    }

    /// Begins a chain for a logical page; it waits for nothing but the last fence.
    #[inline]
    pub(crate) fn chain_for(&mut self, lpn: u32) {
        self.chain = Chain { last: self.chain.fence, needs: 0, lpn, ..self.chain };
    }

    /// Makes every later chain wait for the step emitted last.
    pub(crate) fn fence(&mut self) {
        self.chain.fence = self.chain.last;
        self.await_last();
    }

    /// Keeps later operations from being merged into the last step: whatever waits for that step would otherwise
    /// wait for them too.
    #[inline]
    pub(super) fn await_last(&mut self) {
        if self.loads.is_some() {
            self.joining.apart = 1;
        }
    }
}

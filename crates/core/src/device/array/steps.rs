//! The steps in the device, by slot, and which of them wait for which.

use std::collections::VecDeque;

use crate::flash::{Cause, Label, Operation, Step};
use crate::util::{NONE, memory};

/// A slot and the version it had, which identify a step. Once the slot has another version, the step has finished.
pub(super) type Reference = (u32, u32);

/// The request that steps belong to.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The request, by its place in the pool.
    pub id: u32,
    /// Its stream; `None`: it is one of the device's own.
    pub stream: Option<u16>,
}

/// A reference to no step.
pub(super) const NO_STEP: Reference = (NONE, 0);

/// What is kept of a [`Step`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub lun: u32,
    pub page: u32,
    pub loads: u32,
    pub number: u32,
    pub settled: u32,
    pub operation: Operation,
    pub cause: Cause,
    pub folded: bool,
    pub ends_on_bus: bool,
    pub in_ns: u64,
    pub cell_ns: u64,
    pub out_ns: u64,
}

/// A step in a queue. It takes a cache line, since a device may have thousands of steps, and each has gone cold by the
/// time it is taken up again.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Queued {
    pub step: Stored,
    pub owner: u32,
    pub behind: u32,
    /// The slot's version, which grows when the slot is freed, so that a reference to a finished step can be
    /// recognized.
    version: u32,
    /// Whether the step may have to wait for others.
    pub waits: bool,
    /// Whether another step waits for this one.
    pub awaited: bool,
}

/// All steps that have not finished.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    steps: Vec<Queued>,
    /// For each slot whose step may have to wait, the steps that it waits for: the one that it follows, and the one
    /// whose load it needs; as long as the last of these slots requires.
    wanted: Vec<[Reference; 2]>,
    free: Vec<u32>,
    /// The slots of the loads in progress, by number from that of the first on; [`NONE`] for one that has ended.
    loads: VecDeque<u32>,
    first_load: u32,
    /// Slots of the steps being started, by index in their [`Work`](crate::flash::Work).
    started: Vec<u32>,
    /// Whether each LUN runs its steps in the order of emission.
    pub in_order: bool,
}

/// Number of chained steps to come for which the slots are loaded into the CPU cache.
const AHEAD: usize = 8;

impl Steps {
    pub fn new() -> Steps {
        Steps {
            // Room that is not used takes no memory, but to make more means to copy all steps.
            steps: Vec::with_capacity(1 << 16),
            wanted: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            loads: VecDeque::with_capacity(1024),
            first_load: 0,
            started: Vec::with_capacity(1024),
            in_order: false,
        }
    }

    /// Prepares for the steps of another `Work`.
    #[inline]
    pub fn begin(&mut self) {
        self.started.clear();
    }

    /// Stores the next step of the work, with its times on the bus, in the cells and on the bus again; returns its
    /// slot, and whether it may have to wait for other steps. The times come separately because the fields have just
    /// been written one by one: reading two of them at once would have to wait for the stores.
    #[inline(always)] // called in two places, for every step
    pub fn store(&mut self, step: &Step, [in_ns, cell_ns, out_ns]: [u64; 3], owner: u32) -> (u32, bool) {
        let slot = self.free.pop().unwrap_or_else(|| self.grow(step));
        let queued = &mut self.steps[slot as usize];
        queued.step = Stored::of(step, [in_ns, cell_ns, out_ns]);
        (queued.owner, queued.behind, queued.waits, queued.awaited) = (owner, NONE, false, false);
        self.started.push(slot);
        let linked = step.after != NONE || step.needs | step.loads | step.settled != 0;
        (slot, linked && self.link(slot, step))
    }

    /// Notes which steps a new step waits for, and that others may wait for its load; returns whether it may have to
    /// wait.
    #[inline(never)] // keeps the path of all other steps short
    fn link(&mut self, slot: u32, step: &Step) -> bool {
        // Steps of a chain come one after another, and their slots have not been used for long.
        memory::fetch(
            &self.steps,
            self.free.iter().nth_back(AHEAD).map_or(usize::MAX, |&slot| slot as usize),
        );
        let after = match step.after {
            NONE => NO_STEP,
            index => self.reference(self.started[index as usize]),
        };
        // Once a step is at the head of its LUN, the one before it in the LUN has finished.
        let sure = |at: u32| self.in_order && at != NONE && self.steps[at as usize].step.lun == step.lun;
        let after = if sure(after.0) { NO_STEP } else { after };
        let needs = match self.loads.get(self.load_at(step.needs)) {
            Some(&loading) if step.needs != 0 && loading != NONE => self.reference(loading),
            _ => NO_STEP,
        };
        let waits = after.0 & needs.0 != NONE || step.settled != 0;
        if waits {
            self.steps[slot as usize].waits = true;
            self.want(slot, [after, needs]);
        }
        if step.loads > 0 {
            self.begin_load(step.loads, slot);
        }
        waits
    }

    /// Returns where the load of this number is in the list, if it is there.
    #[inline]
    fn load_at(&self, number: u32) -> usize {
        number.wrapping_sub(self.first_load) as usize
    }

    /// Notes that others may wait for a load; numbers ascend.
    fn begin_load(&mut self, number: u32, slot: u32) {
        if self.loads.is_empty() {
            self.first_load = number;
        }
        // Numbers may be left out.
        while self.loads.len() < self.load_at(number) {
            self.loads.push_back(NONE);
        }
        self.loads.push_back(slot);
    }

    #[inline(never)] // keeps the path of all other steps short
    fn end_load(&mut self, number: u32) {
        let at = self.load_at(number);
        self.loads[at] = NONE;
        while self.loads.front() == Some(&NONE) {
            self.loads.pop_front();
            self.first_load = self.first_load.wrapping_add(1);
        }
    }

    /// Notes the steps that the one in a slot waits for.
    fn want(&mut self, slot: u32, wanted: [Reference; 2]) {
        if self.wanted.len() <= slot as usize {
            self.wanted.resize(self.steps.len(), [NO_STEP; 2]);
        }
        self.wanted[slot as usize] = wanted;
    }

    /// Makes another slot and returns it.
    #[cold]
    fn grow(&mut self, step: &Step) -> u32 {
        let step = Stored::of(step, [0; 3]);
        let (owner, behind, version, waits, awaited) = (NONE, NONE, 0, false, false);
        self.steps.push(Queued { step, owner, behind, version, waits, awaited });
        self.free.reserve(self.steps.len());
        self.steps.len() as u32 - 1
    }

    /// Returns a step and those behind it in its queue or operation.
    pub fn line(&self, head: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |slot: u32| (slot != NONE).then_some(slot);
        std::iter::successors(some(head), move |&slot| some(self[slot].behind))
    }

    #[inline]
    pub fn reference(&self, slot: u32) -> Reference {
        (slot, self.steps[slot as usize].version)
    }

    /// Whether a reference refers to an unfinished step.
    #[inline]
    pub fn unfinished(&self, (slot, version): Reference) -> bool {
        slot != NONE && self.steps[slot as usize].version == version
    }

    /// Returns the steps that a step waits for: the one that it follows, and the one whose load it needs.
    #[inline]
    pub fn awaited_by(&self, slot: u32) -> [Reference; 2] {
        if self.steps[slot as usize].waits { self.wanted[slot as usize] } else { [NO_STEP; 2] }
    }

    /// Begins to load a step, if there is one, into the CPU cache.
    #[inline(always)]
    pub fn fetch(&self, slot: u32) {
        memory::fetch(&self.steps, slot as usize);
    }

    /// Ends a step and frees its slot, where it stays readable until another step is stored there.
    #[inline(always)] // for every step
    pub fn finish(&mut self, slot: u32) -> &Queued {
        let queued = &mut self.steps[slot as usize];
        queued.version = queued.version.wrapping_add(1);
        let loads = queued.step.loads;
        if loads > 0 {
            self.end_load(loads);
        }
        self.free.push(slot);
        &self.steps[slot as usize]
    }
}

impl Stored {
    #[inline(always)] // for every step
    fn of(step: &Step, [in_ns, cell_ns, out_ns]: [u64; 3]) -> Stored {
        let Step { lun, page, loads, number, settled, operation, cause, folded, ends_on_bus, .. } = *step;
        Stored {
            lun,
            page,
            loads,
            number,
            settled,
            operation,
            cause,
            folded,
            ends_on_bus,
            in_ns,
            cell_ns,
            out_ns,
        }
    }
}

impl std::ops::Index<u32> for Steps {
    type Output = Queued;

    #[inline]
    fn index(&self, slot: u32) -> &Queued {
        &self.steps[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Steps {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Queued {
        &mut self.steps[slot as usize]
    }
}

/// The stages of a step, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The first transfer over the bus, before the cells work.
    In,
    /// The work of the cells.
    Cells,
    /// The second transfer over the bus, after the cells have worked.
    Out,
}

/// A stretch of time in which cells, or a channel's bus, worked on a step.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The LUN that the step ran on: see [`crate::flash::parallel`].
    pub lun: u32,
    /// The meaning of the step.
    pub label: Label,
    /// The step's owner.
    pub(in crate::device) owner: u32,
    /// The stage that was worked on.
    pub stage: Stage,
    /// Whether the cells were suspended and go on later.
    pub suspended: bool,
    /// When the work began, ns.
    pub begin_ns: u64,
    /// When the work ended, ns.
    pub end_ns: u64,
}

/// The labels and spans recorded for a timeline.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// Labels of the steps, by slot.
    labels: Vec<Label>,
    /// Activities that have ended.
    pub spans: Vec<Span>,
}

impl Kept {
    /// Attaches labels to the steps of the current `Work`.
    pub fn label(&mut self, steps: &Steps, labels: &[Label]) {
        let Some(&any) = labels.first() else { return };
        self.labels.resize(steps.steps.len(), any);
        for (&slot, &label) in steps.started.iter().zip(labels) {
            self.labels[slot as usize] = label;
        }
    }

    /// Marks the span recorded last as suspended: its activity has not ended.
    pub fn suspend_last(&mut self) {
        if let Some(span) = self.spans.last_mut() {
            span.suspended = true;
        }
    }

    /// Records an activity that has just ended.
    pub fn add(&mut self, steps: &Steps, slot: u32, stage: Stage, [begin_ns, end_ns]: [u64; 2]) {
        let Queued { step, owner, .. } = &steps.steps[slot as usize];
        let label = self.labels[slot as usize];
        let suspended = false;
        self.spans.push(Span { lun: step.lun, label, owner: *owner, stage, suspended, begin_ns, end_ns });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: each step looked through all loads in progress, which took minutes where tens of thousands waited.
    #[test]
    fn loads_are_found_by_number() {
        let mut steps = Steps::new();
        let numbers: Vec<u32> = (u32::MAX - 150_000..=u32::MAX).chain(1..150_000).step_by(3).collect();
        (0..).zip(&numbers).for_each(|(slot, &number)| steps.begin_load(number, slot));
        for (slot, &number) in (0..).zip(&numbers) {
            assert_eq!(steps.loads[steps.load_at(number)], slot);
            assert_eq!(steps.loads.get(steps.load_at(number.wrapping_add(1))).unwrap_or(&NONE), &NONE);
        }
        for &number in numbers.iter().skip(1).step_by(2).chain(numbers.iter().step_by(2)) {
            steps.end_load(number);
            assert!(steps.loads.get(steps.load_at(number)).is_none_or(|&slot| slot == NONE));
        }
        assert!(steps.loads.is_empty());
    }
}

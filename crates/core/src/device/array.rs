//! Chips and channel buses: when steps run.

use std::collections::VecDeque;

use super::bus::Bus;
use super::steps::{Kept, Part, Queued, Reference, Span, Steps};
use crate::clock::{Clock, NEVER};
use crate::flash::{Label, Step};
use crate::util::{Bits, NONE};

/// What a chip is doing with the step at the head of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// Waits for a step on another chip.
    Stalled,
    /// Waits for, or uses, the bus before its cells work.
    In,
    Cell,
    /// Waits for, or uses, the bus after its cells worked.
    Out,
}

#[derive(Clone, Copy, Debug)]
struct Chip {
    phase: Phase,
    head: u32,
    tail: u32,
    busy_ns: u64,
}

/// All chips and buses of a device. Resources of the clock: the chips, then the channels.
#[derive(Clone, Debug)]
pub struct Array {
    chips: Vec<Chip>,
    /// Chips that have something to do.
    busy: Bits,
    /// How many times a chip ran out of work.
    rests: u64,
    channels: Vec<Bus>,
    clock: Clock,
    steps: Steps<()>,
    stalled: VecDeque<u32>,
    active: u32,
    kept: Option<Box<Kept>>,
}

impl Array {
    /// Idle chips, spread over the channels: channel(chip) = chip mod channels.
    pub fn new(chips: u32, channels: u32) -> Array {
        let chip = Chip { phase: Phase::Idle, head: NONE, tail: NONE, busy_ns: 0 };
        Array {
            chips: vec![chip; chips as usize],
            busy: Bits::new(chips as usize),
            rests: 0,
            channels: vec![Bus::default(); channels as usize],
            clock: Clock::new(chips + channels),
            steps: Steps::new(),
            stalled: VecDeque::with_capacity(chips as usize),
            active: 0,
            kept: None,
        }
    }

    /// From now on what ends is kept as spans until it is taken, and steps need labels.
    pub fn keep_spans(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// Whether spans are kept.
    #[inline]
    pub fn keeps_spans(&self) -> bool {
        self.kept.is_some()
    }

    /// Takes the spans kept, in the order in which they ended; those of one chip do not overlap.
    pub fn take_spans(&mut self) -> impl Iterator<Item = Span> + '_ {
        self.kept.iter_mut().flat_map(|kept| kept.spans.drain(..))
    }

    /// Labels the steps just started.
    #[cold]
    pub fn label(&mut self, labels: &[Label]) {
        if let Some(kept) = &mut self.kept {
            kept.label(&self.steps, labels);
        }
    }

    /// Keeps what a chip has just done, as its phase and the step at its head say.
    #[cold]
    fn keep_span(&mut self, chip: u32, end_ns: u64) {
        let Some(kept) = &mut self.kept else { return };
        let Chip { phase, head, .. } = self.chips[chip as usize];
        let step = &self.steps[head].step;
        let (part, ns) = match phase {
            Phase::In => (Part::In, step.in_ns),
            Phase::Out => (Part::Out, step.out_ns),
            _ => (Part::Cells, step.cell_ns),
        };
        kept.add(&self.steps, head, part, [end_ns - ns, end_ns]);
    }

    /// Whether a chip has nothing to do.
    #[inline]
    pub fn is_idle(&self, chip: u32) -> bool {
        self.chips[chip as usize].head == NONE
    }

    /// Chips that have something to do.
    #[inline]
    pub fn busy(&self) -> &Bits {
        &self.busy
    }

    /// How many times a chip ran out of work; while it stays the same, no chip became idle.
    #[inline]
    pub fn rests(&self) -> u64 {
        self.rests
    }

    /// Whether no chip has anything to do.
    #[inline]
    pub fn all_idle(&self) -> bool {
        self.active == 0
    }

    /// When the next resource is due, or [`NEVER`].
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.clock.next().0
    }

    /// Time each chip worked or used its bus, ns.
    pub fn chip_busy_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.chips.iter().map(|chip| chip.busy_ns)
    }

    /// Time each channel's bus was used, ns.
    pub fn channel_busy_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.channels.iter().map(Bus::busy_ns)
    }

    /// Puts the steps of one owner into their chips' queues.
    #[inline]
    pub fn start(&mut self, owner: u32, steps: &[Step], now_ns: u64) {
        self.steps.begin();
        for &step in steps {
            let slot = self.steps.store(step, owner, ());
            self.active += 1;
            let chip = &mut self.chips[step.chip as usize];
            if chip.head == NONE {
                chip.head = slot;
                chip.tail = slot;
                self.busy.set(step.chip);
                self.begin(step.chip, now_ns);
            } else {
                let tail = std::mem::replace(&mut chip.tail, slot);
                self.steps[tail].behind = slot;
            }
        }
    }

    /// Begins the step at the head of a chip's queue, if what it waits for is finished.
    #[inline]
    fn begin(&mut self, chip: u32, now_ns: u64) {
        let Queued { step, after, needs, .. } = &self.steps[self.chips[chip as usize].head];
        let Step { in_ns, cell_ns, settled, .. } = *step;
        // Most wait for nothing.
        if (after.0 & needs.0 != NONE || settled != 0)
            && let Some(awaited) = self.awaited(chip, [*after, *needs], settled)
        {
            self.steps[awaited].awaited = true;
            self.chips[chip as usize].phase = Phase::Stalled;
            self.stalled.push_back(chip);
        } else if in_ns > 0 {
            self.chips[chip as usize].phase = Phase::In;
            self.request_bus(chip, now_ns);
        } else {
            self.work_cells(chip, cell_ns, now_ns);
        }
    }

    /// A step that a chip has to wait for: one of these, or one up to a number; 0: no matter.
    #[inline]
    fn awaited(&self, chip: u32, steps: [Reference; 2], settled: u32) -> Option<u32> {
        let unfinished = |&wanted: &Reference| self.steps.unfinished(wanted);
        let awaited = steps.into_iter().find(unfinished).map(|(slot, _)| slot);
        if awaited.is_none() && settled != 0 { self.unsettled(chip, settled) } else { awaited }
    }

    /// A step up to this number that some other chip has not finished. Chips run their steps in the order
    /// of their numbers.
    #[cold]
    fn unsettled(&self, chip: u32, number: u32) -> Option<u32> {
        let heads = self.chips.iter().enumerate().filter(|(other, _)| *other != chip as usize);
        let older =
            |slot: &u32| *slot != NONE && number.wrapping_sub(self.steps[*slot].step.number) < 1 << 31;
        heads.map(|(_, chip)| chip.head).find(older)
    }

    #[inline]
    fn work_cells(&mut self, chip: u32, cell_ns: u64, now_ns: u64) {
        let state = &mut self.chips[chip as usize];
        state.phase = Phase::Cell;
        state.busy_ns += cell_ns;
        self.clock.set(chip, now_ns + cell_ns);
    }

    fn request_bus(&mut self, chip: u32, now_ns: u64) {
        let channel = chip as usize % self.channels.len();
        if self.channels[channel].ask(chip) {
            self.grant_bus(channel, chip, now_ns);
        }
    }

    fn grant_bus(&mut self, channel: usize, chip: u32, now_ns: u64) {
        let state = &mut self.chips[chip as usize];
        let step = &self.steps[state.head].step;
        let ns = if state.phase == Phase::In { step.in_ns } else { step.out_ns };
        state.busy_ns += ns;
        self.channels[channel].grant(chip, ns);
        self.clock.set(self.chips.len() as u32 + channel as u32, now_ns + ns);
    }

    /// Moves on the first resource due at `now_ns` or before; `None` if none is, else the owner of
    /// the step that finished, if one did.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) -> Option<Option<u32>> {
        let (due_ns, resource) = self.clock.next();
        if due_ns > now_ns {
            return None;
        }
        self.clock.set(resource, NEVER);
        let chips = self.chips.len() as u32;
        if resource < chips {
            if self.kept.is_some() {
                self.keep_span(resource, due_ns);
            }
            let head = self.chips[resource as usize].head;
            if self.steps[head].step.out_ns == 0 {
                return Some(Some(self.finish(resource, now_ns)));
            }
            self.chips[resource as usize].phase = Phase::Out;
            self.request_bus(resource, now_ns);
            return Some(None);
        }
        let channel = (resource - chips) as usize;
        let (chip, next) = self.channels[channel].release();
        if self.kept.is_some() {
            self.keep_span(chip, due_ns);
        }
        if let Some(next) = next {
            self.grant_bus(channel, next, now_ns);
        }
        if self.chips[chip as usize].phase == Phase::In {
            let head = self.chips[chip as usize].head;
            self.work_cells(chip, self.steps[head].step.cell_ns, now_ns);
            return Some(None);
        }
        Some(Some(self.finish(chip, now_ns)))
    }

    /// Ends the step at the head of a chip's queue and begins the one behind it.
    #[inline(always)] // for every step
    fn finish(&mut self, chip: u32, now_ns: u64) -> u32 {
        let slot = self.chips[chip as usize].head;
        let &Queued { owner, behind, awaited, .. } = self.steps.finish(slot);
        self.active -= 1;
        self.chips[chip as usize].head = behind;
        if behind == NONE {
            self.chips[chip as usize].tail = NONE;
            self.chips[chip as usize].phase = Phase::Idle;
            self.busy.clear(chip);
            self.rests += 1;
        } else {
            self.begin(chip, now_ns);
        }
        if awaited {
            for _ in 0..self.stalled.len() {
                // Those that still wait stall again, at the end.
                let waiting = self.stalled.pop_front().expect("counted");
                self.begin(waiting, now_ns);
            }
        }
        owner
    }
}

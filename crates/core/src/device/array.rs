//! Chips and channel buses: when steps run.

use std::collections::VecDeque;

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

#[derive(Clone, Debug, Default)]
struct Channel {
    /// The chip that has the bus, if any.
    user: Option<u32>,
    queue: VecDeque<u32>,
    busy_ns: u64,
}

/// A step in a chip's queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    step: Step,
    owner: u32,
    behind: u32,
    /// Grows when the slot is freed, so that an old reference is known to be finished.
    version: u32,
    /// The step to wait for: slot and version.
    after: (u32, u32),
    /// The step that loads what is needed: slot and version.
    needs: (u32, u32),
    /// A chip is stalled on this step.
    awaited: bool,
}

/// What worked on a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The bus, before the cells.
    In,
    /// The cells.
    Cells,
    /// The bus, after the cells.
    Out,
}

/// A stretch of time in which a chip's cells, or its channel's bus, worked on a step.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Chip.
    pub chip: u32,
    /// What the step is.
    pub label: Label,
    /// Whose it is.
    pub(super) owner: u32,
    /// What worked.
    pub part: Part,
    /// From, ns.
    pub begin_ns: u64,
    /// To, ns.
    pub end_ns: u64,
}

/// What is kept for a timeline.
#[derive(Clone, Debug, Default)]
struct Kept {
    /// What the steps are, by slot.
    labels: Vec<Label>,
    /// What has ended.
    spans: Vec<Span>,
}

/// All chips and buses of a device. Resources of the clock: the chips, then the channels.
#[derive(Clone, Debug)]
pub struct Array {
    chips: Vec<Chip>,
    /// Chips that have something to do.
    busy: Bits,
    /// How many times a chip ran out of work.
    rests: u64,
    channels: Vec<Channel>,
    clock: Clock,
    steps: Vec<Queued>,
    free: Vec<u32>,
    stalled: VecDeque<u32>,
    /// Loads under way: number, and the slot of the step.
    loads: Vec<(u32, u32)>,
    /// Slots of the steps being started, by index in their work.
    started: Vec<u32>,
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
            channels: vec![Channel::default(); channels as usize],
            clock: Clock::new(chips + channels),
            steps: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            stalled: VecDeque::with_capacity(chips as usize),
            loads: Vec::with_capacity(1024),
            started: Vec::with_capacity(1024),
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
        let (Some(kept), Some(&any)) = (&mut self.kept, labels.first()) else { return };
        kept.labels.resize(self.steps.len(), any);
        for (&slot, &label) in self.started.iter().zip(labels) {
            kept.labels[slot as usize] = label;
        }
    }

    /// Keeps what a chip has just done, as its phase and the step at its head say.
    #[cold]
    fn keep_span(&mut self, chip: u32, end_ns: u64) {
        let Some(kept) = &mut self.kept else { return };
        let Chip { phase, head, .. } = self.chips[chip as usize];
        let Queued { step, owner, .. } = self.steps[head as usize];
        let (part, ns) = match phase {
            Phase::In => (Part::In, step.in_ns),
            Phase::Out => (Part::Out, step.out_ns),
            _ => (Part::Cells, step.cell_ns),
        };
        let label = kept.labels[head as usize];
        kept.spans.push(Span { chip, label, owner, part, begin_ns: end_ns - ns, end_ns });
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
        self.channels.iter().map(|channel| channel.busy_ns)
    }

    /// Puts the steps of one owner into their chips' queues.
    #[inline]
    pub fn start(&mut self, owner: u32, steps: &[Step], now_ns: u64) {
        self.started.clear();
        for &step in steps {
            let slot = self.store(step, owner);
            self.started.push(slot);
            if step.loads > 0 {
                self.loads.push((step.loads, slot));
            }
            self.active += 1;
            let chip = &mut self.chips[step.chip as usize];
            if chip.head == NONE {
                chip.head = slot;
                chip.tail = slot;
                self.busy.set(step.chip);
                self.begin(step.chip, now_ns);
            } else {
                let tail = std::mem::replace(&mut chip.tail, slot);
                self.steps[tail as usize].behind = slot;
            }
        }
    }

    #[inline(always)] // called in one place, for every step
    fn store(&mut self, step: Step, owner: u32) -> u32 {
        let after = match step.after {
            NONE => (NONE, 0),
            index => self.reference(self.started[index as usize]),
        };
        let needs = match step.needs {
            0 => (NONE, 0),
            wanted => match self.loads.iter().find(|&&(number, _)| number == wanted) {
                Some(&(_, slot)) => self.reference(slot),
                None => (NONE, 0),
            },
        };
        let queued = Queued { step, owner, behind: NONE, version: 0, after, needs, awaited: false };
        match self.free.pop() {
            Some(slot) => {
                let version = self.steps[slot as usize].version;
                self.steps[slot as usize] = Queued { version, ..queued };
                slot
            }
            None => {
                self.steps.push(queued);
                self.free.reserve(self.steps.len());
                self.steps.len() as u32 - 1
            }
        }
    }

    fn reference(&self, slot: u32) -> (u32, u32) {
        (slot, self.steps[slot as usize].version)
    }

    /// Begins the step at the head of a chip's queue, if what it waits for is finished.
    #[inline]
    fn begin(&mut self, chip: u32, now_ns: u64) {
        let Queued { step, after, needs, .. } = self.steps[self.chips[chip as usize].head as usize];
        let unfinished =
            |&(slot, version): &(u32, u32)| slot != NONE && self.steps[slot as usize].version == version;
        let mut awaited = [after, needs].into_iter().find(unfinished).map(|(slot, _)| slot);
        if step.settled != 0 && awaited.is_none() {
            awaited = self.unsettled(chip, step.settled);
        }
        if let Some(awaited) = awaited {
            self.steps[awaited as usize].awaited = true;
            self.chips[chip as usize].phase = Phase::Stalled;
            self.stalled.push_back(chip);
        } else if step.in_ns > 0 {
            self.chips[chip as usize].phase = Phase::In;
            self.request_bus(chip, now_ns);
        } else {
            self.work_cells(chip, step.cell_ns, now_ns);
        }
    }

    /// A step up to this number that some other chip has not finished. Chips run their steps in the order
    /// of their numbers.
    #[cold]
    fn unsettled(&self, chip: u32, number: u32) -> Option<u32> {
        let heads = self.chips.iter().enumerate().filter(|(other, _)| *other != chip as usize);
        let older = |slot: &u32| {
            *slot != NONE && number.wrapping_sub(self.steps[*slot as usize].step.number) < 1 << 31
        };
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
        if self.channels[channel].user.is_some() {
            self.channels[channel].queue.push_back(chip);
        } else {
            self.grant_bus(channel, chip, now_ns);
        }
    }

    fn grant_bus(&mut self, channel: usize, chip: u32, now_ns: u64) {
        let state = &mut self.chips[chip as usize];
        let step = &self.steps[state.head as usize].step;
        let ns = if state.phase == Phase::In { step.in_ns } else { step.out_ns };
        state.busy_ns += ns;
        self.channels[channel].user = Some(chip);
        self.channels[channel].busy_ns += ns;
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
            if self.steps[head as usize].step.out_ns == 0 {
                return Some(Some(self.finish(resource, now_ns)));
            }
            self.chips[resource as usize].phase = Phase::Out;
            self.request_bus(resource, now_ns);
            return Some(None);
        }
        let channel = (resource - chips) as usize;
        let chip = self.channels[channel].user.take().expect("the bus was in use");
        if self.kept.is_some() {
            self.keep_span(chip, due_ns);
        }
        if let Some(next) = self.channels[channel].queue.pop_front() {
            self.grant_bus(channel, next, now_ns);
        }
        if self.chips[chip as usize].phase == Phase::In {
            let head = self.chips[chip as usize].head;
            self.work_cells(chip, self.steps[head as usize].step.cell_ns, now_ns);
            return Some(None);
        }
        Some(Some(self.finish(chip, now_ns)))
    }

    /// Ends the step at the head of a chip's queue and begins the one behind it.
    #[inline]
    fn finish(&mut self, chip: u32, now_ns: u64) -> u32 {
        let slot = self.chips[chip as usize].head;
        let Queued { step, owner, behind, awaited, .. } = self.steps[slot as usize];
        if step.loads > 0 {
            let at = self.loads.iter().position(|&(number, _)| number == step.loads);
            self.loads.swap_remove(at.expect("a load under way is listed"));
        }
        self.steps[slot as usize].version = self.steps[slot as usize].version.wrapping_add(1);
        self.free.push(slot);
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

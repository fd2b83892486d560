//! Dies that work side by side, with multi-plane, cache and suspended operations: when steps run.
//!
//! Sources: ONFI's multi-plane, cache program, cache read, program and erase suspend operations; the
//! out-of-order queue of a die as in MQSim (Tavakkol et al., FAST 2018) and SSDSim (Hu et al., ICS
//! 2011). A *die* is here what works on its own: a die with `flash.interleave`, else the chip as a
//! whole. Each unit of the FTL ([`crate::flash::parallel`]) queues its steps at its die.
//!
//! **An operation** is one step, or one on each of several planes: command and data in over the bus for
//! each of them one after the other, the cells once, as long as the slowest needs, data out one after
//! the other. Each transfer asks for the bus anew, first come, first served. A step ends when its cells,
//! or its own data out, have ended.
//!
//! **Two operations overlap** at a die as far as its page and cache registers allow: with
//! `flash.cache_program` the commands and data of the next program go in while the cells program; with
//! `flash.cache_read` the next page is sensed while the data of the one before go out, and waits in the
//! page register until they are out.
//!
//! **Suspension**: a read of a read request interrupts the cells of another request's program or
//! erasure, unless they concern the same block, they end no later than the suspension would take
//! effect, a cached program waits, or the operation has been interrupted
//! `flash.max_suspensions` times. The reads that have come when it takes effect are served, later ones
//! interrupt anew.
//!
//! **The order** in which a die takes up steps stands in [`choice`]. A step always waits for steps that
//! were emitted before it, so that the oldest unfinished one can always go on.

mod choice;
mod state;

use std::collections::VecDeque;

use super::bus::Bus;
use super::steps::{Kept, NO_STEP, Part, Queued, Reference, Span, Steps};
use crate::clock::{Clock, NEVER};
use crate::config::{Flash, Settings};
use crate::flash::parallel::{MultiPlane, Parallel, Suspend};
use crate::flash::{Label, Operation, Step};
use crate::util::{Bits, Divider, NONE};
use choice::Lines;
pub use state::Overlaps;
use state::{Busy, Die, Extra, Group, NO_GROUP, Phase, Suspended, Unit};

/// All dies and buses of a device. Resources of the clock: the dies, then the channels.
#[derive(Clone, Debug)]
pub struct Dies {
    options: Parallel,
    /// Reads may pass programs and erasures that wait.
    passing: bool,
    units: Vec<Unit>,
    /// Units die by die.
    order: Vec<u32>,
    dies: Vec<Die>,
    chips: Vec<Busy>,
    channels: Vec<Bus>,
    clock: Clock,
    steps: Steps<Extra>,
    pages_per_block: Divider,
    /// The last program or erasure of each block, where reads may pass.
    changes: Vec<Reference>,
    emitted: u64,
    busy: Bits,
    rests: u64,
    active: u32,
    stalled: VecDeque<u32>,
    /// Dies with new steps.
    touched: Vec<u32>,
    /// Owners of finished steps that have not been reported.
    finished: VecDeque<u32>,
    /// A step that something waits for has finished.
    awaited: bool,
    overlaps: Overlaps,
    kept: Option<Box<Kept>>,
}

impl Dies {
    /// Idle dies.
    pub fn new(settings: &Settings) -> Dies {
        let flash = &settings.flash;
        let options = flash.parallel;
        let passing = options.out_of_order || options.suspend != Suspend::Off;
        let places = settings.spread().places();
        // Dies are numbered as their units are, so that what is due at the same time goes in that order.
        let mut numbers: Vec<u32> = Vec::new();
        let mut known = vec![NONE; (flash.chips() * flash.dies_per_chip) as usize];
        let mut units = Vec::with_capacity(places.len());
        for place in &places {
            let number = if options.interleave { place.die } else { place.chip };
            let die = &mut known[number as usize];
            if *die == NONE {
                *die = numbers.len() as u32;
                numbers.push(number);
            }
            let die = *die;
            units.push(Unit { die, package: place.die, lines: Lines::default(), held: [0; 2] });
        }
        let mut order: Vec<u32> = (0..units.len() as u32).collect();
        order.sort_by_key(|&unit| (units[unit as usize].die, unit));
        let per_chip = if options.interleave { flash.dies_per_chip } else { 1 };
        let dies = (0..).zip(&numbers).map(|(die, &number)| {
            let first = order.partition_point(|&unit| units[unit as usize].die < die) as u32;
            let end = order.partition_point(|&unit| units[unit as usize].die <= die) as u32;
            Die::new(number, number / per_chip, flash.channels, (first, end))
        });
        let dies: Vec<Die> = dies.collect();
        Dies {
            options,
            passing,
            clock: Clock::new(dies.len() as u32 + flash.channels),
            stalled: VecDeque::with_capacity(dies.len()),
            touched: Vec::with_capacity(1024),
            finished: VecDeque::with_capacity(64),
            chips: vec![Busy::default(); flash.chips() as usize],
            channels: vec![Bus::default(); flash.channels as usize],
            busy: Bits::new(units.len()),
            changes: vec![NO_STEP; if passing { blocks(flash) } else { 0 }],
            pages_per_block: Divider::new(flash.pages_per_block),
            steps: Steps::new(),
            units,
            order,
            dies,
            emitted: 0,
            rests: 0,
            active: 0,
            awaited: false,
            overlaps: Overlaps::default(),
            kept: None,
        }
    }

    /// See [`super::Array::keep_spans`].
    pub fn keep_spans(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// Whether spans are kept.
    pub fn keeps_spans(&self) -> bool {
        self.kept.is_some()
    }

    /// Takes the spans kept, in the order in which they ended. Cells of one unit do not overlap, nor do
    /// its transfers.
    pub fn take_spans(&mut self) -> impl Iterator<Item = Span> + '_ {
        self.kept.iter_mut().flat_map(|kept| kept.spans.drain(..))
    }

    /// Labels the steps just started.
    pub fn label(&mut self, labels: &[Label]) {
        if let Some(kept) = &mut self.kept {
            kept.label(&self.steps, labels);
        }
    }

    fn keep(&mut self, slot: u32, part: Part, times: [u64; 2]) {
        if let Some(kept) = &mut self.kept {
            kept.add(&self.steps, slot, part, times);
        }
    }

    /// Whether a unit has nothing to do.
    pub fn is_idle(&self, unit: u32) -> bool {
        self.units[unit as usize].held == [0; 2]
    }

    /// Whether a unit has nothing to do, and its die has begun nothing.
    pub fn is_resting(&self, unit: u32) -> bool {
        let die = &self.dies[self.units[unit as usize].die as usize];
        let at_work = die.groups.iter().any(|group| group.phase != Phase::Idle);
        self.is_idle(unit) && !at_work && !die.stalled && die.suspended.is_none()
    }

    /// Whether a unit can take up a read, or else a write, before it has nothing else to do.
    #[cold]
    pub fn takes(&self, unit: u32, read: bool) -> bool {
        let Unit { held: [reads, others], die, .. } = self.units[unit as usize];
        let Parallel { out_of_order, cache_read, cache_program, .. } = self.options;
        if !read {
            return reads == 0 && others <= u32::from(cache_program);
        }
        let die = &self.dies[die as usize];
        let interrupts = die.suspended.is_some() || self.suspends(die.groups[die.front].operation);
        out_of_order || interrupts || (others == 0 && reads <= u32::from(cache_read))
    }

    fn suspends(&self, operation: Operation) -> bool {
        match operation {
            Operation::Read => false,
            Operation::Program => self.options.suspend == Suspend::ProgramErase,
            Operation::Erase => self.options.suspend != Suspend::Off,
        }
    }

    /// Units that have something to do.
    pub fn busy(&self) -> &Bits {
        &self.busy
    }

    /// How many times a unit ran out of work.
    pub fn rests(&self) -> u64 {
        self.rests
    }

    /// Whether nothing has anything to do.
    pub fn all_idle(&self) -> bool {
        self.active == 0
    }

    /// When the next resource is due, or [`NEVER`].
    pub fn next_ns(&self) -> u64 {
        self.clock.next().0
    }

    /// How often operations overlapped.
    pub fn overlaps(&self) -> Overlaps {
        self.overlaps
    }

    /// Time each chip worked or used its bus, ns.
    pub fn chip_busy_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.chips.iter().map(|chip| chip.ns)
    }

    /// The same of each die, if dies work on their own.
    pub fn die_busy_ns(&self) -> Vec<u64> {
        let count = if self.options.interleave { self.dies.len() } else { 0 };
        let mut busy = vec![0; count];
        self.dies.iter().take(count).for_each(|die| busy[die.number as usize] = die.busy.ns);
        busy
    }

    /// Time each channel's bus was used, ns.
    pub fn channel_busy_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.channels.iter().map(Bus::busy_ns)
    }

    /// Puts the steps of one owner, which reads or not, into their units' queues. They begin with
    /// [`Dies::settle`].
    #[cold]
    pub fn start(&mut self, owner: u32, steps: &[Step], urgent: bool) {
        self.steps.begin();
        for &step in steps {
            let extra = Extra { number: self.emitted, ahead: NONE, change: NO_STEP, urgent };
            let slot = self.steps.store(step, owner, extra);
            self.emitted += 1;
            self.active += 1;
            if self.passing && step.page != NONE {
                let block = self.pages_per_block.div(step.page) as usize;
                self.steps[slot].extra.change = self.changes[block];
                if step.operation != Operation::Read {
                    self.changes[block] = self.steps.reference(slot);
                }
            }
            self.busy.set(step.chip);
            let unit = &mut self.units[step.chip as usize];
            unit.held[usize::from(step.operation != Operation::Read)] += 1;
            self.touched.push(unit.die);
            self.enqueue(slot);
        }
    }

    /// Lets every die with new steps take them up.
    #[cold]
    pub fn settle(&mut self, now_ns: u64) {
        for at in 0..self.touched.len() {
            self.serve(self.touched[at], now_ns);
        }
        self.touched.clear();
    }

    /// Lets a die take up what it can.
    fn serve(&mut self, die: u32, now_ns: u64) {
        let Die { groups, front, suspended, .. } = &self.dies[die as usize];
        let (front, suspended) = (*front, *suspended);
        if groups[front].phase == Phase::Idle {
            let before = suspended.map(|suspended| suspended.before);
            match (self.choose(die, before), suspended) {
                (Some(slot), _) => self.begin(die, front, slot, now_ns),
                (None, Some(suspended)) => return self.resume(die, suspended, now_ns),
                (None, None) => return,
            }
        }
        let state = &self.dies[die as usize];
        let Group { phase, operation, .. } = state.groups[front];
        if state.groups[1 - front].phase != Phase::Idle {
            return;
        }
        let overlaps = match operation {
            Operation::Read => phase == Phase::Out && self.options.cache_read,
            Operation::Program => phase == Phase::Cells && self.options.cache_program,
            Operation::Erase => false,
        };
        if overlaps && let Some(slot) = self.choose(die, suspended.map(|suspended| suspended.before)) {
            let step = &self.steps[slot].step;
            // Without anything to send, a cached program would gain nothing and keep reads away.
            if step.operation == operation && (operation == Operation::Read || step.in_ns > 0) {
                self.overlaps.cached[operation as usize] += 1;
                return self.begin(die, 1 - front, slot, now_ns);
            }
        }
        if phase == Phase::Cells && self.suspends(operation) {
            self.suspend(die, front, now_ns);
        }
    }

    /// Begins an operation with a step, and with those of other planes that fit.
    fn begin(&mut self, die: u32, index: usize, slot: u32, now_ns: u64) {
        let before = self.dies[die as usize].suspended.map(|suspended| suspended.before);
        let operation = self.steps[slot].step.operation;
        self.count_passed(die, slot);
        self.unlink(slot);
        self.steps[slot].behind = NONE;
        if self.options.multi_plane != MultiPlane::Off && self.gather(die, slot, before) {
            self.overlaps.multi_plane[operation as usize] += 1;
        }
        let group = Group { phase: Phase::In, operation, head: slot, at: slot, ..NO_GROUP };
        self.dies[die as usize].groups[index] = group;
        self.go_in(die, index, now_ns);
    }

    /// Sends the next command, with its data, of an operation; when all are in, the cells may work.
    fn go_in(&mut self, die: u32, index: usize, now_ns: u64) {
        let mut at = self.dies[die as usize].groups[index].at;
        while at != NONE && self.steps[at].step.in_ns == 0 {
            at = self.steps[at].behind;
        }
        let state = &mut self.dies[die as usize];
        state.groups[index].at = at;
        if at != NONE {
            return self.ask_bus(die, index, now_ns);
        }
        state.groups[index].phase = Phase::Ready;
        if state.cells.is_none() {
            self.work_cells(die, index, now_ns);
        }
    }

    /// The cells begin to work on an operation.
    fn work_cells(&mut self, die: u32, index: usize, now_ns: u64) {
        let mut at = self.dies[die as usize].groups[index].head;
        let mut cell_ns = 0;
        while at != NONE {
            cell_ns = cell_ns.max(self.steps[at].step.cell_ns);
            at = self.steps[at].behind;
        }
        let group = &mut self.dies[die as usize].groups[index];
        group.phase = Phase::Cells;
        group.since_ns = now_ns;
        group.until_ns = now_ns + cell_ns;
        self.use_cells(die, index, now_ns, cell_ns);
    }

    fn use_cells(&mut self, die: u32, index: usize, now_ns: u64, ns: u64) {
        let state = &mut self.dies[die as usize];
        state.cells = Some(index);
        state.busy.begin(now_ns);
        self.chips[state.chip as usize].begin(now_ns);
        self.clock.set(die, now_ns + ns);
    }

    /// Interrupts the cells if a read may go first.
    fn suspend(&mut self, die: u32, index: usize, now_ns: u64) {
        let group = self.dies[die as usize].groups[index];
        let left_ns = group.until_ns - now_ns;
        if group.suspensions >= self.options.max_suspensions || left_ns <= self.options.suspend_ns {
            return;
        }
        if !self.interrupted(die, group) {
            return;
        }
        self.overlaps.suspensions[group.operation as usize - 1] += 1;
        let state = &mut self.dies[die as usize];
        let group = &mut state.groups[index];
        group.phase = Phase::Suspending;
        group.suspensions += 1;
        state.suspended = Some(Suspended { group: *group, left_ns, before: 0 });
        self.clock.set(die, now_ns + self.options.suspend_ns);
    }

    /// Takes a suspended operation up again.
    fn resume(&mut self, die: u32, suspended: Suspended, now_ns: u64) {
        let state = &mut self.dies[die as usize];
        let until_ns = now_ns + self.options.resume_ns + suspended.left_ns;
        let group = Group { phase: Phase::Resuming, since_ns: now_ns, until_ns, ..suspended.group };
        state.suspended = None;
        let front = state.front;
        state.groups[front] = group;
        self.use_cells(die, front, now_ns, self.options.resume_ns);
    }

    /// The bus is wanted for the step an operation is at.
    fn ask_bus(&mut self, die: u32, index: usize, now_ns: u64) {
        let channel = self.dies[die as usize].channel;
        let who = die * 2 + index as u32;
        if self.channels[channel as usize].ask(who) {
            self.grant_bus(channel, who, now_ns);
        }
    }

    fn grant_bus(&mut self, channel: u32, who: u32, now_ns: u64) {
        let state = &mut self.dies[who as usize / 2];
        let Group { phase, at, .. } = state.groups[who as usize % 2];
        let step = &self.steps[at].step;
        let ns = if phase == Phase::In { step.in_ns } else { step.out_ns };
        state.busy.begin(now_ns);
        self.chips[state.chip as usize].begin(now_ns);
        self.channels[channel as usize].grant(who, ns);
        self.clock.set(self.dies.len() as u32 + channel, now_ns + ns);
    }

    /// As [`super::Array::advance`].
    #[cold]
    pub fn advance(&mut self, now_ns: u64) -> Option<Option<u32>> {
        if let Some(owner) = self.finished.pop_front() {
            return Some(Some(owner));
        }
        let (due_ns, resource) = self.clock.next();
        if due_ns > now_ns {
            return None;
        }
        self.clock.set(resource, NEVER);
        let dies = self.dies.len() as u32;
        let die = if resource < dies {
            self.cells_end(resource, now_ns);
            resource
        } else {
            self.transfer_ends(resource - dies, now_ns)
        };
        self.serve(die, now_ns);
        if std::mem::take(&mut self.awaited) {
            for _ in 0..self.stalled.len() {
                // Those that still wait stall again, at the end.
                let waiting = self.stalled.pop_front().expect("counted");
                self.dies[waiting as usize].stalled = false;
                self.serve(waiting, now_ns);
            }
        }
        Some(self.finished.pop_front())
    }

    /// The cells of a die have ended what they were at.
    fn cells_end(&mut self, die: u32, now_ns: u64) {
        let state = &mut self.dies[die as usize];
        let index = state.cells.expect("they were at work");
        let group = &mut state.groups[index];
        if group.phase == Phase::Resuming {
            group.phase = Phase::Cells;
            return self.clock.set(die, group.until_ns);
        }
        let group = *group;
        state.cells = None;
        state.busy.end(now_ns);
        self.chips[state.chip as usize].end(now_ns);
        let mut at = group.head;
        let mut out = false;
        while at != NONE {
            let Queued { step, behind, .. } = self.steps[at];
            out |= step.out_ns > 0;
            self.keep(at, Part::Cells, [group.since_ns, now_ns]);
            if group.phase == Phase::Suspending
                && let Some(kept) = &mut self.kept
            {
                kept.suspend_last();
            }
            at = behind;
        }
        let state = &mut self.dies[die as usize];
        if group.phase == Phase::Suspending {
            state.groups[index] = NO_GROUP;
            let suspended = state.suspended.as_mut().expect("it is being suspended");
            suspended.before = self.emitted;
            return;
        }
        let other = state.groups[1 - index].phase;
        let group = &mut state.groups[index];
        group.at = group.head;
        if out && other == Phase::Out {
            group.phase = Phase::Held;
            return;
        }
        group.phase = Phase::Out;
        self.go_out(die, index, now_ns);
        let state = &self.dies[die as usize];
        if state.cells.is_none() && state.groups[state.front].phase == Phase::Ready {
            self.work_cells(die, state.front, now_ns);
        }
    }

    /// Sends the data of the next step of an operation out; ends those that have none.
    fn go_out(&mut self, die: u32, index: usize, now_ns: u64) {
        let mut at = self.dies[die as usize].groups[index].at;
        while at != NONE && self.steps[at].step.out_ns == 0 {
            at = self.finish(at);
        }
        let state = &mut self.dies[die as usize];
        state.groups[index].at = at;
        if at != NONE {
            return self.ask_bus(die, index, now_ns);
        }
        state.groups[index] = NO_GROUP;
        let other = &mut state.groups[1 - index];
        if other.phase != Phase::Idle {
            state.front = 1 - index;
        }
        if other.phase == Phase::Held {
            other.phase = Phase::Out;
            self.go_out(die, 1 - index, now_ns);
        }
    }

    /// A transfer has ended; the die it was for.
    fn transfer_ends(&mut self, channel: u32, now_ns: u64) -> u32 {
        let (who, next) = self.channels[channel as usize].release();
        let (die, index) = (who / 2, who as usize % 2);
        let state = &mut self.dies[die as usize];
        state.busy.end(now_ns);
        self.chips[state.chip as usize].end(now_ns);
        let Group { phase, at, .. } = state.groups[index];
        let Queued { step, behind, .. } = self.steps[at];
        let (part, ns) = if phase == Phase::In { (Part::In, step.in_ns) } else { (Part::Out, step.out_ns) };
        self.keep(at, part, [now_ns - ns, now_ns]);
        if let Some(next) = next {
            self.grant_bus(channel, next, now_ns);
        }
        if phase == Phase::In {
            self.dies[die as usize].groups[index].at = behind;
            self.go_in(die, index, now_ns);
        } else {
            self.finish(at);
            self.dies[die as usize].groups[index].at = behind;
            self.go_out(die, index, now_ns);
        }
        die
    }

    /// Ends a step; the one behind it in its operation.
    fn finish(&mut self, slot: u32) -> u32 {
        let &Queued { step, owner, behind, awaited, .. } = self.steps.finish(slot);
        self.awaited |= awaited;
        self.active -= 1;
        self.finished.push_back(owner);
        let unit = &mut self.units[step.chip as usize];
        unit.held[usize::from(step.operation != Operation::Read)] -= 1;
        if unit.held == [0; 2] {
            self.busy.clear(step.chip);
            self.rests += 1;
        }
        behind
    }
}

fn blocks(flash: &Flash) -> usize {
    (flash.pages() / u64::from(flash.pages_per_block)) as usize
}

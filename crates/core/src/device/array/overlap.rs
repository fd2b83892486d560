//! Dies whose operations overlap: multi-plane, cache and suspended operations, and reads that overtake.
//!
//! Sources: ONFI's multi-plane, cache program, cache read, program and erase suspend operations; the
//! out-of-order queue of a die as in MQSim (Tavakkol et al., FAST 2018) and SSDSim (Hu et al., ICS
//! 2011).
//!
//! **An operation** is one step, or one step on each of several planes: commands and data go in over the bus, one
//! step after another; the cells work once, for as long as the slowest step needs; data go out, one step after
//! another. Each transfer requests the bus separately. A step ends when its own data are out or, if it has none to
//! send, when the cells have finished.
//!
//! **Two operations overlap** at a die as far as its page and cache registers allow: with
//! `flash.cache_program` the commands and data of the next program go in while the cells program; with
//! `flash.cache_read` the next page is sensed while the data of the previous one go out, and waits in the
//! page register until they are out.
//!
//! **Suspension** of an operation for reads is implemented in [`super::suspension`].
//!
//! **The order** in which a die takes steps is in [`super::choice`]. A step only ever waits for steps that
//! were emitted before it, so the oldest unfinished one can always go on.

use std::collections::VecDeque;

use super::frame::Frame;
use super::lines::Waiting;
use super::order::{self, Dies, Ordering};
use super::state::{Die, Group, Lun, NO_GROUP, Overlaps, Phase};
use super::steps::{Owner, Queued, Stage};
use crate::flash::parallel::{MultiPlane, Parallel, Place};
use crate::flash::{Operation, Work};
use crate::ftl::maps_blocks;
use crate::ftl::settings::Settings;
use crate::util::NONE;

/// The dies with their operations, and the steps that wait for the dies.
#[derive(Clone, Debug)]
pub(super) struct Overlap {
    pub options: Parallel,
    pub waiting: Waiting,
    /// The order at a die, if it has queues of its own.
    pub queues: Option<Box<Ordering>>,
    /// Whether programs of a LUN keep their order all the same, since recovery finds out from it how log blocks were
    /// filled.
    pub in_order: bool,
    pub luns: Vec<Lun>,
    /// The LUNs, die by die.
    pub order: Vec<u32>,
    pub dies: Vec<Die>,
    emitted: u64,
    /// Dies with new steps.
    touched: Vec<u32>,
    /// Owners of finished steps, until they are reported.
    finished: VecDeque<u32>,
    /// Whether an awaited step has finished.
    awaited: bool,
    pub overlaps: Overlaps,
}

impl Overlap {
    /// Makes the dies, all of them idle.
    pub fn new(settings: &Settings, ordering: &order::Keys, places: &[Place]) -> Overlap {
        let flash = &settings.flash;
        let options = ordering.apply(flash.parallel);
        // Dies are numbered in the order of their LUNs, which decides between events that coincide.
        let mut dies: Vec<Die> = Vec::new();
        let mut luns = Vec::with_capacity(places.len());
        for place in places {
            let number = if options.interleave { place.die } else { place.chip };
            let die = dies.iter().position(|die| die.number == number).unwrap_or_else(|| {
                dies.push(Die::new(number, place));
                dies.len() - 1
            });
            luns.push(Lun::new(die as u32, place.die));
        }
        let mut order: Vec<u32> = (0..luns.len() as u32).collect();
        order.sort_by_key(|&lun| (luns[lun as usize].die, lun));
        for (number, die) in (0..).zip(&mut dies) {
            let until = |die| order.partition_point(|&lun| luns[lun as usize].die < die) as u32;
            die.luns = (until(number), until(number + 1));
        }
        Overlap {
            options,
            waiting: Waiting::new(flash, &options, luns.len()),
            queues: order::needs(&ordering.name).queues.then(|| {
                let dies = Dies { count: dies.len(), page_bytes: flash.page_bytes };
                Box::new(Ordering::new(&ordering.name, &ordering.own, &dies))
            }),
            in_order: maps_blocks(settings),
            touched: Vec::with_capacity(1024),
            finished: VecDeque::with_capacity(64),
            luns,
            order,
            dies,
            emitted: 0,
            awaited: false,
            overlaps: Overlaps::default(),
        }
    }

    /// Queues the steps of one owner, a read if `urgent`; they begin when [`Overlap::settle`] is called.
    #[cold]
    pub fn start(
        &mut self,
        frame: &mut Frame,
        Owner { id, stream }: Owner,
        work: &Work,
        urgent: bool,
        now_ns: u64,
    ) {
        for step in work.steps() {
            let (slot, _) = frame.steps.store(step, [step.in_ns, step.cell_ns, step.out_ns], id);
            self.waiting.enter(frame, slot, self.emitted, urgent);
            self.emitted += 1;
            frame.active += 1;
            frame.busy.set(step.lun);
            let lun = &mut self.luns[step.lun as usize];
            lun.held[usize::from(step.operation != Operation::Read)] += 1;
            self.touched.push(lun.die);
            self.waiting.list(frame, slot, true);
            self.queue(frame, slot, stream, now_ns);
        }
    }

    /// Lets every die that has new steps begin those that it can.
    #[cold]
    pub fn settle(&mut self, frame: &mut Frame, now_ns: u64) {
        for at in 0..self.touched.len() {
            self.serve(frame, self.touched[at], now_ns);
        }
        self.touched.clear();
    }

    /// Lets a die begin the steps that it can.
    fn serve(&mut self, frame: &mut Frame, die: u32, now_ns: u64) {
        let Die { groups, front, suspended, .. } = &self.dies[die as usize];
        let (front, suspended) = (*front, *suspended);
        if groups[front].phase == Phase::Idle {
            let before = suspended.map(|suspended| suspended.before);
            match (self.choose(frame, die, before, now_ns), suspended) {
                (Some(slot), _) => self.begin(frame, die, front, slot, now_ns),
                (None, Some(suspended)) => return self.resume(frame, die, suspended, now_ns),
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
        if overlaps
            && let Some(slot) = self.choose(frame, die, suspended.map(|suspended| suspended.before), now_ns)
        {
            let step = &frame.steps[slot].step;
            // A program without data to send would gain nothing from being cached, and would keep reads away.
            if step.operation == operation && (operation == Operation::Read || step.in_ns > 0) {
                self.overlaps.cached[operation as usize] += 1;
                return self.begin(frame, die, 1 - front, slot, now_ns);
            }
        }
        if phase == Phase::Cells && self.suspends(operation) {
            self.suspend(frame, die, front, now_ns);
        }
    }

    /// Begins an operation that consists of a step and the matching steps of other planes.
    fn begin(&mut self, frame: &mut Frame, die: u32, index: usize, slot: u32, now_ns: u64) {
        let before = self.dies[die as usize].suspended.map(|suspended| suspended.before);
        let operation = frame.steps[slot].step.operation;
        self.count_passed(frame, die, slot);
        self.take_out(frame, slot, now_ns);
        if self.options.multi_plane != MultiPlane::Off && self.gather(frame, die, slot, before, now_ns) {
            self.overlaps.multi_plane[operation as usize] += 1;
        }
        let group = Group { phase: Phase::In, operation, head: slot, at: slot, ..NO_GROUP };
        self.dies[die as usize].groups[index] = group;
        self.go_in(frame, die, index, now_ns);
    }

    /// Sends the next command of an operation, with its data; when all have been sent, the cells may work.
    fn go_in(&mut self, frame: &mut Frame, die: u32, index: usize, now_ns: u64) {
        let mut at = self.dies[die as usize].groups[index].at;
        while at != NONE && frame.steps[at].step.in_ns == 0 {
            at = frame.steps[at].behind;
        }
        let state = &mut self.dies[die as usize];
        state.groups[index].at = at;
        if at != NONE {
            return self.ask_bus(frame, die, index, now_ns);
        }
        state.groups[index].phase = Phase::Ready;
        if state.cells.is_none() {
            self.work_cells(frame, die, index, now_ns);
        }
    }

    /// Lets the cells begin to work on an operation.
    fn work_cells(&mut self, frame: &mut Frame, die: u32, index: usize, now_ns: u64) {
        let head = self.dies[die as usize].groups[index].head;
        let cell_ns = frame.steps.line(head).map(|at| frame.steps[at].step.cell_ns).max().unwrap_or(0);
        let group = &mut self.dies[die as usize].groups[index];
        group.phase = Phase::Cells;
        group.since_ns = now_ns;
        group.until_ns = now_ns + cell_ns;
        self.use_cells(frame, die, index, now_ns, cell_ns);
    }

    pub(super) fn use_cells(&mut self, frame: &mut Frame, die: u32, index: usize, now_ns: u64, ns: u64) {
        let state = &mut self.dies[die as usize];
        state.cells = Some(index);
        state.busy.begin(now_ns);
        frame.chips[state.chip as usize].begin(now_ns);
        frame.clock.add(die, now_ns + ns);
    }

    /// Requests the bus for the current step of an operation.
    fn ask_bus(&mut self, frame: &mut Frame, die: u32, index: usize, now_ns: u64) {
        let Die { channel, groups, .. } = &self.dies[die as usize];
        let (channel, Group { at, phase, .. }) = (*channel, groups[index]);
        let who = die * 2 + index as u32;
        if frame.ask_bus(channel, who, at, phase == Phase::In) {
            self.grant_bus(frame, channel, who, now_ns);
        }
    }

    fn grant_bus(&mut self, frame: &mut Frame, channel: u32, who: u32, now_ns: u64) {
        let state = &mut self.dies[who as usize / 2];
        let Group { phase, at, .. } = state.groups[who as usize % 2];
        let step = &frame.steps[at].step;
        let ns = if phase == Phase::In { step.in_ns } else { step.out_ns };
        state.busy.begin(now_ns);
        frame.chips[state.chip as usize].begin(now_ns);
        frame.channels[channel as usize].grant(who, ns);
        frame.clock.add(frame.bus(channel), now_ns + ns);
    }

    /// See [`super::Array::advance`].
    #[cold]
    pub fn advance(&mut self, frame: &mut Frame, now_ns: u64) -> Option<Option<u32>> {
        if let Some(owner) = self.finished.pop_front() {
            return Some(Some(owner));
        }
        let resource = frame.clock.take(now_ns)?;
        let dies = self.dies.len() as u32;
        let die = if resource < dies {
            self.cells_end(frame, resource, now_ns);
            resource
        } else {
            self.transfer_ends(frame, resource - dies, now_ns)
        };
        self.serve(frame, die, now_ns);
        if std::mem::take(&mut self.awaited) {
            for _ in 0..frame.stalled.len() {
                // Dies that still have to wait stall again, at the end of the queue.
                let waiting = frame.stalled.pop_front().expect("counted");
                self.dies[waiting as usize].stalled = false;
                self.serve(frame, waiting, now_ns);
            }
        }
        Some(self.finished.pop_front())
    }

    /// Handles the end of the work of a die's cells.
    fn cells_end(&mut self, frame: &mut Frame, die: u32, now_ns: u64) {
        let state = &mut self.dies[die as usize];
        let index = state.cells.expect("they were at work");
        let group = &mut state.groups[index];
        if group.phase == Phase::Resuming {
            group.phase = Phase::Cells;
            return frame.clock.add(die, group.until_ns);
        }
        let group = *group;
        state.cells = None;
        state.busy.end(now_ns);
        frame.chips[state.chip as usize].end(now_ns);
        let mut at = group.head;
        let mut out = false;
        while at != NONE {
            let Queued { step, behind, .. } = frame.steps[at];
            out |= step.out_ns > 0;
            frame.keep(at, Stage::Cells, [group.since_ns, now_ns]);
            if group.phase == Phase::Suspending
                && let Some(kept) = &mut frame.kept
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
        self.go_out(frame, die, index, now_ns);
        let state = &self.dies[die as usize];
        if state.cells.is_none() && state.groups[state.front].phase == Phase::Ready {
            self.work_cells(frame, die, state.front, now_ns);
        }
    }

    /// Sends out the data of an operation's next step that has any; ends the steps before it.
    fn go_out(&mut self, frame: &mut Frame, die: u32, index: usize, now_ns: u64) {
        let mut at = self.dies[die as usize].groups[index].at;
        while at != NONE && frame.steps[at].step.out_ns == 0 {
            at = self.finish(frame, at);
        }
        let state = &mut self.dies[die as usize];
        state.groups[index].at = at;
        if at != NONE {
            return self.ask_bus(frame, die, index, now_ns);
        }
        state.groups[index] = NO_GROUP;
        let other = &mut state.groups[1 - index];
        if other.phase != Phase::Idle {
            state.front = 1 - index;
        }
        if other.phase == Phase::Held {
            other.phase = Phase::Out;
            self.go_out(frame, die, 1 - index, now_ns);
        }
    }

    /// Ends a transfer over a channel's bus; returns the die that requested it.
    fn transfer_ends(&mut self, frame: &mut Frame, channel: u32, now_ns: u64) -> u32 {
        let (who, next) = frame.channels[channel as usize].release();
        let (die, index) = (who / 2, who as usize % 2);
        let state = &mut self.dies[die as usize];
        state.busy.end(now_ns);
        frame.chips[state.chip as usize].end(now_ns);
        let Group { phase, at, .. } = state.groups[index];
        let Queued { step, behind, .. } = frame.steps[at];
        let (stage, ns) =
            if phase == Phase::In { (Stage::In, step.in_ns) } else { (Stage::Out, step.out_ns) };
        frame.keep(at, stage, [now_ns - ns, now_ns]);
        if let Some(next) = next {
            self.grant_bus(frame, channel, next, now_ns);
        }
        if phase == Phase::In {
            self.dies[die as usize].groups[index].at = behind;
            self.go_in(frame, die, index, now_ns);
        } else {
            self.finish(frame, at);
            self.dies[die as usize].groups[index].at = behind;
            self.go_out(frame, die, index, now_ns);
        }
        die
    }

    /// Ends a step; returns the one behind it in its operation.
    fn finish(&mut self, frame: &mut Frame, slot: u32) -> u32 {
        let &Queued { step, owner, behind, awaited, .. } = frame.steps.finish(slot);
        self.awaited |= awaited;
        self.waiting.take_up(frame, slot);
        frame.active -= 1;
        self.finished.push_back(owner);
        let lun = &mut self.luns[step.lun as usize];
        lun.held[usize::from(step.operation != Operation::Read)] -= 1;
        if lun.held == [0; 2] {
            frame.rest(step.lun);
        }
        behind
    }
}

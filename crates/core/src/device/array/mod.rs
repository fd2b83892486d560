//! LUNs, dies and channel buses: when steps run.
//!
//! Each LUN of the FTL ([`crate::flash::parallel`]: a chip, or a die or plane of it) has a queue of steps. A
//! unit that works on its own is called a die here: a die with `flash.interleave`, otherwise the whole chip.
//!
//! **One thing at a time.** As a rule each die is one LUN and no option lets two of its operations overlap or
//! overtake each other. Then a die runs its steps in the order of emission: command and data in over its channel's
//! bus, cells, data out. This file implements only this case. A step waits for the one before it in its chain; a bus
//! serves its dies first come, first served, or commands first (`flash.bus`).
//!
//! **Folded steps.** If, moreover, each channel has only one die, no other die can want its bus, and a step is one
//! stretch of time whatever its parts are; consecutive steps on a die then become one step ([`Array::folds`],
//! [`crate::flash::Work::fold`]).
//!
//! **Overlap.** With cache operations, suspensions, reads out of order, or several LUNs per die, [`overlap`] decides
//! what a die takes next.

mod bus;
mod choice;
mod frame;
mod lines;
mod look;
pub mod order;
mod overlap;
mod state;
mod steps;
mod suspension;
mod used;

use crate::flash::Work;
use crate::flash::parallel::{MultiPlane, Parallel, Place, Suspend};
use crate::flash::settings::BusOrder;
use crate::ftl::settings::Settings;
use crate::util::NONE;
use crate::workload::tenants::Class;
use frame::Frame;
use overlap::Overlap;
pub use state::Overlaps;
pub use steps::{Owner, Span, Stage};
use steps::{Queued, Stored};
pub use used::Used;

/// What a LUN is doing with the step at the head of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The LUN waits for a step on another LUN.
    Stalled,
    /// The LUN waits for, or uses, the bus before its cells work.
    In,
    Cell,
    /// The LUN waits for, or uses, the bus after its cells have worked.
    Out,
}

/// A LUN that is a die, and does one thing at a time.
#[derive(Clone, Copy, Debug)]
struct Lun {
    phase: Phase,
    head: u32,
    tail: u32,
    channel: u32,
    /// How long the LUN has worked, ns, counted to the end of what it is doing now.
    busy_ns: u64,
}

/// All LUNs and buses of a device.
#[derive(Clone, Debug)]
pub struct Array {
    luns: Vec<Lun>,
    frame: Frame,
    /// Whether every step may be one stretch of time that includes its bus time, if it has any.
    folds: bool,
    /// Present if operations can overlap.
    overlap: Option<Box<Overlap>>,
    /// The place of each LUN; empty if the LUNs are the chips, in order.
    places: Vec<Place>,
    /// Number of dies in each chip, if dies work on their own.
    interleaved: Option<u32>,
}

impl Array {
    /// Makes an idle array with these settings.
    pub fn new(settings: &Settings, order: &order::Keys) -> Array {
        let flash = &settings.flash;
        let options = order.apply(flash.parallel);
        let places = settings.spread().places();
        let die = |place: &Place| if options.interleave { place.die } else { place.chip };
        let mut dies: Vec<u32> = places.iter().map(die).collect();
        dies.sort_unstable();
        dies.dedup();
        let overlaps = dies.len() < places.len() || passes(&options);
        let in_order = places.iter().enumerate().all(|(lun, place)| lun as u32 == place.chip);
        let named = options.interleave || options.multi_plane != MultiPlane::Off;
        let plain = in_order && !named && !overlaps;
        let sizes = [places.len() as u32, dies.len() as u32, flash.channels];
        let lun = |place: &Place| Lun {
            phase: Phase::Idle,
            head: NONE,
            tail: NONE,
            channel: place.channel,
            busy_ns: 0,
        };
        let least_ns = flash.read.least().min(flash.program.least()).min(flash.erase_ns);
        let chips = if plain { 0 } else { flash.chips() };
        let mut frame = Frame::new(sizes, chips, flash.bus == BusOrder::CommandsFirst);
        frame.steps.in_order = !overlaps;
        if !settings.ftl.power_safe && settings.reclaim_luns() > 1 {
            // Nothing but the copies from a superblock is waited for.
            frame.settles = settings.reclaim_luns();
        }
        Array {
            luns: places.iter().map(lun).collect(),
            frame,
            folds: plain && flash.chips_per_channel == 1 && least_ns > 0,
            overlap: overlaps.then(|| Box::new(Overlap::new(settings, order, &places))),
            places: if plain { Vec::new() } else { places },
            interleaved: options.interleave.then_some(flash.dies_per_chip),
        }
    }

    /// Whether steps may overlap or overtake each other, so that each must be one flash operation.
    #[inline]
    pub fn overlaps_steps(&self) -> bool {
        self.overlap.is_some()
    }

    /// From now on, tells tenants apart by stream where the order at a die does; these are the classes of the
    /// first streams.
    pub fn tell_apart(&mut self, classes: Vec<Class>) {
        if let Some(queues) = self.overlap.as_mut().and_then(|overlap| overlap.queues.as_mut()) {
            queues.tell_apart(classes);
        }
    }

    /// Whether a step may be one stretch of time, bus and cells together, because no other die can want the bus.
    pub fn folds(&self) -> bool {
        self.folds
    }

    /// Puts the steps of a request, a read if it `reads`, into the queues of their LUNs.
    #[inline(never)] // keeps its many addresses apart from those of a request's other steps
    pub fn start(&mut self, owner: Owner, work: &Work, reads: bool, now_ns: u64) {
        self.frame.steps.begin();
        let mut steps = work.steps();
        if let Some(overlap) = &mut self.overlap {
            overlap.start(&mut self.frame, owner, work, reads, now_ns);
            steps = &[];
        }
        self.frame.active += steps.len() as u32;
        for step in steps {
            let times = [step.in_ns, step.cell_ns, step.out_ns];
            let (slot, waits) = self.frame.steps.store(step, times, owner.id);
            let lun = &mut self.luns[step.lun as usize];
            if lun.head == NONE {
                lun.head = slot;
                lun.tail = slot;
                self.frame.busy.set(step.lun);
                self.begin_step(step.lun, waits, times, now_ns);
            } else {
                let tail = std::mem::replace(&mut lun.tail, slot);
                self.frame.steps[tail].behind = slot;
            }
        }
        if let Some(kept) = &mut self.frame.kept {
            kept.label(&self.frame.steps, work.labels());
        }
    }

    /// Lets dies begin the steps that were started at this instant.
    #[inline]
    pub fn settle(&mut self, now_ns: u64) {
        if let Some(overlap) = &mut self.overlap {
            overlap.settle(&mut self.frame, now_ns);
            // What a busy LUN takes depends on how far it has come.
            self.frame.changes += 1;
        }
    }

    /// Begins the step at the head of a LUN's queue, unless it has to wait for another step.
    fn begin(&mut self, lun: u32, now_ns: u64) {
        let &Queued { step, waits, .. } = &self.frame.steps[self.luns[lun as usize].head];
        self.begin_step(lun, waits, [step.in_ns, step.cell_ns, step.out_ns], now_ns);
    }

    /// Begins a step as [`Array::begin`] does, given the step's fields; most steps wait for nothing.
    #[inline(always)] // for every step
    fn begin_step(&mut self, lun: u32, waits: bool, [in_ns, cell_ns, out_ns]: [u64; 3], now_ns: u64) {
        if waits && self.stalls(lun) {
            return;
        }
        if in_ns > 0 {
            self.luns[lun as usize].phase = Phase::In;
            self.request_bus(lun, now_ns);
        } else if out_ns > 0 && self.folds {
            self.begin_folded(lun, now_ns);
        } else {
            self.work_cells(lun, cell_ns, now_ns);
        }
    }

    /// Begins a step that may be folded.
    #[inline(never)] // keeps the path of all other steps short
    fn begin_folded(&mut self, lun: u32, now_ns: u64) {
        let Lun { head, channel, .. } = self.luns[lun as usize];
        let Stored { cell_ns, out_ns, folded, ends_on_bus, .. } = self.frame.steps[head].step;
        if !folded {
            return self.work_cells(lun, cell_ns, now_ns);
        }
        self.frame.channels[channel as usize].busy_ns += out_ns;
        let state = &mut self.luns[lun as usize];
        state.phase = Phase::Cell;
        state.busy_ns += cell_ns;
        // Events due at the same time are handled in the order of their resources.
        let resource = if ends_on_bus { self.frame.bus(channel) } else { lun };
        self.frame.clock.add(resource, now_ns + cell_ns);
    }

    /// Returns whether a LUN has to wait for another step: the one that its next step follows, the load that its next
    /// step needs, or any step whose number is at most that step's `settled`. Marks the awaited step.
    #[inline(never)] // keeps the path of all other steps short
    fn stalls(&mut self, lun: u32) -> bool {
        let steps = &self.frame.steps;
        let head = self.luns[lun as usize].head;
        let mut wanted = steps.awaited_by(head).into_iter();
        let mut awaited = wanted.find(|&wanted| steps.unfinished(wanted)).map(|(slot, _)| slot);
        let settled = steps[head].step.settled;
        if awaited.is_none() && settled != 0 {
            awaited = self.unsettled(lun, settled);
        }
        if let Some(awaited) = awaited {
            self.frame.steps[awaited].awaited = true;
            self.luns[lun as usize].phase = Phase::Stalled;
            self.frame.stalled.push_back(lun);
        }
        awaited.is_some()
    }

    /// Returns an unfinished step of another LUN whose number is at most `number`. Only the heads of the queues are
    /// examined, since each LUN runs its steps in the order of their numbers.
    #[cold]
    fn unsettled(&self, lun: u32, number: u32) -> Option<u32> {
        let heads = (0..).zip(&self.luns).filter(|(other, _)| self.frame.settles(lun, *other));
        let older =
            |slot: &u32| *slot != NONE && number.wrapping_sub(self.frame.steps[*slot].step.number) < 1 << 31;
        heads.map(|(_, lun)| lun.head).find(older)
    }

    #[inline(always)] // for every step
    fn work_cells(&mut self, lun: u32, cell_ns: u64, now_ns: u64) {
        self.luns[lun as usize].phase = Phase::Cell;
        self.use_for(lun, cell_ns, now_ns);
        self.frame.clock.add(lun, now_ns + cell_ns);
    }

    /// Makes a LUN, and its chip with it, busy for `ns`.
    #[inline(always)] // for every step
    fn use_for(&mut self, lun: u32, ns: u64, now_ns: u64) {
        let Array { luns, frame, places, .. } = self;
        luns[lun as usize].busy_ns += ns;
        if !frame.chips.is_empty() {
            frame.chips[places[lun as usize].chip as usize].begin(now_ns);
        }
    }

    fn request_bus(&mut self, lun: u32, now_ns: u64) {
        let Lun { channel, head, phase, .. } = self.luns[lun as usize];
        if self.frame.ask_bus(channel, lun, head, phase == Phase::In) {
            self.grant_bus(channel, lun, now_ns);
        }
    }

    fn grant_bus(&mut self, channel: u32, lun: u32, now_ns: u64) {
        let Lun { phase, head, .. } = self.luns[lun as usize];
        let step = &self.frame.steps[head].step;
        let ns = if phase == Phase::In { step.in_ns } else { step.out_ns };
        self.use_for(lun, ns, now_ns);
        self.frame.channels[channel as usize].grant(lun, ns);
        self.frame.clock.add(self.frame.bus(channel), now_ns + ns);
    }

    /// Lets the first resource due at `now_ns` or earlier move on. Returns `None` if no resource is due; otherwise the
    /// owner of the step that has finished, or `Some(None)` if none has.
    #[inline(always)] // called in one place, for every event
    pub fn advance(&mut self, now_ns: u64) -> Option<Option<u32>> {
        if let Some(overlap) = &mut self.overlap {
            return overlap.advance(&mut self.frame, now_ns);
        }
        let resource = self.frame.clock.take(now_ns)?;
        if resource >= self.frame.dies {
            return Some(self.transfer_ends(resource - self.frame.dies, now_ns));
        }
        self.part_ends(resource, now_ns);
        let step = &self.frame.steps[self.luns[resource as usize].head].step;
        if step.out_ns == 0 || step.folded {
            return Some(Some(self.finish(resource, now_ns)));
        }
        self.luns[resource as usize].phase = Phase::Out;
        self.request_bus(resource, now_ns);
        Some(None)
    }

    /// Ends a use of a channel's bus; returns the step's owner, if the step has finished.
    #[inline]
    fn transfer_ends(&mut self, channel: u32, now_ns: u64) -> Option<u32> {
        if self.frame.channels[channel as usize].is_free() {
            // A folded step: the only LUN of each channel has the channel's number.
            return Some(self.finish(channel, now_ns));
        }
        let (lun, next) = self.frame.channels[channel as usize].release();
        self.part_ends(lun, now_ns);
        if let Some(next) = next {
            self.grant_bus(channel, next, now_ns);
        }
        let Lun { phase, head, .. } = self.luns[lun as usize];
        if phase != Phase::In {
            return Some(self.finish(lun, now_ns));
        }
        self.work_cells(lun, self.frame.steps[head].step.cell_ns, now_ns);
        None
    }

    /// Ends the work of a LUN's cells or its use of the bus, according to its phase.
    #[inline]
    fn part_ends(&mut self, lun: u32, now_ns: u64) {
        if self.frame.accounts {
            self.account(lun, now_ns);
        }
    }

    #[cold]
    fn account(&mut self, lun: u32, now_ns: u64) {
        let Lun { phase, head, .. } = self.luns[lun as usize];
        let step = &self.frame.steps[head].step;
        let (stage, ns) = match phase {
            Phase::In => (Stage::In, step.in_ns),
            Phase::Out => (Stage::Out, step.out_ns),
            _ => (Stage::Cells, step.cell_ns),
        };
        if !self.frame.chips.is_empty() {
            self.frame.chips[self.places[lun as usize].chip as usize].end(now_ns);
        }
        self.frame.keep(head, stage, [now_ns - ns, now_ns]);
    }

    /// Ends the step at the head of a LUN's queue and begins the one behind it; returns the owner of the ended step.
    #[inline(always)] // for every step
    fn finish(&mut self, lun: u32, now_ns: u64) -> u32 {
        let state = &mut self.luns[lun as usize];
        let &Queued { owner, behind, awaited, .. } = self.frame.steps.finish(state.head);
        self.frame.active -= 1;
        state.head = behind;
        if behind == NONE {
            state.phase = Phase::Idle;
            self.frame.rest(lun);
        } else {
            let &Queued { step, waits, behind, .. } = &self.frame.steps[behind];
            // By the time it is its turn, it is at hand.
            self.frame.steps.fetch(behind);
            self.begin_step(lun, waits, [step.in_ns, step.cell_ns, step.out_ns], now_ns);
        }
        if awaited {
            self.wake(now_ns);
        }
        owner
    }

    /// Begins the steps that wait for the step that has just finished.
    #[inline(never)] // keeps the path of all other steps short
    fn wake(&mut self, now_ns: u64) {
        for _ in 0..self.frame.stalled.len() {
            // LUNs that still have to wait stall again, at the end of the queue.
            let waiting = self.frame.stalled.pop_front().expect("counted");
            self.begin(waiting, now_ns);
        }
    }
}

/// Whether operations of a die can overlap or overtake each other.
fn passes(options: &Parallel) -> bool {
    options.cache_program || options.cache_read || options.suspend != Suspend::Off || options.out_of_order
}

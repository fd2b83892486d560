//! The state that every way of running steps needs: the steps, the clock, the buses, and which LUNs are busy.

use std::collections::VecDeque;

use super::bus::Bus;
use super::steps::{Kept, Stage, Steps};
use crate::clock::Clock;
use crate::flash::Operation;
use crate::util::Bits;

/// The state that all ways of running steps share. The resources of its clock are the dies, then the channels.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub steps: Steps,
    pub clock: Clock,
    /// Number of dies.
    pub dies: u32,
    pub channels: Vec<Bus>,
    /// Whether commands of reads and erasures get a bus before data transfers do (`flash.bus`).
    pub commands_first: bool,
    /// Number of neighbouring LUNs among which a step waits for programs and erasures
    /// ([`crate::flash::Step::settled`]).
    pub settles: u32,
    /// Dies whose next step waits for a step elsewhere.
    pub stalled: VecDeque<u32>,
    /// LUNs that have work.
    pub busy: Bits,
    /// Number of times that a LUN ran out of work.
    pub rests: u64,
    /// Number of times that a LUN ran out of work, the FTL worked for itself or, where operations overlap, the dies
    /// were looked at.
    pub changes: u64,
    /// Number of unfinished steps.
    pub active: u32,
    /// Busy time of each chip; empty if the busy times of the LUNs are enough.
    pub chips: Vec<Busy>,
    pub kept: Option<Box<Kept>>,
    /// Whether the end of each part of a step is noted: busy times of chips are kept, or spans.
    pub accounts: bool,
}

/// Time during which at least one thing is in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busy {
    things: u32,
    since_ns: u64,
    ns: u64,
}

impl Busy {
    pub fn begin(&mut self, now_ns: u64) {
        if self.things == 0 {
            self.since_ns = now_ns;
        }
        self.things += 1;
    }

    pub fn end(&mut self, now_ns: u64) {
        self.things -= 1;
        if self.things == 0 {
            self.ns += now_ns - self.since_ns;
        }
    }

    /// Returns the busy time up to now, ns.
    pub fn up_to(&self, now_ns: u64) -> u64 {
        self.ns + if self.things == 0 { 0 } else { now_ns - self.since_ns }
    }
}

impl Frame {
    pub fn new([luns, dies, channels]: [u32; 3], chips: u32, commands_first: bool) -> Frame {
        Frame {
            steps: Steps::new(),
            clock: Clock::new(dies + channels),
            dies,
            channels: vec![Bus::default(); channels as usize],
            commands_first,
            settles: luns,
            stalled: VecDeque::with_capacity(dies as usize),
            busy: Bits::new(luns as usize),
            rests: 0,
            changes: 0,
            active: 0,
            chips: vec![Busy::default(); chips as usize],
            kept: None,
            accounts: chips > 0,
        }
    }

    /// Whether a LUN's steps may have to wait for programs and erasures of another.
    pub fn settles(&self, lun: u32, other: u32) -> bool {
        lun != other && lun / self.settles == other / self.settles
    }

    /// Returns the clock's resource for a channel's bus.
    #[inline]
    pub fn bus(&self, channel: u32) -> u32 {
        self.dies + channel
    }

    /// Returns whether a die gets its channel's bus now, for a step's transfer in (`is_in`) or out; if not, the die
    /// waits for the bus.
    #[inline]
    pub fn ask_bus(&mut self, channel: u32, who: u32, slot: u32, is_in: bool) -> bool {
        // A program's command is sent together with its data, so it does not go first.
        let goes_first =
            self.commands_first && is_in && self.steps[slot].step.operation != Operation::Program;
        self.channels[channel as usize].ask(who, goes_first)
    }

    /// Notes that a LUN has run out of work.
    #[inline]
    pub fn rest(&mut self, lun: u32) {
        self.busy.clear(lun);
        self.rests += 1;
        self.changes += 1;
    }

    /// Records a span of work on a step, if spans are recorded.
    #[cold]
    pub fn keep(&mut self, slot: u32, stage: Stage, times: [u64; 2]) {
        if let Some(kept) = &mut self.kept {
            kept.add(&self.steps, slot, stage, times);
        }
    }
}

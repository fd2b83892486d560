//! Which engine runs the steps: chips that do one thing at a time, or dies with the options of
//! [`crate::flash::parallel`].

use super::array::Array;
use super::dies::{Dies, Overlaps};
use super::steps::Span;
use crate::config::Settings;
use crate::flash::parallel::{MultiPlane, Suspend};
use crate::flash::{Label, Step};
use crate::util::Bits;

/// Chips, dies or planes, and channel buses.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one
pub enum Engine {
    /// A chip serves one operation at a time.
    Chips(Array),
    /// Operations overlap, or units are numbered otherwise than channel first, then way.
    Dies(Box<Dies>),
}

/// Evaluates an expression on whichever engine it is.
macro_rules! with_engine {
    ($engine:expr, $name:ident => $body:expr) => {
        match $engine {
            Engine::Chips($name) => $body,
            Engine::Dies($name) => $body,
        }
    };
}

impl Engine {
    /// The idle engine of these settings.
    pub fn new(settings: &Settings) -> Engine {
        let flash = &settings.flash;
        let options = &flash.parallel;
        let plain = !options.interleave
            && options.multi_plane == MultiPlane::Off
            && !options.cache_program
            && !options.cache_read
            && options.suspend == Suspend::Off
            && !options.out_of_order;
        let numbered = |(unit, chip): (usize, u32)| unit as u32 == chip;
        if plain && settings.spread().places().iter().map(|place| place.chip).enumerate().all(numbered) {
            Engine::Chips(Array::new(flash.chips(), flash.channels))
        } else {
            Engine::Dies(Box::new(Dies::new(settings)))
        }
    }

    /// Whether steps may overlap or pass each other, so that each must be one flash operation.
    pub fn overlaps_steps(&self) -> bool {
        matches!(self, Engine::Dies(_))
    }

    /// From now on what ends is kept as spans until it is taken, and steps need labels.
    pub fn keep_spans(&mut self) {
        with_engine!(self, engine => engine.keep_spans());
    }

    /// Whether spans are kept.
    #[inline]
    pub fn keeps_spans(&self) -> bool {
        with_engine!(self, engine => engine.keeps_spans())
    }

    /// Hands out the spans kept, in the order in which they ended.
    pub fn take_spans(&mut self, take: impl FnMut(Span)) {
        with_engine!(self, engine => engine.take_spans().for_each(take));
    }

    /// Labels the steps just started.
    #[cold]
    pub fn label(&mut self, labels: &[Label]) {
        with_engine!(self, engine => engine.label(labels));
    }

    /// Whether a chip (die, plane) has nothing to do.
    #[inline]
    pub fn is_idle(&self, chip: u32) -> bool {
        with_engine!(self, engine => engine.is_idle(chip))
    }

    /// Whether a chip (die, plane) has nothing to do, nor has what it would have to wait for.
    pub fn is_resting(&self, chip: u32) -> bool {
        match self {
            Engine::Chips(array) => array.is_idle(chip),
            Engine::Dies(dies) => dies.is_resting(chip),
        }
    }

    /// Whether a chip (die, plane) is idle, or can take up a read, else a write, all the same.
    #[inline]
    pub fn takes(&self, chip: u32, read: bool) -> bool {
        match self {
            Engine::Chips(array) => array.is_idle(chip),
            Engine::Dies(dies) => dies.takes(chip, read),
        }
    }

    /// Chips that have something to do.
    #[inline]
    pub fn busy(&self) -> &Bits {
        with_engine!(self, engine => engine.busy())
    }

    /// How many times a chip ran out of work; while it stays the same, no chip became idle.
    #[inline]
    pub fn rests(&self) -> u64 {
        with_engine!(self, engine => engine.rests())
    }

    /// Whether no chip has anything to do.
    #[inline]
    pub fn all_idle(&self) -> bool {
        with_engine!(self, engine => engine.all_idle())
    }

    /// When the next resource is due, or [`crate::clock::NEVER`].
    #[inline]
    pub fn next_ns(&self) -> u64 {
        with_engine!(self, engine => engine.next_ns())
    }

    /// Time each chip worked or used its bus, ns.
    pub fn chip_busy_ns(&self) -> Vec<u64> {
        with_engine!(self, engine => engine.chip_busy_ns().collect())
    }

    /// The same of each die, if dies work on their own.
    pub fn die_busy_ns(&self) -> Vec<u64> {
        match self {
            Engine::Chips(_) => Vec::new(),
            Engine::Dies(dies) => dies.die_busy_ns(),
        }
    }

    /// Time each channel's bus was used, ns.
    pub fn channel_busy_ns(&self) -> Vec<u64> {
        with_engine!(self, engine => engine.channel_busy_ns().collect())
    }

    /// How often operations overlapped or passed each other.
    pub fn overlaps(&self) -> Overlaps {
        match self {
            Engine::Chips(_) => Overlaps::default(),
            Engine::Dies(dies) => dies.overlaps(),
        }
    }

    /// Puts the steps of one owner, which reads or not, into their chips' queues.
    #[inline(always)] // for every request
    pub fn start(&mut self, owner: u32, steps: &[Step], reads: bool, now_ns: u64) {
        match self {
            Engine::Chips(array) => array.start(owner, steps, now_ns),
            Engine::Dies(dies) => dies.start(owner, steps, reads),
        }
    }

    /// All that starts at this instant has been started.
    #[inline]
    pub fn settle(&mut self, now_ns: u64) {
        if let Engine::Dies(dies) = self {
            dies.settle(now_ns);
        }
    }

    /// Moves on the first resource due at `now_ns` or before; `None` if none is, else the owner of
    /// a step that finished, if one did.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) -> Option<Option<u32>> {
        with_engine!(self, engine => engine.advance(now_ns))
    }
}

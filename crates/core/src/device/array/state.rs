//! The state of dies, their LUNs and their operations, if operations can overlap.

use super::frame::Busy;
use super::steps::{NO_STEP, Reference};
use crate::flash::Operation;
use crate::flash::parallel::Place;
use crate::util::NONE;

/// How often operations overlapped or overtook each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlaps {
    /// Numbers of reads, of programs and of erasures on more than one plane.
    pub multi_plane: [u64; 3],
    /// Numbers of reads and of programs that began while the previous operation was in progress.
    pub cached: [u64; 2],
    /// Numbers of suspensions of programs and of erasures.
    pub suspensions: [u64; 2],
    /// Number of reads that overtook an older program or erasure.
    pub passed: u64,
}

/// The progress of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is no operation.
    Idle,
    /// Commands and data are going in.
    In,
    /// Commands and data are in; the cells work on another operation.
    Ready,
    Cells,
    Suspending,
    Resuming,
    /// The cells have finished; the cache register holds another operation's data.
    Held,
    /// Data are going out.
    Out,
}

/// An operation of a die: one step, or one step on each of several planes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub phase: Phase,
    pub operation: Operation,
    /// The first step; the others are linked behind it.
    pub head: u32,
    /// The next step to use the bus.
    pub at: u32,
    /// When the cells began to work or to resume, and when they will have finished.
    pub since_ns: u64,
    pub until_ns: u64,
    pub suspensions: u32,
}

pub(super) const NO_GROUP: Group = Group {
    phase: Phase::Idle,
    operation: Operation::Read,
    head: NONE,
    at: NONE,
    since_ns: 0,
    until_ns: 0,
    suspensions: 0,
};

/// An operation that has been suspended for reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspended {
    pub group: Group,
    pub left_ns: u64,
    /// Only reads with numbers below this one go first.
    pub before: u64,
}

/// A die, or a chip if its dies do not work on their own.
#[derive(Clone, Debug)]
pub(super) struct Die {
    /// Number of the die, counted chip by chip, or of the chip if dies do not work on their own.
    pub number: u32,
    pub chip: u32,
    pub channel: u32,
    /// The die's LUNs, as a range in `Overlap::order`: the first index, and the end.
    pub luns: (u32, u32),
    pub groups: [Group; 2],
    /// Which of the two operations is older.
    pub front: usize,
    /// Which of the two operations the cells work on.
    pub cells: Option<usize>,
    pub suspended: Option<Suspended>,
    /// Number of reads served ahead of the oldest waiting program or erasure.
    pub passed: u32,
    pub stalled: bool,
    pub busy: Busy,
}

impl Die {
    /// Makes an idle die, which gets its LUNs later.
    pub fn new(number: u32, place: &Place) -> Die {
        Die {
            number,
            chip: place.chip,
            channel: place.channel,
            luns: (0, 0),
            groups: [NO_GROUP; 2],
            front: 0,
            cells: None,
            suspended: None,
            passed: 0,
            stalled: false,
            busy: Busy::default(),
        }
    }
}

/// A LUN.
#[derive(Clone, Debug)]
pub(super) struct Lun {
    pub die: u32,
    /// The physical die, whose planes can work together.
    pub package: u32,
    /// Number of unfinished reads, and of other unfinished steps.
    pub held: [u32; 2],
    /// The last erasure, where steps overtake each other whatever they do.
    pub erased: Reference,
}

impl Lun {
    /// Makes an idle LUN of a die.
    pub fn new(die: u32, package: u32) -> Lun {
        Lun { die, package, held: [0; 2], erased: NO_STEP }
    }
}

//! The flash: the timing of its operations, and the sink into which an FTL emits them.
//!
//! An FTL decides *what* happens and in which order, and names the pages; [`Work`] records this as steps, each
//! with a LUN, a cause and the time that its [`Cells`] take, and the device ([`crate::device`]) decides *when*
//! each step runs.

mod across;
pub(crate) mod cells;
mod copies;
mod emit;
pub mod errors;
pub mod media;
pub(crate) mod medium;
pub mod moves;
pub mod parallel;
mod repeats;
pub mod settings;
pub(crate) mod superblocks;
mod tally;
pub mod variation;
mod work;

pub use cells::Cells;
pub use errors::Reliability;
pub use settings::{Endurance, Flash};
pub use tally::{ByType, Tally};
pub(crate) use work::Target;
pub use work::Work;

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use serde::{Serialize, Serializer};

use crate::named;

named! {
    /// Why a flash operation happened; the keys of `flash.reads`, `flash.programs`, `flash.erases`
    /// and `flash.busy_ns` in a result.
    #[repr(u8)]
    pub enum Cause {
        /// The host's own data.
        Host = "host",
        /// Mappings programmed or read by lookup, eviction, flush, or GC's updates of mappings.
        Map = "map",
        /// User data moved by garbage collection.
        Gc = "gc",
        /// Translation pages moved by garbage collection of translation blocks.
        GcMap = "gc-map",
        /// The directory of translation pages (GTD, MSD).
        Dir = "dir",
        /// Merges of hybrid FTLs.
        Merge = "merge",
        /// Padding: pages programmed part-full.
        Pad = "pad",
        /// Wear levelling.
        Wear = "wear",
        /// Data moved from the SLC cache to blocks of all bits.
        Fold = "fold",
        /// Data moved because it would soon be hard to read.
        Refresh = "refresh",
    }
}

impl Cause {
    /// Number of causes that every result names; they come first.
    pub const COMMON: usize = Cause::Fold as usize;

    /// Whether results name the cause only where something was counted for it.
    pub fn is_rare(self) -> bool {
        self as usize >= Cause::COMMON
    }
}

named! {
    /// What a flash operation does.
    #[repr(u8)]
    pub enum Operation {
        /// Reads a page.
        Read = "read",
        /// Programs a page.
        Program = "program",
        /// Erases a block.
        Erase = "erase",
    }
}

/// A value for each cause; in a result it is a map whose keys are the names of the causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByCause<T>([T; Cause::ALL.len()]);

impl<T> ByCause<T> {
    /// Makes the values by calling `of` for each cause in turn.
    pub fn new(of: impl FnMut(Cause) -> T) -> ByCause<T> {
        ByCause(Cause::ALL.map(of))
    }

    /// Returns the values, in the order of the causes.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<T: Default + PartialEq> ByCause<T> {
    /// Returns a map from the names of the causes to their values; rare causes are left out where nothing was counted.
    pub fn named(&self) -> BTreeMap<&'static str, &T> {
        let all = Cause::ALL.into_iter().map(|cause| (cause, &self[cause]));
        let counted = all.filter(|(cause, value)| !cause.is_rare() || **value != T::default());
        counted.map(|(cause, value)| (cause.name(), value)).collect()
    }
}

impl ByCause<u64> {
    /// Returns the sum over all causes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl<T> Index<Cause> for ByCause<T> {
    type Output = T;

    #[inline]
    fn index(&self, cause: Cause) -> &T {
        &self.0[cause as usize]
    }
}

impl<T> IndexMut<Cause> for ByCause<T> {
    #[inline]
    fn index_mut(&mut self, cause: Cause) -> &mut T {
        &mut self.0[cause as usize]
    }
}

impl<T: Serialize + Default + PartialEq> Serialize for ByCause<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.named().serialize(to)
    }
}

/// Counts of flash operations, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Page reads.
    pub reads: ByCause<u64>,
    /// Page programs.
    pub programs: ByCause<u64>,
    /// Block erases.
    pub erases: ByCause<u64>,
    /// Time for which the cells and the bus worked, ns; waiting is not included.
    pub busy_ns: ByCause<u64>,
    /// Bytes of the pages read that did not cross the bus, because only a part of a page was wanted.
    pub unsent: ByCause<u64>,
    /// Logical pages read that hold no data; some page of the LUN is read in their place.
    pub unwritten: u64,
}

impl Counts {
    /// Returns the operations counted since `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        let less =
            |of: fn(&Counts) -> &ByCause<u64>| ByCause::new(|cause| of(self)[cause] - of(before)[cause]);
        Counts {
            reads: less(|counts| &counts.reads),
            programs: less(|counts| &counts.programs),
            erases: less(|counts| &counts.erases),
            busy_ns: less(|counts| &counts.busy_ns),
            unsent: less(|counts| &counts.unsent),
            unwritten: self.unwritten - before.unwritten,
        }
    }
}

/// How long operations hold the channel bus, ns; [`Cells`] has the times of the cells.
#[derive(Clone, Copy, Debug)]
struct Timing {
    /// Number of NAND pages in a program unit.
    unit_pages: u32,
    /// Data bytes of a NAND page, and of a logical page.
    page_bytes: u32,
    logical_page_bytes: u32,
    /// Time to transfer a whole page.
    page_transfer_ns: u64,
    /// Bus time of a program: the command, and the transfer of a program unit.
    program_in_ns: u64,
    /// Time to transfer one logical page.
    logical_transfer_ns: u64,
    /// Times of the commands for a read, a program and an erase, each including the address.
    command_ns: [u64; 3],
}

impl Timing {
    /// Makes the timing of `flash` with logical pages of `logical_page_bytes`.
    fn new(flash: &Flash, logical_page_bytes: u32) -> Timing {
        let command_ns = [flash.read_command_ns, flash.program_command_ns, flash.erase_command_ns]
            .map(|own_ns| own_ns.unwrap_or(flash.command_ns));
        let page_transfer_ns = flash.transfer_ns(u64::from(flash.page_bytes));
        Timing {
            unit_pages: flash.unit_pages(),
            page_bytes: flash.page_bytes,
            logical_page_bytes,
            page_transfer_ns,
            program_in_ns: command_ns[1] + u64::from(flash.unit_pages()) * page_transfer_ns,
            logical_transfer_ns: flash.transfer_ns(u64::from(logical_page_bytes)),
            command_ns,
        }
    }
}

/// One stretch of work on one LUN: the command and data come in over the bus, then the cells work, then data
/// goes out.
///
/// Here, as everywhere above the device, a LUN is the smallest part of the flash to which pages can be directed:
/// a chip, or a die or a plane if these work independently ([`parallel`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// LUN on which the step runs.
    pub lun: u32,
    /// The step's operation; if operations were merged, the first of them.
    pub operation: Operation,
    /// Why the step happens; if operations were merged, the first of them.
    pub cause: Cause,
    /// Whether the step is folded ([`Work::fold`]); `cell_ns` is then its whole time, of which `out_ns` is bus time.
    pub folded: bool,
    /// Whether a folded step ends with a transfer.
    pub ends_on_bus: bool,
    /// NAND page that the step reads or programs, numbered over the device, or the first page of the block that it
    /// erases; [`crate::util::NONE`]: unknown.
    pub page: u32,
    /// Index, in the same [`Work`], of the step that must finish before this one begins, or
    /// [`crate::util::NONE`].
    pub after: u32,
    /// Number of the load (of any request) that must finish before this step begins; 0: none.
    pub needs: u32,
    /// Number, counted from 1, of the load that this step completes; 0: none.
    pub loads: u32,
    /// Number of the step's first program or erase or, if it has none, of the next program or erase after it
    /// ([`Work::mark`]).
    pub number: u32,
    /// All programs and erases up to this number, on any LUN (without `ftl.power_safe` only on those of the
    /// superblock's group), must finish before this step begins; 0: no condition.
    pub settled: u32,
    /// Bus time before the cells work, ns.
    pub in_ns: u64,
    /// Cell time, ns.
    pub cell_ns: u64,
    /// Bus time after the cells have worked, ns.
    pub out_ns: u64,
}

/// The meaning of a step, for timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// What the step does.
    pub operation: Operation,
    /// Why the step happens.
    pub cause: Cause,
    /// Logical page for which the step is done, or [`crate::util::NONE`].
    pub lpn: u32,
    /// Number of the program or erase, counted from 0 in the order of emission; [`crate::util::NONE`] for a read.
    pub number: u32,
}

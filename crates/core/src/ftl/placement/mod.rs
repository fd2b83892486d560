//! Placement: which front of its LUN takes a page. A front is a class of data with an open block of its own.
//!
//! A [`crate::ftl::log::Log`] of user data asks its placement for the front of every page that it writes or copies, and
//! tells it about every version that becomes invalid. To add a policy, add a file here with `NAME`, `DOC`, `Keys` and a
//! type that implements [`Placement`], and one line to the registry below. Where all pages share one front, no
//! placement is asked. [`crate::ftl::log`] says why a LUN with several open blocks can always collect its garbage.

use std::fmt::Debug;

use crate::config::parts::{dispatch, registry};
use crate::flash::Cause;
use crate::util::Stat;

/// The name of the placement that is never asked, since all pages share one front.
pub const ONE: &str = "one";

/// What a placement needs from the log.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Whether fronts are the speeds of blocks; such a placement is asked only during a run.
    pub speeds: bool,
    /// Whether the log must keep track of when each page was written, and pass on the ages of pages.
    pub ages: bool,
}

impl Needs {
    /// The needs of a placement that needs nothing but the pages about which it is asked.
    pub const NOTHING: Needs = Needs { speeds: false, ages: false };
}

/// The largest number of fronts of a LUN: they and the block set aside must fit in a 64-bit word, one bit for
/// each.
pub const MOST_FRONTS: u32 = 63;

/// The sizes of the device for which a placement is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Space {
    /// Number of LUNs.
    pub luns: u32,
    /// Number of logical pages.
    pub pages: u32,
    /// Largest number of fronts of a LUN (`ftl.fronts`); `None`: as many as the placement likes.
    pub fronts: Option<u32>,
}

/// A page that is about to be written or copied.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// LUN to which the page goes.
    pub lun: u32,
    /// LPN of the page.
    pub lpn: u32,
    /// Why the page is programmed: [`Cause::Host`] and [`Cause::Pad`] are writes, all others copies.
    pub cause: Cause,
    /// Stream of the request; 0 for a request without a stream, and for copies.
    pub stream: u16,
    /// For a write, how long the version that it replaces was valid; for a copy, how long ago its data was written. The
    /// age is counted in writes to the log; `u64::MAX` if there is no such version, or ages are not kept
    /// ([`Needs::ages`]).
    pub age: u64,
    /// For a copy, or a write that replaces a version: the front of the block that holds the version to be copied or
    /// replaced.
    pub from: Option<u32>,
    /// Whether requests behind the current one wait for the LUN.
    pub hurried: bool,
}

impl Page {
    /// Whether the page is copied within the device rather than written by the host.
    pub fn is_copy(&self) -> bool {
        !matches!(self.cause, Cause::Host | Cause::Pad)
    }
}

/// What went to a front since the run began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontCount {
    /// Name of the front.
    pub name: String,
    /// Number of pages that the host wrote, padding included.
    pub written: u64,
    /// Number of pages that the device moved there.
    pub moved: u64,
}

/// The blocks of a LUN that can take a page, as a placement by speed sees them.
pub trait Writable {
    /// Returns the fronts that have a block for the page, as a bit set; at least one front does.
    fn fronts(&self) -> u64;
    /// Returns the block that a front would fill, and its place in the order of erasure.
    fn first(&self, front: u32) -> (u32, u32);
}

registry! {
    /// A registered placement.
    #[derive(Clone, Debug)]
    pub enum Policy or AnyPlacement, for "ftl.placement";

    One = one::One;
    GcApart = gc_apart::GcApart;
    HotCold = hot_cold::HotCold;
    SepBit = sepbit::SepBit;
    Stream = stream::Stream;
    Vios = vios::Vios;
}

dispatch! {
    /// A placement, which says which front of its LUN takes a page.
    pub trait Placement: [Debug + Send + Sync], NEEDS: Needs = Needs::NOTHING;
    for Policy or AnyPlacement (Clone by copy), which "ftl.placement" may name;

    /// Makes the placement with these keys.
    fn new(keys: &Own, space: Space);
    /// Returns the number of fronts of a LUN, at most [`MOST_FRONTS`]; it must not depend on the sizes of the device.
    /// Placements by speed have as many fronts as there are speeds.
    fn fronts(self: &Self) -> u32 = { 1 };
    /// Returns the name of a front, for results.
    fn front_name(self: &Self, front: u32) -> String = { format!("front {front}") };
    /// Returns the front of a page. A placement by speed chooses among `blocks`, and is asked about all copies of a
    /// collection together, not about each of them.
    fn front(self: &mut Self, page: Page, blocks: @Writable) -> u32;
    /// Called when a version in this front becomes invalid after `age`, because its page is trimmed or about to be
    /// written.
    fn invalidated(self: &mut Self, lpn: u32, front: u32, age: u64) = {};
    /// Called when a block of this front, opened `age` writes to the log ago, is collected.
    fn collected(self: &mut Self, front: u32, age: u64) = {};
    /// Returns the state that must be kept when the device is saved.
    fn save(self: &Self) -> Vec<u64> = { Vec::new() };
    /// Restores the saved state; returns whether that can be a state of this placement.
    fn load(self: &mut Self, saved: &[u64]) -> bool = { saved.is_empty() };
    /// Returns the placement's own figures; called when a report is drawn up.
    fn stats(self: &Self) -> Vec<Stat> = { Vec::new() };
}

//! I/O schedulers of the host: which pending request, or batch, goes next.
//!
//! A scheduler sees requests ([`Pool`]) that the host has admitted and classified;
//! it never sees the device. To add one: a file here with `NAME`, `DOC`, `Keys` and
//! a type that implements [`Scheduler`], and one line in the registry below.

mod batches;
mod block_issues;
mod bundles;
mod halves;

use std::fmt::Debug;
use std::ops::Range;

use crate::config::parts::{dispatch, registry};
use crate::config::section;
use crate::request::{Pool, Queue};
use crate::util::Stat;
use crate::workload::Op;

/// What a scheduler decided.
#[derive(Clone, Copy, Debug)]
pub enum Decision {
    /// Nothing is pending.
    Nothing,
    /// This request goes next.
    One(u32),
    /// These requests go next, in this order, as a batch.
    Batch(Queue),
}

/// What a scheduler can reach while it chooses: the cooperation interface of the device below it (Shim et
/// al., TC 2014, Table 1) and the page cache above. Everything but the time is meant for schedulers by flash
/// blocks.
pub trait Around {
    /// Returns the LPNs of a logical block.
    fn pages_of(&self, block: u32) -> Range<u32>;
    /// COOP_Query: stores in `set` the logical blocks that a block issue of this many pages, starting at an
    /// LPN, would have merged, fully or partially.
    fn query(&self, first: u32, pages: u32, set: &mut Vec<u32>);
    /// Appends writes of a logical block's dirty pages in the page cache; they become pending, are in no
    /// scheduler, and are to be issued with this choice.
    fn join(&mut self, block: u32, pool: &mut Pool, found: &mut Vec<u32>);
    /// Returns the simulated time, ns.
    fn now_ns(&self) -> u64;
    /// Makes a request of padding to be issued with this choice: these LPNs are read, or written back.
    fn pad(&mut self, op: Op, pages: Range<u32>, pool: &mut Pool) -> u32;
}

/// What a scheduler needs of the host.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// It orders by `Request::hit`: the host classifies requests.
    pub hits: bool,
    /// It looks at `Request::translation_page`: the host finds it.
    pub translation_pages: bool,
    /// Requests that have waited for `host.deadline` are dispatched before any choice.
    pub deadline: bool,
    /// It works by flash blocks: the host cuts writes at their ends.
    pub blocks: bool,
    /// It saves a hybrid FTL's merges their copies, and has no use above another FTL.
    pub merges: bool,
    /// It cooperates with the FTL: the page cache flushes by flash blocks.
    pub cooperation: bool,
}

impl Needs {
    /// It chooses single requests, in the order of their admission.
    pub const NOTHING: Needs = Needs {
        hits: false,
        translation_pages: false,
        deadline: false,
        blocks: false,
        merges: false,
        cooperation: false,
    };
}

registry! {
    /// A registered scheduler.
    #[derive(Debug)]
    pub enum Sched or AnyScheduler, for "host.scheduler";

    Noop = noop::Noop;
    Row = row::Row;
    Amphibian = amphibian::Amphibian;
    Hp = hp::Hp;
    Rb = rb::Rb;
    Map = map::Map;
    MapPlus = map_plus::MapPlus;
    Irbw = irbw::Irbw;
    Padding = padding::Padding;
    Coop = coop::Coop;
}

dispatch! {
    /// An I/O scheduler. Every request is admitted once and leaves once, by choice or by `remove`.
    pub trait Scheduler: [Debug + Send], NEEDS: Needs;
    for Sched or AnyScheduler, which "host.scheduler" may name;

    /// Makes the scheduler with these keys, for flash blocks of this many logical pages.
    fn new(keys: &Keys, block_pages: u32);
    /// A request enters the pending queue.
    #[inline(always)] // for every request
    fn admit(self: &mut Self, id: u32, pool: &mut Pool);
    /// A pending request that had `before` pages has merged with a later one and now has more. It keeps its
    /// place and its class, which are those of its admission; counts of pages change.
    fn grown(self: &mut Self, id: u32, before: u32, pool: &mut Pool) = {};
    /// Removes and returns what is to be dispatched next.
    fn choose(self: &mut Self, pool: &mut Pool, around: &mut dyn Around) -> Decision;
    /// Removes a request that is dispatched by deadline; only called if [`Needs::deadline`] is set.
    fn remove(self: &mut Self, id: u32, pool: &mut Pool) = {};
    /// Returns the number of batches created so far.
    fn batches(self: &Self) -> u64 = { 0 };
    /// Figures of its own; asked for when a report is drawn up.
    fn stats(self: &Self) -> Vec<Stat> = { Vec::new() };
    /// Checks, for check mode, what it counts and orders against the requests themselves; returns how many it
    /// holds.
    ///
    /// # Errors
    /// What does not hold.
    fn verify(self: &Self, pool: &Pool) -> Result<u32, String>;
}

impl Sched {
    /// [`Scheduler::choose`]; `around` is made for those who look.
    #[inline(always)] // for every request
    pub fn choose_in<A: Around>(&mut self, pool: &mut Pool, around: impl FnOnce() -> A) -> Decision {
        with_part!(self, part => Scheduler::choose(part, pool, &mut around()), else part.choose(pool, &mut around()))
    }
}

section! {
    /// What the schedulers read.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// hp, rb, map, map+: alternate reads and writes as row does.
        alternate: bool = "host.alternate", "false";
        /// Each scheduler's own.
        own: Own;
    }
}

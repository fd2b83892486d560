//! I/O schedulers of the host: which pending request, or batch, goes next.
//!
//! A scheduler sees requests ([`Pool`]) that the host has admitted and classified;
//! it never sees the device. To add one: a file here with `NAME`, `DOC`, `Keys` and
//! a type that implements [`Scheduler`], and one line in the registry below.

mod batches;
mod block_issues;
mod budgets;
mod bundles;
mod costed;
mod halves;
mod peak_rate;
mod process;
mod times;
mod turns;
mod weights;
mod wf2q;

use std::fmt::Debug;
use std::ops::Range;

use crate::clock::NEVER;
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

/// What a scheduler can reach while it chooses: the cooperation interface of the device below it (Shim et al., TC 2014,
/// Table 1) and the page cache above. Everything except the time is meant for schedulers that work on whole flash
/// blocks.
pub trait Around {
    /// Returns the LPNs of a logical block.
    fn pages_of(&self, block: u32) -> Range<u32>;
    /// COOP_Query: stores in `set` the logical blocks that a block issue of this many pages, starting at an
    /// LPN, would cause the FTL to merge, fully or partially.
    fn query(&self, first: u32, pages: u32, set: &mut Vec<u32>);
    /// Appends to `found` the writes of a logical block's dirty pages in the page cache; these become pending but enter
    /// no scheduler's queue, and must be issued with this choice.
    fn join(&mut self, block: u32, pool: &mut Pool, found: &mut Vec<u32>);
    /// Returns the simulated time, ns.
    fn now_ns(&self) -> u64;
    /// Makes a padding request, which reads these LPNs or writes them back; it must be issued with this choice.
    fn pad(&mut self, op: Op, pages: Range<u32>, pool: &mut Pool) -> u32;
}

/// What a scheduler needs from the host.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Whether the scheduler orders requests by `HostSide::hit`; if so, the host classifies requests.
    pub hits: bool,
    /// Whether the scheduler uses `HostSide::translation_page`; if so, the host finds that page.
    pub translation_pages: bool,
    /// Whether requests that have waited as long as `host.deadline` are dispatched before any choice.
    pub deadline: bool,
    /// Whether the scheduler makes batches of requests that leave together; `host.late` says whether a late request
    /// takes its batch along.
    pub batches: bool,
    /// Whether the scheduler works on whole flash blocks; if so, the host cuts writes at the ends of blocks.
    pub blocks: bool,
    /// Whether the scheduler avoids copies in the merges of a hybrid FTL, and so is useless above any other FTL.
    pub merges: bool,
    /// Whether the scheduler cooperates with the FTL; if so, the page cache flushes one flash block at a time.
    pub cooperation: bool,
    /// Whether the scheduler is told about completions ([`Scheduler::completed`]). Such a scheduler may hold requests
    /// back until others complete.
    pub completions: bool,
    /// Whether the scheduler goes by the weights of the tenants.
    pub weights: bool,
    /// Whether the scheduler may also hold requests back until a time of its own ([`Scheduler::due_ns`]).
    pub timer: bool,
}

impl Needs {
    /// The needs of a scheduler that chooses single requests in the order of their admission: none at all.
    pub const NOTHING: Needs = Needs {
        hits: false,
        translation_pages: false,
        deadline: false,
        batches: false,
        blocks: false,
        merges: false,
        cooperation: false,
        completions: false,
        weights: false,
        timer: false,
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
    MapRate = map_rate::MapRate;
    MapRatio = map_ratio::MapRatio;
    Irbw = irbw::Irbw;
    Padding = padding::Padding;
    Coop = coop::Coop;
    MqDeadline = mq_deadline::MqDeadline;
    Kyber = kyber::Kyber;
    Bfq = bfq::Bfq;
}

dispatch! {
    /// An I/O scheduler. Every request is admitted once and leaves once, by choice or by `remove`.
    pub trait Scheduler: [Debug + Send], NEEDS: Needs;
    for Sched or AnyScheduler, which "host.scheduler" may name;

    /// Makes the scheduler with these keys, for flash blocks of this many logical pages.
    fn new(keys: &Keys, block_pages: u32);
    /// Notes that a request enters the pending queue.
    #[inline(always)] // for every request
    fn admit(self: &mut Self, id: u32, pool: &mut Pool);
    /// Notes that a pending request that had `before` pages has merged with a later one and now has more pages. It
    /// keeps the place and the class that it got on admission; only counts of pages change.
    fn grown(self: &mut Self, id: u32, before: u32, pool: &mut Pool) = {};
    /// Removes and returns the requests that are to be dispatched next.
    fn choose(self: &mut Self, pool: &mut Pool, around: &mut dyn Around) -> Decision;
    /// Removes a request that is dispatched because its deadline has passed; only called if [`Needs::deadline`] is set.
    fn remove(self: &mut Self, id: u32, pool: &mut Pool) = {};
    /// Removes a request that is dispatched because its deadline has passed, with the rest of its batch; only called if
    /// [`Needs::batches`] is set and `host.late` keeps batches together.
    fn expire(self: &mut Self, id: u32, pool: &mut Pool) -> Decision = {
        self.remove(id, pool);
        Decision::One(id)
    };
    /// Notes that a request that was dispatched completes now; only called if [`Needs::completions`] is set.
    fn completed(self: &mut Self, id: u32, now_ns: u64, pool: &Pool) = {};
    /// Returns when the scheduler is to be asked again even if nothing happens, ns, [`NEVER`] if not; only called if
    /// [`Needs::timer`] is set.
    fn due_ns(self: &Self) -> u64 = { NEVER };
    /// Returns the number of batches created so far.
    fn batches(self: &Self) -> u64 = { 0 };
    /// Returns the scheduler's own figures; called when a report is drawn up.
    fn stats(self: &Self) -> Vec<Stat> = { Vec::new() };
    /// Compares, for check mode, the scheduler's counts and order with the requests themselves; returns the number of
    /// requests that it holds.
    ///
    /// # Errors
    /// A message that says what does not hold.
    fn verify(self: &Self, pool: &Pool) -> Result<u32, String>;
}

impl Sched {
    /// Calls [`Scheduler::choose`]; `around` is made only for schedulers that use it.
    #[inline(always)] // for every request
    pub fn choose_in<A: Around>(&mut self, pool: &mut Pool, around: impl FnOnce() -> A) -> Decision {
        with_part!(self, part => Scheduler::choose(part, pool, &mut around()), else part.choose(pool, &mut around()))
    }
}

section! {
    /// Keys of the schedulers.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Schedulers hp, rb, map and map+: alternate reads and writes as row does.
        alternate: bool = "host.alternate", "false";
        /// How long the flash takes to serve a page.
        times: times::Times;
        /// Weights of the tenants.
        weights: weights::Weights;
        /// Keys of the individual schedulers.
        own: Own;
    }
}

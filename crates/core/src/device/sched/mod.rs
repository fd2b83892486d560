//! Schedulers of the device's own queue: which waiting request issues next.
//!
//! A scheduler sees the requests that the device holds, which chips each touches, and which chips are busy.
//! To add one: a file here with `NAME`, `DOC`, `Keys` and a type that implements [`Scheduler`], and one line
//! in the registry below.
//!
//! Requests that wait at the same time are in no particular order, as in NVMe: a read may overtake a write of the same
//! page. A request that must follow another is sent once the other has completed, or after a flush, which every
//! scheduler issues only when the writes before it have completed.

pub(super) mod batches;
mod channels;
mod sets;
mod unbound;
mod windows;

use std::fmt::Debug;

use super::Array;
use crate::config::parts::{dispatch, registry};
use crate::config::section;
use crate::config::section::count;
use crate::flash::Work;
use crate::flash::parallel::Allocation;
use crate::ftl::Locate;
use crate::request::{Pool, Window};
use crate::util::Stat;

/// What a scheduler needs from the device.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Whether the scheduler orders requests by the chips given by eq. (1) of VIOS, and so needs static allocation.
    pub chips: bool,
    /// Whether the scheduler hurries writes that others wait for; if so, blocks are chosen by speed, unless
    /// `ftl.placement` says otherwise.
    pub speeds: bool,
}

impl Needs {
    /// The needs of a scheduler that only has to know which chips are at work.
    pub const NOTHING: Needs = Needs { chips: false, speeds: false };
}

/// Which part of a request issues, if the request does not issue as a whole.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// No page yet: the request has left the queue, and its pages will issue.
    Begin,
    /// Some of the request's logical pages.
    Pages {
        /// The index of the first of these pages within the request.
        at: u32,
        /// The number of these pages.
        count: u32,
    },
}

/// The chips and the logical pages that a scheduler has to deal with.
#[derive(Clone, Debug)]
pub struct Space {
    /// Channel of each chip (die, plane).
    pub channels: Vec<u32>,
    /// Number of logical pages of the device.
    pub pages: u32,
    /// The value of `ftl.allocation`, which hybrid FTLs do not follow.
    pub allocation: Allocation,
    /// Whether writes go where there is room, so that their chips are known only when they issue.
    pub dynamic: bool,
}

impl Space {
    /// Returns the number of chips (dies, planes).
    pub fn chips(&self) -> u32 {
        self.channels.len() as u32
    }
}

registry! {
    /// A registered scheduler of the device.
    #[derive(Clone, Debug)]
    pub enum Sched or AnyScheduler, for "device.scheduler";

    Noop = noop::Noop;
    NoopBusy = noop_busy::NoopBusy;
    Direct = direct::Direct;
    Piq = piq::Piq;
    Vios = vios::Vios;
}

dispatch! {
    /// A scheduler of the device's queue. Every request is admitted once and leaves once, through `next`.
    pub trait Scheduler: [Debug + Send + Sync], NEEDS: Needs = Needs::NOTHING;
    for Sched or AnyScheduler (Clone by copy), which "device.scheduler" may name;

    /// Makes the scheduler with these keys.
    fn new(keys: &Keys, space: &Space);
    /// Notes that a request enters the queue. A flush touches every chip.
    #[inline(always)] // for every request
    fn admit(self: &mut Self, id: u32, chips: Window, pool: &mut Pool);
    /// Removes and returns a request that may issue now; one that issues in parts is returned once for each part.
    #[inline]
    fn next(self: &mut Self, array: &Array, ftl: @Locate, pool: &mut Pool) -> Option<u32>;
    /// Whether `next` would return nothing, because it has just done so and nothing but arrivals has happened since.
    #[inline]
    fn waits(self: &Self, array: &Array) -> bool = { false };
    /// Whether requests may issue in parts.
    fn divides(self: &Self) -> bool = { false };
    /// Returns which part of the request last returned by `next` issues; `None` means all of it. If the scheduler has
    /// checked which dies are taken, it passes them to `work`.
    fn part(self: &Self, work: &mut Work) -> Option<Part> = { None };
    /// Returns the batch, from 1, and the channel batch within it (0 if there is none) of a request that has issued;
    /// `None` if the scheduler makes no batches.
    #[inline]
    fn batch_of(self: &Self, id: u32) -> Option<(u64, u32)> = { None };
    /// Returns the number of batches created so far.
    fn batches(self: &Self) -> u64 = { 0 };
    /// Returns the scheduler's own figures; called when a report is drawn up.
    fn stats(self: &Self) -> Vec<Stat> = { Vec::new() };
}

section! {
    /// Keys of the schedulers.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Number of requests that piq and vios issue ahead of the oldest waiting request before they keep its chips
        /// for it.
        max_passed: u32 = "device.max_passed", count(0, 1 << 30) or "unlimited", "128";
        /// Keys of the individual schedulers.
        own: Own;
    }
}

//! Orders at a die: which waiting operation it takes next (`flash.order`).
//!
//! The array keeps the steps that wait in lines by LUN ([`super::lines`]), and takes them in the order of emission, or
//! reads before all others ([`super::choice`]). An order with queues of its own is told about every step that begins to
//! wait, and names the one that a die takes. To add one: a file here with `NAME`, `DOC`, `Keys` and a type that
//! implements [`Order`], and one line in the registry below.

use std::fmt::Debug;

use crate::config::parts::{dispatch, registry};
use crate::config::section::one_of;
use crate::config::{Ignored, section};
use crate::flash::parallel::Parallel;
use crate::flash::{Cause, Operation};
use crate::workload::tenants::Class;

/// What an order needs.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Whether reads pass all waiting operations except the program of their page and erasures of their block.
    pub passes: bool,
    /// Whether the order keeps queues of its own and chooses from them; reads then pass as above.
    pub queues: bool,
    /// Whether the order goes by the classes of the tenants (`priority`).
    pub classes: bool,
}

impl Needs {
    /// The needs of the order of emission.
    pub const NOTHING: Needs = Needs { passes: false, queues: false, classes: false };
}

/// The dies whose operations are ordered.
#[derive(Clone, Copy, Debug)]
pub struct Dies {
    /// Number of dies, or of chips if their dies do not work on their own.
    pub count: usize,
    /// Bytes of a page.
    pub page_bytes: u32,
}

/// A step that begins to wait at a die.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Slot of the step, which is free again once the step has ended.
    pub slot: u32,
    /// Number of the step, in the order of emission.
    pub number: u64,
    /// Number of the die.
    pub die: u32,
    /// Stream of the request that needs the step; `None`: one of the device's own.
    pub stream: Option<u16>,
    /// What the step does.
    pub operation: Operation,
    /// Why.
    pub cause: Cause,
    /// Erase block of a program or erasure, or `u32::MAX`.
    pub block: u32,
    /// Slot of the unfinished program or erasure that the step has to wait for if it is one itself, or `u32::MAX`.
    pub ahead: u32,
    /// What the step takes on bus and cells, ns.
    pub service_ns: u64,
}

registry! {
    /// A registered order.
    #[derive(Clone, Debug)]
    #[allow(clippy::large_enum_variant)] // a device has one
    pub enum Ordering or AnyOrder, for "flash.order";

    Emission = emission::Emission;
    ReadsFirst = reads_first::ReadsFirst;
    Flin = flin::Flin;
}

dispatch! {
    /// An order of the operations that wait at dies. The methods below are called if the order has queues of its own.
    pub trait Order: [Debug + Send + Sync], NEEDS: Needs = Needs::NOTHING;
    for Ordering or AnyOrder (Clone by copy), which "flash.order" may name;

    /// Makes the order with these keys.
    fn new(keys: &Own, dies: &Dies);
    /// From now on, tells tenants apart by the streams of their requests; these are the classes of the first streams.
    fn tell_apart(self: &mut Self, classes: Vec<Class>) = {};
    /// Notes that a step begins to wait.
    fn enter(self: &mut Self, arrival: Arrival, now_ns: u64) = {};
    /// Notes that the step in a slot begins.
    fn leave(self: &mut Self, slot: u32, now_ns: u64) = {};
    /// Returns the step that a die takes next, of those that are `able` to begin; changes nothing.
    fn choose(self: &Self, die: u32, now_ns: u64, able: &mut dyn FnMut(u32) -> bool) -> Option<u32> = { None };
}

section! {
    /// The order at a die, and its keys.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Which waiting operation a die takes next.
        name: String = "flash.order", one_of(choices), "emission" not in state;
        /// Keys of the individual orders.
        own: Own;
    }
}

impl Keys {
    /// Returns options of parallel operation as they are under this order.
    pub(super) fn apply(&self, options: Parallel) -> Parallel {
        match needs(&self.name) {
            Needs { passes: false, queues: false, .. } => options,
            _ => Parallel { out_of_order: true, max_passed: u32::MAX, ..options },
        }
    }

    /// Collects the keys that the chosen order ignores, with the reason.
    pub(crate) fn ignored(&self, found: &mut Ignored) {
        let chosen = format!("flash.order = \"{}\"", self.name);
        let Needs { passes, queues, .. } = needs(&self.name);
        found.unless(!passes && !queues, &["flash.out_of_order", "flash.max_passed"], &chosen);
        own_ignored(&[&self.name], &|_| chosen.clone(), found);
    }
}

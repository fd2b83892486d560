//! `[device]`: the device's queue, and the state of its flash at time 0.

use crate::config::section::{count, one_of, share};
use crate::config::{choice, over, section};
use crate::ftl::blocks::by_speed::Unhurried;
use crate::ftl::settings as ftl;

section! {
    /// What the device and all below it read.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// The device's queue.
        device: Device;
        /// The FTL's.
        below: ftl::Settings;
    }
}

over!(Settings, below: ftl::Settings);

impl Settings {
    /// Whether writes choose their block by its speed: the device's scheduler does, and blocks differ.
    pub fn allocates_by_speed(&self) -> bool {
        self.flash.variation.is_some() && super::sched::needs(&self.device.scheduler).speeds
    }

    /// Which block an unhurried write takes then.
    pub fn unhurried(&self) -> Unhurried {
        self.device.sched.own.vios.unhurried
    }

    /// Whether writes go where there is room: hybrid FTLs have their blocks in turn whatever is set.
    pub(super) fn allocates_dynamically(&self) -> bool {
        self.ftl.allocation.is_dynamic() && !crate::ftl::is_hybrid(self)
    }
}

section! {
    /// `[device]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Device {
        /// Scheduler of the device's own queue.
        scheduler: String = "device.scheduler", one_of(super::sched::choices), "noop";
        /// Requests the device holds, waiting or in service.
        queue_depth: u32 = "device.queue_depth", count(1, 1 << 30) or "unlimited", "1";
        /// What was written before time 0.
        precondition: Precondition;
        /// Keys of the schedulers.
        sched: super::sched::Keys;
    }
}

choice! {
    /// What was written before time 0.
    pub enum PreconditionKind {
        /// the flash starts empty
        None = "none",
        /// a share of the logical pages was written once each, device.precondition_share
        Mapped = "mapped",
        /// every logical page was written once, in order
        Fill = "fill",
        /// filled twice, then overwritten until write amplification is steady
        Steady = "steady",
    }
}

choice! {
    /// Order of the writes before time 0.
    pub enum WriteOrder {
        /// uniform over the user capacity, one logical page a write
        Random = "random",
        /// in order, from the first logical page again after the last
        Sequential = "sequential",
    }
}

section! {
    /// `device.precondition` and its keys.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Precondition {
        /// State of the flash at time 0.
        kind: PreconditionKind = "device.precondition", "none";
        /// Share of the user capacity that holds data after precondition mapped.
        share_ppm: u64 = "device.precondition_share", share(1, 1_000_000), "100%";
        /// Order of the writes of preconditions mapped and steady.
        order: WriteOrder = "device.precondition_pattern", "random";
        /// Precondition steady: the last five rounds' write amplification differs by at most this share of its
        /// mean.
        bound_ppm: u64 = "device.precondition_bound", share(1, 1_000_000), "1%";
        /// Precondition steady: rounds, each of the user capacity, after which it stops in any case.
        rounds: u32 = "device.precondition_rounds", count(5, 1_000_000), "100";
    }
}

impl Precondition {
    /// Every logical page written once.
    pub fn fill() -> Precondition {
        Precondition { kind: PreconditionKind::Fill, ..Precondition::default() }
    }
}

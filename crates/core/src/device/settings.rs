//! `[device]`: the device's queue, and the state of its flash at time 0.

use std::fmt;

use crate::config::section::{Field, bytes, count, one_of, share};
use crate::config::units::PPM;
use crate::config::{Choice, Contradiction, Ignored, Kind, Value, choice, over, section};
use crate::ftl::placement;
use crate::ftl::settings as ftl;

section! {
    /// Settings of the device and of everything below it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// The device's queue.
        device: Device;
        /// Settings of the FTL.
        below: ftl::Settings;
        /// The order at a die.
        order: super::array::order::Keys;
        /// What operations, transfers and commands take.
        energy: super::energy::Settings;
    }
}

over!(Settings, below: ftl::Settings);

impl Settings {
    /// Returns the placement of the run: the one chosen, or the one that the device's scheduler is made for.
    pub fn placement(&self) -> &str {
        let speeds = super::sched::needs(&self.device.scheduler).speeds && self.ftl.slc_cache.is_none();
        let auto = if speeds { "vios" } else { placement::ONE };
        self.ftl.placement.as_deref().unwrap_or(auto)
    }

    /// Whether writes choose their block by its speed: the placement does so, and blocks differ in speed.
    pub fn allocates_by_speed(&self) -> bool {
        self.flash.variation.is_some() && placement::needs(self.placement()).speeds
    }

    /// Whether writes go where there is room. An FTL that maps blocks never does that: it takes the LUNs one after
    /// another.
    pub(super) fn allocates_dynamically(&self) -> bool {
        self.ftl.allocation.is_dynamic() && !crate::ftl::maps_blocks(self)
    }

    /// Whether the LUN of a write is known only when it issues: pages go where there is room, or round the LUNs of a
    /// superblock.
    pub(super) fn allocates_late(&self) -> bool {
        self.allocates_dynamically() || self.reclaim_luns() > 1
    }
}

section! {
    /// `[device]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Device {
        /// Scheduler of the device's own queue.
        scheduler: String = "device.scheduler", one_of(super::sched::choices), "noop";
        /// Number of requests that the device can hold, waiting or in service.
        queue_depth: u32 = "device.queue_depth", count(1, 1 << 30) or "unlimited", "1";
        /// Controller and link.
        controller: super::controller::Settings;
        /// Write buffer.
        buffer: super::buffer::settings::Settings;
        /// What was written before time 0.
        precondition: Precondition;
        /// Keys of the schedulers.
        sched: super::sched::Keys;
        /// Keys of the stages between the host and the queue.
        row: super::row::Keys;
        /// Keys of the probes.
        watch: super::watch::Keys;
        /// Keys of the device's own tasks.
        own: super::own::Keys;
    }
}

/// What was written before time 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreconditionKind {
    /// The flash starts empty.
    None,
    /// A share of the logical pages was written once each.
    Mapped,
    /// Every logical page was written once, in order.
    Fill,
    /// Twice the user capacity was written, then more until write amplification was steady.
    Steady,
    /// A share of the user capacity, ppm, was written at random, with replacement.
    Random(u64),
}

impl PreconditionKind {
    /// Returns the precondition of this name.
    fn named(name: &str) -> Option<PreconditionKind> {
        match name {
            "none" => Some(PreconditionKind::None),
            "mapped" => Some(PreconditionKind::Mapped),
            "fill" => Some(PreconditionKind::Fill),
            "steady" => Some(PreconditionKind::Steady),
            _ => PPM.parse(name.strip_prefix("random:")?).ok().map(PreconditionKind::Random),
        }
    }
}

impl fmt::Display for PreconditionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PreconditionKind::None => f.write_str("none"),
            PreconditionKind::Mapped => f.write_str("mapped"),
            PreconditionKind::Fill => f.write_str("fill"),
            PreconditionKind::Steady => f.write_str("steady"),
            PreconditionKind::Random(ppm) => write!(f, "random:{}", PPM.format(*ppm)),
        }
    }
}

impl Field for PreconditionKind {
    fn of(value: Option<&Value>) -> Option<PreconditionKind> {
        match value? {
            Value::Text(text) => PreconditionKind::named(text),
            _ => None,
        }
    }
}

/// The kind of value that `device.precondition` takes.
const PRECONDITION: Kind = one_of(|| {
    let choice = |name, doc| Choice { name, doc };
    vec![
        choice("none", "the flash starts empty"),
        choice("mapped", "a share of the logical pages, device.precondition_share, was written once each"),
        choice("fill", "every logical page was written once, in order"),
        choice("steady", "filled twice, then overwritten until write amplification is steady"),
        choice(
            "random:SHARE",
            "random writes, with replacement, that add up to this share of the user capacity (random:25%); \
             1 - e^-SHARE of all logical pages then hold data",
        ),
    ]
});

choice! {
    /// What preconditioning does with the withheld space.
    pub enum Withheld {
        /// preconditioning goes through all free blocks, as later writes do
        Used = "used",
        /// preconditioning fills blocks of user data that were never written, and leaves the withheld ones erased
        Kept = "kept",
    }
}

choice! {
    /// Order of the writes before time 0.
    pub enum WriteOrder {
        /// uniform over the user capacity, one logical page at a time
        Random = "random",
        /// in order; after the last logical page, from the first again
        Sequential = "sequential",
    }
}

section! {
    /// `device.precondition` and its keys.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Precondition {
        /// State of the flash at time 0.
        kind: PreconditionKind = "device.precondition", PRECONDITION, "none";
        /// With precondition mapped: share of the user capacity that holds data.
        share_ppm: u64 = "device.precondition_share", share(1, 1_000_000), "100%";
        /// With precondition mapped or steady: order of the writes.
        order: WriteOrder = "device.precondition_pattern", "random";
        /// With precondition random:SHARE: size and alignment of each write, at least a logical page.
        request_bytes: u64 = "device.precondition_request", bytes(512, 1 << 30), "4KiB";
        /// With ftl.free_blocks withheld: what preconditioning does with the withheld space.
        withheld: Withheld = "device.precondition_withheld", "used";
        /// With precondition steady: write amplification is steady when that of the last five rounds differs by at most
        /// this share of its mean.
        bound_ppm: u64 = "device.precondition_bound", share(1, 1_000_000), "1%";
        /// With precondition steady: number of rounds, each of one user capacity, after which it stops in any case.
        rounds: u32 = "device.precondition_rounds", count(5, 1_000_000), "100";
    }
}

impl Precondition {
    /// Collects the keys that the chosen precondition ignores, with the reason.
    pub(crate) fn ignored(&self, below: &ftl::Settings, found: &mut Ignored) {
        let chosen = format!("device.precondition = \"{}\"", self.kind);
        let (mapped, steady) = (self.kind == PreconditionKind::Mapped, self.kind == PreconditionKind::Steady);
        let random = matches!(self.kind, PreconditionKind::Random(_));
        found.unless(mapped, &["device.precondition_share"], &chosen);
        found.unless(mapped || steady, &["device.precondition_pattern"], &chosen);
        found.unless(random, &["device.precondition_request"], &chosen);
        found.unless(steady, &["device.precondition_bound", "device.precondition_rounds"], &chosen);
        let written = self.kind != PreconditionKind::None;
        found.unless(written, &["device.precondition_withheld"], &chosen);
        let withheld = below.ftl.free_blocks == ftl::FreeBlocks::Withheld;
        found.unless(withheld, &["device.precondition_withheld"], "ftl.free_blocks is not \"withheld\"");
    }

    /// Checks that the device can do without the blocks that are to stay erased.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
        if (self.kind, self.withheld) == (PreconditionKind::Steady, Withheld::Kept) {
            let message = "\"kept\" does not go with device.precondition = \"steady\", which overwrites all data and \
                           needs the withheld space for it";
            return Err(Contradiction { key: "device.precondition_withheld", message: message.into() });
        }
        Ok(())
    }

    /// Makes a precondition that writes every logical page once.
    pub fn fill() -> Precondition {
        Precondition { kind: PreconditionKind::Fill, ..Precondition::default() }
    }
}

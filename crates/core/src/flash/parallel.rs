//! Which parts of a device work in parallel, and in which order pages are spread over them.
//!
//! Sources: the levels channel, way (chip of a channel), die and plane, and the 24 orders of static
//! allocation over them, are those of Hu et al., ICS 2011 (SSDSim), named by letter as in MQSim (Tavakkol et al., FAST
//! 2018): `cwdp` goes round the channels first, then the ways, the dies and the planes. Eq. (1) of VIOS is `cwdp`.
//! Multi-plane, interleaved and cache operations are ONFI's.
//!
//! A **LUN** (ONFI's logical unit, which works independently of its neighbours) is the smallest part of the
//! flash to which the FTL can direct a page, with its own open block and erased blocks: the plane with
//! multi-plane operations, else the die with die interleaving, else the chip. LUNs are numbered in the order of
//! allocation, so that consecutive pages go to consecutive LUNs. Levels inside a LUN still count in the order:
//! with `pcwd` and chips as LUNs, as many consecutive pages go to one chip as a die has planes. Which die or
//! plane inside the LUN holds a page makes no difference, and is not recorded.

use super::Flash;
use super::variation::Variation;
use crate::config::section::{Field, OPERATION, count, one_of};
use crate::config::{Choice, Ignored, Kind, Value, choice, section};

/// A level of the flash over which pages are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The channels of a device.
    Channel,
    /// The ways, which are the chips of a channel.
    Way,
    /// The dies of a chip.
    Die,
    /// The planes of a die.
    Plane,
}

/// Where the next page goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// To the LUN that the page's number determines: pages go round the levels in this order, and the first level
    /// varies fastest.
    Static([Level; 4]),
    /// To the next idle LUN.
    Dynamic,
}

/// Collects the keys that have no effect under the chosen options, with the reason for each.
pub(crate) fn ignored(flash: &Flash, found: &mut Ignored) {
    let suspension = ["flash.suspend_time", "flash.resume_time", "flash.max_suspensions"];
    let suspends = flash.parallel.suspend != Suspend::Off;
    found.unless(suspends, &suspension, "flash.suspend = \"off\"");
    found.unless(flash.parallel.out_of_order, &["flash.max_passed"], "flash.out_of_order = false");
    found.section::<Variation>(flash.variation.is_some(), &[], "flash.variation.model = \"none\"");
}

choice! {
    /// Operations on several planes of a die at once.
    pub enum MultiPlane {
        /// a die works on one page at a time
        Off = "off",
        /// pages with the same number in their blocks
        SameOffset = "same-offset",
        /// any page of each plane
        Free = "free",
    }
}

choice! {
    /// What a read may interrupt.
    pub enum Suspend {
        /// a read waits
        Off = "off",
        /// a read interrupts an erasure of its die
        Erase = "erase",
        /// a read interrupts a program or an erasure of its die
        ProgramErase = "program-erase",
    }
}

section! {
    /// The options of parallel operation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Parallel {
        /// Whether the dies of a chip can work at the same time.
        interleave: bool = "flash.interleave", "false";
        /// Whether the planes of a die can work at the same time on operations of one kind, and on which pages.
        multi_plane: MultiPlane = "flash.multi_plane", "off";
        /// Whether the data of the next program go into the die while its cells are being programmed.
        cache_program: bool = "flash.cache_program", "false" not in state;
        /// Whether the die senses the next page while the data of the previous page go out.
        cache_read: bool = "flash.cache_read", "false" not in state;
        /// Which operations of its die a read interrupts.
        suspend: Suspend = "flash.suspend", "off" not in state;
        /// Time to interrupt an operation, before the read.
        suspend_ns: u64 = "flash.suspend_time", OPERATION, "20us" not in state;
        /// Time to resume an interrupted operation, after the last read.
        resume_ns: u64 = "flash.resume_time", OPERATION, "20us" not in state;
        /// Number of interruptions after which a program or erasure is no longer interrupted.
        max_suspensions: u32 = "flash.max_suspensions", count(1, 1 << 30), "8" not in state;
        /// At a die, reads pass all waiting operations except the program of their page and erasures of their block.
        out_of_order: bool = "flash.out_of_order", "false" not in state;
        /// Number of reads that flash.out_of_order serves ahead of the oldest waiting program or erasure of the die.
        max_passed: u32 = "flash.max_passed", count(0, 1 << 30) or "unlimited", "128" not in state;
    }
}

/// Where a LUN is; chips, dies and planes are numbered over the whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the channel.
    pub channel: u32,
    /// Number of the chip; the channel is this number modulo the number of channels.
    pub chip: u32,
    /// Number of the die, counted chip by chip; that of the chip's first die if dies do not work independently.
    pub die: u32,
    /// Number of the plane, counted die by die; that of the die's first plane if planes do not work independently.
    pub plane: u32,
}

const ORDERS: [&str; 24] = [
    "cwdp", "cwpd", "cdwp", "cdpw", "cpwd", "cpdw", "wcdp", "wcpd", "wdcp", "wdpc", "wpcd", "wpdc", "dcwp",
    "dcpw", "dwcp", "dwpc", "dpcw", "dpwc", "pcwd", "pcdw", "pwcd", "pwdc", "pdcw", "pdwc",
];

fn allocations() -> Vec<Choice> {
    let order = |&name| Choice {
        name,
        doc: "by page number, in the order of these letters, the first varying fastest",
    };
    let dynamic = Choice { name: "dynamic", doc: "the next idle chip (die, plane), in the order cwdp" };
    ORDERS.iter().map(order).chain([dynamic]).collect()
}

impl Field for Allocation {
    fn of(value: Option<&Value>) -> Option<Allocation> {
        String::of(value).map(|name| Allocation::named(&name))
    }
}

/// The kind of value that `ftl.allocation` takes.
pub(crate) const ALLOCATION: Kind = one_of(allocations);

impl Allocation {
    /// The static allocation of VIOS, eq. (1).
    pub const CHANNEL_FIRST: Allocation =
        Allocation::Static([Level::Channel, Level::Way, Level::Die, Level::Plane]);

    /// Returns the allocation of this name.
    ///
    /// # Panics
    /// If there is no allocation of this name.
    pub fn named(name: &str) -> Allocation {
        if name == "dynamic" {
            return Allocation::Dynamic;
        }
        let level = |letter| match letter {
            b'c' => Level::Channel,
            b'w' => Level::Way,
            b'd' => Level::Die,
            b'p' => Level::Plane,
            _ => panic!("{name} is not an order of allocation"),
        };
        let letters: [u8; 4] = name.as_bytes().try_into().expect("an order of four levels");
        Allocation::Static(letters.map(level))
    }

    /// Whether a page goes to the next idle LUN.
    pub(crate) fn is_dynamic(self) -> bool {
        self == Allocation::Dynamic
    }

    /// Returns the levels in the order of allocation; dynamic allocation goes round the LUNs in the order of eq. (1).
    fn order(self) -> [Level; 4] {
        match (self, Allocation::CHANNEL_FIRST) {
            (Allocation::Static(order), _) | (Allocation::Dynamic, Allocation::Static(order)) => order,
            _ => unreachable!("the default is static"),
        }
    }
}

/// How pages are spread over the LUNs of a device.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The levels in the order of allocation: for each, the level, its size, and whether LUNs differ in it (if
    /// not, the level is inside a LUN).
    levels: [(Level, u64, bool); 4],
    dies_per_chip: u32,
    planes_per_die: u32,
    channels: u32,
}

impl Spread {
    /// Makes the spread that follows from a geometry, its parallel options and an allocation.
    pub fn new(flash: &Flash, allocation: Allocation) -> Spread {
        let levels = allocation.order().map(|level| {
            let (size, apart) = match level {
                Level::Channel => (flash.channels, true),
                Level::Way => (flash.chips_per_channel, true),
                Level::Die => (flash.dies_per_chip, flash.luns_per_chip() > 1),
                Level::Plane => (flash.planes_per_die, flash.parallel.multi_plane != MultiPlane::Off),
            };
            (level, u64::from(size), apart || size == 1)
        });
        let Flash { dies_per_chip, planes_per_die, channels, .. } = *flash;
        Spread { levels, dies_per_chip, planes_per_die, channels }
    }

    /// Returns where each LUN is.
    pub(crate) fn places(&self) -> Vec<Place> {
        let luns = self.levels.iter().filter(|level| level.2).map(|level| level.1).product();
        let place = |lun: u64| {
            let (mut rest, mut at) = (lun, [0; 4]);
            for &(level, size, _) in self.levels.iter().filter(|level| level.2) {
                at[level as usize] = (rest % size) as u32;
                rest /= size;
            }
            let [channel, way, die, plane] = at;
            let chip = way * self.channels + channel;
            let die = chip * self.dies_per_chip + die;
            Place { channel, chip, die, plane: die * self.planes_per_die + plane }
        };
        (0..luns).map(place).collect()
    }

    /// Whether the LUNs take turns page by page: LUN(page) = page mod LUNs.
    pub fn in_turn(&self) -> bool {
        let inside = |level: &&(Level, u64, bool)| !level.2;
        let last = self.levels.iter().rposition(|level| level.2 && level.1 > 1);
        last.is_none_or(|last| self.levels[..last].iter().find(inside).is_none())
    }

    /// Returns the LUN of each page in one cycle, after which the sequence of LUNs repeats.
    pub fn cycle(&self) -> Vec<u32> {
        let pages = self.levels.iter().map(|level| level.1).product();
        let lun = |page: u64| {
            let (mut rest, mut lun, mut stride) = (page, 0, 1);
            for &(_, size, apart) in &self.levels {
                if apart {
                    lun += rest % size * stride;
                    stride *= size;
                }
                rest /= size;
            }
            lun as u32
        };
        (0..pages).map(lun).collect()
    }

    /// Returns how many of the first `pages` pages go to the LUN that gets the most of them under static
    /// allocation.
    pub(crate) fn most(&self, pages: u64) -> u64 {
        let product = |levels: &[(Level, u64, bool)], inside: bool| -> u64 {
            levels.iter().filter(|level| !inside || !level.2).map(|level| level.1).product()
        };
        let cycle = product(&self.levels, false);
        let mut most = pages / cycle * product(&self.levels, true);
        // In an incomplete cycle, no LUN gets more pages than the first LUN.
        let mut rest = pages % cycle;
        for (at, &(_, _, apart)) in self.levels.iter().enumerate().rev() {
            let digit = rest / product(&self.levels[..at], false);
            rest %= product(&self.levels[..at], false);
            let below = product(&self.levels[..at], true);
            if apart && digit > 0 {
                return most + below;
            }
            most += digit * below;
        }
        most
    }
}

#[cfg(test)]
#[path = "parallel_tests.rs"]
mod tests;

//! The reclaim unit: what is filled and collected together, a block or a superblock (`ftl.reclaim_unit`).
//!
//! Source: a superblock is what the controllers of drives fill and erase as one, the blocks of one number on all LUNs;
//! NVM Express calls it the reclaim unit (Flexible Data Placement, TP4146). What was read into it is in `DEVIATIONS.md`.
//!
//! A page-mapped FTL works on the settings of a device in which a superblock *is* a block
//! ([`Settings::in_reclaim_units`]): a group of LUNs counts as one LUN whose blocks have the pages of a superblock. So
//! what holds for blocks (fronts, victims, the room that collections need) holds for superblocks as it stands.

use super::placement::needs;
use super::settings::Settings;
use crate::config::section::{Field, one_of};
use crate::config::{Choice, Contradiction, Kind, Value};
use crate::flash::parallel::{Allocation, MultiPlane, Parallel};
use crate::flash::superblocks::Superblocks;
use crate::flash::Flash;

/// What is filled and collected together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimUnit {
    /// An erase block.
    Block,
    /// The blocks of one number on this many LUNs; `None`: on all of them.
    Superblock(Option<u32>),
}

impl Field for ReclaimUnit {
    fn of(value: Option<&Value>) -> Option<ReclaimUnit> {
        match value? {
            Value::Text(text) if text == "block" => Some(ReclaimUnit::Block),
            Value::Text(text) if text == "superblock" => Some(ReclaimUnit::Superblock(None)),
            Value::Text(text) => {
                text.strip_prefix("superblock:")?.parse().ok().map(|luns| ReclaimUnit::Superblock(Some(luns)))
            }
            _ => None,
        }
    }
}

/// The kind of value that `ftl.reclaim_unit` takes.
pub(super) const RECLAIM_UNIT: Kind = one_of(|| {
    let choice = |name, doc| Choice { name, doc };
    vec![
        choice("block", "an erase block"),
        choice("superblock", "the blocks of one number on all chips (dies, planes)"),
        choice(
            "superblock:NUMBER",
            "the blocks of one number on this many chips (dies, planes), which divides the number of all",
        ),
    ]
});

impl Settings {
    /// Returns the number of LUNs whose blocks make up a reclaim unit.
    pub fn reclaim_luns(&self) -> u32 {
        match self.ftl.reclaim_unit {
            ReclaimUnit::Block => 1,
            ReclaimUnit::Superblock(luns) => luns.unwrap_or(self.flash.luns()),
        }
    }

    /// Returns where the pages of superblocks are on the flash; `None` if a reclaim unit is a block.
    pub(crate) fn superblocks(&self) -> Option<Superblocks> {
        Superblocks::new(&self.flash, self.reclaim_luns())
    }

    /// Returns the settings of a device whose blocks are the reclaim units of this one.
    pub(crate) fn in_reclaim_units(&self) -> Settings {
        let luns = self.reclaim_luns();
        let mut settings = self.clone();
        if luns > 1 {
            settings.ftl.reclaim_unit = ReclaimUnit::Block;
            settings.ftl.allocation = Allocation::CHANNEL_FIRST;
            settings.flash = Flash {
                channels: self.flash.luns() / luns,
                chips_per_channel: 1,
                dies_per_chip: 1,
                planes_per_die: 1,
                blocks_per_plane: self.flash.blocks_per_lun() as u32,
                pages_per_block: self.flash.pages_per_block * luns,
                parallel: Parallel { interleave: false, multi_plane: MultiPlane::Off, ..self.flash.parallel },
                ..self.flash.clone()
            };
        }
        settings
    }

    /// Returns the words for a LUN, or for a group of LUNs whose blocks make up superblocks.
    pub(crate) fn reclaim_place(&self) -> String {
        match self.reclaim_luns() {
            1 => self.flash.lun_name().to_owned(),
            luns => format!("{luns} {}s", self.flash.lun_name()),
        }
    }
}

/// Checks that superblocks fit the other settings.
///
/// # Errors
/// A [`Contradiction`] that names `ftl.reclaim_unit`.
pub(super) fn check(settings: &Settings) -> Result<(), Contradiction> {
    let ReclaimUnit::Superblock(stated) = settings.ftl.reclaim_unit else { return Ok(()) };
    let fail = |message: String| Err(Contradiction { key: "ftl.reclaim_unit", message });
    let (luns, all, name) =
        (settings.reclaim_luns(), settings.flash.luns(), settings.flash.lun_name());
    if !all.is_multiple_of(luns) {
        let divisors: Vec<_> = (1..=all).filter(|luns| all.is_multiple_of(*luns)).map(|n| n.to_string()).collect();
        let stated = stated.unwrap_or(luns);
        return fail(format!(
            "superblocks of {stated} {name}s do not divide the {all} {name}s there are ([flash]); choose {}",
            divisors.join(" or ")
        ));
    }
    if luns == 1 {
        return Ok(());
    }
    let ftl = &settings.ftl;
    let by_speed = ftl.placement.as_deref().filter(|name| needs(name).speeds);
    let why = if super::maps_blocks(settings) {
        format!("ftl.kind = \"{}\" maps and merges single blocks; choose a page-mapped FTL", ftl.kind)
    } else if ftl.allocation.is_dynamic() {
        "ftl.allocation = \"dynamic\" turns to any idle chip, while the pages of a superblock go round its chips in \
         order; choose an order of the levels"
            .to_owned()
    } else if let Some(name) = by_speed {
        format!("ftl.placement = \"{name}\" chooses single blocks by their speed; choose another placement")
    } else if super::gathers(settings) {
        "gathered translation units fill one block at a time, on any chip (ftl.kind, ftl.flush); choose an FTL that \
         writes mappings back on eviction"
            .to_owned()
    } else if ftl.slc_cache.is_some() && !settings.flash.pages_per_block.is_multiple_of(settings.flash.cell.bits()) {
        format!(
            "a superblock of the SLC cache (ftl.slc_cache) consists of whole word lines, but {} is not a multiple of \
             the {} pages of one (flash.pages_per_block, flash.cell)",
            settings.flash.pages_per_block,
            settings.flash.cell.bits()
        )
    } else {
        return Ok(());
    };
    fail(format!("superblocks are filled and erased as one, but {why}, or \"block\""))
}

/// Returns, for each reclaim unit, the least of the values that its blocks have.
pub(super) fn least_of_each(settings: &Settings, of_blocks: Vec<u32>) -> Vec<u32> {
    let Some(superblocks) = settings.superblocks() else { return of_blocks };
    let units = of_blocks.len() as u32 / superblocks.luns();
    let least = |unit| superblocks.blocks(unit).map(|block| of_blocks[block as usize]).min();
    (0..units).filter_map(least).collect()
}

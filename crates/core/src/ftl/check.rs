//! Checks that span several keys of the FTL and the flash: they find values that are each legal but do not fit
//! together.
//!
//! A message gives the full path of every other key that it mentions, or the name of that key's table in
//! brackets; the configuration front end lists those keys with their values and places.

use super::placement;
use super::reclaim::ReclaimUnit;
use super::settings::{GcBackground, Settings, StaticLeveling};
use crate::config::units::BYTES;
use crate::config::{Contradiction, Ignored};
use crate::flash::errors::rates::are_on;

/// The largest number of logical pages that a device may have: their numbers, and those of the physical pages,
/// are kept in 32 bits.
const MAX_LOGICAL_PAGES: u128 = 1 << 31;

/// Checks the geometry, the user capacity and the mapping cache, on which other checks rely.
pub(crate) fn geometry(settings: &Settings) -> Result<(), Contradiction> {
    pages(settings)?;
    addresses(settings)?;
    if let Some(stated) = settings.flash.stated_bytes {
        capacity(settings, stated)?;
    }
    space(settings)?;
    mapping_cache(settings)
}

/// Lists the keys that the chosen FTL ignores, and why.
pub(crate) fn ignored(settings: &Settings, found: &mut Ignored) {
    let ftl = &settings.ftl;
    let chosen = format!("ftl.kind = \"{}\"", ftl.kind);
    let cached = [
        "ftl.mapping_cache",
        "ftl.translation_gc",
        "ftl.flush",
        "ftl.flush_counts",
        "ftl.host_flush",
        "ftl.translation_blocks",
        "ftl.background_flush",
    ];
    let maps = super::maps_on_flash(settings);
    found.unless(maps, &cached, &format!("{chosen} has no mapping cache"));
    let blocks = super::maps_blocks(settings);
    let logs = ["ftl.log_blocks", "ftl.csm_threshold"];
    found.unless(super::is_hybrid(settings), &logs, &format!("{chosen} has no log blocks"));
    let paged = [
        "ftl.gc",
        "ftl.placement",
        "ftl.fronts",
        "ftl.gc_background",
        "ftl.free_blocks",
        "ftl.wear_leveling",
        "ftl.slc_cache",
        "ftl.refresh",
    ];
    found.unless(!blocks, &paged, &format!("{chosen} maps blocks"));
    let cache =
        ["ftl.slc_full", "ftl.slc_fold_idle", "flash.slc_read", "flash.slc_program", "flash.slc_erase"];
    found.unless(ftl.slc_cache.is_some() && !blocks, &cache, "there is no SLC cache (ftl.slc_cache)");
    let amount = ["ftl.flush_counts", "ftl.host_flush"];
    found.unless(ftl.flush_bytes.is_some(), &amount, "ftl.flush = \"eviction\" is not an amount");
    let gathers = format!("{chosen} gathers no translation units");
    found.unless(super::gathers(settings), &["ftl.translation_blocks"], &gathers);
    let together = "units of mappings are gathered, and written back whole (ftl.kind, ftl.flush)";
    found.unless(!super::gathers(settings), &["ftl.batch_update"], together);
    let unlimited = "ftl.mapping_cache = \"unlimited\" replaces nothing";
    found.unless(ftl.mapping_cache_bytes.is_some(), &["ftl.cache_policy"], unlimited);
    // If units are gathered, the mapping cache is that of DFTL.
    let cache = if super::gathers(settings) { super::map::dftl::NAME } else { &ftl.kind };
    super::own_ignored(&[&ftl.kind, super::served_by(settings), cache], &|_| chosen.clone(), found);
    let victims = [ftl.gc.as_str(), if maps { &ftl.translation_gc } else { &ftl.gc }];
    let why = |name: &str| format!("neither ftl.gc nor ftl.translation_gc is \"{name}\"");
    super::gc::own_ignored(if blocks { &[] } else { &victims }, &why, found);
    found.section::<GcBackground>(ftl.gc_background.is_some(), &[], "ftl.gc_background = false");
    found.section::<StaticLeveling>(ftl.wear_leveling.is_some(), &[], "ftl.wear_leveling = \"none\"");
}

/// Lists the keys that the placement in use, `name`, ignores. `auto` is the reason to give where the settings
/// do not name a placement.
pub(crate) fn placement_ignored(settings: &Settings, name: &str, auto: &str, found: &mut Ignored) {
    let chosen = settings.ftl.placement.as_ref().map(|name| format!("ftl.placement = \"{name}\""));
    placement::own_ignored(&[name], &|_| chosen.clone().unwrap_or(auto.to_owned()), found);
    let one = format!("{} has no fronts to bound", chosen.as_deref().unwrap_or(auto));
    found.unless(name != placement::ONE && !placement::needs(name).speeds, &["ftl.fronts"], &one);
    let equal = "all blocks are equally fast without flash.variation.model";
    let differ = settings.flash.variation.is_some() || !placement::needs(name).speeds;
    found.unless(differ, &["device.unhurried", "ftl.placement"], equal);
}

fn fail<T>(key: &'static str, message: String) -> Result<T, Contradiction> {
    Err(Contradiction { key, message })
}

fn pages(settings: &Settings) -> Result<(), Contradiction> {
    let (page, logical) = (settings.flash.page_bytes, settings.ftl.logical_page_bytes);
    let shown = |bytes: u32| BYTES.format(bytes.into());
    if logical > page || page % logical != 0 {
        let message = format!(
            "{} does not divide the NAND page of {} (flash.page); choose a whole fraction of it",
            shown(logical),
            shown(page)
        );
        return fail("ftl.logical_page", message);
    }
    let entry = settings.ftl.entry_bytes;
    if entry > page {
        let message = format!("an entry of {} does not fit in a NAND page of {}", shown(entry), shown(page));
        return fail("ftl.entry", format!("{message} (flash.page)"));
    }
    Ok(())
}

/// Refuses a geometry whose page numbers would exceed 32 bits, before anything is multiplied in 64 bits.
fn addresses(settings: &Settings) -> Result<(), Contradiction> {
    let flash = &settings.flash;
    let per_plane = u128::from(flash.blocks_per_plane) * u128::from(flash.pages_per_block);
    let per_page = u128::from(flash.page_bytes / settings.ftl.logical_page_bytes);
    let logical = u128::from(planes(settings)) * per_plane * per_page;
    if logical > MAX_LOGICAL_PAGES {
        let message = format!(
            "the geometry ({}) has {logical} logical pages of {} (ftl.logical_page); \
             the most is {MAX_LOGICAL_PAGES}: choose fewer blocks or larger pages",
            product(settings),
            BYTES.format(settings.ftl.logical_page_bytes.into()),
        );
        return fail("flash.blocks_per_plane", message);
    }
    Ok(())
}

/// Returns the number of planes of the device; the limits of the keys keep the product well within 64 bits.
fn planes(settings: &Settings) -> u64 {
    let flash = &settings.flash;
    u64::from(flash.channels)
        * u64::from(flash.chips_per_channel)
        * u64::from(flash.dies_per_chip)
        * u64::from(flash.planes_per_die)
}

/// Returns the geometry in words: "\[flash\]: 1 channel x 2 chips x ... x 4KiB".
fn product(settings: &Settings) -> String {
    let flash = &settings.flash;
    let part = |n: u32, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let parts = [
        part(flash.channels, "channel"),
        part(flash.chips_per_channel, "chip"),
        part(flash.dies_per_chip, "die"),
        part(flash.planes_per_die, "plane"),
        part(flash.blocks_per_plane, "block"),
        part(flash.pages_per_block, "page"),
        BYTES.format(flash.page_bytes.into()),
    ];
    format!("[flash]: {}", parts.join(" x "))
}

fn capacity(settings: &Settings, stated: u64) -> Result<(), Contradiction> {
    let raw = settings.flash.raw_bytes();
    if raw == stated {
        return Ok(());
    }
    let one_block_each = raw / u64::from(settings.flash.blocks_per_plane);
    let fitting = stated / one_block_each;
    let advice = if fitting > 0 && stated.is_multiple_of(one_block_each) {
        format!("flash.blocks_per_plane = {fitting} would fit")
    } else {
        format!(
            "no flash.blocks_per_plane fits, each block of every plane adds {}: {fitting} would give {}",
            BYTES.format(one_block_each),
            BYTES.format(fitting.saturating_mul(one_block_each))
        )
    };
    let message = format!(
        "{} contradicts the geometry, which holds {} ({}); {advice}",
        BYTES.format(stated),
        BYTES.format(raw),
        product(settings)
    );
    fail("flash.capacity", message)
}

/// Checks that superblocks fit the other settings.
///
/// # Errors
/// A [`Contradiction`] that names `ftl.reclaim_unit`.
pub(crate) fn superblocks(settings: &Settings) -> Result<(), Contradiction> {
    let ReclaimUnit::Superblock(stated) = settings.ftl.reclaim_unit else { return Ok(()) };
    let fail = |message| fail("ftl.reclaim_unit", message);
    let (luns, all, name) = (settings.reclaim_luns(), settings.flash.luns(), settings.flash.lun_name());
    if !all.is_multiple_of(luns) {
        let divisors: Vec<_> =
            (1..=all).filter(|luns| all.is_multiple_of(*luns)).map(|n| n.to_string()).collect();
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
    let by_speed = ftl.placement.as_deref().filter(|name| placement::needs(name).speeds);
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
    } else if ftl.slc_cache.is_some()
        && !settings.flash.pages_per_block.is_multiple_of(settings.flash.cell.bits())
    {
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

/// Checks that data can be rewritten at a step at which they can still be read.
pub(crate) fn refresh(settings: &Settings) -> Result<(), Contradiction> {
    let (refresh, steps) = (settings.ftl.refresh, settings.flash.errors.retry_steps);
    match refresh.filter(|&step| step > steps && are_on(&settings.flash)) {
        None => Ok(()),
        Some(step) => fail(
            "ftl.refresh",
            format!(
                "data that need step {step} can no longer be read with flash.errors.retry_steps = {steps}; \
                 give a step from 1 to {steps}, or raise flash.errors.retry_steps"
            ),
        ),
    }
}

fn space(settings: &Settings) -> Result<(), Contradiction> {
    if settings.user_pages() > 0 {
        return Ok(());
    }
    let message = format!(
        "leaves the user none of the raw capacity of {} ({}); \
         withhold less or raise flash.blocks_per_plane",
        BYTES.format(settings.flash.raw_bytes()),
        product(settings)
    );
    fail("ftl.over_provisioning", message)
}

fn mapping_cache(settings: &Settings) -> Result<(), Contradiction> {
    let Some(cache) = settings.ftl.mapping_cache_bytes else { return Ok(()) };
    let entry = u64::from(settings.ftl.entry_bytes);
    // An FTL without a cache ignores the key, but even then zero is refused, since nobody can mean it.
    let has_cache = super::maps_on_flash(settings);
    if cache == 0 || (has_cache && cache < entry) {
        let message = format!(
            "{} holds no mapping entry of {} (ftl.entry); give at least {}, or \"unlimited\"",
            BYTES.format(cache),
            BYTES.format(entry),
            BYTES.format(entry)
        );
        return fail("ftl.mapping_cache", message);
    }
    Ok(())
}

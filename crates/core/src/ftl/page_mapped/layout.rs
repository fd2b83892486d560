//! How many blocks each log may have: the layout of page-mapped FTLs.

use crate::config::Contradiction;
use crate::flash::Cause;
use crate::ftl::background;
use crate::ftl::log::{self, Shape};
use crate::ftl::map::translation::Translation;
use crate::ftl::map::units::UnitSpace;
use crate::ftl::placement::{MOST_FRONTS, ONE, needs};
use crate::ftl::settings::{FreeBlocks, Settings};

/// How many blocks of each LUN user data and translation pages may occupy. Translation pages may borrow any erased
/// block; the data gets back what it needs up to its limit. If units are gathered, translation blocks have a limit too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    data_limit: u32,
    map_limit: u32,
    /// Number of trim pages; 0: there is no room for them, so trims are not durable.
    trim_pages: u32,
    /// Number and sizes of the translation units.
    pub space: UnitSpace,
    /// Number of logical pages in a NAND page.
    pub slots_per_page: u32,
}

impl Layout {
    /// Divides the blocks: first what the data needs at least, then what the translation pages need, then slack
    /// for both. Of the blocks that are left then, translation pages get a sixteenth or, if that is more, half
    /// the number that they need (but at most half of those left), unless `ftl.translation_blocks` says how many
    /// blocks they have.
    ///
    /// # Errors
    /// The number of blocks needed on each LUN, and the number available.
    fn new<T: Translation>(settings: &Settings) -> Result<Layout, (u64, u64)> {
        let flash = &settings.flash;
        let slots_per_page = flash.page_bytes / settings.ftl.logical_page_bytes;
        let luns = u64::from(flash.luns());
        let spare = u64::from(settings.ftl.spare_blocks);
        let blocks = flash.blocks_per_lun().saturating_sub(spare);
        let (reserve, fronts) = (settings.ftl.gc_free_blocks, log::fronts(settings));
        let (units, unit_slots) = (flash.units_per_block(), slots_per_page * flash.unit_pages());
        let (slc_blocks, slc_most) = log::slc_blocks(settings);
        // The cache has a page buffer too.
        let live = log::live_most(settings) + if slc_most > 0 { u64::from(unit_slots) } else { 0 };
        let least = |live| log::blocks_at_least(live, units, unit_slots, reserve, fronts) + slc_blocks;
        let data_least = least(live);
        let data_wanted = log::blocks_wanted(live, units, unit_slots, reserve, fronts) + slc_blocks;
        let space = UnitSpace::new(settings, T::unit_bytes(settings), T::gathers(settings));
        let map_least = if T::ON_FLASH { map_blocks_at_least(settings, space) } else { 0 };
        let own = settings.ftl.translation_blocks.filter(|_| space.gathered);
        let own = own.map(|blocks| u64::from(blocks).div_ceil(luns));
        let needed = data_least + own.map_or(map_least, |own| own.max(map_least));
        if needed > blocks {
            return Err((needed, blocks));
        }
        // As long as nothing is trimmed, trim pages take no room; later, all trim pages may end up on one LUN.
        let limit = blocks - own.map_or(map_least, |own| own.max(map_least));
        let room = settings.ftl.power_safe && least(live + 2 * trim_pages(settings)) <= limit;
        let trim_pages = if room { trim_pages(settings) } else { 0 };
        let map_blocks = if T::ON_FLASH {
            let left = blocks.saturating_sub(data_wanted.max(data_least) + map_least);
            own.unwrap_or(map_least + (left / 16).max(left.min(map_least) / 2))
        } else {
            0
        };
        Ok(Layout {
            data_limit: (blocks - map_blocks) as u32,
            map_limit: map_blocks as u32,
            trim_pages: trim_pages as u32,
            space,
            slots_per_page,
        })
    }
}

/// Returns the number of LPNs that a trim page covers, with one bit for each.
fn lpns_per_trim_page(settings: &Settings) -> u64 {
    u64::from(settings.ftl.logical_page_bytes) * 8
}

fn trim_pages(settings: &Settings) -> u64 {
    settings.user_pages().div_ceil(lpns_per_trim_page(settings))
}

/// Whether the device has room to make trims durable.
pub(crate) fn keeps_trims<T: Translation>(settings: &Settings) -> bool {
    Layout::new::<T>(&settings.in_reclaim_units()).is_ok_and(|layout| layout.trim_pages > 0)
}

/// Returns the number of blocks that translation pages need on each LUN.
fn map_blocks_at_least(settings: &Settings, space: UnitSpace) -> u64 {
    let flash = &settings.flash;
    let luns = u64::from(flash.luns());
    let (units, unit_slots) = (flash.units_per_block(), space.per_page * flash.unit_pages());
    if space.gathered {
        // The last block takes the directory while another is collected.
        let live = u64::from(space.units) + u64::from(space.directory_slots);
        (log::blocks_at_least(live, units, unit_slots, 1, 1) + 1).div_ceil(luns)
    } else {
        let live = match unit_slots {
            1 => settings.spread().most(space.units.into()),
            _ => u64::from(space.units).div_ceil(luns),
        };
        log::blocks_at_least(live, units, unit_slots, 1, 1)
    }
}

fn too_small<T: Translation>(settings: &Settings, needed: u64, blocks: u64) -> Contradiction {
    let mut more = settings.clone();
    let mut fits = |percent: &u64| {
        more.ftl.over_provisioning_ppm = percent * 10_000;
        more.user_pages() > 0 && Layout::new::<T>(&more.in_reclaim_units()).is_ok()
    };
    let percent = (settings.ftl.over_provisioning_ppm / 10_000 + 1..100).find(|percent| fits(percent));
    let advice = percent.map_or(String::new(), |percent| format!("withhold {percent}%, or "));
    let pages = if T::ON_FLASH { ", its translation pages" } else { "" };
    let open = match log::fronts(settings) {
        1 => "an open block".to_owned(),
        fronts => format!("{fronts} open blocks (ftl.placement)"),
    };
    let cache = match log::slc_blocks(settings).0 {
        0 => String::new(),
        blocks => format!(", {blocks} for the SLC cache (ftl.slc_cache)"),
    };
    let spare = match settings.ftl.spare_blocks {
        0 => String::new(),
        spare => format!(" besides {spare} spare ones (ftl.spare_blocks)"),
    };
    let unit = if settings.reclaim_luns() > 1 { "superblock" } else { "block" };
    Contradiction {
        key: "ftl.over_provisioning",
        message: format!(
            "too little is withheld: {} needs {needed} {unit}s per {} for the user's data{pages}, {open}{cache} and \
             {} erased for garbage collection, of {blocks} there are{spare}; {advice}raise flash.blocks_per_plane",
            settings.ftl.kind,
            settings.reclaim_place(),
            settings.ftl.gc_free_blocks,
        ),
    }
}

/// Checks that the placement of pages fits the other settings.
fn placement(settings: &Settings) -> Result<(), Contradiction> {
    let Some(name) = &settings.ftl.placement else { return Ok(()) };
    let fail = |message| Err(Contradiction { key: "ftl.placement", message });
    let fronts = log::fronts(settings);
    if !(1..=MOST_FRONTS).contains(&fronts) {
        return fail(format!("{name} has {fronts} fronts; a LUN may have 1 to {MOST_FRONTS}"));
    }
    if let Some(most) = settings.ftl.fronts.filter(|&most| most < fronts) {
        let message = format!(
            "{name} has at least {fronts} fronts, and {most} may be open; raise ftl.fronts, or choose another \
             ftl.placement"
        );
        return Err(Contradiction { key: "ftl.fronts", message });
    }
    let shares = settings.ftl.logical_page_bytes != settings.flash.unit_bytes();
    if shares && fronts > 1 && settings.ftl.gc_background.is_some() {
        return fail(format!(
            "{name} would leave a page part-full in each front whenever a collection in the background pauses, because \
             logical pages are smaller than what is programmed at once; set ftl.gc_background to false"
        ));
    }
    let unit_slots = settings.flash.unit_bytes() / settings.ftl.logical_page_bytes;
    if log::sure_slots(settings.flash.units_per_block(), unit_slots, fronts) == 0 {
        return fail(format!(
            "a block is too small for {name}: its {fronts} fronts may each leave a page of {unit_slots} logical pages \
             part-full; raise flash.pages_per_block, or lower ftl.fronts"
        ));
    }
    if shares && needs(name).speeds {
        return fail(format!(
            "{name} chooses a block for each page, but logical pages smaller than what is programmed at once share one; \
             set ftl.logical_page to \"page\" and flash.programming to \"page\", or choose \"{ONE}\""
        ));
    }
    Ok(())
}

/// Checks that the SLC cache fits the other settings.
fn slc(settings: &Settings) -> Result<(), Contradiction> {
    if settings.ftl.slc_cache.is_none() {
        return Ok(());
    }
    let by_speed = settings.ftl.placement.as_deref().is_some_and(|name| needs(name).speeds);
    let whole_pages = settings.ftl.logical_page_bytes == settings.flash.unit_bytes();
    if log::fronts(settings) >= MOST_FRONTS {
        let message =
            format!("the SLC cache needs a front too (ftl.slc_cache), and there are at most {MOST_FRONTS}");
        return Err(Contradiction { key: "ftl.fronts", message });
    }
    let why = if settings.flash.cell.bits() == 1 {
        "blocks of flash.cell = \"slc\" have one bit a cell anyway; choose another cell, or \"none\""
    } else if by_speed {
        "a placement by speed (ftl.placement) fills the block that it chooses, whatever its mode; choose another, or \
         \"none\""
    } else if settings.ftl.wear_leveling.is_some() {
        "static wear levelling moves a block's data to another block of the same mode; set ftl.wear_leveling to \
         \"none\", or choose \"none\""
    } else if settings.ftl.allocation.is_dynamic() && !whole_pages {
        "under ftl.allocation = \"dynamic\" the chip of a page is not known when its block is chosen; choose another \
         allocation, or \"none\""
    } else {
        return Ok(());
    };
    Err(Contradiction { key: "ftl.slc_cache", message: why.to_owned() })
}

/// Checks that the geometry has the blocks this FTL needs.
pub(crate) fn check<T: Translation>(settings: &Settings) -> Result<(), Contradiction> {
    let units = &settings.in_reclaim_units();
    placement(units)?;
    slc(units)?;
    match Layout::new::<T>(units) {
        Ok(layout) => {
            own_blocks(units, layout.space)?;
            background::check(units, layout.data_limit)
        }
        Err((needed, blocks)) => Err(too_small::<T>(settings, needed, blocks)),
    }
}

/// Checks that `ftl.translation_blocks` asks for enough blocks.
fn own_blocks(settings: &Settings, space: UnitSpace) -> Result<(), Contradiction> {
    let Some(blocks) = settings.ftl.translation_blocks.filter(|_| space.gathered) else { return Ok(()) };
    let luns = u64::from(settings.flash.luns());
    let least = map_blocks_at_least(settings, space);
    if u64::from(blocks).div_ceil(luns) >= least {
        return Ok(());
    }
    let message = format!(
        "{blocks} blocks do not hold the mapping, its directory, an open and an erased block; {} are needed",
        (least - 1) * luns + 1
    );
    Err(Contradiction { key: "ftl.translation_blocks", message })
}

/// Returns the layout of checked settings, and the shapes of the logs of user data and of translation pages.
pub(super) fn shapes<T: Translation>(settings: &Settings) -> (Layout, [Shape; 2]) {
    let superblocks = settings.superblocks();
    let settings = &settings.in_reclaim_units();
    let layout = Layout::new::<T>(settings).expect("the settings were checked");
    let nand_pages = settings.flash.unit_pages();
    let data = Shape {
        luns: settings.flash.luns(),
        superblocks,
        dynamic: settings.ftl.allocation.is_dynamic(),
        limit: layout.data_limit,
        sure_blocks: layout.data_limit,
        pages_per_block: settings.flash.units_per_block(),
        slots_per_page: layout.slots_per_page * nand_pages,
        nand_pages,
        owners: settings.user_pages() as u32 + layout.trim_pages,
        trim_pages: layout.trim_pages,
        lpns_per_trim_page: lpns_per_trim_page(settings) as u32,
        power_safe: settings.ftl.power_safe,
        user_blocks: match settings.ftl.free_blocks {
            FreeBlocks::Erased => 0,
            FreeBlocks::Withheld => {
                let slots = settings.flash.pages_per_block * layout.slots_per_page;
                log::live_most(settings).div_ceil(slots.into()) as u32
            }
        },
        reserve: settings.ftl.gc_free_blocks,
        fronts: log::fronts(settings),
        slc_blocks: log::slc_blocks(settings).0 as u32,
        slc_most: log::slc_blocks(settings).1.min(u32::MAX.into()) as u32,
        gc: Cause::Gc,
        serial: false,
    };
    let serial = layout.space.gathered;
    let nand_pages = if T::ON_FLASH { nand_pages } else { 1 };
    let map = Shape {
        dynamic: false,
        limit: if serial { layout.map_limit * data.luns } else { u32::MAX },
        sure_blocks: layout.map_limit,
        slots_per_page: layout.space.per_page * nand_pages,
        nand_pages,
        owners: if T::ON_FLASH { layout.space.units + layout.space.directory_slots } else { 0 },
        trim_pages: 0,
        user_blocks: 0,
        reserve: u32::from(T::ON_FLASH),
        fronts: 1,
        slc_blocks: 0,
        slc_most: 0,
        gc: Cause::GcMap,
        serial,
        ..data
    };
    (layout, [data, map])
}

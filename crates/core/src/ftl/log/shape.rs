//! Size and behaviour of a log, and how many blocks it needs.

use std::ops::Range;

use crate::flash::Cause;
use crate::flash::media::Kind;
use crate::flash::parallel::Allocation;
use crate::flash::superblocks::Superblocks;
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::gc;
use crate::ftl::placement::{ONE, Policy, Space, needs};
use crate::ftl::settings::Settings;
use crate::ftl::slots::Slots;
use crate::ftl::spare::Spare;

/// Size and behaviour of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of LUNs that the log spans ([`crate::flash::parallel`]), or of groups of LUNs if its blocks are
    /// superblocks.
    pub luns: u32,
    /// Where superblocks are on the flash, if the log's blocks are superblocks.
    pub(crate) superblocks: Option<Superblocks>,
    /// Whether pages go to the next idle LUN rather than to the LUN that their number determines.
    pub dynamic: bool,
    /// The largest number of blocks that the log may have on each LUN, including the reserve.
    pub limit: u32,
    /// Number of blocks of each LUN that the log can have at any time, including the reserve.
    pub sure_blocks: u32,
    /// Number of pages in an erase block. A page is what is programmed at once: a NAND page or a word line.
    pub pages_per_block: u32,
    /// Number of slots in a page.
    pub slots_per_page: u32,
    /// Number of NAND pages in a page.
    pub nand_pages: u32,
    /// Number of owners (LPNs or translation pages, then trim pages).
    pub owners: u32,
    /// Number of trim pages among the owners (`durable.rs`).
    pub trim_pages: u32,
    /// Number of LPNs that a trim page covers.
    pub lpns_per_trim_page: u32,
    /// Whether an erase waits until the data that replaces the block's slots is programmed, on whichever LUN.
    pub power_safe: bool,
    /// Number of blocks of each LUN that count as holding user data from the start, written or not; 0: only
    /// written blocks count.
    pub user_blocks: u32,
    /// Number of erased blocks that the log keeps on each LUN.
    pub reserve: u32,
    /// Number of open blocks that each LUN may have, not counting that of the SLC cache.
    pub fronts: u32,
    /// Number of blocks of each LUN of which the SLC cache can be sure, and the most that it may have; 0: there is
    /// none.
    pub slc_blocks: u32,
    /// The largest number of blocks that the SLC cache may have on each LUN.
    pub slc_most: u32,
    /// The cause with which copies are counted.
    pub gc: Cause,
    /// Whether one block is filled at a time, on any LUN; `limit` and `reserve` are then those of the whole
    /// log, see [`super::stock`].
    pub serial: bool,
}

impl Shape {
    /// Makes the slots of all blocks of a pool, all erased, and the map of the log's owners, none of which has
    /// data.
    pub(crate) fn slots(&self, pool: &BlockPool) -> Slots {
        let slots = pool.count() * self.pages_per_block * self.slots_per_page;
        Slots::new(self.owners, Spare::new(slots, self.slots_per_page, self.luns))
    }

    /// Returns the number of owners that are logical or translation pages; later owners are trim pages.
    pub(crate) fn pages(&self) -> u32 {
        self.owners - self.trim_pages
    }

    /// Returns the trim page that covers a logical page.
    pub(super) fn trim_page(&self, lpn: u32) -> u32 {
        self.pages() + lpn / self.lpns_per_trim_page
    }

    /// Returns the logical pages that a trim page covers.
    pub(super) fn lpns_of(&self, trim_page: u32) -> Range<u32> {
        let first = (trim_page - self.pages()) * self.lpns_per_trim_page;
        first..first.saturating_add(self.lpns_per_trim_page).min(self.pages())
    }

    /// Returns the purpose for which the log's blocks are taken.
    pub(super) fn kind(&self) -> Kind {
        if self.gc == Cause::GcMap { Kind::Map } else { Kind::Data }
    }

    /// Returns the number of slots in the pages that may be begun on a LUN.
    pub(super) fn begun_slots(&self) -> u32 {
        let fronts = self.fronts + u32::from(self.slc_most > 0);
        if self.slots_per_page == 1 { 1 } else { fronts * self.slots_per_page }
    }

    /// Returns the number of slots in a NAND page.
    pub(crate) fn slots_per_nand_page(&self) -> u32 {
        self.slots_per_page / self.nand_pages
    }

    /// Returns the name of the policy that chooses the log's victims.
    pub(super) fn policy<'a>(&self, settings: &'a Settings) -> &'a str {
        if self.gc == Cause::GcMap { &settings.ftl.translation_gc } else { &settings.ftl.gc }
    }
}

/// Returns the placement that is in use even before the run, if there is one; a placement by speed is used only from
/// the start of the run on.
pub(super) fn placement(settings: &Settings) -> Option<&str> {
    let one = settings.ftl.slc_cache.map(|_| ONE);
    settings.ftl.placement.as_deref().filter(|name| *name != ONE && !needs(name).speeds).or(one)
}

/// Returns how many blocks of each LUN the SLC cache is sure to have, and how many it may have at most. Superblocks are
/// whole word lines ([`crate::ftl::reclaim`]).
pub(crate) fn slc_blocks(settings: &Settings) -> (u64, u64) {
    let Some(size) = settings.ftl.slc_cache else { return (0, 0) };
    let flash = &settings.flash;
    let pages = u64::from(flash.pages_per_block.div_ceil(flash.cell.bits()));
    let each = pages * u64::from(flash.page_bytes) * u64::from(flash.luns());
    let fixed = size.fixed.div_ceil(each);
    let dynamic = size.dynamic.map_or(0, |most| most.div_ceil(each));
    // The block that is being written cannot be given back.
    let sure = fixed.max(1);
    (sure, sure.max(fixed.saturating_add(dynamic)))
}

/// Returns how many open blocks each LUN of a log of user data may have.
pub(crate) fn fronts(settings: &Settings) -> u32 {
    let space = Space { fronts: settings.ftl.fronts, ..Space::default() };
    placement(settings).map_or(1, |name| Policy::new(name, &settings.ftl.placements, space).fronts())
}

/// Returns the least number of slots that garbage collection can fill in any block.
pub(crate) fn sure_slots(pages_per_block: u32, slots_per_page: u32, fronts: u32) -> u64 {
    let slots_per_block = pages_per_block * slots_per_page;
    gc::Space { luns: 1, blocks_per_lun: 1, slots_per_block, slots_per_page, fronts }.sure()
}

/// Returns the largest number of the user's logical pages for which one LUN must have room.
pub(crate) fn live_most(settings: &Settings) -> u64 {
    let whole_pages = settings.ftl.logical_page_bytes == settings.flash.unit_bytes();
    let (user, luns) = (settings.user_pages(), u64::from(settings.flash.luns()));
    match settings.ftl.allocation {
        Allocation::Static(_) if whole_pages => settings.spread().most(user),
        // One page more, so that there is always a LUN with room for the next page, see `Route::turn`.
        Allocation::Dynamic if whole_pages => user.div_ceil(luns) + 1,
        // Pages are filled one after another, and the LUNs take turns.
        _ => user.div_ceil(luns),
    }
}

/// Returns the least number of blocks, of `pages` pages of `slots` slots each, with which a LUN that has `live` live
/// slots can collect garbage. All but one of
/// the open blocks may be part-full when the LUN collects.
pub(crate) fn blocks_at_least(live: u64, pages: u32, slots: u32, reserve: u32, fronts: u32) -> u64 {
    // One page more than the live slots, see `Stock::fits`, and those that the fronts have begun.
    let live = live + if slots == 1 { 1 } else { u64::from((1 + fronts) * slots) };
    live.div_ceil(sure_slots(pages, slots, fronts)) + u64::from(reserve + fronts - 1)
}

/// Returns the number of blocks with which the oldest block of a sequential overwrite holds nothing valid when
/// it is collected: one block more than the live slots need.
pub(crate) fn blocks_wanted(live: u64, pages: u32, slots: u32, reserve: u32, fronts: u32) -> u64 {
    live.div_ceil(sure_slots(pages, slots, fronts)) + u64::from(reserve + fronts)
}

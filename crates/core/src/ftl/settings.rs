//! `[ftl]`: the keys that FTLs share (a policy's own keys are in its file), and all the settings that an FTL reads.

use super::reclaim::{RECLAIM_UNIT, ReclaimUnit};
use super::slc_size::SlcSize;
use crate::config::form::Formed;
use crate::config::section::{ANY_TIME, bytes, count, one_of, share};
use crate::config::{Kind, choice, section, switch};
use crate::flash::parallel::{ALLOCATION, Allocation, MultiPlane, Parallel, Spread};
use crate::flash::superblocks::Superblocks;
use crate::flash::{Flash, Work};

const TIB: u64 = 1 << 40;

section! {
    /// The settings that an FTL and the flash below it read.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// Seed of every random stream of the run.
        seed: u64 = "seed", count(0, u64::MAX >> 1), "1";
        /// The flash translation layer.
        ftl: Ftl;
        /// Geometry and timing.
        flash: Flash;
    }
}

impl Settings {
    /// Returns the number of logical pages that the user may address: the raw capacity less over-provisioning,
    /// rounded down to whole pages or erase blocks.
    pub fn user_pages(&self) -> u64 {
        let logical = u128::from(self.flash.raw_bytes()) / u128::from(self.ftl.logical_page_bytes);
        let pages = (logical * u128::from(1_000_000 - self.ftl.over_provisioning_ppm) / 1_000_000) as u64;
        let per_page = u64::from(self.flash.page_bytes / self.ftl.logical_page_bytes);
        let step = if self.ftl.capacity_step == CapacityStep::Block {
            per_page * u64::from(self.flash.pages_per_block) * u64::from(self.reclaim_luns())
        } else {
            1
        };
        pages / step * step
    }

    /// Returns a sink for the steps of a device with these settings, which has done no work yet.
    pub fn work(&self) -> Work {
        let mut work =
            Work::new(&self.flash, self.ftl.logical_page_bytes, self.seed, self.ftl.slc_cache.is_some());
        if let Some(superblocks) = self.superblocks() {
            work.fill_superblocks(superblocks, self.ftl.power_safe);
        }
        work
    }

    /// Returns the number of bytes that the user may address.
    pub fn user_bytes(&self) -> u64 {
        self.user_pages() * u64::from(self.ftl.logical_page_bytes)
    }

    /// Returns how pages are spread over the LUNs.
    pub fn spread(&self) -> Spread {
        Spread::new(&self.flash, self.ftl.allocation)
    }
}

/// Reclaim units ([`super::reclaim`]).
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

section! {
    /// The settings of section `[ftl]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Ftl {
        /// Flash translation layer.
        kind: String = "ftl.kind", one_of(super::choices), "page";
        /// Capacity of the mapping cache.
        mapping_cache_bytes: Option<u64> = "ftl.mapping_cache", bytes(0, TIB) or "unlimited", "unlimited";
        /// Unit of the mapping; a NAND page unless set.
        logical_page_bytes: u32 = "ftl.logical_page", bytes(512, 1 << 24) or "page" as "flash.page", "page";
        /// Cost of writing a part of a logical page.
        partial_write: PartialWrite = "ftl.partial_write", "ignore" not in state;
        /// Share of the raw capacity withheld from the user.
        over_provisioning_ppm: u64 = "ftl.over_provisioning", share(0, 990_000), "7%";
        /// Unit of which the user capacity is a whole number, once ftl.over_provisioning is withheld.
        capacity_step: CapacityStep = "ftl.capacity_step", "page";
        /// How garbage collection chooses its victims among the blocks of user data.
        gc: String = "ftl.gc", one_of(super::gc::choices), "greedy";
        /// How garbage collection chooses its victims among the translation blocks.
        translation_gc: String = "ftl.translation_gc", one_of(super::gc::choices), "greedy";
        /// Number of erased blocks that each LUN keeps in reserve (the urgent threshold); when no others are left,
        /// garbage collection starts in the foreground.
        gc_free_blocks: u32 = "ftl.gc_free_blocks", count(1, 1 << 20), "1";
        /// Which open block of its LUN takes a page (page-mapped FTLs); "auto": vios under device.scheduler vios where
        /// blocks differ in speed, else one.
        placement: Option<String> = "ftl.placement", one_of(super::placement::choices) or "auto", "auto";
        /// Largest number of fronts, each an open block in each LUN, those of copies included; under ftl.placement
        /// stream also their number. "auto": as many as the placement has by itself (stream: eight streams).
        fronts: Option<u32> = "ftl.fronts", count(1, 63) or "auto", "auto";
        /// What is filled and collected together (page-mapped FTLs).
        reclaim_unit: ReclaimUnit = "ftl.reclaim_unit", RECLAIM_UNIT, "block";
        /// Size of the cache of blocks that are used with one bit a cell, where the host's writes go first, as bytes of
        /// data: a size for which there is always room, or erased blocks as long as there are any ("dynamic", or
        /// "dynamic:" and the most they may hold), or both; page-mapped FTLs.
        slc_cache: Option<SlcSize> = "ftl.slc_cache", SLC_SIZE or "none", "none";
        /// What a write does when the SLC cache is full.
        slc_full: SlcFull = "ftl.slc_full", "fold" not in state;
        /// Time after which a device without requests folds its SLC cache.
        slc_fold_idle_ns: Option<u64> = "ftl.slc_fold_idle", ANY_TIME or "never", "1s" not in state;
        /// Keys of the placements.
        placements: super::placement::Own;
        /// Which erased blocks are free for new data (page-mapped FTLs).
        free_blocks: FreeBlocks = "ftl.free_blocks", "erased";
        /// Garbage collection in the background; `None` if there is none.
        gc_background: Option<GcBackground>;
        /// Bytes of one mapping entry, in a translation page and in the cache.
        entry_bytes: u32 = "ftl.entry", bytes(1, 64), "8B";
        /// When dirty mappings are written back: as they leave the mapping cache, or all of them each time this amount
        /// of data has been programmed.
        flush_bytes: Option<u64> = "ftl.flush", bytes(1, TIB) or "eviction", "eviction";
        /// Data that counts towards an amount in ftl.flush.
        flush_counts: FlushCounts = "ftl.flush_counts", "all";
        /// What a host's flush makes durable where ftl.flush is an amount; with eviction, it is the data alone.
        host_flush: HostFlush = "ftl.host_flush", "mapping" not in state;
        /// Whether the FTL can be recovered after a power cut during any operation: an erase waits until whatever
        /// replaces the block's data on other LUNs is programmed, and trims are made durable (by a host's flush; under
        /// bast and fast, at once). Otherwise a trim frees its pages without a record on flash. ftlab crash sets this
        /// key.
        power_safe: bool = "ftl.power_safe", "false";
        /// Largest number of erase blocks for translation pages, in all LUNs together, where translation units are
        /// gathered (minipage, msftl, and dftl with an amount in ftl.flush); rounded up to the same number in each LUN.
        translation_blocks: Option<u32> = "ftl.translation_blocks", count(1, 1 << 30) or "auto", "auto";
        /// bast, fast: log blocks as a share of all erase blocks, rounded up.
        log_blocks_ppm: u64 = "ftl.log_blocks", share(0, 990_000), "5%";
        /// fast under cooperation: a block issue of more than this share of a block's pages is merged at once.
        csm_threshold_ppm: u64 = "ftl.csm_threshold", share(0, 1_000_000), "50%" not in state;
        /// Write dirty mappings back while nothing is pending.
        background_flush: bool = "ftl.background_flush", "false" not in state;
        /// Keys of the victim policies.
        victims: super::gc::Own;
        /// Step of a read retry at which data are rewritten: while a LUN is idle, it moves the data of a closed block
        /// whose next read would need this step or a higher one (page-mapped FTLs; flash.errors).
        refresh: Option<u32> = "ftl.refresh", count(1, 63) or "none", "none" not in state;
        /// Static wear levelling; `None` if there is none.
        wear_leveling: Option<StaticLeveling>;
        /// Number of blocks in each LUN, out of what ftl.over_provisioning withholds, that serve only to replace
        /// retired blocks; the device turns read-only when a LUN needs one and has none left.
        spare_blocks: u32 = "ftl.spare_blocks", count(0, 1 << 24), "0";
        /// Share of ftl.spare_blocks, in whole percent, below which results warn: available_spare_threshold of NVMe.
        spare_threshold_ppm: u64 = "ftl.spare_threshold", share(0, 1_000_000), "10%" not in state;
        /// Keys of the registered FTLs.
        own: super::Own;
        /// Where pages go: over channels, ways (chips), dies and planes in the order of the letters, the first varying
        /// fastest; or (dynamic) to the next idle chip.
        allocation: Allocation = "ftl.allocation", ALLOCATION, "cwdp";
    }
}

choice! {
    /// The values of `ftl.partial_write`: what writing part of a logical page costs.
    pub enum PartialWrite {
        /// a partly written logical page costs only a program
        Ignore = "ignore",
        /// a partly written logical page is read first
        Rmw = "rmw",
    }
}

/// The kind of value that `ftl.slc_cache` takes.
const SLC_SIZE: Kind = Kind::Form { form: &SlcSize::FORM, min: 1, max: TIB };

choice! {
    /// The values of `ftl.slc_full`: what a write does when the SLC cache is full.
    pub enum SlcFull {
        /// the oldest data is moved out first, while the write waits
        Fold = "fold",
        /// the write passes the cache by
        Direct = "direct",
    }
}

choice! {
    /// The values of `ftl.free_blocks`: which erased blocks are free for new data.
    pub enum FreeBlocks {
        /// all erased blocks
        Erased = "erased",
        /// only those of the withheld space: blocks of user data that were never written count as closed and empty, and
        /// garbage collection may choose them
        Withheld = "withheld",
    }
}

choice! {
    /// The values of `ftl.capacity_step`: the unit to which the user capacity is rounded down.
    pub enum CapacityStep {
        /// logical pages
        Page = "page",
        /// erase blocks, or superblocks (ftl.reclaim_unit)
        Block = "block",
    }
}

choice! {
    /// The values of `ftl.flush_counts`: which data counts towards the next mapping flush.
    pub enum FlushCounts {
        /// the user's data and what garbage collection and wear levelling move
        All = "all",
        /// the user's data alone
        User = "user",
    }
}

choice! {
    /// The values of `ftl.host_flush`: what a host's flush makes durable.
    pub enum HostFlush {
        /// the data and all mappings (a mapping flush)
        Mapping = "mapping",
        /// the data alone; its mappings follow from the spare areas of its pages
        Data = "data",
    }
}

section! {
    /// The keys of garbage collection in the background (`ftl.gc_background`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct GcBackground {
        /// Number of erased blocks in a LUN, ftl.gc_free_blocks included, below which ftl.gc_background collects.
        normal_blocks: u32 = "ftl.gc_normal_blocks", count(2, 1 << 20), "4" not in state;
        /// Number of pages that a step of ftl.gc_background programs; a request may have to wait for a step, and each
        /// erase is a step of its own.
        step_pages: u32 = "ftl.gc_step", count(1, 65_536), "1" not in state;
    }
}

switch! {
    /// Collect garbage in steps while a LUN is idle, when it has fewer than ftl.gc_normal_blocks erased blocks.
    GcBackground if bool = "ftl.gc_background", "false" not in state is true
}

choice! {
    /// The values of `ftl.wear_leveling`: whether cold data is moved.
    pub enum Leveling {
        /// cold data stays where it is
        None = "none",
        /// the data of the least worn block moves into the most worn erased one
        Static = "static",
    }
}

section! {
    /// The key of static wear levelling.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StaticLeveling {
        /// Difference of erase counts within a LUN beyond which ftl.wear_leveling static moves data.
        threshold: u32 = "ftl.wear_threshold", count(1, 1 << 30), "256";
    }
}

switch! {
    /// Wear levelling beyond the order in which erased blocks are used.
    StaticLeveling if Leveling = "ftl.wear_leveling", "none" is Leveling::Static
}

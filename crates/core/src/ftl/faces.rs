//! What other parts ask of an FTL: one small trait for each part that asks.
//!
//! Every FTL implements these traits, and so does [`Ftl`], which passes each call on to the FTL that it holds; so no
//! other code needs to know which FTLs there are.

use std::io;
use std::ops::Range;

use super::blocks::endurance;
use super::hybrid::merges::MergeStats;
use super::placement::FrontCount;
use super::settings::{GcBackground, Settings};
use super::{Ftl, MapStats, Refreshed, UnitSpace, with_ftl};
use crate::flash::media::{Media, Tape};
use crate::flash::moves::Moves;
use crate::flash::{Cells, Work};
use crate::request::{Entry, Mark, Pages};
use crate::util::codec::Encoder;
use crate::util::{Bits, Stat};

/// Sizes of a logical block: the answer to COOP_GetSize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Number of pages in a block.
    pub pages: u32,
    /// Number of bytes in a page (FPS).
    pub page_bytes: u32,
}

/// What the host and the device ask of an FTL while requests run.
pub trait Running: Serve + Idle + Locate + LookUp + Cooperate {}

impl<F: Serve + Idle + Locate + LookUp + Cooperate> Running for F {}

/// Declares the traits, and implements them for [`Ftl`]. The default bodies suit an FTL that keeps its whole
/// map in RAM and every page on its home LUN.
macro_rules! faces {
    ($(
        $(#[$about:meta])*
        trait $face:ident {
            $(
                $(#[$doc:meta])*
                fn $name:ident($this:ident: $receiver:ty $(, $argument:ident: $kind:ty)*) $(-> $result:ty)? $(= $default:block)?;
            )*
        }
    )*) => {
        $(
            $(#[$about])*
            #[allow(unused_variables, clippy::needless_arbitrary_self_type)]
            pub trait $face {
                $(crate::config::parts::method! {
                    { $(#[$doc])* fn $name($this: $receiver $(, $argument: $kind)*) $(-> $result)? } $($default)?
                })*
            }

            #[allow(clippy::needless_arbitrary_self_type)]
            impl $face for Ftl {
                $(
                    #[inline(always)]
                    fn $name($this: $receiver $(, $argument: $kind)*) $(-> $result)? {
                        with_ftl!($this, ftl => $face::$name(ftl $(, $argument)*))
                    }
                )*
            }
        )*
    };
}

faces! {
    /// The operations, for the device. Each changes the FTL's state at once and emits its steps into a [`Work`]; the
    /// device decides when the steps run, but runs those of a LUN in the order in which they were emitted.
    trait Serve {
        /// Reads the pages of a request; returns the number of mapping-cache misses.
        fn read(self: &mut Self, request: Pages, work: &mut Work) -> u32 = {
            self.read_marked(request, Mark::default(), work)
        };
        /// Writes the pages of a request; returns the number of mapping-cache misses.
        fn write(self: &mut Self, request: Pages, work: &mut Work) -> u32 = {
            self.write_marked(request, Mark::default(), work)
        };
        /// Writes the `at`-th page of a request, with this mark; returns the number of mapping-cache misses.
        fn write_page(self: &mut Self, request: Pages, at: u32, mark: Mark, work: &mut Work) -> u32 = {
            self.write_marked(request.part(at, 1), mark, work)
        };
        /// Reads as [`Serve::read`] does, but with this mark.
        fn read_marked(self: &mut Self, request: Pages, mark: Mark, work: &mut Work) -> u32;
        /// Reads as [`Serve::read_marked`] does, with an entry for each page: a page whose entry is up to date is not
        /// looked up.
        fn read_with(self: &mut Self, request: Pages, entries: &[Entry], mark: Mark, work: &mut Work) -> u32 = {
            self.read_marked(request, mark, work)
        };
        /// Appends the entries of these LPNs, which are in one subregion, to `entries`, after reading what of them is
        /// only on flash.
        fn hand_out(self: &mut Self, lpns: Range<u32>, entries: &mut Vec<Entry>, work: &mut Work) = {};
        /// Writes as [`Serve::write`] does, but with this mark.
        fn write_marked(self: &mut Self, request: Pages, mark: Mark, work: &mut Work) -> u32;
        /// Trims the pages of a request; returns the number of mapping-cache misses.
        fn trim(self: &mut Self, request: Pages, work: &mut Work) -> u32;
        /// Makes everything written and trimmed so far durable: no later power cut can undo it.
        fn flush(self: &mut Self, work: &mut Work);
        /// Loads those mappings of translation page `page` that these requests need and the cache lacks.
        fn prefetch(self: &mut Self, page: u32, needs: &mut dyn Iterator<Item = Pages>, work: &mut Work) = {};
        /// Wears every block by this many erasures, as they count for its limit; returns false if the FTL counts none.
        fn wear(self: &mut Self, cycles: u32) -> bool = { false };
        /// Turns the device read-only at the next write, as if a LUN had needed a spare block and had none; returns
        /// false if the FTL cannot.
        fn give_out(self: &mut Self) -> bool = { false };
        /// Whether the device has turned read-only: it still reads, but refuses writes, trims and flushes.
        fn is_read_only(self: &Self) -> bool = { false };
        /// Returns how many writes, trims and flushes have been refused so far; some of their pages may have been
        /// served.
        fn refused(self: &Self) -> u64 = { 0 };
    }

    /// Background work, for the device while it is idle.
    trait Idle {
        /// Writes one translation page back in the background; returns false if there is nothing to write.
        fn write_back(self: &mut Self, work: &mut Work) -> bool = { false };
        /// Takes one step of collecting an idle LUN in the background; returns false if the LUN has enough
        /// erased blocks, or if collecting would gain nothing.
        fn background_step(self: &mut Self, lun: u32, work: &mut Work) -> bool = { false };
        /// Folds the oldest full block of the SLC cache on an idle LUN; returns false if there is none.
        fn fold(self: &mut Self, lun: u32, work: &mut Work) -> bool = { false };
        /// Moves the data of a closed block elsewhere and erases the block, while its LUN is idle.
        fn refresh(self: &mut Self, block: u32, work: &mut Work) -> Refreshed = { Refreshed::Needless };
    }

    /// Where data lies, for the device's scheduler.
    trait Locate {
        /// Returns the LUN to which a read of this LPN goes.
        fn read_lun(self: &Self, lpn: u32) -> u32 = { self.home_lun(lpn) };
        /// Returns the LUN to which the `page`-th page of a write goes, if the write begins at LPN `first`.
        fn write_lun(self: &Self, first: u32, page: u32) -> u32 = { self.home_lun(first + page) };
        /// Under dynamic allocation, whether the next page written would go to a LUN that is not busy, or into a page
        /// buffer that already holds data.
        fn finds_room(self: &Self, busy: &Bits) -> bool = { true };
        /// Returns the LUN where static allocation puts an LPN.
        fn home_lun(self: &Self, lpn: u32) -> u32;
        /// Returns the slot that holds the user data of an LPN, or `u32::MAX` if it has no data; slots are
        /// numbered LUN by LUN, block by block and page by page.
        fn slot(self: &Self, lpn: u32) -> u32;
        /// Returns the slot that an LPN's entry names, numbered as by [`Locate::slot`]; `None` if the mapping has
        /// changed since the entry was handed out.
        fn slot_named(self: &Self, lpn: u32, entry: Entry) -> Option<u32> = { None };
        /// Returns the LUNs whose blocks are collected together with those of this LUN.
        fn reclaimed_with(self: &Self, lun: u32) -> Range<u32> = { lun..lun + 1 };
        /// Begins to load into the CPU cache the state that a write of this LPN will change; called when a request for
        /// this LPN is in the queue.
        fn preload(self: &Self, lpn: u32) = {};
    }

    /// The mapping, for a host that knows it.
    trait LookUp {
        /// Returns the number of LPNs that the user may address.
        fn logical_pages(self: &Self) -> u32;
        /// Begins to load the mapping of this LPN into the CPU cache; called when a request for this LPN is on its way.
        fn expect(self: &Self, lpn: u32) = {};
        /// Whether an LPN's mapping is cached.
        fn cached(self: &Self, lpn: u32) -> bool = { true };
        /// Calls `visit` with every LPN whose mapping is cached.
        fn each_cached(self: &Self, visit: &mut dyn FnMut(u32)) = { (0..self.logical_pages()).for_each(visit) };
        /// Returns how many mappings the cache can hold; `None`: no bound.
        fn cache_capacity(self: &Self) -> Option<u32> = { None };
        /// Whether the whole map is in RAM.
        fn map_complete(self: &Self) -> bool = { true };
        /// Returns the part of the map that one read brings in for an LPN: its translation page or, if translation
        /// pages consist of smaller units, its unit.
        fn translation_page(self: &Self, lpn: u32) -> u32;
        /// Whether entries are updated without being fetched first, so that no write misses.
        fn updates_free(self: &Self) -> bool = { true };
    }

    /// The commands of cooperation, for the host and the device (Shim et al., TC 2014, Table 1).
    trait Cooperate {
        /// COOP_Query: puts into `set`, in ascending order, the logical blocks whose full or partial merge
        /// would be caused by a block issue of `pages` pages from LPN `first` on.
        fn coop_query(self: &Self, first: u32, pages: u32, set: &mut Vec<u32>) = { set.clear() };
        /// COOP_Issue: a preferential block issue of this logical block begins.
        fn coop_issue(self: &mut Self, block: u32, work: &mut Work) = {};
        /// COOP_Complete: the preferential block issue of this logical block ends.
        fn coop_complete(self: &mut Self, block: u32, work: &mut Work) = {};
        /// COOP_GetSize: returns the size of a logical block; `None` if the FTL does not map whole blocks.
        fn block_size(self: &Self) -> Option<BlockSize> = { None };
    }

    /// Counters and the wear of the blocks, for the report.
    trait Inspect {
        /// Returns the counters of the mapping.
        fn map_stats(self: &Self) -> MapStats;
        /// Returns the space that translation units take up; all fields are zero if the whole map is in RAM.
        fn units(self: &Self) -> UnitSpace = { UnitSpace::default() };
        /// Returns the counts of the merges so far.
        fn merges(self: &Self) -> MergeStats = { MergeStats::default() };
        /// Returns, for each part of the FTL, the figures that only this part keeps.
        fn stats(self: &Self) -> Vec<(&'static str, Vec<Stat>)> = { Vec::new() };
        /// Returns what went to each front in this run; empty unless there are several.
        fn front_counts(self: &Self) -> Vec<FrontCount> = { Vec::new() };
        /// Returns the number of logical pages that the host wrote.
        fn host_slots(self: &Self) -> u64;
        /// Returns the number of logical pages in a NAND page.
        fn slots_per_page(self: &Self) -> u32 = { 1 };
        /// Returns the wear of the blocks.
        fn life(self: &Self) -> endurance::Life;
        /// Calls `visit` with every block's erase count.
        fn erases(self: &Self, visit: &mut dyn FnMut(u32));
        /// Calls `visit` with the first unit of every block that is used with one bit a cell.
        fn each_slc(self: &Self, visit: &mut dyn FnMut(u32)) = {};
        /// Whether a block is erased and free to be used for anything.
        fn is_free(self: &Self, block: u32) -> bool;
    }

    /// Prepares the device: sets up its state at time 0, and switches on what only a run uses.
    trait Prepare {
        /// Puts data in place before time 0: writes these LPNs in the order given; their mapping is then on flash and
        /// not cached. An FTL that maps blocks keeps each page at its offset.
        fn prefill(self: &mut Self, lpns: &[u32], work: &mut Work);
        /// Prepares to hand entries to the host by subregions of this many pages, none of which has been handed out; 0:
        /// no entry will be handed out. This is for runs only: a saved state has no part of it.
        fn serve_host_map(self: &mut Self, subregion: u32) = {};
        /// If `ftl.free_blocks` says so, treats blocks of user data that were never written as closed and empty
        /// from now on.
        fn close_unwritten(self: &mut Self) = {};
        /// Begins the run, with all counters at 0.
        fn start(self: &mut Self);
        /// Lets this placement choose blocks by their speed. This is for runs only: where data lies at time 0,
        /// and so a saved state, must be the same under every scheduler.
        fn choose_by_speed(self: &mut Self, placement: &str, settings: &Settings, cells: &Cells) = {};
        /// Lets [`Idle::background_step`] collect. This is for runs only: a saved state must be the same under every
        /// scheduler.
        fn collect_in_background(self: &mut Self, how: GcBackground) = {};
        /// Writes the whole state, except for what only check mode keeps.
        ///
        /// # Errors
        /// An error of the output.
        fn save(self: &Self, out: &mut Encoder) -> io::Result<()>;
    }

    /// Reports where user data goes, for whoever keeps its bytes.
    trait Follow {
        /// From now on, reports to `moves` what happens to user data; the flash is then policed as in check mode.
        fn follow(self: &mut Self, moves: &Moves) = {
            panic!("this FTL does not say where data lies, so none can be kept with it")
        };
    }

    /// What simulated power cuts need: the state on the media, and a record of its changes.
    trait Survive {
        /// Writes to empty media what the FTL has programmed so far; returns the highest sequence number. Needs check
        /// mode, and no page buffer may be part-full.
        fn write_media(self: &Self, media: &mut Media) -> u64;
        /// From now on, notes on the tape every program and erase, in the order in which the FTL emits their steps, and
        /// the content of everything that is not user data. The media must hold what the FTL has programmed so far.
        /// [`Ftl::recover`] must be able to rebuild the FTL from the media at any moment.
        fn record(self: &mut Self, tape: &Tape, media: &Media);
        /// Returns the sequence number of the version to which an LPN resolves on the media.
        ///
        /// # Errors
        /// A message, if the LPN resolves to a page that holds no version of it.
        fn version_on(self: &Self, lpn: u32, media: &Media) -> Result<Option<u64>, String>;
        /// Turns the device read-only, or lets it be written once more, in blocks past their limit.
        fn set_read_only(self: &mut Self, _read_only: bool, _work: &mut Work) = {};
    }

    /// Versions and invariants, for check mode.
    trait Police {
        /// Returns the stamp of the version to which an LPN resolves; the stamp counts the LPN's writes and trims.
        fn version(self: &Self, lpn: u32) -> Option<u32>;
        /// Verifies the invariants that involve the pages of a request.
        ///
        /// # Errors
        /// A message about the first invariant that is broken.
        fn verify_request(self: &Self, request: Pages) -> Result<(), String> = { self.verify() };
        /// Verifies all invariants.
        ///
        /// # Errors
        /// A message about the first invariant that is broken.
        fn verify(self: &Self) -> Result<(), String>;
    }
}

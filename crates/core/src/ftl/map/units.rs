//! Translation units: their gathering into NAND pages, their directory and their garbage collection.
//!
//! Source: Kim and Lee, "Exploiting Exclusive Higher Resolution to Enhance Response Time of Embedded Flash
//! Storage" (MSFTL), ICSOFT 2020, sections 3.2 to 3.4. A mapping flush writes every unit that has an update: the
//! unit's previous copy (its source) is located through the directory, read, updated from RAM and put into the
//! page being gathered, which is programmed when it is full; then the directory in RAM names the unit's new
//! place. A unit is a NAND page (Base-DFTL: gathering is then a read and a program per unit), 4 KiB (mini-page
//! FTL) or a segment (MSFTL).
//!
//! Interpretation:
//! - A NAND page is read once per flush for all of its units that have an update; they wait in RAM until they
//!   are gathered. Only the wanted units of the page cross the bus, since the error correction covers each unit
//!   separately.
//! - A unit that was never written has no source; a page that is part-full at the end of a flush is programmed all the
//!   same.
//! - Units are gathered in ascending order, so that neighbours stay neighbours.
//! - A page's reads and its program are one chain; pages of one flush overlap as far as LUNs allow.
//! - The directory is written, with the cause `dir`, when the log takes its last block, if units were programmed
//!   since the directory was last written; then translation blocks are collected, with the cause `gc-map`, until
//!   a block is free again: "before conducting the GC" (3.3). The directory fills whole pages.
//! - An entry of the directory is as large as an entry of the mapping: both name a place on flash.

use super::context::Context;
use super::pages::TranslationPages;
use crate::config::Contradiction;
use crate::flash::{ByCause, Cause};
use crate::ftl::log::{Asked, Under};
use crate::ftl::settings::FlushCounts;
use crate::ftl::settings::Settings;
use crate::util::codec::{Damage, MOST_COUNTED};
use crate::util::{Bits, NONE};

/// The registered name of the FTL that gathers units; it stands in for dftl where `ftl.flush` is an amount.
pub const GATHERED: &str = "msftl";

/// The number and sizes of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitSpace {
    /// Size of a unit in bytes.
    pub unit_bytes: u64,
    /// Whether units are gathered into NAND pages; otherwise each unit is a page and is written back by itself.
    pub gathered: bool,
    /// Number of units in a NAND page.
    pub per_page: u32,
    /// Number of entries in a unit.
    pub entries: u32,
    /// Number of units of the device.
    pub units: u32,
    /// Size of the directory in bytes.
    pub directory_bytes: u64,
    /// Number of slots in the whole pages that the directory takes on flash; 0 if it is not written.
    pub directory_slots: u32,
}

impl UnitSpace {
    /// Returns the number and sizes of translation units of `unit` bytes, which are `gathered` into NAND pages
    /// or are each a page of their own.
    pub fn new(settings: &Settings, unit: u32, gathered: bool) -> UnitSpace {
        let page = settings.flash.page_bytes;
        let entries = unit / settings.ftl.entry_bytes;
        let per_page = page / unit;
        let units = settings.user_pages().div_ceil(u64::from(entries));
        let directory_bytes = units * u64::from(settings.ftl.entry_bytes);
        let pages = if gathered { directory_bytes.div_ceil(page.into()) } else { 0 };
        UnitSpace {
            unit_bytes: unit.into(),
            gathered,
            per_page,
            entries,
            units: units as u32,
            directory_bytes,
            directory_slots: pages as u32 * per_page,
        }
    }
}

/// When mapping flushes are due.
#[derive(Clone, Debug)]
pub struct Due {
    /// Number of programmed NAND pages of data after which a flush is due; `None`: never.
    amount: Option<u64>,
    counts_moved: bool,
    /// Number of pages programmed since the last flush; `seen` is the total number at the last check.
    programmed: u64,
    seen: u64,
}

impl Due {
    /// Makes the schedule of mapping flushes from `settings`.
    pub(crate) fn new(settings: &Settings) -> Due {
        let page = u64::from(settings.flash.page_bytes);
        Due {
            amount: settings.ftl.flush_bytes.map(|bytes| bytes.div_ceil(page)),
            counts_moved: settings.ftl.flush_counts == FlushCounts::All,
            programmed: 0,
            seen: 0,
        }
    }

    fn total(&self, programs: &ByCause<u64>) -> u64 {
        let moved = [Cause::Gc, Cause::Wear, Cause::Fold, Cause::Refresh].map(|cause| programs[cause]);
        let moved = if self.counts_moved { moved.iter().sum() } else { 0 };
        programs[Cause::Host] + programs[Cause::Pad] + moved
    }

    /// Counts the data programmed since the last check; returns whether a flush is due and no page of data is
    /// part-full.
    #[inline]
    pub(crate) fn look(&mut self, context: &Context) -> bool {
        let total = self.total(&context.work.counts().programs);
        self.programmed += total - self.seen;
        self.seen = total;
        self.amount.is_some_and(|amount| self.programmed >= amount) && !context.data.page_begun()
    }

    /// Notes that a flush begins: the count towards the next flush starts at 0.
    pub(crate) fn flushed(&mut self, context: &Context) {
        self.look(context);
        self.programmed = 0;
    }

    /// Returns the number of NAND pages of data programmed since the last flush.
    pub(super) fn programmed(&self) -> u64 {
        self.programmed
    }

    /// Sets the number of NAND pages of data programmed since the last flush, from a saved state.
    pub(super) fn set_programmed(&mut self, pages: u64) -> Result<(), Damage> {
        if pages > MOST_COUNTED {
            return Damage::impossible(format!("{pages} pages were programmed since the last mapping flush"));
        }
        self.programmed = pages;
        Ok(())
    }

    /// Counts only the data programmed from now on; `programs` has the number of all programs so far.
    pub(crate) fn count_from(&mut self, programs: &ByCause<u64>) {
        self.seen = self.total(programs);
    }
}

/// The state of the flush in progress, and of the directory.
#[derive(Clone, Debug)]
pub struct Gathering {
    /// Units still to be gathered whose source was read together with that of another unit.
    read: Bits,
    /// Whether units have been programmed since the directory was last written.
    pub(super) stale: bool,
}

impl Gathering {
    /// Makes the state of `units` units, with no flush in progress.
    pub(crate) fn new(units: u32) -> Gathering {
        Gathering { read: Bits::new(units as usize), stale: false }
    }

    /// Notes that a unit has been read already.
    pub(super) fn have(&mut self, unit: u32) {
        self.read.set(unit);
    }
}

impl Context<'_> {
    /// Reads a unit into the cache, if it has a copy on flash; returns the load's number
    /// ([`crate::flash::Work::load`]).
    #[inline]
    pub(super) fn load_unit(&mut self, unit: u32) -> u32 {
        let TranslationPages { log, slots, .. } = &*self.pages;
        match slots.of(unit) {
            NONE => 0,
            slot => {
                let of = log.shape().slots_per_nand_page();
                let page = log.addresses.nand_page(slot);
                self.work.load_share(log.addresses.lun(slot), page, Cause::Map, [1, of])
            }
        }
    }

    /// Gathers a unit, in which `updated` entries are new to flash, into the page to be programmed next; its
    /// source is read together with those of the other units that are `wanted`.
    pub(super) fn gather(&mut self, unit: u32, updated: u32, wanted: impl Fn(u32) -> bool) {
        if self.pages.log.begins_page() {
            self.make_room();
            self.work.chain();
        }
        self.read_source(unit, wanted);
        let (first, end) = self.pages.range(unit);
        self.persist(first..end);
        self.pages.count_updates(updated);
        self.append_unit(unit);
        if self.pages.persisted.is_some() {
            self.pages.hold(unit);
        }
    }

    /// Programs the page into which units are being gathered, if it is part-full.
    pub(crate) fn finish_page(&mut self) {
        let (log, mut under) = self.pages.on_flash(self.pool, self.work);
        log.finish_page(&mut under, Cause::Map);
    }

    fn append_unit(&mut self, unit: u32) {
        self.pages.gathering.stale = true;
        let (log, under) = self.pages.on_flash(self.pool, self.work);
        log.write(under, Asked::of(unit, Cause::Map));
    }

    /// Reads the page that holds a unit's newest copy, once for all units in it that are `wanted`.
    fn read_source(&mut self, unit: u32, wanted: impl Fn(u32) -> bool) {
        let TranslationPages { log, slots, gathering, units: all, .. } = &mut *self.pages;
        let slot = slots.of(unit);
        if slot != NONE && !gathering.read.get(unit) {
            let mut units = 0;
            for beside in log.owners_beside(slots, slot).filter(|owner| owner < all && wanted(*owner)) {
                gathering.read.set(beside);
                units += 1;
            }
            let of = log.shape().slots_per_nand_page();
            let page = log.addresses.nand_page(slot);
            self.work.read_share(log.addresses.lun(slot), page, Cause::Map, [units, of]);
        }
        gathering.read.clear(unit);
    }

    /// Makes sure that a page can be begun: writes the directory and collects translation blocks, if the last
    /// block is about to be taken.
    fn make_room(&mut self) {
        let Context { pages, pool, work, .. } = self;
        let TranslationPages { log, slots, gathering, units, .. } = &mut **pages;
        let mut under = Under { slots, pool, work, keeper: None };
        while log.takes_last() {
            under.work.chain();
            log.open_next(&mut under);
            if std::mem::take(&mut gathering.stale) {
                for owner in *units..log.shape().owners {
                    log.write(under.again(), Asked::of(owner, Cause::Dir));
                }
            }
            log.collect_until_free(&mut under);
        }
    }

    /// Puts an LPN's mapping on flash before time 0, without a simulated operation.
    pub(crate) fn prefill(&mut self, lpn: u32) {
        let unit = self.pages.of(lpn);
        if self.pages.log.shape().serial && !self.pages.is_written(unit) {
            self.append_unit(unit);
        }
        self.persist([lpn]);
    }
}

/// Checks that translation units of `unit` bytes, set by `key`, fill NAND pages and can be numbered.
pub(crate) fn check(settings: &Settings, unit: u32, key: &'static str) -> Result<(), Contradiction> {
    let fail = |key, message| Err(Contradiction { key, message });
    let page = settings.flash.page_bytes;
    if unit > page || !page.is_multiple_of(unit) {
        let message =
            format!("units of {unit} B do not fill a NAND page of {page} B (flash.page) without a remainder");
        return fail(key, message);
    }
    if settings.ftl.entry_bytes > unit {
        let message =
            format!("an entry of {} B does not fit in a unit of {unit} B", settings.ftl.entry_bytes);
        return fail("ftl.entry", message);
    }
    if u64::from(page / unit) * settings.flash.pages() > 1 << 31 {
        let message = format!("the flash has more than {} units of {unit} B", 1u64 << 31);
        return fail(key, format!("{message}; choose larger ones, or fewer blocks"));
    }
    Ok(())
}

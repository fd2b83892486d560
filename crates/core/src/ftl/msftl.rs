//! MSFTL: mappings flushed by amount of data, in segments smaller than a page.
//!
//! Source: Kim and Lee, "Exploiting Exclusive Higher Resolution to Enhance Response Time of Embedded
//! Flash Storage", ICSOFT 2020, sections 2, 3.2 and 4.1. Mappings of data written, by the host or by
//! garbage collection, are updated in the mapping cache; after every so much data programmed a mapping
//! flush writes all updated ones. With the NAND page as its unit this is the paper's Base-DFTL
//! (`ftl.kind = "dftl"` with an amount in `ftl.flush`), with 4 KiB its mini-page FTL; how units get
//! to flash is [`super::units`].
//!
//! Read into it:
//! - The cache has no bound, starts empty and holds entries, as DFTL's does. A write does not fetch
//!   its old entry, so it always hits; a read whose entry is not cached is a miss and fetches
//!   its unit, if that was ever written, and caches the one entry.
//! - Data programmed is counted in whole NAND pages of causes host and pad and, unless
//!   `ftl.flush_counts = "user"`, gc and wear. The flush follows the page that completes the amount, within
//!   the request that wrote it, and waits while the page buffer is part-full: no mapping on flash names a
//!   page that is not. After any flush the count begins at 0.
//! - A flush of the host is a mapping flush (`ftl.host_flush`): section 2 gives the loss of mappings at a
//!   power cycle as the reason for flushing. The paper's traces hold none.

use super::translation::{Context, Translation, TranslationPages};
use crate::config::{Key, Kind, Settings};
use crate::flash::Cause;
use crate::util::Bits;
use serde::{Deserialize, Serialize};

/// Registered name.
pub const NAME: &str = "msftl";
/// One line for `ftlab components`.
pub const DOC: &str = "page map flushed by amount, in mapping segments (Kim and Lee, ICSOFT 2020)";
/// Keys it reads.
pub const KEYS: &[Key] = &[Key {
    path: "ftl.segment",
    kind: Kind::Bytes { min: 1, max: 1 << 24 },
    default: "1KiB",
    words: &[],
    doc: "Mapping segment of msftl: a power of two from flash.ecc_unit up to flash.page; other FTLs ignore it.",
}];

/// The mapping cache: all that was read or updated, flat, as it has no bound.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flushed {
    cached: Bits,
    /// Entries that flash lacks, and the units that have some.
    dirty: Bits,
    units: Bits,
    count: u32,
    /// The read that brought an entry in. Those before time 0 are over, so a saved state has none.
    #[serde(skip)]
    loads: Vec<u32>,
    /// NAND pages of data programmed after which mappings are flushed.
    amount: u64,
    counts_moved: bool,
    /// Pages programmed since the last flush, and when that was last looked at.
    programmed: u64,
    seen: u64,
}

impl Flushed {
    /// The cache of `settings`, for so many translation units.
    ///
    /// # Panics
    /// If the settings were not checked.
    pub fn new(settings: &Settings, units: u32) -> Flushed {
        let lpns = settings.user_pages() as usize;
        let bytes = settings.ftl.flush_bytes.expect("the settings were checked");
        Flushed {
            cached: Bits::new(lpns),
            dirty: Bits::new(lpns),
            units: Bits::new(units as usize),
            count: units,
            loads: vec![0; lpns],
            amount: bytes.div_ceil(settings.flash.page_bytes.into()),
            counts_moved: settings.ftl.flush_counts_moved,
            programmed: 0,
            seen: 0,
        }
    }

    fn update(&mut self, lpn: u32, pages: &TranslationPages) {
        self.cached.set(lpn);
        self.dirty.set(lpn);
        self.units.set(pages.of(lpn));
    }

    /// Data programmed so far.
    fn total(&self, programs: &[u64; 8]) -> u64 {
        let of = |cause: Cause| programs[cause as usize];
        let moved = if self.counts_moved { of(Cause::Gc) + of(Cause::Wear) } else { 0 };
        of(Cause::Host) + of(Cause::Pad) + moved
    }

    /// Writes the updated units from `first` on, at most `most`.
    fn write_units(&mut self, most: u32, context: &mut Context) {
        let mut from = 0;
        for _ in 0..most {
            let Some(unit) = self.units.next_set(from, self.count) else { break };
            let (first, end) = context.pages.range(unit);
            let updated = self.dirty.take(first, end);
            let units = &self.units;
            context.gather(unit, updated, |beside| units.get(beside));
            self.units.clear(unit);
            from = unit + 1;
        }
        context.finish_page();
    }

    fn look(&mut self, context: &Context) {
        let total = self.total(&context.work.counts().programs);
        self.programmed += total - self.seen;
        self.seen = total;
    }
}

impl Translation for Flushed {
    const ON_FLASH: bool = true;
    const UPDATES_FREE: bool = true;

    #[inline]
    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        if write {
            self.update(lpn, context.pages);
            self.loads[lpn as usize] = 0;
            return true;
        }
        let hit = self.cached.get(lpn);
        if hit {
            context.work.need(self.loads[lpn as usize]);
        } else {
            let load = context.load_unit(context.pages.of(lpn));
            self.cached.set(lpn);
            self.loads[lpn as usize] = load;
        }
        hit
    }

    fn prefetch(&mut self, unit: u32, missing: &[u32], context: &mut Context) {
        let load = context.load_unit(unit);
        for &lpn in missing {
            self.cached.set(lpn);
            self.loads[lpn as usize] = load;
        }
    }

    #[inline]
    fn moved(&mut self, lpn: u32, pages: &TranslationPages) {
        self.update(lpn, pages);
    }

    /// Nothing is charged for entries moved but with the flush, which is looked for here: after each
    /// page written.
    #[inline]
    fn settle(&mut self, context: &mut Context) {
        self.look(context);
        if self.programmed >= self.amount && !context.data.page_begun() {
            self.flush(context);
        }
    }

    /// One page's worth of units.
    fn write_back(&mut self, context: &mut Context) -> bool {
        if self.units.next_set(0, self.count).is_none() {
            return false;
        }
        self.write_units(context.pages.log().shape().slots_per_page, context);
        true
    }

    #[inline]
    fn cached(&self, lpn: u32, _pages: &TranslationPages) -> bool {
        self.cached.get(lpn)
    }

    fn each_cached(&self, pages: &TranslationPages, visit: &mut dyn FnMut(u32)) {
        let mut from = 0;
        while let Some(lpn) = self.cached.next_set(from, pages.lpns()) {
            visit(lpn);
            from = lpn + 1;
        }
    }

    fn capacity(&self) -> Option<u32> {
        None
    }

    fn dirty(&self, lpn: u32, _pages: &TranslationPages) -> bool {
        self.dirty.get(lpn)
    }

    fn flush(&mut self, context: &mut Context) {
        self.look(context);
        self.programmed = 0;
        if self.units.next_set(0, self.count).is_some() {
            self.write_units(self.count, context);
            context.pages.stats.flushes += 1;
        }
    }

    fn count_from(&mut self, programs: &[u64; 8]) {
        self.seen = self.total(programs);
    }

    fn restored(&mut self, pages: &TranslationPages) {
        self.loads = vec![0; pages.lpns() as usize];
    }
}

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
//! - The cache holds entries, as DFTL's does, and starts empty. A write does not fetch its old entry, so
//!   it always hits; a read whose entry is not cached is a miss and fetches its unit, if that
//!   was ever written, and caches the one entry.
//! - Data programmed is counted in whole NAND pages of causes host and pad and, unless
//!   `ftl.flush_counts = "user"`, gc and wear. The flush follows the page that completes the amount, within
//!   the request that wrote it, and waits while the page buffer is part-full: no mapping on flash names a
//!   page that is not (evictions do not wait). After any flush the count begins at 0.
//! - A flush of the host is a mapping flush (`ftl.host_flush`): section 2 gives the loss of mappings at a
//!   power cycle as the reason for flushing. The paper's traces hold none.
//! - A bounded cache ([`Bounded`]) is DFTL's (`ftl.cache_policy`). Section 2 has mappings written when they
//!   are evicted: a dirty victim has its unit written, and the rest of that page is filled with the next
//!   units that have updates. With `ftl.flush = "eviction"` that is the only occasion.

use super::dftl::Dftl;
use super::translation::{Context, Translation, TranslationPages};
use super::units::Due;
use crate::config::{Key, Kind, Settings};
use crate::util::{Bits, NONE};
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

/// A mapping cache whose updates are gathered: bounded, or all there is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Flushed {
    /// Without a bound.
    Flat(Flat),
    /// With one.
    Bounded(Bounded),
}

/// The units that have entries flash lacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Updated {
    units: Bits,
    count: u32,
}

impl Updated {
    fn new(units: u32) -> Updated {
        Updated { units: Bits::new(units as usize), count: units }
    }

    fn any(&self) -> bool {
        self.units.next_set(0, self.count).is_some()
    }

    /// The next one from `from` on, round.
    fn next(&self, from: u32) -> Option<u32> {
        self.units.next_set(from, self.count).or_else(|| self.units.next_set(0, from))
    }

    /// How far a unit is behind another, round.
    fn behind(&self, unit: u32, first: u32) -> u32 {
        if unit >= first { unit - first } else { self.count - first + unit }
    }

    /// How far behind `first` the last of `most` of them lies, fewer if there are fewer.
    fn range_of(&self, first: u32, most: u32) -> u32 {
        let (mut from, mut range) = (first, None);
        for _ in 0..most {
            let Some(unit) = self.next(from) else { break };
            let behind = self.behind(unit, first);
            if range.is_some_and(|range| behind <= range) {
                break;
            }
            range = Some(behind);
            from = unit + 1;
        }
        range.unwrap_or(0)
    }

    /// Writes at most `most` of them from `first` on, round. `clean` makes a unit's entries clean and
    /// counts them.
    fn write(
        &mut self,
        first: u32,
        most: u32,
        context: &mut Context,
        mut clean: impl FnMut(u32, u32, u32) -> u32,
    ) {
        // Only what is written now is read.
        let range = if most < self.count { self.range_of(first, most) } else { self.count };
        let mut from = first;
        for _ in 0..most {
            let Some(unit) = self.next(from) else { break };
            let (lpn, end) = context.pages.range(unit);
            let updated = clean(unit, lpn, end);
            let wanted = |beside| self.units.get(beside) && self.behind(beside, first) <= range;
            context.gather(unit, updated, wanted);
            self.units.clear(unit);
            from = unit + 1;
        }
        context.finish_page();
    }
}

/// All that was read or updated, flat, as it has no bound.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flat {
    cached: Bits,
    dirty: Bits,
    updated: Updated,
    /// The read that brought an entry in. Those before time 0 are over, so a saved state has none.
    #[serde(skip)]
    loads: Vec<u32>,
    due: Due,
}

impl Flat {
    fn update(&mut self, lpn: u32, pages: &TranslationPages) {
        self.cached.set(lpn);
        self.dirty.set(lpn);
        self.updated.units.set(pages.of(lpn));
    }

    fn write(&mut self, most: u32, context: &mut Context) {
        let dirty = &mut self.dirty;
        self.updated.write(0, most, context, |_, lpn, end| dirty.take(lpn, end));
    }

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
            self.bring(lpn, load);
        }
        hit
    }

    fn bring(&mut self, lpn: u32, load: u32) {
        self.cached.set(lpn);
        self.loads[lpn as usize] = load;
    }
}

/// DFTL's cache, its updates gathered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bounded {
    cache: Dftl,
    updated: Updated,
    /// Entries that collection has moved and that are put into the cache next.
    moved: Vec<u32>,
    due: Due,
}

impl Bounded {
    fn write(&mut self, first: u32, most: u32, context: &mut Context) {
        let cache = &mut self.cache;
        self.updated.write(first, most, context, |unit, _, _| cache.clean_page(unit));
    }

    /// Makes room for an entry; a dirty victim has its unit written in a full page.
    fn evict(&mut self, context: &mut Context) {
        if self.cache.entries.is_full() {
            let victim = self.cache.victim();
            if self.cache.entries.value(victim).dirty {
                let unit = context.pages.of(self.cache.entries.key(victim));
                self.write(unit, context.pages.log().shape().slots_per_page, context);
            }
            self.cache.drop_victim();
        }
    }

    fn update(&mut self, lpn: u32, context: &mut Context) {
        let id = match self.cache.entries.find(lpn) {
            NONE => {
                self.evict(context);
                self.cache.insert(lpn, 0)
            }
            id => id,
        };
        self.cache.mark_dirty(id, context.pages.of(lpn));
        self.updated.units.set(context.pages.of(lpn));
    }

    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        match self.cache.entries.find(lpn) {
            NONE if write => (),
            NONE => {
                self.evict(context);
                let load = context.load_unit(context.pages.of(lpn));
                self.cache.insert(lpn, load);
                return false;
            }
            id => {
                context.work.need(self.cache.entries.value(id).load);
                self.cache.hit(id);
            }
        }
        if write {
            self.update(lpn, context);
        }
        true
    }
}

impl Flushed {
    /// The cache of `settings`, for so many translation units.
    pub fn new(settings: &Settings, units: u32) -> Flushed {
        let (updated, due) = (Updated::new(units), Due::new(settings));
        if settings.ftl.mapping_cache_bytes.is_some() {
            let cache = Dftl::new(settings, units);
            return Flushed::Bounded(Bounded { cache, updated, moved: Vec::with_capacity(1024), due });
        }
        let lpns = settings.user_pages() as usize;
        Flushed::Flat(Flat {
            cached: Bits::new(lpns),
            dirty: Bits::new(lpns),
            updated,
            loads: vec![0; lpns],
            due,
        })
    }

    fn parts(&mut self) -> (&Updated, &mut Due) {
        match self {
            Flushed::Flat(Flat { updated, due, .. }) | Flushed::Bounded(Bounded { updated, due, .. }) => {
                (updated, due)
            }
        }
    }

    fn write(&mut self, most: u32, context: &mut Context) {
        match self {
            Flushed::Flat(flat) => flat.write(most, context),
            Flushed::Bounded(bounded) => bounded.write(0, most, context),
        }
    }
}

impl Translation for Flushed {
    const ON_FLASH: bool = true;

    #[inline]
    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        match self {
            Flushed::Flat(flat) => flat.translate(lpn, write, context),
            Flushed::Bounded(bounded) => bounded.translate(lpn, write, context),
        }
    }

    fn prefetch(&mut self, unit: u32, missing: &[u32], context: &mut Context) {
        let load = context.load_unit(unit);
        for &lpn in missing {
            match self {
                Flushed::Flat(flat) => flat.bring(lpn, load),
                Flushed::Bounded(bounded) => {
                    bounded.evict(context);
                    bounded.cache.insert(lpn, load);
                }
            }
        }
    }

    #[inline]
    fn moved(&mut self, lpn: u32, pages: &TranslationPages) {
        match self {
            Flushed::Flat(flat) => flat.update(lpn, pages),
            Flushed::Bounded(bounded) => bounded.moved.push(lpn),
        }
    }

    /// Nothing is charged for entries moved but with the flush, which is looked for here: after each
    /// page written.
    #[inline]
    fn settle(&mut self, context: &mut Context) {
        if let Flushed::Bounded(bounded) = self {
            let mut moved = std::mem::take(&mut bounded.moved);
            moved.drain(..).for_each(|lpn| bounded.update(lpn, context));
            bounded.moved = moved;
        }
        if self.parts().1.look(context) {
            self.flush(context);
        }
    }

    /// One page's worth of units.
    fn write_back(&mut self, context: &mut Context) -> bool {
        let any = self.parts().0.any();
        if any {
            self.write(context.pages.log().shape().slots_per_page, context);
        }
        any
    }

    #[inline]
    fn cached(&self, lpn: u32, pages: &TranslationPages) -> bool {
        match self {
            Flushed::Flat(flat) => flat.cached.get(lpn),
            Flushed::Bounded(bounded) => bounded.cache.cached(lpn, pages),
        }
    }

    fn each_cached(&self, pages: &TranslationPages, visit: &mut dyn FnMut(u32)) {
        match self {
            Flushed::Flat(flat) => {
                let mut from = 0;
                while let Some(lpn) = flat.cached.next_set(from, pages.lpns()) {
                    visit(lpn);
                    from = lpn + 1;
                }
            }
            Flushed::Bounded(bounded) => bounded.cache.each_cached(pages, visit),
        }
    }

    fn capacity(&self) -> Option<u32> {
        match self {
            Flushed::Flat(_) => None,
            Flushed::Bounded(bounded) => bounded.cache.capacity(),
        }
    }

    fn dirty(&self, lpn: u32, pages: &TranslationPages) -> bool {
        match self {
            Flushed::Flat(flat) => flat.dirty.get(lpn),
            Flushed::Bounded(bounded) => bounded.cache.dirty(lpn, pages),
        }
    }

    fn updates_free(&self) -> bool {
        true
    }

    fn flush(&mut self, context: &mut Context) {
        let (updated, due) = self.parts();
        due.flushed(context);
        if updated.any() {
            self.write(u32::MAX, context);
            context.pages.stats.flushes += 1;
        }
    }

    fn count_from(&mut self, programs: &[u64; 8]) {
        self.parts().1.count_from(programs);
    }

    fn restored(&mut self, pages: &TranslationPages) {
        if let Flushed::Flat(flat) = self {
            flat.loads = vec![0; pages.lpns() as usize];
        }
    }
}

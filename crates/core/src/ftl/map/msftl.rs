//! MSFTL: mappings are flushed after a fixed amount of data, in segments smaller than a page.
//!
//! Source: Kim and Lee, "Exploiting Exclusive Higher Resolution to Enhance Response Time of Embedded Flash Storage",
//! ICSOFT 2020, sections 2, 3.2 and 4.1. The mappings of data that the host or garbage collection writes are updated in
//! the mapping cache; each time a fixed amount of data has been programmed, a mapping flush writes all updated
//! mappings. With the NAND page as its unit this FTL is the paper's Base-DFTL (`ftl.kind = "dftl"` with an amount in
//! `ftl.flush`), with 4 KiB the paper's mini-page FTL; [`super::units`] describes how units get to flash.
//!
//! Interpretation:
//! - The cache holds entries, as DFTL's does, and starts empty. A write does not fetch its old entry, so it
//!   always hits; a read whose entry is not cached is a miss and fetches its unit, if the unit was ever written, and
//!   caches the one entry, or those that `ftl.load` names.
//! - The data programmed is counted in whole NAND pages: those with the causes `host` and `pad` and, unless
//!   `ftl.flush_counts = "user"`, also those with `gc` and `wear`. The flush follows the page that completes the
//!   amount, within the request that wrote it, and waits while the page buffer is part-full: no mapping on flash names
//!   a page that is not on flash (evictions do not wait). After any flush the count begins again at 0.
//! - A flush by the host is a mapping flush (`ftl.host_flush`): section 2 gives the loss of mappings at a power
//!   cycle as the reason for flushing. The paper's traces contain no flushes by the host.
//! - A bounded cache is that of DFTL (`ftl.cache_policy`). According to section 2 mappings are written when they are
//!   evicted: the unit of a dirty victim is written, and the rest of the NAND page is filled with the next units that
//!   have updates. With `ftl.flush = "eviction"` mappings are written at no other time.

use std::io;

use super::context::Context;
use super::dftl::{Dftl, Load};
use super::pages::TranslationPages;
use super::policy::{Cached, Policy};
use super::translation::Translation;
use super::units::{Due, GATHERED, UnitSpace};
use crate::config::section::bytes;
use crate::config::{Contradiction, section};
use crate::flash::ByCause;
use crate::ftl::settings::Settings;
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, NONE};

pub use super::units::GATHERED as NAME;

/// Description in one line, for `ftlab components`.
pub const DOC: &str = "page map flushed by amount, in mapping segments (Kim and Lee, ICSOFT 2020)";

section! {
    /// The keys that only msftl has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Mapping segment of msftl: a power of two from flash.ecc_unit up to flash.page; other FTLs ignore it.
        segment_bytes: u32 = "ftl.segment", bytes(1, 1 << 24), "1KiB";
    }
}

/// The units that have entries not yet on flash.
#[derive(Clone, Debug)]
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

    /// Returns the next updated unit at or after `from`, wrapping round.
    fn next(&self, from: u32) -> Option<u32> {
        self.units.next_set(from, self.count).or_else(|| self.units.next_set(0, from))
    }

    /// Returns how far `unit` comes after `first`, wrapping round.
    fn behind(&self, unit: u32, first: u32) -> u32 {
        if unit >= first { unit - first } else { self.count - first + unit }
    }

    /// Returns the distance from `first` to the last unit written, if up to `most` updated units are written.
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

    /// Writes at most `most` updated units starting at `first`, wrapping round. `clean` makes a unit's entries clean
    /// and returns how many were dirty.
    fn write(
        &mut self,
        first: u32,
        most: u32,
        context: &mut Context,
        mut clean: impl FnMut(u32, u32, u32) -> u32,
    ) {
        // Of the pages read, only the units that this call writes are wanted.
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

/// A cache without a bound: it holds every mapping that was read or updated.
#[derive(Clone, Debug)]
struct Flat {
    cached: Bits,
    dirty: Bits,
    /// Number of the load that brought in each entry. Loads before time 0 have ended, so a saved state has none.
    loads: Vec<u32>,
}

/// The contents of the cache, without or with a bound on the number of entries.
#[derive(Clone, Debug)]
enum Held {
    Flat(Flat),
    Bounded(Dftl),
}

/// The mapping cache of MSFTL.
pub type Msftl = Flushed<0>;

/// A mapping cache whose updates are gathered in units of `UNIT` bytes or, if that is 0, of `ftl.segment`.
#[derive(Clone, Debug)]
pub struct Flushed<const UNIT: u32> {
    held: Held,
    updated: Updated,
    /// LPNs whose data garbage collection has moved, and whose mappings enter the cache next.
    moved: Vec<u32>,
    due: Due,
    load: Load,
}

impl<const UNIT: u32> Flushed<UNIT> {
    /// Writes at most `most` units that have updates, from `first` on.
    fn write(&mut self, first: u32, most: u32, context: &mut Context) {
        let held = &mut self.held;
        self.updated.write(first, most, context, |unit, lpn, end| match held {
            Held::Flat(flat) => flat.dirty.take(lpn, end),
            Held::Bounded(cache) => cache.entries.clean(&mut cache.policy, unit),
        });
    }

    /// Evicts an entry if the cache is full; if the entry is dirty, first writes its unit, in a page filled up with
    /// other updated units.
    fn make_room(&mut self, context: &mut Context) {
        let Flushed { held: Held::Bounded(Cached { entries, policy, .. }), updated, .. } = self else {
            return;
        };
        if entries.slab.is_full() {
            let victim = policy.victim(entries);
            if entries.is_dirty(victim) {
                let most = context.pages.log().shape().slots_per_page;
                let unit = entries.page(victim);
                updated.write(unit, most, context, |unit, _, _| entries.clean(policy, unit));
            }
            entries.remove(policy, victim);
        }
    }

    fn insert(&mut self, lpn: u32, load: u32) {
        match &mut self.held {
            Held::Flat(flat) => {
                flat.cached.set(lpn);
                flat.loads[lpn as usize] = load;
            }
            Held::Bounded(cache) => {
                cache.entries.insert(&mut cache.policy, lpn, load);
            }
        }
    }

    /// Notes that a mapping has changed.
    fn update(&mut self, lpn: u32, context: &mut Context) {
        if !self.cached(lpn, context.pages) {
            self.make_room(context);
            self.insert(lpn, 0);
        }
        match &mut self.held {
            Held::Flat(flat) => flat.dirty.set(lpn),
            Held::Bounded(Cached { entries, policy, .. }) => {
                entries.make_dirty(policy, entries.slab.find(lpn));
            }
        }
        self.updated.units.set(context.pages.of(lpn));
    }
}

impl<const UNIT: u32> Translation for Flushed<UNIT> {
    const ON_FLASH: bool = true;
    const SETTLES_ALWAYS: bool = true;
    const UNIT_KEY: &'static str = if UNIT > 0 { "flash.page" } else { "ftl.segment" };

    fn unit_bytes(settings: &Settings) -> u32 {
        let segment = settings.ftl.own.msftl.segment_bytes;
        // If this FTL serves in place of dftl, the unit is the NAND page.
        let own = if settings.ftl.kind == GATHERED { segment } else { settings.flash.page_bytes };
        if UNIT > 0 { UNIT } else { own }
    }

    fn gathers(_settings: &Settings) -> bool {
        true
    }

    fn check(settings: &Settings) -> Result<(), Contradiction> {
        let unit = Self::unit_bytes(settings);
        if UNIT > 0 || (unit.is_power_of_two() && unit >= settings.flash.ecc_unit_bytes) {
            return Ok(());
        }
        let message = format!(
            "{unit} B is not a power of two from flash.ecc_unit (the unit of error correction) to flash.page"
        );
        Err(Contradiction { key: Self::UNIT_KEY, message })
    }

    fn new(settings: &Settings, space: &UnitSpace) -> Self {
        let lpns = settings.user_pages() as usize;
        let held = if settings.ftl.mapping_cache_bytes.is_some() {
            Held::Bounded(Dftl::new(settings, space))
        } else {
            Held::Flat(Flat { cached: Bits::new(lpns), dirty: Bits::new(lpns), loads: vec![0; lpns] })
        };
        let moved = Vec::with_capacity(1024);
        let load = settings.ftl.own.dftl.load;
        Flushed { held, updated: Updated::new(space.units), moved, due: Due::new(settings), load }
    }

    #[inline]
    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        let hit = match &mut self.held {
            Held::Flat(flat) => {
                let cached = flat.cached.get(lpn);
                if write {
                    flat.loads[lpn as usize] = 0;
                } else if cached {
                    context.work.need(flat.loads[lpn as usize]);
                }
                cached
            }
            Held::Bounded(Cached { entries, policy, .. }) => match entries.slab.find(lpn) {
                NONE => false,
                id => {
                    context.work.need(entries.load(id));
                    policy.hit(entries, id);
                    true
                }
            },
        };
        if write {
            self.update(lpn, context);
        } else if !hit {
            self.make_room(context);
            let load = context.load_unit(context.pages.of(lpn));
            if self.load == Load::Request {
                for other in context.ahead_of(lpn) {
                    if !self.cached(other, context.pages) {
                        self.insert(other, load);
                        self.make_room(context);
                    }
                }
            }
            self.insert(lpn, load);
        }
        hit || write
    }

    fn prefetch(&mut self, unit: u32, missing: &[u32], context: &mut Context) {
        let load = context.load_unit(unit);
        for &lpn in missing {
            self.make_room(context);
            self.insert(lpn, load);
        }
    }

    #[inline]
    fn moved(&mut self, lpn: u32, _pages: &TranslationPages) {
        self.moved.push(lpn);
    }

    /// Called after each page written: puts the mappings of moved data into the cache, and flushes if a flush is due.
    #[inline]
    fn settle(&mut self, context: &mut Context) {
        let mut moved = std::mem::take(&mut self.moved);
        moved.drain(..).for_each(|lpn| self.update(lpn, context));
        self.moved = moved;
        if self.due.look(context) {
            self.flush(context);
        }
    }

    /// Writes back as many updated units as one page holds.
    fn write_back(&mut self, context: &mut Context) -> bool {
        let any = self.updated.any();
        if any {
            self.write(0, context.pages.log().shape().slots_per_page, context);
        }
        any
    }

    #[inline]
    fn cached(&self, lpn: u32, pages: &TranslationPages) -> bool {
        match &self.held {
            Held::Flat(flat) => flat.cached.get(lpn),
            Held::Bounded(cache) => cache.cached(lpn, pages),
        }
    }

    fn each_cached(&self, pages: &TranslationPages, visit: &mut dyn FnMut(u32)) {
        match &self.held {
            Held::Flat(flat) => flat.cached.members(0, pages.lpns()).for_each(visit),
            Held::Bounded(cache) => cache.each_cached(pages, visit),
        }
    }

    fn capacity(&self) -> Option<u32> {
        match &self.held {
            Held::Flat(_) => None,
            Held::Bounded(cache) => cache.capacity(),
        }
    }

    fn dirty(&self, lpn: u32, pages: &TranslationPages) -> bool {
        match &self.held {
            Held::Flat(flat) => flat.dirty.get(lpn),
            Held::Bounded(cache) => cache.dirty(lpn, pages),
        }
    }

    fn updates_free(&self) -> bool {
        true
    }

    fn flush(&mut self, context: &mut Context) {
        self.due.flushed(context);
        if self.updated.any() {
            self.write(0, u32::MAX, context);
            context.pages.stats.flushes += 1;
        }
    }

    fn count_from(&mut self, programs: &ByCause<u64>) {
        self.due.count_from(programs);
    }

    fn save(&self, out: &mut Encoder) -> io::Result<()> {
        debug_assert!(self.moved.is_empty(), "every write settles what was moved");
        out.value(&self.due.programmed())?;
        match &self.held {
            Held::Flat(flat) => {
                let lpns = flat.loads.len() as u32;
                let known = flat.cached.members(0, lpns).map(|lpn| (lpn, flat.dirty.get(lpn)));
                out.value(&known.collect::<Vec<_>>())
            }
            Held::Bounded(cache) => cache.save(out),
        }
    }

    fn load(&mut self, pages: &TranslationPages, from: &mut Decoder) -> Result<(), Damage> {
        self.due.set_programmed(from.value()?)?;
        match &mut self.held {
            Held::Flat(flat) => {
                for (lpn, dirty) in from.value::<Vec<(u32, bool)>>()? {
                    if lpn >= pages.lpns() {
                        return Damage::impossible(format!("the mapping of page {lpn} cannot be cached"));
                    }
                    flat.cached.set(lpn);
                    if dirty {
                        flat.dirty.set(lpn);
                    }
                }
            }
            Held::Bounded(cache) => cache.load(pages, from)?,
        }
        for lpn in 0..pages.lpns() {
            if self.dirty(lpn, pages) {
                self.updated.units.set(pages.of(lpn));
            }
        }
        Ok(())
    }
}

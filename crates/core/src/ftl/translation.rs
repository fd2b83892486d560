//! Translation pages on flash, and what a mapping cache must provide.
//!
//! What flash holds of the mapping is translation units, each the entries of consecutive LPNs
//! ([`TranslationPages::of`]); where a unit lies, in slots of its log, only its newest version counts, and
//! that names for each of its LPNs the slot of the user data that was the newest when the unit was
//! programmed ([`TranslationPages::persisted`]). A unit is the NAND page where mappings are written
//! back by eviction; FTLs that flush by amount ([`super::units`]) have smaller ones too.

use std::io;

use super::log::{Log, Shape};
use super::pool::BlockPool;
use crate::config::Settings;
use crate::flash::media::{Kind, Media, Tape};
use crate::flash::{Cause, Work};
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Divider, NONE};
use serde::{Deserialize, Serialize};

use super::units::{Gathering, UnitSpace};

/// Counters of the mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapStats {
    /// Translations whose entry was cached.
    pub hits: u64,
    /// Translations whose entry had to be fetched.
    pub misses: u64,
    /// Translation pages read ahead for a batch.
    pub prefetches: u64,
    /// Entries that differed from their flash copy, over all translation pages programmed.
    pub entries_updated: u64,
    /// Entries programmed, updated or not.
    pub entries_programmed: u64,
    /// Mapping flushes, of FTLs that flush by amount.
    pub flushes: u64,
}

/// The translation pages: which units there are, where they lie, what they hold.
///
/// The global translation directory (GTD, or mapping segment directory, MSD) is the log's map, kept in
/// RAM whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TranslationPages {
    pub(super) log: Log,
    per_page: Divider,
    lpns: u32,
    units: u32,
    /// Check mode: the slot each entry on flash names.
    #[serde(skip)]
    pub(super) persisted: Option<Vec<u32>>,
    /// What is gathered into pages, where mappings are flushed by amount.
    pub(super) gathering: Gathering,
    /// Counters.
    pub stats: MapStats,
}

impl TranslationPages {
    /// Translation units for the user's logical pages. Where mappings are written back by eviction
    /// all exist from the start, else none.
    pub fn new(
        shape: Shape,
        settings: &Settings,
        pool: &mut BlockPool,
        check: bool,
        work: &mut Work,
    ) -> TranslationPages {
        let mut log = Log::new(shape, settings, pool, check);
        let lpns = settings.user_pages() as u32;
        if !shape.serial {
            for page in 0..shape.owners {
                log.append(page, Cause::Map, pool, work, &mut |_| ());
            }
        }
        let space = UnitSpace::new(settings);
        TranslationPages {
            log,
            per_page: Divider::new(space.entries),
            lpns,
            units: space.units,
            gathering: Gathering::new(if shape.serial { space.units } else { 0 }),
            persisted: check.then(|| vec![NONE; lpns as usize]),
            stats: MapStats::default(),
        }
    }

    /// The translation units that lie in `log` on the media, with what they say there.
    ///
    /// # Errors
    /// In words, if one is not there that must be.
    pub fn found(
        mut log: Log,
        settings: &Settings,
        on_flash: bool,
        (tape, media): (&Tape, &Media),
    ) -> Result<TranslationPages, String> {
        if on_flash {
            log.record(tape, Kind::Map, 0, media);
        }
        let space = UnitSpace::new(settings);
        let serial = log.is_serial();
        let mut pages = TranslationPages {
            log,
            per_page: Divider::new(space.entries),
            lpns: settings.user_pages() as u32,
            units: space.units,
            gathering: Gathering::new(if serial { space.units } else { 0 }),
            persisted: None,
            stats: MapStats::default(),
        };
        if on_flash {
            let mut persisted = vec![NONE; pages.lpns as usize];
            for unit in 0..pages.units {
                let (first, end) = pages.range(unit);
                let there = pages.is_written(unit);
                let entries = there.then(|| tape.content(Kind::Map, unit, pages.log.seq(unit))).flatten();
                match entries {
                    Some(entries) => persisted[first as usize..end as usize].copy_from_slice(&entries),
                    // Gathered units have no copy before their first update.
                    None if serial => (),
                    None => return Err(format!("translation page {unit} is nowhere on flash")),
                }
            }
            pages.persisted = Some(persisted);
        }
        Ok(pages)
    }

    /// Pages of each chip that hold a unit.
    pub fn pages_by_chip(&self, chips: u32) -> Vec<u32> {
        let slots = (0..self.log.shape().owners).map(|owner| self.log.slot(owner));
        let mut pages: Vec<u32> =
            slots.filter(|&slot| slot != NONE).map(|slot| self.log.slot_page(slot)).collect();
        pages.sort_unstable();
        pages.dedup();
        let mut by_chip = vec![0; chips as usize];
        let first = |page| page * self.log.shape().slots_per_page;
        pages.into_iter().for_each(|page| by_chip[self.log.slot_chip(first(page)) as usize] += 1);
        by_chip
    }

    /// Programs every unit that does not say what `data` says; it has been read.
    pub fn renew(&mut self, data: &Log, pool: &mut BlockPool, work: &mut Work) {
        let serial = self.log.is_serial();
        for unit in 0..self.units {
            let (first, end) = self.range(unit);
            let Some(persisted) = &self.persisted else { return };
            let stale = (first..end).filter(|&lpn| persisted[lpn as usize] != data.slot(lpn)).count() as u32;
            if stale == 0 {
                continue;
            }
            if serial {
                self.gathering.have(unit);
                self.gather(unit, stale, |_| false, data, pool, work);
            } else {
                work.chain_for(first);
                self.program(unit, stale, |_| false, data, pool, work);
            }
        }
        if serial {
            self.finish_page(pool, work);
        }
    }

    /// From now on programs and erases go on a tape, with what the units say.
    pub fn record(&mut self, tape: &Tape, media: &Media) {
        self.log.record(tape, Kind::Map, 0, media);
        (0..self.units).filter(|&unit| self.is_written(unit)).for_each(|unit| self.hold(unit));
    }

    /// Tells the tape, if there is one, what a unit says.
    #[cold]
    pub(super) fn hold(&self, unit: u32) {
        let (first, end) = self.range(unit);
        if let (Some(tape), Some(persisted)) = (self.log.tape(), &self.persisted) {
            let entries = &persisted[first as usize..end as usize];
            tape.hold(Kind::Map, unit, self.log.seq(unit), entries.into());
        }
    }

    /// Translation unit of an LPN.
    #[inline]
    pub fn of(&self, lpn: u32) -> u32 {
        self.per_page.div(lpn)
    }

    /// Entries per translation unit.
    pub fn entries(&self) -> u32 {
        self.per_page.get()
    }

    /// Logical pages they map.
    pub fn lpns(&self) -> u32 {
        self.lpns
    }

    /// Number of translation units.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// First of a unit's LPNs and one past the last.
    pub fn range(&self, unit: u32) -> (u32, u32) {
        let first = unit * self.entries();
        (first, (u64::from(first) + u64::from(self.entries())).min(u64::from(self.lpns)) as u32)
    }

    /// Whether a unit has a copy on flash.
    #[inline]
    pub fn is_written(&self, unit: u32) -> bool {
        self.log.slot(unit) != NONE
    }

    /// Check mode: the slot of user data that an LPN's entry in the newest copy of its unit names,
    /// [`NONE`] where it names none or there is no copy.
    pub fn persisted(&self, lpn: u32) -> Option<u32> {
        self.persisted.as_ref().map(|persisted| persisted[lpn as usize])
    }

    /// The log they lie in. Owners from [`TranslationPages::units`] on are parts of the directory.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The same, to move its blocks.
    pub(super) fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Has translation blocks of a chip collected until the pool has one of its blocks.
    pub fn reclaim(&mut self, chip: u32, pool: &mut BlockPool, work: &mut Work) {
        self.log.reclaim(chip, pool, work);
    }

    /// Reads a translation page.
    #[inline(always)] // saves half a percent of all instructions
    pub fn read(&mut self, page: u32, work: &mut Work) {
        let slot = self.log.slot(page);
        work.at_slot(|| self.log.slot_page(slot)).read(self.log.slot_chip(slot), Cause::Map);
    }

    /// Reads a translation page into the cache; returns the load's number ([`Work::load`]).
    #[inline]
    pub fn load(&mut self, page: u32, work: &mut Work) -> u32 {
        let slot = self.log.slot(page);
        work.at_slot(|| self.log.slot_page(slot)).load(self.log.slot_chip(slot), Cause::Map)
    }

    /// Programs a translation page whose `updated` entries are new on flash; all its entries but those
    /// `newer` in the cache are then as in `data`.
    fn program(
        &mut self,
        page: u32,
        updated: u32,
        newer: impl Fn(u32) -> bool,
        data: &Log,
        pool: &mut BlockPool,
        work: &mut Work,
    ) {
        let (first, end) = self.range(page);
        if let Some(persisted) = &mut self.persisted {
            for lpn in (first..end).filter(|&lpn| !newer(lpn)) {
                persisted[lpn as usize] = data.slot(lpn);
            }
        }
        self.program_counted(page, updated, pool, work);
    }

    /// Programs a translation page in which one entry alone is new on flash.
    fn program_one(&mut self, lpn: u32, data: &Log, pool: &mut BlockPool, work: &mut Work) {
        if let Some(persisted) = &mut self.persisted {
            persisted[lpn as usize] = data.slot(lpn);
        }
        self.program_counted(self.of(lpn), 1, pool, work);
    }

    fn program_counted(&mut self, page: u32, updated: u32, pool: &mut BlockPool, work: &mut Work) {
        self.stats.entries_updated += u64::from(updated);
        self.stats.entries_programmed += u64::from(self.entries());
        self.log.end_short(page, pool, work, &mut |_| ());
        self.log.append(page, Cause::Map, pool, work, &mut |_| ());
        if self.persisted.is_some() {
            self.hold(page);
        }
    }

    /// Makes the flash copy of an entry equal to `data` without an operation: before time 0.
    #[inline]
    pub fn adopt(&mut self, lpn: u32, data: &Log) {
        if let Some(persisted) = &mut self.persisted {
            persisted[lpn as usize] = data.slot(lpn);
        }
    }

    /// Writes the directory; the rest is serialised as a value.
    ///
    /// # Errors
    /// The output's.
    pub fn save_map(&self, out: &mut Encoder) -> io::Result<()> {
        self.log.save_map(out)
    }

    /// Completes deserialised translation pages; see [`Log::load_map`]. In check mode the flash
    /// copies of entries that are not `dirty` are those of `data`.
    ///
    /// # Errors
    /// [`Damage`] if they are of another shape.
    pub fn load_map(
        &mut self,
        shape: Shape,
        data: &Log,
        check: Option<&IsDirty>,
        from: &mut Decoder,
    ) -> Result<(), Damage> {
        self.log.load_map(shape, data.blocks(), check.is_some(), from)?;
        if let Some(dirty) = check {
            let on_flash = |lpn| if dirty(lpn, self) { NONE } else { data.slot(lpn) };
            self.persisted = Some((0..self.lpns).map(on_flash).collect());
        }
        Ok(())
    }

    /// Check mode: the flash copy of an entry that is not cached dirty must name the newest slot.
    ///
    /// # Errors
    /// In words, if it does not.
    pub fn verify_entry(&self, lpn: u32, dirty: bool, data: &Log) -> Result<(), String> {
        match &self.persisted {
            Some(persisted) if !dirty && persisted[lpn as usize] != data.slot(lpn) => Err(format!(
                "LPN {lpn} is not cached dirty, its flash copy names slot {} instead of {}",
                persisted[lpn as usize] as i32,
                data.slot(lpn) as i32
            )),
            _ => Ok(()),
        }
    }
}

/// Whether the cache holds an update of an LPN's entry that flash lacks.
pub type IsDirty<'a> = dyn Fn(u32, &TranslationPages) -> bool + 'a;

/// What a mapping cache works on while it serves a request.
pub struct Context<'a> {
    /// The user data, for the newest slots.
    pub data: &'a Log,
    /// The translation pages.
    pub pages: &'a mut TranslationPages,
    /// The erased blocks.
    pub pool: &'a mut BlockPool,
    /// The steps of the request.
    pub work: &'a mut Work,
    /// Logical pages of the request behind the one that is translated.
    pub ahead: u32,
}

impl Context<'_> {
    /// Reads a translation page.
    #[inline]
    pub fn read(&mut self, page: u32) {
        self.pages.read(page, self.work);
    }

    /// Reads a translation page into the cache; returns the load's number ([`Work::load`]).
    #[inline]
    pub fn load(&mut self, page: u32) -> u32 {
        self.pages.load(page, self.work)
    }

    /// Programs a translation page, all its entries as they are now; `updated` are new on flash.
    pub fn program(&mut self, page: u32, updated: u32) {
        self.pages.program(page, updated, |_| false, self.data, self.pool, self.work);
    }

    /// As `program`, but entries that are `newer` in the cache stay as they are on flash.
    pub fn program_but(&mut self, page: u32, updated: u32, newer: impl Fn(u32) -> bool) {
        self.pages.program(page, updated, newer, self.data, self.pool, self.work);
    }

    /// Reads the unit of an LPN's entry into the cache, if it has a copy; returns the load's number.
    #[inline]
    pub fn load_unit(&mut self, unit: u32) -> u32 {
        self.pages.load_unit(unit, self.work)
    }

    /// Gathers a unit whose `updated` entries are new on flash into the page to be programmed next; its
    /// source is read with those of the other units that are `wanted`.
    pub fn gather(&mut self, unit: u32, updated: u32, wanted: impl Fn(u32) -> bool) {
        self.pages.gather(unit, updated, wanted, self.data, self.pool, self.work);
    }

    /// Programs the page that units are being gathered into, if it is part-full.
    pub fn finish_page(&mut self) {
        self.pages.finish_page(self.pool, self.work);
    }

    /// Programs a translation page in which one entry alone is new on flash.
    pub fn program_one(&mut self, lpn: u32) {
        self.pages.program_one(lpn, self.data, self.pool, self.work);
    }
}

/// A mapping cache: how logical addresses are resolved, and what that costs.
pub trait Translation {
    /// Whether translation pages exist at all.
    const ON_FLASH: bool;

    /// Resolves one LPN; a write leaves its entry dirty. True on a hit.
    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool;

    /// Brings in entries of one translation page, none of them cached, with one read.
    fn prefetch(&mut self, page: u32, missing: &[u32], context: &mut Context);

    /// Garbage collection moved this LPN's data. What that costs is charged by `settle`.
    fn moved(&mut self, lpn: u32, pages: &TranslationPages);

    /// Updates the flash copies of moved entries that are not cached.
    fn settle(&mut self, context: &mut Context);

    /// Writes back one translation page with dirty entries; false if there is none.
    fn write_back(&mut self, context: &mut Context) -> bool;

    /// Whether a translation would hit now.
    fn cached(&self, lpn: u32, pages: &TranslationPages) -> bool;

    /// Calls back with every LPN whose translation would hit now.
    fn each_cached(&self, pages: &TranslationPages, visit: &mut dyn FnMut(u32));

    /// Entries it can hold; `None`: no bound.
    fn capacity(&self) -> Option<u32>;

    /// Whether the cache holds an update of this LPN's entry that flash lacks.
    fn dirty(&self, lpn: u32, pages: &TranslationPages) -> bool;

    /// Whether an entry is updated without being fetched first, so that no write misses.
    fn updates_free(&self) -> bool {
        false
    }

    /// Makes all mappings durable, where that is a host's flush's business.
    fn flush(&mut self, _context: &mut Context) {}

    /// From now on data programmed counts from these numbers on ([`crate::flash::Counts::programs`]).
    fn count_from(&mut self, _programs: &[u64; 8]) {}

    /// Completes a deserialised cache.
    fn restored(&mut self, _pages: &TranslationPages) {}
}

/// Translation pages of moved entries, each once, with the number of its moved entries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MovedPages {
    pages: Vec<(u32, u32)>,
    /// Position in `pages` plus one; 0: absent.
    place: Vec<u32>,
}

impl MovedPages {
    /// For `count` translation pages.
    pub fn new(count: u32) -> MovedPages {
        MovedPages { pages: Vec::with_capacity(256), place: vec![0; count as usize] }
    }

    /// Remembers an entry of a page.
    #[inline]
    pub fn add(&mut self, page: u32) {
        match self.place[page as usize] {
            0 => {
                self.pages.push((page, 1));
                self.place[page as usize] = self.pages.len() as u32;
            }
            place => self.pages[place as usize - 1].1 += 1,
        }
    }

    /// The `at`-th page in order of first mention, with its entries; `None` forgets them all.
    #[inline]
    pub fn take(&mut self, at: usize) -> Option<(u32, u32)> {
        let found = self.pages.get(at).copied();
        match found {
            Some((page, _)) => self.place[page as usize] = 0,
            None => self.pages.clear(),
        }
        found
    }
}

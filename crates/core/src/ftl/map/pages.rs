//! Translation pages on flash.
//!
//! On flash the mapping consists of translation units, each with the entries of consecutive LPNs
//! ([`TranslationPages::of`]). A unit is in a slot of its log, and only its newest version counts; for each of
//! its LPNs it names the slot of the user data that was the newest when the unit was programmed. A unit is a
//! NAND page if mappings are written back on eviction; FTLs that flush mappings after an amount of data
//! ([`super::units`]) may have smaller units.

use std::io;

use super::units::{Gathering, UnitSpace};
use crate::flash::media::{Kind, Media, Tape};
use crate::flash::{Cause, Work};
use crate::ftl::blocks::pool::{BlockPool, Claims};
use crate::ftl::log::{Asked, Log, Shape, Under};
use crate::ftl::settings::Settings;
use crate::ftl::slots::Slots;
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Divider, NONE};

/// Counters of the mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapStats {
    /// Number of translations whose entry was cached.
    pub hits: u64,
    /// Number of translations whose entry had to be fetched.
    pub misses: u64,
    /// Number of translation pages read ahead for a batch.
    pub prefetches: u64,
    /// Number of entries that differed from their flash copy, over all translation pages programmed.
    pub entries_updated: u64,
    /// Number of entries programmed, updated or not.
    pub entries_programmed: u64,
    /// Number of mapping flushes, by FTLs that flush mappings after an amount of data.
    pub flushes: u64,
}

/// The translation pages: which units there are, where they are, and what they hold.
///
/// The global translation directory (GTD, or mapping segment directory, MSD) is the log's map, which is kept
/// whole in RAM.
#[derive(Clone, Debug)]
pub struct TranslationPages {
    pub(super) log: Log,
    /// The slots that hold the units.
    pub(super) slots: Slots,
    per_page: Divider,
    lpns: u32,
    pub(super) units: u32,
    /// In check mode, the slot that each entry on flash names.
    pub(super) persisted: Option<Vec<u32>>,
    /// The units being gathered into pages, if mappings are flushed after an amount of data.
    pub(super) gathering: Gathering,
    /// Counters of the mapping.
    pub stats: MapStats,
}

impl TranslationPages {
    /// Makes translation units for the user's logical pages. If mappings are written back on eviction, all units
    /// exist from the start; otherwise none does.
    pub(crate) fn new(
        (shape, space): (Shape, &UnitSpace),
        settings: &Settings,
        pool: &mut BlockPool,
        check: bool,
        work: &mut Work,
    ) -> TranslationPages {
        let mut slots = shape.slots(pool);
        let mut log = Log::new(shape, settings, (&mut slots, pool), check);
        if !shape.serial {
            let mut under = Under { slots: &mut slots, pool, work, keeper: None };
            for page in 0..shape.owners {
                log.write(under.again(), Asked::of(page, Cause::Map));
            }
            log.flush(under.slots, under.work);
        }
        TranslationPages::over((log, slots), space, settings, check)
    }

    /// Makes the translation pages in a log; their contents are not known yet.
    fn over(
        (log, slots): (Log, Slots),
        space: &UnitSpace,
        settings: &Settings,
        check: bool,
    ) -> TranslationPages {
        let lpns = settings.user_pages() as u32;
        TranslationPages {
            gathering: Gathering::new(if log.shape().serial { space.units } else { 0 }),
            log,
            slots,
            per_page: Divider::new(space.entries),
            lpns,
            units: space.units,
            persisted: check.then(|| vec![NONE; lpns as usize]),
            stats: MapStats::default(),
        }
    }

    /// Makes the translation units that `log` holds on the media, with the contents found there.
    pub(crate) fn found(
        (log, mut slots, space): (Log, Slots, &UnitSpace),
        settings: &Settings,
        on_flash: bool,
        (tape, media): (&Tape, &Media),
    ) -> Result<TranslationPages, String> {
        if !on_flash {
            return Ok(TranslationPages::over((log, slots), space, settings, false));
        }
        slots.record(tape, 0, media);
        let mut pages = TranslationPages::over((log, slots), space, settings, true);
        let mut persisted = pages.persisted.take().unwrap_or_default();
        for unit in 0..pages.units {
            let (first, end) = pages.range(unit);
            let there = pages.is_written(unit);
            let entries = there.then(|| tape.content(Kind::Map, unit, pages.slots.seq(unit))).flatten();
            match entries {
                Some(entries) => persisted[first as usize..end as usize].copy_from_slice(&entries),
                // Gathered units have no copy before their first update.
                None if pages.log.shape().serial => (),
                None => return Err(format!("translation page {unit} is nowhere on flash")),
            }
        }
        pages.persisted = Some(persisted);
        Ok(pages)
    }

    /// Whether the translation pages must be told about data put in place before time 0
    /// ([`super::context::Context::prefill`]).
    pub(crate) fn hears_of_data(&self) -> bool {
        self.log.shape().serial || self.persisted.is_some()
    }

    /// Returns, for each LUN, the number of pages that hold a unit.
    pub(crate) fn pages_by_lun(&self, luns: u32) -> Vec<u32> {
        let slots = (0..self.log.shape().owners).map(|owner| self.slots.of(owner));
        let mut pages: Vec<u32> =
            slots.filter(|&slot| slot != NONE).map(|slot| self.log.addresses.nand_page(slot)).collect();
        pages.sort_unstable();
        pages.dedup();
        let mut by_lun = vec![0; luns as usize];
        let first = |page| page * self.log.shape().slots_per_nand_page();
        pages.into_iter().for_each(|page| by_lun[self.log.addresses.lun(first(page)) as usize] += 1);
        by_lun
    }

    /// From now on, records programs and erases on a tape as they are decided on, with the contents of the units.
    pub(crate) fn record(&mut self, tape: &Tape, media: &Media) {
        self.slots.record(tape, 0, media);
        (0..self.units).filter(|&unit| self.is_written(unit)).for_each(|unit| self.hold(unit));
    }

    /// Notes the content of a unit on the tape, if there is a tape.
    #[cold]
    pub(super) fn hold(&self, unit: u32) {
        let (first, end) = self.range(unit);
        if let (Some(tape), Some(persisted)) = (self.slots.tape(), &self.persisted) {
            let entries = &persisted[first as usize..end as usize];
            tape.hold(Kind::Map, unit, self.slots.seq(unit), entries.into());
        }
    }

    /// Returns the translation unit of an LPN.
    #[inline]
    pub(crate) fn of(&self, lpn: u32) -> u32 {
        self.per_page.div(lpn)
    }

    /// Returns the number of entries of a translation unit.
    pub(crate) fn entries(&self) -> u32 {
        self.per_page.get()
    }

    /// Returns the number of logical pages that the translation units map.
    pub(crate) fn lpns(&self) -> u32 {
        self.lpns
    }

    /// Returns the number of translation units.
    pub(crate) fn units(&self) -> u32 {
        self.units
    }

    /// Returns the first of a unit's LPNs and one past the last.
    pub(crate) fn range(&self, unit: u32) -> (u32, u32) {
        let first = unit * self.entries();
        (first, (u64::from(first) + u64::from(self.entries())).min(u64::from(self.lpns)) as u32)
    }

    /// Whether a unit has a copy on flash.
    #[inline]
    pub(crate) fn is_written(&self, unit: u32) -> bool {
        self.slots.of(unit) != NONE
    }

    /// Counts a programmed unit in which `updated` entries are new to flash.
    #[inline]
    pub(super) fn count_updates(&mut self, updated: u32) {
        self.stats.entries_updated += u64::from(updated);
        self.stats.entries_programmed += u64::from(self.entries());
    }

    /// Returns the log of the translation units. Owners from [`TranslationPages::units`] on are parts of the
    /// directory.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the slots in which the translation units are.
    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Returns the log, and the layers under it.
    #[inline(always)] // called for every program
    pub(crate) fn on_flash<'a>(
        &'a mut self,
        pool: &'a mut BlockPool,
        work: &'a mut Work,
    ) -> (&'a mut Log, Under<'a>) {
        (&mut self.log, Under { slots: &mut self.slots, pool, work, keeper: None })
    }

    /// Programs what waits in page buffers; gathered units never wait there.
    pub(crate) fn flush(&mut self, pool: &mut BlockPool, work: &mut Work) {
        if !self.log.shape().serial {
            let (log, under) = self.on_flash(pool, work);
            log.flush(under.slots, under.work);
        }
    }

    /// Returns the log, so that its blocks can be moved.
    pub(crate) fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Collects translation blocks of a LUN until the pool has an erased block of that LUN.
    pub(crate) fn reclaim(&mut self, lun: u32, pool: &mut BlockPool, work: &mut Work) {
        let (log, mut under) = self.on_flash(pool, work);
        log.reclaim(&mut under, lun);
    }

    /// Writes where the units are, and whether the directory on flash is out of date.
    pub(crate) fn save(&self, out: &mut Encoder) -> io::Result<()> {
        self.log.save(&self.slots, out)?;
        out.value(&self.gathering.stale)
    }

    /// Reads what [`TranslationPages::save`] wrote.
    pub(crate) fn load(
        (shape, space): (Shape, &UnitSpace),
        settings: &Settings,
        (pool, claims): (&mut BlockPool, &mut Claims),
        check: bool,
        from: &mut Decoder,
    ) -> Result<TranslationPages, Damage> {
        let mut slots = shape.slots(pool);
        let log = Log::load(shape, settings, (&mut slots, pool, claims), check, from)?;
        if !shape.serial
            && let Some(page) = (0..shape.owners).find(|&page| slots.of(page) == NONE)
        {
            return Damage::impossible(format!("translation page {page} is nowhere on flash"));
        }
        let mut pages = TranslationPages::over((log, slots), space, settings, check);
        pages.gathering.stale = from.value()?;
        Ok(pages)
    }

    /// In a loaded state, sets the flash copies of entries that are not `dirty` in the cache to the slots that
    /// `data` has for them.
    pub(crate) fn agree(&mut self, data: &Slots, dirty: &IsDirty) -> Result<(), Damage> {
        for unit in (0..self.units).filter(|&unit| self.log.shape().serial && !self.is_written(unit)) {
            let (first, end) = self.range(unit);
            if let Some(lpn) = (first..end).find(|&lpn| data.of(lpn) != NONE && !dirty(lpn, self)) {
                return Damage::impossible(format!("the mapping of page {lpn} is nowhere on flash"));
            }
        }
        if self.persisted.is_some() {
            let on_flash = |lpn| if dirty(lpn, self) { NONE } else { data.of(lpn) };
            self.persisted = Some((0..self.lpns).map(on_flash).collect());
        }
        Ok(())
    }

    /// Checks, in check mode, that the flash copy of an entry names the newest slot, unless the entry is `dirty`
    /// in the cache.
    pub(crate) fn verify_entry(&self, lpn: u32, dirty: bool, data: &Slots) -> Result<(), String> {
        match &self.persisted {
            Some(persisted) if !dirty && persisted[lpn as usize] != data.of(lpn) => Err(format!(
                "LPN {lpn} is not cached dirty, its flash copy names slot {} instead of {}",
                persisted[lpn as usize] as i32,
                data.of(lpn) as i32
            )),
            _ => Ok(()),
        }
    }
}

/// A function that tells whether the cache holds an update of an LPN's entry that is not yet on flash.
pub type IsDirty<'a> = dyn Fn(u32, &TranslationPages) -> bool + 'a;

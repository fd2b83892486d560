//! Page-mapped FTLs: one log of user data, resolved by an exchangeable mapping cache.

mod durable;
mod recover;
mod serve;

use std::io;

use super::layout::{Layout, shapes};
use super::log::Log;
use super::map::context::Context;
use super::map::pages::{IsDirty, MapStats, TranslationPages};
use super::map::translation::Translation;
use super::map::units::UnitSpace;
use super::pool::BlockPool;
use super::recovery::Flaw;
use super::{FlashTranslation, Mark, Request, background, endurance, wear};
use crate::config::{GcBackground, Settings};
use crate::flash::media::{Media, Tape};
use crate::flash::variation::Speeds;
use crate::flash::{Cause, Work};
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, Divider, NONE};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Whether a host's flush is a mapping flush.
fn flushes_mappings(settings: &Settings) -> bool {
    settings.ftl.host_flush_mappings && settings.ftl.flush_bytes.is_some()
}

/// A page-mapped FTL with the mapping cache `T`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageMapped<T> {
    data: Log,
    pages: TranslationPages,
    pool: BlockPool,
    translation: T,
    read_modify_write: bool,
    /// A host's flush is a mapping flush, where the FTL has those.
    host_flush_mappings: bool,
    space: UnitSpace,
    lpns: u32,
    by_page: Divider,
    /// Logical pages the host wrote.
    host_slots: u64,
    /// A chip had no spare block for a worn one: no write, trim or flush is served any more.
    read_only: bool,
    /// How many were refused in the run.
    #[serde(skip)]
    refused: u64,
    /// How garbage is collected in the background; a run's alone.
    #[serde(skip)]
    background: Option<GcBackground>,
    /// A defect built in, for tests.
    #[serde(skip)]
    flaw: Flaw,
    /// LPNs that a prefetch brings in, in the order of need, and which of their page they are.
    #[serde(skip)]
    missing: Vec<u32>,
    seen: Bits,
}

impl<T: Translation> PageMapped<T> {
    /// The FTL of `settings`, its flash empty.
    ///
    /// # Panics
    /// If the settings were not checked.
    pub fn new(settings: &Settings, check: bool, work: &mut Work) -> PageMapped<T> {
        let flash = &settings.flash;
        let (layout, [data, map]) = shapes(settings, T::ON_FLASH);
        let erases = flash.pe_cycles as u32;
        let mut pool = BlockPool::new(
            flash.units(),
            flash.blocks_per_unit() as u32,
            erases,
            settings.ftl.wear_threshold,
            flash.program_ns,
            Speeds::new(flash, settings.seed, erases),
        );
        pool.withhold(settings);
        let data = Log::new(data, settings, &mut pool, check);
        let pages = TranslationPages::new(map, settings, &mut pool, check && T::ON_FLASH, work);
        work.reset();
        PageMapped::assemble(settings, &layout, (data, pages, pool))
    }

    fn assemble(
        settings: &Settings,
        layout: &Layout,
        (data, pages, pool): (Log, TranslationPages, BlockPool),
    ) -> PageMapped<T> {
        PageMapped {
            data,
            pages,
            pool,
            translation: T::new(settings, layout.space.units),
            read_modify_write: settings.ftl.read_modify_write,
            host_flush_mappings: flushes_mappings(settings),
            space: if T::ON_FLASH { layout.space } else { UnitSpace::default() },
            lpns: settings.user_pages() as u32,
            by_page: Divider::new(layout.slots_per_page),
            host_slots: 0,
            read_only: false,
            refused: 0,
            background: None,
            flaw: Flaw::None,
            missing: Vec::with_capacity(layout.space.entries as usize),
            seen: Bits::new(layout.space.entries as usize),
        }
    }

    /// Reads what [`FlashTranslation::save`] wrote, for the same settings.
    ///
    /// # Errors
    /// [`Damage`] if it is not whole, or is of another shape.
    ///
    /// # Panics
    /// If the settings were not checked.
    pub fn load(settings: &Settings, check: bool, from: &mut Decoder) -> Result<PageMapped<T>, Damage>
    where
        T: DeserializeOwned,
    {
        let (layout, [data, map]) = shapes(settings, T::ON_FLASH);
        let mut ftl: PageMapped<T> = from.value()?;
        let blocks = settings.flash.blocks_per_chip() * u64::from(settings.flash.chips());
        if ftl.pool.count() != blocks as u32 || ftl.lpns != data.owners - data.trim_units {
            return Err(Damage::Corrupt("it holds a device of another size".into()));
        }
        let flash = &settings.flash;
        let speeds = Speeds::new(flash, settings.seed, flash.pe_cycles as u32);
        ftl.pool.set_speeds(flash.program_ns, speeds);
        ftl.data.load_map(data, ftl.pool.count(), check, from)?;
        let PageMapped { data, pages, translation, .. } = &mut ftl;
        let dirty = |lpn, pages: &TranslationPages| translation.dirty(lpn, pages);
        // The full map has nothing on flash, so nothing there to compare with.
        let check_pages: Option<&IsDirty> = if check && T::ON_FLASH { Some(&dirty) } else { None };
        pages.load_map(map, data, check_pages, from)?;
        translation.restored(pages);
        // What a run does with partly written pages and flushes is no part of the state.
        ftl.read_modify_write = settings.ftl.read_modify_write;
        ftl.host_flush_mappings = flushes_mappings(settings);
        ftl.missing = Vec::with_capacity(layout.space.entries as usize);
        Ok(ftl)
    }

    /// Resolves an LPN that has `ahead` more behind it in its request; returns the misses.
    #[inline]
    fn translate(&mut self, lpn: u32, ahead: u32, write: bool, work: &mut Work) -> u32 {
        let mut context =
            Context { data: &self.data, pages: &mut self.pages, pool: &mut self.pool, work, ahead };
        let hit = self.translation.translate(lpn, write, &mut context);
        self.pages.stats.hits += u64::from(hit);
        self.pages.stats.misses += u64::from(!hit);
        u32::from(!hit)
    }

    /// Writes a new version of an LPN, or of a unit of trims.
    #[inline]
    fn append(&mut self, owner: u32, cause: Cause, work: &mut Work) {
        let PageMapped { data, pages, pool, translation, .. } = self;
        data.aim(work);
        // Whatever it has to program may move the cursor on.
        while data.end_short(owner, pool, work, &mut |moved| translation.moved(moved, pages)) {
            data.aim(work);
        }
        if T::ON_FLASH {
            let chip = data.write_chip(owner);
            if data.wants_block(chip) && pool.free(chip) == 0 {
                pages.reclaim(chip, pool, work);
            }
        }
        data.append(owner, cause, pool, work, &mut |moved| translation.moved(moved, pages));
        if let Some(chip) = pool.uneven()
            && data.can_relocate(chip)
        {
            let mut moved = |moved, pages: &TranslationPages| translation.moved(moved, pages);
            wear::level(chip, (data, pages), pool, work, &mut moved);
        }
        translation.settle(&mut Context { data, pages, pool, work, ahead: 0 });
        if pool.is_exhausted() {
            self.turn_read_only(work);
        }
    }

    /// A block is past its limit and has no successor: writes back all that only RAM knows, so that
    /// reads find what they need to the end, and serves reads alone from now on.
    #[cold]
    fn turn_read_only(&mut self, work: &mut Work) {
        if self.read_only {
            return;
        }
        work.chain();
        self.data.flush(&mut self.pool, work);
        loop {
            work.chain();
            let PageMapped { data, pages, pool, translation, .. } = self;
            if !translation.write_back(&mut Context { data, pages, pool, work, ahead: 0 }) {
                break;
            }
        }
        self.read_only = true;
    }

    /// Refuses a request, or the rest of one, on a read-only device.
    #[cold]
    fn refuse(&mut self) {
        self.refused += 1;
    }
}

impl<T: Translation + Serialize> FlashTranslation for PageMapped<T> {
    fn lay(&mut self, lpns: &mut dyn Iterator<Item = u32>, work: &mut Work) {
        for lpn in lpns {
            debug_assert_eq!(self.data.slot(lpn), NONE, "laid twice");
            let PageMapped { data, pages, pool, .. } = self;
            data.aim(work);
            data.append(lpn, Cause::Host, pool, work, &mut |_| unreachable!("collection while laying"));
            Context { data, pages, pool, work, ahead: 0 }.lay(lpn);
            self.host_slots += 1;
            // They are not simulated, and soon too many.
            if work.steps().len() >= 512 {
                work.clear();
            }
        }
        work.clear();
        if self.pages.log().is_serial() {
            let PageMapped { data, pages, pool, .. } = self;
            Context { data, pages, pool, work, ahead: 0 }.finish_page();
            work.clear();
        }
        self.translation.count_from(&work.counts().programs);
    }

    fn start(&mut self) {
        self.translation.count_from(&[0; 8]);
        self.host_slots = 0;
        self.data.forget_numbers();
        self.pages.log_mut().forget_numbers();
        self.pages.stats = MapStats::default();
        self.pool.reset_counts();
    }

    fn choose_by_speed(&mut self) {
        self.pool.sort_by_speed();
        self.data.choose_by_speed(&self.pool);
    }

    fn save(&self, out: &mut Encoder) -> io::Result<()> {
        out.value(self)?;
        self.data.save_map(out)?;
        self.pages.save_map(out)
    }

    fn read(&mut self, request: Request, work: &mut Work) -> u32 {
        self.read_for(request, Cause::Host, work)
    }

    fn write(&mut self, request: Request, work: &mut Work) -> u32 {
        self.write_for(request, Cause::Host, work)
    }

    fn read_marked(&mut self, request: Request, mark: Mark, work: &mut Work) -> u32 {
        self.read_for(request, if mark.pad { Cause::Pad } else { Cause::Host }, work)
    }

    fn write_marked(&mut self, request: Request, mark: Mark, work: &mut Work) -> u32 {
        let misses = self.write_for(request, if mark.pad { Cause::Pad } else { Cause::Host }, work);
        if mark.fua {
            self.program_begun(work);
        }
        misses
    }

    fn trim(&mut self, request: Request, work: &mut Work) -> u32 {
        let mut misses = 0;
        if self.read_only {
            self.refuse();
            return misses;
        }
        let end = request.first + request.pages;
        for lpn in request.first..end {
            work.chain_for(lpn);
            misses += self.translate(lpn, end - lpn - 1, true, work);
            self.data.trim(lpn);
        }
        if self.pool.is_exhausted() {
            self.turn_read_only(work);
        }
        misses
    }

    fn flush(&mut self, work: &mut Work) {
        if self.read_only {
            return self.refuse();
        }
        self.data.flush(&mut self.pool, work);
        self.state_trims(work);
        let PageMapped { data, pages, pool, translation, .. } = self;
        if self.host_flush_mappings {
            translation.flush(&mut Context { data, pages, pool, work, ahead: 0 });
        }
        if self.pool.is_exhausted() {
            self.turn_read_only(work);
        }
    }

    fn prefetch(&mut self, page: u32, needs: &mut dyn Iterator<Item = Request>, work: &mut Work) {
        self.missing.clear();
        self.seen.reset();
        let first = u64::from(page) * u64::from(self.pages.entries());
        let end = (first + u64::from(self.pages.entries())).min(u64::from(self.lpns)) as u32;
        for need in needs {
            // By merging at its front a request may begin before the page of its batch.
            for lpn in need.first.max(first as u32)..end.min(need.first + need.pages) {
                let entry = lpn - first as u32;
                if !self.seen.get(entry) && !self.translation.cached(lpn, &self.pages) {
                    self.seen.set(entry);
                    self.missing.push(lpn);
                }
            }
        }
        if !self.missing.is_empty() {
            // A unit that was never written is known from the directory.
            self.pages.stats.prefetches += u64::from(self.pages.is_written(page));
            work.chain_for(self.missing[0]);
            let mut context =
                Context { data: &self.data, pages: &mut self.pages, pool: &mut self.pool, work, ahead: 0 };
            self.translation.prefetch(page, &self.missing, &mut context);
            work.fence();
        }
        if self.pool.is_exhausted() {
            self.turn_read_only(work);
        }
    }

    fn write_back(&mut self, work: &mut Work) -> bool {
        let wrote = self.translation.write_back(&mut Context {
            data: &self.data,
            pages: &mut self.pages,
            pool: &mut self.pool,
            work,
            ahead: 0,
        });
        if self.pool.is_exhausted() {
            self.turn_read_only(work);
        }
        wrote
    }

    fn collect_in_background(&mut self, how: GcBackground) {
        self.background = Some(how);
        self.data.collect_in_background();
        // Blocks filled one at a time are collected when one is needed.
        if T::ON_FLASH && !self.pages.log().is_serial() {
            self.pages.log_mut().collect_in_background();
        }
    }

    fn background_step(&mut self, chip: u32, work: &mut Work) -> bool {
        let Some(how) = self.background.filter(|_| !self.read_only) else { return false };
        let translation_pages = Some(self.pages.log()).filter(|log| T::ON_FLASH && !log.is_serial());
        let Some(kind) =
            background::choose(chip, how.normal_blocks, &self.data, translation_pages, &self.pool)
        else {
            return false;
        };
        let PageMapped { data, pages, pool, translation, .. } = self;
        work.chain();
        match kind {
            background::Kind::Data => {
                let mut moved = |lpn| translation.moved(lpn, pages);
                data.background_step(chip, how.step_pages, pool, work, &mut moved);
                translation.settle(&mut Context { data, pages, pool, work, ahead: 0 });
            }
            background::Kind::Pages => {
                pages.log_mut().background_step(chip, how.step_pages, pool, work, &mut |_| ());
            }
        }
        if self.pool.is_exhausted() {
            self.turn_read_only(work);
        }
        true
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn life(&self) -> endurance::Life {
        self.pool.life()
    }

    fn has_data(&self, lpn: u32) -> bool {
        self.data.slot(lpn) != NONE
    }

    #[inline]
    fn expect(&self, lpn: u32, earlier: u32) {
        self.data.fetch(lpn);
        self.data.fetch_slot(earlier);
    }

    #[inline]
    fn cached(&self, lpn: u32) -> bool {
        self.translation.cached(lpn, &self.pages)
    }

    fn each_cached(&self, visit: &mut dyn FnMut(u32)) {
        self.translation.each_cached(&self.pages, &mut |lpn| {
            if lpn < self.lpns {
                visit(lpn);
            }
        });
    }

    fn cache_capacity(&self) -> Option<u32> {
        self.translation.capacity()
    }

    fn map_complete(&self) -> bool {
        !T::ON_FLASH
    }

    #[inline]
    fn translation_page(&self, lpn: u32) -> u32 {
        self.pages.of(lpn)
    }

    fn updates_free(&self) -> bool {
        self.translation.updates_free()
    }

    fn slot(&self, lpn: u32) -> u32 {
        self.data.slot(lpn)
    }

    fn logical_pages(&self) -> u32 {
        self.lpns
    }

    #[inline]
    fn read_chip(&self, lpn: u32) -> u32 {
        match self.data.slot(lpn) {
            NONE => self.data.home(lpn),
            slot => self.data.slot_chip(slot),
        }
    }

    #[inline]
    fn write_chip(&self, first: u32, page: u32) -> u32 {
        self.data.write_chip_ahead(first + page, page)
    }

    #[inline]
    fn home_chip(&self, lpn: u32) -> u32 {
        self.data.home(lpn)
    }

    fn map_stats(&self) -> MapStats {
        self.pages.stats
    }

    fn units(&self) -> UnitSpace {
        self.space
    }

    fn host_slots(&self) -> u64 {
        self.host_slots
    }

    fn slots_per_page(&self) -> u32 {
        self.by_page.get()
    }

    fn erases(&self, visit: &mut dyn FnMut(u32)) {
        self.pool.erases().for_each(visit);
    }

    fn speeds(&self) -> Option<&Speeds> {
        self.pool.speeds()
    }

    fn engrave(&self, media: &mut Media) -> u64 {
        self.engrave_all(media)
    }

    fn record(&mut self, tape: &Tape, media: &Media) {
        self.record_all(tape, media);
    }

    fn version_on(&self, lpn: u32, media: &Media) -> Result<Option<u64>, String> {
        PageMapped::version_on(self, lpn, media)
    }

    fn version(&self, lpn: u32) -> Option<u32> {
        self.data.version(lpn)
    }

    fn verify_request(&self, request: Request) -> Result<(), String> {
        (request.first..request.first + request.pages).try_for_each(|lpn| {
            self.data.verify_owner(lpn)?;
            if T::ON_FLASH {
                self.pages.log().verify_owner(self.pages.of(lpn))?;
                self.pages.verify_entry(lpn, self.translation.dirty(lpn, &self.pages), &self.data)?;
            }
            Ok(())
        })
    }

    fn verify(&self) -> Result<(), String> {
        self.data.verify()?;
        self.pages.log().verify()?;
        for block in 0..self.pool.count() {
            let owners = [
                self.pool.is_free(block),
                self.data.has(block),
                self.pages.log().has(block),
                self.pool.is_retired(block),
                self.pool.is_spare(block),
            ];
            if owners.iter().filter(|&&has| has).count() != 1 {
                return Err(format!("block {block}: free, data, translation, retired, spare are {owners:?}"));
            }
        }
        if T::ON_FLASH {
            for lpn in 0..self.lpns {
                self.pages.verify_entry(lpn, self.translation.dirty(lpn, &self.pages), &self.data)?;
            }
        }
        Ok(())
    }
}

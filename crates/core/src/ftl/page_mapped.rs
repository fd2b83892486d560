//! Page-mapped FTLs: one log of user data, resolved by an exchangeable mapping cache.

mod recover;

use std::io;

use super::log::{self, Log, Shape};
use super::pool::BlockPool;
use super::translation::{Context, IsDirty, MapStats, Translation, TranslationPages};
use super::units::UnitSpace;
use super::{FlashTranslation, Request, gathers, wear};
use crate::config::{Contradiction, Settings};
use crate::flash::media::{Media, Tape};
use crate::flash::variation::Speeds;
use crate::flash::{Cause, Work};
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, Divider, NONE};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What user data and translation pages may have of each chip's blocks. Translation pages may
/// borrow any erased block; the data gets back what it needs up to its limit. Where units
/// are gathered, translation blocks have a limit too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    data_limit: u32,
    map_limit: u32,
    space: UnitSpace,
    slots_per_page: u32,
}

impl Layout {
    /// Gives the data what it needs at least, then the translation pages, then lets both have
    /// slack: a sixteenth of what is left, or as much again as they need, to translation pages, unless
    /// `ftl.translation_blocks` says how many these have.
    ///
    /// # Errors
    /// Blocks needed per chip, and blocks there are.
    fn new(settings: &Settings, on_flash: bool) -> Result<Layout, (u64, u64)> {
        let flash = &settings.flash;
        let slots_per_page = flash.page_bytes / settings.ftl.logical_page_bytes;
        let user = settings.user_pages();
        let chips = u64::from(flash.chips());
        let blocks = flash.blocks_per_chip();
        let reserve = settings.ftl.gc_free_blocks;
        let live = user.div_ceil(chips);
        // Trims take no room until there are some; then all their units may come to lie on one chip.
        let all = live + 2 * trim_units(settings);
        let data_least = log::blocks_at_least(all, flash.pages_per_block, slots_per_page, reserve);
        let data_wanted = log::blocks_wanted(live, flash.pages_per_block, slots_per_page, reserve);
        let space = UnitSpace::new(settings);
        let map_least = if on_flash { map_blocks_at_least(settings, space) } else { 0 };
        let own = settings.ftl.translation_blocks.filter(|_| gathers(settings));
        let own = own.map(|blocks| u64::from(blocks).div_ceil(chips));
        let needed = data_least + own.map_or(map_least, |own| own.max(map_least));
        if needed > blocks {
            return Err((needed, blocks));
        }
        let map_blocks = if on_flash {
            let left = blocks.saturating_sub(data_wanted.max(data_least) + map_least);
            own.unwrap_or(map_least + (left / 16).max(left.min(map_least) / 2))
        } else {
            0
        };
        Ok(Layout {
            data_limit: (blocks - map_blocks) as u32,
            map_limit: map_blocks as u32,
            space,
            slots_per_page,
        })
    }
}

/// LPNs of a unit of trims: a bit each.
fn lpns_per_unit(settings: &Settings) -> u64 {
    u64::from(settings.ftl.logical_page_bytes) * 8
}

fn trim_units(settings: &Settings) -> u64 {
    settings.user_pages().div_ceil(lpns_per_unit(settings))
}

/// Blocks of each chip that translation pages need.
fn map_blocks_at_least(settings: &Settings, space: UnitSpace) -> u64 {
    let flash = &settings.flash;
    let chips = u64::from(flash.chips());
    if gathers(settings) {
        // The last block takes the directory while another is collected.
        let live = u64::from(space.units) + u64::from(space.directory_slots);
        (log::blocks_at_least(live, flash.pages_per_block, space.per_page, 1) + 1).div_ceil(chips)
    } else {
        log::blocks_at_least(u64::from(space.units).div_ceil(chips), flash.pages_per_block, 1, 1)
    }
}

fn too_small(settings: &Settings, needed: u64, blocks: u64, on_flash: bool) -> Contradiction {
    let mut more = settings.clone();
    let mut fits = |percent: &u64| {
        more.ftl.over_provisioning_ppm = percent * 10_000;
        more.user_pages() > 0 && Layout::new(&more, on_flash).is_ok()
    };
    let percent = (settings.ftl.over_provisioning_ppm / 10_000 + 1..100).find(|percent| fits(percent));
    let advice = percent.map_or(String::new(), |percent| format!("withhold {percent}%, or "));
    let pages = if on_flash { ", its translation pages" } else { "" };
    Contradiction {
        key: "ftl.over_provisioning",
        message: format!(
            "too little is withheld: {} needs {needed} blocks per chip for the user's data{pages}, an open block and \
             {} erased for garbage collection, of {blocks} there are; {advice}raise flash.blocks_per_plane",
            settings.ftl.kind, settings.ftl.gc_free_blocks,
        ),
    }
}

/// Checks that the geometry has the blocks this FTL needs.
///
/// # Errors
/// [`Contradiction`] naming `ftl.over_provisioning`.
pub fn check(settings: &Settings, on_flash: bool) -> Result<(), Contradiction> {
    if settings.user_pages() == 0 {
        return Err(Contradiction {
            key: "ftl.over_provisioning",
            message: "nothing is left for the user; withhold less or make the flash larger".into(),
        });
    }
    match Layout::new(settings, on_flash) {
        Ok(_) => own_blocks(settings),
        Err((needed, blocks)) => Err(too_small(settings, needed, blocks, on_flash)),
    }
}

/// Checks that the translation blocks asked for are enough.
fn own_blocks(settings: &Settings) -> Result<(), Contradiction> {
    let Some(blocks) = settings.ftl.translation_blocks else { return Ok(()) };
    if !gathers(settings) {
        return Ok(());
    }
    let chips = u64::from(settings.flash.chips());
    let least = map_blocks_at_least(settings, UnitSpace::new(settings));
    if u64::from(blocks).div_ceil(chips) >= least {
        return Ok(());
    }
    let message = format!(
        "{blocks} blocks do not hold the mapping, its directory, an open and an erased block; {} are needed",
        (least - 1) * chips + 1
    );
    Err(Contradiction { key: "ftl.translation_blocks", message })
}

/// The layout of checked settings, and the logs of user data and of translation pages.
fn shapes(settings: &Settings, on_flash: bool) -> (Layout, [Shape; 2]) {
    let layout = Layout::new(settings, on_flash).expect("the settings were checked");
    let data = Shape {
        chips: settings.flash.chips(),
        limit: layout.data_limit,
        pages_per_block: settings.flash.pages_per_block,
        slots_per_page: layout.slots_per_page,
        owners: (settings.user_pages() + trim_units(settings)) as u32,
        trim_units: trim_units(settings) as u32,
        lpns_per_unit: lpns_per_unit(settings) as u32,
        reserve: settings.ftl.gc_free_blocks,
        gc: Cause::Gc,
        serial: false,
    };
    let serial = gathers(settings);
    let map = Shape {
        limit: if serial { layout.map_limit * data.chips } else { u32::MAX },
        slots_per_page: layout.space.per_page,
        owners: if on_flash { layout.space.units + layout.space.directory_slots } else { 0 },
        trim_units: 0,
        reserve: u32::from(on_flash),
        gc: Cause::GcMap,
        serial,
        ..data
    };
    (layout, [data, map])
}

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
    pub fn new(
        settings: &Settings,
        check: bool,
        work: &mut Work,
        translation: impl FnOnce(&Settings, u32) -> T,
    ) -> PageMapped<T> {
        let flash = &settings.flash;
        let (layout, [data, map]) = shapes(settings, T::ON_FLASH);
        let erases = flash.pe_cycles as u32;
        let mut pool = BlockPool::new(
            flash.chips(),
            flash.blocks_per_chip() as u32,
            erases,
            settings.ftl.wear_threshold,
            flash.program_ns,
            Speeds::new(flash, settings.seed, erases),
        );
        let data = Log::new(data, settings, &mut pool, check);
        let pages = TranslationPages::new(map, settings, &mut pool, check && T::ON_FLASH, work);
        work.reset();
        let translation = translation(settings, layout.space.units);
        PageMapped::assemble(settings, &layout, (data, pages, pool), translation)
    }

    fn assemble(
        settings: &Settings,
        layout: &Layout,
        (data, pages, pool): (Log, TranslationPages, BlockPool),
        translation: T,
    ) -> PageMapped<T> {
        PageMapped {
            data,
            pages,
            pool,
            translation,
            read_modify_write: settings.ftl.read_modify_write,
            host_flush_mappings: flushes_mappings(settings),
            space: if T::ON_FLASH { layout.space } else { UnitSpace::default() },
            lpns: settings.user_pages() as u32,
            by_page: Divider::new(layout.slots_per_page),
            host_slots: 0,
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

    #[inline]
    fn translate(&mut self, lpn: u32, write: bool, work: &mut Work) -> u32 {
        let mut context = Context { data: &self.data, pages: &mut self.pages, pool: &mut self.pool, work };
        let hit = self.translation.translate(lpn, write, &mut context);
        self.pages.stats.hits += u64::from(hit);
        self.pages.stats.misses += u64::from(!hit);
        u32::from(!hit)
    }

    /// Reads `count` logical pages that share the NAND page of `lpn`'s data.
    #[inline]
    fn read_data(&mut self, lpn: u32, count: u32, work: &mut Work) {
        match self.data.slot(lpn) {
            NONE => work.read_part(self.data.home(lpn), Cause::Host, count),
            slot if self.data.buffered(slot) => (),
            slot => work.read_part(self.data.slot_chip(slot), Cause::Host, count),
        }
    }

    /// How many logical pages from `lpn` on, at most up to `end`, lie in one NAND page.
    fn together(&self, lpn: u32, end: u32) -> u32 {
        let page = |lpn| match self.data.slot(lpn) {
            NONE => (true, self.by_page.div(lpn)),
            slot => (false, self.data.slot_page(slot)),
        };
        let first = page(lpn);
        (lpn + 1..end).take_while(|&next| page(next) == first).count() as u32 + 1
    }

    #[inline]
    fn write_data(&mut self, lpn: u32, work: &mut Work) {
        self.host_slots += 1;
        self.append(lpn, Cause::Host, work);
    }

    /// Makes the trims so far durable ([`super::log`]).
    fn state_trims(&mut self, work: &mut Work) {
        if self.data.units_due() == 0 {
            return;
        }
        // One chain: a unit says of data that it is there, so the data is there first. From the end,
        // since a collection may write some of them meanwhile.
        for at in (0..self.data.units_due()).rev() {
            if let Some(unit) = self.data.unit_due(at) {
                self.append(unit, Cause::Map, work);
                self.data.hold_unit(unit);
            }
        }
        self.data.flush(&mut self.pool, work);
        self.data.units_written(work);
    }

    /// Writes a new version of an LPN, or of a unit of trims.
    #[inline]
    fn append(&mut self, owner: u32, cause: Cause, work: &mut Work) {
        let PageMapped { data, pages, pool, translation, .. } = self;
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
        translation.settle(&mut Context { data, pages, pool, work });
    }
}

impl<T: Translation + Serialize> FlashTranslation for PageMapped<T> {
    fn lay(&mut self, lpns: &mut dyn Iterator<Item = u32>, work: &mut Work) {
        for lpn in lpns {
            debug_assert_eq!(self.data.slot(lpn), NONE, "laid twice");
            let PageMapped { data, pages, pool, .. } = self;
            data.append(lpn, Cause::Host, pool, work, &mut |_| unreachable!("collection while laying"));
            pages.lay(lpn, data, pool, work);
            self.host_slots += 1;
            work.clear();
        }
        if self.pages.log().is_serial() {
            self.pages.finish_page(&mut self.pool, work);
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
        let end = request.first + request.pages;
        let mut misses = 0;
        let mut read_up_to = request.first;
        for lpn in request.first..end {
            work.chain_for(lpn);
            misses += self.translate(lpn, false, work);
            if lpn >= read_up_to {
                let count = if self.by_page.get() == 1 { 1 } else { self.together(lpn, end) };
                self.read_data(lpn, count, work);
                read_up_to = lpn + count;
            }
        }
        misses
    }

    fn write(&mut self, request: Request, work: &mut Work) -> u32 {
        let last = request.first + request.pages - 1;
        let mut misses = 0;
        for lpn in request.first..=last {
            work.chain_for(lpn);
            misses += self.translate(lpn, true, work);
            let partial =
                (lpn == request.first && request.head_partial) || (lpn == last && request.tail_partial);
            if partial && self.read_modify_write {
                self.read_data(lpn, 1, work);
            }
            self.write_data(lpn, work);
        }
        misses
    }

    fn trim(&mut self, request: Request, work: &mut Work) -> u32 {
        let mut misses = 0;
        for lpn in request.first..request.first + request.pages {
            work.chain_for(lpn);
            misses += self.translate(lpn, true, work);
            self.data.trim(lpn);
        }
        misses
    }

    fn flush(&mut self, work: &mut Work) {
        let PageMapped { data, pages, pool, translation, .. } = self;
        data.flush(pool, work);
        if self.host_flush_mappings {
            translation.flush(&mut Context { data, pages, pool, work });
        }
        self.state_trims(work);
    }

    fn prefetch(&mut self, page: u32, needs: &mut dyn Iterator<Item = Request>, work: &mut Work) {
        self.missing.clear();
        self.seen.reset();
        let first = u64::from(page) * u64::from(self.pages.entries());
        let end = (first + u64::from(self.pages.entries())).min(u64::from(self.lpns)) as u32;
        for need in needs {
            for lpn in need.first..end.min(need.first + need.pages) {
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
                Context { data: &self.data, pages: &mut self.pages, pool: &mut self.pool, work };
            self.translation.prefetch(page, &self.missing, &mut context);
            work.fence();
        }
    }

    fn write_back(&mut self, work: &mut Work) -> bool {
        self.translation.write_back(&mut Context {
            data: &self.data,
            pages: &mut self.pages,
            pool: &mut self.pool,
            work,
        })
    }

    fn has_data(&self, lpn: u32) -> bool {
        self.data.slot(lpn) != NONE
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
            let owners = [self.pool.is_free(block), self.data.has(block), self.pages.log().has(block)];
            if owners.iter().filter(|&&has| has).count() != 1 {
                return Err(format!("block {block}: free, data, translation are {owners:?}"));
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

//! Page-mapped FTLs: one log of user data, resolved by an exchangeable mapping cache.

mod durable;
pub mod layout;
mod recover;
mod serve;
mod told;

use std::io;

use crate::config::Contradiction;
use crate::flash::media::{Media, Tape};
use crate::flash::variation::Speeds;
use crate::flash::{Cause, Work};
use crate::ftl::background::GcBackground;
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::log::Log;
use crate::ftl::map::context::Context;
use crate::ftl::map::pages::{IsDirty, MapStats, TranslationPages};
use crate::ftl::map::translation::Translation;
use crate::ftl::map::units::{self, UnitSpace};
use crate::ftl::recovery::{Flaw, Recovery};
use crate::ftl::settings::Settings;
use crate::ftl::settings::{HostFlush, PartialWrite};
use crate::ftl::{FlashTranslation, Prepare, wear};
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, Divider, NONE};
use layout::{Layout, shapes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Whether a host's flush is a mapping flush.
fn flushes_mappings(settings: &Settings) -> bool {
    settings.ftl.host_flush == HostFlush::Mapping && settings.ftl.flush_bytes.is_some()
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
            read_modify_write: settings.ftl.partial_write == PartialWrite::Rmw,
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

impl<T: Translation + Serialize + DeserializeOwned> FlashTranslation for PageMapped<T> {
    const MAPS_ON_FLASH: bool = T::ON_FLASH;
    const IS_HYBRID: bool = false;

    fn new(settings: &Settings, check: bool, work: &mut Work) -> PageMapped<T> {
        let flash = &settings.flash;
        let (layout, [data, map]) = shapes(settings, T::ON_FLASH);
        let erases = flash.pe_cycles as u32;
        let mut pool = BlockPool::new(
            flash.units(),
            flash.blocks_per_unit() as u32,
            erases,
            settings.ftl.wear_leveling.map(|leveling| leveling.threshold),
            flash.program_ns,
            Speeds::new(flash, settings.seed, erases),
        );
        pool.withhold(settings);
        let data = Log::new(data, settings, &mut pool, check);
        let pages = TranslationPages::new(map, settings, &mut pool, check && T::ON_FLASH, work);
        work.reset();
        PageMapped::assemble(settings, &layout, (data, pages, pool))
    }

    fn load(settings: &Settings, check: bool, from: &mut Decoder) -> Result<PageMapped<T>, Damage> {
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
        ftl.read_modify_write = settings.ftl.partial_write == PartialWrite::Rmw;
        ftl.host_flush_mappings = flushes_mappings(settings);
        ftl.missing = Vec::with_capacity(layout.space.entries as usize);
        Ok(ftl)
    }

    fn recover(
        settings: &Settings,
        media: &Media,
        tape: (&Tape, Flaw),
        work: &mut Work,
    ) -> Result<(PageMapped<T>, Recovery), String> {
        recover::recover(settings, media, tape, work)
    }

    fn check(settings: &Settings) -> Result<(), Contradiction> {
        T::check(settings)?;
        units::check(settings, T::UNIT_KEY)?;
        layout::check(settings, T::ON_FLASH)
    }

    fn keeps_trims(settings: &Settings) -> bool {
        layout::keeps_trims(settings, T::ON_FLASH)
    }

    fn gathers(settings: &Settings) -> bool {
        T::gathers(settings)
    }

    fn unit_bytes(settings: &Settings) -> u32 {
        T::unit_bytes(settings)
    }
}

impl<T: Translation + Serialize> Prepare for PageMapped<T> {
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

    fn collect_in_background(&mut self, how: GcBackground) {
        self.background = Some(how);
        self.data.collect_in_background();
        // Blocks filled one at a time are collected when one is needed.
        if T::ON_FLASH && !self.pages.log().is_serial() {
            self.pages.log_mut().collect_in_background();
        }
    }

    fn save(&self, out: &mut Encoder) -> io::Result<()> {
        out.value(self)?;
        self.data.save_map(out)?;
        self.pages.save_map(out)
    }
}

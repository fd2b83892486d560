//! Page-mapped FTLs: one log of user data, whose addresses an exchangeable mapping cache resolves.

mod durable;
mod hand_out;
mod handed;
mod inspect;
pub mod layout;
mod recover;
mod room;
mod serve;

use std::io;

use crate::config::Contradiction;
use crate::flash::media::{Media, Tape};
use crate::flash::{ByCause, Cause, Cells, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::log::{Asked, Keeper, Log, Under};
use crate::ftl::map::context::Context;
use crate::ftl::map::pages::{MapStats, TranslationPages};
use crate::ftl::map::translation::Translation;
use crate::ftl::map::units::{self, UnitSpace};
use crate::ftl::recovery::{Flaw, Recovery};
use crate::ftl::settings::GcBackground;
use crate::ftl::settings::Settings;
use crate::ftl::settings::{HostFlush, PartialWrite};
use crate::ftl::slots::Slots;
use crate::ftl::{FlashTranslation, Prepare, wear};
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, Divider};
use handed::Handed;
use layout::{Layout, shapes};
use recover::Rebuilt;

/// Whether a host's flush is a mapping flush.
fn flushes_mappings(settings: &Settings) -> bool {
    settings.ftl.host_flush == HostFlush::Mapping && settings.ftl.flush_bytes.is_some()
}

/// Returns the erase blocks of a new device, with the spare ones withheld.
fn full_pool(settings: &Settings) -> BlockPool {
    let units = &settings.in_reclaim_units();
    let mut pool = BlockPool::new(units, settings.ftl.wear_leveling.map(|leveling| leveling.threshold));
    pool.withhold(settings);
    pool
}

/// A page-mapped FTL with the mapping cache `T`.
#[derive(Clone, Debug)]
pub struct PageMapped<T> {
    data: Log,
    /// The slots in which the data lies.
    slots: Slots,
    pages: TranslationPages,
    pool: BlockPool,
    translation: T,
    read_modify_write: bool,
    /// Whether a host's flush is a mapping flush, if the FTL has mapping flushes.
    host_flush_mappings: bool,
    space: UnitSpace,
    lpns: u32,
    by_page: Divider,
    /// Number of logical pages that the host wrote.
    host_slots: u64,
    /// Set when a LUN has no spare block to replace a worn one: from then on no write, trim or flush is served.
    read_only: bool,
    /// Number of requests refused during the run.
    refused: u64,
    /// How garbage is collected in the background; set only during a run.
    background: Option<GcBackground>,
    /// A deliberate defect, for tests.
    flaw: Flaw,
    /// What the host holds of the map, if it holds anything.
    handed: Option<Box<Handed>>,
    /// LPNs that a prefetch brings in, in the order in which they are needed; `seen` marks their places in the
    /// translation page.
    missing: Vec<u32>,
    seen: Bits,
}

/// Tells a mapping cache about copies of user data, and notes in `stirred` whether there is any; trim pages have no
/// mapping.
fn tell<T: Translation>(
    translation: &mut T,
    pages: &TranslationPages,
    copies: &[(u32, u32)],
    stirred: &mut bool,
) {
    if T::ON_FLASH {
        for &(_, lpn) in copies.iter().filter(|&&(_, owner)| owner < pages.lpns()) {
            translation.moved(lpn, pages);
            *stirred = true;
        }
    }
}

/// What the log of user data tells, and asks for: the mapping.
struct Above<'a, T> {
    pages: &'a mut TranslationPages,
    translation: &'a mut T,
    /// Whether mappings have moved, so that the mapping cache has something to settle.
    stirred: bool,
    /// Before time 0, what has moved, to be told to the mapping cache later.
    laid: Option<&'a mut Vec<u32>>,
}

impl<T: Translation> Keeper for Above<'_, T> {
    fn moved(&mut self, copies: &[(u32, u32)]) {
        let lpns = self.pages.lpns();
        match &mut self.laid {
            Some(laid) => laid.extend(copies.iter().map(|&(_, owner)| owner).filter(|&owner| owner < lpns)),
            None => tell(self.translation, self.pages, copies, &mut self.stirred),
        }
    }

    fn give_back(&mut self, lun: u32, pool: &mut BlockPool, work: &mut Work) {
        if T::ON_FLASH {
            // The translation pages have borrowed the block that the data may still take.
            self.pages.reclaim(lun, pool, work);
        }
    }
}

impl<T: Translation> PageMapped<T> {
    fn assemble(
        settings: &Settings,
        layout: &Layout,
        ((data, slots), pages, pool): ((Log, Slots), TranslationPages, BlockPool),
    ) -> PageMapped<T> {
        PageMapped {
            data,
            slots,
            pages,
            pool,
            translation: T::new(settings, &layout.space),
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
            handed: None,
            missing: Vec::with_capacity(layout.space.entries as usize),
            seen: Bits::new(layout.space.entries as usize),
        }
    }

    /// Returns the mapping cache, and the context in which it works.
    #[inline(always)] // called for every translation
    fn translation<'a>(&'a mut self, work: &'a mut Work) -> (&'a mut T, Context<'a>) {
        let PageMapped { data, slots, pages, pool, translation, .. } = self;
        (translation, Context { data, newest: slots, pages, pool, work, ahead: 0 })
    }

    /// Resolves an LPN that has `ahead` more LPNs after it in its request; returns the number of misses.
    #[inline]
    fn translate(&mut self, lpn: u32, ahead: u32, write: bool, work: &mut Work) -> u32 {
        let (translation, context) = self.translation(work);
        let hit = translation.translate(lpn, write, &mut Context { ahead, ..context });
        let MapStats { hits, misses, .. } = &mut self.pages.stats;
        *(if hit { hits } else { misses }) += 1;
        u32::from(!hit)
    }

    /// Writes a new version of an LPN, or of a trim page.
    #[inline(always)] // called for every page
    fn append(&mut self, asked: Asked, work: &mut Work) {
        let PageMapped { data, slots, pages, pool, translation, .. } = self;
        let mut stirred = T::SETTLES_ALWAYS;
        if T::ON_FLASH {
            let mut above = Above { pages, translation, stirred, laid: None };
            data.write(Under { slots, pool, work, keeper: Some(&mut above) }, asked);
            stirred = above.stirred;
        } else {
            data.write(Under { slots, pool, work, keeper: None }, asked);
        }
        if let Some(lun) = pool.uneven()
            && data.can_relocate(lun)
        {
            wear::level(lun, (data, pages), (slots, pool, work), &mut |copies, pages| {
                tell(translation, pages, copies, &mut stirred);
            });
        }
        if stirred {
            translation.settle(&mut Context { data, newest: slots, pages, pool, work, ahead: 0 });
        }
        if pool.is_exhausted() {
            self.turn_read_only(work);
        }
    }

    /// Turns the device read-only, because a block is past its limit and has no successor: writes back everything that
    /// is only in RAM, so that reads find what they need, and serves only reads from now on.
    #[cold]
    fn turn_read_only(&mut self, work: &mut Work) {
        if self.read_only {
            return;
        }
        work.chain();
        self.data.flush(&mut self.slots, work);
        loop {
            work.chain();
            let (translation, mut context) = self.translation(work);
            if !translation.write_back(&mut context) {
                break;
            }
        }
        self.read_only = true;
    }

    /// Turns the device read-only if a block is past its limit and has no successor.
    #[inline]
    fn look_for_exhaustion(&mut self, work: &mut Work) {
        if self.pool.is_exhausted() {
            self.turn_read_only(work);
        }
    }

    /// Counts a request that a read-only device refuses, in whole or in part.
    #[cold]
    fn refuse(&mut self) {
        self.refused += 1;
    }
}

impl<T: Translation> FlashTranslation for PageMapped<T> {
    const MAPS_ON_FLASH: bool = T::ON_FLASH;
    const HANDS_OUT: bool = T::HAS_ENTRIES;

    fn new(settings: &Settings, check: bool, work: &mut Work) -> PageMapped<T> {
        let (layout, [data, map]) = shapes::<T>(settings);
        let mut pool = full_pool(settings);
        let settings = &settings.in_reclaim_units();
        let mut slots = data.slots(&pool);
        let data = Log::new(data, settings, (&mut slots, &mut pool), check);
        let check = check && T::ON_FLASH;
        let pages = TranslationPages::new((map, &layout.space), settings, &mut pool, check, work);
        work.reset();
        PageMapped::assemble(settings, &layout, ((data, slots), pages, pool))
    }

    fn load(settings: &Settings, check: bool, from: &mut Decoder) -> Result<PageMapped<T>, Damage> {
        let (layout, [data, map]) = shapes::<T>(settings);
        let mut pool = full_pool(settings);
        let mut claims = pool.load(from)?;
        let settings = &settings.in_reclaim_units();
        let mut slots = data.slots(&pool);
        let mut data = Log::load(data, settings, (&mut slots, &mut pool, &mut claims), check, from)?;
        data.use_cache();
        let check = check && T::ON_FLASH;
        let pages =
            TranslationPages::load((map, &layout.space), settings, (&mut pool, &mut claims), check, from)?;
        pool.retire(&claims)?;
        let mut ftl = PageMapped::<T>::assemble(settings, &layout, ((data, slots), pages, pool));
        let PageMapped { slots, pages, translation, .. } = &mut ftl;
        translation.load(pages, from)?;
        pages.agree(slots, &|lpn, pages| translation.dirty(lpn, pages))?;
        for (lpn, slot) in slots.mapped().filter(|(lpn, _)| *lpn < pages.lpns()) {
            translation.verify(lpn, slot).map_err(Damage::Corrupt)?;
        }
        Ok(ftl)
    }

    fn recover(
        settings: &Settings,
        media: &Media,
        tape: (&Tape, Flaw),
        work: &mut Work,
    ) -> Result<(PageMapped<T>, Recovery), String> {
        let Rebuilt { layout, data, pages, pool, recovery } =
            recover::recover::<T>(settings, media, tape, work)?;
        let read_only = pool.is_exhausted();
        let ftl = PageMapped::<T>::assemble(&settings.in_reclaim_units(), &layout, (data, pages, pool));
        Ok((PageMapped { read_only, flaw: tape.1, ..ftl }, recovery))
    }

    fn check(settings: &Settings) -> Result<(), Contradiction> {
        T::check(settings)?;
        units::check(settings, T::unit_bytes(settings), T::UNIT_KEY)?;
        layout::check::<T>(settings)
    }

    fn keeps_trims(settings: &Settings) -> bool {
        layout::keeps_trims::<T>(settings)
    }

    fn gathers(settings: &Settings) -> bool {
        T::gathers(settings)
    }

    fn served_by(settings: &Settings) -> Option<&'static str> {
        T::served_by(settings)
    }

    fn unit_bytes(settings: &Settings) -> u32 {
        T::unit_bytes(settings)
    }
}

impl<T: Translation> Prepare for PageMapped<T> {
    fn prefill(&mut self, mut lpns: &[u32], work: &mut Work) {
        self.slots.expect_data();
        let mut moved = Vec::new();
        // If the translation pages need not be told, most data is put in place many pages at a time.
        let tells = T::ON_FLASH && self.pages.hears_of_data();
        loop {
            let PageMapped { data, slots, pages, pool, translation, .. } = self;
            if !tells {
                data.prefill(slots, &mut lpns, work);
            }
            let Some(&lpn) = lpns.split_off_first() else { break };
            let mut above = Above { pages, translation, stirred: false, laid: Some(&mut moved) };
            let under = Under { slots, pool, work, keeper: Some(&mut above) };
            data.write(under, Asked::of(lpn, Cause::Host));
            moved.push(lpn);
            let mut context = Context { data, newest: slots, pages, pool, work, ahead: 0 };
            moved.drain(..).for_each(|lpn| context.prefill(lpn));
            if self.pool.is_exhausted() {
                return self.turn_read_only(work);
            }
            // Preparation is not simulated, and its steps would soon be too many.
            if work.steps().len() >= 512 {
                work.clear();
            }
        }
        work.clear();
        if self.pages.log().shape().serial {
            self.translation(work).1.finish_page();
            work.clear();
        }
        self.translation.count_from(&work.counts().programs);
    }

    fn close_unwritten(&mut self) {
        self.data.stock.close_unwritten(&mut self.pool);
    }

    fn start(&mut self) {
        self.translation.count_from(&ByCause::default());
        self.host_slots = 0;
        self.data.forget_numbers();
        self.data.use_cache();
        self.pages.log_mut().forget_numbers();
        self.pages.stats = MapStats::default();
    }

    fn serve_host_map(&mut self, subregion: u32) {
        let kept = subregion > 0 && T::ON_FLASH;
        self.slots.note_changes(kept);
        self.handed = kept.then(|| Box::new(Handed::new(self.lpns, subregion)));
    }

    fn choose_by_speed(&mut self, placement: &str, settings: &Settings, cells: &Cells) {
        self.pool.sort_by_speed(settings.ftl.placements.vios.unhurried, cells);
        self.data.place_by(placement, settings, Some(cells));
    }

    fn collect_in_background(&mut self, how: GcBackground) {
        self.background = Some(how);
        self.data.collect_in_background();
        // Translation blocks that are filled one at a time are collected when a block is needed.
        if T::ON_FLASH && !self.pages.log().shape().serial {
            self.pages.log_mut().collect_in_background();
        }
    }

    fn save(&self, out: &mut Encoder) -> io::Result<()> {
        self.pool.save(out)?;
        self.data.save(&self.slots, out)?;
        self.pages.save(out)?;
        self.translation.save(out)
    }
}

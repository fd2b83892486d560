//! What every FTL must guarantee.

use std::collections::BTreeSet;

use ftlab_core::flash::{Cause, Step, Work};
use ftlab_core::ftl::hybrid::frame::Hybrid;
use ftlab_core::ftl::hybrid::logs::Logs;
use ftlab_core::ftl::map::translation::Translation;
use ftlab_core::ftl::page_mapped::PageMapped;
use ftlab_core::ftl::settings::PartialWrite;
use ftlab_core::ftl::{self, FlashTranslation};
use ftlab_core::request::Pages;
use ftlab_core::settings::{Endurance, Settings};
use ftlab_core::util::codec::{Decoder, Encoder};
use ftlab_core::workload::Op;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::driver::{Driver, whole};
use crate::stack::{hybrid_device, programming, settings, slc_caches, superblocks};

/// Tests a registered FTL.
///
/// # Panics
/// If it breaks a promise of [`FlashTranslation`] or of the traits that it builds on, or no FTL has that
/// name.
pub fn ftl(name: &str) {
    ftl::typed(name, Registered(name));
}

/// Tests a mapping cache from another crate, with the settings of dftl. See [`ftl()`].
///
/// ```
/// use ftlab_core::ftl::map::page::FullMap;
///
/// // The whole map in RAM.
/// ftlab_conformance::mapping_cache_of::<FullMap>();
/// ```
///
/// # Panics
/// If the FTL with this cache breaks a promise.
pub fn mapping_cache_of<T: Translation>() {
    Suite::<PageMapped<T>>::run("dftl");
}

/// Tests log blocks from another crate, with the settings of fast. See [`ftl()`].
///
/// # Panics
/// If the hybrid FTL with these log blocks breaks a promise.
pub fn log_blocks_of<L: Logs>() {
    Suite::<Hybrid<L>>::run("fast");
}

struct Registered<'a>(&'a str);

impl ftl::Typed for Registered<'_> {
    fn ftl<F: FlashTranslation>(self) {
        Suite::<F>::run(self.0);
    }
}

/// Runs the checks of an FTL, with the settings of a registered one of its kind.
struct Suite<F>(std::marker::PhantomData<F>);

impl<F: FlashTranslation> Suite<F> {
    fn run(kind: &str) {
        let cached = || if F::MAPS_BLOCKS { Vec::new() } else { slc_caches(kind).to_vec() };
        for settings in programming(kind).into_iter().chain(cached()).chain(superblocks(kind)) {
            for seed in 0..6 {
                Self::newest_versions(&settings, seed);
                Self::goes_on_when_loaded(&settings, seed);
            }
            Self::driver(&settings).overwrite(1, false);
            Self::driver(&settings).overwrite(2, true);
        }
        Self::reads_what_is_covered_in_part(kind);
        Self::counts_what_it_refuses(kind);
        if !F::MAPS_BLOCKS {
            let bounded = Self::roomy(kind);
            let mut unbounded = bounded.clone();
            unbounded.ftl.mapping_cache_bytes = None;
            let fit = [bounded, unbounded].into_iter().filter(|settings| F::check(settings).is_ok());
            fit.for_each(|settings| Self::lists_what_is_cached(&settings));
        }
    }

    fn driver(settings: &Settings) -> Driver<F> {
        F::check(settings).expect("the settings fit");
        let mut work = settings.work();
        let mut ftl = F::new(settings, true, &mut work);
        ftl.start();
        Driver::new(ftl, work)
    }

    /// Under a random load every LPN resolves to its newest version, and every invariant holds after each step.
    fn newest_versions(settings: &Settings, seed: u64) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut driver = Self::driver(settings);
        for _ in 0..300 {
            driver.step(random.random_range(0..16), random.random(), random.random_range(1..8));
            driver.verify();
        }
    }

    /// An FTL loaded from a saved state equals what was saved and continues in the same way.
    fn goes_on_when_loaded(settings: &Settings, seed: u64) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let Driver { mut ftl, mut work, .. } = Self::driver(settings);
        let lpns = ftl.logical_pages();
        ftl.prefill(&Vec::from_iter(0..lpns), &mut work);
        for _ in 0..2 * lpns {
            ftl.write(whole(random.random_range(0..lpns), 1), &mut work);
            work.clear();
        }
        ftl.start();
        let bytes = Self::saved(&ftl);
        let mut loaded = F::load(settings, true, &mut Decoder::new(&mut &bytes[..])).expect("it is whole");
        assert!(bytes == Self::saved(&loaded), "saved again it is the same");
        loaded.verify().expect("every invariant holds");
        loaded.start();
        let what = |step: &Step| (step.lun, step.operation, step.page, step.after);
        let [mut work, mut again] = [(), ()].map(|()| settings.work());
        for _ in 0..2 * lpns {
            let request = whole(random.random_range(0..lpns), 1);
            let reads = random.random_bool(0.4);
            for (ftl, work) in [(&mut ftl, &mut work), (&mut loaded, &mut again)] {
                work.clear();
                if reads {
                    ftl.read(request, work)
                } else {
                    ftl.write(request, work)
                };
            }
            assert!(work.steps().iter().map(what).eq(again.steps().iter().map(what)), "it goes on otherwise");
        }
    }

    fn saved(ftl: &F) -> Vec<u8> {
        let mut bytes = Vec::new();
        ftl.save(&mut Encoder::new(&mut bytes)).expect("memory takes everything");
        bytes
    }

    /// Makes a device with three kinds of logical page: with data beforehand, without data, and beyond what a
    /// test writes.
    fn roomy(kind: &str) -> Settings {
        if F::MAPS_BLOCKS {
            return hybrid_device(kind, 4, 20, 5);
        }
        let mut settings = settings();
        settings.ftl.kind = kind.into();
        // A translation page has 512 entries: the cache has room for one page and 100 more entries.
        settings.ftl.mapping_cache_bytes = Some(4096 + 100 * 8);
        settings
    }

    /// A page that has data and is covered only in part is read before it is written, if `ftl.partial_write` says so;
    /// no other page is.
    fn reads_what_is_covered_in_part(kind: &str) {
        let host_reads = |work: &Work| work.counts().reads[Cause::Host];
        for rmw in [false, true] {
            let mut settings = Self::roomy(kind);
            settings.ftl.partial_write = if rmw { PartialWrite::Rmw } else { PartialWrite::Ignore };
            let Driver { mut ftl, mut work, .. } = Self::driver(&settings);
            ftl.write(whole(8, 3), &mut work);
            for (head_partial, tail_partial) in [(false, false), (true, false), (false, true), (true, true)] {
                for first in [8, 40] {
                    let before = host_reads(&work);
                    ftl.write(Pages { head_partial, tail_partial, ..whole(first, 3) }, &mut work);
                    ftl.trim(whole(40, 3), &mut work);
                    let parts = u64::from(head_partial) + u64::from(tail_partial);
                    let expected = if rmw && first == 8 { parts } else { 0 };
                    assert_eq!(host_reads(&work) - before, expected, "page {first}");
                }
            }
        }
    }

    /// When worn out, an FTL refuses writes and trims, and counts each of them.
    fn counts_what_it_refuses(kind: &str) {
        let mut settings = Self::roomy(kind);
        settings.flash.endurance = Endurance::Cycles(3);
        settings.flash.blocks_per_plane = 100;
        let mut driver = Self::driver(&settings);
        for at in 0.. {
            driver.operate(Op::Write, at * 29 % 80, 1);
            if driver.ftl.is_read_only() {
                break;
            }
            assert!(at < 1_000_000, "it wears out");
        }
        let Driver { mut ftl, mut work, .. } = driver;
        let before = ftl.refused();
        ftl.trim(whole(3, 2), &mut work);
        ftl.trim(whole(8, 1), &mut work);
        assert_eq!(ftl.refused(), before + 2);
        ftl.write(whole(3, 1), &mut work);
        assert_eq!(ftl.refused(), before + 3);
        ftl.verify().expect("every invariant holds");
    }

    /// The list of cached LPNs equals what is reported one by one, and is no longer than the cache allows:
    /// so schedulers know the same about the mapping cache however they learn it (polled, lru, full).
    fn lists_what_is_cached(settings: &Settings) {
        let Driver { mut ftl, mut work, .. } = Self::driver(settings);
        let mut most = 0;
        for at in 0..400 {
            let first = at * 7919 % (ftl.logical_pages() - 8);
            ftl.write(whole(first, 1 + at % 8), &mut work);
            ftl.read(whole(first / 3, 1), &mut work);
            let mut listed = BTreeSet::new();
            ftl.each_cached(&mut |lpn| _ = listed.insert(lpn));
            let cached: BTreeSet<u32> = (0..ftl.logical_pages()).filter(|&lpn| ftl.cached(lpn)).collect();
            assert!(listed == cached, "{} listed, {} cached", listed.len(), cached.len());
            most = most.max(cached.len());
        }
        let capacity = ftl.cache_capacity();
        let bounded = settings.ftl.mapping_cache_bytes.is_some() && !ftl.map_complete();
        assert_eq!(capacity.is_some(), bounded);
        assert!(capacity.is_none_or(|most_ever| most <= most_ever as usize) && most > 50, "{most} cached");
    }
}

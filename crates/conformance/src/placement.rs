//! What every placement must guarantee.

use ftlab_core::flash::variation::Variation;
use ftlab_core::flash::{Cause, Work};
use ftlab_core::ftl::placement::{self, MOST_FRONTS, Page, Policy, Space, Writable};
use ftlab_core::ftl::settings::StaticLeveling;
use ftlab_core::ftl::{Ftl, Idle, LookUp, Prepare, Serve, check};
use ftlab_core::settings::{GcBackground, Settings};
use ftlab_core::util::codec::{Decoder, Encoder};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::driver::{Driver, whole};
use crate::registered::by_eviction;
use crate::stack::{settings, tiny};

const SPACE: Space = Space { luns: 2, pages: 100, fronts: None };

/// Tests a registered placement: the fronts that it names exist, whatever it was told before; a log that uses it can
/// collect garbage indefinitely, in the foreground or in the background, with wear levelling or without; every LPN
/// resolves to its newest version; and a device that is loaded from a saved state goes on in the same way.
///
/// ```
/// use ftlab_core::flash::Cause;
/// use ftlab_core::ftl::placement::{self, Own, Page, Placement, Space, Writable};
///
/// /// New versions in one block, copies in another.
/// #[derive(Clone, Debug)]
/// struct Apart;
///
/// impl Placement for Apart {
///     fn new(_keys: &Own, _space: Space) -> Apart {
///         Apart
///     }
///     fn fronts(&self) -> u32 {
///         2
///     }
///     fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
///         u32::from(page.cause == Cause::Gc)
///     }
/// }
///
/// placement::register::<Apart>("apart");
/// ftlab_conformance::placement("apart");
/// ```
///
/// # Panics
/// If the placement breaks a promise of [`ftlab_core::ftl::placement::Placement`], or no placement has that name.
pub fn placement(name: &str) {
    for seed in 0..100 {
        names_fronts_that_exist(name, seed);
    }
    for kind in by_eviction() {
        for [background, levels] in [[false, false], [true, false], [false, true]] {
            let settings = device(name, kind, background, levels);
            if settings.ftl.wear_leveling.is_some() && placement::needs(name).speeds {
                continue;
            }
            for seed in 0..3 {
                newest_versions(&settings, seed);
            }
            driver(&settings).overwrite(1, false);
            driver(&settings).overwrite(2, true);
        }
        goes_on_when_loaded(&device(name, kind, false, false));
    }
}

/// Open blocks, which only some fronts have.
struct Blocks(u64, u32);

impl Writable for Blocks {
    fn fronts(&self) -> u64 {
        self.0
    }

    fn first(&self, front: u32) -> (u32, u32) {
        (front, self.1 ^ front)
    }
}

fn names_fronts_that_exist(name: &str, seed: u64) {
    let keys = &settings().ftl.placements;
    let needs = placement::needs(name);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut policy = Policy::new(name, keys, SPACE);
    let fronts = policy.fronts();
    assert!((1..=MOST_FRONTS).contains(&fronts), "{fronts} fronts");
    assert_eq!(fronts, Policy::new(name, keys, Space::default()).fronts(), "of any space as many");
    let mut loaded: Option<Policy> = None;
    for turn in 0..400 {
        if turn == 200 && !needs.speeds {
            let mut again = Policy::new(name, keys, SPACE);
            assert!(again.load(&policy.save()), "seed {seed}: what it saved is its own");
            loaded = Some(again);
        }
        let lpn = random.random_range(0..SPACE.pages);
        let age = if needs.ages { random.random_range(0..1000) } else { u64::MAX };
        let from = random.random_bool(0.8).then(|| random.random_range(0..fronts));
        let page = Page {
            lun: random.random_range(0..SPACE.luns),
            lpn,
            cause: if random.random_bool(0.6) { Cause::Host } else { Cause::Gc },
            stream: random.random_range(0..4),
            age,
            from,
            hurried: random.random_bool(0.3),
        };
        let blocks = match needs.speeds {
            true => {
                Blocks(random.random::<u64>() | 1 << random.random_range(0..64), random.random_range(0..64))
            }
            false => Blocks(u64::MAX, 0),
        };
        let ask = |policy: &mut Policy| match (turn % 8, from) {
            (6, Some(from)) => {
                policy.invalidated(lpn, from, age);
                None
            }
            (7, Some(from)) => {
                policy.collected(from, age);
                None
            }
            _ => Some(policy.front(page, &blocks)),
        };
        let front = ask(&mut policy);
        let exists = |front: u32| match needs.speeds {
            true => blocks.0.checked_shr(front).is_some_and(|rest| rest & 1 != 0),
            false => front < fronts,
        };
        assert!(
            front.is_none_or(exists),
            "seed {seed}: {page:?} goes to front {front:?}, which has no block"
        );
        if let Some(loaded) = &mut loaded {
            assert_eq!(ask(loaded), front, "seed {seed}: another front once it is loaded");
        }
    }
}

/// Returns a tiny device with this placement, and room for its fronts.
fn device(name: &str, kind: &str, background: bool, levels: bool) -> Settings {
    let mut settings = tiny(kind);
    settings.ftl.placement = Some(name.into());
    settings.ftl.wear_leveling = levels.then_some(StaticLeveling { threshold: 2 });
    settings.ftl.gc_background = background.then_some(GcBackground { normal_blocks: 3, step_pages: 2 });
    if placement::needs(name).speeds {
        settings.flash.variation = Some(Variation::default());
        settings.flash.pe_cycles = 12_000;
    }
    while check(&settings).is_err() {
        settings.flash.blocks_per_plane += 5;
        assert!(settings.flash.blocks_per_plane < 1000, "{:?}", check(&settings));
    }
    settings
}

fn begun(settings: &Settings, mut ftl: Ftl, work: Work) -> Driver<Ftl> {
    if settings.allocates_by_speed() {
        ftl.choose_by_speed(settings.placement(), settings, work.cells());
    }
    if let Some(how) = settings.ftl.gc_background {
        ftl.collect_in_background(how);
    }
    Driver::new(ftl, work)
}

fn driver(settings: &Settings) -> Driver<Ftl> {
    let mut work = settings.work();
    let ftl = Ftl::new(settings, true, &mut work);
    begun(settings, ftl, work)
}

fn newest_versions(settings: &Settings, seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut driver = driver(settings);
    for _ in 0..600 {
        driver.step(random.random_range(0..16), random.random(), random.random_range(1..8));
        let lun = random.random_range(0..settings.flash.luns());
        driver.work.clear();
        driver.ftl.background_step(lun, &mut driver.work);
        driver.verify();
    }
}

fn goes_on_when_loaded(settings: &Settings) {
    let saved = |ftl: &Ftl| {
        let mut bytes = Vec::new();
        ftl.save(&mut Encoder::new(&mut bytes)).expect("memory takes everything");
        bytes
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut work = settings.work();
    let mut ftl = Ftl::new(settings, true, &mut work);
    let lpns = ftl.logical_pages();
    ftl.prefill(&Vec::from_iter(0..lpns), &mut work);
    for _ in 0..2 * lpns {
        ftl.write(whole(random.random_range(0..lpns), 1), &mut work);
        work.clear();
    }
    ftl.start();
    let bytes = saved(&ftl);
    let loaded = Ftl::load(settings, true, &mut Decoder::new(&mut &bytes[..])).expect("it is whole");
    assert!(bytes == saved(&loaded), "saved again it is the same");
    let mut both = [ftl, loaded].map(|ftl| begun(settings, ftl, settings.work()));
    for _ in 0..4 * lpns {
        let lpn = random.random_range(0..lpns);
        let slots = both.each_mut().map(|driver| {
            driver.work.clear();
            driver.ftl.write(whole(lpn, 1), &mut driver.work);
            driver.work.steps().iter().map(|step| (step.lun, step.page)).collect::<Vec<_>>()
        });
        assert_eq!(slots[0], slots[1], "loaded it goes on otherwise");
    }
}

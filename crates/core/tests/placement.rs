//! What each placement decides, what the log tells it, and what results say about fronts.

use ftlab_conformance as common;

use common::{checked, settings, tiny, whole};
use ftlab_core::config::Value;
use ftlab_core::config::section::{Section, defaults};
use ftlab_core::flash::{Cause, Work};
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::placement::{self, Own, Page, Placement, Policy, Space, Writable};
use ftlab_core::ftl::settings::StaticLeveling;
use ftlab_core::ftl::{Ftl, check};
use ftlab_core::settings::{GcBackground, Settings};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SPACE: Space = Space { luns: 1, pages: 10, fronts: None };

/// The blocks of placements by classes of data, which may choose any front.
struct Any;

impl Writable for Any {
    fn fronts(&self) -> u64 {
        u64::MAX
    }

    fn first(&self, front: u32) -> (u32, u32) {
        (front, 0)
    }
}

fn written(lpn: u32, age: u64) -> Page {
    Page { lun: 0, lpn, cause: Cause::Host, stream: 0, age, from: None, hurried: false }
}

fn copied(lpn: u32, from: u32, age: u64) -> Page {
    Page { cause: Cause::Gc, from: Some(from), ..written(lpn, age) }
}

/// Makes a placement with these values of its keys; all others have their defaults.
fn policy(name: &str, fronts: Option<u32>, set: &[(&'static str, Value)]) -> Policy {
    let mut values = defaults::<Own>();
    values.extend(set.iter().cloned());
    Policy::new(name, &Own::read(&values), Space { fronts, ..SPACE })
}

#[test]
fn copies_apart() {
    let mut policy = policy("gc-apart", None, &[]);
    assert_eq!([0, 1].map(|front| policy.front_name(front)), ["host", "copies"]);
    let padding = Page { cause: Cause::Pad, ..written(1, 5) };
    let asked = [written(1, 5), padding, copied(1, 0, 5), copied(1, 1, 5)];
    assert_eq!(asked.map(|page| policy.front(page, &Any)), [0, 0, 1, 1]);
}

/// Algorithm 1 of the paper, by hand: l is infinite until 16 blocks of class 1 have been collected, and then their mean
/// lifespan, until 16 more have been collected.
#[test]
fn sepbit_follows_the_papers_algorithm() {
    let mut policy = policy("sepbit", None, &[]);
    let class = |policy: &mut Policy, page: Page| policy.front(page, &Any) + 1;
    let infinite = u64::MAX;
    let early =
        [(written(1, infinite), 2), (written(1, 1 << 60), 1), (copied(1, 0, 9), 3), (copied(1, 1, 9), 4)];
    early.into_iter().for_each(|(page, expected)| assert_eq!(class(&mut policy, page), expected, "{page:?}"));
    assert!(policy.stats().iter().all(|stat| !stat.value.is_finite()));
    for block in 0..16 {
        assert_eq!(class(&mut policy, written(1, 1000)), 1, "{block} blocks of class 1 are not enough");
        (1..6).for_each(|front| policy.collected(front, 7));
        policy.collected(0, if block % 2 == 0 { 90 } else { 110 });
    }
    let late = [(99, 1), (100, 2), (infinite, 2)].map(|(age, class)| (written(1, age), class));
    let old = [(399, 4), (400, 5), (1599, 5), (1600, 6)].map(|(age, class)| (copied(1, 2, age), class));
    let all = late.into_iter().chain(old).chain([(copied(1, 0, 1600), 3)]);
    all.for_each(|(page, expected)| assert_eq!(class(&mut policy, page), expected, "{page:?}"));
    assert_eq!(policy.stats().iter().map(|stat| stat.value).collect::<Vec<_>>(), [100.0, 400.0, 1600.0]);
    (0..15).for_each(|_| policy.collected(0, 10));
    assert_eq!(class(&mut policy, written(1, 50)), 1);
    policy.collected(0, 10);
    assert_eq!([9, 10].map(|age| class(&mut policy, written(1, age))), [1, 2]);
}

/// A page is hot from its fourth write on; each time as many pages are written as there are, the counters are halved.
#[test]
fn hot_cold_counts_and_forgets() {
    let mut hot_cold = policy("hot-cold", None, &[]);
    let mut write = |lpn: u32| hot_cold.front(written(lpn, 1), &Any);
    let (hot, cold, copies) = (0, 1, 2);
    assert_eq!([1, 1, 1, 1, 1, 1].map(&mut write), [cold, cold, cold, hot, hot, hot]);
    assert_eq!([2, 3, 4, 5].map(&mut write), [cold; 4]);
    // Ten pages are written: six becomes three, and the next write makes it four.
    assert_eq!(write(1), hot);
    assert_eq!(hot_cold.front(copied(1, 0, 1), &Any), copies);
    let mut eager = policy(
        "hot-cold",
        None,
        &[("ftl.hot_threshold", Value::Count(2)), ("ftl.hot_decay", Value::Ppm(10_000_000))],
    );
    assert_eq!([1, 1].map(|lpn| eager.front(written(lpn, 1), &Any)), [cold, hot]);
    // A counter ends at 15, which four halvings, one for each hundred writes, bring to zero.
    (0..98).for_each(|_| _ = eager.front(written(1, 1), &Any));
    let mut rest = |count: usize| (0..count).for_each(|_| _ = eager.front(written(2, 1), &Any));
    rest(300);
    assert_eq!([1, 1].map(|lpn| eager.front(written(lpn, 1), &Any)), [cold, hot]);
}

#[test]
fn streams_and_their_copies() {
    let ask = |policy: &mut Policy, stream: u16| policy.front(Page { stream, ..written(1, 1) }, &Any);
    let mut apart = policy("stream", None, &[]);
    assert_eq!(apart.fronts(), 9);
    assert_eq!([0, 1, 7, 8, u16::MAX].map(|stream| ask(&mut apart, stream)), [0, 1, 7, 0, 0]);
    assert_eq!(apart.front(copied(1, 3, 1), &Any), 8);
    assert_eq!([7, 8].map(|front| apart.front_name(front)), ["stream 7", "copies"]);
    let mut kept = policy("stream", Some(3), &[("ftl.copies", Value::Text("kept".into()))]);
    assert_eq!(kept.fronts(), 3);
    assert_eq!([2, 3].map(|stream| ask(&mut kept, stream)), [2, 0]);
    assert_eq!(kept.front(copied(1, 2, 1), &Any), 2);
    assert_eq!(policy("stream", Some(3), &[]).fronts(), 3);
}

/// A placement with a fixed number of fronts says that it needs more than `ftl.fronts`.
#[test]
fn too_few_fronts() {
    for (name, needs) in [("gc-apart", 2), ("hot-cold", 3), ("sepbit", 6), ("stream", 2)] {
        let mut settings = settings();
        settings.ftl.placement = Some(name.into());
        settings.ftl.fronts = Some(needs);
        check(&settings).expect("it has as many as it needs");
        settings.ftl.fronts = Some(needs - 1);
        let error = check(&settings).expect_err("they are too few");
        assert_eq!(error.key, "ftl.fronts");
        assert!(error.message.contains(&format!("{name} has at least {needs} fronts")), "{}", error.message);
    }
}

/// Returns a tiny device with this placement, whose trims survive power cuts.
fn device(placement: &str, kind: &str, background: bool, levels: bool) -> Settings {
    let mut settings = tiny(kind);
    settings.ftl.placement = Some(placement.into());
    settings.ftl.power_safe = true;
    settings.ftl.gc_background = background.then_some(GcBackground { normal_blocks: 3, step_pages: 2 });
    settings.ftl.wear_leveling = levels.then_some(StaticLeveling { threshold: 2 });
    while check(&settings).is_err() {
        settings.flash.blocks_per_plane += 2;
    }
    settings
}

/// Requests of all kinds, flushes included, in bursts.
fn load(settings: &Settings, seed: u64) -> Vec<ftlab_core::workload::Record> {
    use ftlab_core::workload::Op;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let user = settings.user_pages();
    let page = u64::from(settings.ftl.logical_page_bytes);
    let request = |at: u64| {
        let op = [Op::Write, Op::Write, Op::Write, Op::Trim, Op::Flush][random.random_range(0..5)];
        let pages = if op == Op::Flush { 0 } else { random.random_range(1..5) };
        common::pages(at * 300_000, op, page, random.random_range(0..user - 4), pages)
    };
    (0..1000).map(request).collect()
}

/// What went to the fronts adds up to what was programmed for user data. (Wear levelling moves translation pages too;
/// a page-mapped FTL with its map in RAM has none.)
#[test]
fn fronts_add_up() {
    for name in common::placements() {
        for (kind, background, levels) in
            [("page", false, false), ("page", true, false), ("page", false, true), ("dftl", true, false)]
        {
            if levels && placement::needs(name).speeds {
                continue;
            }
            let settings = device(name, kind, background, levels);
            let (report, _) = checked(&settings, load(&settings, 1));
            let several = Policy::new(name, &settings.ftl.placements, SPACE).fronts() > 1;
            assert_eq!(report.placement.is_some(), several, "{name}");
            let Some(section) = report.placement else { continue };
            let sum =
                |of: &dyn Fn(&ftlab_core::metrics::Front) -> u64| section.fronts.iter().map(of).sum::<u64>();
            let programs =
                |causes: &[Cause]| causes.iter().map(|&cause| report.flash.programs[cause]).sum::<u64>();
            let what = format!("{name} {kind} {background} {levels}");
            assert!(sum(&|front| front.moved) > 0, "{what}: nothing was moved");
            assert_eq!(sum(&|front| front.written), programs(&[Cause::Host, Cause::Pad]), "{what}");
            assert_eq!(sum(&|front| front.moved), programs(&[Cause::Gc, Cause::Wear]), "{what}");
            for front in &section.fronts {
                let expected =
                    (front.written > 0).then(|| (front.written + front.moved) as f64 / front.written as f64);
                assert_eq!(front.waf, expected, "{what}");
            }
        }
    }
}

/// Results with `one` are those of a device whose placement is not set, byte for byte, whatever `ftl.fronts` says.
#[test]
fn one_is_as_none() {
    for kind in common::page_mapped() {
        let mut settings = tiny(kind);
        let of = |settings: &Settings| {
            let (report, done) = checked(settings, load(settings, 2));
            (serde_json::to_string(&report).expect("it is a report"), format!("{done:?}"))
        };
        let none = of(&settings);
        (settings.ftl.placement, settings.ftl.fronts) = (Some("one".into()), Some(1));
        assert!(of(&settings) == none, "{kind}");
    }
}

/// Keeps its own account of when each page was written, and compares with what the log says.
#[derive(Clone, Debug)]
struct Witness {
    /// When each page was written, counted in pages written before.
    written: Vec<Option<u64>>,
    now: u64,
    /// The page whose write has begun; until the next one begins, its old version is still there to be copied.
    under_way: Option<u32>,
    told: Option<u32>,
}

impl Witness {
    /// Ends the write that is under way.
    fn end(&mut self) {
        if let Some(lpn) = self.under_way.take() {
            self.written[lpn as usize] = Some(self.now);
            self.now += 1;
        }
    }

    fn age(&self, lpn: u32) -> Option<u64> {
        self.written[lpn as usize].map(|at| self.now - at)
    }
}

impl Placement for Witness {
    const NEEDS: placement::Needs = placement::Needs { ages: true, ..placement::Needs::NOTHING };

    fn new(_keys: &Own, space: Space) -> Witness {
        Witness { written: vec![None; space.pages as usize], now: 0, under_way: None, told: None }
    }

    fn fronts(&self) -> u32 {
        2
    }

    fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        if !page.is_copy() {
            self.end();
            let known = self.age(page.lpn).map(|_| page.lpn);
            assert_eq!(self.told.take(), known, "it hears about the version that is replaced");
            self.under_way = Some(page.lpn);
        }
        assert_eq!(page.age, self.age(page.lpn).unwrap_or(u64::MAX), "{page:?}");
        assert_eq!(page.from.is_some(), self.age(page.lpn).is_some(), "{page:?}");
        page.lpn % 2
    }

    fn invalidated(&mut self, lpn: u32, _front: u32, age: u64) {
        self.end();
        assert_eq!(Some(age), self.age(lpn), "page {lpn}");
        self.told = Some(lpn);
    }

    fn collected(&mut self, _front: u32, age: u64) {
        assert!(0 < age && age <= self.now);
    }
}

fn write(ftl: &mut Ftl, first: u32, work: &mut Work) {
    work.clear();
    ftl.write(whole(first, 1), work);
}

/// Ages are counted in pages written, and the placement hears about every version that is replaced. This test found a
/// fault: if the page that was about to be written was copied before, the age of its old version was given as 0.
#[test]
fn ages_are_as_told() {
    placement::register::<Witness>("witness");
    let settings = device("witness", "page", false, false);
    let mut work: Work = settings.work();
    let mut ftl = Ftl::new(&settings, true, &mut work);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let user = settings.user_pages() as u32;
    (0..50 * user).for_each(|_| write(&mut ftl, random.random_range(0..user), &mut work));
    assert!(work.counts().programs[Cause::Gc] > 0);
}

/// To sepbit, a page that was trimmed is like one that was never written: what replaces it is of class 2.
#[test]
fn a_trimmed_version_is_not_replaced() {
    let settings = device("sepbit", "page", false, false);
    let mut work: Work = settings.work();
    let mut ftl = Ftl::new(&settings, true, &mut work);
    write(&mut ftl, 5, &mut work);
    write(&mut ftl, 5, &mut work);
    ftl.trim(whole(5, 1), &mut work);
    write(&mut ftl, 5, &mut work);
    assert_eq!(ftl.front_counts().iter().map(|front| front.written).collect::<Vec<_>>(), [1, 2, 0, 0, 0, 0]);
}

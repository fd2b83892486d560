//! The device at time 0: what each kind of preconditioning leaves, on random small devices.

use ftlab_conformance as common;

use crate::devices;
use crate::devices::device;
use common::settings;
use ftlab_core::flash::Cause;
use ftlab_core::ftl::settings::FreeBlocks;
use ftlab_core::metrics::{Outcome, Preconditioning, Report};
use ftlab_core::settings::{Precondition, PreconditionKind, Settings, Withheld, WriteOrder};
use ftlab_core::sim::{Observer, Prepared, RunError, run_prepared};
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

const KINDS: [PreconditionKind; 5] = [
    PreconditionKind::None,
    PreconditionKind::Mapped,
    PreconditionKind::Fill,
    PreconditionKind::Steady,
    PreconditionKind::Random(1_000_000),
];

fn how() -> impl Strategy<Value = Precondition> {
    (0usize..5, 1u64..=1_000_000, any::<bool>(), 1u64..500_000, 5u32..9, any::<bool>(), 512u64..20_000)
        .prop_map(|(kind, share_ppm, random, bound_ppm, rounds, kept, request_bytes)| Precondition {
            kind: if kind == 4 { PreconditionKind::Random(share_ppm) } else { KINDS[kind] },
            share_ppm,
            order: if random { WriteOrder::Random } else { WriteOrder::Sequential },
            request_bytes,
            withheld: if kept && KINDS[kind] != PreconditionKind::Steady {
                Withheld::Kept
            } else {
                Withheld::Used
            },
            bound_ppm,
            rounds,
        })
}

/// Makes reads, writes and trims of one page each, one after the other.
fn workload(settings: &Settings, steps: &[(u8, u32)]) -> Vec<Record> {
    let page = u64::from(settings.ftl.logical_page_bytes);
    let op = |step| match step % 8 {
        0..3 => Op::Read,
        3 => Op::Trim,
        _ => Op::Write,
    };
    let record = |(index, &(step, at)): (usize, &(u8, u32))| Record {
        time_ns: index as u64 * 1000,
        op: op(step),
        offset: u64::from(at) % settings.user_pages() * page,
        size: page,
        ..Record::FLUSH
    };
    steps.iter().enumerate().map(record).collect()
}

/// Runs in check mode from a prepared device; returns the report.
fn report(settings: &Settings, prepared: Prepared, trace: Vec<Record>) -> Report {
    run_prepared(settings, prepared, &mut trace.into_iter(), &mut ()).expect("every invariant holds")
}

fn prepared(settings: &Settings) -> Prepared {
    Prepared::new(settings, &mut (), true).expect("every invariant holds")
}

/// Returns the bytes of a report, without the name of the kind of preconditioning.
fn rest(report: &Report) -> String {
    let mut report = report.clone();
    report.precondition = Preconditioning::new("");
    serde_json::to_string(&report).unwrap()
}

proptest! {
    #![proptest_config(devices::cases(128, "tests/properties.regressions"))]

    /// Every kind of preconditioning leaves a sound device (`Prepared::new` verifies it completely in check mode) on
    /// which a run keeps every invariant, starts its counters at 0 and counts the earlier erases as wear.
    #[test]
    fn every_kind_leaves_a_sound_device(
        settings in device(), how in how(), seed: u64,
        steps in proptest::collection::vec((any::<u8>(), any::<u32>()), 1..150),
    ) {
        let mut settings = settings;
        (settings.seed, settings.device.precondition) = (seed, how.clone());
        let pages = settings.user_pages();
        let ready = prepared(&settings);
        let done = ready.preconditioning().clone();
        let written = match how.kind {
            PreconditionKind::None => 0,
            PreconditionKind::Mapped => (pages * how.share_ppm / 1_000_000).max(1),
            PreconditionKind::Random(share_ppm) => (pages * share_ppm / 1_000_000).max(1),
            PreconditionKind::Fill => pages,
            PreconditionKind::Steady => (2 + u64::from(done.rounds)) * pages,
        };
        prop_assert_eq!(done.pages_written, written);
        let idle = report(&settings, ready.clone(), Vec::new());
        prop_assert!(idle.flash.erases.values().chain(idle.flash.programs.values()).all(|&count| count == 0));
        prop_assert_eq!((idle.mapping.hits, idle.mapping.misses, idle.waf.total), (0, 0, None));
        let blocks = u64::from(settings.flash.chips()) * settings.flash.blocks_per_chip();
        let erases = (idle.wear.mean - settings.flash.pe_cycles as f64) * blocks as f64;
        prop_assert!((erases - done.erases as f64).abs() < 1e-6 * blocks as f64);
        report(&settings, ready, workload(&settings, &steps));
    }

    /// Precondition `mapped` with a share of 100 %, in order, equals `fill`.
    #[test]
    fn mapped_whole_and_in_order_is_fill(
        settings in device(), steps in proptest::collection::vec((any::<u8>(), any::<u32>()), 1..150),
    ) {
        let trace = workload(&settings, &steps);
        let mut reports = [PreconditionKind::Fill, PreconditionKind::Mapped].map(|kind| {
            let mut settings = settings.clone();
            settings.device.precondition = Precondition { kind, order: WriteOrder::Sequential, ..Precondition::default() };
            report(&settings, prepared(&settings), trace.clone())
        });
        prop_assert_eq!(rest(&reports[0]), rest(&reports[1]));
        reports[1].precondition.kind = "fill".into();
        prop_assert_eq!(&reports[0].precondition, &reports[1].precondition);
    }
}

fn small(kind: &str) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings.ftl.mapping_cache_bytes = Some(8 << 10);
    settings.ftl.over_provisioning_ppm = 200_000;
    settings.flash.channels = 2;
    settings.flash.chips_per_channel = 2;
    settings.flash.blocks_per_plane = 64;
    settings.flash.pages_per_block = 16;
    settings
}

fn steady(kind: &str, bound_ppm: u64, rounds: u32) -> Settings {
    let mut settings = small(kind);
    settings.device.precondition =
        Precondition { kind: PreconditionKind::Steady, bound_ppm, rounds, ..Precondition::default() };
    settings
}

/// Makes uniform writes of one page over the whole device, drawn independently of ftlab's own streams.
fn uniform(settings: &Settings, count: usize) -> Vec<Record> {
    let mut state = 88_172_645_463_325_252u64;
    let steps: Vec<(u8, u32)> = (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (4, (state >> 20) as u32)
        })
        .collect();
    workload(settings, &steps)
}

/// On a steady device, further writes of the same kind have the same write amplification; on a filled device, they do
/// not.
#[test]
fn a_steady_device_stays_as_it_is() {
    for kind in common::by_eviction() {
        let settings = steady(kind, 20_000, 100);
        let trace = uniform(&settings, 4 * settings.user_pages() as usize);
        let ready = prepared(&settings);
        let done = ready.preconditioning().clone();
        assert_eq!(done.outcome, Some(Outcome::Reached), "{kind}: {done:?}");
        assert!(done.spread().unwrap() <= 0.02 && done.waf.len() == 5);
        let mean = done.waf.iter().sum::<f64>() / 5.0;
        let run = run_prepared(&settings, ready, &mut trace.into_iter(), &mut ()).unwrap();
        let waf = run.waf.total.unwrap();
        assert!((waf / mean - 1.0).abs() < 0.03, "{kind}: {waf} after {done:?}");

        let mut filled = settings.clone();
        filled.device.precondition = Precondition::fill();
        let ready = Prepared::new(&filled, &mut (), false).unwrap();
        let short = uniform(&settings, settings.user_pages() as usize / 4);
        let early = run_prepared(&filled, ready, &mut short.into_iter(), &mut ()).unwrap();
        assert!(early.waf.total.unwrap() < 0.9 * mean, "{kind}: {:?} against {mean}", early.waf.total);
    }
}

/// Every block that a sequential overwrite collects is empty, so that write amplification is 1.
#[test]
fn a_sequential_pattern_amplifies_nothing() {
    let mut settings = steady("page", 1, 5);
    settings.device.precondition.order = WriteOrder::Sequential;
    let done = prepared(&settings).preconditioning().clone();
    assert_eq!(done.waf, [1.0; 5]);
    assert_eq!((done.outcome, done.rounds), (Some(Outcome::Reached), 5));
    assert_eq!(done.programs, 7 * settings.user_pages());
}

#[test]
fn an_impossible_bound_ends_at_the_cap() {
    let done = prepared(&steady("page", 1, 7)).preconditioning().clone();
    assert_eq!((done.outcome, done.rounds, done.waf.len()), (Some(Outcome::Capped), 7, 5));
    assert!(done.spread().unwrap() > 1e-6);
}

#[test]
fn the_seed_decides_what_is_written() {
    let wear = |seed| {
        let mut settings = steady("dftl", 50_000, 20);
        settings.seed = seed;
        let ready = prepared(&settings);
        (ready.preconditioning().clone(), rest(&report(&settings, ready, Vec::new())))
    };
    assert_eq!(wear(1), wear(1));
    assert_ne!(wear(1), wear(2));
}

/// A random share of the pages is spread evenly over the capacity, and not in runs.
#[test]
fn a_random_share_is_uniform() {
    let mut settings = small("page");
    settings.device.precondition =
        Precondition { kind: PreconditionKind::Mapped, share_ppm: 250_000, ..Precondition::default() };
    for seed in 0..20 {
        settings.seed = seed;
        let ready = prepared(&settings);
        let pages = settings.user_pages() as u32;
        let laid: Vec<u32> = (0..pages).filter(|&lpn| ready.has_data(lpn)).collect();
        assert_eq!(laid.len(), pages as usize / 4);
        // Chi-squared over 32 stretches of the capacity, with 31 degrees of freedom: 70 is beyond the 99.99 %
        // quantile even for draws with replacement.
        let mut counts = [0u32; 32];
        laid.iter().for_each(|&lpn| counts[(u64::from(lpn) * 32 / u64::from(pages)) as usize] += 1);
        let expected = f64::from(pages) / 4.0 / 32.0;
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        assert!(chi < 70.0, "seed {seed}: {chi}, {counts:?}");
        // Neighbouring pages both have data as often as any two pages do.
        let both = laid.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() as f64;
        let share = both / laid.len() as f64;
        assert!((share - 0.25).abs() < 0.08, "seed {seed}: {share}");
    }
}

/// SHARE times as many draws with replacement as there are pages leave 1 - e^-SHARE of the pages with data; a page that
/// is drawn twice leaves an invalid page behind.
#[test]
fn random_writes_leave_the_shares_of_draws_with_replacement() {
    for kind in common::page_mapped_both_ways() {
        for (share_ppm, percent) in [(250_000, 22.1), (500_000, 39.3), (1_000_000, 63.2)] {
            let mut settings = small("page");
            common::set_ftl(&mut settings, kind);
            settings.device.precondition.kind = PreconditionKind::Random(share_ppm);
            let ready = prepared(&settings);
            let pages = settings.user_pages() as u32;
            let mapped =
                100.0 * (0..pages).filter(|&lpn| ready.has_data(lpn)).count() as f64 / f64::from(pages);
            // The bound is six standard deviations of the occupancy of 3,276 pages.
            assert!((mapped - percent).abs() < 3.0, "{kind}: {mapped} %");
            let done = ready.preconditioning();
            assert_eq!(done.pages_written, u64::from(pages) * share_ppm / 1_000_000);
            assert_eq!((done.kind.as_str(), done.erases), (&*format!("random:{}%", share_ppm / 10_000), 0));
        }
    }
}

/// Larger requests write neighbouring pages, starting at a multiple of their size; the last request may be cut short.
#[test]
fn random_writes_are_of_the_size_that_is_asked_for() {
    let mut settings = small("page");
    settings.device.precondition.kind = PreconditionKind::Random(10_000);
    settings.device.precondition.request_bytes = 4 * u64::from(settings.ftl.logical_page_bytes);
    let ready = prepared(&settings);
    let laid: Vec<u32> = (0..settings.user_pages() as u32).filter(|&lpn| ready.has_data(lpn)).collect();
    let whole = laid.chunk_by(|&one, &next| next == one + 1 && !next.is_multiple_of(4));
    assert_eq!(whole.filter(|run| run.len() != 4 || !run[0].is_multiple_of(4)).count(), 0, "{laid:?}");
    assert_eq!(ready.preconditioning().pages_written, laid.len() as u64);
}

/// If the free blocks are only those of the withheld space, they are the first to be written, whatever else is erased;
/// after that each block needs a victim, and victims that were never written need no copy.
#[test]
fn withheld_blocks_are_the_free_ones() {
    let mut settings = small("page");
    settings.flash.channels = 1;
    settings.flash.chips_per_channel = 1;
    settings.flash.blocks_per_plane = 100;
    // Of the blocks, 80 are the user's, 19 are free, and one is the reserve.
    settings.ftl.free_blocks = FreeBlocks::Withheld;
    let erased = |settings: &Settings, pages: u32| {
        let trace = workload(settings, &(0..pages).map(|at| (4, at)).collect::<Vec<_>>());
        let report = report(settings, prepared(settings), trace);
        (report.flash.erases[Cause::Gc], report.flash.programs[Cause::Gc])
    };
    assert_eq!(erased(&settings, 19 * 16), (0, 0));
    assert_eq!(erased(&settings, 19 * 16 + 1), (1, 0));
    assert_eq!(erased(&settings, 40 * 16), (21, 0));
    settings.ftl.free_blocks = FreeBlocks::Erased;
    assert_eq!(erased(&settings, 80 * 16), (0, 0));
    // A quarter of the user's blocks is written. With `kept` the free blocks are still erased; with `used` 19 of 20 are
    // not.
    settings.ftl.free_blocks = FreeBlocks::Withheld;
    settings.device.precondition.kind = PreconditionKind::Random(250_000);
    settings.device.precondition.withheld = Withheld::Kept;
    assert_eq!(erased(&settings, 19 * 16), (0, 0));
    assert_eq!(erased(&settings, 19 * 16 + 1), (1, 0));
    assert_eq!(prepared(&settings).preconditioning().erases, 0);
    settings.device.precondition.withheld = Withheld::Used;
    assert_eq!(prepared(&settings).preconditioning().erases, 1);
    assert_eq!(erased(&settings, 16), (1, 0));
}

/// An observer that stops preconditioning at the first call.
struct Stop(u64);

impl Observer for Stop {
    fn complete(&mut self, _completion: &ftlab_core::sim::Completion) {}

    fn preconditioning(&mut self, done: &Preconditioning) -> bool {
        self.0 = done.pages_written;
        false
    }
}

#[test]
fn an_observer_stops_it() {
    for kind in &KINDS[1..] {
        let mut settings = small("page");
        settings.device.precondition.kind = *kind;
        let mut stop = Stop(0);
        let error = Prepared::new(&settings, &mut stop, false).unwrap_err();
        assert!(matches!(error, RunError::Source(_)), "{error}");
        assert_eq!(stop.0, settings.user_pages().min(1 << 16), "{kind:?}");
    }
}

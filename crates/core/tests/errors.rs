//! Errors of reads: steps of a read retry against the closed form worked out by hand, what each costs, and what
//! refresh, saved states and power cuts make of them.

use ftlab_conformance as common;

use common::{AGEING, Log, checked, pages, settings};
use ftlab_core::Simulation;
use ftlab_core::flash::errors::{Errors, Process, Retry};
use ftlab_core::flash::{Cause, Work};
use ftlab_core::ftl::check;
use ftlab_core::metrics::Report;
use ftlab_core::settings::{Precondition, Settings};
use ftlab_core::sim::{Completion, Identity, Prepared};
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

const PAGE: u64 = 4096;
const HOUR_NS: u64 = 3_600_000_000_000;
const READ_NS: u64 = 50_000;
const RETRY_NS: u64 = 30_000;
/// A page is transferred in a nanosecond for each byte.
const TRANSFER_NS: u64 = PAGE;

/// Returns a full page-mapped device of one chip. A codeword has 8,192 bits; the first read corrects 40 wrong ones, the
/// three steps of a retry 60, 90 and 135.
fn device() -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.flash.pages_per_block = 8;
    settings.flash.blocks_per_plane = 32;
    settings.ftl.over_provisioning_ppm = 250_000;
    settings.flash.read = READ_NS.into();
    settings.flash.transfer_ps = 1000;
    settings.device.precondition = Precondition::fill();
    settings.flash.errors = Errors {
        ecc_limit: 40.0,
        retry_gain: 1.5,
        retry_steps: 3,
        retry_ns: Some(RETRY_NS),
        ..Errors::default()
    };
    settings
}

/// Returns a device whose blocks have been erased a hundred times, with these terms of the rate and their exponents.
fn worn(base: f64, [wear, a]: [f64; 2], [retention, b, c]: [f64; 3], [disturb, d, e]: [f64; 3]) -> Settings {
    let mut settings = device();
    settings.flash.pe_cycles = 100;
    let errors = &mut settings.flash.errors;
    (errors.base, errors.wear, errors.retention, errors.disturb) =
        (Some(base), Some(wear), Some(retention), Some(disturb));
    (errors.a, errors.b, errors.c, errors.d, errors.e) = (Some(a), Some(b), Some(c), Some(d), Some(e));
    settings
}

const NONE: [f64; 3] = [0.0; 3];

/// Makes `count` reads of the first page, ten milliseconds after one another from `start_ns` on.
fn reads(start_ns: u64, count: u64) -> Vec<Record> {
    (0..count).map(|at| pages(start_ns + at * 10_000_000, Op::Read, PAGE, 0, 1)).collect()
}

fn run(settings: &Settings, trace: Vec<Record>) -> (Report, Vec<Completion>) {
    check(settings).expect("it fits");
    let keys = ftlab_core::config::section::defaults::<Settings>();
    settings.check(&keys).expect("it fits together");
    checked(settings, trace)
}

fn latencies(done: &[Completion]) -> Vec<u64> {
    done.iter().map(|done| done.complete_ns - done.arrival_ns).collect()
}

/// Returns the time of a read that is repeated this many times.
fn read_ns(repetitions: u64) -> u64 {
    READ_NS + TRANSFER_NS + repetitions * (RETRY_NS + TRANSFER_NS)
}

/// Returns the steps that reads needed, and how many failed.
fn steps(report: &Report) -> (Vec<u64>, u64) {
    let errors = report.errors.as_ref().expect("reads meet errors");
    (errors.steps.clone(), errors.failed_reads)
}

fn json(report: &Report) -> String {
    serde_json::to_string(report).expect("a report is numbers and text")
}

#[test]
fn a_rate_of_zero_is_off() {
    let plain = {
        let mut plain = device();
        plain.flash.errors = Errors::default();
        plain
    };
    let mut zero = worn(0.0, [0.0, 2.0], NONE, NONE);
    zero.flash.pe_cycles = 0;
    (zero.flash.age_ns, zero.flash.retry, zero.ftl.refresh) = (HOUR_NS, Retry::Last, Some(1));
    let trace = || common::bursts(3, 2000, 150);
    let ((expected, done), (report, again)) = (run(&plain, trace()), run(&zero, trace()));
    assert_eq!((json(&report), again), (json(&expected), done));
    assert!(!json(&report).contains("\"errors\"") && !json(&report).contains("media_errors"));
    assert!(!json(&report).contains("\"refresh\""));
}

/// Rate 1e-6 x 100^2 = 0.01, so 81.92 of 8,192 bits are wrong: more than 60, at most 90, which is step 2.
#[test]
fn wear_needs_the_steps_of_the_closed_form() {
    for (coefficient, needed) in [(0.4e-6, 0), (0.6e-6, 1), (1e-6, 2), (1.6e-6, 3)] {
        let settings = worn(0.0, [coefficient, 2.0], NONE, NONE);
        let (report, done) = run(&settings, reads(0, 5));
        let mut expected = vec![0; 4];
        expected[needed as usize] = 5;
        assert_eq!(steps(&report), (expected, 0), "{coefficient}");
        assert_eq!(latencies(&done), vec![read_ns(needed); 5]);
        let errors = report.errors.as_ref().unwrap();
        assert_eq!((errors.retries, errors.retried_reads), (5 * needed, if needed > 0 { 5 } else { 0 }));
        assert_eq!(report.flash.busy_ns[Cause::Host], 5 * read_ns(needed));
        assert_eq!(report.flash.reads[Cause::Host], 5, "a repetition is not a read of its own");
    }
}

/// After a hundred hours the rate is 1e-5 x 100 x sqrt(100) = 0.01, which is step 2. What is written during the run is
/// new.
#[test]
fn retention_needs_the_steps_of_the_closed_form() {
    for (hours, needed) in [(0, 0), (16, 0), (36, 1), (100, 2), (196, 3)] {
        let mut settings = worn(0.0, [0.0; 2], [1e-5, 1.0, 0.5], NONE);
        settings.flash.age_ns = hours * HOUR_NS;
        let mut trace = reads(0, 1);
        trace.push(pages(10_000_000, Op::Write, PAGE, 0, 1));
        trace.extend(reads(20_000_000, 1));
        let (report, done) = run(&settings, trace);
        assert_eq!(done[0].complete_ns - done[0].arrival_ns, read_ns(needed), "{hours} h");
        assert_eq!(done[2].complete_ns - done[2].arrival_ns, read_ns(0));
        assert_eq!(steps(&report).1, 0);
    }
}

/// With the rate 1e-4 x reads a codeword has 0.8192 errors more with each read of its block: up to 48 earlier reads the
/// first read corrects, up to 73 step 1, up to 109 step 2, up to 164 step 3.
#[test]
fn read_disturb_needs_the_steps_of_the_closed_form() {
    let repeated = [(Retry::FromStart, 25 + 2 * 36 + 3 * 55 + 3 * 35), (Retry::Last, 3)];
    let sentinel = (Retry::Sentinel, 25 + 36 + 55 + 3 * 35);
    for (retry, retries) in repeated.into_iter().chain([sentinel]) {
        let mut settings = worn(0.0, [0.0; 2], NONE, [1e-6, 1.0, 1.0]);
        settings.flash.retry = retry;
        let (report, done) = run(&settings, reads(0, 200));
        assert_eq!(steps(&report), (vec![49, 25, 36, 55], 35), "{retry:?}");
        assert_eq!(report.errors.as_ref().unwrap().retries, retries, "{retry:?}");
        let total: u64 = done.iter().map(|done| done.complete_ns - done.arrival_ns).sum();
        assert_eq!(total, 200 * read_ns(0) + retries * (RETRY_NS + TRANSFER_NS));
        // Completions say which reads failed, and the device's health counts them.
        assert_eq!(
            done.iter().map(|done| done.failed).collect::<Vec<_>>(),
            [vec![false; 165], vec![true; 35]].concat()
        );
        assert_eq!((report.health.media_errors, report.health.failed.reads), (Some(35), Some(35)));
        assert_eq!(report.latency.read.count, 165);
        // Another block has not been read.
        let mut trace = reads(0, 100);
        trace.push(pages(2_000_000_000, Op::Read, PAGE, 8, 1));
        let (_, done) = run(&settings, trace);
        assert_eq!(done[100].complete_ns - done[100].arrival_ns, read_ns(0));
    }
}

/// The cells sense for a step while the data of the step before cross the bus: each but the first repetition takes the
/// longer of the two.
#[test]
fn a_pipelined_retry_overlaps_sensing_and_transfer() {
    for (retry_ns, later_ns) in [(RETRY_NS, RETRY_NS), (1000, TRANSFER_NS)] {
        let mut settings = worn(0.0, [1.6e-6, 2.0], NONE, NONE);
        (settings.flash.retry, settings.flash.errors.retry_ns) = (Retry::Pipelined, Some(retry_ns));
        let (_, done) = run(&settings, reads(0, 3));
        let expected = READ_NS + TRANSFER_NS + (retry_ns + TRANSFER_NS) + 2 * later_ns;
        assert_eq!(latencies(&done), vec![expected; 3]);
    }
}

/// A repetition takes as long as the page's first read unless a time is stated; a shared bus serves others between two
/// repetitions.
#[test]
fn repetitions_take_the_time_of_the_read_and_share_the_bus() {
    let mut settings = worn(0.0, [1e-6, 2.0], NONE, NONE);
    settings.flash.errors.retry_ns = None;
    let (_, done) = run(&settings, reads(0, 1));
    assert_eq!(latencies(&done), [3 * (READ_NS + TRANSFER_NS)]);
    settings.flash.chips_per_channel = 2;
    settings.device.queue_depth = 2;
    settings.host.queue_depth = u32::MAX;
    let two = (0..2).map(|lpn| pages(0, Op::Read, PAGE, lpn, 1)).collect();
    let (_, done) = run(&settings, two);
    let alone = 3 * (READ_NS + TRANSFER_NS);
    assert_eq!(latencies(&done), [alone, alone + TRANSFER_NS]);
}

/// Pages without data have no errors, nor have pages that are read from a page buffer.
#[test]
fn what_is_not_on_flash_has_no_errors() {
    let mut settings = worn(0.02, [0.0; 2], NONE, NONE);
    settings.device.precondition = Precondition::default();
    settings.flash.page_bytes = 2 * PAGE as u32;
    settings.ftl.logical_page_bytes = PAGE as u32;
    let trace = vec![
        pages(0, Op::Read, PAGE, 5, 1),
        pages(10_000_000, Op::Write, PAGE, 0, 1),
        pages(20_000_000, Op::Read, PAGE, 0, 1),
    ];
    let (report, done) = run(&settings, trace);
    assert_eq!(steps(&report), (vec![0; 4], 0));
    assert!(done.iter().all(|done| !done.failed));
}

/// Every read of a page with data is counted once, whichever part of the device makes it, and none fails the host but
/// its own.
#[test]
fn reads_of_all_causes_meet_errors() {
    for kind in common::all_ftls() {
        let mut settings = common::small(kind, 2);
        settings.device.precondition = Precondition::fill();
        let lpns = settings.user_pages();
        for (base, needed) in [(0.0061, 1), (0.02, 4)] {
            settings.flash.errors = Errors { base: Some(base), ..device().flash.errors };
            let (report, done) = run(&settings, common::bursts(11, 1500, lpns));
            let (found, failed) = steps(&report);
            let all = report.flash.reads.total();
            let expected = if needed < 4 { (vec![0, all, 0, 0], 0) } else { (vec![0; 4], all) };
            assert_eq!((found, failed), expected, "{kind}");
            assert!(done.iter().all(|done| done.failed == (needed == 4 && done.op == Op::Read)), "{kind}");
            assert_eq!(report.flash.reads.total() * needed.min(3), report.errors.as_ref().unwrap().retries);
        }
    }
}

/// Blocks that wear faster than the mean block have more errors, others fewer; without a spread all are as the mean.
#[test]
fn variation_spreads_the_rates() {
    let everything = |settings: &Settings| {
        (0..settings.user_pages()).map(|lpn| pages(lpn * 1_000_000, Op::Read, PAGE, lpn, 1)).collect()
    };
    let mut settings = worn(0.0, [0.74e-6, 2.0], NONE, NONE);
    let alike = steps(&run(&settings, everything(&settings)).0);
    settings.flash.variation = Some(AGEING);
    let varied = steps(&run(&settings, everything(&settings)).0);
    assert_eq!(alike.0, [0, 0, settings.user_pages(), 0]);
    assert!(varied.0[1] > 0 && varied.0[2] > 0, "{varied:?}");
    if let Some(variation) = &mut settings.flash.variation {
        variation.growth_stddev = 0.0;
    }
    assert_eq!(steps(&run(&settings, everything(&settings)).0), alike);
}

/// Both processes make an old device read again what a new one reads at once, and the rate of each is that of its
/// source: 72-layer TLC after 3,000 cycles and 400 days (2,000 reads of a block of 8 pages are 250 of each page),
/// 1.48e-3 + 3.90e-10 x 3000^2.05 + 6.28e-5 x 3000^0.14 x 400^0.54 + 3.73e-9 x 3000^0.33 x 250^1.71, is 0.012274.
#[test]
fn processes_are_those_of_their_sources() {
    for (process, cycles, days, expected) in [
        (Process::Tlc72, 3000, 400, 0.012_274_42),
        // 8.34e-5 + 3.30e-11 x 8000^1.71 + 5.56e-19 x 8000^2.49 x 40^3.33 + 6.26e-13 x 8000^1.76 x 2000^0.47
        (Process::Mlc2y, 8000, 40, 0.001_033_256),
    ] {
        for (limit, needed) in [(1.001 * expected * 8192.0, 0), (0.999 * expected * 8192.0, 1)] {
            let mut settings = device();
            settings.flash.pe_cycles = cycles;
            settings.flash.age_ns = days * 24 * HOUR_NS;
            settings.flash.errors.process = process;
            settings.flash.errors.ecc_limit = limit;
            let (_, done) = run(&settings, (0..2001).map(|_| pages(0, Op::Read, PAGE, 0, 1)).collect());
            let last = &done[2000];
            assert_eq!(last.complete_ns - done[1999].complete_ns, read_ns(needed), "{process:?}");
        }
    }
}

proptest! {
    /// More wear, age or reads never need a smaller step.
    #[test]
    fn no_page_gets_better(
        coefficients in prop::array::uniform4(0.0..1e-3f64),
        exponents in prop::array::uniform5(0.0..2.0f64),
        less in (0u64..200, 0u64..2000, 0u32..50),
        more in (0u64..200, 0u64..2000, 0u32..50),
    ) {
        let needed = |(cycles, hours, reads): (u64, u64, u32)| {
            let mut settings = device();
            let [base, wear, retention, disturb] = coefficients.map(Some);
            let [a, b, c, d, e] = exponents.map(Some);
            let errors = settings.flash.errors;
            settings.flash.errors = Errors { base, wear, retention, disturb, a, b, c, d, e, ..errors };
            settings.flash.pe_cycles = cycles;
            let mut work = settings.work();
            work.program(0, 0, Cause::Host);
            if let Some(reliability) = work.reliability_mut() {
                reliability.begin(hours * HOUR_NS, None, (1, 32));
            }
            (0..=reads).for_each(|_| work.read(0, 0, Cause::Host));
            let counts = work.reliability().map(|reliability| reliability.counts().clone());
            let counts = counts.unwrap_or_default();
            // The step of the last read is the greatest of all.
            if counts.failed > 0 { 4 } else { counts.steps.iter().rposition(|&count| count > 0).unwrap_or(0) }
        };
        let more = (less.0 + more.0, less.1 + more.1, less.2 + more.2);
        prop_assert!(needed(less) <= needed(more), "{less:?} {more:?}");
    }
}

/// Returns a device whose data have a rate of a thousandth for each second that they lie: 4.9 s pass until the first
/// step is needed, 16.5 s until no step is enough.
fn quickly_lost() -> Settings {
    worn(0.0, [0.0; 2], [0.036, 1.0, 1.0], NONE)
}

/// What would be lost is rewritten in time; every refreshed block is erased once, and its copies count as refresh.
#[test]
fn refresh_moves_data_before_they_are_lost() {
    let everything = |settings: &Settings| {
        let user = settings.user_pages();
        (0..40 * user).map(|at| pages(at * 1_000_000_000 / user, Op::Read, PAGE, at % user, 1)).collect()
    };
    let mut settings = quickly_lost();
    let (without, done) = run(&settings, everything(&settings));
    assert!(steps(&without).1 > settings.user_pages() && done.last().unwrap().failed);
    for kind in ["page", "dftl", "tpftl", "cdftl"] {
        settings.ftl.kind = kind.into();
        settings.ftl.mapping_cache_bytes = (kind != "page").then_some(8 << 10);
        settings.ftl.refresh = Some(2);
        let (with, done) = run(&settings, everything(&settings));
        let errors = with.errors.as_ref().unwrap();
        assert_eq!(errors.failed_reads, 0, "{kind}");
        assert!(done.iter().all(|done| !done.failed));
        // 7.3 s until step 2 is needed: the data are rewritten five times in 40 s, 24 blocks each time.
        assert!((100..150).contains(&errors.refreshed_blocks), "{kind}: {}", errors.refreshed_blocks);
        assert_eq!(errors.refreshed_blocks, with.flash.erases[Cause::Refresh]);
        assert_eq!(with.flash.programs[Cause::Refresh], with.flash.reads[Cause::Refresh]);
        assert!(with.flash.programs[Cause::Refresh] > 4 * settings.user_pages());
        assert!(json(&with).contains("\"refresh\""));
    }
}

/// Data that nobody reads are rewritten as well, and at the moment at which they need it: after 4.88 s.
#[test]
fn data_that_nobody_reads_are_rewritten_too() {
    let mut settings = quickly_lost();
    settings.ftl.refresh = Some(1);
    for (until_s, refreshed) in [(4, false), (5, true)] {
        let trace =
            vec![pages(0, Op::Flush, PAGE, 0, 0), pages(until_s * 1_000_000_000, Op::Read, PAGE, 0, 1)];
        let (report, _) = run(&settings, trace);
        assert_eq!(report.errors.as_ref().unwrap().refreshed_blocks > 0, refreshed, "{until_s} s");
    }
}

/// Data that need the step as soon as they are written are left alone: they used to be rewritten without end.
#[test]
fn data_that_rewriting_does_not_help_are_left_alone() {
    for (base, refreshed) in [(0.005, false), (0.0045, true)] {
        let mut settings = worn(base, [0.0; 2], [0.036, 1.0, 1.0], NONE);
        settings.ftl.refresh = Some(1);
        let trace = vec![pages(0, Op::Read, PAGE, 0, 1), pages(1_000_000_000, Op::Read, PAGE, 0, 1)];
        let (report, _) = run(&settings, trace);
        let errors = report.errors.as_ref().unwrap();
        assert_eq!((errors.refreshed_blocks > 0, errors.failed_reads), (refreshed, 0), "{base}");
    }
}

fn identity() -> Identity {
    Identity::new()
}

fn saved(prepared: &Prepared) -> Vec<u8> {
    let mut bytes = Vec::new();
    prepared.save(&identity(), &mut bytes).expect("memory takes everything");
    bytes
}

fn prepared(settings: &Settings) -> Prepared {
    Prepared::new(settings, &mut (), true).expect("it can be prepared")
}

fn serve(simulation: &mut Simulation, start_ns: u64, count: u64) -> Vec<u64> {
    let mut log = Log::default();
    reads(start_ns, count).into_iter().for_each(|record| _ = simulation.submit(record).expect("it fits"));
    simulation.run_until_idle(&mut log).expect("every invariant holds");
    latencies(&log.0)
}

/// A state that is saved during a run holds how long data have lain and how often blocks were read: a device that goes
/// on from it reads as the first one does.
#[test]
fn a_saved_state_keeps_age_and_reads() {
    let mut settings = worn(0.0, [0.0; 2], [1e-5, 1.0, 0.5], [1e-6, 1.0, 1.0]);
    settings.flash.age_ns = 10 * HOUR_NS;
    let mut first = Simulation::new(&settings, prepared(&settings));
    serve(&mut first, 0, 60);
    first.advance(10 * HOUR_NS, &mut ()).expect("nothing happens");
    let bytes = saved(&first.prepared());
    let expected = serve(&mut first, 10 * HOUR_NS, 60);
    settings.flash.age_ns = 0;
    let loaded = Prepared::load(&settings, &identity(), &mut &bytes[..], true).expect("as it was saved");
    assert!(saved(&loaded) == bytes);
    assert_eq!(serve(&mut Simulation::new(&settings, loaded), 0, 60), expected);
    assert!(expected[0] > read_ns(0) && expected[59] > expected[0]);
    // A state tells nothing of that where reads met no errors; all its data are then as old as is stated.
    let mut plain = settings.clone();
    plain.flash.errors = Errors::default();
    let loaded = Prepared::load(&plain, &identity(), &mut &bytes[..], true).expect("the rest is as it was");
    let bytes = saved(&loaded);
    settings.flash.age_ns = 100 * HOUR_NS;
    let loaded = Prepared::load(&settings, &identity(), &mut &bytes[..], true).expect("as it was saved");
    assert_eq!(serve(&mut Simulation::new(&settings, loaded), 0, 1), [read_ns(2)]);
}

/// The cells keep what happened to them when the power goes.
#[test]
fn a_power_cut_changes_no_cell() {
    let mut settings = worn(0.0, [0.0; 2], [1e-5, 1.0, 0.5], [1e-6, 1.0, 1.0]);
    settings.flash.age_ns = 16 * HOUR_NS;
    settings.ftl.power_safe = true;
    let times = |cut: bool| {
        let mut simulation = Simulation::new(&settings, prepared(&settings));
        simulation.allow_cuts().expect("it can lose its power");
        serve(&mut simulation, 0, 60);
        if cut {
            simulation.cut(7).expect("power is on");
            simulation.recover().expect("it recovers");
        }
        serve(&mut simulation, 2_000_000_000, 60)
    };
    let expected = times(false);
    assert!(expected.iter().any(|&ns| ns > read_ns(0)));
    assert_eq!(times(true), expected);
}

#[test]
fn contradictions_are_told() {
    let keys = ftlab_core::config::section::defaults::<Settings>();
    let told = |settings: &Settings| settings.check(&keys).expect_err("it does not fit").to_string();
    let mut settings = worn(1e-3, [0.0; 2], NONE, NONE);
    settings.ftl.refresh = Some(4);
    assert!(told(&settings).starts_with("ftl.refresh: data that need step 4 can no longer be read"));
    settings.ftl.refresh = None;
    settings.flash.errors.retry_gain = 1.0;
    assert!(told(&settings).starts_with("flash.errors.retry_gain: 1.0 makes no step"));
}

/// A read that needs no step costs what it costs without errors.
#[test]
fn a_read_without_retries_is_one_step() {
    let settings = worn(1e-3, [0.0; 2], NONE, NONE);
    let mut work: Work = settings.work();
    work.program(0, 0, Cause::Host);
    work.clear();
    work.read(0, 0, Cause::Host);
    assert_eq!(work.steps().len(), 1);
}

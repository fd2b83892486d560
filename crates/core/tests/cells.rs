//! Cells of several bits: page types, their order, and word lines that are programmed at once, against numbers worked
//! out by hand.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::config::PageTimes;
use ftlab_core::flash::Cause;
use ftlab_core::flash::parallel::MultiPlane;
use ftlab_core::flash::settings::{Cell, PageOrder, Programming};
use ftlab_core::ftl::check;
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::workload::{Op, Record};

const PAGE: u64 = 4096;
/// Times of the lower, middle and upper page, ns.
const READS: [u64; 3] = [56_000, 77_000, 106_000];
const PROGRAMS: [u64; 3] = [200_000, 500_000, 1_100_000];

/// Returns a page-mapped device of one chip whose blocks have four word lines of three pages.
fn tlc() -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.flash.pages_per_block = 12;
    settings.flash.blocks_per_plane = 64;
    settings.flash.page_bytes = PAGE as u32;
    settings.ftl.logical_page_bytes = PAGE as u32;
    settings.ftl.over_provisioning_ppm = 250_000;
    settings.flash.cell = Cell::Tlc;
    settings.flash.read = PageTimes::new(&READS);
    settings.flash.program = PageTimes::new(&PROGRAMS);
    settings
}

/// Makes requests of one page each, in address order, a millisecond after one another from `start_ns` on.
fn one_by_one(start_ns: u64, op: Op, count: u64) -> Vec<Record> {
    (0..count).map(|at| pages(start_ns + at * 10_000_000, op, PAGE, at, 1)).collect()
}

fn latencies(settings: &Settings, trace: Vec<Record>) -> (Report, Vec<u64>) {
    check(settings).expect("it fits");
    let (report, done) = checked(settings, trace);
    (report, done.iter().map(|c| c.complete_ns - c.arrival_ns).collect())
}

/// The pages of word lines 0 to 3, in the order in which two passes program them: L0 L1 M0 L2 M1 U0 L3 M2 U1 M3 U2 U3.
const SHADOW: [usize; 12] = [0, 0, 1, 0, 1, 2, 0, 1, 2, 1, 2, 2];

#[test]
fn each_page_takes_the_times_of_its_type() {
    for order in [PageOrder::WordLine, PageOrder::Shadow] {
        let mut settings = tlc();
        settings.flash.page_order = order;
        let types: Vec<usize> = match order {
            PageOrder::WordLine => (0..36).map(|page| page % 3).collect(),
            PageOrder::Shadow => (0..36).map(|page| SHADOW[page % 12]).collect(),
        };
        let mut trace = one_by_one(0, Op::Write, 36);
        trace.extend(one_by_one(1_000_000_000, Op::Read, 36));
        let (report, found) = latencies(&settings, trace);
        let programs = types.iter().map(|&of_type| PROGRAMS[of_type]);
        let reads = types.iter().map(|&of_type| READS[of_type]);
        assert_eq!(found, programs.chain(reads).collect::<Vec<_>>(), "{order:?}");
        // Over whole blocks the mean is that of the types.
        assert_eq!(report.latency.read.mean_ns, 239_000.0 / 3.0);
        assert_eq!(report.flash.program_time.as_ref().map(|time| time.mean_ns), Some(600_000.0));
    }
}

/// Equal times of all types are one time, whatever the order, and whatever the number of bits.
#[test]
fn equal_times_are_one_time() {
    let trace = || common::bursts(7, 3000, 400);
    let mut plain = tlc();
    (plain.flash.cell, plain.flash.read, plain.flash.program) = (Cell::Slc, 70_000.into(), 600_000.into());
    let (expected, done) = checked(&plain, trace());
    for (cell, bits) in [(Cell::Mlc, 2), (Cell::Tlc, 3), (Cell::Qlc, 4)] {
        for page_order in [PageOrder::WordLine, PageOrder::Shadow] {
            let mut settings = plain.clone();
            (settings.flash.cell, settings.flash.page_order) = (cell, page_order);
            settings.flash.read = PageTimes::new(&vec![70_000; bits]);
            settings.flash.program = PageTimes::new(&vec![600_000; bits]);
            check(&settings).expect("it fits");
            let (report, again) = checked(&settings, trace());
            assert_eq!(format!("{report:?}"), format!("{expected:?}"));
            assert_eq!(again, done);
        }
    }
}

/// Returns a device whose word lines are programmed in a millisecond; a page is transferred in 4,096 ns.
fn word_lines() -> Settings {
    let mut settings = tlc();
    settings.flash.programming = Programming::WordLine;
    settings.flash.program = 1_000_000.into();
    settings.flash.transfer_ps = 1000;
    settings.flash.command_ns = 500;
    settings
}

/// Pages wait in the page buffer, without taking time, until their word line is complete; then its data cross the bus
/// behind one command, and it is programmed at once. A flush fills the word line up.
#[test]
fn a_word_line_is_programmed_once_it_is_complete() {
    let mut trace = one_by_one(0, Op::Write, 5);
    trace.push(Record { time_ns: 60_000_000, ..Record::FLUSH });
    trace.extend(one_by_one(70_000_000, Op::Read, 5));
    let (report, found) = latencies(&word_lines(), trace);
    let whole = 500 + 3 * 4096 + 1_000_000;
    assert_eq!(found[..6], [0, 0, whole, 0, 0, whole]);
    let reads = [0, 1, 2, 0, 1].map(|of_type: usize| 500 + READS[of_type] + 4096);
    assert_eq!(found[6..], reads);
    // The flush finds two pages full and fills up the third.
    assert_eq!(report.flash.programs[Cause::Host], 5);
    assert_eq!(report.flash.programs[Cause::Pad], 1);
    assert_eq!(report.waf.total, Some(6.0 / 5.0));
}

/// What is in the page buffer is read from there.
#[test]
fn what_waits_for_its_word_line_is_read_without_the_flash() {
    let mut trace = one_by_one(0, Op::Write, 4);
    trace.extend(one_by_one(50_000_000, Op::Read, 4));
    let (report, found) = latencies(&word_lines(), trace);
    assert_eq!(found[7], 0);
    assert_eq!(report.flash.reads[Cause::Host], 3);
}

/// A write with FUA fills up the word line that it has begun, and no other: it used to fill up those of all streams.
#[test]
fn a_write_with_fua_leaves_the_word_lines_of_other_streams() {
    let mut settings = word_lines();
    settings.ftl.placement = Some("stream".into());
    settings.ftl.fronts = Some(3);
    settings.ftl.over_provisioning_ppm = 600_000;
    let write =
        |time_ns, lpn, stream, flags| Record { stream, flags, ..pages(time_ns, Op::Write, PAGE, lpn, 1) };
    let read = |time_ns, lpn| pages(time_ns, Op::Read, PAGE, lpn, 1);
    let trace = vec![
        write(0, 0, 1, 0),
        write(1_000_000, 1, 2, Record::FUA),
        read(10_000_000, 0),
        read(20_000_000, 1),
    ];
    let (report, found) = latencies(&settings, trace);
    assert_eq!(found, [0, 500 + 3 * 4096 + 1_000_000, 0, 500 + READS[0] + 4096]);
    assert_eq!((report.flash.programs[Cause::Host], report.flash.programs[Cause::Pad]), (1, 2));
}

/// A device written in order has planes x bits x page / (program + transfers) of bandwidth.
#[test]
fn the_bandwidth_of_word_lines() {
    for planes in [1, 2, 4] {
        let mut settings = word_lines();
        settings.flash.planes_per_die = planes;
        if planes > 1 {
            settings.flash.parallel.multi_plane = MultiPlane::SameOffset;
        }
        settings.device.queue_depth = 1000;
        settings.host.queue_depth = u32::MAX;
        let lines = 24 * u64::from(planes);
        let trace = (0..3 * lines).map(|at| pages(0, Op::Write, PAGE, at, 1)).collect();
        let (report, _) = latencies(&settings, trace);
        let transfers = u64::from(planes) * (500 + 3 * 4096);
        assert_eq!(report.elapsed_ns, 24 * (transfers + 1_000_000), "{planes} planes");
    }
}

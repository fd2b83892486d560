//! The SLC cache: steps of a fill, folding, and what is counted, against numbers worked out by hand.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::flash::Cause;
use ftlab_core::flash::settings::{Cell, Programming};
use ftlab_core::ftl::check;
use ftlab_core::ftl::settings::SlcFull;
use ftlab_core::ftl::slc_size::SlcSize;
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::workload::{Op, Record};

const PAGE: u64 = 4096;
const READ: u64 = 50_000;
const PROGRAM: u64 = 600_000;
const ERASE: u64 = 3_000_000;
const SLC_READ: u64 = 20_000;
const SLC_PROGRAM: u64 = 100_000;
const SLC_ERASE: u64 = 1_000_000;

/// Returns a page-mapped device of one chip whose 64 blocks have four word lines of three pages, with an SLC cache of
/// `blocks` blocks of four pages each.
fn tlc(programming: Programming, blocks: u64) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.flash.pages_per_block = 12;
    settings.flash.blocks_per_plane = 64;
    settings.flash.page_bytes = PAGE as u32;
    settings.ftl.logical_page_bytes = PAGE as u32;
    settings.ftl.over_provisioning_ppm = 400_000;
    settings.flash.cell = Cell::Tlc;
    settings.flash.programming = programming;
    settings.flash.read = READ.into();
    settings.flash.program = PROGRAM.into();
    settings.flash.erase_ns = ERASE;
    (settings.flash.slc_read_ns, settings.flash.slc_program_ns) = (Some(SLC_READ), Some(SLC_PROGRAM));
    settings.flash.slc_erase_ns = Some(SLC_ERASE);
    settings.ftl.slc_cache = Some(SlcSize { fixed: blocks * 4 * PAGE, dynamic: None });
    settings.ftl.slc_fold_idle_ns = None;
    settings
}

/// Makes `count` writes of a page each, in address order, all at time 0: the device takes them one after another.
fn fill(count: u64) -> Vec<Record> {
    (0..count).map(|at| pages(0, Op::Write, PAGE, at, 1)).collect()
}

fn run(settings: &Settings, trace: Vec<Record>) -> (Report, Vec<u64>) {
    check(settings).expect("it fits");
    let (report, done) = checked(settings, trace);
    let mut ends: Vec<u64> = done.iter().map(|c| c.complete_ns).collect();
    ends.sort_unstable();
    (report, ends)
}

/// Page by page, a write takes the program time of its step: that of the cache until it is full, then that of the
/// cells.
#[test]
fn a_full_cache_is_passed_by() {
    let mut settings = tlc(Programming::Page, 5);
    settings.ftl.slc_full = SlcFull::Direct;
    let (report, ends) = run(&settings, fill(100));
    for (at, &end) in (1..).zip(&ends) {
        assert_eq!(end, u64::min(at, 20) * SLC_PROGRAM + at.saturating_sub(20) * PROGRAM, "write {at}");
    }
    let fronts = report.placement.expect("two fronts").fronts;
    let written: Vec<_> = fronts.iter().map(|front| (front.name.as_str(), front.written)).collect();
    assert_eq!(written, [("front 0", 80), ("slc", 20)]);
    assert_eq!(report.flash.programs.total(), 100);
}

/// A full cache is folded block by block: each four writes wait for the fold of the four oldest pages.
#[test]
fn a_full_cache_is_folded() {
    let settings = tlc(Programming::Page, 5);
    let (report, ends) = run(&settings, fill(100));
    let fold = 4 * (SLC_READ + PROGRAM) + SLC_ERASE;
    for (at, &end) in (1..).zip(&ends) {
        let folds = (at + 3 - 20u64.min(at + 3)) / 4;
        assert_eq!(end, at * SLC_PROGRAM + folds * fold, "write {at}");
    }
    assert_eq!(report.flash.programs[Cause::Host], 100);
    assert_eq!(report.flash.programs[Cause::Fold], 80);
    assert_eq!(report.flash.reads[Cause::Fold], 80);
    assert_eq!(report.flash.erases[Cause::Fold], 20);
    assert_eq!((report.waf.fold, report.waf.total), (Some(0.8), Some(1.8)));
}

/// Word lines: the cache takes a page at a time, and three of its pages become one word line.
#[test]
fn folded_pages_share_a_word_line() {
    let mut settings = tlc(Programming::WordLine, 3);
    settings.flash.transfer_ps = 1000;
    let transfer = PAGE;
    let (report, ends) = run(&settings, fill(13));
    let fold = 4 * (SLC_READ + transfer) + 2 * (3 * transfer + PROGRAM) + SLC_ERASE;
    let expected: Vec<u64> =
        (1..=13).map(|at| at * (transfer + SLC_PROGRAM) + if at > 12 { fold } else { 0 }).collect();
    assert_eq!(ends, expected);
    // Four pages fill a word line and a third of another.
    assert_eq!(report.flash.programs[Cause::Fold], 6);
    assert_eq!(report.flash.programs[Cause::Host], 13);
}

/// A dynamic cache takes all erased blocks but the reserve. Then each block that is folded, four pages of twelve,
/// leaves eight pages for what passes the cache by. The fill takes the sum of these steps.
#[test]
fn a_dynamic_cache_gives_its_blocks_back() {
    let mut settings = tlc(Programming::Page, 1);
    settings.ftl.slc_cache = Some(SlcSize { fixed: 0, dynamic: Some(u64::MAX) });
    settings.ftl.slc_full = SlcFull::Direct;
    let (report, ends) = run(&settings, fill(460));
    let fold = 4 * (SLC_READ + PROGRAM) + SLC_ERASE;
    for (at, &end) in (1..).zip(&ends) {
        let (cached, direct) = (u64::min(at, 63 * 4), at.saturating_sub(63 * 4));
        assert_eq!(end, cached * SLC_PROGRAM + direct * PROGRAM + direct.div_ceil(8) * fold, "write {at}");
    }
    assert_eq!(report.flash.programs[Cause::Fold], 26 * 4);
    assert_eq!(report.flash.programs.total(), 460 + 26 * 4);
}

/// With a most of its own the dynamic part leaves erased blocks to what passes it by: steps cache, direct.
#[test]
fn a_dynamic_cache_may_have_a_bound() {
    let mut settings = tlc(Programming::Page, 1);
    settings.ftl.slc_cache = Some(SlcSize { fixed: 4 * PAGE, dynamic: Some(8 * PAGE) });
    settings.ftl.slc_full = SlcFull::Direct;
    let (_, ends) = run(&settings, fill(40));
    assert_eq!(ends[39], 12 * SLC_PROGRAM + 28 * PROGRAM);
}

/// An idle device folds its oldest block; a read that comes meanwhile waits for the end of the fold, and finds its page
/// among those of three bits.
#[test]
fn an_idle_device_folds() {
    let mut settings = tlc(Programming::Page, 5);
    settings.ftl.slc_fold_idle_ns = Some(1_000_000);
    let mut trace = fill(8);
    trace.push(pages(3_000_000, Op::Read, PAGE, 0, 1));
    trace.push(pages(20_000_000, Op::Read, PAGE, 7, 1));
    trace.push(pages(20_000_000, Op::Write, PAGE, 9, 1));
    let (report, ends) = run(&settings, trace);
    let fold = 4 * (SLC_READ + PROGRAM) + SLC_ERASE;
    assert_eq!(ends[8], 8 * SLC_PROGRAM + 1_000_000 + fold + READ);
    assert_eq!(ends[9..], [20_000_000 + READ, 20_000_000 + READ + SLC_PROGRAM]);
    assert_eq!((report.flash.programs[Cause::Fold], report.flash.erases[Cause::Fold]), (8, 2));
}

/// Regression: behind a link, cores or a write buffer, the moment at which the device had been idle for long enough was
/// passed over, since nothing moves then.
#[test]
fn an_idle_device_folds_behind_a_controller() {
    type Change = fn(&mut Settings);
    let changes: [Change; 4] = [
        |_| {},
        |settings| settings.device.controller.link = 3_000_000_000,
        |settings| settings.device.controller.command_ns = 1_000,
        |settings| settings.device.buffer.bytes = 4 * PAGE,
    ];
    for change in changes {
        let mut settings = tlc(Programming::Page, 5);
        settings.ftl.slc_fold_idle_ns = Some(1_000_000);
        change(&mut settings);
        let mut trace = fill(8);
        trace.push(pages(60_000_000, Op::Read, PAGE, 0, 1));
        let (report, _) = run(&settings, trace);
        assert_eq!(report.flash.erases[Cause::Fold], 2);
    }
}

/// Folded data goes where its stream would have put it.
#[test]
fn streams_stay_apart_behind_the_cache() {
    let mut settings = tlc(Programming::WordLine, 5);
    settings.ftl.placement = Some("stream".into());
    settings.ftl.fronts = Some(3);
    settings.flash.pages_per_block = 48;
    let trace: Vec<_> = (0..300)
        .map(|at| Record { stream: (at % 3 == 0).into(), ..pages(0, Op::Write, PAGE, at % 60, 1) })
        .collect();
    let (report, _) = run(&settings, trace);
    let fronts = report.placement.expect("several").fronts;
    let of =
        |name: &str| fronts.iter().find(|front| front.name == name).map(|front| (front.written, front.moved));
    assert_eq!(of("slc"), Some((300, 0)));
    let (folded_0, folded_1) = (of("stream 0").expect("there").1, of("stream 1").expect("there").1);
    assert!(folded_1 > 0 && folded_0 > folded_1, "{folded_0} {folded_1}");
}

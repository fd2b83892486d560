//! The SLC cache: steps of a fill, folding, and what is counted, against numbers worked out by hand.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::config::SlcSize;
use ftlab_core::flash::Cause;
use ftlab_core::flash::settings::{Cell, Programming};
use ftlab_core::ftl::check;
use ftlab_core::ftl::settings::SlcFull;
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

/// Page by page, a write takes the program time of its step: that of the cache until it is full, then that of the cells.
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
    let expected: Vec<u64> = (1..=13).map(|at| at * (transfer + SLC_PROGRAM) + if at > 12 { fold } else { 0 }).collect();
    assert_eq!(ends, expected);
    // Four pages fill a word line and a third of another.
    assert_eq!(report.flash.programs[Cause::Fold], 6);
    assert_eq!(report.flash.programs[Cause::Host], 13);
}

//! Merging of pending requests under every scheduler: when a pending request grows, whatever a scheduler counts grows
//! with it.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::host::awareness::AwarenessKind;
use ftlab_core::host::sched;
use ftlab_core::host::settings::Late;
use ftlab_core::settings::Settings;
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

const PAGE: u64 = 4096;

fn merging(scheduler: &str, limit: u64) -> Settings {
    let mut settings = settings();
    settings.host.scheduler = scheduler.into();
    settings.host.merge_limit = Some(limit);
    settings
}

fn dispatched_ns(settings: &Settings, records: Vec<Record>, lpn: u64) -> u64 {
    let (_, log) = checked(settings, records);
    log.iter().find(|done| done.offset == lpn * PAGE).expect("it was dispatched").dispatch_ns
}

/// Regression: a request that had grown left its batch with more pages than it had joined with, so the
/// batch's page count wrapped around, and a batch of density 1/8 went before one of density 1.
#[test]
fn a_grown_request_leaves_its_batch_whole() {
    let mut settings = merging("map+", 64 << 10);
    settings.host.deadline_ns = Some(1_000_000);
    settings.host.late = Late::Request;
    settings.ftl.mapping_cache_bytes = Some(16 << 10);
    let write = pages(0, Op::Write, PAGE, 5000, 8);
    let rest = [pages(2_000_000, Op::Read, PAGE, 100, 1), pages(2_100_000, Op::Read, PAGE, 600, 8)];
    let apart = (0..4).map(|at| pages(1000 + at * 1000, Op::Read, PAGE, at, 1));
    let apart: Vec<_> = [write].into_iter().chain(apart).chain(rest).collect();
    let merged = vec![write, pages(1000, Op::Read, PAGE, 0, 4), rest[0], rest[1]];
    assert_eq!(dispatched_ns(&settings, merged, 100), 3_115_000);
    assert_eq!(dispatched_ns(&settings, apart, 100), 3_115_000);
}

/// Regression: when a request grew at its front, so that it began before its batch's translation page, the prefetch
/// started at an entry before the page's first.
#[test]
fn a_batch_is_prefetched_that_begins_before_its_page() {
    for scheduler in common::by_translation_page() {
        let mut settings = merging(scheduler, 64 << 10);
        // Mappings of the last eight pages are cached, the others are on flash.
        settings.ftl.mapping_cache_bytes = Some(64);
        let mut trace: Vec<_> =
            [508, 512, 2048, 2052].iter().map(|&lpn| pages(0, Op::Write, PAGE, lpn, 4)).collect();
        let later = 1_000_000_000;
        trace.push(pages(later, Op::Read, PAGE, 2048, 1));
        for (at, lpn) in [(1, 512), (2, 511), (3, 513), (4, 515)] {
            trace.push(pages(later + at, Op::Read, PAGE, lpn, 1));
        }
        let (_, log) = checked(&settings, trace);
        let read = log.iter().find(|done| done.offset == 511 * PAGE).expect("it merged");
        assert_eq!((read.size, read.batch), (3 * PAGE, log.last().unwrap().batch), "{scheduler}");
    }
}

/// Draws requests that do not touch each other, each to be cut into pieces that arrive at the same time. The fourth
/// number says which piece arrives first; the others follow from there, on either side.
fn load() -> impl Strategy<Value = Vec<(Op, u64, u64, u64, u64)>> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write)];
    prop::collection::vec((op, 0u64..4, 1u64..8, 0u64..8, 0u64..300_000), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/properties.regressions"))),
        ..ProptestConfig::default()
    })]

    /// Requests that merge on arrival are served as if they had been one request, if the request's class does not
    /// depend on what joined it: all of them are misses within one translation page.
    #[test]
    fn merged_on_arrival_or_beforehand(load in load(), deadline in prop::option::of(1_000_000u64..4_000_000)) {
        let (mut apart, mut merged, mut time_ns) = (Vec::new(), Vec::new(), 0);
        for (at, &(op, page, count, first, gap)) in load.iter().enumerate() {
            time_ns += gap;
            // Each request has a place of its own, apart from the others, in one translation page of 512 entries.
            let lpn = page * 2048 + at as u64 * 16 + 4;
            merged.push(pages(time_ns, op, PAGE, lpn, count));
            let first = first % count;
            for piece in (first..count).chain((0..first).rev()) {
                apart.push(pages(time_ns, op, PAGE, lpn + piece, 1));
            }
        }
        for scheduler in sched::choices() {
            let mut settings = merging(scheduler.name, 64 << 10);
            settings.host.awareness = AwarenessKind::None;
            settings.host.queue_depth = 1 << 16;
            settings.host.deadline_ns = deadline;
            settings.ftl.mapping_cache_bytes = Some(16 << 10);
            let (_, log) = checked(&settings, apart.clone());
            settings.host.merge_limit = None;
            let (_, expected) = checked(&settings, merged.clone());
            prop_assert_eq!(log, expected, "{}", scheduler.name);
        }
    }

    /// What schedulers count stays correct under any load, with every scheduler; check mode verifies it.
    #[test]
    fn schedulers_count_what_grows(
        requests in prop::collection::vec((0u8..24, 0u64..96, 1u64..40, 0u64..400_000), 1..250),
        depth in prop_oneof![1u32..8, Just(128)],
        deadline in prop::option::of(0u64..3_000_000),
        closed in any::<bool>(),
        kind in prop::sample::select(common::all_ftls()),
    ) {
        let mut time_ns = 0;
        let trace: Vec<_> = requests.iter().map(|&(what, at, size, gap)| {
            time_ns += gap / 4 * u64::from(gap % 4 == 0);
            let op = match what {
                0..13 => Op::Read,
                13..22 => Op::Write,
                22 => Op::Trim,
                _ => Op::Flush,
            };
            // Requests are near the border between two translation pages, which is also one between two blocks, in
            // sectors.
            let offset = 512 * PAGE - 48 * 2048 + at * 2048;
            let (offset, size) = if op == Op::Flush { (0, 0) } else { (offset, size * 512) };
            Record { time_ns, op, offset, size, ..Record::FLUSH }
        }).collect();
        for scheduler in sched::choices() {
            let mut settings = merging(scheduler.name, 64 << 10);
            settings.ftl.kind = kind.into();
            settings.ftl.mapping_cache_bytes = Some(4 << 10);
            (settings.host.queue_depth, settings.host.deadline_ns) = (depth, deadline);
            if closed {
                settings.workload.replay = ftlab_core::settings::Replay::Closed;
            }
            let written: u64 = trace.iter().filter(|r| r.op == Op::Write).map(|r| r.size).sum();
            let (report, log) = checked(&settings, trace.clone());
            prop_assert!(log.len() <= trace.len());
            prop_assert_eq!(report.trace.bytes_written, written);
        }
    }
}

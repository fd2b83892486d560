//! The exact cases of the MAP+ specification, to the nanosecond.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::settings::Settings;
use ftlab_core::sim::Completion;
use ftlab_core::workload::Op;

fn with_scheduler(mut settings: Settings, name: &str) -> Settings {
    settings.host.scheduler = name.into();
    settings
}

fn latencies(done: &[Completion]) -> Vec<u64> {
    done.iter().map(|c| c.complete_ns - c.arrival_ns).collect()
}

/// Ids in the order of dispatch.
fn order(done: &[Completion]) -> Vec<u64> {
    let mut by_dispatch: Vec<_> = done.iter().map(|c| (c.dispatch_ns, c.complete_ns, c.id)).collect();
    by_dispatch.sort_unstable();
    by_dispatch.into_iter().map(|(_, _, id)| id).collect()
}

/// Fig. 7 and Table II: five reads at time 0, requests 1 and 3 in one translation page.
fn figure_7(scheduler: &str) -> Vec<Completion> {
    let settings = with_scheduler(settings(), scheduler);
    let read = |lpn, count| pages(0, Op::Read, 4096, lpn, count);
    let trace = vec![read(0, 2), read(600, 1), read(2, 2), read(601, 1), read(602, 2)];
    checked(&settings, trace).1
}

#[test]
fn figure_7_rb_takes_the_older_batch_first() {
    let done = figure_7("rb");
    let unit = 35_000;
    assert_eq!(latencies(&done), [3, 7, 5, 8, 10].map(|units| units * unit));
    assert_eq!(done.iter().map(|c| c.batch).collect::<Vec<_>>(), [1, 2, 1, 2, 2]);
}

#[test]
fn figure_7_map_plus_takes_the_denser_batch_first() {
    let done = figure_7("map+");
    let unit = 35_000;
    assert_eq!(latencies(&done), [8, 2, 10, 3, 5].map(|units| units * unit));
    assert_eq!(latencies(&done).iter().sum::<u64>(), 28 * unit);
}

/// Fig. 5 and Table I: 100 entries per translation page, six mappings cached at the start by six
/// reads that come long before. Returns ids 1 to 12 in order of dispatch, and how many of those
/// twelve were prioritized.
fn figure_5(scheduler: &str) -> (Vec<u64>, usize) {
    let mut settings = with_scheduler(settings(), scheduler);
    settings.flash.page_bytes = 800;
    settings.ftl.logical_page_bytes = 800;
    settings.ftl.entry_bytes = 8;
    let cached = [10, 11, 110, 111, 210, 211];
    let late = 1_000_000_000;
    let requests = [5, 105, 106, 6, 10, 205, 206, 11, 110, 111, 210, 211];
    let mut trace: Vec<_> = cached
        .iter()
        .enumerate()
        .map(|(i, &lpn)| pages(i as u64 * 1_000_000, Op::Read, 800, lpn, 1))
        .collect();
    trace.extend(requests.iter().map(|&lpn| pages(late, Op::Read, 800, lpn, 1)));
    let done: Vec<_> = checked(&settings, trace).1.into_iter().filter(|c| c.id > 6).collect();
    let prioritized = done.iter().filter(|c| c.prioritized).count();
    (order(&done).into_iter().map(|id| id - 6).collect(), prioritized)
}

#[test]
fn table_1_orders_and_prioritized_requests() {
    assert_eq!(figure_5("noop"), ((1..=12).collect(), 0));
    assert_eq!(figure_5("hp"), (vec![5, 8, 9, 10, 11, 12, 1, 2, 3, 4, 6, 7], 6));
    assert_eq!(figure_5("map"), (vec![5, 8, 9, 10, 11, 12, 1, 4, 2, 3, 6, 7], 9));
}

/// Fig. 6: reads of 10 us, an opening miss at time 0 on request 2's page, both at time 10.
fn figure_6(scheduler: &str) -> Vec<u64> {
    let mut settings = with_scheduler(settings(), scheduler);
    settings.flash.read_ns = 10_000;
    let trace = vec![
        pages(0, Op::Read, 4096, 7, 1),
        pages(10_000, Op::Read, 4096, 2000, 1),
        pages(10_000, Op::Read, 4096, 7, 1),
    ];
    let done = checked(&settings, trace).1;
    done[1..].iter().map(|c| c.dispatch_ns - c.arrival_ns).collect()
}

#[test]
fn figure_6_waits() {
    assert_eq!(figure_6("noop"), [10_000, 30_000]);
    assert_eq!(figure_6("hp"), [20_000, 10_000]);
}

/// Eq. (2): a miss costs p_dirty (read + program) + read, then the access itself.
#[test]
fn a_miss_costs_what_equation_2_says() {
    let mut settings = settings();
    settings.ftl.mapping_cache_bytes = Some(8);
    let trace = vec![
        pages(0, Op::Write, 4096, 0, 1),
        pages(10_000_000, Op::Read, 4096, 1000, 1),
        pages(20_000_000, Op::Read, 4096, 2000, 1),
    ];
    let done = checked(&settings, trace).1;
    let (read, program) = (35_000, 350_000);
    assert_eq!(latencies(&done), [read + program, (read + program) + read + read, read + read]);
    assert_eq!(done.iter().map(|c| c.mapping_misses).sum::<u32>(), 3);
}

/// A cache as large as the map equals the full page map once warm, to the nanosecond.
#[test]
fn a_cache_as_large_as_the_map_equals_the_page_map() {
    for scheduler in common::schedulers(false) {
        let mut dftl = with_scheduler(settings(), scheduler);
        dftl.ftl.mapping_cache_bytes = Some(dftl.user_pages() * 8);
        dftl.host.deadline_ns = Some(10_000_000);
        let mut page = dftl.clone();
        page.ftl.kind = "page".into();
        let mut cdftl = dftl.clone();
        cdftl.ftl.kind = "cdftl".into();
        cdftl.ftl.mapping_cache_bytes = Some(dftl.user_pages() * 16 + 65536);
        let mut tpftl = dftl.clone();
        tpftl.ftl.kind = "tpftl".into();
        let lpns = 4000;
        let mut trace: Vec<_> = (0..lpns).map(|lpn| pages(0, Op::Read, 4096, lpn, 1)).collect();
        let mut state = 7u64;
        for index in 0..2000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let op = if state >> 40 & 1 == 0 { Op::Read } else { Op::Write };
            let at = 3_600_000_000_000 + index / 8 * 900_000;
            trace.push(pages(at, op, 4096, (state >> 33) % (lpns - 4), 1 + (state >> 45) % 4));
        }
        let warm = |settings: &Settings| {
            let done = checked(settings, trace.clone()).1;
            let rows = done.into_iter().filter(|c| c.id > lpns);
            rows.map(|c| (c.dispatch_ns, c.complete_ns, c.prioritized, c.batch > 0)).collect::<Vec<_>>()
        };
        let expected = warm(&page);
        assert_eq!(warm(&dftl), expected, "{scheduler} on dftl");
        assert_eq!(warm(&cdftl), expected, "{scheduler} on cdftl");
        assert_eq!(warm(&tpftl), expected, "{scheduler} on tpftl");
    }
}

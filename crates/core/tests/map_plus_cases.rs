//! The exact cases of the MAP+ specification, to the nanosecond.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::ftl::map::dftl::Load;
use ftlab_core::host::settings::Late;
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::Completion;
use ftlab_core::workload::{Op, Record};

fn with_scheduler(mut settings: Settings, name: &str) -> Settings {
    settings.host.scheduler = name.into();
    settings
}

fn latencies(done: &[Completion]) -> Vec<u64> {
    done.iter().map(|c| c.complete_ns - c.arrival_ns).collect()
}

/// Returns the ids of the requests, in the order of dispatch.
fn order(done: &[Completion]) -> Vec<u64> {
    let mut by_dispatch: Vec<_> = done.iter().map(|c| (c.dispatch_ns, c.complete_ns, c.id)).collect();
    by_dispatch.sort_unstable();
    by_dispatch.into_iter().map(|(_, _, id)| id).collect()
}

/// Runs Fig. 7 and Table II: five reads arrive at time 0, and requests 1 and 3 share a translation page.
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

/// Runs Fig. 5 and Table I: a translation page has 100 entries, and six mappings are cached at the start by six reads
/// long before. Returns ids 1 to 12 in order of dispatch, and how many of those twelve were prioritized.
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

/// Runs Fig. 6: reads take 10 us; a first miss, at time 0, is on request 2's page; requests 1 and 2 both arrive at 10
/// us. Returns how long these two wait.
fn figure_6(scheduler: &str) -> Vec<u64> {
    let mut settings = with_scheduler(settings(), scheduler);
    settings.flash.read = 10_000.into();
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

/// Runs four reads under rb: reads 2 and 4 share a translation page, and read 2 is late when the device has room after
/// read 1.
fn late(late: Late) -> Vec<Completion> {
    let mut settings = with_scheduler(settings(), "rb");
    (settings.host.deadline_ns, settings.host.late) = (Some(70_000), late);
    let trace = [(0, 0), (0, 600), (5_000, 1100), (15_000, 601)];
    checked(&settings, trace.map(|(at, lpn)| pages(at, Op::Read, 4096, lpn, 1)).to_vec()).1
}

#[test]
fn a_late_request_takes_its_batch_along() {
    let us = |done: &[Completion]| done.iter().map(|c| c.dispatch_ns / 1000).collect::<Vec<_>>();
    let batch = late(Late::Batch);
    // One read of the translation page serves both requests; then read 3 is late, too.
    assert_eq!(us(&batch), [0, 70, 175, 140]);
    assert_eq!(batch.iter().map(|c| c.expired).collect::<Vec<_>>(), [false, true, true, false]);
    assert_eq!(batch.iter().map(|c| c.prioritized).collect::<Vec<_>>(), [false, false, false, true]);
    let alone = late(Late::Request);
    assert_eq!(us(&alone), [0, 70, 210, 140], "read 4 reads the translation page again");
    assert_eq!(alone.iter().map(|c| c.prioritized).filter(|&is| is).count(), 0);
}

/// Runs the trace with `ftl.load` at each of its values.
fn loads(settings: &Settings, trace: &[Record]) -> [(Report, Vec<Completion>); 2] {
    [Load::Entry, Load::Request].map(|load| {
        let mut settings = settings.clone();
        settings.ftl.own.dftl.load = load;
        checked(&settings, trace.to_vec())
    })
}

/// Returns the numbers of reads, misses and prefetches of the mapping, and the hit ratio.
fn mapping((report, _): &(Report, Vec<Completion>)) -> (u64, u64, u64, Option<f64>) {
    let mapping = &report.mapping;
    (mapping.translation_reads, mapping.misses, mapping.prefetches, mapping.hit_ratio)
}

/// With `ftl.load` at "request", a miss loads all mappings of its translation page that the request needs. Four pages
/// are read across the border of two translation pages (512 entries), then three of them and one more.
#[test]
fn a_request_loads_its_own_mappings_of_a_translation_page_with_one_read() {
    let trace = [pages(0, Op::Read, 4096, 510, 4), pages(10_000_000, Op::Read, 4096, 511, 4)];
    let [entry, request] = loads(&settings(), &trace);
    assert_eq!(latencies(&entry.1), [280_000, 175_000], "4 + 4 reads, 1 + 4 reads");
    assert_eq!(mapping(&entry), (5, 5, 0, Some(3.0 / 8.0)));
    assert_eq!(latencies(&request.1), [210_000, 175_000], "2 + 4 reads, 1 + 4 reads");
    assert_eq!(mapping(&request), (3, 3, 0, Some(5.0 / 8.0)));
    // A batch loads what its translation page has; the rest misses, and what a miss loads depends on the key.
    let [entry, request] = loads(&with_scheduler(settings(), "rb"), &trace[..1]);
    assert_eq!(latencies(&entry.1), [245_000], "1 for the batch, 2 on demand, 4 of data");
    assert_eq!(mapping(&entry), (3, 2, 1, Some(1.0 / 4.0)));
    assert_eq!(latencies(&request.1), [210_000], "1 for the batch, 1 on demand, 4 of data");
    assert_eq!(mapping(&request), (2, 1, 1, Some(2.0 / 4.0)));
}

/// Six pages are read through a cache of four entries, one of them dirty: a miss loads no more than the next four
/// mappings, so the fifth page misses again.
#[test]
fn a_request_larger_than_the_cache_keeps_its_next_mappings() {
    let mut settings = settings();
    settings.ftl.mapping_cache_bytes = Some(4 * 8);
    let trace = [pages(0, Op::Write, 4096, 1000, 1), pages(10_000_000, Op::Read, 4096, 0, 6)];
    let [entry, request] = loads(&settings, &trace);
    assert_eq!(latencies(&entry.1), [385_000, 385_000 + 12 * 35_000]);
    assert_eq!(latencies(&request.1), [385_000, 385_000 + 8 * 35_000]);
    assert_eq!((mapping(&entry), mapping(&request)), ((8, 7, 0, Some(0.0)), (4, 3, 0, Some(4.0 / 7.0))));
    assert_eq!(request.0.mapping.translation_programs, 1);
    // A cache of one entry has no room for a second one.
    settings.ftl.mapping_cache_bytes = Some(8);
    let [entry, request] = loads(&settings, &trace);
    assert_eq!(request.1, entry.1);
}

/// Tests the caches that other FTLs share with DFTL: after eight writes they hold the last four mappings.
#[test]
fn gathered_units_are_loaded_as_the_key_says() {
    for kind in ["dftl", "minipage", "msftl"] {
        let mut settings = settings();
        settings.ftl.kind = kind.into();
        settings.ftl.mapping_cache_bytes = Some(4 * 8);
        settings.ftl.flush_bytes = (kind == "dftl").then_some(1 << 30);
        settings.ftl.over_provisioning_ppm = 200_000;
        let trace = [pages(0, Op::Write, 4096, 0, 8), pages(10_000_000, Op::Read, 4096, 0, 4)];
        let misses = |(_, done): &(Report, Vec<Completion>)| done[1].mapping_misses;
        assert_eq!(loads(&settings, &trace).each_ref().map(misses), [4, 1], "{kind}");
    }
}

/// Requests of one page have nothing else to load. A batch of one request loads just what the request's own miss does:
/// with nothing to reorder, plain DFTL takes as long as it does under rb.
#[test]
fn the_load_of_a_request_is_that_of_a_batch_of_one() {
    let mut state = 7u64;
    let mut trace = |most: u64| -> Vec<_> {
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut record = |index: u64| {
            let (page, count) = (draw(20), 1 + draw(most));
            let op = if draw(3) == 0 { Op::Write } else { Op::Read };
            pages(index * 20_000_000, op, 4096, page * 512 + draw(512 - count), count)
        };
        (0..1000).map(&mut record).collect()
    };
    let mut device = settings();
    device.ftl.mapping_cache_bytes = Some(128 * 8);
    let [entry, request] = loads(&device, &trace(1));
    assert!(entry.1 == request.1 && mapping(&entry) == mapping(&request));
    device.ftl.mapping_cache_bytes = None;
    let trace = trace(16);
    let [alone, request] = loads(&device, &trace);
    let [batch, _] = loads(&with_scheduler(device, "rb"), &trace);
    assert_eq!(latencies(&request.1), latencies(&batch.1));
    assert_eq!(request.0.mapping.hit_ratio, batch.0.mapping.hit_ratio);
    assert!(alone.0.latency.all.mean_ns > batch.0.latency.all.mean_ns);
}

/// A cache as large as the map equals the full page map once it is warm, to the nanosecond.
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

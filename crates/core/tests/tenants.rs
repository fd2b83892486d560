//! Tenants: several loads at once, what each of them gets, and whose turn it is.

use ftlab_conformance as common;

use common::{bursts, checked, pages, shared, small, with_tenants};
use ftlab_core::host::settings::Queues;
use ftlab_core::metrics::Report;
use ftlab_core::settings::{Replay, Settings};
use ftlab_core::sim::Completion;
use ftlab_core::workload::settings::By;
use ftlab_core::workload::tenants::Class;
use ftlab_core::workload::{Op, Record};

const PAGE: u64 = 4096;

/// Returns a report as text, without what only a run with tenants has.
fn without_tenants(report: &Report) -> String {
    let mut report = report.clone();
    (report.tenants, report.beside_tenants) = (None, None);
    serde_json::to_string(&report).expect("a report is JSON")
}

fn reads(count: u64, lpns: u64) -> Vec<Record> {
    (0..count).map(|at| pages(0, Op::Read, PAGE, at * 7 % lpns, 1)).collect()
}

#[test]
fn one_tenant_is_none() {
    for scheduler in common::schedulers(false) {
        let mut settings = small("dftl", 4);
        settings.host.scheduler = scheduler.into();
        let load = bursts(3, 800, settings.user_pages());
        let (expected, rows) = checked(&settings, load.clone());
        for queues in [Queues::Shared, Queues::PerTenant] {
            let mut one = with_tenants(&settings, &["a"]);
            one.host.queues = queues;
            let (report, same) = shared(&one, std::slice::from_ref(&load));
            assert_eq!(without_tenants(&report), without_tenants(&expected), "{scheduler}");
            assert_eq!(format!("{same:?}"), format!("{rows:?}"), "{scheduler}");
        }
    }
}

/// A stream that is the only one, in a queue of its own.
#[test]
fn one_stream_is_none() {
    for scheduler in ["noop", "row", "rb", "map+"] {
        let mut settings = small("dftl", 4);
        settings.host.scheduler = scheduler.into();
        let load = bursts(4, 800, settings.user_pages());
        let expected = checked(&settings, load.clone()).0;
        (settings.workload.tenants, settings.host.queues) = (By::Stream, Queues::PerTenant);
        let report = checked(&settings, load).0;
        assert_eq!(without_tenants(&report), without_tenants(&expected), "{scheduler}");
    }
}

/// Regression: pages that were read ahead counted as the first stream's, and were in no figure where it sent no
/// request.
#[test]
fn pages_read_ahead_are_those_of_the_stream_that_reads_on() {
    let mut settings = small("page", 4);
    settings.device.buffer.read_ahead = 4 * PAGE;
    settings.workload.tenants = By::Stream;
    let read = |at: u64| Record { stream: 3, ..pages(at * 1_000_000, Op::Read, PAGE, at, 1) };
    let (report, _) = checked(&settings, (0..8).map(read).collect());
    let (tenants, beside) =
        (report.tenants.expect("there is one"), report.beside_tenants.expect("it is there"));
    let [stream] = &tenants[..] else { panic!("{tenants:?}") };
    assert_eq!((stream.name.as_str(), stream.flash.reads), ("3", report.flash.reads.total()));
    assert!(stream.flash.reads > 8 && beside.reads == 0, "{stream:?}");
}

/// Two loads and the one trace that holds both are the same.
#[test]
fn tenants_by_table_and_by_stream_are_the_same() {
    for queues in [Queues::Shared, Queues::PerTenant] {
        let mut settings = small("dftl", 4);
        settings.host.queues = queues;
        let half = settings.user_pages() / 2;
        let loads = [bursts(5, 500, half), bursts(6, 500, half)];
        let (report, rows) = shared(&with_tenants(&settings, &["a", "b"]), &loads);
        let mut both: Vec<Record> = Vec::new();
        for (stream, load) in (0..).zip(&loads) {
            let offset = u64::from(stream) * half * PAGE;
            both.extend(load.iter().map(|record| Record {
                stream,
                offset: record.offset + offset,
                ..*record
            }));
        }
        both.sort_by_key(|record| (record.time_ns, record.stream));
        settings.workload.tenants = By::Stream;
        let (other, same) = checked(&settings, both);
        assert_eq!(format!("{same:?}"), format!("{rows:?}"));
        assert_eq!(without_tenants(&report), without_tenants(&other));
    }
}

/// Makes a device of one chip whose queue has one place, so that the arbiter decides the order of all requests.
fn serial(arbiter: &str, names: &[&str]) -> Settings {
    let mut settings = small("page", 1);
    settings.device.queue_depth = 1;
    settings.host.queues = Queues::PerTenant;
    settings.host.arbiter = arbiter.into();
    with_tenants(&settings, names)
}

/// Returns the tenants in the order in which their requests were dispatched.
fn turns(rows: &[Completion]) -> Vec<u16> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.dispatch_ns);
    rows.iter().map(|row| row.stream).collect()
}

#[test]
fn round_robin_takes_one_request_of_each_tenant_in_turn() {
    let settings = serial("rr", &["a", "b", "c"]);
    let rows = shared(&settings, &[reads(4, 50), reads(2, 50), reads(3, 50)]).1;
    assert_eq!(turns(&rows), [0, 1, 2, 0, 1, 2, 0, 2, 0]);
}

#[test]
fn weighted_round_robin_takes_as_many_as_the_weights_say_and_urgent_ones_first() {
    let mut settings = serial("wrr", &["a", "b", "c", "d"]);
    for (tenant, (weight, class)) in settings.tenants.0.iter_mut().zip([
        (2, Class::Low),
        (3, Class::High),
        (1, Class::Urgent),
        (1, Class::Low),
    ]) {
        (tenant.own.weight, tenant.own.priority) = (weight, class);
    }
    let rows = shared(&settings, &[reads(4, 50), reads(7, 50), reads(2, 50), reads(2, 50)]).1;
    // The round of 3 + 2 + 1 requests repeats, after the urgent ones; what is left then goes in turns of the weights.
    assert_eq!(turns(&rows), [2, 2, 1, 1, 1, 0, 0, 3, 1, 1, 1, 0, 0, 3, 1]);
}

/// The law of `wrr`: a saturated device is shared in the ratio of the weights.
#[test]
fn weights_divide_a_saturated_device() {
    // The names must not matter, nor whether a tenant has fewer requests outstanding than the device has places.
    for (weights, kind, places, depths) in [
        ([3, 1], "page", 8, [32, 32]),
        ([5, 2], "dftl", 8, [32, 32]),
        ([1, 3], "page", 1, [8, 1]),
        ([3, 1], "page", 1, [1, 8]),
    ] {
        let mut settings = small(kind, 4);
        settings.device.queue_depth = places;
        (settings.host.queues, settings.host.arbiter) = (Queues::PerTenant, "wrr".into());
        settings.workload.replay = Replay::Closed;
        let mut settings = with_tenants(&settings, &["a", "b"]);
        for (tenant, (weight, depth)) in settings.tenants.0.iter_mut().zip(weights.into_iter().zip(depths)) {
            (tenant.own.weight, tenant.own.queue_depth) = (weight, Some(depth));
            tenant.own.duration_ns = Some(300_000_000);
        }
        let tenants = shared(&settings, &[reads(20_000, 150), reads(20_000, 150)]).0.tenants.unwrap();
        let ratio = tenants[0].requests_per_s / tenants[1].requests_per_s;
        let wanted = f64::from(weights[0]) / f64::from(weights[1]);
        assert!((ratio / wanted - 1.0).abs() < 0.02, "{weights:?}: {ratio}");
    }
}

/// Equal tenants are served equally: the greatest mean latency is the least within 2 %.
#[test]
fn equal_tenants_are_served_equally() {
    for queues in [Queues::Shared, Queues::PerTenant] {
        let mut settings = small("page", 4);
        settings.host.queues = queues;
        settings.workload.replay = Replay::Closed;
        let mut settings = with_tenants(&settings, &["a", "b", "c", "d"]);
        for tenant in &mut settings.tenants.0 {
            tenant.own.queue_depth = Some(8);
        }
        let load = reads(3_000, 90);
        let tenants = shared(&settings, &vec![load; 4]).0.tenants.unwrap();
        let means = tenants.iter().map(|tenant| tenant.latency.all.mean_ns);
        let (least, most) =
            means.fold((f64::MAX, 0.0f64), |(low, high), mean| (low.min(mean), high.max(mean)));
        assert!(most / least < 1.02, "{least} to {most}");
    }
}

/// Bytes, requests, operations and time of all tenants are the device's, with and without a write buffer, which writes
/// to the flash later, on its own.
#[test]
fn the_parts_of_all_tenants_add_up() {
    for buffer in [0, 64 << 10] {
        let mut settings = small("dftl", 4);
        settings.device.buffer.bytes = buffer;
        settings.host.queues = Queues::PerTenant;
        let settings = with_tenants(&settings, &["a", "b", "c"]);
        let third = settings.user_pages() / 3;
        let loads = [bursts(7, 900, third), bursts(8, 600, third), bursts(9, 300, third)];
        let report = shared(&settings, &loads).0;
        let (tenants, rest) = (report.tenants.unwrap(), report.beside_tenants.unwrap());
        let sum = |of: fn(&ftlab_core::metrics::Tenant) -> u64| -> u64 { tenants.iter().map(of).sum() };
        assert_eq!(sum(|tenant| tenant.requests), report.trace.requests);
        assert_eq!(sum(|tenant| tenant.bytes_read), report.trace.bytes_read);
        assert_eq!(sum(|tenant| tenant.bytes_written), report.trace.bytes_written);
        let flash = &report.flash;
        assert_eq!(sum(|tenant| tenant.flash.reads) + rest.reads, flash.reads.total());
        assert_eq!(sum(|tenant| tenant.flash.programs) + rest.programs, flash.programs.total());
        assert_eq!(sum(|tenant| tenant.flash.erases) + rest.erases, flash.erases.total());
        assert_eq!(sum(|tenant| tenant.flash.busy_ns) + rest.busy_ns, flash.busy_ns.total());
        assert!(tenants.iter().all(|tenant| tenant.flash.programs > 0));
        let shares: f64 = tenants.iter().filter_map(|tenant| tenant.flash.share).sum();
        assert!((shares + rest.share.unwrap() - 1.0).abs() < 1e-12);
        let all: f64 = tenants.iter().map(|tenant| tenant.throughput_bytes_per_s).sum();
        assert!((all / report.throughput_bytes_per_s - 1.0).abs() < 1e-12);
    }
}

#[test]
fn a_tenant_begins_at_its_start_and_ends_after_its_duration() {
    let mut settings = serial("rr", &["closed", "open"]);
    settings.tenants.0[0].workload.replay = Replay::Closed;
    for tenant in &mut settings.tenants.0 {
        tenant.own.queue_depth = Some(2);
        (tenant.own.start_ns, tenant.own.duration_ns) = (1_000_000, Some(500_000));
    }
    let later = |at: u64| pages(at * 100_000, Op::Read, PAGE, at, 1);
    let rows = shared(&settings, &[reads(100, 50), (0..9).map(later).collect()]).1;
    let of = |stream| rows.iter().filter(move |row| row.stream == stream).map(|row| row.arrival_ns);
    assert_eq!(of(1).collect::<Vec<_>>(), [1_000_000, 1_100_000, 1_200_000, 1_300_000, 1_400_000]);
    assert_eq!(of(0).take(2).collect::<Vec<_>>(), [1_000_000; 2]);
    assert!(of(0).all(|at_ns| at_ns < 1_500_000) && of(0).count() > 2);
    // Each completion before the end lets another request of the closed tenant arrive.
    let ends = rows.iter().filter(|row| row.stream == 0 && row.complete_ns < 1_500_000);
    assert_eq!(of(0).count(), 2 + ends.count());
}

/// A queue that is full keeps its own tenant out, and nobody else.
#[test]
fn a_full_queue_keeps_only_its_own_tenant_out() {
    let mut settings = serial("rr", &["a", "b"]);
    settings.tenants.0[0].own.queue_depth = Some(1);
    let rows = shared(&settings, &[reads(6, 50), reads(3, 50)]).1;
    assert_eq!(turns(&rows), [0, 1, 0, 1, 0, 1, 0, 0, 0]);
}

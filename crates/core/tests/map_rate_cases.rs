//! Exact cases of map-rate and map-ratio, worked out by hand, and laws that tie them to map+.

use ftlab_conformance as common;

use common::{bursts, checked, every_request_completes_once, pages, settings, small};
use ftlab_core::settings::Settings;
use ftlab_core::sim::Completion;
use ftlab_core::workload::{Op, Record};

const US: u64 = 1000;

fn with(name: &str) -> Settings {
    let mut settings = settings();
    settings.host.scheduler = name.into();
    settings.host.deadline_ns = None;
    settings
}

fn read(at_us: u64, lpn: u64, count: u64) -> Record {
    pages(at_us * US, Op::Read, 4096, lpn, count)
}

fn write(at_us: u64, lpn: u64, count: u64) -> Record {
    pages(at_us * US, Op::Write, 4096, lpn, count)
}

fn dispatched_us(done: &[Completion]) -> Vec<u64> {
    done.iter().map(|c| c.dispatch_ns / US).collect()
}

/// Returns when each of six requests is dispatched, in us after all arrived at 10 ms; a read takes 35 us, a program 350
/// us.
fn six(name: &str) -> Vec<u64> {
    let at = 10_000;
    let trace = vec![
        read(0, 0, 1),
        write(at, 1000, 1), // 35 + 350 us, alone in its batch
        read(at, 2000, 4),  // 35 + 140 us
        read(at, 0, 1),     // a hit, 35 us
        read(at, 3000, 1),  // two in a batch, 35 + 70 us
        read(at, 3001, 1),
        write(at, 0, 1), // a hit, 350 us
    ];
    dispatched_us(&checked(&with(name), trace).1)[1..].iter().map(|us| us - at).collect()
}

#[test]
fn map_rate_takes_what_ends_most_requests_per_time() {
    // The rates are 1/35, 2/105, 1/175, 1/350 and 1/385 requests per us.
    assert_eq!(six("map-rate"), [665, 140, 0, 35, 105, 315]);
    // Hits go first, and reads before writes: the hit that takes 350 us goes before both batches of reads.
    assert_eq!(six("map+"), [665, 490, 0, 385, 455, 35]);
}

#[test]
fn equal_waits_leave_map_ratio_the_order_by_requests_and_age() {
    // At first no request has waited: a batch of two requests has ratio 2, all others have 1, and of those the oldest
    // goes first. From then on waits count: after 105 us the hit of 35 us has ratio 4, the batch of 175 us has 1.6, and
    // the writes have less.
    assert_eq!(six("map-ratio"), [665, 140, 105, 0, 70, 315]);
}

#[test]
fn a_small_request_goes_first_in_its_batch_and_brings_in_its_mappings() {
    let trace = vec![read(0, 0, 4), read(0, 8, 1), read(0, 12, 2)];
    for name in ["map-rate", "map-ratio"] {
        let done = checked(&with(name), trace.clone()).1;
        // The first request to go, which has one page, also takes the 35 us for the translation page.
        assert_eq!(dispatched_us(&done), [140, 0, 70], "{name}");
        assert_eq!(done.iter().map(|c| c.prioritized).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(done.iter().map(|c| c.mapping_misses).sum::<u32>(), 0);
    }
}

#[test]
fn under_map_ratio_a_wait_outweighs_a_small_cost() {
    let trace = vec![read(0, 0, 1), write(5, 600, 1), read(65, 1200, 1)];
    // At 70 us the write has waited 65 us and costs 385 us; the read has waited 5 us and costs 70 us.
    assert_eq!(dispatched_us(&checked(&with("map-ratio"), trace.clone()).1), [0, 70, 455]);
    assert_eq!(dispatched_us(&checked(&with("map-rate"), trace).1), [0, 140, 70]);
}

#[test]
fn a_flush_goes_after_the_writes_it_waits_for() {
    let flush = Record { op: Op::Flush, size: 0, ..read(10, 0, 1) };
    let trace = vec![read(0, 0, 1), write(10, 600, 1), flush, write(20, 1200, 1)];
    for name in ["map-rate", "map-ratio"] {
        let done = checked(&with(name), trace.clone()).1;
        assert!(done[2].dispatch_ns >= done[1].dispatch_ns, "{name}: {:?}", dispatched_us(&done));
    }
}

#[test]
fn a_late_request_takes_its_batch_along_under_map_rate() {
    let mut settings = with("map-rate");
    settings.host.deadline_ns = Some(300 * US);
    // Hits of LPN 0 never cease, at a rate of 1/35 requests per us; reads 2 and 3 share a translation page, at 2/350.
    let mut trace = vec![read(0, 0, 1), read(10, 700, 8), read(20, 600, 1)];
    trace.extend((2..20).map(|number| read(35 * number, 0, 1)));
    let done = checked(&settings, trace).1;
    // At 315 us read 2 has waited 305 us: its batch goes, the small request first, although that one is not late
    // itself.
    assert_eq!(dispatched_us(&done)[1..3], [385, 315]);
    assert_eq!([done[1].expired, done[2].expired], [true, false]);
    assert_eq!(done[1].batch, done[2].batch);
}

/// Reads without hits come in batches of eight pages each, in requests of equal size: the read of the translation page
/// does not change the order, and small requests are not behind large ones.
#[test]
fn map_rate_is_map_plus_without_a_deadline_where_costs_are_equal() {
    let mut trace = Vec::new();
    for burst in 0..40u64 {
        for batch in 0..6u64 {
            let count = 1 << ((burst * 7 + batch * 5) % 4);
            let first = batch * 512 + burst % 16 * 16;
            trace.extend((0..8 / count).map(|number| read(burst * 20_000, first + number * count, count)));
        }
    }
    let run = |name: &str| {
        let mut settings = with(name);
        settings.host.awareness = ftlab_core::host::awareness::AwarenessKind::None;
        dispatched_us(&checked(&settings, trace.clone()).1)
    };
    assert_eq!(run("map-rate"), run("map+"));
}

/// Every wait ends, even without a deadline and though new requests never cease.
#[test]
fn nothing_starves_under_map_ratio() {
    let mut trace = vec![read(0, 0, 1), write(1, 5000, 64)];
    // A hit that takes 35 us comes every 35 us: the device is never idle.
    trace.extend((1..4000).map(|number| read(35 * number, 0, 1)));
    let wait_us = |name: &str| {
        let done = checked(&with(name), trace.clone()).1;
        let write = done.iter().find(|c| c.op == Op::Write).unwrap();
        (write.dispatch_ns - write.arrival_ns) / US
    };
    assert!(wait_us("map-rate") > 100_000, "it waits for the hits to end");
    // Each hit has waited for as long as it takes; the write goes once it has waited for the 22,435 us that it takes.
    assert!((22_435..22_505).contains(&wait_us("map-ratio")), "{}", wait_us("map-ratio"));
}

#[test]
fn both_run_above_every_depth_of_the_device() {
    for name in ["map-rate", "map-ratio"] {
        for depth in [1, 4, u32::MAX] {
            let mut settings = small("dftl", 4);
            settings.host.scheduler = name.into();
            settings.device.queue_depth = depth;
            every_request_completes_once(
                &settings,
                &bursts(u64::from(depth % 7), 2000, settings.user_pages()),
            );
        }
    }
}

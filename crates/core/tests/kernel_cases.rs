//! Exact cases of the schedulers that Linux has, worked out by hand.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::Completion;
use ftlab_core::workload::{Op, Record};

const US: u64 = 1000;
const MS: u64 = 1_000_000;

/// Returns one chip that reads a page in 35 us and programs one in 350 us, with nothing to look up.
fn with(name: &str) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.host.scheduler = name.into();
    settings
}

fn read(at_us: u64, lpn: u64) -> Record {
    pages(at_us * US, Op::Read, 4096, lpn, 1)
}

fn write(at_us: u64, lpn: u64) -> Record {
    pages(at_us * US, Op::Write, 4096, lpn, 1)
}

/// Returns the numbers of the requests, in the order of dispatch.
fn order(done: &[Completion]) -> Vec<u64> {
    let mut by_dispatch: Vec<_> = done.iter().map(|c| (c.dispatch_ns, c.complete_ns, c.id)).collect();
    by_dispatch.sort_unstable();
    by_dispatch.into_iter().map(|(_, _, id)| id).collect()
}

fn ordered(settings: &Settings, trace: Vec<Record>) -> Vec<u64> {
    order(&checked(settings, trace).1)
}

#[test]
fn a_batch_of_mq_deadline_goes_on_by_address_and_starts_anew_from_the_oldest() {
    let trace = vec![read(0, 50), read(1, 10), read(1, 60), read(1, 20)];
    // From page 50 on there is 60; then nothing is ahead, so the oldest request begins a batch, at 10.
    assert_eq!(ordered(&with("mq-deadline"), trace), [1, 3, 2, 4]);
}

#[test]
fn reads_starve_writes_of_mq_deadline_for_two_batches() {
    let mut settings = with("mq-deadline");
    let mut trace = vec![read(0, 0)];
    trace.extend([10, 20, 30, 40].map(|lpn| read(1, lpn)));
    trace.extend([100, 110].map(|lpn| write(1, lpn)));
    settings.host.sched.own.mq_deadline.fifo_batch = 1;
    assert_eq!(ordered(&settings, trace.clone()), [1, 2, 3, 6, 4, 5, 7]);
    // The first read and 10 are a batch that began while no write waited; 20 and 30, and 40, are the two that starve
    // the writes.
    settings.host.sched.own.mq_deadline.fifo_batch = 2;
    assert_eq!(ordered(&settings, trace.clone()), [1, 2, 3, 4, 5, 6, 7]);
    settings.host.sched.own.mq_deadline.writes_starved = 1;
    assert_eq!(ordered(&settings, trace.clone()), [1, 2, 3, 4, 6, 7, 5]);
    settings.host.sched.own.mq_deadline.writes_starved = 0;
    assert_eq!(ordered(&settings, trace), [1, 2, 6, 7, 3, 4, 5]);
}

#[test]
fn mq_deadline_looks_at_expiry_between_batches_only() {
    let mut settings = with("mq-deadline");
    settings.host.sched.own.mq_deadline.read_expire_ns = 100 * US;
    settings.host.sched.own.mq_deadline.fifo_batch = 2;
    let trace = vec![read(0, 100), read(1, 10), read(2, 110), read(3, 120), read(4, 130), read(5, 140)];
    let done = checked(&settings, trace).1;
    // The second batch begins at 70 us, when read 2 has waited 69 us; at 105 us that one has expired, but the batch
    // goes on; at 140 us it begins the third.
    assert_eq!(order(&done), [1, 3, 4, 5, 2, 6]);
    let expired: Vec<bool> = done.iter().map(|c| c.expired).collect();
    assert_eq!(expired, [false, true, false, false, false, false]);
    assert_eq!(done[1].dispatch_ns, 140 * US);
}

#[test]
fn a_front_merge_moves_a_request_of_mq_deadline() {
    let mut settings = with("mq-deadline");
    settings.host.merge_limit = Some(64 << 10);
    let grows = pages(3 * US, Op::Read, 4096, 40, 10);
    let trace = vec![read(0, 0), read(1, 50), read(2, 45), grows];
    let done = checked(&settings, trace).1;
    assert_eq!(done.iter().map(|c| c.size >> 12).collect::<Vec<_>>(), [1, 11, 1]);
    assert_eq!(order(&done), [1, 2, 3]);
}

#[test]
fn a_flush_passes_mq_deadline_by() {
    let flush = Record { op: Op::Flush, size: 0, ..read(10, 0) };
    let trace = vec![read(0, 0), write(1, 5), read(2, 3), flush];
    assert_eq!(ordered(&with("mq-deadline"), trace), [1, 4, 3, 2]);
}

#[test]
fn domains_of_kyber_take_turns() {
    let mut trace = vec![read(0, 0)];
    trace.extend((0..20).map(|lpn| read(1, lpn)));
    trace.extend((100..110).map(|lpn| write(1, lpn)));
    trace.extend((200..202).map(|lpn| pages(US, Op::Trim, 4096, lpn, 1)));
    trace.push(Record { op: Op::Flush, size: 0, ..read(1, 0) });
    let mut expected: Vec<u64> = (1..=16).collect();
    expected.extend(22..=29);
    expected.extend([32, 34]);
    expected.extend(17..=21);
    expected.extend([30, 31, 33]);
    assert_eq!(ordered(&with("kyber"), trace), expected);
}

fn own(report: &Report, name: &str) -> Option<f64> {
    report.own.as_ref()?.get("scheduler")?.get(name).copied()?
}

/// Returns reads and writes that arrive together, 500 of each, which take 192.5 ms, and a burst of writes at 300 ms,
/// all at once in a device without a limit.
fn flood(name: &str) -> (Report, Vec<Completion>) {
    let mut settings = with(name);
    settings.host.queue_depth = u32::MAX;
    settings.device.queue_depth = u32::MAX;
    settings.flash.blocks_per_plane = 64;
    if name == "kyber" {
        settings.host.sched.own.kyber.read_lat_ns = 100 * US;
        settings.host.sched.own.kyber.write_lat_ns = 10_000 * MS;
    }
    let mut trace: Vec<Record> = (0..500).flat_map(|lpn| [read(0, lpn), write(0, 500 + lpn)]).collect();
    trace.extend((0..100).map(|lpn| write(300_000, lpn)));
    checked(&settings, trace)
}

#[test]
fn kyber_throttles_the_domain_whose_latencies_are_good_if_the_others_are_bad() {
    let (report, done) = flood("kyber");
    // 200.035 ms: nine tenths of 500 reads took longer than 100 us in the device, so it is congested; all writes took
    // less than a quarter of 10 s, so a quarter of 128 tokens remain.
    let burst: Vec<u64> = done[1000..].iter().map(|c| c.dispatch_ns).collect();
    let expected = |number: u64| 300 * MS + number.saturating_sub(31) * 350 * US;
    assert_eq!(burst, (0..100).map(expected).collect::<Vec<_>>());
    assert_eq!(own(&report, "write_depth"), Some(32.0));
    // Reads are far above their target, and their depth is at its most.
    assert_eq!(own(&report, "read_depth"), Some(256.0));
    assert_eq!(own(&report, "least_read_depth"), Some(256.0));
    let unlimited = flood("noop").1;
    assert!(unlimited[1000..].iter().all(|c| c.dispatch_ns == 300 * MS));
}

#[test]
fn kyber_gives_a_depth_back_when_its_own_latencies_are_bad() {
    let mut settings = with("kyber");
    settings.host.queue_depth = u32::MAX;
    settings.device.queue_depth = u32::MAX;
    settings.host.sched.own.kyber.read_lat_ns = 100 * US;
    settings.host.sched.own.kyber.write_lat_ns = 1000 * MS;
    let mut trace: Vec<Record> = (0..500).flat_map(|lpn| [read(0, lpn), write(0, 500 + lpn)]).collect();
    // At 300 ms 10,000 writes take 3.5 s; most of them are above 1 3/4 of their target of 1 s, so that 32 become 64 and
    // more.
    trace.extend((0..10_000).map(|number| write(300_000, number % 1000)));
    let (report, _) = checked(&settings, trace);
    assert_eq!(own(&report, "least_write_depth"), Some(32.0));
    assert_eq!(own(&report, "write_depth"), Some(128.0));
}

#[test]
fn requests_wait_outside_a_pending_queue_that_kyber_has_filled() {
    let mut settings = with("kyber");
    settings.host.queue_depth = 8;
    settings.device.queue_depth = u32::MAX;
    // 256 reads are in the device, eight more are pending; the other read and the write arrive when reads complete.
    let mut trace: Vec<Record> = (0..265).map(|lpn| read(0, lpn)).collect();
    trace.push(write(1, 500));
    let done = checked(&settings, trace).1;
    assert_eq!(done[255].dispatch_ns, 0);
    let then: Vec<u64> = done[256..].iter().map(|c| c.dispatch_ns / US).collect();
    assert_eq!(then, [35, 70, 105, 140, 175, 210, 245, 280, 315, 70]);
}

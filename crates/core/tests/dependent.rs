//! Dependent replay: a request waits for the one that it continues.

use ftlab_conformance as common;

use common::{Log, all_ftls, bursts, checked, pages, schedulers, set_ftl, settings, small};
use ftlab_core::settings::{Replay, Settings};
use ftlab_core::sim::{Completion, Observer, Prepared, Simulation, run};
use ftlab_core::workload::{Op, Record, Source, SourceError};
use proptest::prelude::*;

const READ_NS: u64 = 35_000;
const US: u64 = 1000;

/// Records whose streams count.
struct Streams(std::vec::IntoIter<Record>);

impl Source for Streams {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        Source::next(&mut self.0)
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        Ok(true)
    }
}

/// Stores when each submission completed.
#[derive(Default)]
struct Answers(Vec<(u64, u64)>);

impl Observer for Answers {
    fn complete(&mut self, _: &Completion) {}

    fn answer(&mut self, done: &Completion) {
        self.0.push((done.id, done.complete_ns));
    }
}

/// Returns a device that serves one request at a time.
fn one_by_one() -> Settings {
    let mut settings = small("page", 1);
    settings.host.deadline_ns = None;
    settings.device.queue_depth = 1;
    settings
}

/// Reads a page; the request was recorded to take `latency_us`.
fn read(time_us: u64, lpn: u64, latency_us: u64) -> Record {
    Record { latency_ns: latency_us * US, ..pages(time_us * US, Op::Read, 4096, lpn, 1) }
}

/// Runs the requests, each of which waits for others; returns completions in the order of the trace.
fn replayed(settings: &Settings, records: Vec<Record>) -> Vec<Completion> {
    let mut settings = settings.clone();
    settings.workload.replay = Replay::Dependent;
    let mut log = Log::default();
    run(&settings, &mut Streams(records.into_iter()), &mut log, true).expect("a sound run");
    log.0.sort_by_key(|done| done.offset);
    log.0
}

/// Returns the requests as a device that gets them by their times would have recorded them, and its report.
fn recorded(settings: &Settings, records: &[Record]) -> (Vec<Record>, String) {
    let prepared = Prepared::new(settings, &mut (), false).expect("a sound device");
    let (mut simulation, mut answers) = (Simulation::new(settings, prepared), Answers::default());
    let mut records = records.to_vec();
    for record in &records {
        simulation.submit(*record).expect("it is within the device");
    }
    simulation.run_until_idle(&mut answers).expect("a sound run");
    for (number, complete_ns) in answers.0 {
        let record = &mut records[number as usize - 1];
        record.latency_ns = complete_ns - record.time_ns;
    }
    (records, serde_json::to_string(&simulation.report()).unwrap())
}

/// Returns the report of a replay of what was recorded.
fn report(settings: &Settings, records: Vec<Record>) -> String {
    let mut settings = settings.clone();
    settings.workload.replay = Replay::Dependent;
    let report = run(&settings, &mut Streams(records.into_iter()), &mut (), true).expect("a sound run");
    serde_json::to_string(&report).unwrap()
}

/// A client that waited 100 us for each read and then thought for 10 us does so on a device that takes 35 us.
#[test]
fn a_client_that_waits_is_faster_on_a_faster_device() {
    let trace = (0..5).map(|at| read(110 * at, at, 100)).collect();
    let done = replayed(&one_by_one(), trace);
    let arrivals: Vec<_> = done.iter().map(|done| done.arrival_ns).collect();
    assert_eq!(arrivals, [0, 45, 90, 135, 180].map(|us| us * US));
    assert!(done.iter().all(|done| done.complete_ns - done.arrival_ns == READ_NS));
}

/// Regression: a stream of few requests among those of a stream that falls behind was told to have waited for the time
/// in which its requests had not been read.
#[test]
fn what_is_read_late_has_not_waited() {
    let mut now_us = 0;
    let record = |at: u64| {
        now_us += 11;
        let rare = at % 1000 == 999;
        Record { stream: rare.into(), ..read(now_us, if rare { 1 } else { 0 }, 10) }
    };
    let done = replayed(&one_by_one(), (0..12_000).map(record).collect());
    let rare: Vec<_> = done.iter().filter(|done| done.offset > 0).collect();
    assert_eq!(rare.len(), 12);
    assert!(rare.iter().all(|done| done.complete_ns - done.arrival_ns <= 2 * READ_NS));
}

/// Returns when the requests arrived, us, in order of their number.
fn arrivals(settings: &Settings, records: Vec<Record>) -> Vec<u64> {
    let mut done = replayed(settings, records);
    done.sort_by_key(|done| done.id);
    done.iter().map(|done| done.arrival_ns / US).collect()
}

/// Of two workers the second was faster when it was recorded: 2 us after its request had completed it sent the next
/// one, and so did the other 3 us after its own. Here they complete in the order of their arrival.
#[test]
fn a_request_waits_for_the_one_that_it_continues() {
    let trace = vec![read(0, 0, 100), read(0, 1, 50), read(52, 2, 60), read(103, 3, 10)];
    let done = replayed(&one_by_one(), trace);
    let arrivals: Vec<_> = done.iter().map(|done| done.arrival_ns).collect();
    assert_eq!(arrivals, [0, 0, 2 * READ_NS + 2 * US, READ_NS + 3 * US]);
}

/// Where a worker stands still, the other goes on: the first write takes 45 ms here.
#[test]
fn a_worker_that_stalls_holds_up_no_other() {
    let mut settings = small("page", 4);
    settings.flash.program = 45_000_000.into();
    settings.device.queue_depth = 8;
    let stalls = Record { op: Op::Write, ..read(0, 0, 10) };
    let trace = |lpn| vec![stalls, read(1, lpn, 8), read(20, lpn + 1, 10), read(21, lpn + 2, 10)];
    // Pages whose chip the write does not keep busy.
    let done =
        (1..5).map(|lpn| replayed(&settings, trace(lpn))).find(|done| done[1].complete_ns < 45_000_000);
    let done = done.expect("there are four chips");
    assert!(done[0].complete_ns >= 45_000_000);
    // The write had completed last, a microsecond after the read: what continues the read does not wait for it.
    assert_eq!(done[2].arrival_ns, done[1].complete_ns + 11 * US);
    assert_eq!(done[3].arrival_ns, done[0].complete_ns + 11 * US);
}

/// Of the requests that had completed, that continues the one that had been idle for longest; one that finds none idle
/// follows the last.
#[test]
fn the_longest_idle_is_continued_first_and_then_the_last_is_followed() {
    let trace = vec![read(0, 0, 60), read(0, 1, 50), read(70, 2, 10), read(71, 3, 10), read(72, 4, 10)];
    let done = replayed(&one_by_one(), trace);
    let arrivals: Vec<_> = done.iter().map(|done| done.arrival_ns).collect();
    let (first, second) = (READ_NS, 2 * READ_NS);
    // The second had completed first, then the first; the last of the five follows that too. The third continues the
    // second, but the first, which had completed 10 us before it, has completed here as well.
    assert_eq!(arrivals, [0, 0, second + 10 * US, first + 11 * US, first + 12 * US]);
}

/// A write that came before a flush was waited for by whoever sent the flush, also if it was still under way then; a
/// read was not.
#[test]
fn a_flush_takes_idle_writes_with_it() {
    for (op, took_us) in [(Op::Write, 10), (Op::Write, 25), (Op::Read, 10), (Op::Read, 25)] {
        // The flush continues the second request, which completed first. The last one continues the first, unless the
        // flush has taken that with it; then it continues the flush, which completed at 30 us.
        let flush = Record { op: Op::Flush, offset: 0, size: 0, ..read(20, 0, 10) };
        let trace = vec![Record { op, ..read(0, 0, took_us) }, read(0, 1, 5), flush, read(40, 3, 5)];
        let done = replayed(&one_by_one(), trace);
        let ended = |op| done.iter().find(|done| done.op == op).unwrap().complete_ns;
        let (first_ns, flush_ns) = (ended(op), ended(Op::Flush));
        let continues_ns = (first_ns + (40 - took_us) * US).min(first_ns.max(flush_ns) + 10 * US);
        let expected = if op == Op::Write { flush_ns + 10 * US } else { continues_ns };
        assert_eq!(done.last().unwrap().arrival_ns, expected, "{op:?}, {took_us}");
    }
}

/// A request with a flush before it is read as two of the same line, the flush without a completion. Both continue the
/// first write, which takes longer here, and the write's completion takes idle writes with it as a flush's does: the
/// last request continues it, not the other write. Each of the two took an idle request of its own, and the write was
/// sent first.
#[test]
fn a_flush_before_a_request_is_sent_with_it() {
    let write = |time_us, lpn, took_us| Record { op: Op::Write, ..read(time_us, lpn, took_us) };
    let flush = Record { op: Op::Flush, offset: 0, size: 0, latency_ns: Record::UNKNOWN, ..read(20, 0, 0) };
    let mut trace = vec![write(0, 0, 5), write(0, 1, 6), flush, write(20, 2, 5), read(40, 3, 5)];
    trace.iter_mut().zip([1, 2, 3, 3, 4]).for_each(|(record, line)| record.line = line);
    let mut done = replayed(&one_by_one(), trace);
    done.sort_by_key(|done| done.id);
    let (first_ns, second_ns) = (done[0].complete_ns, done[1].complete_ns);
    // Later than the pause after the first write is the rest of it after the second.
    assert_eq!(done[2].arrival_ns, (first_ns + 15 * US).min(second_ns + 14 * US));
    assert_eq!((done[2].op, done[3].arrival_ns), (Op::Flush, done[2].arrival_ns));
    assert_eq!(done[4].arrival_ns, done[3].complete_ns + 15 * US);
}

/// Forty requests complete together. The next one continues the ninth, as 32 at most are idle.
#[test]
fn few_requests_are_idle() {
    let mut trace: Vec<_> = (0..40).map(|at| read(0, at, 50)).collect();
    trace.push(read(60, 40, 10));
    let done = replayed(&one_by_one(), trace);
    assert_eq!(done[40].arrival_ns, done[8].complete_ns + 10 * US);
}

/// Eight requests complete together; others come and go, and continue them in turn, until four have: then none
/// continues those that are left, and the next one continues the first of the others.
#[test]
fn an_idle_request_is_forgotten_after_four_others() {
    for (others, waits, idle_us) in [(3, 3, 110), (4, 8, 70)] {
        let mut trace: Vec<_> = (0..8).map(|at| read(0, at, 50)).collect();
        trace.extend((0..=others).map(|at| read(100 + 20 * at, 8 + at, 10)));
        let done = replayed(&one_by_one(), trace);
        let ended = |at: u64| done[at as usize].complete_ns;
        let expected = (ended(waits) + idle_us * US).min(ended(waits).max(ended(7 + others)) + 10 * US);
        assert_eq!(done.last().unwrap().arrival_ns, expected, "{others}");
    }
}

/// What had not completed is not waited for: the second request was sent while the first was under way.
#[test]
fn a_request_does_not_wait_for_what_was_under_way() {
    let trace = vec![read(0, 0, 100), read(20, 1, 100), read(130, 2, 10)];
    assert_eq!(arrivals(&one_by_one(), trace), [0, 20, 35 + 30]);
}

/// A completion at the nanosecond of an arrival counts as before it, unless it is of a request that arrived then too.
#[test]
fn ties_count_as_before() {
    let done = replayed(&one_by_one(), vec![read(0, 0, 50), read(50, 1, 0), read(50, 2, 9)]);
    let arrivals: Vec<_> = done.iter().map(|done| done.arrival_ns).collect();
    assert_eq!(arrivals, [0, READ_NS, READ_NS]);
}

/// Streams do not wait for each other: the second of stream 2 overtakes that of stream 1, which comes before it.
#[test]
fn streams_wait_for_their_own() {
    let of = |stream, record| Record { stream, ..record };
    let trace = vec![
        of(1, read(0, 0, 1)),
        of(2, read(0, 1, 1)),
        of(1, read(100, 2, 1)),
        of(2, read(101, 3, 1)),
        of(1, read(102, 4, 1)),
    ];
    let done = replayed(&one_by_one(), trace);
    let arrivals: Vec<_> = done.iter().map(|done| done.arrival_ns).collect();
    let (first, second) = (READ_NS + 99 * US, 2 * READ_NS + 100 * US);
    // Stream 1: 99 us after the first completion; 1 us after the second one, which came at once.
    assert_eq!(arrivals, [0, 0, first, second, first + READ_NS + US]);
}

/// A request whose completion is not known is waited for by none, and the result says so.
#[test]
fn what_is_not_known_is_not_waited_for() {
    let mut settings = one_by_one();
    settings.workload.replay = Replay::Dependent;
    let mut trace = vec![read(0, 0, 100), read(110, 1, 100)];
    trace[0].latency_ns = Record::UNKNOWN;
    let mut log = Log::default();
    let report = run(&settings, &mut trace.clone().into_iter(), &mut log, true).unwrap();
    assert_eq!(log.0[1].arrival_ns, 110 * US);
    assert!(report.trace.notes[0].starts_with("1 request has no recorded completion"), "{report:?}");
    trace[1].latency_ns = Record::UNKNOWN;
    let refused = run(&settings, &mut trace.into_iter(), &mut (), true).unwrap_err().to_string();
    assert!(refused.starts_with("none of the 2 requests has a recorded completion"), "{refused}");
}

/// The law: on the device of the recording, every request is sent when it was recorded, whatever the FTL, the scheduler
/// and the streams.
#[test]
fn on_its_own_device_a_recording_repeats_itself() {
    for kind in all_ftls() {
        for scheduler in schedulers(false) {
            let mut settings = small(kind, 4);
            set_ftl(&mut settings, kind);
            settings.host.scheduler = scheduler.into();
            let mut trace = bursts(3, 600, settings.user_pages());
            (0..).zip(&mut trace).for_each(|(at, record): (u16, _)| record.stream = at % 7 / 3);
            let (trace, before) = recorded(&settings, &trace);
            assert!(report(&settings, trace) == before, "{kind}, {scheduler}");
        }
    }
}

/// Replaying what a replay on another device recorded gives that replay again: the rule is consistent with itself.
#[test]
fn a_replay_can_be_replayed() {
    let (fast, mut slow) = (small("dftl", 4), small("dftl", 4));
    slow.flash.program = 900_000.into();
    let (trace, _) = recorded(&fast, &bursts(8, 800, fast.user_pages()));
    let mut settings = slow.clone();
    settings.workload.replay = Replay::Dependent;
    let (_, done) = checked(&settings, trace);
    let again: Vec<_> = done
        .iter()
        .map(|done| Record {
            time_ns: done.arrival_ns,
            op: done.op,
            offset: done.offset,
            size: done.size,
            latency_ns: done.complete_ns - done.arrival_ns,
            ..Record::FLUSH
        })
        .collect();
    let (_, repeated) = checked(&settings, again);
    assert_eq!(repeated, done);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// The law where the host merges: each record has its own completion, though several complete as one.
    #[test]
    fn what_merged_is_waited_for_one_by_one(
        load in prop::collection::vec((0u64..400_000, any::<bool>(), 0u64..64, 1u64..5), 1..200),
        limit in 4u64..64,
        depth in 1u32..40,
    ) {
        let mut settings = settings();
        settings.host.scheduler = "noop".into();
        settings.host.merge_limit = Some(limit << 10);
        (settings.host.queue_depth, settings.device.queue_depth) = (depth, 2);
        let mut time_ns = 0;
        let records: Vec<_> = load.into_iter().map(|(gap, reads, lpn, count)| {
            time_ns += if gap < 200_000 { 0 } else { gap };
            pages(time_ns, if reads { Op::Read } else { Op::Write }, 4096, lpn, count)
        }).collect();
        let (trace, before) = recorded(&settings, &records);
        prop_assert_eq!(report(&settings, trace), before);
    }
}

//! The write buffer in cases worked out by hand: what it answers, what it holds, and what it hands on to the flash.
//!
//! Reads take 35 us, programs 350 us, pages are 4 KiB; a link of 4.096 GB/s carries a page in 1 us.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::device::buffer::settings::Policy;
use ftlab_core::flash::Cause;
use ftlab_core::metrics::{Report, WriteBuffer};
use ftlab_core::settings::Settings;
use ftlab_core::sim::Completion;
use ftlab_core::workload::{Op, Record};

const READ: u64 = 35_000;
const PROGRAM: u64 = 350_000;
const PAGE: u64 = 1_000;

/// Makes a device of `chips` chips, each on a channel of its own, with a buffer of this many pages.
fn device(chips: u32, buffer: u64) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.device.queue_depth = u32::MAX;
    settings.host.queue_depth = 1 << 10;
    settings.flash.channels = chips;
    settings.device.buffer.bytes = buffer * 4096;
    settings
}

fn at(time_ns: u64, op: Op, lpn: u64, count: u64) -> Record {
    pages(time_ns, op, 4096, lpn, count)
}

fn run(settings: &Settings, trace: Vec<Record>) -> (Report, Vec<Completion>) {
    let (report, mut rows) = checked(settings, trace);
    rows.sort_by_key(|row| row.id);
    (report, rows)
}

fn latencies(settings: &Settings, trace: Vec<Record>) -> Vec<u64> {
    run(settings, trace).1.iter().map(|row| row.complete_ns - row.arrival_ns).collect()
}

fn buffer(report: &Report) -> &WriteBuffer {
    report.device.buffer.as_ref().expect("there is a buffer")
}

#[test]
fn a_write_that_finds_room_takes_no_flash_time() {
    let mut settings = device(4, 64);
    assert_eq!(latencies(&settings, vec![at(0, Op::Write, 0, 8)]), [0]);
    let controller = &mut settings.device.controller;
    controller.link = 4_096_000_000;
    (controller.command_ns, controller.unit_ns, controller.latency_write_ns) = (3_000, 200, 7_000);
    assert_eq!(latencies(&settings, vec![at(0, Op::Write, 0, 8)]), [3_000 + 8 * 200 + 8 * PAGE + 7_000]);
}

/// A write without room waits until a page is on flash; pages go out as soon as a write waits. Two of the four pages
/// have room when they come, and each of the others waits for another program.
#[test]
fn a_write_without_room_waits_for_the_flash() {
    let settings = device(1, 2);
    let four = (0..4).map(|lpn| at(0, Op::Write, lpn, 1)).collect();
    let (report, rows) = run(&settings, four);
    let times: Vec<u64> = rows.iter().map(|row| row.complete_ns).collect();
    assert_eq!(times, [0, 0, PROGRAM, 2 * PROGRAM]);
    let buffer = buffer(&report);
    assert_eq!((buffer.stalls, buffer.wait_ns, buffer.high_water), (2, 3 * PROGRAM, 2));
}

/// A write of three pages takes room for two, and for the third once the first page is on flash.
#[test]
fn a_write_larger_than_the_buffer_passes_page_by_page() {
    assert_eq!(latencies(&device(1, 2), vec![at(0, Op::Write, 0, 3)]), [PROGRAM]);
    assert_eq!(latencies(&device(1, 2), vec![at(0, Op::Write, 0, 6)]), [4 * PROGRAM]);
    // Four chips take four pages at a time.
    assert_eq!(latencies(&device(4, 4), vec![at(0, Op::Write, 0, 12)]), [2 * PROGRAM]);
}

/// A page that is written four times goes to the flash once, since each version replaces the one in the buffer. The
/// device is never idle at time 0, so that no version leaves the buffer before the next comes.
#[test]
fn a_page_written_again_replaces_the_one_in_the_buffer() {
    let settings = device(1, 8);
    let mut trace: Vec<Record> = (0..4).map(|_| at(0, Op::Write, 5, 1)).collect();
    trace.push(at(10, Op::Flush, 0, 0));
    let (report, rows) = run(&settings, trace);
    assert_eq!(buffer(&report).coalesced, 3);
    assert_eq!(buffer(&report).destaged, 1);
    assert_eq!(rows[4].complete_ns, PROGRAM);
}

/// The first version is on its way to the flash from 1 ns on: the second needs room of its own.
#[test]
fn a_page_on_its_way_to_the_flash_is_not_replaced() {
    let settings = device(1, 8);
    let trace = vec![at(0, Op::Write, 5, 1), at(1, Op::Write, 5, 1), at(2, Op::Flush, 0, 0)];
    let (report, rows) = run(&settings, trace);
    assert_eq!((buffer(&report).coalesced, buffer(&report).destaged, buffer(&report).high_water), (0, 2, 2));
    assert_eq!(rows[2].complete_ns, 2 * PROGRAM);
}

/// A read takes from the buffer what is there, and the rest from the flash. Of the read of four pages, two pages are in
/// the buffer; the others are on two chips.
#[test]
fn reads_are_answered_from_the_buffer_as_far_as_it_goes() {
    let mut settings = device(4, 64);
    settings.device.precondition = ftlab_core::settings::Precondition::fill();
    let trace =
        vec![at(0, Op::Write, 9, 2), at(0, Op::Read, 9, 2), at(0, Op::Read, 8, 4), at(0, Op::Read, 12, 1)];
    let (report, rows) = run(&settings, trace);
    assert_eq!(rows.iter().map(|row| row.buffered).collect::<Vec<_>>(), [0, 2, 2, 0]);
    // The last read is on the chip of LPN 8.
    assert_eq!(rows.iter().map(|row| row.complete_ns).collect::<Vec<_>>(), [0, 0, READ, 2 * READ]);
    assert_eq!(buffer(&report).hits, 4);
    assert_eq!(report.flash.reads[Cause::Host], 3);
}

/// A trimmed page is not read from the buffer, nor does it go to the flash.
#[test]
fn a_trim_drops_pages() {
    let settings = device(1, 64);
    let trace =
        vec![at(0, Op::Write, 3, 2), at(0, Op::Trim, 3, 1), at(9, Op::Read, 3, 1), at(9, Op::Flush, 0, 0)];
    let (report, rows) = run(&settings, trace);
    assert_eq!((buffer(&report).hits, buffer(&report).destaged), (0, 1));
    assert_eq!(rows[3].complete_ns, READ + PROGRAM);
}

/// A flush waits until the flash has what was in the buffer when the flush came; with protection it does not wait.
#[test]
fn a_flush_waits_for_the_flash_unless_power_is_protected() {
    let mut settings = device(1, 64);
    settings.device.buffer.high_ppm = 1_000_000;
    let trace = vec![
        at(0, Op::Write, 0, 3),
        at(10, Op::Flush, 0, 0),
        at(20, Op::Write, 5, 1),
        at(20, Op::Flush, 0, 0),
    ];
    let rows = run(&settings, trace.clone()).1;
    assert_eq!(
        [rows[1].complete_ns, rows[2].complete_ns, rows[3].complete_ns],
        [3 * PROGRAM, 20, 4 * PROGRAM]
    );
    settings.device.buffer.protected = true;
    assert_eq!(latencies(&settings, trace), [0, 0, 0, 0]);
}

/// A write with FUA is answered when the flash has it, and the older version of its page in the buffer is dropped.
#[test]
fn a_write_with_fua_goes_past_the_buffer() {
    let mut settings = device(1, 64);
    let fua = Record { flags: Record::FUA, ..at(0, Op::Write, 7, 1) };
    let trace = vec![at(0, Op::Write, 7, 1), fua, at(5, Op::Flush, 0, 0)];
    let (report, rows) = run(&settings, trace.clone());
    // A flush that waits for no page still waits for the flash.
    assert_eq!((rows[1].complete_ns, rows[2].complete_ns), (PROGRAM, PROGRAM));
    assert_eq!(buffer(&report).destaged, 0);
    settings.device.buffer.protected = true;
    assert_eq!(latencies(&settings, trace), [0, 0, 0]);
}

/// With room for ten pages, destaging begins when nine are in use, and ends when fewer than six are; meanwhile the
/// device is never idle.
#[test]
fn destaging_begins_above_high_and_ends_below_low() {
    let mut settings = device(1, 10);
    (settings.device.buffer.high_ppm, settings.device.buffer.low_ppm) = (800_000, 600_000);
    // A read every 30 us keeps the device from being idle.
    settings.device.precondition = ftlab_core::settings::Precondition::fill();
    let trace = (0..9).map(|lpn| at(0, Op::Write, lpn, 1)).collect();
    let (report, _) = run(&settings, busy(trace, 400));
    // From 9 pages down to 5.
    assert_eq!(buffer(&report).destaged, 4);
}

/// Adds reads of page 200 that overlap each other, so that the device always holds one.
fn busy(mut trace: Vec<Record>, reads: u64) -> Vec<Record> {
    trace.extend((0..reads).map(|at_read| at(at_read * 30_000, Op::Read, 200, 1)));
    trace
}

/// The policy decides which page goes first: the oldest, the least recently written, or one of the fullest block.
#[test]
fn policies() {
    for (policy, last) in [(Policy::Fifo, [1, 2]), (Policy::Lru, [2, 1])] {
        let mut settings = device(1, 2);
        settings.device.buffer.policy = policy;
        // Pages 1 and 2 are in the buffer, then 1 is written again; 3 needs room.
        let trace = [1, 2, 1, 3].map(|lpn| at(0, Op::Write, lpn, 1)).to_vec();
        let reads = [1, 2].map(|lpn| at(PROGRAM + 1, Op::Read, lpn, 1));
        let (_, rows) = run(&settings, [trace, reads.to_vec()].concat());
        let flash = last[0];
        for (row, lpn) in rows[4..].iter().zip([1, 2]) {
            assert_eq!(row.buffered, u32::from(lpn != flash), "{policy:?}: LPN {lpn}");
        }
    }
}

/// If nothing is written twice, a buffer saves a long load of writes only the programs of the pages that it holds at
/// the end.
#[test]
fn the_rate_of_the_flash_is_the_rate_in_the_end() {
    let mut settings = device(4, 32);
    let trace: Vec<Record> = (0..400).map(|lpn| at(0, Op::Write, lpn, 1)).collect();
    let with = run(&settings, trace.clone()).1.iter().map(|row| row.complete_ns).max();
    settings.device.buffer.bytes = 0;
    let without = run(&settings, trace).1.iter().map(|row| row.complete_ns).max();
    assert_eq!((with, without), (Some(92 * PROGRAM), Some(100 * PROGRAM)));
}

/// Regression: a command that the buffer answered was looked up among the requests of the device's scheduler, where it
/// had never been.
#[test]
fn commands_that_the_buffer_answers_are_in_no_batch() {
    for scheduler in ["piq", "vios"] {
        let mut settings = device(4, 64);
        settings.device.scheduler = scheduler.into();
        let trace = vec![at(0, Op::Write, 0, 2), at(0, Op::Read, 0, 2), at(0, Op::Read, 8, 1)];
        let batches: Vec<u64> = run(&settings, trace).1.iter().map(|row| row.batch).collect();
        assert_eq!(batches, [0, 0, 1], "{scheduler}");
    }
}

/// Makes a device of four chips, filled, that reads this many pages ahead.
fn reading_ahead(pages: u64) -> Settings {
    let mut settings = device(4, 0);
    settings.device.buffer.read_ahead = pages * 4096;
    settings.device.precondition = ftlab_core::settings::Precondition::fill();
    settings
}

fn read_from(times: &[u64]) -> Vec<Record> {
    times.iter().zip(0..).map(|(&time_ns, lpn)| at(time_ns, Op::Read, lpn, 1)).collect()
}

/// The second read shows that the first goes on: pages 2 and 3 are read ahead at 40 us, on chips of their own, and are
/// there at 75 us. Page 4, wanted since 100 us, comes from chip 0 at 135 us, page 5 from chip 1 likewise.
#[test]
fn what_a_stream_reads_next_is_there() {
    let times = [0, 40_000, 100_000, 100_001, 110_000];
    let (report, rows) = run(&reading_ahead(2), read_from(&times));
    let latencies: Vec<u64> = rows.iter().map(|row| row.complete_ns - row.arrival_ns).collect();
    assert_eq!(latencies, [READ, READ, 0, 0, 25_000]);
    assert_eq!(rows.iter().map(|row| row.buffered).collect::<Vec<_>>(), [0, 0, 1, 1, 1]);
    assert_eq!(buffer(&report).hits, 3);
}

/// A read waits for a page that is on its way; it does not read the page again.
#[test]
fn a_read_waits_for_what_is_read_ahead() {
    let (report, rows) = run(&reading_ahead(4), read_from(&[0, 40_000, 50_000]));
    assert_eq!(rows[2].complete_ns, 40_000 + READ);
    // Pages 2 to 5, and page 6 once the third read has come.
    assert_eq!(report.flash.reads[Cause::Host], 2 + 5);
    // Without a stream nothing is read ahead.
    let apart = [0, 9, 3].map(|lpn| at(lpn * 50_000, Op::Read, lpn, 1)).to_vec();
    assert_eq!(run(&reading_ahead(4), apart).0.flash.reads[Cause::Host], 3);
}

/// Regression: reads that wait for the same page all get it; it does not leave with the first. Pages 2, 3 and 4
/// come at 75 us, page 5 at 110 us: its chip reads page 1 until 75 us.
#[test]
fn reads_that_wait_for_a_page_share_it() {
    let mut trace = read_from(&[0, 40_000]);
    trace.extend([at(50_000, Op::Read, 2, 4), at(51_000, Op::Read, 4, 1)]);
    let (report, rows) = run(&reading_ahead(4), trace);
    assert_eq!(rows.iter().map(|row| row.buffered).collect::<Vec<_>>(), [0, 0, 4, 1]);
    assert_eq!((rows[2].complete_ns, rows[3].complete_ns), (40_000 + 2 * READ, 40_000 + READ));
    // Pages 2 to 5, and 6 to 9 once the third read has come.
    assert_eq!(report.flash.reads[Cause::Host], 2 + 8);
}

/// What is written or trimmed is no longer what was read ahead, also while it is on its way.
#[test]
fn a_write_drops_what_was_read_ahead() {
    for (at_ns, op) in [(90_000, Op::Write), (90_000, Op::Trim), (50_000, Op::Write)] {
        let mut trace = read_from(&[0, 40_000]);
        trace.push(at(at_ns, op, 2, 1));
        trace.push(at(900_000, Op::Read, 2, 1));
        let rows = run(&reading_ahead(2), trace).1;
        assert_eq!(rows[3].buffered, 0, "{op:?} at {at_ns}");
    }
}

/// As many streams as are told apart, each of which goes on: all their reads but the first two are answered from RAM.
#[test]
fn sixteen_streams_are_told_apart() {
    for (streams, hits) in [(16, 16 * 6), (17, 0)] {
        let reads = (0..8).flat_map(|round| (0..streams).map(move |of| (round, of)));
        let reads = reads.map(|(round, of)| (round * streams + of, of * 12 + round));
        let trace = reads.map(|(number, lpn)| at(number * 200_000, Op::Read, lpn, 1)).collect();
        assert_eq!(buffer(&run(&reading_ahead(2), trace).0).hits, hits, "{streams} streams");
    }
}

/// Regression: a batch loads its mappings when its first request issues. Where the buffer answered that request, or a
/// part of it, nobody loaded them, and each of the others missed by itself.
#[test]
fn a_batch_whose_first_read_is_buffered_still_loads_its_mappings_at_once() {
    for first in [1, 2] {
        let mut settings = device(4, 64);
        settings.ftl.kind = "dftl".into();
        settings.host.scheduler = "rb".into();
        settings.device.queue_depth = 1;
        settings.device.precondition = ftlab_core::settings::Precondition::fill();
        // LPN 0 waits behind two others of its chip; the read of LPN 5 keeps the device busy while the batch gathers.
        let mut trace: Vec<Record> = [8, 4, 0].map(|lpn| at(0, Op::Write, lpn, 1)).to_vec();
        trace.extend([at(1, Op::Read, 5, 1), at(2, Op::Read, 0, first)]);
        trace.extend([2, 3].map(|lpn| at(2, Op::Read, lpn, 1)));
        let (report, rows) = run(&settings, trace);
        assert_eq!(rows[4].buffered, 1);
        assert!(rows[4..].iter().all(|row| row.mapping_misses == 0), "{first}: {rows:?}");
        // One for the writes, one for the first read, one for the batch.
        assert_eq!(report.flash.reads[Cause::Map], 3, "{first}");
    }
}

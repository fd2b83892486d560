//! Exact timing of the device: at t - 1 nothing is ready yet, at t everything is. A read takes 35 us, a program 350 us,
//! an erasure 1.5 ms; a page takes 40.96 us on a bus of 10 ns per byte.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::flash::Cause;
use ftlab_core::flash::parallel::Allocation;
use ftlab_core::ftl::settings::PartialWrite;
use ftlab_core::settings::Settings;
use ftlab_core::workload::{Op, Record};

const READ: u64 = 35_000;
const PROGRAM: u64 = 350_000;
const BUS: u64 = 40_960;

fn device(channels: u32, chips_per_channel: u32, transfer_ps: u64) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.device.queue_depth = u32::MAX;
    settings.flash.channels = channels;
    settings.flash.chips_per_channel = chips_per_channel;
    settings.flash.transfer_ps = transfer_ps;
    settings
}

fn read(lpn: u64) -> Record {
    pages(0, Op::Read, 4096, lpn, 1)
}

fn write(lpn: u64) -> Record {
    pages(0, Op::Write, 4096, lpn, 1)
}

fn completions(settings: &Settings, trace: Vec<Record>) -> Vec<u64> {
    checked(settings, trace).1.iter().map(|c| c.complete_ns).collect()
}

#[test]
fn unloaded_latencies_are_the_sums_of_their_parts() {
    let bus = device(1, 1, 10_000);
    assert_eq!(completions(&bus, vec![read(0)]), [READ + BUS]);
    assert_eq!(completions(&bus, vec![write(0)]), [BUS + PROGRAM]);
    let direct = device(1, 1, 0);
    assert_eq!(completions(&direct, vec![read(0)]), [READ]);
    assert_eq!(completions(&direct, vec![pages(0, Op::Write, 4096, 0, 3)]), [3 * PROGRAM]);
}

#[test]
fn chips_work_side_by_side() {
    // LPN 0 and 1 are on chips 0 and 1 (channel first, then chip), LPN 2 on chip 0 again.
    let two = device(2, 1, 0);
    assert_eq!(completions(&two, vec![read(0), read(1)]), [READ, READ]);
    assert_eq!(completions(&two, vec![write(0), write(1), read(2)]), [PROGRAM, PROGRAM, PROGRAM + READ]);
    // One request over both chips ends when its slower part does.
    assert_eq!(completions(&two, vec![pages(0, Op::Write, 4096, 0, 3)]), [2 * PROGRAM]);
}

#[test]
fn chips_of_one_channel_share_its_bus() {
    let shared = device(1, 2, 10_000);
    // Both chips sense at the same time, and then the data leave one after the other.
    assert_eq!(completions(&shared, vec![read(0), read(1)]), [READ + BUS, READ + 2 * BUS]);
    // The data go in one after the other, and then both chips program.
    assert_eq!(completions(&shared, vec![write(0), write(1)]), [BUS + PROGRAM, 2 * BUS + PROGRAM]);
    let apart = device(2, 1, 10_000);
    assert_eq!(completions(&apart, vec![read(0), read(1)]), [READ + BUS, READ + BUS]);
}

#[test]
fn a_gap_on_the_bus_is_used_by_whoever_asks_first() {
    // The read asks for the bus at 35 us, while the write's data (from 0) are still going in.
    let shared = device(1, 2, 10_000);
    let done = completions(&shared, vec![read(0), write(1)]);
    assert_eq!(done, [2 * BUS, BUS + PROGRAM]);
}

/// The pages of a request are bound to dies one by one, here to those of two chips under `direct` with dynamic
/// allocation.
#[test]
fn pages_of_a_request_are_bound_one_by_one() {
    let mut two = device(2, 1, 0);
    two.device.scheduler = "direct".into();
    two.ftl.allocation = Allocation::Dynamic;
    // LPN 0 and 1 take the chips until 350 us, and LPN 2 waits. Two pages of the read are on those chips and are read
    // at 350 us; the read then waits for LPN 2, which is bound at 385 us, and reads it after its program.
    let trace = vec![pages(0, Op::Write, 4096, 0, 3), pages(100_000, Op::Read, 4096, 0, 3)];
    let bound = PROGRAM + READ;
    assert_eq!(completions(&two, trace), [bound + PROGRAM, bound + PROGRAM + READ]);
    // A trim and a read concern waiting pages: the trim removes only the first write.
    let trace = vec![
        pages(0, Op::Write, 4096, 0, 4),
        pages(1_000, Op::Trim, 4096, 1, 3),
        pages(2_000, Op::Write, 4096, 3, 1),
        pages(3_000, Op::Read, 4096, 2, 2),
    ];
    // At 350 us LPN 2 and 3 go to chips 0 and 1 and are trimmed; LPN 2 is read after its program, on the chip where it
    // would have been. The second write of LPN 3 is bound at 700 us, to chip 1, and read there.
    let trimmed = 2 * PROGRAM;
    assert_eq!(completions(&two, trace), [trimmed, PROGRAM, trimmed + PROGRAM, trimmed + PROGRAM + READ]);
    // A partial page is bound to chip 0 when it arrives; LPN 2 is read there first.
    two.ftl.partial_write = PartialWrite::Rmw;
    let part = Record { size: 512, ..pages(PROGRAM, Op::Write, 4096, 2, 1) };
    let trace = vec![write(2), write(0), part];
    assert_eq!(completions(&two, trace), [PROGRAM, PROGRAM, PROGRAM + READ + PROGRAM]);
    // A NAND page has four logical pages: the first needs a free chip, the others, which fill its buffer, do not.
    let mut four = two.clone();
    four.flash.page_bytes = 16_384;
    let both = vec![pages(0, Op::Write, 4096, 0, 8)];
    let wait = [pages(100_000, Op::Write, 4096, 8, 1), pages(100_000, Op::Write, 4096, 9, 4)];
    let done = completions(&four, both.into_iter().chain(wait).collect());
    // LPN 8 to 11 fill a page that is bound at 350 us; LPN 12 begins a page on the other chip, in its buffer.
    assert_eq!(done, [PROGRAM, PROGRAM, 2 * PROGRAM]);
}

#[test]
fn the_oldest_request_blocks_those_behind_it() {
    // Requests need chips {0}, {0}, {1}: the third could run at once, but the second is older.
    let two = device(2, 1, 0);
    assert_eq!(completions(&two, vec![read(0), read(2), read(1)]), [READ, 2 * READ, 2 * READ]);
}

#[test]
fn the_queue_of_the_device_bounds_what_it_holds() {
    let mut two = device(2, 1, 0);
    two.device.queue_depth = 1;
    let rows = checked(&two, vec![read(0), read(1), read(3)]).1;
    assert_eq!(rows.iter().map(|c| c.dispatch_ns).collect::<Vec<_>>(), [0, READ, 2 * READ]);
    two.device.queue_depth = 2;
    let rows = checked(&two, vec![read(0), read(1), read(3)]).1;
    assert_eq!(rows.iter().map(|c| c.dispatch_ns).collect::<Vec<_>>(), [0, 0, READ]);
}

#[test]
fn a_flush_waits_for_what_was_issued_before() {
    let two = device(2, 1, 0);
    let flush = Record::FLUSH;
    assert_eq!(completions(&two, vec![write(0), flush, read(1)]), [PROGRAM, PROGRAM, PROGRAM + READ]);
}

/// Logical pages smaller than the NAND page gather in the page buffer.
#[test]
fn small_logical_pages_gather_in_the_page_buffer() {
    let mut settings = device(1, 1, 0);
    settings.flash.page_bytes = 16_384;
    let flush = Record::FLUSH;
    let trace = vec![write(0), write(9), write(5), read(9), write(7), read(9), write(1), flush, flush];
    let (report, rows) = checked(&settings, trace);
    let done: Vec<u64> = rows.iter().map(|c| c.complete_ns).collect();
    // Three writes and a read from the buffer cost nothing, and the fourth write programs the page; a further write
    // waits in the buffer until the flush pads its page; the second flush has nothing to do.
    let first = PROGRAM;
    let last = first + READ + PROGRAM;
    assert_eq!(done, [0, 0, 0, 0, first, first + READ, first + READ, last, last]);
    assert_eq!((report.flash.programs[Cause::Host], report.flash.programs[Cause::Pad]), (1, 1));
    assert_eq!(report.waf.total, Some(8.0 / 5.0));
}

/// A write with FUA completes when its page is programmed, padded if necessary. A write that fills the page does not
/// wait for anything else, and if logical pages are as large as NAND pages, a write with FUA is like any other.
#[test]
fn fua_does_not_wait_in_the_page_buffer() {
    let fua = |lpn| Record { flags: Record::FUA, ..write(lpn) };
    let mut settings = device(1, 1, 0);
    assert_eq!(completions(&settings, vec![fua(0), write(1)]), [PROGRAM, 2 * PROGRAM]);
    settings.flash.page_bytes = 16_384;
    let trace = vec![write(0), fua(9), write(5), write(6), write(7), fua(9), read(9)];
    let (report, rows) = checked(&settings, trace);
    let done: Vec<u64> = rows.iter().map(|c| c.complete_ns).collect();
    // Two slots and padding are programmed; then come four writes that fill a page, the last of them with FUA.
    assert_eq!(done, [0, PROGRAM, PROGRAM, PROGRAM, PROGRAM, 2 * PROGRAM, 2 * PROGRAM + READ]);
    assert_eq!((report.flash.programs[Cause::Host], report.flash.programs[Cause::Pad]), (1, 1));
    // A write with FUA remains separate: if it were merged with the write before it, both would complete at the same
    // time.
    settings.device.queue_depth = 1;
    settings.host.merge_limit = Some(1 << 20);
    let merged = completions(&settings, vec![write(0), write(1), write(2), fua(3), write(4)]);
    assert_eq!(merged.len(), 3, "those before it are one, what follows is another");
    let (report, _) = checked(&settings, vec![write(0), fua(1), fua(2), write(3)]);
    assert_eq!((report.flash.programs[Cause::Host], report.flash.programs[Cause::Pad]), (0, 2));
}

/// A read-modify-write of a part of a page reads the page first, if the page holds data.
#[test]
fn partial_writes_read_first_if_asked_to() {
    let mut settings = device(1, 1, 0);
    let part = Record { op: Op::Write, offset: 512, size: 4096, ..Record::FLUSH };
    assert_eq!(completions(&settings, vec![part]), [2 * PROGRAM]);
    settings.ftl.partial_write = PartialWrite::Rmw;
    // Regression: the device once read pages that had never been written.
    assert_eq!(completions(&settings, vec![part]), [2 * PROGRAM]);
    assert_eq!(completions(&settings, vec![write(0), part]), [PROGRAM, PROGRAM + READ + 2 * PROGRAM]);
    assert_eq!(completions(&settings, vec![write(3)]), [PROGRAM]);
}

/// Collection is charged to the write that needed the block: copies, then the erasure.
#[test]
fn collection_delays_the_write_that_needs_a_block() {
    let mut settings = device(1, 1, 0);
    settings.flash.blocks_per_plane = 4;
    settings.flash.pages_per_block = 4;
    settings.ftl.over_provisioning_ppm = 500_000;
    // Writing eight user pages in order fills two blocks; writing LPN 0, 1, 2 and 4 again fills the third. The fourth
    // is the reserve: the next write collects the block in which only LPN 3 is valid.
    let order = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 4, 0];
    let done = completions(&settings, order.map(write).to_vec());
    assert_eq!(done[11], 12 * PROGRAM);
    assert_eq!(done[12] - done[11], READ + PROGRAM + 1_500_000 + PROGRAM);
}

fn cached_on_chips(kind: &str, channels: u32) -> Settings {
    let mut settings = device(channels, 1, 0);
    settings.ftl.kind = kind.into();
    settings
}

/// Regression: without bus time, the first data read was merged into the prefetch, and the second page, on another
/// chip, waited for both.
#[test]
fn pages_of_a_batch_start_when_their_mapping_has_arrived() {
    let mut settings = cached_on_chips("dftl", 2);
    settings.host.scheduler = "rb".into();
    assert_eq!(completions(&settings, vec![pages(0, Op::Read, 4096, 0, 2)]), [2 * READ]);
}

/// Regression: a request that hit an entry whose translation page was still being read began to read its data at once.
#[test]
fn a_hit_waits_for_the_read_that_brings_its_entry_in() {
    // Translation page 0 is on chip 0; LPN 1 and 2 are on chips 1 and 2.
    for (kind, scheduler) in [("dftl", "rb"), ("cdftl", "noop"), ("tpftl", "rb")] {
        let mut settings = cached_on_chips(kind, 4);
        settings.host.scheduler = scheduler.into();
        assert_eq!(completions(&settings, vec![read(1), read(2)]), [2 * READ, 2 * READ], "{kind}");
    }
    // An entry that arrived long ago is not delayed by another read of its page.
    let settings = cached_on_chips("dftl", 4);
    let later = |lpn| Record { time_ns: 1_000_000, ..read(lpn) };
    let done = completions(&settings, vec![read(1), later(2), later(1)]);
    assert_eq!(done, [2 * READ, 1_000_000 + 2 * READ, 1_000_000 + READ]);
}

/// Regression: an arrival for another chip overtook a write-back in progress.
#[test]
fn an_arrival_waits_for_the_write_back_in_progress() {
    let mut settings = cached_on_chips("dftl", 2);
    settings.device.queue_depth = 4;
    settings.ftl.background_flush = true;
    let at = |time_ns, record: Record| Record { time_ns, ..record };
    let trace = vec![read(1), at(70_000, write(0)), at(560_000, read(1))];
    let (report, rows) = checked(&settings, trace);
    let written = 70_000 + READ + PROGRAM;
    let flushed = written + READ + PROGRAM;
    assert_eq!(rows[1].complete_ns, written);
    assert_eq!((rows[2].dispatch_ns, rows[2].complete_ns), (flushed, flushed + READ));
    assert!(report.utilization.chip_busy_ns.iter().all(|&busy_ns| busy_ns <= report.elapsed_ns));
}

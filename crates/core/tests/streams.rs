//! A stream on its way from the record to the placement: what the log tells its placement about each page.

use std::sync::{Arc, Mutex};

use ftlab_conformance as common;

use common::{bursts, checked, pages, small};
use ftlab_core::device::buffer::settings::Policy;
use ftlab_core::flash::Cause;
use ftlab_core::ftl::placement::{self, Page, Placement, Writable};
use ftlab_core::request::Request;
use ftlab_core::settings::Settings;
use ftlab_core::sim::Completion;
use ftlab_core::workload::{Op, Record};

/// What a placement was told about the pages that were written or copied: LPN, cause, stream.
type Told = Arc<Mutex<Vec<(u32, Cause, u16)>>>;

/// A placement with two open blocks that notes what it is told.
#[derive(Clone, Debug, Default)]
struct Listens {
    told: Told,
}

impl Placement for Listens {
    fn new(_keys: &placement::Own, _space: placement::Space) -> Listens {
        Listens::default()
    }

    fn fronts(&self) -> u32 {
        2
    }

    fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        self.told.lock().unwrap().push((page.lpn, page.cause, page.stream));
        u32::from(page.stream > 1)
    }
}

fn page(time_ns: u64, lpn: u64, count: u64, stream: u16) -> Record {
    Record { stream, ..pages(time_ns, Op::Write, 4096, lpn, count) }
}

/// Runs a load with a placement that listens, registered under this name; returns the completions, and what the
/// placement was told.
fn heard(name: &str, settings: &Settings, load: Vec<Record>) -> (Vec<Completion>, Vec<(u32, Cause, u16)>) {
    let told = Told::default();
    let made = told.clone();
    placement::register_made(name, Listens::NEEDS, move |_, _| Box::new(Listens { told: made.clone() }));
    let mut settings = settings.clone();
    settings.ftl.placement = Some(name.into());
    // Layouts are worked out with a placement of their own, which is told nothing.
    let done = checked(&settings, load).1;
    let told = std::mem::take(&mut *told.lock().unwrap());
    (done, told)
}

/// Returns LPN and stream of each page, in the order of LPNs.
fn streams(told: &[(u32, Cause, u16)]) -> Vec<(u32, u16)> {
    let mut streams: Vec<_> = told.iter().map(|&(lpn, _, stream)| (lpn, stream)).collect();
    streams.sort_unstable();
    streams
}

#[test]
fn the_placement_is_told_the_stream_of_each_page_under_every_device_scheduler() {
    for scheduler in common::device_schedulers() {
        let mut settings = small("page", 4);
        settings.device.scheduler = scheduler.into();
        let load = vec![page(0, 0, 3, 7), page(0, 8, 1, 0), page(0, 20, 2, u16::MAX)];
        let (done, told) = heard(&format!("heard by {scheduler}"), &settings, load);
        let expected = [(0, 7), (1, 7), (2, 7), (8, 0), (20, u16::MAX), (21, u16::MAX)];
        assert_eq!(streams(&told), expected, "{scheduler}");
        assert_eq!(done.iter().map(|row| row.stream).collect::<Vec<_>>(), [7, 0, u16::MAX]);
    }
}

#[test]
fn copies_have_no_stream() {
    let settings = small("page", 2);
    let load = bursts(1, 3000, settings.user_pages());
    let load = load.into_iter().map(|record| Record { stream: 1 + record.size as u16 / 4096 % 2, ..record });
    let (_, told) = heard("copies", &settings, load.collect());
    let copies = told.iter().filter(|&&(_, cause, _)| cause == Cause::Gc);
    assert!(copies.clone().count() > 0 && copies.clone().all(|&(_, _, stream)| stream == 0));
    assert!(told.iter().all(|&(_, cause, stream)| cause == Cause::Gc || stream > 0));
}

/// The page that is written twice goes to the flash once, with the stream of the second write.
#[test]
fn a_page_leaves_the_buffer_with_the_stream_of_its_newest_write() {
    for policy in [Policy::Fifo, Policy::Lru, Policy::Block] {
        let mut settings = small("page", 2);
        settings.device.buffer.bytes = 16 * 4096;
        settings.device.buffer.policy = policy;
        let load = vec![page(0, 0, 4, 1), page(0, 2, 1, 2), page(0, 3, 1, 0), page(0, 4, 1, 3)];
        // Without it the run would end before any page leaves the buffer.
        let flush = Record { offset: 0, size: 0, ..pages(1, Op::Flush, 4096, 0, 0) };
        let load = [load, vec![flush]].concat();
        let (done, told) = heard(&format!("{policy:?}"), &settings, load);
        assert_eq!(streams(&told), [(0, 1), (1, 1), (2, 2), (3, 0), (4, 3)], "{policy:?}");
        assert_eq!(done.iter().map(|row| row.stream).collect::<Vec<_>>(), [1, 2, 0, 3, 0]);
    }
}

/// Five writes and four reads of neighbouring pages wait behind a write; without streams they become one of each.
#[test]
fn requests_of_different_streams_are_not_merged() {
    let mut settings = small("page", 1);
    settings.host.merge_limit = Some(64 << 10);
    settings.device.queue_depth = 1;
    let first = page(0, 40, 1, 0);
    let writes = [(0, 1), (1, 1), (2, 2), (3, 2), (4, 1)].map(|(lpn, stream)| page(1, lpn, 1, stream));
    let reads = [(8, 2), (7, 1), (6, 1), (5, 1)]
        .map(|(lpn, stream)| Record { stream, ..pages(1, Op::Read, 4096, lpn, 1) });
    let load: Vec<_> = [first].into_iter().chain(writes).chain(reads).collect();
    let (done, told) = heard("merging", &settings, load.clone());
    let rows: Vec<_> = done.iter().map(|row| (row.offset / 4096, row.size / 4096, row.stream)).collect();
    assert_eq!(rows, [(40, 1, 0), (0, 2, 1), (2, 2, 2), (4, 1, 1), (8, 1, 2), (5, 3, 1)]);
    assert_eq!(streams(&told), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 1), (40, 0)]);
    let alike = load.into_iter().map(|record| Record { stream: 5, ..record });
    assert_eq!(heard("merging alike", &settings, alike.collect()).0.len(), 3);
}

/// A write of two erase blocks is cut where they meet.
#[test]
fn parts_of_a_cut_request_keep_its_stream() {
    let mut settings = small("page", 1);
    settings.host.scheduler = "irbw".into();
    let (done, told) = heard("parts", &settings, vec![page(0, 12, 8, 9)]);
    assert_eq!(streams(&told), (12..20).map(|lpn| (lpn, 9)).collect::<Vec<_>>());
    assert_eq!((done.len(), done[0].stream), (1, 9));
}

/// Larger requests would take more of the processor's cache (two lines each).
#[test]
fn a_request_has_128_bytes() {
    assert_eq!(size_of::<Request>(), 128);
}

/// Two tenants overwrite their halves of the pages in order, one three times as fast. Each in blocks of its own, a
/// block is invalid as a whole when it is collected; together, the slower one's pages are copied. So it is with a write
/// buffer, whatever the order in which pages leave it.
#[test]
fn streams_that_overwrite_their_ranges_in_order_cost_nothing_if_apart() {
    let mut settings = small("page", 1);
    let half = settings.user_pages() / 2;
    let lpn = |n| if n % 4 == 0 { half + n / 4 % half } else { (n - n / 4 - 1) % half };
    let load: Vec<_> = (0..20 * half).map(|n| page(n, lpn(n), 1, if n % 4 == 0 { 2 } else { 1 })).collect();
    for buffer in [0, 8] {
        settings.device.buffer.bytes = buffer * 4096;
        let waf = |placement: &str| {
            let mut settings = settings.clone();
            settings.ftl.placement = Some(placement.into());
            settings.ftl.fronts = Some(4);
            let report = checked(&settings, load.clone()).0;
            report.flash.programs.total() as f64 / report.flash.programs[Cause::Host] as f64
        };
        assert_eq!(waf("stream"), 1.0, "a buffer of {buffer} pages");
        assert!(waf("one") > 1.1, "a buffer of {buffer} pages: {}", waf("one"));
    }
}

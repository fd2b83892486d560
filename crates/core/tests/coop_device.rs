//! The device's side of the cooperation (Shim et al., TC 2014, Table 1): queries go through the device's view, and the
//! begin and end of a block issue travel with the requests.

use ftlab_conformance as common;

use crate::hybrids::Driver;
use common::hybrid_device as device;
use ftlab_core::device::{Device, Turn};
use ftlab_core::flash::Cause;
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::{self, Ftl};
use ftlab_core::request::{Asks, Mark, Pages, Pool, Request};
use ftlab_core::settings::Settings;
use ftlab_core::workload::Op;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const NONE: Mark = Mark { coop: false, begin: false, end: false, pad: false, asks: Asks::Nothing };
const COOP: Mark = Mark { coop: true, ..NONE };
const BEGIN: Mark = Mark { begin: true, ..COOP };
const END: Mark = Mark { end: true, ..COOP };
const WHOLE: Mark = Mark { begin: true, end: true, ..COOP };

/// A device to which the test itself hands requests.
struct Stack {
    driver: Driver,
    device: Device,
    pool: Pool,
    done: Vec<u32>,
    now_ns: u64,
}

impl Stack {
    fn new(settings: &Settings) -> Stack {
        Stack {
            driver: Driver::new(settings),
            device: Device::new(settings),
            pool: Pool::default(),
            done: Vec::new(),
            now_ns: 0,
        }
    }

    fn push(&mut self, op: Op, first: u32, pages: u32, mark: Mark) {
        let pages = Pages { first, pages, ..Pages::NONE };
        let mut request = Request::new(1, self.now_ns, op, 0, 0, pages);
        request.mark = mark;
        let id = self.pool.insert(request);
        let Driver { ftl, work } = &mut self.driver;
        let turn = &mut Turn { now_ns: self.now_ns, pool: &mut self.pool, ftl, work, done: &mut self.done };
        self.device.accept(id, turn, |_| std::iter::empty());
    }

    /// Serves what was submitted; returns how long that took, ns.
    fn serve(&mut self) -> u64 {
        let began_ns = self.now_ns;
        loop {
            let Driver { ftl, work } = &mut self.driver;
            let (pool, done) = (&mut self.pool, &mut self.done);
            self.device.issue(&mut Turn { now_ns: self.now_ns, pool, ftl, work, done });
            self.done.drain(..).for_each(|id| self.pool.release(id));
            if self.device.is_idle() {
                break;
            }
            self.now_ns = self.device.next_ns();
            self.device.advance(self.now_ns, &mut self.pool, &mut self.done);
        }
        self.driver.verify();
        self.now_ns - began_ns
    }

    fn write(&mut self, first: u32, pages: u32, mark: Mark) -> u64 {
        self.push(Op::Write, first, pages, mark);
        self.serve()
    }

    fn query(&self, first: u32, pages: u32) -> Vec<u32> {
        let mut set = Vec::new();
        self.driver.ftl.coop_query(first, pages, &mut set);
        set
    }
}

/// Makes the state before Fig. 4, with four-page blocks.
fn figure_4() -> Stack {
    let mut stack = Stack::new(&device("fast", 4, 20, 3));
    stack.driver.prefill(0..80);
    for offset in [3, 1, 2, 1, 2, 1] {
        assert_eq!(stack.write(offset, 1, Mark::default()), 240_000);
    }
    stack
}

/// Fig. 4 takes the time of its writes (240 us a page), copies (285 us) and erasures (500 us), both without and with a
/// cooperative switch merge.
#[test]
fn figure_4_in_time() {
    let mut without = figure_4();
    assert_eq!(without.write(1, 3, Mark::default()), 3 * 240_000 + 4 * 285_000 + 2 * 500_000);
    let mut with = figure_4();
    assert_eq!(with.query(1, 3), [0]);
    assert_eq!(with.write(1, 3, WHOLE), 3 * 240_000 + 285_000 + 3 * 500_000);
    assert_eq!(with.driver.merges()[4], (1, 1));
    // Makes the same issue in three requests, with a request for another block in between.
    let mut apart = figure_4();
    assert_eq!(apart.write(1, 1, BEGIN), 285_000 + 240_000);
    assert_eq!(apart.write(6, 1, COOP), 240_000);
    assert_eq!(apart.write(2, 1, COOP), 240_000);
    // Log Block 1 has a valid page now, so it stays.
    assert_eq!(apart.write(3, 1, END), 240_000 + 2 * 500_000);
    assert_eq!(apart.driver.merges()[4], (1, 1));
    assert!(apart.query(77, 1).is_empty(), "five of eight pages of the log blocks are free");
    assert_eq!(apart.query(77, 2), [0u32; 0]);
}

/// Reads in the middle of an issue find the newest version, wherever it is.
#[test]
fn an_issue_under_way_is_read() {
    for kind in common::hybrids() {
        let mut stack = Stack::new(&device(kind, 4, 20, 3));
        stack.driver.prefill(0..80);
        stack.write(1, 1, BEGIN);
        stack.push(Op::Read, 0, 4, Mark::default());
        assert_eq!(stack.serve(), 4 * 45_000);
        assert_eq!(stack.driver.version(1), Some(2));
        stack.push(Op::Trim, 1, 1, Mark::default());
        stack.serve();
        stack.write(3, 1, END);
        let versions: Vec<_> = (0..4).map(|lpn| stack.driver.version(lpn)).collect();
        assert_eq!(versions, [Some(1), None, Some(1), Some(2)], "{kind}");
    }
}

#[test]
fn sizes_of_blocks() {
    for kind in common::hybrids() {
        let driver = Driver::new(&device(kind, 4, 20, 3));
        let size = driver.ftl.block_size();
        assert_eq!(size.map(|size| (size.pages, size.page_bytes)), Some((4, 4096)), "{kind}");
    }
    let mut settings = device("page", 4, 20, 3);
    settings.ftl.over_provisioning_ppm = 800_000;
    let driver = Driver::new(&settings);
    assert_eq!(driver.ftl.block_size(), None, "a page-mapped FTL has nothing to say");
    let mut set = vec![1, 2];
    driver.ftl.coop_query(0, 4, &mut set);
    assert_eq!(set, [0u32; 0]);
}

/// Padding reads and programs have their own cause, and their time belongs to the padded switch merge.
#[test]
fn padding_is_charged_to_its_merge() {
    let pad = Mark { pad: true, ..Mark::default() };
    for kind in common::hybrids() {
        let mut stack = Stack::new(&device(kind, 4, 20, 3));
        stack.driver.prefill(0..80);
        stack.push(Op::Read, 8, 2, pad);
        assert_eq!(stack.serve(), 2 * 45_000);
        stack.write(8, 2, pad);
        stack.write(10, 2, Mark::default());
        let counts = stack.driver.work.counts();
        assert_eq!(counts.reads[Cause::Pad], 2);
        assert_eq!(counts.programs[Cause::Pad], 2);
        assert_eq!(counts.programs[Cause::Host], 2);
        assert_eq!(stack.driver.merges(), [(0, 0), (0, 0), (0, 0), (1, 2), (0, 0)], "{kind}");
        stack.driver.verify_times();
    }
}

/// Random marks, many requests in the device, several chips, every device scheduler, every hybrid FTL: whatever the
/// host announces, no page is lost.
#[test]
fn no_mark_loses_data() {
    for kind in common::hybrids() {
        for scheduler in common::device_schedulers() {
            let mut settings = device(kind, 4, 60, 12);
            settings.flash.channels = 3;
            settings.flash.blocks_per_plane = 34;
            settings.device.scheduler = scheduler.into();
            settings.device.queue_depth = 8;
            let mut stack = Stack::new(&settings);
            let lpns = stack.driver.lpns();
            stack.driver.prefill(0..lpns);
            let mut versions = vec![1; lpns as usize];
            let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
            for _ in 0..1500 {
                for _ in 0..random.random_range(1..8) {
                    let pages = random.random_range(1..7);
                    let first = random.random_range(0..lpns / 4 - pages);
                    let mut flag = |odds| random.random_bool(odds);
                    let mark = Mark {
                        coop: flag(0.5),
                        begin: flag(0.3),
                        end: flag(0.3),
                        pad: flag(0.1),
                        asks: if flag(0.1) { Asks::Fua } else { Asks::Nothing },
                    };
                    let op = if flag(0.2) { Op::Read } else { Op::Write };
                    stack.push(op, first, pages, mark);
                    if op == Op::Write {
                        (first..first + pages).for_each(|lpn| versions[lpn as usize] += 1);
                    }
                }
                stack.serve();
            }
            for (lpn, &version) in versions.iter().enumerate() {
                assert_eq!(stack.driver.version(lpn as u32), Some(version), "{kind}, {scheduler}");
            }
            assert!(stack.driver.merges().iter().take(3).any(|merge| merge.0 > 50), "{kind}");
            assert!(stack.driver.merges()[4].0 > 500, "{kind}, {scheduler}");
            stack.driver.verify_times();
        }
    }
}

/// Marks have no meaning for a page-mapped FTL.
#[test]
fn a_page_mapped_ftl_ignores_marks() {
    let mut settings = device("page", 4, 20, 3);
    settings.ftl.over_provisioning_ppm = 800_000;
    let Driver { mut ftl, mut work } = Driver::new(&settings);
    let Ftl::Page(page) = &mut ftl else { panic!("the page map") };
    let request = Pages { first: 1, pages: 3, ..Pages::NONE };
    page.coop_issue(0, &mut work);
    page.write_marked(request, WHOLE, &mut work);
    page.coop_complete(0, &mut work);
    assert_eq!(work.counts().programs[Cause::Host], 3);
    assert_eq!(page.merges(), ftl::hybrid::merges::MergeStats::default());
}

/// Regression: page-mapped FTLs charged padding to the host.
#[test]
fn padding_of_page_mapped_ftls_is_padding() {
    use ftlab_core::flash::{ByCause, Cause};
    use ftlab_core::ftl::Ftl;
    use ftlab_core::ftl::faces::*;
    use ftlab_core::request::{Mark, Pages};
    let mut settings = common::settings();
    settings.ftl.kind = "page".into();
    let mut work = settings.work();
    let Ftl::Page(mut ftl) = Ftl::new(&settings, true, &mut work) else { panic!("page is asked for") };
    let pages = |first, pages| Pages { first, pages, ..Pages::NONE };
    ftl.write_marked(pages(0, 3), Mark { pad: true, ..Mark::default() }, &mut work);
    ftl.read_marked(pages(0, 2), Mark { pad: true, ..Mark::default() }, &mut work);
    ftl.write_marked(pages(8, 5), Mark { coop: true, ..Mark::default() }, &mut work);
    let of = |by: &ByCause<u64>| [Cause::Host, Cause::Pad].map(|cause| by[cause]);
    assert_eq!(of(&work.counts().programs), [5, 3]);
    assert_eq!(of(&work.counts().reads), [0, 2]);
    assert_eq!(ftl.host_slots(), 5);
}

//! Nothing is allocated per request in the steady state; a counting allocator proves it.

use ftlab_conformance as common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{hybrids, page_mapped_both_ways, schedulers, set_ftl, settings};
use ftlab_core::config::SizeMix;
use ftlab_core::flash::parallel::Allocation;
use ftlab_core::flash::variation::Variation;
use ftlab_core::ftl::settings::StaticLeveling;
use ftlab_core::host::awareness::AwarenessKind;
use ftlab_core::host::held::keys::MapPolicy;
use ftlab_core::settings::{Arrival, BurstOps, Pattern, Precondition, Replay, Settings, Synthetic};
use ftlab_core::sim::{Completion, Observer, run};
use ftlab_core::workload::{Op, Record, Source, SourceError};
use ftlab_generator::Generator;

struct Counting;

thread_local! {
    /// The number of allocations, for each thread separately: the test harness allocates in a thread of its own when it
    /// reports that a test takes long.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

fn count() {
    ALLOCATIONS.with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A source of random requests of one to four pages, in bursts of up to 256, so that queues fill and drain.
struct Random {
    left: u64,
    state: u64,
    lpns: u64,
    time_ns: u64,
}

impl Source for Random {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        if self.state & 63 == 0 || self.left.is_multiple_of(256) {
            self.time_ns += 40_000_000;
        }
        let op = match self.state >> 8 & 15 {
            0..5 => Op::Read,
            5 => Op::Trim,
            _ => Op::Write,
        };
        let pages = 1 + (self.state >> 16 & 3);
        let offset = (self.state >> 20) % (self.lpns - pages) * 4096;
        let latency_ns = 300_000 + (self.state >> 40 & 0xf_ffff);
        let (time_ns, size) = (self.time_ns, pages * 4096);
        Ok(Some(Record { time_ns, op, offset, size, latency_ns, ..Record::FLUSH }))
    }
}

/// An observer that counts the allocations made up to a request in the middle of the run.
struct Middle {
    at: u64,
    seen: u64,
    allocations: u64,
}

impl Observer for Middle {
    fn complete(&mut self, _completion: &Completion) {
        self.seen += 1;
        if self.seen == self.at {
            self.allocations = allocations();
        }
    }
}

/// A source that counts again at the end of the stream, before the report is made.
struct CountAtEnd<'a>(Random, &'a mut u64);

impl Source for CountAtEnd<'_> {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        let next = self.0.next();
        if let Ok(None) = next {
            *self.1 = allocations();
        }
        next
    }
}

const VARIATION: Variation = Variation {
    growth_mean: 3.7e-4,
    growth_stddev: 9e-5,
    growth_bound: 3.0,
    fresh_ber: 1.3e-6,
    ecc_limit: 1.3e-3,
    sensitivity: 15.0,
    nominal_step: 0.3,
    max_step: 0.6,
    step_decrement: 0.03,
};

/// Makes a filled device with this many channels.
fn device(kind: &str, channels: u32, transfer_ps: u64) -> Settings {
    let mut settings = settings();
    set_ftl(&mut settings, kind);
    settings.ftl.flush_bytes = settings.ftl.flush_bytes.map(|_| 256 << 10);
    settings.ftl.mapping_cache_bytes = settings.ftl.flush_bytes.is_none().then_some(16 << 10);
    settings.ftl.over_provisioning_ppm = 200_000;
    settings.host.awareness = if channels == 1 { AwarenessKind::Lru } else { AwarenessKind::Full };
    settings.host.deadline_ns = Some(10_000_000);
    settings.device.precondition = Precondition::fill();
    settings.device.queue_depth = channels * 4;
    settings.flash.channels = channels;
    settings.flash.blocks_per_plane = 256 / channels;
    settings.flash.transfer_ps = transfer_ps;
    settings
}

fn allocates_nothing(settings: &Settings, what: &str) {
    let lpns = settings.user_pages();
    let requests = 60_000;
    let mut middle = Middle { at: requests / 2, seen: 0, allocations: 0 };
    let mut at_end = 0;
    let random = Random { left: requests, state: 88_172_645_463_325_252, lpns, time_ns: 0 };
    run(settings, &mut CountAtEnd(random, &mut at_end), &mut middle, false).expect("a sound run");
    assert_eq!(at_end - middle.allocations, 0, "{what}");
}

/// Devices with everything that may allocate: channels, whether transfers take time, what the host waits for, and the
/// device's scheduler.
const DEVICES: [(u32, u64, Replay, &str); 6] = [
    (1, 0, Replay::Open, "noop"),
    (4, 10_000, Replay::Closed, "noop"),
    (4, 10_000, Replay::Dependent, "noop"),
    (4, 10_000, Replay::Closed, "piq"),
    (4, 0, Replay::Closed, "vios"),
    (4, 10_000, Replay::Closed, "direct"),
];

/// Every FTL below every scheduler: each pair on one of the devices, in turn, so that each FTL and each scheduler meets
/// all of them. With `FTLAB_CAMPAIGN` each pair is on all devices.
#[test]
fn the_steady_state_allocates_nothing() {
    let long = std::env::var_os("FTLAB_CAMPAIGN").is_some();
    let kinds = [page_mapped_both_ways(), hybrids()].concat();
    let schedulers = schedulers(false);
    assert!(kinds.len() >= DEVICES.len() && schedulers.len() >= DEVICES.len(), "each meets all devices");
    let mut cases = Vec::new();
    for (at, kind) in kinds.into_iter().enumerate() {
        for (turn, &scheduler) in schedulers.iter().enumerate() {
            let devices = DEVICES.into_iter().enumerate();
            let chosen = devices.filter(|&(device, _)| long || device == (at + turn) % DEVICES.len());
            cases.extend(chosen.map(|(_, device)| (kind, scheduler, device)));
        }
    }
    common::side_by_side(&cases, |&(kind, scheduler, (channels, transfer_ps, replay, by))| {
        let mut settings = device(kind, channels, transfer_ps);
        settings.device.scheduler = by.into();
        settings.ftl.allocation =
            if by == "direct" { Allocation::Dynamic } else { Allocation::CHANNEL_FIRST };
        settings.flash.variation = (by == "vios").then_some(VARIATION);
        settings.flash.pe_cycles = 12_000;
        settings.host.scheduler = scheduler.into();
        settings.workload.replay = replay;
        allocates_nothing(&settings, &format!("{kind}, {scheduler}, {channels} channels, {by}, {replay:?}"));
    });
}

#[test]
fn collecting_garbage_allocates_nothing() {
    common::side_by_side(&common::victim_policies(), |gc| {
        for kind in ["page", "dftl"] {
            let mut settings = device(kind, 1, 0);
            common::set_gc(&mut settings, gc);
            settings.ftl.wear_leveling = Some(StaticLeveling { threshold: 4 });
            allocates_nothing(&settings, &format!("{kind}, {gc}"));
        }
    });
}

#[test]
fn a_controller_allocates_nothing() {
    let mut behind = device("page", 4, 10_000);
    let controller = &mut behind.device.controller;
    (controller.link, controller.link_command_ns, controller.command_ns) = (500_000_000, 500, 4_000);
    allocates_nothing(&behind, "behind a controller");
}

#[test]
fn a_map_held_by_the_host_allocates_nothing() {
    for policy in [MapPolicy::Lru, MapPolicy::AccessCount] {
        let mut settings = device("dftl", 4, 10_000);
        let map = &mut settings.host.map;
        (map.bytes, map.region_bytes, map.subregion_bytes) = (16 << 10, 1 << 20, 256 << 10);
        (map.policy, map.threshold) = (policy, 2);
        allocates_nothing(&settings, &format!("a map held by the host, {policy:?}"));
    }
}

#[test]
fn the_generator_allocates_nothing() {
    let mix = SizeMix::new(vec![(4096, 60), (65_536, 40)]);
    for (pattern, arrival) in [
        (Pattern::Random, Arrival::Exponential),
        (Pattern::Zipf, Arrival::Constant),
        (Pattern::HotCold, Arrival::Bursts),
    ] {
        let synthetic = Synthetic {
            pattern,
            hot_piece: Some(2 << 20),
            sequential_ppm: 100_000,
            near_ppm: 200_000,
            near_sequential_ppm: 300_000,
            read_ppm: 400_000,
            trim_ppm: 10_000,
            exact_mix: true,
            read_sizes: mix.clone(),
            write_sizes: mix.clone(),
            arrival,
            interarrival_ns: 20_000,
            burst_length: 3.0,
            read_burst_length: 5.0,
            burst_gap_ns: 1_000_000,
            burst_ops: BurstOps::Single,
            pause_ppm: 10_000,
            pause_ns: 1_000_000,
            ..Synthetic::new(50_000)
        };
        let mut generator = Generator::new(&synthetic, 1 << 30, 1);
        let before = allocations();
        while generator.next().expect("it never fails").is_some() {}
        assert_eq!(allocations() - before, 0, "{pattern:?}, {arrival:?}");
    }
}

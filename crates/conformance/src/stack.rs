//! Small stacks, loads for them, and the laws of a run.

use ftlab_core::config::PageTimes;
use ftlab_core::flash::settings::{Cell, Programming};
use ftlab_core::flash::variation::Variation;
use ftlab_core::ftl::reclaim::ReclaimUnit;
use ftlab_core::ftl::settings::SlcFull;
use ftlab_core::ftl::slc_size::SlcSize;
use ftlab_core::ftl::{check, gathers, maps_blocks, unit_bytes};
use ftlab_core::metrics::{Parts, Report};
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Completion, Observer, run};
use ftlab_core::workload::{Op, Record};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::registered::set_ftl;

/// Variation under which blocks age quickly.
pub const AGEING: Variation = Variation {
    growth_mean: 0.01,
    growth_stddev: 0.002,
    growth_bound: 3.0,
    fresh_ber: 1e-6,
    ecc_limit: 1e-3,
    sensitivity: 15.0,
    nominal_step: 0.3,
    max_step: 0.6,
    step_decrement: 0.03,
};

/// Returns a smaller form of the MAP+ paper's device: one chip, 35 us reads, 350 us programs, no bus time.
pub fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.host.deadline_ns = None;
    settings.ftl.kind = "dftl".into();
    settings.flash.blocks_per_plane = 256;
    settings
}

/// Makes a device of this FTL that is so small that its mapping cache overflows and garbage is collected.
/// Requests have a deadline.
pub fn small(kind: &str, chips: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings.ftl.mapping_cache_bytes = Some(16 << 10);
    if gathers(&settings) {
        settings.ftl.mapping_cache_bytes = None;
        settings.ftl.flush_bytes = Some(128 << 10);
    }
    settings.flash.channels = chips.min(2);
    settings.flash.chips_per_channel = chips.div_ceil(2);
    settings.flash.blocks_per_plane = 32;
    settings.flash.pages_per_block = 16;
    settings.ftl.log_blocks_ppm = 62_500;
    settings.ftl.over_provisioning_ppm = 200_000;
    settings.host.deadline_ns = Some(10_000_000);
    settings
}

/// Makes a device of this FTL with four chips and few, small pages, so that everything in it can be verified
/// often; there are several translation pages, and room for a campaign of power cuts.
pub fn tiny(kind: &str) -> Settings {
    let mut settings = settings();
    set_ftl(&mut settings, kind);
    settings.flash.channels = 2;
    settings.flash.chips_per_channel = 2;
    settings.flash.blocks_per_plane = 14;
    settings.flash.pages_per_block = 6;
    settings.flash.page_bytes = 512;
    settings.ftl.logical_page_bytes = 512;
    settings.ftl.entry_bytes = 16;
    settings.ftl.mapping_cache_bytes = Some(1024);
    settings.ftl.over_provisioning_ppm = 400_000;
    settings.flash.transfer_ps = 20_000;
    if maps_blocks(&settings) {
        settings.ftl.log_blocks_ppm = 260_000;
        settings.ftl.over_provisioning_ppm = 450_000;
    }
    if settings.ftl.flush_bytes.is_some() {
        // Segments of 512 B and mini-pages of 4 KiB, in pages that hold several of them.
        settings.ftl.own.msftl.segment_bytes = 512;
        let wide = unit_bytes(&settings) > 2048;
        settings.flash.page_bytes = if wide { 8192 } else { 2048 };
        settings.ftl.logical_page_bytes = settings.flash.page_bytes;
        settings.flash.ecc_unit_bytes = 512;
        settings.ftl.entry_bytes = if wide { 256 } else { 32 };
        settings.ftl.mapping_cache_bytes = None;
        settings.ftl.flush_bytes = Some(24 * u64::from(settings.flash.page_bytes));
    }
    check(&settings).expect("it fits");
    settings
}

/// Makes a device as [`tiny`] does, but with four logical pages to a NAND page (unless the FTL maps blocks), other
/// numbers of blocks and a queue depth of 8.
pub fn buffered(kind: &str) -> Settings {
    let mut settings = tiny(kind);
    if !maps_blocks(&settings) {
        settings.ftl.logical_page_bytes = settings.flash.page_bytes / 4;
    }
    settings.flash.blocks_per_plane = 20;
    settings.device.queue_depth = 8;
    check(&settings).expect("it fits");
    settings
}

/// Makes a device as [`buffered`] does, but whose word lines of three pages, each with two logical pages, are
/// programmed at once (unless the FTL maps blocks).
pub fn word_lines(kind: &str) -> Settings {
    let mut settings = buffered(kind);
    if !maps_blocks(&settings) {
        settings.ftl.logical_page_bytes = settings.flash.page_bytes / 2;
        settings.flash.pages_per_block = 12;
        settings.flash.cell = Cell::Tlc;
        settings.flash.programming = Programming::WordLine;
        settings.flash.read = PageTimes::new(&[20_000, 30_000, 45_000]);
    }
    while check(&settings).is_err() {
        settings.flash.blocks_per_plane += 1;
    }
    settings
}

/// Returns small devices of an FTL that differ in what is programmed at once: a logical page, a NAND page of four, a
/// word line of six.
pub fn programming(kind: &str) -> [Settings; 3] {
    [tiny(kind), buffered(kind), word_lines(kind)]
}

/// Returns small devices of a page-mapped FTL with an SLC cache: one of whole word lines that is sure of two blocks and
/// folds when it is full, one that takes erased blocks and is passed by, and one that is programmed page by page, under
/// which no cut of power is simulated.
pub fn slc_caches(kind: &str) -> [Settings; 3] {
    let with = |mut settings: Settings, blocks: u64, dynamic: Option<u64>, full: SlcFull| {
        let lines = settings.flash.pages_per_block.div_ceil(settings.flash.cell.bits());
        let bytes = u64::from(lines * settings.flash.page_bytes * settings.flash.luns());
        settings.ftl.slc_cache = Some(SlcSize { fixed: blocks * bytes, dynamic });
        settings.ftl.slc_full = full;
        settings.ftl.slc_fold_idle_ns = Some(2_000_000);
        (settings.flash.slc_read_ns, settings.flash.slc_program_ns) = (Some(10_000), Some(90_000));
        while check(&settings).is_err() {
            settings.flash.blocks_per_plane += 1;
        }
        settings
    };
    let mut by_page = tiny(kind);
    by_page.flash.cell = Cell::Mlc;
    [
        with(word_lines(kind), 2, None, SlcFull::Fold),
        with(word_lines(kind), 0, Some(u64::MAX), SlcFull::Direct),
        with(by_page, 1, Some(u64::MAX), SlcFull::Fold),
    ]
}

/// Returns the devices of [`programming`] and [`slc_caches`] with superblocks on two of their chips and on all four;
/// none if the FTL does not fill superblocks.
pub fn superblocks(kind: &str) -> Vec<Settings> {
    let fills = |settings: &Settings| !maps_blocks(settings) && !gathers(settings);
    let with = |(at, mut settings): (usize, Settings)| {
        settings.ftl.reclaim_unit = ReclaimUnit::Superblock([Some(2), None][at % 2]);
        while check(&settings).is_err() {
            settings.flash.blocks_per_plane += 1;
        }
        settings
    };
    let single = programming(kind).into_iter().filter(fills);
    let cached = |kind| if fills(&tiny(kind)) { slc_caches(kind).to_vec() } else { Vec::new() };
    single.chain(cached(kind)).enumerate().map(with).collect()
}

/// Makes a device of one chip with a hundred blocks: the user has `user` of them, and `logs` are log blocks.
pub fn hybrid_device(kind: &str, pages_per_block: u32, user: u32, logs: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings.flash.pages_per_block = pages_per_block;
    // With a hundred blocks, shares are whole percents.
    settings.flash.blocks_per_plane = 100;
    settings.ftl.over_provisioning_ppm = u64::from(100 - user) * 10_000;
    settings.ftl.log_blocks_ppm = u64::from(logs) * 10_000;
    settings.flash.read = 45_000.into();
    settings.flash.program = 240_000.into();
    settings.flash.erase_ns = 500_000;
    settings
}

/// Makes a request of `count` whole pages of `page` bytes.
pub fn pages(time_ns: u64, op: Op, page: u64, lpn: u64, count: u64) -> Record {
    Record { time_ns, op, offset: lpn * page, size: count * page, ..Record::FLUSH }
}

/// Makes bursts of reads and writes of one to six pages of 4 KiB over the first `lpns` pages.
pub fn bursts(seed: u64, requests: u64, lpns: u64) -> Vec<Record> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut time_ns = 0;
    let request = |_| {
        if random.random_ratio(1, 12) {
            time_ns += random.random_range(0..40_000_000);
        }
        let count = random.random_range(1..=6.min(lpns));
        let op = if random.random_bool(0.4) { Op::Read } else { Op::Write };
        pages(time_ns, op, 4096, random.random_range(0..=lpns - count), count)
    };
    (0..requests).map(request).collect()
}

/// An observer that stores every completion.
#[derive(Default)]
pub struct Log(pub Vec<Completion>);

impl Observer for Log {
    fn complete(&mut self, completion: &Completion) {
        self.0.push(*completion);
    }
}

/// Runs a simulation in check mode; returns the report, and the completions in the order of their ids.
pub fn checked(settings: &Settings, records: Vec<Record>) -> (Report, Vec<Completion>) {
    let mut log = Log::default();
    let report = run(settings, &mut records.into_iter(), &mut log, true).expect("every invariant holds");
    log.0.sort_by_key(|completion| completion.id);
    (report, log.0)
}

/// Checks that every request completes exactly once, that its latency is its wait plus its access, and that
/// no resource is busy for longer than the run takes.
pub fn every_request_completes_once(settings: &Settings, trace: &[Record]) {
    let (report, done) = checked(settings, trace.to_vec());
    assert_eq!(done.len(), trace.len());
    for (row, record) in done.iter().zip(trace) {
        assert_eq!((row.arrival_ns, row.op, row.offset), (record.time_ns, record.op, record.offset));
        assert!(row.arrival_ns <= row.dispatch_ns && row.dispatch_ns < row.complete_ns);
    }
    let all = |parts: &Parts| parts.all.mean_ns;
    let sum = all(&report.wait) + all(&report.access);
    let named = [&settings.ftl.kind, &settings.host.scheduler, &settings.device.scheduler];
    assert!((all(&report.latency) - sum).abs() < 1e-6 * sum, "{named:?}");
    let chips = &report.utilization.chip_busy_ns;
    let busy: u64 = report.flash.busy_ns.total();
    assert_eq!(busy, chips.iter().sum::<u64>(), "every charged operation ran on a chip");
    for busy_ns in chips.iter().chain(&report.utilization.channel_busy_ns) {
        assert!(*busy_ns <= report.elapsed_ns);
    }
}

/// Returns the number of power cuts that a campaign makes for each FTL; `FTLAB_CUTS` sets it.
pub fn cuts() -> u64 {
    std::env::var("FTLAB_CUTS").map_or(300, |count| count.parse().expect("a number"))
}

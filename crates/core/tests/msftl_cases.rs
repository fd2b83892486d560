//! MSFTL, the mini-page FTL and Base-DFTL, in cases small enough to work out by hand and in the paper's cases
//! on a scaled-down device (`ftlab-bench msftl` runs these at full size).

use ftlab_conformance as common;

use std::collections::BTreeSet;

use common::{checked, pages, settings};
use ftlab_core::flash::Cause;
use ftlab_core::ftl::UnitSpace;
use ftlab_core::ftl::settings::{CapacityStep, FlushCounts, HostFlush};
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::run;
use ftlab_core::workload::{Op, Record};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Returns the paper's device (section 4.1) with this many blocks on each of its four chips; `unit` is the size of a
/// translation unit, or 0 for Base-DFTL.
fn paper(unit: u32, blocks: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = match unit {
        0 => "dftl",
        4096 => "minipage",
        _ => "msftl",
    }
    .into();
    settings.ftl.own.msftl.segment_bytes = unit;
    settings.ftl.flush_bytes = Some(9 * MIB);
    settings.ftl.entry_bytes = 4;
    settings.ftl.logical_page_bytes = 4096;
    settings.ftl.over_provisioning_ppm = 49_780;
    settings.ftl.capacity_step = CapacityStep::Block;
    settings.flash.channels = 2;
    settings.flash.chips_per_channel = 2;
    settings.flash.blocks_per_plane = blocks;
    settings.flash.pages_per_block = 576;
    settings.flash.page_bytes = 16 * KIB;
    settings.flash.read = 49_000.into();
    settings.flash.program = 600_000.into();
    settings.flash.erase_ns = 4_000_000;
    settings.flash.transfer_ps = 1_250;
    settings.device.queue_depth = 32;
    settings
}

/// The unit sizes of the paper's FTLs: Base-DFTL, mini-page, MSFTL-2KiB, MSFTL-1KiB.
const UNITS: [u32; 4] = [0, 4 * KIB, 2 * KIB, KIB];

fn space(settings: &Settings) -> UnitSpace {
    UnitSpace::new(settings, ftlab_core::ftl::unit_bytes(settings), true)
}

#[test]
fn the_user_space_and_the_directory_are_those_of_the_paper() {
    for (unit, directory) in UNITS.into_iter().zip([32_292, 129_168, 258_336, 516_672]) {
        let settings = paper(unit, 3776);
        assert_eq!(settings.user_bytes(), 14_352 * 9 * MIB, "126.14 GiB");
        let space = space(&settings);
        assert_eq!(space.directory_bytes, directory);
        assert_eq!(space.units * space.entries, 8_073 * 4_096, "8,073 page mapping tables");
    }
    for (unit, directory) in UNITS.into_iter().zip([32 * 1024, 128 * 1024, 256 * 1024, 512 * 1024]) {
        let mut settings = paper(unit, 4096);
        settings.flash.pages_per_block = 512;
        settings.ftl.over_provisioning_ppm = 0;
        assert_eq!(settings.user_bytes(), 128 << 30);
        assert_eq!(space(&settings).directory_bytes, directory);
    }
}

/// Writes as many chunks of 16 KiB as the user space has, in order or at random; returns the chunks and the report.
fn written(settings: &Settings, random: bool) -> (Vec<u64>, Report) {
    let chunks = settings.user_bytes() / (16 << 10);
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(7);
    let order: Vec<_> =
        (0..chunks).map(|chunk| if random { generator.random_range(0..chunks) } else { chunk }).collect();
    let mut source =
        order.iter().map(|&chunk| pages(0, Op::Write, 4096, chunk * 4, 4)).collect::<Vec<_>>().into_iter();
    let report = run(settings, &mut source, &mut (), false).expect("a sound run");
    (order, report)
}

/// "Flushes of 2304 mappings, 1.5 PMTs touched per flush on average"; all smaller units of a flush fit into one page.
#[test]
fn sequential_writes_program_one_and_a_half_pages_a_flush_in_pages_and_one_in_smaller_units() {
    for unit in UNITS {
        let settings = paper(unit, 160);
        let (_, report) = written(&settings, false);
        let flushes = settings.user_bytes() / (9 * MIB);
        assert_eq!(flushes, 608);
        assert_eq!(report.mapping.flushes, flushes);
        let programs = if unit == 0 { flushes * 3 / 2 } else { flushes };
        assert_eq!(report.mapping.translation_programs, programs, "unit {unit}");
        assert_eq!(report.mapping.unit_bytes, u64::from(if unit == 0 { 16 * KIB } else { unit }));
    }
}

/// Each flush programs its distinct units, in whole pages; their mean number is the expected one for uniform chunks.
#[test]
fn random_writes_program_the_units_of_each_flush() {
    for unit in UNITS {
        let settings = paper(unit, 160);
        let (order, report) = written(&settings, true);
        let space = space(&settings);
        let chunks_per_unit = u64::from(space.entries / 4);
        let (mut programs, mut updated) = (0, 0);
        for flush in order.chunks(576) {
            let units: BTreeSet<_> = flush.iter().map(|chunk| chunk / chunks_per_unit).collect();
            programs += (units.len() as u64).div_ceil(space.per_page.into());
            updated += flush.iter().collect::<BTreeSet<_>>().len() * 4;
        }
        assert_eq!(report.mapping.translation_programs, programs, "unit {unit}");
        let expected_units = f64::from(space.units) * (1.0 - (1.0 - 1.0 / f64::from(space.units)).powi(576));
        let per_flush = report.mapping.translation_programs as f64 / report.mapping.flushes as f64;
        // On average, a part of the last page stays empty.
        let per_page = f64::from(space.per_page);
        let expected = (expected_units + (per_page - 1.0) / 2.0) / per_page;
        assert!((per_flush / expected - 1.0).abs() < 0.01, "unit {unit}: {per_flush} a flush, {expected}");
        let entries = report.mapping.updated_ratio.unwrap();
        let programmed: usize = order
            .chunks(576)
            .map(|flush| {
                let units: BTreeSet<_> = flush.iter().map(|chunk| chunk / chunks_per_unit).collect();
                units.len() * space.entries as usize
            })
            .sum();
        assert!((entries - updated as f64 / programmed as f64).abs() < 1e-12, "unit {unit}");
    }
}

/// Makes a device of one chip with NAND pages of 4 KiB, each with four units of 128 entries; mappings are flushed after
/// four pages.
fn small() -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "msftl".into();
    settings.ftl.own.msftl.segment_bytes = KIB;
    settings.ftl.flush_bytes = Some(4 * 4096);
    settings
}

fn write(time_ns: u64, lpn: u64) -> Record {
    pages(time_ns, Op::Write, 4096, lpn, 1)
}

const FLUSH: Record = Record::FLUSH;

/// Four writes to two units: the fourth carries the flush, which programs one page and reads no source page. Four more
/// writes go to one of those units, another unit of the same page and two new units: the flush reads one source page
/// and programs one page.
#[test]
fn a_flush_reads_each_page_once_and_gathers_units() {
    let first = [0, 1, 128, 129].map(|lpn| write(0, lpn));
    let (report, done) = checked(&small(), first.to_vec());
    assert_eq!((report.mapping.translation_reads, report.mapping.translation_programs), (0, 1));
    assert_eq!(report.mapping.updated_ratio, Some(4.0 / 256.0));
    assert_eq!(done[2].complete_ns, 3 * 350_000);
    assert_eq!(done[3].complete_ns, 5 * 350_000, "its own page, then the mapping's");
    let mut records = first.to_vec();
    records.extend([5, 130, 256, 384].map(|lpn| write(0, lpn)));
    let (report, done) = checked(&small(), records.clone());
    assert_eq!((report.mapping.translation_reads, report.mapping.translation_programs), (1, 2));
    assert_eq!(done[7].complete_ns, 9 * 350_000 + 35_000 + 350_000);
    // A fifth unit begins a second page.
    records.truncate(4);
    records.extend(
        [5, 130, 256, 384].map(|lpn| pages(0, Op::Write, 4096, lpn, if lpn == 384 { 129 } else { 1 })),
    );
    let mut settings = small();
    settings.ftl.flush_bytes = Some(136 * 4096);
    let (report, _) = checked(&settings, records);
    assert_eq!((report.mapping.flushes, report.mapping.translation_programs), (1, 2));
    assert_eq!(report.mapping.updated_ratio, Some(136.0 / (5.0 * 128.0)));
}

/// A read whose entry is not cached fetches its unit, and only that unit goes over the bus; a read whose unit was never
/// written misses and fetches nothing; writes, and reads of the pages that they wrote, hit.
#[test]
fn reads_fetch_units_and_writes_nothing() {
    let mut settings = small();
    settings.flash.transfer_ps = 10_000;
    settings.device.precondition = ftlab_core::settings::Precondition {
        kind: ftlab_core::settings::PreconditionKind::Mapped,
        share_ppm: 1,
        order: ftlab_core::settings::WriteOrder::Sequential,
        ..ftlab_core::settings::Precondition::default()
    };
    let read = |time_ns, lpn| pages(time_ns, Op::Read, 4096, lpn, 1);
    let (report, done) = checked(
        &settings,
        vec![
            read(0, 0),
            read(1_000_000, 0),
            read(2_000_000, 1),
            read(3_000_000, 500),
            write(4_000_000, 2),
            read(5_000_000, 2),
        ],
    );
    let (whole, unit) = (40_960, 10_240);
    let times: Vec<_> = done.iter().map(|done| done.complete_ns - done.arrival_ns).collect();
    let (data, mapping, program) = (35_000 + whole, 35_000 + unit, whole + 350_000);
    assert_eq!(times, [mapping + data, data, mapping + data, data, program, data]);
    assert_eq!((report.mapping.hits, report.mapping.misses), (3, 3));
    assert_eq!(report.mapping.translation_reads, 2);
}

/// A flush by the host flushes the mappings, or only pads data; after a mapping flush, the count towards the next one
/// begins at 0.
#[test]
fn a_flush_of_the_host() {
    for (mappings, flushes, after_six) in [(true, 1, 2), (false, 0, 1)] {
        let mut settings = small();
        settings.ftl.host_flush = if mappings { HostFlush::Mapping } else { HostFlush::Data };
        let mut records: Vec<_> = [0, 1, 2].map(|lpn| write(0, lpn)).to_vec();
        records.push(FLUSH);
        let (report, _) = checked(&settings, records.clone());
        assert_eq!((report.mapping.flushes, report.mapping.translation_programs), (flushes, flushes));
        // After that flush, three more writes are too few for the next flush; a fourth is enough.
        records.extend([3, 4, 5, 6].map(|lpn| write(0, lpn)));
        let (report, _) = checked(&settings, records.clone());
        assert_eq!(report.mapping.flushes, after_six, "{mappings}");
        // A second flush has nothing to write.
        records.truncate(4);
        records.push(FLUSH);
        assert_eq!(checked(&settings, records).0.mapping.flushes, flushes);
    }
}

/// No mapping on flash names a page that is still in the buffer: the flush waits for the page.
#[test]
fn a_flush_waits_for_the_page_buffer() {
    let mut settings = small();
    settings.flash.page_bytes = 16 * KIB;
    settings.ftl.flush_bytes = Some(1);
    let records: Vec<_> = (0..7).map(|lpn| write(0, lpn)).collect();
    let (report, _) = checked(&settings, records.clone());
    assert_eq!((report.mapping.flushes, report.flash.programs[Cause::Host]), (1, 1));
    let more = [records, vec![write(0, 7)]].concat();
    let (report, _) = checked(&settings, more);
    assert_eq!((report.mapping.flushes, report.flash.programs[Cause::Host]), (2, 2));
}

/// Data that garbage collection moves counts towards the amount, unless only the user's data is to count.
#[test]
fn moved_data_counts_unless_told_otherwise() {
    let flushes = |moved| {
        let mut settings = small();
        settings.ftl.flush_counts = if moved { FlushCounts::All } else { FlushCounts::User };
        settings.ftl.flush_bytes = Some(32 * 4096);
        settings.ftl.over_provisioning_ppm = 250_000;
        settings.flash.blocks_per_plane = 40;
        settings.flash.pages_per_block = 16;
        let user = settings.user_pages();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let records = (0..20 * user).map(|_| write(0, random.random_range(0..user))).collect();
        let (report, _) = checked(&settings, records);
        let programs = &report.flash.programs;
        (
            report.mapping.flushes,
            programs[Cause::Host] / 32,
            (programs[Cause::Host] + programs[Cause::Gc]) / 32,
        )
    };
    let (found, user, all) = flushes(false);
    assert_eq!(found, user);
    assert!(all > user * 3 / 2, "enough was moved for this to mean something");
    let (found, user, all) = flushes(true);
    // Pages that a collection programs beyond the amount do not count towards the next flush.
    assert!(found > user * 5 / 4 && found <= all, "{user} < {found} <= {all}");
}

/// Under a scheduler that is aware of the mapping cache, writes are hits: they wait for no mapping.
#[test]
fn aware_schedulers_take_writes_for_hits() {
    let mut settings = small();
    settings.host.scheduler = "map+".into();
    let records = vec![write(0, 9), pages(0, Op::Read, 4096, 700, 1), write(0, 300), write(0, 301)];
    let (report, done) = checked(&settings, records);
    assert_eq!(report.mapping.prefetches, 0);
    assert_eq!(report.scheduler.batches, 1, "of the read");
    assert!(done[2].dispatch_ns < done[1].dispatch_ns && done[3].dispatch_ns < done[1].dispatch_ns);
}

/// One translation block is open at a time, and the next one is on another chip.
#[test]
fn translation_blocks_go_round_the_chips() {
    let mut settings = small();
    settings.ftl.kind = "dftl".into();
    settings.flash.channels = 4;
    settings.flash.blocks_per_plane = 64;
    settings.flash.pages_per_block = 8;
    settings.ftl.over_provisioning_ppm = 500_000;
    settings.ftl.flush_bytes = Some(4096);
    // Every write flushes one page of mappings; LPNs 0, 4, ... are on chip 0.
    let records: Vec<_> = (0..32).map(|index| write(0, index % 8 * 4)).collect();
    let (report, _) = checked(&settings, records);
    assert_eq!(report.mapping.translation_programs, 32);
    let busy = &report.utilization.chip_busy_ns;
    let (program, read) = (350_000, 35_000);
    // Chip 0 has the reserve block; the open blocks begin on chip 1. The first flush has no source page; the first
    // flush into each later block reads its source page on the chip before.
    assert_eq!(busy[1], 8 * program + 8 * read);
    assert_eq!(busy[2], 8 * program + 8 * read);
    assert_eq!(busy[0], (32 + 8) * program + 7 * read);
}

//! Random small devices. They are separate from the other files of `common`, which need no other crates.
#![allow(dead_code)]

use ftlab_core::config::ByPageType;
use ftlab_core::flash::errors::{Errors, Process, Retry};
use ftlab_core::flash::parallel::{Allocation, Level, MultiPlane, Parallel, Suspend};
use ftlab_core::flash::settings::{Cell, Programming};
use ftlab_core::ftl::check;
use ftlab_core::ftl::map::dftl::Load;
use ftlab_core::ftl::reclaim::ReclaimUnit;
use ftlab_core::ftl::settings::StaticLeveling;
use ftlab_core::ftl::settings::{FlushCounts, FreeBlocks, HostFlush, SlcFull};
use ftlab_core::ftl::slc_size::SlcSize;
use ftlab_core::settings::Settings;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::common::{AGEING, page_mapped_both_ways, set_ftl, settings, victim_policies};

/// Returns a configuration under which proptest draws `cases` cases and repeats those that failed before, which it
/// keeps in the file `failed`.
pub fn cases(cases: u32, failed: &'static str) -> ProptestConfig {
    let failure_persistence = Some(Box::new(FileFailurePersistence::Direct(failed)) as _);
    ProptestConfig { cases, failure_persistence, ..ProptestConfig::default() }
}

/// Draws an allocation: a static one with a random order, or dynamic allocation.
pub fn allocations() -> impl Strategy<Value = Allocation> {
    let orders = Just([Level::Channel, Level::Way, Level::Die, Level::Plane]).prop_shuffle();
    prop_oneof![2 => Just(Allocation::CHANNEL_FIRST), 2 => orders.prop_map(Allocation::Static), 1 => Just(Allocation::Dynamic)]
}

/// Draws the options of parallel operation.
pub fn parallel() -> impl Strategy<Value = Parallel> {
    let options = (any::<bool>(), 0u8..3, any::<bool>(), any::<bool>(), any::<bool>());
    (options, (0u8..3, 0u64..3, 0u64..3, 1u32..4, 0u32..5)).prop_map(
        |(
            (interleave, planes, cache_program, cache_read, out_of_order),
            (suspend, to, back, most, passed),
        )| Parallel {
            interleave,
            multi_plane: [MultiPlane::Off, MultiPlane::SameOffset, MultiPlane::Free][planes as usize],
            cache_program,
            cache_read,
            suspend: [Suspend::Off, Suspend::Erase, Suspend::ProgramErase][suspend as usize],
            suspend_ns: to * 9_000,
            resume_ns: back * 7_000,
            max_suspensions: most,
            out_of_order,
            max_passed: passed,
        },
    )
}

/// Draws a geometry, from roomy down to the smallest accepted number of blocks, and policies.
pub fn device() -> impl Strategy<Value = Settings> {
    let policy = (
        [prop::sample::select(victim_policies()), prop::sample::select(victim_policies())],
        1u32..4,
        1u32..8,
        prop_oneof![Just(None), (1u32..4).prop_map(Some)],
        prop::sample::select(vec![FreeBlocks::Erased, FreeBlocks::Withheld]),
    );
    (geometry().prop_flat_map(errors), policy).prop_map(
        |(mut settings, ([gc, translation_gc], choices, window, wear, free_blocks))| {
            settings.ftl.free_blocks = free_blocks;
            (settings.ftl.gc, settings.ftl.translation_gc) = (gc.into(), translation_gc.into());
            settings.ftl.victims.d_choices.draws = choices;
            settings.ftl.victims.windowed_greedy.window = window;
            // Wear levelling and the choice by speed exclude each other.
            settings.ftl.wear_leveling = wear
                .filter(|_| !settings.allocates_by_speed() && settings.ftl.slc_cache.is_none())
                .map(|threshold| StaticLeveling { threshold });
            settings
        },
    )
}

/// Draws errors of reads, from none to some that no step corrects, and from which step on data are rewritten.
pub fn errors(settings: Settings) -> impl Strategy<Value = Settings> {
    let terms = [0.0..4e-3f64, 0.0..1e-7, 0.0..1e-2, 0.0..1e-6];
    let retry = prop::sample::select(Retry::ALL.to_vec());
    let process = prop::sample::select(Process::ALL.to_vec());
    (any::<bool>(), terms, process, (retry, 0u32..4, 0u64..3, 0u64..2000), 0u32..4).prop_map(
        move |(on, terms, process, (retry, steps, retry_time, hours), refresh)| {
            let mut settings = settings.clone();
            if on {
                let [base, wear, retention, disturb] = terms.map(|term| Some(term).filter(|_| steps != 3));
                settings.flash.errors =
                    Errors { process, base, wear, retention, disturb, ..Errors::default() };
                settings.flash.errors.ecc_limit = 1e-3 * 8.0 * f64::from(settings.flash.ecc_unit_bytes);
                settings.flash.errors.retry_steps = steps;
                settings.flash.errors.retry_ns = retry_time.checked_sub(1).map(|times| times * 15_000);
                settings.flash.age_ns = hours * 3_600_000_000_000;
                settings.flash.retry = retry;
                settings.ftl.refresh = Some(refresh).filter(|&step| step > 0 && step <= steps);
            }
            settings
        },
    )
}

/// Configures flushes of the mappings after a few pages of data, in units of a few entries up to a page.
fn by_amount(settings: &mut Settings, amount: u64, slots: u32, user_data: bool, host_flush: bool) {
    if settings.ftl.kind == "minipage" {
        settings.flash.page_bytes = 4096 * slots.min(2);
        settings.ftl.logical_page_bytes = if slots == 1 { 4096 } else { 512 };
    }
    settings.flash.ecc_unit_bytes = 1;
    settings.ftl.own.msftl.segment_bytes = 64 << (amount % 4);
    settings.ftl.flush_bytes = Some(1 + amount * u64::from(settings.flash.page_bytes) / 8);
    // The cache is sometimes bounded, and FTLs that can flush by amount sometimes do not do so.
    let bounded = amount.is_multiple_of(3);
    settings.ftl.mapping_cache_bytes = bounded.then(|| (1 + amount) * u64::from(settings.ftl.entry_bytes));
    if settings.ftl.kind != "dftl" && amount.is_multiple_of(2) {
        settings.ftl.flush_bytes = None;
    }
    settings.ftl.flush_counts = if user_data { FlushCounts::User } else { FlushCounts::All };
    settings.ftl.host_flush = if host_flush { HostFlush::Mapping } else { HostFlush::Data };
}

/// Lets half of the devices that can do so fill superblocks, of all LUNs or of a part of them.
fn superblocks(settings: &mut Settings, roll: u64) {
    let luns = settings.flash.luns();
    let parts: Vec<u32> = (2..=luns).filter(|&part| luns.is_multiple_of(part)).collect();
    if roll % 2 == 1 && !parts.is_empty() && settings.device.scheduler != "vios" {
        let part = parts[(roll / 2) as usize % parts.len()];
        settings.ftl.reclaim_unit = ReclaimUnit::Superblock(Some(part));
        if check(settings).is_err_and(|fault| fault.key == "ftl.reclaim_unit") {
            settings.ftl.reclaim_unit = ReclaimUnit::Block;
        }
    }
}

/// Sets energies, of reads for each page type, and powers.
fn energies(settings: &mut Settings, roll: u64) {
    let types: Vec<u64> = (0..settings.flash.cell.bits()).map(|of_type| roll + u64::from(of_type)).collect();
    let energy = &mut settings.energy;
    energy.read = ByPageType::energies(&types);
    energy.program = ByPageType::energies(&[roll]);
    (energy.erase_fj, energy.transfer_fj, energy.link_fj, energy.command_fj) = (5 * roll, 3, roll, 7);
    (energy.idle_uw, energy.active_uw) = (roll, 1000);
}

fn geometry() -> impl Strategy<Value = Settings> {
    let parts = (1u32..3, 1u32..3, parallel(), allocations(), any::<bool>(), 0u8..8);
    let geometry = (1u32..4, 1u32..3, 1u32..5, 3u32..12, 1u32..4, 0u64..40);
    let cache = (
        prop::sample::select(page_mapped_both_ways()),
        prop_oneof![Just(0u64), 1u64..40, 40u64..400],
        any::<bool>(),
        any::<bool>(),
    );
    (geometry, cache, 1u32..3, any::<bool>(), parts).prop_filter_map(
        "needs more blocks",
        |(
            (channels, ways, slots, pages_per_block, entries, spare),
            (kind, cache, lru, batch),
            reserve,
            vary,
            (dies, planes, parallel, allocation, plain, cells),
        )| {
            let mut settings = settings();
            set_ftl(&mut settings, kind);
            let flushes = settings.ftl.flush_bytes.take().is_some();
            settings.flash.channels = channels;
            settings.flash.chips_per_channel = ways;
            if !plain {
                settings.flash.dies_per_chip = dies;
                settings.flash.planes_per_die = planes;
                settings.flash.parallel = parallel;
                settings.ftl.allocation = allocation;
            }
            settings.flash.pages_per_block = pages_per_block;
            settings.flash.page_bytes = 512 * slots;
            settings.ftl.logical_page_bytes = 512;
            settings.ftl.entry_bytes = 64 >> entries;
            settings.ftl.gc_free_blocks = reserve;
            settings.ftl.own.dftl.replacement = if lru { "lru" } else { "slru" }.into();
            settings.ftl.own.dftl.batch_update = batch;
            settings.ftl.own.dftl.load = if spare % 2 == 0 { Load::Entry } else { Load::Request };
            if let Some(cell) = [Cell::Mlc, Cell::Tlc, Cell::Qlc].get(usize::from(cells)) {
                // Power cuts are simulated only where whole word lines are programmed.
                settings.flash.cell = *cell;
                settings.flash.programming = Programming::WordLine;
                settings.flash.pages_per_block *= cell.bits();
                if spare % 3 < 2 && settings.ftl.allocation != Allocation::Dynamic {
                    let bytes = pages_per_block * settings.flash.page_bytes * settings.flash.luns();
                    let fixed = (spare % 4) * u64::from(bytes);
                    let dynamic = (fixed == 0 || spare % 5 < 2).then_some(u64::MAX);
                    settings.ftl.slc_cache = Some(SlcSize { fixed, dynamic });
                    settings.ftl.slc_full = if batch { SlcFull::Fold } else { SlcFull::Direct };
                    settings.ftl.slc_fold_idle_ns = Some(spare * 100_000);
                }
            }
            if spare % 3 == 0 {
                energies(&mut settings, spare);
            }
            let whole_pages = settings.ftl.logical_page_bytes == settings.flash.unit_bytes();
            if vary {
                // Blocks differ from the start and age quickly; under vios they are chosen by speed.
                settings.flash.pe_cycles = 500;
                settings.flash.variation = Some(AGEING);
                if whole_pages
                    && settings.spread().in_turn()
                    && settings.ftl.allocation != Allocation::Dynamic
                {
                    settings.device.scheduler = "vios".into();
                }
            }
            let entry = u64::from(settings.ftl.entry_bytes);
            settings.ftl.mapping_cache_bytes = (cache > 0).then_some(entry);
            // The cache is at least as large as the FTL needs it to be.
            while check(&settings).is_err_and(|fault| fault.key == "ftl.mapping_cache") {
                settings.ftl.mapping_cache_bytes =
                    settings.ftl.mapping_cache_bytes.map(|bytes| bytes + entry);
            }
            settings.ftl.mapping_cache_bytes =
                settings.ftl.mapping_cache_bytes.map(|least| least + (cache - 1) * entry);
            if flushes {
                by_amount(&mut settings, cache, slots, lru, batch);
            }
            superblocks(&mut settings, spare);
            settings.ftl.over_provisioning_ppm = 100_000 + spare * 10_000;
            settings.flash.blocks_per_plane = 4;
            while check(&settings).is_err() {
                settings.flash.blocks_per_plane += 1;
                if settings.flash.blocks_per_plane > 60 {
                    return None;
                }
            }
            Some(settings)
        },
    )
}

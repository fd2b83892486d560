//! Wear-out: blocks past their limit are retired, spare blocks replace them, and a device without spare blocks turns
//! read-only. No data is lost, and nothing is promised that is not kept.

use ftlab_conformance as common;

use crate::devices;
use crate::devices::device;
use crate::driven::Driven;
use common::{Log, checked, pages, settings};
use ftlab_core::ftl::check;
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::settings::FreeBlocks;
use ftlab_core::ftl::settings::StaticLeveling;
use ftlab_core::metrics::{Report, State};
use ftlab_core::settings::{Endurance, GcBackground, Precondition, PreconditionKind, Settings};
use ftlab_core::sim::{Identity, Prepared, RunError, run, run_prepared};
use ftlab_core::workload::{Op, Record, SourceError};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

fn ageing(kind: &str, cycles: u32, spare: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings.ftl.over_provisioning_ppm = 250_000;
    settings.ftl.mapping_cache_bytes = Some(8 << 10);
    settings.ftl.spare_blocks = spare;
    settings.flash.endurance = Endurance::Cycles(cycles);
    settings.flash.blocks_per_plane = 64;
    settings.flash.pages_per_block = 16;
    settings.device.precondition = Precondition::fill();
    settings
}

/// Makes random writes, one per millisecond, then a read of every page.
fn worn(settings: &Settings, writes: u64) -> Vec<Record> {
    let user = settings.user_pages();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(17);
    let writes =
        (0..writes).map(|at| pages(at * 1_000_000, Op::Write, 4096, random.random_range(0..user), 1));
    let mut trace: Vec<_> = writes.collect();
    let end = trace.len() as u64 * 1_000_000;
    trace.extend((0..user).map(|lpn| pages(end + lpn * 1000, Op::Read, 4096, lpn, 1)));
    trace
}

fn blocks(report: &Report) {
    let blocks = report.health.blocks;
    assert!(blocks.retired <= blocks.spare);
    // Each block that a chip retires is replaced by a spare one.
    assert_eq!(blocks.retired, blocks.spare - blocks.spare_left);
}

#[test]
fn a_device_ages_to_read_only() {
    for kind in common::by_eviction() {
        let mut spans = Vec::new();
        for spare in [0, 4] {
            let mut settings = ageing(kind, 30, spare);
            // The user capacity is the same, and so is the number of blocks in service.
            let (user, blocks_in_all) = (settings.user_pages(), u64::from(64 + spare));
            settings.flash.blocks_per_plane = 64 + spare;
            settings.ftl.over_provisioning_ppm = 1_000_000 - (user * 1_000_000).div_ceil(blocks_in_all * 16);
            assert_eq!(settings.user_pages(), user);
            let trace = worn(&settings, 60_000);
            let (report, rows) = checked(&settings, trace);
            let health = &report.health;
            blocks(&report);
            assert_eq!((health.state, health.blocks.spare_left), (State::ReadOnly, 0), "{kind}");
            assert_eq!(health.blocks.retired, u64::from(spare));
            let since = health.read_only_ns.expect("it turned read-only");
            let failed = rows.iter().filter(|row| row.failed).count() as u64;
            assert_eq!((health.failed.writes, health.failed.trims), (failed, 0));
            for row in &rows {
                // Every write after that moment fails at once, and every read is served.
                let refused = row.op == Op::Write && row.dispatch_ns > since;
                assert_eq!(row.failed, refused, "{kind}: {row:?}, read-only since {since}");
                assert!(!row.failed || row.complete_ns == row.dispatch_ns);
            }
            // Requests that were served are measured; all that were requested are counted.
            assert_eq!(report.trace.writes, 60_000);
            assert_eq!(report.latency.write.count, 60_000 - failed);
            assert_eq!(report.latency.read.count, report.trace.reads);
            let smart = &health.nvme_smart;
            assert_eq!(
                (smart.host_write_commands, smart.host_read_commands),
                (60_000 - failed, report.trace.reads)
            );
            assert_eq!(smart.data_units_written, ((60_000 - failed) * 4096).div_ceil(512_000));
            assert_eq!(smart.critical_warning, if spare > 0 { 0b1001 } else { 0b1000 });
            assert_eq!(smart.available_spare, (spare > 0).then_some(0));
            assert_eq!(health.emmc_ext_csd.pre_eol_info, if spare > 0 { 3 } else { 0 });
            assert!(report.wear.max <= 31, "{kind}: {:?}", report.wear);
            spans.push(since);
        }
        println!("{kind}: read-only after {spans:?} ns");
        assert!(spans[0] < spans[1], "{kind}: spare blocks prolong its life");
    }
}

/// Only with enough blocks in reserve is every block used to its limit; levelling brings the device nearer to that
/// state.
#[test]
fn levelling_prolongs_life() {
    let mut lives = Vec::new();
    for threshold in [None, Some(4)] {
        let mut settings = ageing("page", 60, 2);
        settings.ftl.wear_leveling = threshold.map(|threshold| StaticLeveling { threshold });
        let user = settings.user_pages();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(23);
        let trace: Vec<_> = (0..120_000)
            .map(|_| {
                let region = if random.random_bool(0.95) { user / 10 } else { user };
                pages(0, Op::Write, 4096, random.random_range(0..region), 1)
            })
            .collect();
        let report = run(&settings, &mut trace.into_iter(), &mut (), false).expect("a sound run");
        blocks(&report);
        assert_eq!(report.health.state, State::ReadOnly);
        lives.push((report.latency.write.count, report.health.nvme_smart.percentage_used.unwrap()));
    }
    println!("writes and life used, without and with levelling: {lives:?}");
    assert!(lives[1].0 > lives[0].0 * 11 / 10 && lives[1].1 > lives[0].1, "{lives:?}");
    assert!(lives[1].1 >= 80, "{lives:?}");
}

/// A device that is not worn out is reported as good, in the terms of the standards.
#[test]
fn health_of_a_good_device() {
    let mut settings = ageing("page", 1000, 4);
    settings.flash.pe_cycles = 250;
    let trace = worn(&settings, 1000);
    let (report, _) = checked(&settings, trace);
    let health = serde_json::to_value(&report.health).unwrap();
    assert_eq!(health["state"], "good");
    assert!(health["read_only_ns"].is_null());
    let smart = &health["nvme_smart"];
    assert_eq!((&smart["critical_warning"], &smart["available_spare"]), (&0.into(), &100.into()));
    assert_eq!((&smart["available_spare_threshold"], &smart["percentage_used"]), (&10.into(), &25.into()));
    assert_eq!(health["emmc_ext_csd"]["PRE_EOL_INFO"], 1);
    assert_eq!(health["emmc_ext_csd"]["DEVICE_LIFE_TIME_EST_TYP_A"], 3);
    assert_eq!(health["emmc_ext_csd"]["DEVICE_LIFE_TIME_EST_TYP_B"], 0);
    assert_eq!(health["ufs_health_descriptor"]["bPreEOLInfo"], 1);
    assert_eq!(health["ufs_health_descriptor"]["bDeviceLifeTimeEstA"], 3);
    assert_eq!(health["ufs_health_descriptor"]["bDeviceLifeTimeEstB"], 0);
    settings.flash.endurance = Endurance::Unlimited;
    settings.ftl.spare_blocks = 0;
    let trace = worn(&settings, 1000);
    let health = serde_json::to_value(&checked(&settings, trace).0.health).unwrap();
    assert!(
        health["nvme_smart"]["percentage_used"].is_null()
            && health["nvme_smart"]["available_spare"].is_null()
    );
    assert_eq!(health["emmc_ext_csd"]["DEVICE_LIFE_TIME_EST_TYP_A"], 0);
}

/// The share of spare blocks left falls below the threshold before the end of the device's life.
#[test]
fn a_low_spare_is_a_warning() {
    let mut settings = ageing("page", 30, 8);
    settings.ftl.spare_threshold_ppm = 500_000;
    let (mut seen, mut low) = (Vec::new(), false);
    let ends = |writes: u64| {
        let mut trace = worn(&settings, writes).into_iter();
        run(&settings, &mut trace, &mut (), false).expect("a sound run").health
    };
    // Blocks wear out within a few writes of each other.
    let end = 20_000 - ends(20_000).failed.writes;
    for writes in (0..=40).map(|step| end - 400 + step * 10) {
        let health = ends(writes);
        let smart = health.nvme_smart;
        seen.push((health.state, smart.available_spare.unwrap(), smart.critical_warning));
    }
    println!("{seen:?}");
    assert!(seen.is_sorted_by_key(|(_, spare, _)| u8::MAX - spare), "{seen:?}");
    for (state, spare, warning) in seen {
        match state {
            State::Good => assert!(spare >= 50 && warning == 0),
            State::SpareLow => assert!(spare < 50 && warning == 1),
            State::ReadOnly => assert!(spare == 0 && warning == 9),
        }
        low |= state == State::SpareLow;
    }
    assert!(low);
}

/// Preconditioning that wears the device out is an error and has no result.
#[test]
fn preconditioning_may_wear_a_device_out() {
    let mut settings = ageing("page", 5, 1);
    settings.device.precondition = Precondition { kind: PreconditionKind::Steady, ..Precondition::default() };
    let error = Prepared::new(&settings, &mut (), true).unwrap_err().to_string();
    assert!(error.contains("wore the device out") && error.contains("flash.endurance"), "{error}");
}

/// Blocks retired while the device was preconditioned are part of a saved state, and so are spare blocks.
#[test]
fn a_saved_state_knows_the_retired_blocks() {
    let mut settings = ageing("dftl", 40, 12);
    settings.device.precondition =
        Precondition { kind: PreconditionKind::Steady, rounds: 5, ..Precondition::default() };
    // While the device is preconditioned, some blocks wear out, but not all.
    settings.flash.variation = Some(common::AGEING);
    settings.flash.endurance = Endurance::Ecc;
    settings.flash.pe_cycles = 750;
    settings.flash.blocks_per_plane = 128;
    settings.ftl.spare_blocks = 24;
    let own = Prepared::new(&settings, &mut (), true).expect("every invariant holds");
    let mut bytes = Vec::new();
    own.save(&Identity::new(), &mut bytes).unwrap();
    let loaded = Prepared::load(&settings, &Identity::new(), &mut &bytes[..], true).unwrap();
    let trace = worn(&settings, 3000);
    let reports = [own, loaded].map(|prepared| {
        let mut trace = trace.clone().into_iter();
        run_prepared(&settings, prepared, &mut trace, &mut ()).expect("every invariant holds")
    });
    assert!(reports[0].health.blocks.retired > 0, "{:?}", reports[0].health);
    let [own, loaded] = reports.each_ref().map(|report| serde_json::to_string(report).unwrap());
    assert_eq!(own, loaded);
}

/// Blocks beyond the ECC limit at time 0 are retired from the start, if there are spare blocks for them.
#[test]
fn blocks_beyond_the_ecc_limit_are_retired() {
    let mut settings = ageing("page", 1, 0);
    settings.flash.endurance = Endurance::Ecc;
    let refused = check(&settings).unwrap_err();
    assert!(
        refused.key == "flash.endurance" && refused.message.contains("flash.variation.model"),
        "{refused}"
    );
    settings.flash.variation = Some(common::AGEING);
    check(&settings).expect("no block is worn");
    // ln(1e-3 / 1e-6) + 15 (0.3 - 0.03) = 10.96 = 0.01 x 1096 cycles of the mean block.
    settings.flash.pe_cycles = 900;
    settings.flash.blocks_per_plane = 256;
    settings.ftl.over_provisioning_ppm = 400_000;
    let refused = check(&settings).unwrap_err();
    assert!(refused.key == "ftl.spare_blocks" && refused.message.contains("at time 0"), "{refused}");
    settings.ftl.spare_blocks = 64;
    check(&settings).expect("there are spare blocks for those");
    let (report, _) = checked(&settings, worn(&settings, 100));
    blocks(&report);
    let before = report.health.blocks.retired;
    assert!(before > 10 && report.health.state == State::Good, "{:?}", report.health);
    let (report, _) = checked(&settings, worn(&settings, 150_000));
    blocks(&report);
    assert!(report.health.blocks.retired > before, "{:?}", report.health.blocks);
}

#[test]
fn contradictions_say_what_to_do() {
    let mut settings = ageing("page", 30, 60);
    let refused = check(&settings).unwrap_err();
    assert!(refused.message.contains("60 spare ones (ftl.spare_blocks)"), "{refused}");
    settings.ftl.spare_blocks = 0;
    settings.flash.pe_cycles = 30;
    let refused = check(&settings).unwrap_err();
    assert!(refused.key == "flash.endurance" && refused.message.contains("flash.pe_cycles"), "{refused}");
    // Regression: hybrid FTLs were not checked, and panicked.
    for kind in common::hybrids() {
        settings.ftl.kind = kind.into();
        assert_eq!(check(&settings).unwrap_err().key, "flash.endurance", "{kind}");
    }
}

/// Draws a device whose blocks last only a few erases.
fn mortal() -> impl Strategy<Value = Settings> {
    let parts = (device(), 1u32..12, 0u32..4, any::<bool>(), 0u32..4);
    parts.prop_filter_map("needs more blocks", |(mut settings, cycles, spare, ecc, above)| {
        let ecc = ecc && settings.flash.variation.is_some();
        settings.flash.endurance = Endurance::Cycles(settings.flash.pe_cycles as u32 + cycles);
        settings.ftl.spare_blocks = spare;
        if ecc {
            settings.flash.endurance = Endurance::Ecc;
            // The mean block is beyond the limit after 1096 cycles, and one block in fifty after 780.
            settings.flash.pe_cycles = 780;
        }
        if above > 0 {
            let normal_blocks = settings.ftl.gc_free_blocks + above;
            settings.ftl.gc_background = Some(GcBackground { normal_blocks, step_pages: above });
        }
        while check(&settings).is_err() {
            settings.flash.blocks_per_plane += 1;
            if ecc {
                settings.ftl.spare_blocks = settings.flash.blocks_per_plane / 20;
            }
            if settings.flash.blocks_per_plane > 200 {
                return None;
            }
        }
        Some(settings)
    })
}

proptest! {
    #![proptest_config(devices::cases(96, "tests/properties.regressions"))]

    /// Devices are driven to read-only mode and beyond, and verified throughout, with all FTLs, policies, wear
    /// levelling and blocks of different speed.
    #[test]
    fn devices_die_in_order(
        settings in mortal(),
        seed: u64,
        steps in proptest::collection::vec((0u8..16, any::<u32>(), 1u32..8), 100..400),
    ) {
        let chips = settings.flash.chips();
        let mut driven = Driven::new(&settings);
        let lpns = driven.ftl.logical_pages();
        for lpn in 0..lpns {
            driven.operate(Op::Write, lpn, 1);
        }
        driven.verify();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut died = 0;
        for (index, &(op, at, pages)) in steps.iter().cycle().take(20 * steps.len()).enumerate() {
            let pages = pages.min(lpns);
            let first = at.wrapping_add(random.random_range(0..3)) % (lpns - pages + 1);
            match op {
                0 => driven.operate(Op::Read, first, pages),
                1 => driven.operate(Op::Trim, first, pages),
                2 => driven.operate(Op::Flush, 0, 0),
                3 => {
                    driven.work.clear();
                    driven.ftl.write_back(&mut driven.work);
                }
                4..7 => {
                    driven.work.clear();
                    driven.ftl.background_step(at % chips, &mut driven.work);
                }
                _ => driven.operate(Op::Write, first, pages),
            }
            if index % 16 == 0 {
                driven.verify();
            }
            died += u32::from(driven.ftl.is_read_only());
            if died > 100 {
                break;
            }
        }
        driven.verify();
        // After a complete read, nothing is programmed or erased any more.
        if died > 0 {
            driven.work.reset();
            for lpn in 0..lpns {
                driven.operate(Op::Read, lpn, 1);
                driven.operate(Op::Write, lpn, 1);
            }
            assert!(!driven.ftl.write_back(&mut driven.work));
            assert!((0..chips).all(|chip| !driven.ftl.background_step(chip, &mut driven.work)));
            let counts = driven.work.counts();
            prop_assert_eq!((counts.programs.total(), counts.erases.total()), (0, 0));
            driven.verify();
        }
    }

    /// Runs the whole stack: the run continues to its end, and every request is counted once.
    #[test]
    fn a_run_goes_on_to_its_end(
        settings in mortal(),
        scheduler in prop::sample::select(common::schedulers(false)),
        device_scheduler in prop::sample::select(common::device_schedulers()),
        (depth, closed, flush) in (1u32..12, any::<bool>(), any::<bool>()),
        steps in proptest::collection::vec((0u8..10, any::<u32>(), 1u64..3000, 0u64..3_000_000), 100..300),
    ) {
        let mut settings = settings;
        settings.host.scheduler = scheduler.into();
        settings.device.queue_depth = depth;
        settings.device.precondition = Precondition::fill();
        settings.ftl.background_flush = flush;
        if closed {
            settings.workload.replay = ftlab_core::settings::Replay::Closed;
        }
        let whole_pages = settings.flash.unit_bytes() == settings.ftl.logical_page_bytes;
        settings.device.scheduler = if whole_pages { device_scheduler } else { "noop" }.into();
        if settings.allocates_by_speed() {
            settings.ftl.wear_leveling = None;
        }
        let user = settings.user_bytes();
        let mut time_ns = 0;
        let trace: Vec<_> = steps.iter().cycle().take(2000).map(|&(op, at, size, gap)| {
            time_ns += if op % 3 == 0 { gap } else { 0 };
            let size = size.min(user);
            let op = match op { 0..2 => Op::Read, 2..8 => Op::Write, 8 => Op::Trim, _ => Op::Flush };
            let offset = (u64::from(at) + time_ns) % (user - size + 1);
            Record { time_ns, op, offset, size: if op == Op::Flush { 0 } else { size }, ..Record::FLUSH }
        }).collect();
        let mut log = Log::default();
        let ran = run(&settings, &mut trace.into_iter(), &mut log, true);
        if settings.ftl.free_blocks == FreeBlocks::Withheld
            && let Err(RunError::Source(SourceError::Input(why))) = &ran
            && why.starts_with("preconditioning wore the device out")
        {
            // Blocks that were never written are erased before they are filled, and may not survive more than that.
            return Ok(());
        }
        let report = ran.expect("every invariant holds");
        prop_assert_eq!(report.trace.requests, 2000);
        prop_assert_eq!(log.0.len(), 2000);
        let failed = |reads| log.0.iter().filter(|row| row.failed && (row.op == Op::Read) == reads).count() as u64;
        let counted = report.health.failed;
        prop_assert_eq!(failed(true), counted.reads.unwrap_or(0), "a device that is read-only still reads");
        let failed = failed(false);
        prop_assert_eq!(failed, counted.writes + counted.trims + counted.flushes);
        prop_assert_eq!(report.health.read_only_ns.is_some(), report.health.state == State::ReadOnly);
        prop_assert!(failed == 0 || report.health.state == State::ReadOnly);
        prop_assert_eq!(report.latency.write.count + counted.writes, report.trace.writes);
        blocks(&report);
    }
}

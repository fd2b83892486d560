//! Power cuts: nothing that was made durable is lost, whatever operation is cut.

use ftlab_conformance as common;
#[path = "common/devices.rs"]
mod devices;
#[path = "common/losses.rs"]
mod losses;

use common::{buffered, page_mapped_both_ways, programming, settings, tiny, word_lines};
use devices::device;
use ftlab_core::device::buffer::settings::{Policy, Settings as Buffer};
use ftlab_core::device::controller::Duplex;
use ftlab_core::flash::Cause;
use ftlab_core::flash::parallel::{Allocation, MultiPlane, Parallel, Suspend};
use ftlab_core::ftl::placement::{self, Page, Placement, Writable};
use ftlab_core::ftl::recovery::Flaw;
use ftlab_core::ftl::settings::FreeBlocks;
use ftlab_core::ftl::settings::StaticLeveling;
use ftlab_core::ftl::{check, keeps_trims};
use ftlab_core::settings::{Endurance, GcBackground, Precondition, PreconditionKind, Settings, Withheld};
use ftlab_core::workload::Op;
use ftlab_crash::{CrashError, Cuts, Options, Requests, Summary, crash};
use losses::cuts;
use proptest::prelude::*;

/// Runs the same campaign as [`cuts`], with FUA on some writes.
fn cuts_with_fua(settings: &Settings, count: u64, seed: u64, flaw: Flaw) -> Result<Summary, CrashError> {
    let options = Options { cuts: Cuts::Random { count, mean: 60 }, seed, flaw };
    let requests = || Requests::new(settings, seed).with_fua(seed);
    crash(settings, &mut || Ok(Box::new(requests())), &options, &mut |_| true)
}

#[test]
fn what_was_durable_is_there() {
    page_mapped_both_ways().into_iter().for_each(losses::nothing_durable);
}

#[test]
fn cuts_within_an_instant() {
    page_mapped_both_ways().into_iter().for_each(losses::operations_without_time);
}

#[test]
fn page_buffers_lose_only_what_no_flush_covers() {
    for kind in page_mapped_both_ways() {
        for settings in [buffered(kind), word_lines(kind)] {
            let summary = cuts_with_fua(&settings, common::cuts(), 2, Flaw::None)
                .unwrap_or_else(|fault| panic!("{kind}: {fault}"));
            assert!(summary.durable_writes > 0 && summary.durable_trims > 0, "{kind}: {summary:?}");
        }
    }
}

/// Data in an SLC cache, and data that is being folded, is as durable as any other; with a write buffer before the
/// cache, with separate fronts behind it, and with trims.
#[test]
fn an_slc_cache() {
    for (seed, kind) in (0..).zip(["page", "dftl"]) {
        let [fixed, dynamic, _] = common::slc_caches(kind);
        for (at, mut settings) in [fixed.clone(), fixed, dynamic.clone(), dynamic].into_iter().enumerate() {
            settings.device.queue_depth = 8;
            if at % 2 == 1 {
                settings.ftl.placement = Some("gc-apart".into());
                settings.flash.pages_per_block *= 4;
                settings.device.buffer =
                    Buffer { bytes: 24 * u64::from(settings.ftl.logical_page_bytes), ..Buffer::default() };
            }
            settings.ftl.power_safe = true;
            while check(&settings).is_err() || !keeps_trims(&settings) {
                settings.flash.blocks_per_plane += 1;
            }
            // After 409 cuts, copies once went beyond the end of a block: a page that a trim page had begun was padded
            // before they came, and counted as room.
            let count = if (kind, at) == ("page", 1) { common::cuts().max(450) } else { common::cuts() };
            let summary = cuts_with_fua(&settings, count, seed, Flaw::None)
                .unwrap_or_else(|fault| panic!("{kind} {at}: {fault}"));
            assert!(summary.durable_writes > 0 && summary.durable_trims > 0, "{kind} {at}: {summary:?}");
        }
    }
}

/// Idle chips collect garbage, a page or two at a time. This test found three faults: a collection that ended a victim
/// with nothing left to copy padded the host's page buffer without programming it; one that did copy counted one page
/// too few; and recovery undid only the collection of the log that was programmed last, although the other log's
/// collection had been cut as well.
#[test]
fn garbage_collected_in_the_background() {
    for kind in page_mapped_both_ways() {
        for (seed, mut settings) in programming(kind).into_iter().enumerate() {
            let normal_blocks = settings.ftl.gc_free_blocks + 2;
            settings.ftl.gc_background = Some(GcBackground { normal_blocks, step_pages: 1 + seed as u32 });
            while check(&settings).is_err() {
                settings.flash.blocks_per_plane += 1;
            }
            common::set_gc(&mut settings, "random");
            settings.device.queue_depth = 1 + 14 * seed as u32;
            let summary = cuts(&settings, common::cuts() / 2, seed as u64, Flaw::None);
            summary.unwrap_or_else(|fault| panic!("{kind} {seed}: {fault}"));
        }
    }
}

/// Commands and answers are at the link and the cores when the power is cut: their requests are not acknowledged, and
/// everything that was acknowledged is there.
#[test]
fn commands_on_their_way() {
    for (seed, kind) in page_mapped_both_ways().into_iter().enumerate() {
        for mut settings in programming(kind) {
            settings.device.queue_depth = 8;
            let controller = &mut settings.device.controller;
            (controller.link, controller.link_command_ns) = (20_000_000, 5_000);
            controller.duplex = [Duplex::Full, Duplex::Half][seed % 2];
            (controller.cores, controller.command_ns, controller.unit_ns) = (2, 40_000, 10_000);
            (controller.latency_write_ns, controller.latency_other_ns) = (300_000, 90_000);
            let outcome = cuts_with_fua(&settings, common::cuts() / 4, seed as u64, Flaw::None);
            outcome.unwrap_or_else(|fault| panic!("{kind}: {fault}"));
        }
    }
}

/// Nothing durable is lost with a small write buffer, whether or not logical pages share NAND pages, and with or
/// without power-loss protection.
#[test]
fn pages_in_a_write_buffer() {
    for kind in page_mapped_both_ways() {
        for seed in 0..6 {
            let (mut settings, protected) = (programming(kind)[seed / 2].clone(), seed % 2 == 1);
            let policies = [Policy::Fifo, Policy::Lru, Policy::Block];
            settings.device.buffer = Buffer {
                bytes: 24 * u64::from(settings.ftl.logical_page_bytes),
                policy: policies[kind.len() % 3],
                protected,
                ..Buffer::default()
            };
            settings.device.queue_depth = 16;
            let summary = cuts_with_fua(&settings, common::cuts(), seed as u64, Flaw::None)
                .unwrap_or_else(|fault| panic!("{kind}, protected {protected}: {fault}"));
            assert!(summary.durable_writes > 0, "{kind}: {summary:?}");
        }
    }
}

/// Regression: a device whose blocks had worn out refused, when its power came back, to write what its protected RAM
/// held: writes that it had acknowledged before it turned read-only were lost, and trimmed data came back.
#[test]
fn worn_out_devices_keep_what_protected_ram_held() {
    let mut worn_out = 0;
    for kind in page_mapped_both_ways() {
        for (seed, mut settings) in programming(kind).into_iter().enumerate() {
            let bytes = 40 * u64::from(settings.ftl.logical_page_bytes);
            settings.device.buffer =
                Buffer { bytes, policy: Policy::Adversarial, protected: true, ..Buffer::default() };
            settings.flash.endurance = Endurance::Cycles(6);
            settings.ftl.power_safe = true;
            while check(&settings).is_err() || !keeps_trims(&settings) {
                settings.flash.blocks_per_plane += 1;
            }
            let summary = cuts(&settings, 1000, seed as u64, Flaw::None);
            let summary = summary.unwrap_or_else(|fault| panic!("{kind} {seed}: {fault}"));
            worn_out += u32::from(summary.read_only);
        }
    }
    assert!(worn_out > 9, "{worn_out} devices wore out");
}

/// Blocks of user data that were never written count as closed, before and after a cut, whether or not they
/// were erased again meanwhile.
#[test]
fn free_blocks_of_the_withheld_space_alone() {
    for kind in page_mapped_both_ways() {
        for (seed, mut settings) in programming(kind).into_iter().enumerate() {
            settings.ftl.free_blocks = FreeBlocks::Withheld;
            settings.ftl.gc = ["cyclic", "random", "greedy"][seed].into();
            settings.flash.blocks_per_plane += 4;
            for withheld in [Withheld::Used, Withheld::Kept] {
                let kind = PreconditionKind::Random(300_000);
                settings.device.precondition = Precondition { kind, withheld, ..Precondition::default() };
                let summary = cuts(&settings, common::cuts() / 4, seed as u64, Flaw::None);
                summary.unwrap_or_else(|fault| panic!("{} {seed} {withheld:?}: {fault}", settings.ftl.kind));
            }
        }
    }
}

/// Nothing durable is lost where operations of dies and planes overlap, suspend and overtake each other, and pages go
/// to whatever is idle.
#[test]
fn dies_side_by_side_and_dynamic_allocation() {
    let all = Parallel {
        interleave: true,
        multi_plane: MultiPlane::Free,
        cache_program: true,
        cache_read: true,
        suspend: Suspend::ProgramErase,
        suspend_ns: 9_000,
        resume_ns: 7_000,
        max_suspensions: 3,
        out_of_order: true,
        max_passed: 4,
    };
    for (seed, kind) in page_mapped_both_ways().into_iter().enumerate() {
        for order in [Some("emission"), Some("flin"), None] {
            for mut settings in programming(kind) {
                if let Some(order) = order {
                    (settings.flash.chips_per_channel, settings.flash.planes_per_die) = (1, 2);
                    (settings.flash.parallel, settings.order.name) = (all, order.into());
                } else {
                    settings.ftl.allocation = Allocation::Dynamic;
                }
                settings.device.queue_depth = 8;
                while check(&settings).is_err() {
                    settings.flash.blocks_per_plane += 1;
                }
                let outcome = cuts(&settings, common::cuts() / 8, seed as u64, Flaw::None);
                outcome.unwrap_or_else(|fault| panic!("{kind} {order:?}: {fault}"));
            }
        }
    }
}

/// Blocks wear out and spare ones take their place, until the device is read-only; it then stays read-only.
#[test]
fn a_device_wears_out_under_power_cuts() {
    for kind in page_mapped_both_ways() {
        let mut settings = tiny(kind);
        (settings.flash.endurance, settings.ftl.spare_blocks) = (Endurance::Cycles(30), 2);
        settings.flash.blocks_per_plane += 6;
        check(&settings).expect("it fits");
        let summary =
            cuts(&settings, 10_000, 1, Flaw::None).unwrap_or_else(|fault| panic!("{kind}: {fault}"));
        assert!(summary.read_only && summary.cuts < 10_000, "{kind}: {summary:?}");
        // Of 20 blocks on each of four chips, all except those with cold data have reached their limit.
        assert!(summary.operations > 20 * 4 * 30, "{kind}: {summary:?}");
    }
}

#[test]
fn a_deep_queue_and_every_policy() {
    for (seed, gc) in common::victim_policies().into_iter().enumerate() {
        for kind in page_mapped_both_ways() {
            let mut settings = tiny(kind);
            common::set_gc(&mut settings, gc);
            settings.device.queue_depth = 16;
            settings.ftl.wear_leveling =
                (seed % 2 == 0).then_some(2).map(|threshold| StaticLeveling { threshold });
            settings.flash.blocks_per_plane += 6;
            let outcome = cuts(&settings, common::cuts() / 3, seed as u64, Flaw::None);
            outcome.unwrap_or_else(|fault| panic!("{kind}, {gc}: {fault}"));
        }
    }
}

#[test]
fn broken_recovery_is_noticed() {
    for flaw in [Flaw::SkipScan, Flaw::IgnoreOrder, Flaw::ForgetTrims] {
        for kind in page_mapped_both_ways() {
            let outcome = cuts(&tiny(kind), 300, 3, flaw);
            assert!(matches!(outcome, Err(CrashError::Fault { .. })), "{kind} with {flaw:?}: {outcome:?}");
        }
    }
}

/// A write with FUA is durable once it has completed, without a flush. If logical pages are as large as NAND pages this
/// is true of every write, so only smaller logical pages reveal a device that ignores FUA.
#[test]
fn fua_that_does_nothing_is_noticed() {
    for kind in page_mapped_both_ways() {
        let outcome = cuts_with_fua(&buffered(kind), 300, 3, Flaw::PlainFua);
        let Err(CrashError::Fault { what, .. }) = outcome else { panic!("{kind}: {outcome:?}") };
        assert!(what.contains("is durable"), "{kind}: {what}");
    }
}

/// Returns the device of the preset `crash`.
fn preset(kind: &str) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings.device.queue_depth = 8;
    settings.ftl.entry_bytes = 32;
    settings.ftl.mapping_cache_bytes = Some(8192);
    settings.ftl.over_provisioning_ppm = 350_000;
    settings.flash.channels = 2;
    settings.flash.chips_per_channel = 2;
    settings.flash.blocks_per_plane = 18;
    settings.flash.pages_per_block = 16;
    settings.flash.read = 50_000.into();
    settings.flash.program = 500_000.into();
    settings.flash.erase_ns = 3_000_000;
    settings.flash.transfer_ps = 2_500;
    settings
}

/// Faults that earlier campaigns found, each with the seed that showed it.
#[test]
fn found_before() {
    // Page: a trim page was all that kept trimmed pages of other chips from coming back, but the collection that had
    // written it was undone: it had been relied on before that collection had ended.
    cuts(&tiny("page"), 1114, 1, Flaw::None).unwrap();
    // Dftl, deep queue: a page stayed trimmed only because of an older version of a unit whose rewriting was
    // torn, and recovery freed the block of that version.
    let mut deep = tiny("dftl");
    common::set_gc(&mut deep, "d-choices");
    deep.device.queue_depth = 16;
    deep.ftl.wear_leveling = Some(StaticLeveling { threshold: 2 });
    cuts(&deep, 700, 2, Flaw::None).unwrap();
    // Page, without slack: a collection wrote the trim page on a chip that had room only for the collection's data.
    let mut tight = settings();
    tight.ftl.kind = "page".into();
    tight.flash.chips_per_channel = 2;
    tight.flash.blocks_per_plane = 8;
    tight.flash.pages_per_block = 3;
    tight.flash.page_bytes = 512;
    tight.ftl.logical_page_bytes = 512;
    tight.ftl.over_provisioning_ppm = 170_000;
    tight.ftl.power_safe = true;
    while !keeps_trims(&tight) {
        tight.ftl.over_provisioning_ppm += 10_000;
    }
    let options = Options { cuts: Cuts::Random { count: 100, mean: 40 }, seed: 0, flaw: Flaw::None };
    crash(&tight, &mut || Ok(Box::new(Requests::new(&tight, 0))), &options, &mut |_| true).unwrap();
    // Msftl: recovery would not undo a collection whose own trim page was still in force because of a newer
    // one, and (the second case) erased a block without live slots whose unit was needed once a collection on
    // another chip was undone. It takes thousands of cuts, so only `make crash` gets that far.
    if common::cuts() >= 5000 {
        cuts(&buffered("msftl"), 2442, 2, Flaw::None).unwrap();
        cuts(&tiny("msftl"), 4683, 1, Flaw::None).unwrap();
        // A victim's own trim page, written anew for it, covered data that was still being written to another
        // chip.
        cuts(&tiny("cdftl"), 7666, 1, Flaw::None).unwrap();
    }
    // Dftl: a collection was cut while the pool had an erased block, so that no chip lacked one; together the
    // victim and its copies exceeded the blocks that the data may have.
    for kind in ["dftl", "cdftl", "tpftl"] {
        let options = Options { cuts: Cuts::Random { count: 40, mean: 200 }, seed: 1, flaw: Flaw::None };
        let settings = preset(kind);
        crash(&settings, &mut || Ok(Box::new(Requests::new(&settings, 1))), &options, &mut |_| true).unwrap();
    }
}

/// Draws the number of erases that a block lasts and the number of spare blocks of each chip, or draws no limit.
fn life() -> impl Strategy<Value = Option<(u32, u32)>> {
    prop_oneof![Just(None), (5u32..40, 0u32..4).prop_map(Some)]
}

proptest! {
    #![proptest_config(devices::cases(std::env::var("FTLAB_CASES").map_or(48, |cases| cases.parse().expect("a number")), "tests/crash.regressions"))]

    /// Tests any geometry down to the smallest accepted one, any policy, blocks of different speed, wear levelling, and
    /// queues of any depth.
    #[test]
    fn any_device(mut settings in device(), depth in 1u32..20, seed in 0u64..1 << 32, above in 0u32..4, life in life()) {
        settings.device.queue_depth = depth;
        settings.ftl.power_safe = true;
        if above > 0 {
            let normal_blocks = settings.ftl.gc_free_blocks + above;
            settings.ftl.gc_background = Some(GcBackground { normal_blocks, step_pages: above });
        }
        if let Some((cycles, spare)) = life {
            settings.flash.endurance = Endurance::Cycles(settings.flash.pe_cycles as u32 + cycles);
            settings.ftl.spare_blocks = spare;
        }
        while check(&settings).is_err() || !keeps_trims(&settings) {
            settings.flash.blocks_per_plane += 1;
            assert!(settings.flash.blocks_per_plane < 4096, "no size fits: {:?}", check(&settings));
        }
        let options = Options { cuts: Cuts::Random { count: common::cuts() / 10, mean: 40 }, seed, flaw: Flaw::None };
        let requests = || Requests::new(&settings, seed).with_fua(seed);
        let outcome = crash(&settings, &mut || Ok(Box::new(requests())), &options, &mut |_| true);
        if let Err(fault) = outcome {
            return Err(TestCaseError::fail(fault.to_string()));
        }
    }
}

/// Regression: requests of a later pass over the workload all arrived with the last one of the first pass,
/// and unbounded queues took them for ever. A workload without writes was also read for ever.
#[test]
fn a_short_workload_is_cut_again_and_again() {
    let page = 4096;
    let options = Options { cuts: Cuts::Random { count: 5, mean: 300 }, seed: 1, flaw: Flaw::None };
    let run = |settings: &Settings, records: &[ftlab_core::workload::Record]| {
        crash(settings, &mut || Ok(Box::new(Vec::from(records).into_iter())), &options, &mut |_| true)
    };
    let mut settings = settings();
    settings.host.queue_depth = u32::MAX;
    settings.device.queue_depth = u32::MAX;
    let spaced: Vec<_> = (0..9).map(|at| common::pages(at * 400_000, Op::Write, page, at * 5, 2)).collect();
    let together: Vec<_> = (0..9).map(|at| common::pages(0, Op::Write, page, at * 5, 2)).collect();
    for load in [spaced, together] {
        assert_eq!(run(&settings, &load).expect("all that was durable is there").cuts, 5);
    }
    let reads = [common::pages(0, Op::Read, page, 0, 1)];
    let refused = run(&settings, &reads).expect_err("nothing can be cut");
    assert!(refused.to_string().contains("writes nothing"), "{refused}");
}

/// A placement that puts new versions of even pages, new versions of odd pages, and copies into separate blocks.
#[derive(Clone, Debug)]
struct Apart;

impl Placement for Apart {
    fn new(_keys: &placement::Own, _space: placement::Space) -> Apart {
        Apart
    }

    fn fronts(&self) -> u32 {
        3
    }

    fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        if page.cause == Cause::Gc { 2 } else { page.lpn % 2 }
    }
}

/// Cuts the power of tiny devices with this FTL and placement: with and without collection in the background and, where
/// each front has a page buffer, without it.
fn cut_with(placement: &str, kind: &str, count: u64) {
    for (device, background) in [(0, false), (0, true), (1, false), (2, false)] {
        cut_one(placement, kind, (device, background), count);
    }
}

fn cut_one(placement: &str, kind: &str, (device, background): (usize, bool), count: u64) {
    let mut settings = programming(kind)[device].clone();
    settings.ftl.placement = Some(placement.into());
    settings.ftl.gc_background = background.then_some(GcBackground { normal_blocks: 3, step_pages: 2 });
    settings.ftl.power_safe = true;
    settings.flash.pages_per_block *= [1, 4, 8][device];
    while check(&settings).is_err() || !keeps_trims(&settings) {
        settings.flash.blocks_per_plane += 2;
    }
    common::set_gc(&mut settings, "random");
    let summary = cuts(&settings, count, u64::from(background), Flaw::None);
    summary.unwrap_or_else(|fault| panic!("{placement} {kind} {device} {background}: {fault}"));
}

/// A collection whose copies go to several open blocks, and to a block of the reserve, is finished or undone like any
/// other; so is a background collection.
#[test]
fn several_open_blocks_of_a_lun() {
    placement::register::<Apart>("apart");
    page_mapped_both_ways().into_iter().for_each(|kind| cut_with("apart", kind, common::cuts() / 3));
}

#[test]
fn every_placement() {
    for name in common::placements().into_iter().filter(|name| !placement::needs(name).speeds) {
        for kind in ["page", "dftl"] {
            cut_with(name, kind, common::cuts() / 4);
        }
    }
}

/// Regression: after a cut, recovery relied on an older version of a trim page, since the data that the newest one knew
/// of was lost. The block of that version was erased once the trim page was written anew, while new data, of which the
/// trim page knew, was still on its way to another LUN; the next cut brought trimmed data back.
#[test]
fn a_trim_page_that_is_relied_on_outlasts_the_data_under_way() {
    cut_one("hot-cold", "page", (0, true), 800);
}

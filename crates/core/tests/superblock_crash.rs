//! Power cuts of superblocks: the chips of one have come to different pages when the power is cut, and some of its
//! blocks have been erased while others have not.

use ftlab_conformance as common;

use common::tiny;
use ftlab_core::ftl::reclaim::ReclaimUnit;
use ftlab_core::ftl::recovery::Flaw;
use ftlab_core::ftl::{check, keeps_trims};
use ftlab_core::settings::{GcBackground, Settings};
use ftlab_crash::{CrashError, Cuts, Options, Requests, Summary, crash};

/// Cuts the power this often, with FUA on some writes.
fn cuts(settings: &Settings, count: u64, seed: u64) -> Result<Summary, CrashError> {
    let options = Options { cuts: Cuts::Random { count, mean: 60 }, seed, flaw: Flaw::None };
    let requests = || Requests::new(settings, seed).with_fua(seed);
    crash(settings, &mut || Ok(Box::new(requests())), &options, &mut |_| true)
}

/// Whatever is programmed at once, in an SLC cache too, and in queues of any depth.
#[test]
fn on_small_devices() {
    for kind in common::page_mapped() {
        for (seed, mut settings) in (0..).zip(common::superblocks(kind)) {
            // Word lines that are programmed page by page are not cut.
            if settings.flash.cell.bits() > 1 && settings.flash.unit_pages() == 1 {
                continue;
            }
            settings.device.queue_depth = [1, 8, 32][seed as usize % 3];
            settings.ftl.power_safe = true;
            while check(&settings).is_err() || !keeps_trims(&settings) {
                settings.flash.blocks_per_plane += 1;
            }
            let summary = cuts(&settings, common::cuts(), seed)
                .unwrap_or_else(|fault| panic!("{kind} {seed}: {fault}"));
            assert!(summary.durable_writes > 0 && summary.durable_trims > 0, "{kind} {seed}: {summary:?}");
            assert!(summary.torn_programs > 0 && summary.torn_erases > 0, "{kind} {seed}: {summary:?}");
        }
    }
}

/// On a device of few pages victims are often empty: no copies hold an erase back, but the versions that replace the
/// victim's may still be on their way to other chips of the superblock.
#[test]
fn empty_victims() {
    for (seed, blocks) in (0..).zip([6, 7, 8]) {
        let mut settings = tiny("page");
        settings.ftl.reclaim_unit = ReclaimUnit::Superblock(None);
        settings.flash.blocks_per_plane = blocks;
        settings.flash.pages_per_block = 1;
        settings.ftl.over_provisioning_ppm = 650_000;
        settings.device.queue_depth = 32;
        settings.device.scheduler = "direct".into();
        settings.ftl.power_safe = true;
        assert!(check(&settings).is_ok() && keeps_trims(&settings), "{:?}", check(&settings));
        let summary =
            cuts(&settings, common::cuts(), seed).unwrap_or_else(|fault| panic!("{blocks} blocks: {fault}"));
        assert!(summary.durable_writes > 0 && summary.torn_erases > 0, "{blocks} blocks: {summary:?}");
    }
}

/// Copies and data of the host go to separate superblocks, and all chips of a superblock collect together while they
/// are idle.
#[test]
fn fronts_and_background_collection() {
    for (seed, kind) in (0..).zip(["page", "dftl"]) {
        for background in [false, true] {
            let mut settings = tiny(kind);
            settings.ftl.reclaim_unit = ReclaimUnit::Superblock(Some(2));
            settings.ftl.placement = Some("gc-apart".into());
            settings.ftl.gc_background =
                background.then_some(GcBackground { normal_blocks: 3, step_pages: 2 });
            settings.ftl.power_safe = true;
            settings.device.queue_depth = 8;
            while check(&settings).is_err() || !keeps_trims(&settings) {
                settings.flash.blocks_per_plane += 1;
            }
            let summary = cuts(&settings, common::cuts(), seed)
                .unwrap_or_else(|fault| panic!("{kind}, background {background}: {fault}"));
            assert!(summary.durable_writes > 0, "{kind}, background {background}: {summary:?}");
        }
    }
}

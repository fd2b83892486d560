//! Power cuts of a drive with all its parts at once: link and cores, a write buffer that reads ahead, an SLC cache,
//! several fronts, and read errors with refresh.

use ftlab_conformance as common;

use common::slc_caches;
use ftlab_core::device::buffer::settings::Settings as Buffer;
use ftlab_core::flash::Cause;
use ftlab_core::ftl::reclaim::ReclaimUnit;
use ftlab_core::ftl::recovery::Flaw;
use ftlab_core::ftl::{check, keeps_trims};
use ftlab_core::settings::Settings;
use ftlab_core::sim::run;
use ftlab_core::workload::Source;
use ftlab_crash::{Cuts, Options, Requests, crash};

/// Adds the other parts to a device with an SLC cache.
fn with_all_parts(mut settings: Settings, placement: &str, protected: bool) -> Settings {
    let page = u64::from(settings.ftl.logical_page_bytes);
    settings.device.queue_depth = 16;
    let controller = &mut settings.device.controller;
    (controller.link, controller.link_command_ns) = (20_000_000, 5_000);
    (controller.cores, controller.command_ns, controller.unit_ns) = (2, 40_000, 10_000);
    (controller.latency_write_ns, controller.latency_other_ns) = (300_000, 90_000);
    settings.device.buffer =
        Buffer { bytes: 24 * page, read_ahead: 8 * page, protected, ..Buffer::default() };
    settings.ftl.placement = Some(placement.into());
    // Some fifteen reads of a block without an erasure make the first read retry necessary.
    (settings.flash.pe_cycles, settings.flash.errors.disturb) = (3000, Some(2e-7));
    settings.ftl.refresh = Some(1);
    settings.flash.pages_per_block *= 4;
    settings.ftl.power_safe = true;
    settings
}

/// Checks, without cuts, that every part has work to do under the campaign's requests.
fn every_part_works(settings: &Settings, seed: u64) {
    let mut requests = Requests::new(settings, seed).with_fua(seed);
    let load = (0..12_000).map_while(|_| requests.next().expect("requests never fail"));
    let report = run(settings, &mut Vec::from_iter(load).into_iter(), &mut (), false).expect("a sound run");
    let buffer = report.device.buffer.as_ref().expect("there is a buffer");
    let errors = report.errors.as_ref().expect("reads meet errors");
    let worked = [
        report.device.link_busy.map_or(0, |busy| (busy * 1e6) as u64),
        buffer.destaged,
        buffer.hits,
        report.flash.programs[Cause::Fold],
        report.flash.programs[Cause::Gc],
        errors.retries,
        errors.refreshed_blocks,
    ];
    assert!(worked.iter().all(|&count| count > 0), "{seed}: a part did nothing: {worked:?}");
}

/// Cuts the power, with FUA on some writes, and checks that something was at stake.
fn nothing_durable_is_lost(mut settings: Settings, seed: u64) {
    while check(&settings).is_err() || !keeps_trims(&settings) {
        settings.flash.blocks_per_plane += 1;
        assert!(settings.flash.blocks_per_plane < 4096, "no size fits: {:?}", check(&settings));
    }
    every_part_works(&settings, seed);
    let options = Options { cuts: Cuts::Random { count: common::cuts(), mean: 60 }, seed, flaw: Flaw::None };
    let requests = || Requests::new(&settings, seed).with_fua(seed);
    let summary = crash(&settings, &mut || Ok(Box::new(requests())), &options, &mut |_| true)
        .unwrap_or_else(|fault| panic!("{} {seed}: {fault}", settings.ftl.kind));
    assert!(summary.durable_writes > 0 && summary.durable_trims > 0, "{seed}: {summary:?}");
    assert!(summary.torn_programs > 0 && summary.torn_erases > 0, "{seed}: {summary:?}");
}

/// Whether or not the buffer is protected, with a cache of a fixed size and with one that takes erased blocks.
#[test]
fn all_parts_at_once() {
    for kind in ["page", "dftl"] {
        let [fixed, dynamic, _] = slc_caches(kind);
        for (seed, device) in (0..).zip([&fixed, &fixed, &dynamic, &dynamic]) {
            let placement = ["sepbit", "hot-cold"][seed as usize / 2];
            nothing_durable_is_lost(with_all_parts(device.clone(), placement, seed % 2 == 1), seed);
        }
    }
}

/// The same in superblocks, of two chips and of all.
#[test]
fn all_parts_in_superblocks() {
    for kind in ["page", "dftl"] {
        let [fixed, dynamic, _] = slc_caches(kind);
        for (seed, device) in (0..).zip([&fixed, &fixed, &dynamic, &dynamic]) {
            let mut settings = with_all_parts(device.clone(), "gc-apart", seed % 2 == 1);
            settings.ftl.reclaim_unit = ReclaimUnit::Superblock([Some(2), None][seed as usize / 2]);
            nothing_durable_is_lost(settings, seed);
        }
    }
}

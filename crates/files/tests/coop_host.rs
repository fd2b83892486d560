//! The schedulers that work on whole flash blocks (irbw, padding, coop) in the whole stack: exact cases of Shim et al.,
//! TC 2014, and random ones in which no data may be lost or stale.

use crate::clients;
use ftlab_conformance as common;

use clients::{SECOND_NS, run_files, small};
use common::{checked, hybrid_device as device, pages};
use ftlab_core::metrics::Report;
use ftlab_core::settings::PreconditionKind;
use ftlab_core::sim::Completion;
use ftlab_core::workload::{Op, Record};
use ftlab_files::clients::{Clients, FileOp, Kind, Step};
use ftlab_files::settings::{Files, Settings};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// Returns "noop", which does not work on whole flash blocks, and the schedulers that do.
fn policies() -> Vec<&'static str> {
    [vec!["noop"], common::schedulers(true)].concat()
}
const PAGE: u64 = 4096;

fn filled(kind: &str, scheduler: &str, block_pages: u32) -> Settings {
    let mut settings = Settings::from(device(kind, block_pages, 20, 3));
    settings.host.scheduler = scheduler.into();
    settings.device.precondition.kind = PreconditionKind::Fill;
    settings
}

fn write(time_ns: u64, lpn: u64, count: u64) -> Record {
    pages(time_ns, Op::Write, PAGE, lpn, count)
}

/// Returns the number of merges of each kind: full, partial, switch, padded, cooperative.
fn merges(report: &Report) -> [u64; 5] {
    let all = &report.merges;
    [&all.full, &all.partial, &all.switched, &all.padded_switch, &all.cooperative].map(|kind| kind.count)
}

fn copies(report: &Report) -> u64 {
    let all = &report.merges;
    [&all.full, &all.partial, &all.switched, &all.padded_switch, &all.cooperative]
        .map(|kind| kind.pages_copied)
        .iter()
        .sum()
}

/// Returns the requests in the order of their dispatch: operation, first page and number of pages.
fn dispatched(mut log: Vec<Completion>) -> Vec<(Op, u64, u64)> {
    log.sort_by_key(|done| (done.dispatch_ns, done.complete_ns));
    log.iter().map(|done| (done.op, done.offset / PAGE, done.size / PAGE)).collect()
}

/// Fig. 6 of the paper (blocks of five pages) in the queue: block 0 is the victim. FAST's reclamation would merge
/// blocks 1 and 2, so their queued pages 8, 9, 10 and 14 go first; those of block 0 itself follow. A read keeps its
/// place.
#[test]
fn figure_6_in_the_queue() {
    let at = 2 * SECOND_NS;
    // These writes come one after another, so that there are no block issues, and fill nine of the ten pages of two RW
    // log blocks.
    let before = [6, 11, 7, 12, 8, 21, 22, 26, 27];
    let mut trace: Vec<Record> =
        (0..).zip(before).map(|(n, lpn)| write(SECOND_NS + n * 50_000_000, lpn, 1)).collect();
    trace.push(pages(at, Op::Read, PAGE, 50, 1));
    trace.extend([(1, 1), (8, 1), (14, 1), (2, 1), (10, 1), (9, 1)].map(|(lpn, n)| write(at, lpn, n)));
    trace.push(pages(at, Op::Read, PAGE, 3, 1));
    let served = |scheduler: &str| {
        let (report, log) = checked(&filled("fast", scheduler, 5), trace.clone());
        let behind = dispatched(log).split_off(9);
        let order: Vec<u64> = behind.iter().map(|request| request.1).collect();
        (order, merges(&report), copies(&report))
    };
    let (order, kinds, copied) = served("coop");
    assert_eq!(order, [50, 8, 9, 10, 14, 1, 2, 3]);
    assert_eq!((kinds, copied), ([0, 0, 0, 0, 2], 6));
    let (order, kinds, copied) = served("irbw");
    assert_eq!(order, [50, 1, 2, 8, 9, 10, 14, 3]);
    assert_eq!((kinds, copied), ([2, 0, 0, 0, 0], 10), "the same blocks, by full merges");
    assert_eq!(served("noop").0, [50, 1, 8, 14, 2, 10, 9, 3]);
}

/// Under coop, random writes over one block cause no full merge.
#[test]
fn random_writes_over_one_block() {
    for kind in common::hybrids() {
        let mut full = [0; 4];
        for (scheduler, full) in policies().iter().zip(&mut full) {
            // Bursts of five single-page writes, in no particular order.
            let trace =
                (0..600u64).map(|n| write(n / 5 * 10_000_000, 16 + (n * 7 + n / 16 * 3) % 16, 1)).collect();
            let (report, _) = checked(&filled(kind, scheduler, 16), trace);
            *full = merges(&report)[0];
            if *scheduler == "coop" {
                assert_eq!(merges(&report)[1], 0, "{kind}: a partial merge under coop");
                assert!(merges(&report)[4] > 5, "{kind}: {:?}", merges(&report));
            }
        }
        assert_eq!(full[3], 0, "{kind}");
        assert!(full[0] > 0 && full[1] > 0, "{kind}: {full:?}");
    }
}

/// A block that holds data is overwritten once in order, by one request or by several: this causes exactly one merge
/// and no copies. It is a switch merge, except under coop on FAST, where it is a cooperative one.
#[test]
fn a_block_overwritten_in_order() {
    for kind in common::hybrids() {
        for scheduler in policies() {
            for size in [16, 4, 1] {
                let trace = (0..16 / size).map(|n| write(SECOND_NS, 32 + n * size, size)).collect();
                let (report, _) = checked(&filled(kind, scheduler, 16), trace);
                let coop = kind == "fast" && scheduler == "coop";
                let expected = if coop { [0, 0, 0, 0, 1] } else { [0, 0, 1, 0, 0] };
                assert_eq!((merges(&report), copies(&report)), (expected, 0), "{kind}, {scheduler}, {size}");
            }
        }
    }
}

/// The pages that a block issue lacks are read and written together with it; no request's figures include them.
#[test]
fn padding_makes_blocks_whole() {
    for kind in common::hybrids() {
        let trace = vec![write(0, 17, 2), write(0, 22, 3), write(0, 50, 1)];
        let (report, log) = checked(&filled(kind, "padding", 16), trace);
        assert_eq!(merges(&report), [0, 0, 0, 2, 0], "{kind}");
        let padded = (16 - 5) + 15;
        let flash = 6 * 240_000 + padded * (45_000 + 240_000) + 2 * 500_000;
        let busy: u64 = report.flash.busy_ns.values().sum();
        assert_eq!(busy, flash, "{kind}: reads, programs, erases of the old blocks");
        assert_eq!(report.merges.padded_switch.busy_ns, padded * 285_000 + 2 * 500_000, "{kind}");
        assert_eq!(log.len(), 3);
        // First the reads of pages 16, 19 to 21 and 25 to 31, then the write of page 16, then the writes of the first
        // request.
        assert_eq!(log[0].complete_ns, 11 * 45_000 + 3 * 240_000, "{kind}");
        // The second block is padded after its one page is written; the padding does not count towards the run.
        assert_eq!(report.elapsed_ns, log[2].complete_ns, "{kind}");
    }
}

/// In a device that holds many requests and reorders them, the padding of a block issue is read only after earlier
/// writes to its block have been written, and written only after it has been read. Regression: requests that arrived
/// meanwhile kept time from advancing, and the run never ended.
#[test]
fn padding_waits_for_what_it_depends_on() {
    for kind in common::hybrids() {
        let mut settings = filled(kind, "padding", 16);
        settings.flash.channels = 2;
        settings.flash.blocks_per_plane = 50;
        (settings.ftl.over_provisioning_ppm, settings.ftl.log_blocks_ppm) = (820_000, 60_000);
        settings.device.queue_depth = 8;
        settings.device.scheduler = "piq".into();
        settings.host.queue_depth = 1;
        let trace = vec![write(0, 0, 1), write(0, 1, 1), write(0, 16, 1)];
        let (report, log) = checked(&settings, trace);
        assert_eq!(merges(&report), [0, 0, 0, 3, 0], "{kind}");
        let issue = 15 * 45_000 + 16 * 240_000 + 500_000;
        // The second issue of block 0 begins when the first has ended; that of block 1, on the other chip, begins when
        // the second issue of block 0 has finished its reads.
        assert_eq!(log[2].complete_ns, issue + 2 * 15 * 45_000 + 240_000, "{kind}");
        // Padding after the last completion does not count towards the run.
        assert_eq!(report.elapsed_ns, log[2].complete_ns, "{kind}");
    }
}

/// A write over several blocks is cut into parts, completes once, with its last part, and counts as one request in
/// every figure.
#[test]
fn writes_over_several_blocks() {
    let mut whole = filled("fast", "coop", 16);
    whole.device.queue_depth = 1;
    let (report, log) = checked(&whole, vec![write(0, 16, 64), pages(0, Op::Read, PAGE, 16, 64)]);
    assert_eq!((merges(&report), copies(&report)), ([0, 0, 0, 0, 4], 0));
    assert_eq!(log.len(), 2);
    assert_eq!((log[0].dispatch_ns, log[0].size), (0, 64 * PAGE));
    assert_eq!(log[0].complete_ns, 64 * 240_000 + 4 * 500_000);
    assert_eq!((report.trace.requests, report.trace.bytes_written), (2, 64 * PAGE));
    for scheduler in common::schedulers(true) {
        for kind in common::hybrids() {
            let trace: Vec<Record> =
                (0..200u64).map(|n| write(n * 3_000_000, n * 37 % 250, 1 + n * 11 % 60)).collect();
            let (report, log) = checked(&filled(kind, scheduler, 16), trace);
            assert_eq!(log.len(), 200, "{kind}, {scheduler}");
            assert_eq!(report.trace.requests, 200);
        }
    }
}

/// With an FTL that merges nothing, the query for blocks to be merged returns none: coop then serves a trace as irbw
/// does, and a page cache above it flushes one erase block at a time.
#[test]
fn an_ftl_without_merges() {
    for kind in ["page", "dftl"] {
        let of = |scheduler: &str| {
            let mut settings = common::settings();
            settings.ftl.kind = kind.into();
            settings.host.scheduler = scheduler.into();
            settings
        };
        let trace: Vec<Record> =
            (0..300u64).map(|n| write(n / 6 * 9_000_000, n * 733 % 4000, 1 + n * 11 % 70)).collect();
        let [irbw, coop] = ["irbw", "coop"].map(|scheduler| checked(&of(scheduler), trace.clone()).1);
        assert_eq!(irbw, coop, "{kind}");
        assert_ne!(irbw, checked(&of("noop"), trace).1, "{kind}");
        let mut settings = Settings::from(of("coop"));
        settings.files = Files { page_cache_bytes: 64 << 20, ..Files::default() };
        settings.files.benchmark = Some(small(Kind::SysBench));
        let clients = Clients::of_benchmark(&settings).unwrap();
        let (report, _) = run_files(&settings, clients, true);
        assert_eq!(report.page_cache.unwrap().policy, "block");
        assert_eq!(merges(&checked(&of("coop"), vec![]).0), [0; 5]);
    }
}

/// Returns a phone with a hybrid FTL and a page cache.
fn phone(kind: &str, scheduler: &str, block_pages: u32, blocks: u32) -> Settings {
    let mut settings = Settings::from(device(kind, block_pages, 80, 6));
    settings.flash.blocks_per_plane = blocks;
    settings.host.scheduler = scheduler.into();
    settings.files = Files { page_cache_bytes: 512 << 20, ..Files::default() };
    settings
}

/// No data is lost or stale under any policy, benchmark or hybrid FTL, and each policy has the effect it is meant to
/// have.
#[test]
fn every_policy_runs_every_benchmark_checked() {
    for bench in [Kind::PostMark, Kind::SysBench, Kind::FileBench, Kind::DBench] {
        for kind in common::hybrids() {
            for scheduler in policies() {
                let mut settings = phone(kind, scheduler, 64, 256);
                settings.files.benchmark = Some(small(bench));
                let clients = Clients::of_benchmark(&settings).unwrap();
                let (report, _) = run_files(&settings, clients, true);
                let name = format!("{} {kind} {scheduler}", bench.name());
                let cache = report.page_cache.as_ref().unwrap();
                let coop = scheduler == "coop";
                assert_eq!(cache.policy, if coop { "block" } else { "baseline" }, "{name}");
                assert_eq!(cache.global_tree_bytes_mean.is_some_and(|mean| mean > 0.0), coop, "{name}");
                let [full, partial, _, padded, cooperative] = merges(&report);
                assert_eq!(padded > 0, scheduler == "padding", "{name}");
                assert_eq!(cooperative > 0, coop, "{name}");
                assert!(cache.pages_written["joined"] == 0 || coop, "{name}");
                if scheduler == "padding" {
                    assert_eq!(full, 0, "{name}");
                }
                if coop && kind == "fast" {
                    assert_eq!(partial, 0, "{name}: sequential writes are sorted out by size");
                }
                let mean = report.benchmark.as_ref().unwrap().throughput_bytes_per_s / 1e6;
                eprintln!(
                    "{name}: {mean:.2} MB/s {:?} joined {}",
                    merges(&report),
                    cache.pages_written["joined"]
                );
            }
        }
    }
}

fn steps(draws: &[(u8, u32, u64, u64)]) -> Vec<Step> {
    let mut there = [false; 3];
    let mut script = Vec::new();
    let mut time_ns = 0;
    for &(what, file, offset, size) in draws {
        let live = &mut there[file as usize];
        if !*live {
            *live = true;
            script.push(Step::Do(FileOp::Create(file)));
        }
        script.push(match what {
            0..10 => Step::Do(FileOp::Write { file, offset, size }),
            10..12 => Step::Do(FileOp::Read { file, offset, size }),
            12..15 => Step::Do(FileOp::Fsync(file)),
            15 => {
                *live = false;
                Step::Do(FileOp::Unlink(file))
            }
            16 => Step::Do(FileOp::Create(file)),
            _ => {
                time_ns += size * 100_000;
                Step::Until(time_ns)
            }
        });
    }
    script
}

fn any_policy() -> impl Strategy<Value = Settings> {
    let choice = (prop::sample::select(common::hybrids()), prop::sample::select(policies()));
    let device = (1u32..4, 1u32..9, prop::sample::select(common::device_schedulers()));
    (choice, device, prop::sample::select(&[4u32, 5, 16, 64][..]), 1u32..40).prop_map(
        |((kind, scheduler), (channels, depth, of_device), block_pages, host_depth)| {
            let mut settings = device_of(kind, block_pages, channels);
            settings.host.scheduler = scheduler.into();
            settings.host.queue_depth = host_depth;
            settings.device.scheduler = of_device.into();
            settings.device.queue_depth = depth;
            settings
        },
    )
}

fn device_of(kind: &str, block_pages: u32, channels: u32) -> Settings {
    let mut settings = Settings::from(device(kind, block_pages, 60, 12));
    settings.flash.channels = channels;
    settings.flash.blocks_per_plane = 40;
    settings
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 160,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/coop.regressions"))),
        ..ProptestConfig::default()
    })]

    /// With any operations on files, every fsync keeps its promise, every read finds the newest data, the
    /// FTL's own invariants hold, the run ends, and a second run is the same.
    #[test]
    fn files_are_never_lost_or_stale(
        mut settings in any_policy(),
        scripts in prop::collection::vec(
            prop::collection::vec((0u8..20, 0u32..3, 0u64..200_000, 1u64..90_000), 1..60), 1..4),
        cache in prop::sample::select(&[64u64, 300, 4096][..]),
        discard in any::<bool>(),
    ) {
        // There is room for the file system, whatever the size of blocks.
        settings.flash.blocks_per_plane = 8192 / settings.flash.pages_per_block;
        settings.files =
            Files { page_cache_bytes: cache * PAGE, discard, ..Files::default() };
        let clients = Clients::scripts(scripts.iter().map(|draws| steps(draws)).collect());
        let (report, log) = run_files(&settings, clients.clone(), true);
        let (again, other) = run_files(&settings, clients, true);
        prop_assert_eq!(log, other);
        prop_assert_eq!(serde_json::to_string(&report).unwrap(), serde_json::to_string(&again).unwrap());
    }

    /// With any trace, every request completes once, and the FTL's invariants hold after each request.
    #[test]
    fn traces_are_served_whole(
        settings in any_policy(),
        requests in prop::collection::vec((0u8..20, 0u64..1 << 20, 1u64..200_000, 0u64..3_000_000), 1..150),
        closed in any::<bool>(),
        merge in prop::option::of(Just(64u64 << 10)),
        filled in any::<bool>(),
    ) {
        let mut settings = settings;
        settings.host.merge_limit = merge;
        if filled {
            settings.device.precondition.kind = PreconditionKind::Fill;
        }
        if closed {
            settings.workload.replay = ftlab_core::settings::Replay::Closed;
        }
        let user = settings.user_bytes();
        let mut time_ns = 0;
        let trace: Vec<Record> = requests
            .iter()
            .map(|&(what, offset, size, gap)| {
                time_ns += gap;
                let op = match what {
                    0..12 => Op::Write,
                    12..17 => Op::Read,
                    17..19 => Op::Trim,
                    _ => Op::Flush,
                };
                let size = (size / 512 * 512).max(512).min(user);
                let offset = offset / 512 * 512 % (user - size + 512);
                match op {
                    Op::Flush => Record { time_ns, op, ..Record::FLUSH },
                    _ => Record { time_ns, op, offset, size, ..Record::FLUSH },
                }
            })
            .collect();
        let count = trace.len();
        let merged = settings.host.merge_limit.is_some();
        let written: u64 = trace.iter().filter(|r| r.op == Op::Write).map(|r| r.size).sum();
        let (report, log) = checked(&settings, trace);
        prop_assert!(log.len() == count || merged && log.len() < count);
        prop_assert_eq!(report.trace.bytes_written, written);
        prop_assert!(log.iter().all(|done| done.arrival_ns <= done.dispatch_ns && done.dispatch_ns <= done.complete_ns));
    }
}

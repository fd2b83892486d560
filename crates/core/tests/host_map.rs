//! Mapping entries that the host holds: exact times, laws, entries that are out of date, and power cuts.
//!
//! By hand: reads take 35 us, programs 350 us, pages are 4 KiB with 512 entries; the device's own cache has one entry.

use ftlab_conformance as common;

use crate::losses;
use common::{checked, demand_cached, pages, settings, small, tiny};
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::recovery::Flaw;
use ftlab_core::ftl::{Ftl, hands_out};
use ftlab_core::host::held::keys::MapPolicy;
use ftlab_core::metrics::Report;
use ftlab_core::request::{Entry, Mark, Pages};
use ftlab_core::settings::{Precondition, Settings};
use ftlab_core::sim::{Completion, Prepared};
use ftlab_core::util::NONE;
use ftlab_core::workload::{Op, Record};
use ftlab_core::{Simulation, ftl};

const READ: u64 = 35_000;
const MS: u64 = 1_000_000;

/// Makes a full device of one chip whose host may hold `regions` regions, each of one subregion of `region` pages,
/// after the first read that asks for it.
fn device(regions: u64, region: u64) -> Settings {
    let mut settings = settings();
    settings.ftl.mapping_cache_bytes = Some(8);
    settings.device.precondition = Precondition::fill();
    hold(&mut settings, regions, region);
    settings
}

fn hold(settings: &mut Settings, regions: u64, region: u64) {
    let page = u64::from(settings.ftl.logical_page_bytes);
    let map = &mut settings.host.map;
    (map.bytes, map.region_bytes, map.subregion_bytes) = (regions * region * 8, region * page, region * page);
    (map.read_bytes, map.threshold) = ((8 * page).min(region * page), 1);
}

fn at(time_ns: u64, op: Op, lpn: u64, count: u64) -> Record {
    pages(time_ns, op, 4096, lpn, count)
}

fn latencies(rows: &[Completion]) -> Vec<u64> {
    rows.iter().map(|row| row.complete_ns - row.arrival_ns).collect()
}

/// Returns a figure of the held map.
fn figure(report: &Report, name: &str) -> u64 {
    report.own.as_ref().expect("there are figures")["host_map"][name].expect("a number") as u64
}

fn figures<const N: usize>(report: &Report, names: [&str; N]) -> [u64; N] {
    names.map(|name| figure(report, name))
}

#[test]
fn a_read_with_an_entry_is_not_looked_up() {
    let trace = || vec![at(0, Op::Read, 0, 1), at(MS, Op::Read, 700, 1), at(2 * MS, Op::Read, 1000, 8)];
    let (report, rows) = checked(&device(1, 1024), trace());
    // The first read fetches a translation page; the host then reads both that have entries of the subregion.
    assert_eq!(latencies(&rows), [2 * READ, READ, 8 * READ]);
    assert_eq!(figures(&report, ["carried", "plain", "loads", "hits", "stale"]), [2, 1, 1, 9, 0]);
    assert_eq!((report.mapping.hits, report.mapping.misses), (0, 1));
    assert_eq!(figure(&report, "load_bytes"), 8192);
    let mut without = device(1, 1024);
    without.host.map.bytes = 0;
    let (report, rows) = checked(&without, trace());
    assert_eq!(latencies(&rows), [2 * READ, 2 * READ, 16 * READ]);
    assert_eq!(report.mapping.misses, 10);
    assert!(report.own.is_none_or(|own| !own.contains_key("host_map")));
}

/// A command that reads entries goes ahead of what is pending: a read that waits for the only place in the device's
/// queue waits for it too.
#[test]
fn reading_entries_takes_link_core_and_flash() {
    let mut settings = device(1, 1024);
    let controller = &mut settings.device.controller;
    (controller.link, controller.link_command_ns) = (4_096_000_000, 500);
    (controller.command_ns, controller.unit_ns) = (3_000, 200);
    let read = 500 + 3_200 + READ + 1_000 + 500;
    let load = 500 + 3_000 + 2 * READ + 2_000 + 500;
    let (report, rows) = checked(&settings, vec![at(0, Op::Read, 0, 1), at(0, Op::Read, 700, 1)]);
    assert_eq!(latencies(&rows), [READ + read, READ + read + load + read]);
    let elapsed = READ + read + load + read;
    let to_host = (2 * 1_500 + 2_500) as f64 / elapsed as f64;
    assert!((report.device.link_busy.expect("there is a link") - to_host).abs() < 1e-12);
}

#[test]
fn what_the_cache_has_is_not_read_for_the_host() {
    let mut settings = device(1, 512);
    settings.ftl.mapping_cache_bytes = Some(512 * 8);
    settings.host.map.threshold = 512;
    let reads = (0..512).map(|lpn| at(lpn * MS, Op::Read, lpn, 1)).collect();
    let (report, _) = checked(&settings, reads);
    // The last of the 512 reads makes the host read the entries, all of which are cached by then.
    assert_eq!((figure(&report, "loads"), report.flash.reads[ftlab_core::flash::Cause::Map]), (1, 512));
}

/// The host forgets what it writes. What the device moves by itself it can only notice when the entry comes back.
#[test]
fn entries_out_of_date_are_looked_up() {
    let trace = vec![
        at(0, Op::Read, 0, 1),
        at(MS, Op::Write, 1, 1),
        at(2 * MS, Op::Read, 1, 1),
        at(4 * MS, Op::Read, 1, 1),
        at(5 * MS, Op::Trim, 2, 1),
        at(6 * MS, Op::Read, 2, 1),
    ];
    let (report, rows) = checked(&device(1, 512), trace);
    // The write misses, after which the cache has LPN 1; so the host has no reason to read the entries again.
    assert_eq!(latencies(&rows)[2..4], [READ, READ]);
    assert_eq!(figures(&report, ["carried", "plain", "loads", "stale"]), [0, 4, 1, 0]);
    for gc in ["greedy", "fifo"] {
        let mut settings = small("dftl", 1);
        common::set_gc(&mut settings, gc);
        settings.ftl.mapping_cache_bytes = Some(64);
        settings.host.deadline_ns = None;
        settings.device.precondition = Precondition::fill();
        hold(&mut settings, 1, 512);
        let lpns = settings.user_bytes() / 4096;
        let mut trace: Vec<Record> = (0..lpns).map(|lpn| at(lpn * MS, Op::Read, lpn, 1)).collect();
        let far = lpns * MS;
        trace.extend((0..lpns).map(|nth| at(far + nth * 50 * MS, Op::Write, nth % (lpns / 3) * 3, 1)));
        let later = far + lpns * 50 * MS;
        trace.extend((0..lpns / 3).map(|nth| at(later + nth * MS, Op::Read, nth * 3 + 1, 1)));
        let (report, _) = checked(&settings, trace);
        assert!(figure(&report, "stale") > 0 && figure(&report, "hits") > lpns / 2, "{gc}");
    }
}

#[test]
fn long_reads_carry_no_entries() {
    let mut settings = device(1, 1024);
    settings.host.map.read_bytes = 4096;
    let trace = vec![at(0, Op::Read, 0, 1), at(MS, Op::Read, 4, 2), at(2 * MS, Op::Read, 9, 1)];
    let (report, rows) = checked(&settings, trace);
    assert_eq!(latencies(&rows), [2 * READ, 4 * READ, READ]);
    assert_eq!(figures(&report, ["carried", "plain", "loads"]), [1, 1, 1]);
}

/// Two regions fit; the third takes the place of the one read least recently, or of the one with the fewest reads if it
/// has more.
#[test]
fn regions_leave_by_policy() {
    let read = |nth: u64, region: u64| at(nth * MS, Op::Read, region * 512 + nth, 1);
    let regions = [0, 0, 0, 1, 1, 0, 2, 1, 0, 2];
    let trace: Vec<Record> = (0..).zip(regions).map(|(nth, region)| read(nth, region)).collect();
    let mut settings = device(2, 512);
    let (report, _) = checked(&settings, trace.clone());
    // Region 2 takes the place of 1, 1 then that of 0, 0 that of 2, and 2 that of 1.
    assert_eq!(figures(&report, ["loads", "evictions", "refused", "carried"]), [6, 4, 0, 4]);
    settings.host.map.policy = MapPolicy::AccessCount;
    let (report, _) = checked(&settings, trace);
    // Region 2 has one read when 1 has two, and two when 1 has three.
    assert_eq!(figures(&report, ["loads", "evictions", "refused", "carried"]), [2, 0, 2, 6]);
}

#[test]
fn a_subregion_is_read_after_as_many_reads_as_the_threshold_says() {
    for policy in [MapPolicy::Lru, MapPolicy::AccessCount] {
        let mut settings = device(1, 512);
        (settings.host.map.threshold, settings.host.map.policy) = (3, policy);
        let mut trace: Vec<Record> = (0..5).map(|nth| at(nth * MS, Op::Read, nth, 1)).collect();
        let (report, _) = checked(&settings, trace.clone());
        assert_eq!(figures(&report, ["plain", "carried"]), [3, 2], "{policy:?}");
        // Under access-count a write begins the count again; the device's recommendation does not heed writes.
        trace[1] = at(MS, Op::Write, 1, 1);
        trace.extend((5..7).map(|nth| at(nth * MS, Op::Read, nth, 1)));
        let (report, _) = checked(&settings, trace);
        let wanted = if policy == MapPolicy::Lru { [3, 3] } else { [4, 2] };
        assert_eq!(figures(&report, ["plain", "carried"]), wanted, "{policy:?}");
    }
}

fn random_reads(lpns: u64, count: u64) -> Vec<Record> {
    let read = |nth: u64| at(nth * MS, Op::Read, nth * 2_654_435_761 % (lpns - 3), 1 + nth % 3);
    (0..count).map(read).collect()
}

/// With memory for the whole map and nothing but reads, no mapping is read from flash once all subregions are held.
#[test]
fn a_held_map_leaves_nothing_to_look_up() {
    for kind in demand_cached() {
        let mut settings = small(kind, 4);
        settings.ftl.mapping_cache_bytes = settings.ftl.mapping_cache_bytes.map(|_| 8 << 10);
        settings.device.precondition = Precondition::fill();
        if !hands_out(&settings) {
            continue;
        }
        for policy in [MapPolicy::Lru, MapPolicy::AccessCount] {
            let lpns = settings.user_bytes() / 4096;
            hold(&mut settings, lpns.div_ceil(64), 64);
            settings.host.map.policy = policy;
            let (warm, _) = checked(&settings, random_reads(lpns, 2_000));
            let (more, _) = checked(&settings, random_reads(lpns, 3_000));
            let map = ftlab_core::flash::Cause::Map;
            assert_eq!(warm.flash.reads[map], more.flash.reads[map], "{kind} {policy:?}");
            assert_eq!(figure(&more, "plain"), figure(&warm, "plain"), "{kind} {policy:?}");
            assert_eq!(more.flash.reads[ftlab_core::flash::Cause::Host], 6_000);
        }
    }
}

/// Without memory, the other keys change nothing; nor does memory where the whole map is in RAM.
#[test]
fn without_memory_nothing_changes() {
    let trace = common::bursts(3, 800, 1_000);
    for kind in ftl::choices().into_iter().map(|choice| choice.name) {
        let plain = small(kind, 4);
        let mut other = plain.clone();
        hold(&mut other, 4, 64);
        if hands_out(&plain) {
            other.host.map.bytes = 0;
        }
        let text = |settings: &Settings| {
            let (report, rows) = checked(settings, trace.clone());
            (serde_json::to_string(&report).expect("a report is JSON"), rows)
        };
        assert_eq!(text(&plain).0, text(&other).0, "{kind}");
        assert_eq!(format!("{:?}", text(&plain).1), format!("{:?}", text(&other).1), "{kind}");
    }
}

/// Under every scheduler of host and device, with every FTL that hands entries out, each request completes once, in
/// check mode, and all work is accounted for.
#[test]
fn every_scheduler_can_hold_entries() {
    let host = common::schedulers(false);
    let devices = common::device_schedulers();
    let kinds = ftl::choices().into_iter().map(|choice| choice.name);
    for (nth, kind) in kinds.enumerate() {
        for (seed, scheduler) in (0..).zip(&host) {
            let mut settings = small(kind, 4);
            if !hands_out(&settings) {
                continue;
            }
            hold(&mut settings, 3, 32 + 16 * (seed % 3));
            settings.host.scheduler = (*scheduler).into();
            settings.host.map.policy = [MapPolicy::Lru, MapPolicy::AccessCount][seed as usize % 2];
            settings.host.map.threshold = 1 + seed as u32 % 4;
            settings.device.scheduler = devices[(nth + seed as usize) % devices.len()].into();
            settings.device.queue_depth = 1 + 3 * (seed as u32 % 4);
            common::every_request_completes_once(&settings, &common::bursts(seed, 1_500, 600));
        }
    }
}

/// An entry that still counts as valid but names another slot is a fault that check mode finds.
#[test]
fn check_mode_notices_a_wrong_entry() {
    let mut settings = device(1, 512);
    settings.ftl.power_safe = false;
    let mut work = settings.work();
    let mut ftl = Ftl::new(&settings, true, &mut work);
    let page = |first| Pages { first, pages: 1, ..Pages::NONE };
    (0..4).for_each(|lpn| _ = ftl.write(page(lpn), &mut work));
    ftl.serve_host_map(512);
    let mut entries = Vec::new();
    ftl.hand_out(0..512, &mut entries, &mut work);
    assert_eq!((entries.len(), entries[9].slot), (512, NONE));
    assert_eq!(ftl.slot_named(3, entries[3]), Some(ftl.slot(3)));
    let read = |ftl: &mut Ftl, lpn, entry: Entry| {
        let mut work = settings.work();
        ftl.read_with(page(lpn), &[entry], Mark::default(), &mut work)
    };
    read(&mut ftl, 3, entries[3]);
    ftl.verify().expect("the entry is right");
    // After a write, and after another reading, an old entry is of no use, whatever it says.
    ftl.write(page(2), &mut work);
    assert_eq!(ftl.slot_named(2, entries[2]), None);
    ftl.hand_out(0..512, &mut Vec::new(), &mut work);
    read(&mut ftl, 2, entries[2]);
    read(&mut ftl, 3, entries[3]);
    read(&mut ftl, 3, Entry::default());
    ftl.verify().expect("none of them was used");
    read(&mut ftl, 3, Entry { slot: entries[1].slot, stamp: 2 });
    assert!(ftl.verify().expect_err("it is wrong").contains("LPN 3"));
}

#[test]
fn power_cuts() {
    for kind in common::page_mapped_both_ways() {
        let mut settings = tiny(kind);
        if !hands_out(&settings) {
            continue;
        }
        hold(&mut settings, 4, 8);
        let summary = losses::cuts(&settings, common::cuts() / 3, 5, Flaw::None);
        let summary = summary.unwrap_or_else(|fault| panic!("{kind}: {fault}"));
        assert!(summary.torn_programs > 0 && summary.durable_writes > 0, "{kind}: {summary:?}");
    }
}

/// After a cut the host holds nothing, because the entries of the device that it was are not those of the new one.
#[test]
fn the_held_map_is_empty_after_a_cut() {
    let mut settings = tiny("dftl");
    settings.ftl.mapping_cache_bytes = Some(64);
    settings.ftl.power_safe = true;
    while ftl::check(&settings).is_err() || !ftl::keeps_trims(&settings) {
        settings.flash.blocks_per_plane += 1;
    }
    hold(&mut settings, 4, 8);
    let prepared = Prepared::new(&settings, &mut (), true).expect("nothing fails");
    let mut simulation = Simulation::new(&settings, prepared);
    simulation.allow_cuts().expect("it is prepared for cuts");
    let drive = |simulation: &mut Simulation, op, lpn: u64| {
        let record = pages(simulation.now_ns(), op, 512, lpn, 1);
        simulation.submit(record).expect("it fits");
        simulation.run_until_idle(&mut ()).expect("every invariant holds");
    };
    for lpn in 0..40 {
        drive(&mut simulation, Op::Write, lpn);
    }
    drive(&mut simulation, Op::Flush, 0);
    for lpn in [0, 1, 33, 2] {
        drive(&mut simulation, Op::Read, lpn);
    }
    assert!(figure(&simulation.report(), "carried") > 0);
    simulation.cut(1).expect("it can be cut");
    simulation.recover().expect("it recovers");
    assert_eq!(figures(&simulation.report(), ["carried", "loads", "hits"]), [0, 0, 0]);
    for lpn in [2, 0, 33, 1] {
        drive(&mut simulation, Op::Read, lpn);
    }
    assert!(figure(&simulation.report(), "carried") > 0);
    assert_eq!(figure(&simulation.report(), "stale"), 0);
}

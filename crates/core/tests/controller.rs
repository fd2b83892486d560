//! Controller and link: how long commands take, worked out by hand, and laws for what limits a device's throughput.
//!
//! Reads take 35 us, programs 350 us, pages are 4 KiB; a link of 4.096 GB/s carries a page in 1 us.

use ftlab_conformance as common;

use common::{checked, pages, settings, tiny};
use ftlab_core::Simulation;
use ftlab_core::device::Service;
use ftlab_core::device::controller::Duplex;
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Completion, Handling, Observer, Prepared, Tracks, run};
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

const READ: u64 = 35_000;
const PROGRAM: u64 = 350_000;
const LINK: u64 = 4_096_000_000;
const PAGE: u64 = 1_000;
const COMMAND: u64 = 3_000;
const UNIT: u64 = 200;
const LATENCY: u64 = 7_000;
const ANSWER: u64 = 500;

/// Makes a device of four chips with a link, one core, and a latency for each operation.
fn device() -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.device.queue_depth = u32::MAX;
    settings.flash.channels = 4;
    let controller = &mut settings.device.controller;
    controller.link = LINK;
    (controller.command_ns, controller.unit_ns) = (COMMAND, UNIT);
    controller.latency_read_ns = LATENCY;
    controller.latency_write_ns = 2 * LATENCY;
    controller.latency_other_ns = 3 * LATENCY;
    settings
}

fn at(time_ns: u64, op: Op, lpn: u64, count: u64) -> Record {
    pages(time_ns, op, 4096, lpn, count)
}

fn rows(settings: &Settings, trace: Vec<Record>) -> Vec<Completion> {
    let mut rows = checked(settings, trace).1;
    rows.sort_by_key(|row| row.id);
    rows
}

fn latencies(settings: &Settings, trace: Vec<Record>) -> Vec<u64> {
    rows(settings, trace).iter().map(|row| row.complete_ns - row.arrival_ns).collect()
}

#[test]
fn a_command_alone_takes_the_sum_of_its_stages() {
    let settings = device();
    assert_eq!(latencies(&settings, vec![at(0, Op::Read, 0, 1)]), [COMMAND + UNIT + READ + PAGE + LATENCY]);
    let four = COMMAND + 4 * UNIT + 4 * PAGE;
    assert_eq!(latencies(&settings, vec![at(0, Op::Read, 0, 4)]), [four + READ + LATENCY]);
    assert_eq!(latencies(&settings, vec![at(0, Op::Write, 0, 4)]), [four + PROGRAM + 2 * LATENCY]);
    // Neither request carries data: a flush touches no page, a trim two.
    assert_eq!(latencies(&settings, vec![at(0, Op::Flush, 0, 0)]), [COMMAND + 3 * LATENCY]);
    assert_eq!(latencies(&settings, vec![at(0, Op::Trim, 0, 2)]), [COMMAND + 2 * UNIT + 3 * LATENCY]);
}

/// Only writes take a core the times of a write; each of the two keys falls back on its own.
#[test]
fn a_write_may_take_a_core_another_time() {
    let (mut settings, writes) = (device(), |pages| vec![at(0, Op::Write, 0, pages)]);
    let rest = PROGRAM + 2 * LATENCY;
    settings.device.controller.command_write_ns = Some(9_000);
    assert_eq!(latencies(&settings, writes(4)), [9_000 + 4 * UNIT + 4 * PAGE + rest]);
    settings.device.controller.unit_write_ns = Some(50);
    assert_eq!(latencies(&settings, writes(4)), [9_000 + 4 * 50 + 4 * PAGE + rest]);
    settings.device.controller.command_write_ns = None;
    assert_eq!(latencies(&settings, writes(4)), [COMMAND + 4 * 50 + 4 * PAGE + rest]);
    let others = vec![at(0, Op::Read, 0, 1), at(1_000_000, Op::Flush, 0, 0), at(2_000_000, Op::Trim, 0, 2)];
    assert_eq!(latencies(&settings, others.clone()), latencies(&device(), others));
    // A core that works on nothing but writes is a core all the same.
    let controller = &mut settings.device.controller;
    (controller.command_ns, controller.unit_ns, controller.unit_write_ns) = (0, 0, None);
    assert_eq!(latencies(&settings, vec![at(0, Op::Read, 0, 1)]), [READ + PAGE + LATENCY]);
    settings.device.controller.command_write_ns = Some(9_000);
    assert_eq!(Tracks::new(&settings).controller.last().unwrap(), "core 0");
    assert_eq!(latencies(&settings, vec![at(0, Op::Read, 0, 1)]), [READ + PAGE + LATENCY]);
    assert_eq!(latencies(&settings, writes(1)), [9_000 + PAGE + rest]);
}

#[test]
fn the_link_carries_commands_and_answers_too() {
    let mut settings = device();
    settings.device.controller.link_command_ns = ANSWER;
    let alone = 2 * ANSWER + COMMAND + UNIT + PAGE;
    assert_eq!(latencies(&settings, vec![at(0, Op::Read, 0, 1)]), [alone + READ + LATENCY]);
    assert_eq!(latencies(&settings, vec![at(0, Op::Write, 0, 1)]), [alone + PROGRAM + 2 * LATENCY]);
}

/// Two reads of different chips come at the same time: the core works on one after the other, and all else runs in
/// parallel.
#[test]
fn commands_wait_for_a_core() {
    let mut settings = device();
    let both = vec![at(0, Op::Read, 0, 1), at(0, Op::Read, 1, 1)];
    let alone = COMMAND + UNIT + READ + PAGE + LATENCY;
    assert_eq!(latencies(&settings, both.clone()), [alone, alone + COMMAND + UNIT]);
    // Two cores work on both commands; then the pages leave one after the other.
    settings.device.controller.cores = 2;
    assert_eq!(latencies(&settings, both), [alone, alone + PAGE]);
}

/// Reads and writes transfer data over the link at the same time, unless it is half duplex. If cores take no time, a
/// read of four pages leaves from 35 us to 39 us; the write's data came in from 35.5 us on, and the flash takes 350 us.
#[test]
fn directions_of_a_link_are_apart_unless_it_is_half_duplex() {
    let mut settings = device();
    let controller = &mut settings.device.controller;
    (controller.command_ns, controller.unit_ns) = (0, 0);
    let trace = vec![at(0, Op::Read, 0, 4), at(35_500, Op::Write, 8, 1)];
    let [read, write] = [READ + 4 * PAGE + LATENCY, PAGE + PROGRAM + 2 * LATENCY];
    assert_eq!(latencies(&settings, trace.clone()), [read, write]);
    settings.device.controller.duplex = Duplex::Half;
    assert_eq!(latencies(&settings, trace), [read, 3_500 + write]);
}

/// At depth 1 the next command is handed over when the first is answered.
#[test]
fn a_command_holds_its_place_until_it_is_answered() {
    let mut settings = device();
    settings.device.queue_depth = 1;
    let both = rows(&settings, vec![at(0, Op::Read, 0, 1), at(0, Op::Read, 1, 1)]);
    let alone = COMMAND + UNIT + READ + PAGE + LATENCY;
    assert_eq!(both[1].dispatch_ns, alone);
    assert_eq!(both[1].complete_ns, 2 * alone);
}

/// A link of unlimited bandwidth, cores without work and no latency need no controller.
#[test]
fn without_a_time_there_is_no_controller() {
    let mut off = device();
    off.device.controller = Default::default();
    assert!(!off.device.controller.takes_time());
    let mut nearly = off.clone();
    nearly.device.controller.latency_other_ns = 1;
    let trace: Vec<Record> = (0..400)
        .map(|n| at(n * 9_000, if n % 3 == 0 { Op::Write } else { Op::Read }, n * 7 % 64, 1 + n % 3))
        .collect();
    // No command here waits for the only latency that is set.
    assert_eq!(rows(&off, trace.clone()), rows(&nearly, trace));
}

/// An observer that keeps completions and, if wanted, the services of link and cores.
#[derive(Default)]
struct Kept {
    wanted: bool,
    rows: Vec<Completion>,
    handled: Vec<Handling>,
}

impl Observer for Kept {
    fn complete(&mut self, completion: &Completion) {
        self.rows.push(*completion);
    }

    fn wants_activity(&self) -> bool {
        self.wanted
    }

    fn handled(&mut self, handling: &Handling) {
        self.handled.push(*handling);
    }
}

fn watched(settings: &Settings, trace: &[Record], wanted: bool) -> (Report, Kept) {
    let (mut kept, mut source) = (Kept { wanted, ..Kept::default() }, Vec::from(trace).into_iter());
    let report = run(settings, &mut source, &mut kept, true).expect("a sound run");
    (report, kept)
}

/// Checks that a server never does two things at once; returns the sum of its times.
fn busy_ns(kept: &Kept, server: u32) -> u64 {
    let mut spans: Vec<_> = kept.handled.iter().filter(|one| one.server == server).collect();
    spans.sort_by_key(|one| one.begin_ns);
    assert!(spans.windows(2).all(|two| two[0].end_ns <= two[1].begin_ns), "server {server}");
    spans.iter().map(|one| one.end_ns - one.begin_ns).sum()
}

/// Each command receives its services in order, within its time in the device; watching changes nothing.
#[test]
fn a_timeline_shows_what_link_and_cores_do() {
    let ops = [Op::Read, Op::Write, Op::Read, Op::Trim, Op::Flush];
    let trace: Vec<Record> = (0..400)
        .map(|n| (n, ops[n as usize % 5]))
        .map(|(n, op)| at(n / 7 * 90_000, op, n * 7 % 64, if op == Op::Flush { 0 } else { 1 + n % 3 }))
        .collect();
    for (duplex, cores, names) in [
        (Duplex::Full, 1, vec!["link to the device", "link to the host", "core 0"]),
        (Duplex::Half, 2, vec!["link", "core 0", "core 1"]),
    ] {
        let mut settings = device();
        let controller = &mut settings.device.controller;
        (controller.duplex, controller.cores, controller.link_command_ns) = (duplex, cores, ANSWER);
        assert_eq!(Tracks::new(&settings).controller, names);
        let (report, kept) = watched(&settings, &trace, true);
        let (blind, unwatched) = watched(&settings, &trace, false);
        assert_eq!((format!("{report:?}"), kept.rows.clone()), (format!("{blind:?}"), unwatched.rows));
        assert!(unwatched.handled.is_empty());
        for row in &kept.rows {
            let of_row: Vec<_> = kept.handled.iter().filter(|one| one.request.id == row.id).collect();
            let mut order: Vec<_> = of_row.iter().map(|one| (one.begin_ns, one.service)).collect();
            order.sort_by_key(|&(begin_ns, _)| begin_ns);
            let data = match row.op {
                Op::Read => vec![Service::DataOut],
                Op::Write => vec![Service::DataIn],
                Op::Trim | Op::Flush => vec![],
            };
            let expected = [vec![Service::Command, Service::Work], data, vec![Service::Answer]].concat();
            assert_eq!(order.iter().map(|&(_, service)| service).collect::<Vec<_>>(), expected, "{row:?}");
            let inside = |one: &&Handling| row.dispatch_ns <= one.begin_ns && one.end_ns <= row.complete_ns;
            assert!(of_row.iter().all(inside), "{row:?}");
        }
        let elapsed = report.elapsed_ns as f64;
        let sums: Vec<u64> = (0..names.len() as u32).map(|server| busy_ns(&kept, server)).collect();
        let (link, at_cores) = sums.split_at(names.len() - cores as usize);
        let busiest = *link.iter().max().unwrap() as f64 / elapsed;
        let mean = at_cores.iter().sum::<u64>() as f64 / elapsed / f64::from(cores);
        assert!((report.device.link_busy.unwrap() - busiest).abs() < 1e-12);
        assert!((report.device.core_busy.unwrap() - mean).abs() < 1e-12);
    }
}

/// A command that is at a core when the power is cut never completes; afterwards, the device serves others as before.
#[test]
fn a_cut_drops_what_is_in_the_controller() {
    let mut settings = tiny("page");
    settings.ftl.power_safe = true;
    settings.device.controller = device().device.controller.clone();
    settings.device.queue_depth = 8;
    let prepared = Prepared::new(&settings, &mut (), true).unwrap();
    let mut simulation = Simulation::new(&settings, prepared);
    simulation.allow_cuts().unwrap();
    let mut kept = Kept::default();
    for lpn in 0..4 {
        simulation.submit(at(0, Op::Write, lpn, 1)).unwrap();
    }
    simulation.advance(COMMAND / 2, &mut kept).unwrap();
    let cut = simulation.cut(1).unwrap();
    assert_eq!((cut.finished, cut.torn_programs, kept.rows.len()), (0, 0, 0));
    assert_eq!(simulation.next_event_ns(), None);
    simulation.recover().unwrap();
    let now_ns = simulation.now_ns();
    simulation.submit(at(now_ns, Op::Read, 0, 1)).unwrap();
    simulation.run_until_idle(&mut kept).unwrap();
    assert_eq!(kept.rows.len(), 1);
    let pages = 4096 / u64::from(settings.ftl.logical_page_bytes);
    let least = COMMAND + pages * UNIT + PAGE + LATENCY;
    assert!(kept.rows[0].complete_ns - now_ns >= least);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A closed loop is served no faster than cores / command_time, than link / size, or than the flash.
    #[test]
    fn nothing_exceeds_cores_link_and_flash(
        depth in 1u32..64, cores in 1u32..4, command in 0u64..20_000, link in 50_000_000u64..5_000_000_000,
        channels in 1u32..9, size in 1u64..5,
    ) {
        let mut settings = device();
        settings.device.queue_depth = depth;
        settings.flash.channels = channels;
        let controller = &mut settings.device.controller;
        controller.link = link;
        (controller.cores, controller.command_ns, controller.unit_ns) = (cores, command, 0);
        let count = 500u64;
        let trace: Vec<Record> = (0..count).map(|n| at(0, Op::Read, n * 11 % 1024, size)).collect();
        let last = rows(&settings, trace).iter().map(|row| row.complete_ns).max().unwrap();
        let bytes = count * size * 4096;
        prop_assert!(last >= count.div_ceil(u64::from(cores)) * command);
        // Each transfer is rounded to the nearest nanosecond.
        prop_assert!(last + count >= (u128::from(bytes) * 1_000_000_000 / u128::from(link)) as u64);
        prop_assert!(last >= (count * size).div_ceil(u64::from(channels)) * READ);
    }
}

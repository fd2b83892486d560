//! Events reported for timelines: they are complete, do not overlap, and have no effect on the run.

use ftlab_conformance as common;

use common::settings;
use ftlab_core::Simulation;
use ftlab_core::device::Stage;
use ftlab_core::flash::parallel::{MultiPlane, Parallel, Suspend};
use ftlab_core::flash::{Cause, Operation};
use ftlab_core::metrics::Report;
use ftlab_core::settings::{GcBackground, Precondition, Replay, Settings};
use ftlab_core::sim::{Activity, Completion, Observer, Prepared, Tracks, run};
use ftlab_core::workload::{Op, Record};

/// An observer that stores completions and, if wanted, activity.
#[derive(Default)]
struct Kept {
    wanted: bool,
    completions: Vec<Completion>,
    activities: Vec<Activity>,
    pending: Vec<(u64, u32)>,
}

impl Observer for Kept {
    fn complete(&mut self, completion: &Completion) {
        self.completions.push(*completion);
    }

    fn wants_activity(&self) -> bool {
        self.wanted
    }

    fn activity(&mut self, activity: &Activity) {
        self.activities.push(*activity);
    }

    fn pending(&mut self, now_ns: u64, requests: u32) {
        self.pending.push((now_ns, requests));
    }
}

/// Makes bursts of requests of one to four pages, skewed so that garbage collection and the mapping cache have work
/// to do.
fn trace(settings: &Settings, requests: u64) -> Vec<Record> {
    let (pages, mut state, mut time_ns) = (settings.user_pages(), 0x9E37_79B9_7F4A_7C15_u64, 0);
    let mut records = Vec::new();
    for _ in 0..requests {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state & 15 == 0 {
            time_ns += 7_000_000;
        }
        let count = 1 + (state >> 4 & 3);
        let lpn = (state >> 20) % (pages - count) / if state >> 6 & 1 == 0 { 1 } else { 8 };
        let op = match state >> 8 & 15 {
            0..5 => Op::Read,
            5 => Op::Trim,
            6 => Op::Flush,
            _ => Op::Write,
        };
        let page = u64::from(settings.ftl.logical_page_bytes);
        let (offset, size) = if op == Op::Flush { (0, 0) } else { (lpn * page, count * page) };
        records.push(Record { time_ns, op, offset, size, ..Record::FLUSH });
    }
    records
}

fn observed(settings: &Settings, wanted: bool) -> (Report, Kept) {
    let mut kept = Kept { wanted, ..Kept::default() };
    let records = trace(settings, 6_000);
    let report = run(settings, &mut records.into_iter(), &mut kept, false).expect("a sound run");
    (report, kept)
}

/// Returns small devices with every source of steps: collection, mapping misses, prefetches, buses.
fn devices() -> Vec<(String, Settings)> {
    let mut all = Vec::new();
    for (channels, chips, transfer_ps) in [(1, 1, 0), (1, 1, 2_500), (2, 2, 0), (2, 2, 2_500), (3, 1, 10_000)]
    {
        for (kind, scheduler, depth) in [
            ("page", "noop", 8),
            ("dftl", "map+", 8),
            ("cdftl", "map", 1),
            ("bast", "noop", 8),
            ("fast", "row", 1),
        ] {
            let mut one = settings();
            one.flash.channels = channels;
            one.flash.chips_per_channel = chips;
            one.flash.blocks_per_plane = 20;
            one.flash.pages_per_block = 16;
            one.flash.page_bytes = 4096;
            one.flash.transfer_ps = transfer_ps;
            one.ftl.kind = kind.into();
            one.ftl.over_provisioning_ppm = 450_000;
            one.ftl.log_blocks_ppm = 150_000;
            one.ftl.mapping_cache_bytes = Some(8192);
            one.ftl.background_flush = kind == "dftl";
            one.host.scheduler = scheduler.into();
            one.host.queue_depth = 16;
            one.device.queue_depth = depth;
            // Some of these devices are behind a link and a core that hold commands back.
            if (channels, transfer_ps) == (2, 2_500) {
                let controller = &mut one.device.controller;
                (controller.link, controller.command_ns) = (40_000_000, 30_000);
            }
            one.device.precondition = Precondition::fill();
            all.push((format!("{kind} {channels}x{chips}, {transfer_ps} ps/B"), one));
        }
    }
    // Dies and planes work in parallel, with every kind of overlap.
    for (multi_plane, cached, kind) in [
        (MultiPlane::Off, false, "dftl"),
        (MultiPlane::Free, false, "cdftl"),
        (MultiPlane::SameOffset, true, "page"),
    ] {
        let mut dies = all[9].1.clone();
        dies.ftl.kind = kind.into();
        dies.flash.dies_per_chip = 2;
        dies.flash.planes_per_die = 2;
        dies.flash.blocks_per_plane = 16;
        dies.flash.transfer_ps = 10_000;
        dies.flash.command_ns = 500;
        dies.device.scheduler = "direct".into();
        dies.flash.parallel = Parallel {
            interleave: true,
            multi_plane,
            cache_program: cached,
            cache_read: cached,
            suspend: Suspend::ProgramErase,
            out_of_order: true,
            ..Parallel::default()
        };
        all.push((format!("dies, {multi_plane:?}, {kind}"), dies));
    }
    let mut gathered = settings();
    gathered.flash.page_bytes = 16_384;
    gathered.flash.blocks_per_plane = 20;
    gathered.flash.pages_per_block = 16;
    gathered.flash.channels = 2;
    gathered.ftl.over_provisioning_ppm = 450_000;
    gathered.workload.replay = Replay::Closed;
    all.push(("gathered pages".into(), gathered));
    all
}

/// Steps on one chip that need no bus are merged if nobody watches; times must not reveal this.
#[test]
fn watching_changes_nothing() {
    for (name, settings) in devices() {
        let (blind, unwatched) = observed(&settings, false);
        let (report, watched) = observed(&settings, true);
        assert!(unwatched.activities.is_empty() && unwatched.pending.is_empty());
        assert_eq!(watched.completions, unwatched.completions, "{name}");
        assert_eq!(format!("{report:?}"), format!("{blind:?}"), "{name}");
    }
}

#[test]
fn every_operation_is_there_once_for_its_whole_time() {
    for (name, settings) in devices() {
        let (report, kept) = observed(&settings, true);
        let counts = [&report.flash.reads, &report.flash.programs, &report.flash.erases];
        for (operation, counts) in Operation::ALL.into_iter().zip(counts) {
            for cause in Cause::ALL {
                let seen = kept
                    .activities
                    .iter()
                    .filter(|a| (a.operation, a.cause, a.stage) == (operation, cause, Stage::Cells));
                let expected = counts[cause];
                // A suspended operation appears again for each suspension.
                let (least, suspended) =
                    (expected, report.parallel.suspensions.program + report.parallel.suspensions.erase);
                let most = if operation == Operation::Read { expected } else { expected + suspended * 4 };
                let seen = seen.count() as u64;
                assert!(
                    (least..=most).contains(&seen),
                    "{name}: {operation:?} {cause:?}: {seen}, not {expected}"
                );
            }
        }
        let overlapping = settings.flash.parallel != Parallel::default();
        let busy = |of: &dyn Fn(&Activity) -> bool| -> u64 {
            kept.activities.iter().filter(|a| of(a)).map(|a| a.end_ns - a.begin_ns).sum()
        };
        for (chip, &ns) in report.utilization.chip_busy_ns.iter().enumerate() {
            // Where dies, planes or registers work in parallel, the sum of their times may exceed the chip's.
            let sum = busy(&|a| a.chip as usize == chip);
            assert!(sum == ns || overlapping && sum > ns, "{name}: chip {chip}");
        }
        let channels = settings.flash.channels;
        for (channel, &ns) in report.utilization.channel_busy_ns.iter().enumerate() {
            let of = |a: &Activity| (a.chip % channels) as usize == channel && a.stage != Stage::Cells;
            assert_eq!(busy(&of), ns, "{name}: channel {channel}");
        }
    }
}

#[test]
fn nothing_overlaps_and_all_is_within_its_request() {
    for (name, settings) in devices() {
        let (_, kept) = observed(&settings, true);
        let channels = settings.flash.channels;
        let tracks = Tracks::new(&settings);
        // For each LUN, when its cells become free and, if transfers are drawn separately, when its transfers end.
        let mut free_at = vec![[0; 2]; settings.flash.luns() as usize];
        let mut bus_free = vec![0; channels as usize];
        let done: std::collections::HashMap<u64, &Completion> =
            kept.completions.iter().map(|completion| (completion.id, completion)).collect();
        for activity in &kept.activities {
            let track = &tracks.luns[activity.lun as usize];
            assert!(
                track.name.starts_with(&format!("chip {}", activity.chip))
                    && track.channel == activity.channel
            );
            assert_eq!(activity.channel, activity.chip % channels);
            let data = tracks.overlap && activity.stage != Stage::Cells;
            let free = &mut free_at[activity.lun as usize][usize::from(data)];
            assert!(activity.begin_ns >= *free && activity.end_ns >= activity.begin_ns, "{name}");
            *free = activity.end_ns;
            if activity.stage != Stage::Cells {
                let free = &mut bus_free[(activity.chip % channels) as usize];
                assert!(activity.begin_ns >= *free, "{name}");
                *free = activity.end_ns;
            }
            let Some(request) = activity.request else {
                assert!(settings.ftl.background_flush && activity.lpn.is_none(), "{name}");
                continue;
            };
            let completion = done[&request.id];
            assert_eq!((request.op, request.offset), (completion.op, completion.offset));
            assert!(activity.begin_ns >= completion.dispatch_ns, "{name}");
            assert!(activity.end_ns <= completion.complete_ns, "{name}");
        }
        assert!(kept.pending.is_sorted_by_key(|&(now_ns, _)| now_ns), "{name}");
        assert_eq!(kept.pending.last().map(|&(_, requests)| requests), Some(0), "{name}");
    }
}

/// Makes devices with work that no request waits for.
fn restless() -> Vec<(String, Settings)> {
    let mut all = Vec::new();
    for (name, mut one) in devices() {
        let named = ["page", "cdftl", "dies"].iter().any(|kind| name.starts_with(kind));
        if named || name.starts_with("gathered") {
            one.ftl.background_flush = one.ftl.kind == "cdftl";
            let normal_blocks = one.ftl.gc_free_blocks + 3;
            one.ftl.gc_background = Some(GcBackground { normal_blocks, step_pages: 3 });
            one.flash.blocks_per_plane += 10;
            let mut interleaved = one.clone();
            interleaved.flash.parallel.interleave = true;
            all.extend([(format!("{name}, interleaved"), interleaved), (name, one)]);
        } else if name.starts_with("dftl") {
            all.push((name, one));
        } else if name.starts_with("bast") {
            one.host.scheduler = "padding".into();
            all.push((format!("{name}, padded"), one));
        }
    }
    all
}

/// Returns the reports made while time passes, with the time of each, and everything that was reported by the end.
fn looked_at(settings: &Settings, wanted: bool) -> (Vec<(u64, Report)>, Kept) {
    let mut kept = Kept { wanted, ..Kept::default() };
    let prepared = Prepared::new(settings, &mut kept, true).expect("it can be prepared");
    let mut simulation = Simulation::new(settings, prepared);
    if wanted {
        simulation.report_activity();
    }
    let mut reports = Vec::new();
    for mut record in trace(settings, 400) {
        record.time_ns += 30_000_000;
        simulation.submit(record).expect("within the device");
    }
    let mut until_ns = 0;
    while until_ns < 300_000_000 {
        until_ns += 1_234_567;
        simulation.advance(until_ns, &mut kept).expect("every invariant holds");
        reports.push((until_ns, simulation.report()));
    }
    simulation.run_until_idle(&mut kept).expect("every invariant holds");
    reports.push((simulation.now_ns(), simulation.report()));
    simulation.advance(simulation.now_ns() + 100_000_000, &mut kept).expect("every invariant holds");
    reports.push((simulation.now_ns(), simulation.report()));
    (reports, kept)
}

/// Returns the time at work between two moments; activities that overlap count once.
fn at_work(kept: &Kept, [from_ns, to_ns]: [u64; 2], of: impl Fn(&Activity) -> bool) -> u64 {
    let mut spans: Vec<_> =
        kept.activities.iter().filter(|a| of(a)).map(|a| (a.begin_ns, a.end_ns)).collect();
    spans.sort_unstable();
    let (mut sum, mut done_ns) = (0, from_ns);
    for (begin_ns, end_ns) in spans {
        let (begin_ns, end_ns) = (begin_ns.max(done_ns), end_ns.min(to_ns));
        sum += end_ns.saturating_sub(begin_ns);
        done_ns = done_ns.max(end_ns);
    }
    sum
}

/// Regressions: a folded step was counted in full when it began, any other step when it ended, so that a timeline
/// changed busy times; with work in the background, busy times exceeded the run; padding after the last completion
/// counted as part of the run. All work counts from the first arrival to the last completion (while requests are under
/// way, to now), as far as it has got by then.
#[test]
fn busy_times_are_those_of_the_run_and_no_timeline_changes_them() {
    let mut padded = 0;
    for (name, settings) in restless() {
        let (blind, unwatched) = looked_at(&settings, false);
        let (reports, kept) = looked_at(&settings, true);
        assert_eq!(kept.completions, unwatched.completions, "{name}");
        let channels = settings.flash.channels;
        let mut clipped = 0;
        for ((now_ns, report), (_, blind)) in reports.iter().zip(blind) {
            let done = |completion: &&Completion| completion.complete_ns <= *now_ns;
            let last_ns = kept.completions.iter().filter(done).map(|done| done.complete_ns).max();
            let run = [30_000_000, 30_000_000 + report.elapsed_ns];
            let at_rest = last_ns == Some(run[1]);
            assert!(at_rest || *now_ns == run[1] || report.elapsed_ns == 0, "{name}: {run:?} at {now_ns}");
            let used = &report.utilization;
            for (chip, &busy_ns) in used.chip_busy_ns.iter().enumerate() {
                let worked_ns = at_work(&kept, run, |a| a.chip as usize == chip);
                assert_eq!(busy_ns, worked_ns, "{name}: chip {chip} at {now_ns}");
                let whole = kept.activities.iter().any(|a| a.chip as usize == chip && a.end_ns > run[1]);
                clipped += usize::from(at_rest && whole);
            }
            for (channel, &busy_ns) in used.channel_busy_ns.iter().enumerate() {
                let of = |a: &Activity| (a.chip % channels) as usize == channel && a.stage != Stage::Cells;
                assert_eq!(busy_ns, at_work(&kept, run, of), "{name}: channel {channel} at {now_ns}");
            }
            let dies = settings.flash.dies_per_chip as usize;
            let units = if used.die_busy_ns.is_empty() { 0 } else { settings.flash.chips() as usize * dies };
            assert_eq!(used.die_busy_ns.len(), units);
            let shares = used.chip.iter().chain(&used.die).chain(&used.channel);
            assert!(shares.into_iter().all(|&share| share <= 1.0), "{name}: {used:?}");
            // While requests are under way, their folded steps do not reveal when they use the bus.
            let mut expected = report.clone();
            if !at_rest {
                expected.utilization.channel_busy_ns.clone_from(&blind.utilization.channel_busy_ns);
                expected.utilization.channel.clone_from(&blind.utilization.channel);
                expected.utilization.bottleneck.clone_from(&blind.utilization.bottleneck);
            }
            assert_eq!(format!("{expected:?}"), format!("{blind:?}"), "{name} at {now_ns}");
        }
        let pads = settings.host.scheduler == "padding";
        assert!(pads || clipped > 0, "{name}: something outlasts the requests");
        padded += if pads { clipped } else { 0 };
    }
    assert!(padded > 0, "padding outlasts the requests");
}

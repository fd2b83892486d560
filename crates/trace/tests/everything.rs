//! A campaign that combines everything with everything: configurations drawn from the whole schema, so that a new key
//! takes part automatically, each with a few hundred requests, on a build with debug assertions and overflow checks.
//!
//! No case panics or hangs, and no invariant breaks in check mode. Some things must make no difference: check mode,
//! reporting activity (at any moment), saving and loading the device, submitting requests from outside instead of
//! replaying them. The number of a case is its seed. `make soak` has the long form.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use common::campaign::campaign;
use common::drawn::{Grown, Key, grown, keys, of_text};
use ftlab_config::Resolved;
use ftlab_core::Simulation;
use ftlab_core::metrics::Preconditioning;
use ftlab_core::settings::{Replay, Settings};
use ftlab_core::sim::{Activity, Completion, Observer, Prepared, RunError, run_prepared};
use ftlab_core::workload::{Op, Record, Source, SourceError};
use ftlab_crash::{CrashError, Cuts, Options, Requests, Summary, crash};
use ftlab_files::clients::{Clients, fio};
use ftlab_generator::Generator;
use rand::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus as Draw;
use serde_json::Value as Json;

/// Number of requests, and number of progress calls, after which a run is stopped; whatever it did before has been
/// checked.
const MOST_REQUESTS: u64 = 1500;
const MOST_LOOKS: u32 = 24;
/// Time after which a case is considered hung; generous, since the machine may be busy.
const HANGS: Duration = Duration::from_secs(240);

const JOBS: &[&str] = &[
    "[a]\nrw=randrw\nbs=4k\nsize=256k\niodepth=4\ndirect=1\nnumjobs=2\n[b]\nrw=write\nsize=64k\ndirect=1\nfsync=8\n",
    "[x]\nrw=randwrite\nrandom_distribution=zipf:1.1\nsize=128k\nruntime=2\ntime_based\n[y]\nrw=read\nsize=64k\n",
];

/// Makes requests, many of them adjacent and many simultaneous, over the whole device or a part of it.
fn records(draw: &mut Draw, user_bytes: u64) -> Vec<Record> {
    let sectors = user_bytes / 512;
    let most = (1 << draw.random_range(0..9)).min(sectors);
    let hot = if draw.random() { sectors } else { (sectors / 8).max(most) };
    let gap = 1 << draw.random_range(4..24);
    let (count, mut time_ns, mut next) = (draw.random_range(50..400), 0, 0);
    let record = |_| {
        time_ns += if draw.random_range(0..3) == 0 { draw.random_range(0..gap) } else { 0 };
        let op = match draw.random_range(0..20) {
            0..7 => Op::Read,
            7..17 => Op::Write,
            17..19 => Op::Trim,
            _ => Op::Flush,
        };
        let size = draw.random_range(1..=most);
        let follows = draw.random_range(0..3) == 0 && next + size <= sectors;
        let at = if follows { next } else { draw.random_range(0..=hot - size) };
        next = at + size;
        let flags = if op == Op::Write && draw.random_range(0..10) == 0 { Record::FUA } else { 0 };
        let (offset, size) = if op == Op::Flush { (0, 0) } else { (at * 512, size * 512) };
        let known = draw.random_range(0..20) > 0;
        let latency_ns = if known { draw.random_range(0..4 * gap) } else { Record::UNKNOWN };
        Record { time_ns, op, offset, size, flags, latency_ns, ..Record::FLUSH }
    };
    (0..count).map(record).collect()
}

/// Observes a run, and ends it if it takes too long.
struct Watch {
    seen: u64,
    activity: bool,
    looks: u32,
    stopped: bool,
    /// When each submission completed, by its number; whether one did so as it was handed over.
    answers: Vec<(u64, u64)>,
    at_once: bool,
}

impl Watch {
    fn new(activity: bool) -> Watch {
        Watch { seen: 0, activity, looks: 0, stopped: false, answers: Vec::new(), at_once: false }
    }

    fn go_on(&mut self) -> bool {
        self.looks += 1;
        self.stopped |= self.seen > MOST_REQUESTS || self.looks > MOST_LOOKS;
        !self.stopped
    }
}

impl Observer for Watch {
    fn complete(&mut self, done: &Completion) {
        self.seen += 1;
        assert!(done.arrival_ns <= done.dispatch_ns || done.failed, "{done:?}");
        assert!(done.dispatch_ns <= done.complete_ns, "{done:?}");
        self.at_once |= done.dispatch_ns == done.complete_ns || done.failed;
    }

    fn answer(&mut self, done: &Completion) {
        self.answers.push((done.id, done.complete_ns));
    }

    fn preconditioning(&mut self, _done: &Preconditioning) -> bool {
        self.go_on()
    }

    fn progress(&mut self, _requests: u64) -> bool {
        self.go_on()
    }

    fn wants_activity(&self) -> bool {
        self.activity
    }

    fn activity(&mut self, activity: &Activity) {
        assert!(activity.begin_ns <= activity.end_ns, "{activity:?}");
    }
}

/// What feeds the runs of a case.
enum Load {
    Benchmark,
    Jobs(Vec<fio::Job>),
    Synthetic,
    Records(Vec<Record>),
}

impl Load {
    fn of(grown: &mut Grown, draw: &mut Draw) -> Load {
        let settings = &grown.resolved.settings;
        if settings.files.benchmark.is_some() {
            return Load::Benchmark;
        }
        if settings.workload.synthetic.is_some() {
            return Load::Synthetic;
        }
        if draw.random_range(0..6) == 0 {
            let text = JOBS.choose(draw).unwrap();
            grown.try_set(vec![of_text("host.page_cache", "256KiB")]);
            let jobs = fio::parse("jobs", text).expect("it is well formed");
            let settings = &grown.resolved.settings;
            if Clients::of_jobs(&jobs, settings, settings.user_bytes()).is_ok() {
                return Load::Jobs(jobs);
            }
        }
        Load::Records(records(draw, grown.resolved.settings.user_bytes()))
    }

    fn source(&self, resolved: &Resolved) -> Box<dyn Source + Send> {
        let settings = &resolved.settings;
        match (self, &settings.workload.synthetic) {
            (Load::Records(records), _) => Box::new(records.clone().into_iter()),
            (_, Some(synthetic)) => Box::new(Generator::new(synthetic, settings.user_bytes(), settings.seed)),
            _ => Box::new(Vec::new().into_iter()),
        }
    }

    fn run(&self, resolved: &Resolved, prepared: Prepared, watch: &mut Watch) -> Result<String, RunError> {
        let settings = &resolved.settings;
        let report = match self {
            Load::Benchmark => {
                let clients = Clients::of_benchmark(settings).expect("it is chosen");
                ftlab_files::run(settings, prepared, clients, watch)
            }
            Load::Jobs(jobs) => ftlab_files::run(
                settings,
                prepared,
                Clients::of_jobs(jobs, settings, settings.user_bytes()).expect("they fit"),
                watch,
            ),
            Load::Synthetic | Load::Records(_) => {
                run_prepared(settings, prepared, &mut *self.source(resolved), watch)
            }
        };
        report.map(|report| serde_json::to_string(&report).unwrap())
    }
}

/// Returns a run's report; `None` if it was stopped.
fn outcome(result: Result<String, RunError>, watch: &Watch, what: &str) -> Result<Option<String>, String> {
    match result {
        Ok(report) => Ok(Some(report)),
        Err(RunError::Source(SourceError::Interrupted)) if watch.stopped => Ok(None),
        Err(error) => Err(format!("{what}: {error}")),
    }
}

/// Saves the device and loads it again.
fn through_a_file(resolved: &Resolved, prepared: &Prepared) -> Result<Prepared, String> {
    let (identity, mut bytes) = (resolved.state_identity(), Vec::new());
    prepared.save(&identity, &mut bytes).map_err(|error| error.to_string())?;
    Prepared::load(&resolved.settings, &identity, &mut &bytes[..], false).map_err(|error| error.to_string())
}

/// Submits the requests from outside, some time before they arrive.
fn submitted(
    resolved: &Resolved,
    prepared: Prepared,
    records: &[Record],
    draw: &mut Draw,
    watch: &mut Watch,
) -> Result<Option<String>, String> {
    let report = submit_all(resolved, prepared, records, draw, watch);
    outcome(report, watch, "submitted")
}

/// Replays what was recorded of the submissions: each waits for those that had completed before it. Requests that
/// completed as they were handed over are not told from those that were handed over with them, so there is no such
/// replay of them.
fn dependent(
    resolved: &Resolved,
    prepared: Prepared,
    records: &[Record],
    recorded: &Watch,
) -> Result<Option<String>, String> {
    if recorded.at_once || recorded.stopped {
        return Ok(None);
    }
    let mut records = records.to_vec();
    records.iter_mut().for_each(|record| record.latency_ns = Record::UNKNOWN);
    for &(number, complete_ns) in &recorded.answers {
        let record = &mut records[number as usize - 1];
        record.latency_ns = complete_ns - record.time_ns;
    }
    let mut settings = resolved.settings.clone();
    settings.workload.replay = Replay::Dependent;
    let mut watch = Watch::new(false);
    let report = run_prepared(&settings, prepared, &mut records.into_iter(), &mut watch);
    outcome(report.map(|report| serde_json::to_string(&report).unwrap()), &watch, "dependent")
}

fn submit_all(
    resolved: &Resolved,
    prepared: Prepared,
    records: &[Record],
    draw: &mut Draw,
    watch: &mut Watch,
) -> Result<String, RunError> {
    let mut simulation = Simulation::new(&resolved.settings, prepared);
    for record in records {
        simulation.submit(*record).expect("it is within the device");
        if record.time_ns > simulation.now_ns() && draw.random() {
            let until_ns = draw.random_range(simulation.now_ns()..record.time_ns);
            simulation.advance(until_ns, watch)?;
        }
    }
    simulation.run_until_idle(watch)?;
    Ok(serde_json::to_string(&simulation.report()).unwrap())
}

/// Submits all requests and returns the report at a moment at which work may be under way. The buses are left out,
/// because the times at which a folded step uses a bus are unknown until that step has ended.
fn stopped(
    resolved: &Resolved,
    prepared: Prepared,
    records: &[Record],
    until_ns: u64,
    activity: bool,
) -> Result<Option<String>, String> {
    let mut watch = Watch::new(activity);
    let mut simulation = Simulation::new(&resolved.settings, prepared);
    if activity {
        simulation.report_activity();
    }
    for record in records {
        simulation.submit(*record).expect("it is within the device");
    }
    let report = simulation.advance(until_ns, &mut watch).map(|()| {
        let mut report = serde_json::to_value(simulation.report()).unwrap();
        let used = report["utilization"].as_object_mut().unwrap();
        for key in ["channel", "channel_busy_ns", "bottleneck"] {
            used.remove(key);
        }
        report.to_string()
    });
    outcome(report, &watch, "stopped")
}

fn same(one: &Option<String>, other: &Option<String>, what: &str) -> Result<(), String> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            let at = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
            let around = |text: &str| text[at.saturating_sub(60)..(at + 60).min(text.len())].to_owned();
            Err(format!("{what}: {} / {}", around(one), around(other)))
        }
        _ => Ok(()),
    }
}

/// Checks that figures of a report add up.
fn adds_up(report: &str, settings: &Settings) -> Result<(), String> {
    let report: Json = serde_json::from_str(report).unwrap();
    let number = |value: &Json| value.as_u64().unwrap_or(0);
    let total =
        |of: &Json| -> u64 { of.as_object().into_iter().flat_map(|of| of.values()).map(number).sum() };
    let flash = ["reads", "programs", "erases", "busy_ns"].map(|key| (key, total(&report["flash"][key])));
    if let Some(errors) = report.get("errors") {
        let steps: Vec<u64> = errors["steps"].as_array().unwrap().iter().map(number).collect();
        let [failed, retried, retries] =
            ["failed_reads", "retried_reads", "retries"].map(|key| number(&errors[key]));
        // A read that begins at the step of the last one may need no repetition.
        let within = steps.iter().sum::<u64>() + failed <= flash[0].1
            && retried <= steps[1..].iter().sum::<u64>() + failed
            && retried <= retries;
        if !within {
            return Err(format!("retries: {errors}"));
        }
    }
    if let Some(tenants) = report["tenants"].as_array() {
        for (key, whole) in flash {
            let parts: u64 = tenants.iter().map(|tenant| number(&tenant["flash"][key])).sum();
            if parts + number(&report["beside_tenants"][key]) != whole {
                return Err(format!("the tenants' flash {key}: {parts} of {whole}"));
            }
        }
    }
    if let Some(fronts) = report["placement"]["fronts"].as_array() {
        let per_page = u64::from(settings.flash.page_bytes / settings.ftl.logical_page_bytes);
        let written: u64 = fronts.iter().map(|front| number(&front["written"])).sum();
        let [host, pad] = ["host", "pad"].map(|cause| number(&report["flash"]["programs"][cause]));
        // What is in page buffers is written and not yet programmed.
        let waits = fronts.len() as u64 * u64::from(settings.flash.unit_pages()) * per_page;
        if written > (host + pad) * per_page + waits
            || (waits == fronts.len() as u64 && written != host + pad)
        {
            return Err(format!("{written} pages written to fronts, {host} and {pad} programmed"));
        }
    }
    Ok(())
}

fn run_case(resolved: &Resolved, load: &Load, draw: &mut Draw) -> Result<(), String> {
    let settings = &resolved.settings;
    let activity = draw.random();
    let mut watch = Watch::new(activity);
    let prepare = |check: bool| -> Result<Option<Prepared>, String> {
        let mut watch = Watch::new(false);
        match Prepared::new(settings, &mut watch, check) {
            Ok(prepared) => Ok(Some(prepared)),
            Err(RunError::Source(SourceError::Interrupted)) if watch.stopped => Ok(None),
            // Preconditioning wore the device out.
            Err(RunError::Source(SourceError::Input(_))) => Ok(None),
            Err(error) => Err(format!("preconditioning: {error}")),
        }
    };
    let Some(prepared) = prepare(true)? else { return Ok(()) };
    let checked = load.run(resolved, prepared, &mut watch);
    let checked = outcome(checked, &watch, "checked")?;
    checked.as_ref().map_or(Ok(()), |report| adds_up(report, settings))?;
    let Some(mut plain) = prepare(false)? else { return Ok(()) };
    if draw.random() {
        plain = through_a_file(resolved, &plain)?;
    }
    let mut watch = Watch::new(!activity);
    let other = load.run(resolved, plain, &mut watch);
    same(&checked, &outcome(other, &watch, "not checked")?, "checked and not, activity shown and not")?;
    if let Load::Records(records) = load
        && settings.workload.replay == Replay::Open
        && let Some(prepared) = prepare(false)?
    {
        let mut recorded = Watch::new(false);
        let answered = submitted(resolved, prepared, records, draw, &mut recorded)?;
        same(&checked, &answered, "replayed and submitted")?;
        let Some(prepared) = prepare(false)? else { return Ok(()) };
        let waited = dependent(resolved, prepared, records, &recorded)?;
        same(&answered, &waited, "submitted and replayed with each request waiting for others")?;
        if !draw.random_ratio(1, 3) {
            return Ok(());
        }
        // Background work is seldom under way when a run ends, but often at other moments.
        let until_ns = draw.random_range(0..=2 * records.last().map_or(0, |last| last.time_ns) + 1_000_000);
        let mut shown = [None, None];
        for (activity, shown) in [false, true].into_iter().zip(&mut shown) {
            let Some(prepared) = prepare(false)? else { return Ok(()) };
            *shown = stopped(resolved, prepared, records, until_ns, activity)?;
        }
        same(&shown[0], &shown[1], "stopped, activity shown and not")?;
    }
    Ok(())
}

/// Cuts the power a few times, if the FTL supports power cuts.
fn cut_case(resolved: &Resolved, load: &Load, draw: &mut Draw) -> Result<(), String> {
    let options =
        Options { cuts: Cuts::Random { count: 3, mean: 100 }, seed: draw.random(), flaw: Default::default() };
    let mut looks = 0;
    let mut go_on = |_: &Summary| {
        looks += 1;
        looks <= MOST_LOOKS
    };
    match crash(&resolved.settings, &mut || Ok(load.source(resolved)), &options, &mut go_on) {
        Ok(_) | Err(CrashError::Source(_)) => Ok(()),
        Err(error @ CrashError::Fault { .. }) => Err(format!("power cuts: {error}")),
    }
}

/// Cuts the power of a device drawn from all keys, with those that matter to cuts drawn more often: what a page buffer,
/// a write buffer and blocks that wear out hold back, and what is moved meanwhile. Returns whether it could be cut.
fn cut_device(number: u64, keys: &[Key]) -> Result<bool, String> {
    let mut draw = Draw::seed_from_u64(!number);
    let mut grown = grown(&mut draw, keys);
    let choices: [&[(&str, &str)]; 9] = [
        &[("flash.channels", "1"), ("flash.chips_per_channel", "1"), ("flash.dies_per_chip", "1")],
        &[("flash.cell", "mlc"), ("flash.programming", "word-line"), ("flash.pages_per_block", "16")],
        &[("device.write_buffer", "16KiB"), ("device.power_loss_protection", "true")],
        &[("device.write_buffer", "64KiB"), ("device.write_buffer_policy", "adversarial")],
        &[("flash.endurance", "3")],
        &[("flash.endurance", "12"), ("ftl.spare_blocks", "2")],
        &[("ftl.wear_leveling", "static"), ("ftl.wear_threshold", "3")],
        &[("ftl.reclaim_unit", "superblock")],
        &[("flash.suspend", "program-erase"), ("flash.out_of_order", "true")],
    ];
    for choice in choices {
        if draw.random() {
            grown.try_set(choice.iter().map(|(key, value)| of_text(key, value)).collect());
        }
    }
    grown.try_set(vec![of_text("ftl.power_safe", "true")]);
    let settings = &grown.resolved.settings;
    let mean = [3, 20, 100, 500][draw.random_range(0..4)];
    let options = Options { cuts: Cuts::Random { count: 20, mean }, seed: number, flaw: Default::default() };
    let mut looks = 0;
    let mut go_on = |_: &Summary| {
        looks += 1;
        looks <= 100
    };
    let mut open = || -> Result<Box<dyn Source + Send>, SourceError> {
        Ok(Box::new(Requests::new(settings, number).with_fua(number)))
    };
    match catch_unwind(AssertUnwindSafe(|| crash(settings, &mut open, &options, &mut go_on))) {
        Ok(Ok(summary)) => Ok(summary.cuts > 0),
        Ok(Err(CrashError::Source(_))) => Ok(false),
        Ok(Err(error)) => Err(format!("{error}\n{}", grown.resolved.to_toml())),
        Err(_) => Err(format!("panic\n{}", grown.resolved.to_toml())),
    }
}

fn judge(number: u64, keys: &[Key], folder: &Path) -> Option<String> {
    let mut draw = Draw::seed_from_u64(number);
    let mut grown = grown(&mut draw, keys);
    if number.is_multiple_of(5) {
        // The keys of a controller are seldom all drawn together, so they are set together here.
        let keys =
            [("link", "30MB/s"), ("link_command", "2us"), ("command_time", "20us"), ("unit_time", "3us")];
        let rest = [("cores", "2"), ("latency_write", "90us"), ("queue_depth", "8")];
        let keys = keys.into_iter().chain(rest);
        grown.try_set(keys.map(|(key, value)| of_text(&format!("device.{key}"), value)).collect());
    }
    if number % 5 < 2 {
        // The buffer is off unless its size is drawn, so it is switched on here.
        let pages = [1, 7, 40, 600][draw.random_range(0..4)];
        let policy = ["fifo", "lru", "block"][draw.random_range(0..3)];
        let bytes = format!("{}B", u64::from(grown.resolved.settings.ftl.logical_page_bytes) * pages);
        let protected = ["false", "true"][draw.random_range(0..2)];
        let ahead = if draw.random_range(0..3) == 0 { "256KiB" } else { "0B" };
        let keys = [("", bytes.as_str()), ("_policy", policy), ("_low", "30%")];
        let keys = keys.map(|(key, value)| of_text(&format!("device.write_buffer{key}"), value));
        let others = [("power_loss_protection", protected), ("read_ahead", ahead)];
        let others = others.map(|(key, value)| of_text(&format!("device.{key}"), value));
        grown.try_set([&keys[..], &others].concat());
    }
    if number % 4 == 1 {
        let (cell, bits) = [("mlc", 2), ("tlc", 3), ("qlc", 4)][draw.random_range(0..3)];
        let programming = ["page", "word-line", "word-line"][draw.random_range(0..3)];
        let pages = (grown.resolved.settings.flash.pages_per_block.next_multiple_of(bits)).to_string();
        let reads = ["20us/30us", "20us/30us/55us", "20us/30us/55us/90us"][bits as usize - 2];
        let keys =
            [("cell", cell), ("programming", programming), ("read", reads), ("pages_per_block", &pages)];
        grown.try_set(keys.map(|(key, value)| of_text(&format!("flash.{key}"), value)).to_vec());
    }
    if number % 3 == 2 {
        // So are the energies, with one for each page type.
        let reads = vec!["10uJ"; grown.resolved.settings.flash.cell.bits() as usize - 1];
        let reads = [&reads[..], &["15uJ"]].concat().join("/");
        let keys = [("read", reads.as_str()), ("program", "80uJ"), ("erase", "300uJ"), ("transfer", "12pJ")];
        let others = [("link", "30pJ/B"), ("command", "1uJ"), ("idle", "30mW"), ("active", "1.2W")];
        let keys = keys.into_iter().chain(others);
        grown.try_set(keys.map(|(key, value)| of_text(&format!("energy.{key}"), value)).collect());
    }
    let load = Load::of(&mut grown, &mut draw);
    grown.judged(&folder.join(format!("everything-{number}.toml")), || {
        if matches!(load, Load::Records(_) | Load::Synthetic) && draw.random_range(0..4) == 0 {
            cut_case(&grown.resolved, &load, &mut draw)?;
        }
        run_case(&grown.resolved, &load, &mut draw)
    })
}

#[test]
fn everything_with_everything() {
    let keys = keys();
    campaign("everything", 300, HANGS, |number, folder| judge(number, &keys, folder));
}

/// Regression: only fixed devices and those of one crate were cut, and not one wore out below protected RAM. `make
/// crash` has the long form.
#[test]
fn power_cuts_of_any_device() {
    let keys = keys();
    let (mut cut, mut all) = (0, 0);
    campaign("cuts-of-everything", 200, HANGS, |number, _| {
        let result = cut_device(number, &keys);
        (cut, all) = (cut + u64::from(result == Ok(true)), all + 1);
        result.err()
    });
    println!("{cut} of {all} devices could be cut");
    assert!(cut * 4 > all, "{cut} of {all} devices could be cut");
}

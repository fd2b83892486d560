//! Laws about what the page cache writes: all old data is written at one time, every page counted as written is written
//! once, and benchmarks recreate what they delete.

use crate::clients;
use ftlab_conformance as common;

use clients::{SECOND_NS, run_files};
use common::settings;
use ftlab_core::metrics::Report;
use ftlab_core::sim::Completion;
use ftlab_core::workload::Op;
use ftlab_files::clients::{Clients, FileOp, Kind, Parameters, Step};
use ftlab_files::settings::{Files, Settings};

const PAGE: u64 = 4096;

fn phone(ftl: &str, scheduler: &str) -> Settings {
    let mut settings = Settings::from(settings());
    settings.ftl.kind = ftl.into();
    settings.host.scheduler = scheduler.into();
    settings.files = Files { page_cache_bytes: 8 << 20, ..Files::default() };
    settings
}

fn benchmark(settings: &mut Settings, parameters: Parameters) -> (Report, Vec<Completion>) {
    settings.files.benchmark = Some(parameters);
    let clients = Clients::of_benchmark(settings).unwrap();
    run_files(settings, clients, true)
}

/// Three files that changed at 7 s are 30 s old when the flusher looks at 40 s, and all of them are written then.
#[test]
fn all_that_is_old_goes_at_one_look() {
    let write = |file| Step::Do(FileOp::Write { file, offset: 0, size: PAGE });
    let first =
        (0..3).flat_map(|file| [Step::Do(FileOp::Create(file)), write(file), Step::Do(FileOp::Fsync(file))]);
    let mut script: Vec<Step> = first.collect();
    script.push(Step::Until(7 * SECOND_NS));
    script.extend((0..3).map(write));
    script.push(Step::Until(44 * SECOND_NS));
    let (_, log) = run_files(&phone("page", "noop"), Clients::scripts(vec![script]), true);
    let of = |from_s: u64, to_s: u64| {
        let within = from_s * SECOND_NS..to_s * SECOND_NS;
        log.iter().filter(move |done| done.op == Op::Write && within.contains(&done.arrival_ns))
    };
    // Each fsync writes data, log and commit block.
    assert_eq!(of(0, 7).count(), 9);
    for data in of(0, 7).step_by(3) {
        let covers = |done: &Completion| done.offset <= data.offset && data.offset < done.offset + done.size;
        assert!(of(40, 44).any(covers), "{} is written at 40 s", data.offset);
    }
}

/// Every page counted as written, for whatever reason, and every block of journal and metadata is one page of the
/// device's writes; apart from padding, the device writes nothing else. Under coop, pages join block issues.
#[test]
fn what_is_counted_is_written() {
    let pads = |name: &str| ftlab_core::host::sched::needs(name).merges;
    for scheduler in common::schedulers(true).into_iter().chain(["noop"]).filter(|name| !pads(name)) {
        let mut settings = phone("fast", scheduler);
        let parameters = Parameters {
            file_size: 4 << 20,
            requests: 3000,
            ageing_ns: SECOND_NS,
            ..Parameters::of(Kind::SysBench)
        };
        let (report, log) = benchmark(&mut settings, parameters);
        let cache = report.page_cache.unwrap();
        let system = report.file_system.unwrap();
        let pages: u64 = cache.pages_written.values().sum();
        let written: u64 = log.iter().filter(|done| done.op == Op::Write).map(|done| done.size / PAGE).sum();
        assert_eq!(pages + system.journal_blocks + system.checkpoint_blocks, written, "{scheduler}");
        assert_eq!(cache.pages_written["joined"] > 0, scheduler == "coop", "{:?}", cache.pages_written);
    }
}

/// PostMark's second run recreates its pool of files, using the numbers of the deleted files.
#[test]
fn postmark_makes_its_files_again() {
    let mut settings = phone("page", "noop");
    let parameters =
        Parameters { files: 24, transactions: 40, runs: 3, ageing_runs: 1, ..Parameters::of(Kind::PostMark) };
    let (report, _) = benchmark(&mut settings, parameters);
    let count = |name: &str| report.benchmark.as_ref().unwrap().latency.get(name).map_or(0, |of| of.count);
    let (made, deleted) = (count("create"), count("unlink"));
    assert!(made >= 2 * 24 && made == deleted, "{made} made, {deleted} deleted in two runs");
}

/// Creating the pool of files writes it without reading it; only one transaction follows.
#[test]
fn postmark_writes_its_pool() {
    let mut settings = phone("page", "noop");
    let parameters =
        Parameters { files: 24, transactions: 1, runs: 1, ageing_runs: 0, ..Parameters::of(Kind::PostMark) };
    let bench = benchmark(&mut settings, parameters).0.benchmark.unwrap();
    assert!(bench.bytes_written > 24 * PAGE && bench.bytes_read <= 128 << 10, "{bench:?}");
}

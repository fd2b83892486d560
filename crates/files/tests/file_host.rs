//! The host above the block layer: clients, file system, page cache.
use crate::clients;
use ftlab_conformance as common;

use clients::{SECOND_NS, run_files, small};
use common::Log;
use ftlab_core::flash::Cause;
use ftlab_core::metrics::Report;
use ftlab_core::settings::Endurance;
use ftlab_core::sim::{self, Completion, Prepared};
use ftlab_core::workload::Op;
use ftlab_files::clients::{Clients, FileOp, Kind, Parameters, Step, fio};
use ftlab_files::settings::{Files, Settings};
use proptest::prelude::*;

/// Every benchmark runs in check mode on the paper's FTLs too.
#[test]
fn every_benchmark_runs_checked_on_hybrid_ftls() {
    for ftl in common::hybrids() {
        for kind in KINDS {
            let mut settings = phone(256);
            settings.ftl.kind = ftl.into();
            let clients = benchmark(&mut settings, small(kind));
            let (report, _) = run_files(&settings, clients, true);
            assert!(report.benchmark.unwrap().operations > 50, "{ftl}, {}", kind.name());
            assert!(report.merges.full.count + report.merges.switched.count > 0, "{ftl}, {}", kind.name());
        }
    }
}

/// An observer that stores nothing and asks to be told about all activity.
struct Activity;

impl sim::Observer for Activity {
    fn complete(&mut self, _completion: &Completion) {}

    fn wants_activity(&self) -> bool {
        true
    }
}

/// Whether activity is reported makes no difference to a result. When it is, each flash operation ends at an instant of
/// its own. Regression: the file host acted at each of these instants, so that samples of its memory, and the time at
/// which the flusher continued, depended on whether an observer was watching.
#[test]
fn telling_activity_changes_nothing() {
    for ftl in ["page", "bast"] {
        for kind in KINDS {
            let mut settings = phone(256);
            settings.ftl.kind = ftl.into();
            settings.flash.channels = 2;
            settings.files.page_cache_bytes = 2 << 20;
            let clients = benchmark(&mut settings, small(kind));
            let (plain, _) = run_files(&settings, clients.clone(), false);
            let prepared = Prepared::new(&settings, &mut (), false).unwrap();
            let told = ftlab_files::run(&settings, prepared, clients, &mut Activity).unwrap();
            let texts = [&plain, &told].map(|report| serde_json::to_string(report).unwrap());
            assert!(texts[0] == texts[1], "{ftl}, {}", kind.name());
        }
    }
}

/// Only merges in the measured window are counted: those during ageing are left out, and the time of the counted merges
/// is the whole merge time of the window.
#[test]
fn measured_merges_leave_ageing_out() {
    for (ftl, kind) in [("bast", Kind::SysBench), ("fast", Kind::SysBench), ("fast", Kind::PostMark)] {
        let mut settings = phone(256);
        settings.ftl.kind = ftl.into();
        let clients = benchmark(&mut settings, small(kind));
        let (report, _) = run_files(&settings, clients, false);
        let of = |merges: &ftlab_core::metrics::Merges| {
            let ftlab_core::metrics::Merges { full, partial, switched, padded_switch, cooperative } =
                merges.clone();
            [full, partial, switched, padded_switch, cooperative]
        };
        let measured = report.benchmark.as_ref().unwrap();
        let (all, part) = (of(&report.merges), of(&measured.merges));
        assert!(all.iter().zip(&part).all(|(all, part)| all.count >= part.count));
        let count = |merges: &[ftlab_core::metrics::Merge]| -> u64 { merges.iter().map(|m| m.count).sum() };
        assert!(count(&part) > 0 && count(&part) < count(&all), "{ftl}: {part:?} of {all:?}");
        let busy_ns: u64 = part.iter().map(|merge| merge.busy_ns).sum();
        assert_eq!(busy_ns, measured.flash.busy_ns[Cause::Merge]);
        let copied: u64 = part.iter().map(|merge| merge.pages_copied).sum();
        assert_eq!(copied, measured.flash.programs[Cause::Merge]);
        let ratio = part[0].busy_ns as f64 / measured.flash.busy_ns[Cause::Host] as f64;
        assert_eq!(part[0].cost_ratio, Some(ratio));
        let [whole, stretch] = [&report.flash.programs, &measured.flash.programs].map(|by| by[Cause::Host]);
        assert!(stretch < whole);
    }
}

fn settings() -> Settings {
    common::settings().into()
}

/// Returns the paper's phone, 64 MiB of flash: page-mapped, reads of 45 us, programs of 240 us, erases of 500 us.
fn phone(blocks: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.flash.blocks_per_plane = blocks;
    settings.flash.read = 45_000.into();
    settings.flash.program = 240_000.into();
    settings.flash.erase_ns = 500_000;
    settings.files = Files { page_cache_bytes: 512 << 20, ..Files::default() };
    settings
}

fn benchmark(settings: &mut Settings, parameters: Parameters) -> Clients {
    settings.files.benchmark = Some(parameters);
    Clients::of_benchmark(settings).unwrap()
}

const KINDS: [Kind; 4] = [Kind::PostMark, Kind::SysBench, Kind::FileBench, Kind::DBench];

/// In every benchmark no data is lost or stale and every figure is reported, and the same seed gives the same result to
/// the byte.
#[test]
fn every_benchmark_runs_checked_and_the_same_again() {
    for kind in KINDS {
        let mut settings = phone(256);
        let clients = benchmark(&mut settings, small(kind));
        let (report, _) = run_files(&settings, clients.clone(), true);
        let bench = report.benchmark.as_ref().unwrap();
        let name = kind.name();
        assert!(bench.operations > 50 && bench.throughput_bytes_per_s > 0.0, "{name}: {bench:?}");
        assert!(bench.latency.contains_key("write") && bench.latency.contains_key("fsync"), "{name}");
        assert!(report.file_system.as_ref().unwrap().commits > 5, "{name}");
        let again = run_files(&settings, clients, true).0;
        assert_eq!(serde_json::to_string(&report).unwrap(), serde_json::to_string(&again).unwrap());
        eprintln!(
            "{name}: {} ops, {:.2} MB/s, {} ns",
            bench.operations,
            bench.throughput_bytes_per_s / 1e6,
            report.elapsed_ns
        );
    }
}

const PAGE: u64 = 4096;

fn write(page: u64, pages: u64) -> Step {
    Step::Do(FileOp::Write { file: 0, offset: page * PAGE, size: pages * PAGE })
}

const CREATE: Step = Step::Do(FileOp::Create(0));
const FSYNC: Step = Step::Do(FileOp::Fsync(0));

/// Returns the requests in order of arrival, each as operation, number of pages, arrival and completion.
fn requests(settings: &Settings, script: Vec<Step>) -> Vec<(Op, u64, u64, u64)> {
    let (_, mut log) = run_files(settings, Clients::scripts(vec![script]), true);
    log.sort_by_key(|done| (done.arrival_ns, done.id));
    log.iter().map(|done| (done.op, done.size / PAGE, done.arrival_ns, done.complete_ns)).collect()
}

/// An fsync after an append writes, in order: the data, merged; once that has landed, the transaction (descriptor,
/// block bitmap, group descriptor, inode); a flush; the commit block; a flush.
#[test]
fn an_fsync_after_an_append_writes_data_then_log_then_commit() {
    let settings = phone(256);
    let script = vec![CREATE, write(0, 4), FSYNC, Step::Until(SECOND_NS), write(4, 2), FSYNC];
    let all = requests(&settings, script);
    let second: Vec<_> = all.iter().filter(|request| request.2 >= SECOND_NS).collect();
    let kinds: Vec<_> = second.iter().map(|request| (request.0, request.1)).collect();
    assert_eq!(kinds, [(Op::Write, 2), (Op::Write, 4), (Op::Flush, 0), (Op::Write, 1), (Op::Flush, 0)]);
    for pair in second.windows(2) {
        assert_eq!(pair[0].3, pair[1].2, "each begins when the one before it has completed");
    }
    // 10 us per call, 1 ns per byte; programs of 240 us.
    let begun = SECOND_NS + 10_000 + 2 * PAGE;
    assert_eq!(second[0].2, begun);
    assert_eq!(second[4].3, begun + 7 * 240_000);
}

/// After an overwrite, which changes only the inode's time, an fsync logs descriptor, inode and commit block.
#[test]
fn an_fsync_after_an_overwrite_logs_the_inode() {
    let script = vec![CREATE, write(0, 4), FSYNC, Step::Until(SECOND_NS), write(1, 1), write(3, 1), FSYNC];
    let all = requests(&phone(256), script);
    let kinds: Vec<_> =
        all.iter().filter(|request| request.2 >= SECOND_NS).map(|request| (request.0, request.1)).collect();
    let flush = (Op::Flush, 0);
    assert_eq!(kinds, [(Op::Write, 1), (Op::Write, 1), (Op::Write, 2), flush, (Op::Write, 1), flush]);
    // A second fsync has nothing to write, but flushes the device.
    let all = requests(&phone(256), vec![CREATE, write(0, 4), FSYNC, Step::Until(SECOND_NS), FSYNC]);
    let kinds: Vec<_> =
        all.iter().filter(|request| request.2 >= SECOND_NS).map(|request| request.0).collect();
    assert_eq!(kinds, [Op::Flush]);
    let mut settings = phone(256);
    settings.files.barriers = false;
    let all = requests(&settings, vec![CREATE, write(0, 4), FSYNC, FSYNC]);
    assert!(all.iter().all(|request| request.0 != Op::Flush), "{all:?}");
}

/// Without an fsync the journal commits after 5 s, and data of newly allocated blocks goes first; data that overwrites
/// existing blocks is written when the flusher first looks after that data is 30 s old.
#[test]
fn old_data_is_written_to_the_nanosecond() {
    let changed = 7 * SECOND_NS;
    let script = vec![
        CREATE,
        write(0, 4),
        Step::Until(changed),
        write(2, 1),
        // The file host stops with its clients, so the client stays until 60 s.
        Step::Until(60 * SECOND_NS),
    ];
    let all = requests(&phone(256), script);
    let at = |at: u64| -> Vec<_> {
        all.iter().filter(|request| request.2 == at).map(|request| (request.0, request.1)).collect()
    };
    assert_eq!(all[0].2, 5 * SECOND_NS, "{all:?}");
    assert_eq!(at(5 * SECOND_NS), [(Op::Write, 4)]);
    // The transaction that the change at 7 s began contains only the inode.
    assert_eq!(at(12 * SECOND_NS), [(Op::Write, 2)]);
    // The data is 30 s old at 37 s, and the flusher finds it at 40 s. It also finds the metadata that was committed at
    // 5 s.
    assert_eq!(at(35 * SECOND_NS), []);
    let seen = at(40 * SECOND_NS);
    assert!(seen.contains(&(Op::Write, 1)), "{all:?}");
    let data_written = all.iter().filter(|request| request.2 == 40 * SECOND_NS).count();
    assert!(data_written >= 2, "metadata goes in place as well: {all:?}");
}

/// Writes this many pages at 4 s, on a device with a cache of 1 MiB and an existing file of 200 pages, and returns the
/// requests of the next second: 26 dirty pages are more than 10 % of the cache, 52 more than 20 %.
fn dirtied(pages: u64) -> Vec<(Op, u64, u64, u64)> {
    let mut settings = phone(256);
    settings.files.page_cache_bytes = 1 << 20;
    let mut script = vec![CREATE];
    script.extend((0..20).flat_map(|part| [write(part * 10, 10), FSYNC]));
    script.extend([Step::Until(4 * SECOND_NS), write(0, pages), Step::Until(6 * SECOND_NS)]);
    let all = requests(&settings, script);
    all.into_iter().filter(|request| request.2 >= 4 * SECOND_NS && request.2 < 5 * SECOND_NS).collect()
}

#[test]
fn write_back_begins_above_the_background_ratio() {
    assert_eq!(dirtied(25), []);
    let all = dirtied(26);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].0, all[0].1, all[0].2), (Op::Write, 26, 4 * SECOND_NS));
}

/// A write of 200 pages has to wait for the device when 52 pages are dirty; a write of 51 pages does not wait.
#[test]
fn writers_wait_above_the_dirty_ratio() {
    let elapsed = |pages: u64| {
        let mut settings = phone(256);
        settings.files.page_cache_bytes = 1 << 20;
        let mut script = vec![CREATE];
        script.extend((0..20).flat_map(|part| [write(part * 10, 10), FSYNC]));
        script.extend([Step::Until(4 * SECOND_NS), Step::Begin, write(0, pages), Step::End]);
        let (report, _) = run_files(&settings, Clients::scripts(vec![script]), true);
        let bench = report.benchmark.unwrap();
        assert!(report.page_cache.unwrap().peak_dirty_bytes <= 52 * PAGE);
        bench.elapsed_ns
    };
    assert_eq!(elapsed(51), 10_000 + 51 * PAGE);
    // About 148 pages must have left the cache before the last page fits in.
    assert!(elapsed(200) > 140 * 240_000, "{}", elapsed(200));
}

/// A file's blocks are trimmed after its deletion has been committed, never before, and are free only after that.
#[test]
fn a_deleted_file_is_discarded_after_the_commit() {
    let mut settings = phone(256);
    settings.files.discard = true;
    let script = vec![CREATE, write(0, 8), FSYNC, Step::Do(FileOp::Unlink(0)), Step::Until(10 * SECOND_NS)];
    let all = requests(&settings, script);
    let trim = all.iter().position(|request| request.0 == Op::Trim).expect("there is a trim");
    assert_eq!(all[trim].1, 8);
    let commit = &all[..trim].iter().rev().find(|request| request.0 == Op::Write).unwrap();
    assert_eq!((commit.1, commit.3 <= all[trim].2), (1, true), "{all:?}");
    assert!(all[trim].2 >= 5 * SECOND_NS, "by the commit's timer");
    settings.files.discard = false;
    let script = vec![CREATE, write(0, 8), FSYNC, Step::Do(FileOp::Unlink(0)), Step::Until(10 * SECOND_NS)];
    assert!(requests(&settings, script).iter().all(|request| request.0 != Op::Trim));
}

/// Clean pages that have left the cache are read again; read-ahead turns sequential reads into few requests; a
/// page that is written in part is read first.
#[test]
fn reads_come_from_the_cache_or_the_device() {
    let mut settings = phone(256);
    settings.files.page_cache_bytes = 1 << 20;
    let read =
        |page: u64, pages: u64| Step::Do(FileOp::Read { file: 0, offset: page * PAGE, size: pages * PAGE });
    let mut script = vec![CREATE, write(0, 40), FSYNC, Step::Until(SECOND_NS)];
    script.extend((0..40).map(|page| read(page, 1)));
    assert!(requests(&settings, script.clone()).iter().all(|request| request.0 != Op::Read));
    script.insert(3, Step::Do(FileOp::Forget(0)));
    let all = requests(&settings, script);
    let reads: Vec<u64> =
        all.iter().filter(|request| request.0 == Op::Read).map(|request| request.1).collect();
    assert_eq!(reads.iter().sum::<u64>(), 40);
    assert_eq!(reads, [5, 9, 17, 9]);
    // One byte in the middle of a page is written.
    let script = vec![
        CREATE,
        write(0, 4),
        FSYNC,
        Step::Do(FileOp::Forget(0)),
        Step::Do(FileOp::Write { file: 0, offset: 5000, size: 1 }),
        FSYNC,
    ];
    let all = requests(&settings, script);
    let ops: Vec<_> = all.iter().map(|request| request.0).skip_while(|op| *op != Op::Read).collect();
    assert_eq!(ops, [Op::Read, Op::Write, Op::Write, Op::Flush, Op::Write, Op::Flush]);
}

/// Adjacent requests merge up to the size limit, but not across a boundary; this holds for a trace's requests too.
#[test]
fn requests_merge_within_limit_and_boundary() {
    let sizes = |limit: Option<u64>, boundary: Option<u64>| -> Vec<u64> {
        let mut settings = settings();
        (settings.host.merge_limit, settings.host.merge_boundary) = (limit, boundary);
        // The first request leaves immediately if its successors cannot merge with it.
        let records: Vec<_> = (0..8).map(|lpn| common::pages(0, Op::Write, PAGE, lpn + 2, 1)).collect();
        let (report, log) = common::checked(&settings, records);
        assert_eq!(report.trace.bytes_written, 8 * PAGE);
        log.iter().map(|done| done.size / PAGE).collect()
    };
    assert_eq!(sizes(None, None), [1; 8]);
    assert_eq!(sizes(Some(0), None), [1; 8]);
    assert_eq!(sizes(Some(512 << 10), None), [8]);
    assert_eq!(sizes(Some(3 * PAGE), None), [3, 3, 2]);
    assert_eq!(sizes(Some(512 << 10), Some(4 * PAGE)), [2, 4, 2]);
    assert_eq!(sizes(Some(512 << 10), Some(3 * PAGE)), [1, 3, 3, 1]);
}

/// A request also merges with one that begins where it ends; reads and writes do not merge with each other.
#[test]
fn requests_merge_at_the_front_and_by_operation() {
    let mut settings = settings();
    settings.host.merge_limit = Some(512 << 10);
    let records = vec![
        common::pages(0, Op::Write, PAGE, 5, 1),
        common::pages(0, Op::Write, PAGE, 4, 1),
        common::pages(0, Op::Read, PAGE, 6, 1),
        common::pages(0, Op::Write, PAGE, 3, 1),
    ];
    let (_, log) = common::checked(&settings, records);
    let all: Vec<_> = log.iter().map(|done| (done.op, done.offset / PAGE, done.size / PAGE)).collect();
    assert_eq!(all, [(Op::Write, 3, 3), (Op::Read, 6, 1)]);
}

/// Regression: a newer write merged with a request that came before an older write of the same pages, so that the
/// older data overwrote the newer; in the same way a write overtook a trim, and a read overtook a write.
#[test]
fn requests_do_not_merge_past_what_they_overlap() {
    let mut settings = settings();
    settings.host.merge_limit = Some(512 << 10);
    let all = |requests: [(Op, u64, u64); 3]| -> Vec<(Op, u64, u64)> {
        let records: Vec<_> =
            requests.iter().map(|&(op, first, pages)| common::pages(0, op, PAGE, first, pages)).collect();
        let (_, log) = common::checked(&settings, records);
        log.iter().map(|done| (done.op, done.offset / PAGE, done.size / PAGE)).collect()
    };
    for apart in [
        [(Op::Write, 10, 1), (Op::Write, 12, 2), (Op::Write, 11, 2)],
        [(Op::Write, 10, 1), (Op::Trim, 11, 1), (Op::Write, 11, 1)],
        [(Op::Write, 12, 1), (Op::Trim, 11, 1), (Op::Write, 11, 1)],
        [(Op::Read, 10, 1), (Op::Write, 11, 1), (Op::Read, 11, 1)],
        [(Op::Write, 10, 1), (Op::Read, 11, 1), (Op::Write, 11, 1)],
    ] {
        assert_eq!(all(apart), apart);
    }
    // A request may pass another one in order to merge, if the two do not overlap or both only read.
    let merged = all([(Op::Write, 10, 1), (Op::Write, 30, 1), (Op::Write, 11, 2)]);
    assert_eq!(merged, [(Op::Write, 10, 3), (Op::Write, 30, 1)]);
    let reads = all([(Op::Read, 10, 1), (Op::Read, 12, 2), (Op::Read, 11, 2)]);
    assert_eq!(reads, [(Op::Read, 10, 3), (Op::Read, 12, 2)]);
}

/// In closed replay too, every request that has merged into another lets one more arrive.
#[test]
fn closed_replay_goes_on_after_merges() {
    let mut settings = settings();
    settings.host.merge_limit = Some(512 << 10);
    settings.host.queue_depth = 4;
    settings.workload.replay = ftlab_core::settings::Replay::Closed;
    let records: Vec<_> = (0..100).map(|lpn| common::pages(0, Op::Write, PAGE, lpn, 1)).collect();
    let (report, _) = common::checked(&settings, records);
    assert_eq!(report.trace.bytes_written, 100 * PAGE);
}

/// Regression: creating more files than there are inodes (one for every 16 KiB) caused a panic.
#[test]
fn files_beyond_the_inodes_fill_the_file_system() {
    let mut settings = phone(16);
    settings.files.journal_bytes = Some(256 << 10);
    let script = (0..1000).map(|file| Step::Do(FileOp::Create(file))).collect();
    let prepared = Prepared::new(&settings, &mut (), true).unwrap();
    let full = ftlab_files::run(&settings, prepared, Clients::scripts(vec![script]), &mut ()).unwrap_err();
    assert!(full.to_string().starts_with("the file system is full"), "{full}");
}

/// With the smallest journal and a long load, the ring wraps many times, and commits always find room.
#[test]
fn a_small_journal_turns_many_times() {
    let mut settings = phone(256);
    settings.files.journal_bytes = Some(1 << 18);
    let clients = benchmark(&mut settings, small(Kind::DBench));
    let (report, _) = run_files(&settings, clients, true);
    let files = report.file_system.unwrap();
    assert!(files.journal_blocks > 64 * 4, "{files:?}");
    assert!(files.checkpoint_blocks > 0, "{files:?}");
}

#[derive(Clone, Debug)]
enum Draw {
    Op(FileOp),
    Wait(u64),
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let file = 0u32..3;
    let range = (file.clone(), 0u64..200_000, 1u64..90_000);
    let op = prop_oneof![
        8 => range.clone().prop_map(|(file, offset, size)| Draw::Op(FileOp::Write { file, offset, size })),
        4 => range.prop_map(|(file, offset, size)| Draw::Op(FileOp::Read { file, offset, size })),
        3 => file.clone().prop_map(|file| Draw::Op(FileOp::Fsync(file))),
        1 => file.clone().prop_map(|file| Draw::Op(FileOp::Create(file))),
        1 => file.clone().prop_map(|file| Draw::Op(FileOp::Unlink(file))),
        1 => file.clone().prop_map(|file| Draw::Op(FileOp::Rename(file))),
        1 => file.clone().prop_map(|file| Draw::Op(FileOp::Close(file))),
        1 => file.prop_map(|file| Draw::Op(FileOp::Forget(file))),
        1 => (0u64..9_000_000_000).prop_map(Draw::Wait),
    ];
    proptest::collection::vec(op, 1..60)
}

/// Turns draws into steps, each of which names an existing file.
fn script(draws: Vec<Draw>) -> Vec<Step> {
    let mut there = [false; 3];
    let mut steps = Vec::new();
    let mut time = 0;
    for draw in draws {
        match draw {
            Draw::Wait(ns) => {
                time += ns;
                steps.push(Step::Until(time));
            }
            Draw::Op(op) => {
                let file = match op {
                    FileOp::Write { file, .. } | FileOp::Read { file, .. } => file,
                    FileOp::Fsync(file)
                    | FileOp::Create(file)
                    | FileOp::Unlink(file)
                    | FileOp::Rename(file)
                    | FileOp::Close(file)
                    | FileOp::Forget(file) => file,
                    _ => unreachable!(),
                };
                if !std::mem::replace(&mut there[file as usize], true) && !matches!(op, FileOp::Create(_)) {
                    steps.push(Step::Do(FileOp::Create(file)));
                }
                steps.push(Step::Do(op));
                if matches!(op, FileOp::Unlink(_)) {
                    there[file as usize] = false;
                }
            }
        }
    }
    steps
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever operations several clients perform in a cache that is far too small: every fsync keeps its promise,
    /// every read finds the newest data, the FTL's own invariants hold, and the run ends.
    #[test]
    fn nothing_is_lost_or_stale(
        scripts in proptest::collection::vec(draws(), 1..4),
        cache in prop_oneof![Just(64u64), Just(300), Just(4096)],
        discard in any::<bool>(),
        barriers in any::<bool>(),
        global_tree in any::<bool>(),
        boundary in prop_oneof![Just(None), Just(Some(64 * PAGE)), Just(Some(3 * PAGE))],
        logical in prop_oneof![Just(4096u32), Just(2048)],
    ) {
        let mut settings = phone(64);
        settings.files.page_cache_bytes = cache * PAGE;
        (settings.files.discard, settings.files.barriers) = (discard, barriers);
        settings.files.global_tree = global_tree;
        settings.host.merge_boundary = boundary;
        settings.ftl.logical_page_bytes = logical;
        let clients = Clients::scripts(scripts.into_iter().map(script).collect());
        let (report, log) = run_files(&settings, clients.clone(), true);
        let (again, other) = run_files(&settings, clients, true);
        prop_assert_eq!(log, other);
        prop_assert_eq!(serde_json::to_string(&report).unwrap(), serde_json::to_string(&again).unwrap());
    }
}

fn fio_run(settings: &Settings, text: &str) -> (Report, Vec<Completion>) {
    let jobs = fio::parse("test.fio", text).unwrap();
    run_files(settings, Clients::of_jobs(&jobs, settings, settings.user_bytes()).unwrap(), true)
}

/// Exactly `iodepth` requests are outstanding, and the job ends after its runtime.
#[test]
fn a_direct_job_keeps_its_depth() {
    let mut settings = settings();
    settings.host.merge_limit = Some(0);
    let text = "[a]\nioengine=libaio\nrw=randrw\nrwmixread=70\nbs=4k\nsize=8m\niodepth=5\ndirect=1\nruntime=2\ntime_based\n";
    let (report, log) = fio_run(&settings, text);
    let mut edges: Vec<(u64, i64)> =
        log.iter().flat_map(|done| [(done.arrival_ns, 1), (done.complete_ns, -1)]).collect();
    edges.sort_unstable();
    let (mut depth, mut most) = (0, 0);
    for (_, step) in edges {
        depth += step;
        most = most.max(depth);
    }
    assert_eq!((depth, most), (0, 5));
    let bench = report.benchmark.unwrap();
    assert!(bench.elapsed_ns >= 2 * SECOND_NS && bench.elapsed_ns < 2 * SECOND_NS + 10_000_000);
    let share = bench.bytes_read as f64 / (bench.bytes_read + bench.bytes_written) as f64;
    assert!((share - 0.7).abs() < 0.02, "{share}");
    assert_eq!(bench.operations, log.len() as u64);
    assert!(report.page_cache.is_none() && report.file_system.is_none());
}

/// The rate limit is kept, the file is written exactly once, and an fsync follows each configured number of writes.
#[test]
fn rate_size_and_fsync() {
    let (report, log) =
        fio_run(&settings(), "[a]\nrw=write\nbs=8k\nsize=2m\nrate=512k\nfsync=16\ndirect=1\n");
    let bench = report.benchmark.unwrap();
    assert_eq!(bench.bytes_written, 2 << 20);
    assert!((bench.throughput_bytes_per_s / (512.0 * 1024.0) - 1.0).abs() < 0.02, "{bench:?}");
    let flushes = log.iter().filter(|done| done.op == Op::Flush).count();
    assert_eq!(flushes, 15, "none after the last");
    let mut offsets: Vec<u64> =
        log.iter().filter(|done| done.op == Op::Write).map(|done| done.offset).collect();
    offsets.dedup();
    assert_eq!(offsets, (0..256).map(|at| at * 8192).collect::<Vec<_>>());
}

/// The distributions zipf, pareto and zoned are as skewed as in fio.
#[test]
fn distributions_are_skewed() {
    let counts = |distribution: &str| -> Vec<u64> {
        let text = format!(
            "[a]\nrw=randread\nbs=4k\nsize=4m\ndirect=1\niodepth=4\nruntime=1s\ntime_based\n\
             random_distribution={distribution}\n"
        );
        let mut counts = vec![0; 1024];
        for done in fio_run(&settings(), &text).1 {
            counts[(done.offset / PAGE) as usize] += 1;
        }
        counts
    };
    let top = |mut counts: Vec<u64>, part: usize| {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts[..part].iter().sum::<u64>() as f64 / counts.iter().sum::<u64>() as f64
    };
    // The share h of the blocks takes 1 - h of the accesses.
    let pareto = top(counts("pareto:0.2"), 205);
    assert!((pareto - 0.8).abs() < 0.03, "{pareto}");
    let harmonic = |to: u32| (1..=to).map(|k| f64::from(k).powf(-1.2)).sum::<f64>();
    let zipf = top(counts("zipf:1.2"), 10);
    assert!((zipf - harmonic(10) / harmonic(1024)).abs() < 0.03, "{zipf}");
    let zoned = counts("zoned:60/10:30/20:10/70");
    let sum = zoned.iter().sum::<u64>() as f64;
    let share = |from: usize, to: usize| zoned[from..to].iter().sum::<u64>() as f64 / sum;
    assert!((share(0, 102) - 0.6).abs() < 0.02 && (share(102, 307) - 0.3).abs() < 0.02, "{}", share(0, 102));
}

/// Through the page cache, a job that reads lays its file out first and begins with a cold cache.
#[test]
fn a_buffered_job_begins_cold() {
    let settings = phone(256);
    let (report, log) =
        fio_run(&settings, "[a]\nrw=read\nbs=64k\nsize=4m\n[b]\nrw=randwrite\nsize=1m\nfsync=8\n");
    let bench = report.benchmark.unwrap();
    assert_eq!((bench.bytes_read, bench.bytes_written), (4 << 20, 1 << 20));
    let read: u64 = log.iter().filter(|done| done.op == Op::Read).map(|done| done.size).sum();
    assert_eq!(read, 4 << 20);
    assert_eq!(bench.latency["fsync"].count, 31);
}

/// Regression: the sum of operation times exceeded 64 bits, which caused a panic in a checked build and
/// otherwise let time run backwards.
#[test]
fn simulated_time_has_an_end() {
    let mut settings = phone(256);
    settings.files.operation_ns = Some(8760 * 3600 * SECOND_NS);
    settings.files.writeback_ns = None;
    let mut script = vec![CREATE];
    script.extend((0..600).map(|page| write(page, 1)));
    let prepared = Prepared::new(&settings, &mut (), true).unwrap();
    let late = ftlab_files::run(&settings, prepared, Clients::scripts(vec![script]), &mut ()).unwrap_err();
    assert!(late.to_string().contains("292 years"), "{late}");
}

#[test]
fn jobs_must_fit_the_device() {
    let jobs = fio::parse("a.fio", "[a]\nsize=1g\ndirect=1\n").unwrap();
    assert!(
        Clients::of_jobs(&jobs, &settings(), settings().user_bytes())
            .unwrap_err()
            .starts_with("size: the jobs' files take")
    );
    let jobs = fio::parse("a.fio", "[a]\nsize=1m\n").unwrap();
    let message = Clients::of_jobs(&jobs, &settings(), settings().user_bytes()).unwrap_err();
    assert_eq!(
        message,
        "job \"a\" goes through the page cache, and there is none; write direct=1, or set host.page_cache"
    );
}

/// A worn-out device refuses writes: the clients end, and so does the run, whose result keeps what was measured.
#[test]
fn clients_end_when_the_device_is_worn_out() {
    let mut settings = phone(256);
    settings.flash.endurance = Endurance::Cycles(20);
    let mut parameters = small(Kind::FileBench);
    parameters.duration_ns = 3000 * SECOND_NS;
    let clients = benchmark(&mut settings, parameters);
    let (report, log) = run_files(&settings, clients, true);
    let bench = report.benchmark.unwrap();
    let failed_ns = bench.failed_ns.expect("it wears out long before 3000 s are over");
    assert!(failed_ns < 2000 * SECOND_NS && log.iter().any(|done| done.failed));
    assert!(bench.runs.len() <= 1 && report.elapsed_ns >= failed_ns - SECOND_NS);
}

/// The page cache submits each page as a block I/O of its own, so the number of merged requests is the number of pages
/// minus the number of requests.
#[test]
fn requests_that_merged_are_counted() {
    for (limit, expected) in [(None, 3 + 5), (Some(PAGE), 0)] {
        let mut settings = settings();
        settings.files = Files { page_cache_bytes: 1 << 20, ..Files::default() };
        settings.host.merge_limit = limit;
        let write = FileOp::Write { file: 0, offset: 0, size: 4 * PAGE };
        // The requests: four pages of data; a descriptor and five changed blocks; the commit block.
        let script = [FileOp::Create(0), write, FileOp::Fsync(0)].map(Step::Do);
        let prepared = Prepared::new(&settings, &mut (), true).unwrap();
        let mut log = Log::default();
        let clients = Clients::scripts(vec![script.into()]);
        let report = ftlab_files::run(&settings, prepared, clients, &mut log).expect("every invariant holds");
        let writes: Vec<u64> =
            log.0.iter().filter(|done| done.op == Op::Write).map(|done| done.size / PAGE).collect();
        assert_eq!(report.file_system.unwrap().merged_requests, expected, "{writes:?}");
        assert_eq!(writes.iter().sum::<u64>() - writes.len() as u64, expected);
    }
}

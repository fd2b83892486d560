//! Jobs of fio together: stone walls, files that they share, and what must fit the device.
mod clients;
use ftlab_conformance as common;

use clients::run_files;
use ftlab_core::metrics::Report;
use ftlab_core::sim::Completion;
use ftlab_core::workload::Op;
use ftlab_files::clients::{Clients, fio};
use ftlab_files::settings::{Files, Settings};

fn settings() -> Settings {
    common::settings().into()
}

fn refused(settings: &Settings, text: &str) -> String {
    Clients::of_jobs(&fio::parse("a.fio", text).unwrap(), settings).unwrap_err()
}

fn play(settings: &Settings, text: &str) -> (Report, Vec<Completion>) {
    let jobs = fio::parse("a.fio", text).unwrap();
    run_files(settings, Clients::of_jobs(&jobs, settings).unwrap(), true)
}

/// Returns the first arrival and the last completion of the requests of this size.
fn stretch(log: &[Completion], size: u64) -> (u64, u64) {
    let of = || log.iter().filter(|done| done.size == size);
    (of().map(|done| done.arrival_ns).min().unwrap(), of().map(|done| done.complete_ns).max().unwrap())
}

/// A job behind a stone wall begins when all before it have ended; each stretch between walls is a run of its own.
#[test]
fn a_stone_wall_waits_for_all_jobs_before_it() {
    let text = "[global]\ndirect=1\nsize=256k\nrw=randwrite\n[a]\nbs=4k\nnumjobs=2\n[b]\nbs=8k\nio_size=32k\n\
                [c]\nstonewall\nbs=16k\n[d]\nbs=32k\n[e]\nstonewall\nbs=64k\n";
    let (report, log) = play(&settings(), text);
    let [a, b, c, d, e] = [4, 8, 16, 32, 64].map(|kib| stretch(&log, kib << 10));
    assert!(a.0 < b.1 && b.0 < a.1, "jobs without a wall between them run at the same time");
    assert!(c.0 < d.1 && d.0 < c.1);
    assert!(c.0 >= a.1.max(b.1) && d.0 >= a.1.max(b.1));
    assert!(e.0 >= c.1.max(d.1));
    let bench = report.benchmark.unwrap();
    let written: Vec<u64> = bench.runs.iter().map(|run| run.bytes_written >> 10).collect();
    assert_eq!((bench.clients, written), (6, vec![512 + 32, 512, 256]));
}

/// On a drive, jobs that name one file meet in it; those that name none have files of their own.
#[test]
fn jobs_meet_in_the_file_that_they_name() {
    let places = |named: &str| {
        let text = format!(
            "[global]\n{named}direct=1\nsize=64k\nrw=write\n[a]\nnumjobs=2\n[b]\nstonewall\nrw=read\n"
        );
        let mut settings = settings();
        settings.host.merge_limit = Some(0);
        let (_, log) = play(&settings, &text);
        let of = |op: Op| {
            let mut offsets: Vec<u64> =
                log.iter().filter(|done| done.op == op).map(|done| done.offset / 4096).collect();
            offsets.sort_unstable();
            offsets
        };
        [of(Op::Write), of(Op::Read)]
    };
    let twice: Vec<u64> = (0..16).flat_map(|page| [page, page]).collect();
    assert_eq!(places("filename=/dev/nvme0n1\n"), [twice, (0..16).collect()]);
    assert_eq!(places(""), [(0..32).collect(), (32..48).collect::<Vec<u64>>()]);
}

/// Through the page cache the file is laid out once, whole, if any of the jobs reads from it.
#[test]
fn a_shared_file_is_laid_out_once() {
    let mut settings = settings();
    settings.files = Files { page_cache_bytes: 64 << 20, ..Files::default() };
    let text = "[global]\nfilename=x\nsize=64k\nbs=16k\n[a]\nrw=write\nsize=32k\n[b]\nrw=read\noffset=64k\nstonewall\n";
    let (report, log) = play(&settings, text);
    let read: u64 = log.iter().filter(|done| done.op == Op::Read).map(|done| done.size).sum();
    let bench = report.benchmark.unwrap();
    assert_eq!((bench.bytes_written, bench.bytes_read, read), (32 << 10, 64 << 10, 64 << 10));
}

#[test]
fn the_files_must_fit_the_device() {
    let settings = settings();
    let whole = settings.user_bytes();
    // Jobs that share the drive need it once.
    let shared =
        "[global]\ndirect=1\nfilename=x\nsize=100%\nio_size=64k\n[a]\n[b]\noffset=50%\n[c]\nnumjobs=3\n";
    assert_eq!(play(&settings, shared).0.benchmark.unwrap().clients, 5);
    let apart = "[global]\ndirect=1\nsize=100%\n[a]\n[b]\n";
    let needed = whole / 4096 * 4096 * 2;
    assert_eq!(
        refused(&settings, apart),
        format!("size: the jobs' files take {needed} B together, the device has {whole} B")
    );
    assert!(refused(&settings, "[a]\ndirect=1\nsize=4k\noffset=1t\n").contains("the jobs' files take"));
    let mut cached = settings;
    cached.files = Files { page_cache_bytes: 64 << 20, ..Files::default() };
    assert!(
        refused(&cached, "[a]\nsize=50%\n").contains("job \"a\": size and offset are shares of a drive, and")
    );
}

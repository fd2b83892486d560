//! Jobs of fio together: stone walls, files that they share, and what must fit the device.
use crate::clients;
use ftlab_conformance as common;

use clients::run_files;
use ftlab_core::metrics::Report;
use ftlab_core::sim::Completion;
use ftlab_core::workload::Op;
use ftlab_files::clients::{Client, Clients, FileOp, Moment, Step, fio};
use ftlab_files::settings::{Files, Settings};
use proptest::prelude::*;

fn settings() -> Settings {
    common::settings().into()
}

fn refused(settings: &Settings, text: &str) -> String {
    Clients::of_jobs(&fio::parse("a.fio", text).unwrap(), settings, settings.user_bytes()).unwrap_err()
}

fn play(settings: &Settings, text: &str) -> (Report, Vec<Completion>) {
    let jobs = fio::parse("a.fio", text).unwrap();
    run_files(settings, Clients::of_jobs(&jobs, settings, settings.user_bytes()).unwrap(), true)
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

/// A worker that ends has others end: those of its group, those that run at the same time, or all.
#[test]
fn a_job_that_ends_ends_others() {
    let play = |what: &str| {
        let text = format!(
            "[global]\ndirect=1\nsize=64k\nrw=randread\nexitall\n[a]\nbs=4k\nexit_what={what}\n[b]\nbs=8k\n\
             runtime=1\ntime_based\nthinktime=300ms\nthinktime_blocks=1000\n[c]\nnew_group\nbs=16k\n\
             runtime=500ms\ntime_based\n[d]\nstonewall\nbs=32k\n"
        );
        let log = play(&settings(), &text).1;
        let last_ms = |kib: u64| stretch(&log, kib << 10).1 / 1_000_000;
        let after = log.iter().filter(|done| done.size == 32 << 10).count();
        ([4, 8, 16].map(last_ms), after)
    };
    let [(group, after_group), (running, after_running), (all, after_all)] =
        ["group", "stonewall", "all"].map(play);
    assert_eq!([after_group, after_running, after_all], [2, 2, 0]);
    for [a, b, c] in [group, running, all] {
        assert!(a < 100 && b <= a + 10, "{a} {b} {c}");
    }
    assert!(
        group[2] >= 490 && running[2] <= running[0] + 10 && all[2] <= all[0] + 10,
        "{group:?} {running:?}"
    );
}

/// The workers of a group end when what they do together is steady, and not before the last of them has begun.
#[test]
fn a_group_is_steady_together() {
    let play = |together: &str| {
        let text = format!(
            "[global]\ndirect=1\nsize=1m\nrw=read\ntime_based\nruntime=30\nss=iops:10%\nss_dur=3\n{together}\
             [a]\nbs=4k\nrate_iops=100\n[b]\nbs=8k\nrate_iops=50\nstartdelay=2\n"
        );
        let mut settings = settings();
        settings.host.merge_limit = Some(0);
        let log = play(&settings, &text).1;
        [4, 8].map(|kib| (stretch(&log, kib << 10).1 + 50_000_000) / 100_000_000)
    };
    assert_eq!(play(""), [30, 50], "each for itself");
    assert_eq!(play("group_reporting\n"), [50, 50]);
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

const OPTIONS: &str = "rw rw_sequencer bs bsrange bssplit blockalign iodepth ioengine filename filesize offset \
    offset_increment offset_align size io_size number_ios loops zonemode zonesize zonerange zoneskip rwmixread \
    random_distribution percentage_random norandommap randrepeat fsync fdatasync end_fsync sync verify rate rate_iops \
    rate_process thinktime thinktime_blocks thinktime_blocks_type startdelay ramp_time runtime time_based numjobs \
    stonewall direct kb_base exitall exit_what new_group group_reporting ss ss_dur ss_ramp ss_interval nrfiles \
    openfiles file_service_type iodepth_low iodepth_batch_complete_min verify_backlog verify_backlog_batch";
const VALUES: &str = "0 1 3 7 512 1k 4k 8k,4k ,8k 8k, 4k,8k,64k 12k 64k 1m 1t 4KiB 0x1000 1000 4611686018427387903 1% \
    50% 100% read write trim randread randwrite randread:8 write:4k read:-8k rw randrw trimwrite randtrimwrite strided \
    none dsync crc32c identical issue poisson libaio io_uring psync zipf:1.1 pareto:0.2 normal:20:0.5 \
    zoned:60/10:40/90 zoned:60/10:40/ zoned_abs:50/64k:50/1m 4k/60:16k/40 1k/:2k/,4k 4k-16k 1us 20ms 1h x -1 4k/ : , \
    x:y all sequential random:2 iops:5% bw_slope:1k";

/// Makes lines of a job file, of which many are refused.
fn line() -> impl Strategy<Value = String> {
    let words = |text: &'static str| prop::sample::select(text.split_whitespace().collect::<Vec<_>>());
    let usual = prop_oneof![
        Just("zonemode=strided".into()),
        Just("size=256k".into()),
        Just("rw=randrw".into()),
        Just("[next]".into()),
    ];
    let any = (words(OPTIONS), words(VALUES));
    prop_oneof![1 => usual, 4 => any.prop_map(|(option, value)| format!("{option}={value}"))]
}

/// Takes some steps of a client on a device whose requests take 10 us each; returns offset and size of the requests.
fn steps(client: &mut Client) -> Vec<(u64, u64)> {
    let (mut now_ns, mut outstanding, mut requests) = (0, 0, Vec::new());
    for _ in 0..200 {
        let step = client.next(Moment { now_ns, outstanding });
        match step {
            Step::Start(op) | Step::Do(op) => {
                if let FileOp::Read { offset, size, .. } | FileOp::Write { offset, size, .. } = op {
                    requests.push((offset, size));
                }
                outstanding += u32::from(matches!(step, Step::Start(_)));
            }
            Step::Await => (now_ns, outstanding) = (now_ns + 10_000, outstanding - 1),
            Step::Until(at_ns) => {
                assert!(at_ns >= now_ns, "a wait ends in the future");
                (now_ns, outstanding) = (at_ns, 0);
            }
            Step::Gather | Step::Begin | Step::End => {}
            Step::Done => break,
        }
    }
    requests
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// No job file makes the reader or a worker fail, and what is accepted stays on the device.
    #[test]
    fn any_job_file_is_refused_or_stays_on_the_device(lines in prop::collection::vec(line(), 0..12)) {
        let text = format!("[first]\nsize=1m\ndirect=1\n{}\n", lines.join("\n"));
        let settings = settings();
        if let Ok(jobs) = fio::parse("a.fio", &text)
            && let Ok(mut clients) = Clients::of_jobs(&jobs, &settings, settings.user_bytes())
        {
            for client in clients.clients.iter_mut().take(8) {
                for (offset, size) in steps(client) {
                    prop_assert!(size > 0 && offset + size <= settings.user_bytes(), "{text}: {offset} {size}");
                }
            }
        }
    }
}

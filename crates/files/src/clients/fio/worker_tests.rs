//! Tests of a worker: when it asks for its requests, how many, and what comes between them.

use super::played::*;
use super::{Engine, Extent, Job, Sync, Think, files, parse};
use crate::clients::{FileOp, Step};

#[test]
fn a_ramp_adds_to_the_runtime() {
    let steps = play("rw=randread\nsize=1m\nramp_time=1ms\nruntime=2ms\ntime_based\n");
    assert_eq!(measured(&steps), (10, 20, 1000, 3000));
    // A limit of the rate does not keep the ramp from ending in time.
    let steps = play("rw=randread\nsize=1m\nramp_time=1ms\nruntime=20ms\ntime_based\nrate_iops=100\n");
    assert_eq!(measured(&steps), (1, 2, 1000, 21_000));
}

/// What the ramp transfers is part of `size`, and a job may end within its ramp.
#[test]
fn a_ramp_counts_as_io() {
    let steps = play("rw=read\nsize=64k\nramp_time=1ms\n");
    assert_eq!(measured(&steps), (10, 6, 1000, 1600));
    assert_eq!(requests(&steps)[10].1, 10 * 4096);
    assert_eq!(measured(&play("rw=read\nsize=32k\nramp_time=1ms\n")), (8, 0, 800, 800));
}

/// All of these are what fio 3.33, 3.39 and 3.41 do.
#[test]
fn less_and_more_than_the_file() {
    assert_eq!(offsets("rw=write\nsize=16k\nio_size=8k\n"), [0, 4]);
    assert_eq!(offsets("rw=write\nsize=12k\nio_size=20k\n"), [0, 4, 8, 0, 4]);
    assert_eq!(offsets("size=1m\nio_size=10k\n").len(), 3);
    assert_eq!(offsets("size=10k\nio_size=1k\n").len(), 1);
    for engine in [Engine::Waits, Engine::Queues] {
        let count = |options: &str| requests(&play_as(options, engine, |_| ())).len();
        assert_eq!(count("size=10k\nio_size=30k\n"), 8);
        assert_eq!(count("size=10k\nio_size=16k\n"), 4);
        assert_eq!(count("size=10k\nloops=3\n"), 6);
        assert_eq!(count("rw=randread\nsize=10k\nio_size=30k\n"), 8);
        assert_eq!(count("rw=randread\nsize=64k\nio_size=32k\nloops=3\n"), 24);
        // Loops come before what io_size asks for, which is not asked for once for each.
        assert_eq!(count("rw=randread\nsize=64k\nio_size=96k\nloops=2\n"), 32);
    }
}

#[test]
fn loops_repeat_the_job() {
    assert_eq!(offsets("rw=read\nsize=12k\nio_size=8k\nloops=3\n"), [0, 4, 8, 0, 4, 8]);
    assert_eq!(times("rw=read\nsize=16k\niodepth=3\nloops=2\n"), [0, 0, 0, 100, 200, 200, 200, 300]);
    let steps = play("rw=write\nsize=8k\nloops=3\nbuffered=1\n");
    let forgets = steps.iter().filter(|step| step.1 == Step::Do(FileOp::Forget(0))).count();
    assert_eq!(forgets, 2, "a pass begins with a cold cache");
}

/// An engine that waits has one request at a time, whatever the job asks for.
#[test]
fn the_depth_of_an_engine_that_waits_is_one() {
    let of = |engine| {
        let steps = play_as("rw=read\nsize=16k\niodepth=32\n", engine, |_| ());
        requests(&steps).iter().map(|request| request.0 / US).collect::<Vec<_>>()
    };
    assert_eq!(of(Engine::Waits), [0, 100, 200, 300]);
    assert_eq!(of(Engine::Queues), [0; 4]);
}

#[test]
fn requests_per_second() {
    assert_eq!(times("rw=write\nsize=16k\nrate_iops=1000\n"), [0, 1000, 2000, 3000]);
}

/// Returns the numbers of requests between pauses.
fn bursts(options: &str, issued: bool) -> Vec<usize> {
    let of = |job: &mut Job| job.think.issued = issued;
    let times = requests(&play_on(true, options, Engine::Queues, of)).into_iter().map(|request| request.0);
    let mut bursts: Vec<usize> = vec![0];
    let mut last = 0;
    for time in times {
        if time > last + 40 * LATENCY_NS {
            bursts.push(0);
        }
        *bursts.last_mut().unwrap() += 1;
        last = time;
    }
    bursts
}

/// A pause begins when the requests before it have ended. By default completed requests count, and of those only the
/// ones that fio has looked for, which it does when its queue is full.
#[test]
fn pauses_between_bursts() {
    let issued = |job: &mut Job| job.think = Think { ns: 500 * US, requests: 4, issued: true };
    let steps = play_as("rw=write\nsize=32k\niodepth=4\n", Engine::Queues, issued);
    let given: Vec<u64> = requests(&steps).iter().map(|request| request.0 / US).collect();
    assert_eq!(given, [0, 0, 0, 0, 600, 600, 600, 600]);
    assert_eq!(times("rw=write\nsize=12k\nthinktime=50us\n"), [0, 150, 300]);
    let steps = play("rw=write\nsize=1m\nthinktime=1s\nruntime=2ms\n");
    assert_eq!(measured(&steps), (0, 1, 0, 2000), "the runtime ends a pause");
    let options = "rw=write\nsize=256k\nthinktime=20ms\niodepth=8\nthinktime_blocks=4\n";
    assert_eq!(bursts(options, true), [4; 16]);
    assert_eq!(bursts(options, false)[..6], [11, 1, 10, 1, 10, 1]);
    let deep = "rw=write\nsize=1m\nthinktime=20ms\niodepth=32\nthinktime_blocks=16\n";
    assert_eq!(bursts(deep, false)[..4], [47, 1, 46, 1]);
}

/// What follows writes: one fsync or fdatasync each time the number of writes divides, and never one after another.
#[test]
fn syncs_follow_writes() {
    assert_eq!(
        ops("rw=write\nsize=40k\nfsync=4\n").join(" "),
        "w0 w4 w8 w12 sync w16 w20 w24 w28 sync w32 w36"
    );
    let both = |job: &mut Job| (job.fsync, job.fdatasync) = (4, 3);
    assert_eq!(
        text("rw=write\nsize=40k\n", both),
        "w0 w4 w8 datasync w12 sync w16 w20 datasync w24 w28 sync w32 datasync w36"
    );
    assert_eq!(text("rw=write\nsize=8k\nloops=2\n", |job| job.end_fsync = true), "w0 w4 sync w0 w4 sync");
    // The fsync after the last write of a pass comes with the next pass; the job ends without one.
    assert_eq!(
        ops("rw=write\nsize=16k\nfsync=2\nloops=2\n").join(" "),
        "w0 w4 sync w8 w12 sync w0 w4 sync w8 w12"
    );
    let mixed = ops("rw=rw\nsize=256k\nfsync=1\n");
    for (at, op) in mixed.iter().enumerate() {
        let after_write = at > 0 && mixed[at - 1].starts_with('w');
        assert_eq!(op == "sync", after_write, "as fio from 3.38 on: an fsync follows a write, no read");
    }
    // What is in flight stays in flight.
    let steps = play("rw=write\nsize=24k\niodepth=4\nfsync=3\n");
    let of = |wanted: &dyn Fn(&Step) -> bool| steps.iter().position(|step| wanted(&step.1)).unwrap();
    assert!(of(&|step| *step == Step::Do(FileOp::Fsync(0))) < of(&|step| *step == Step::Await));
}

#[test]
fn writes_that_are_durable() {
    let direct = |sync| text("rw=write\nsize=8k\n", |job| job.sync = sync);
    assert_eq!([direct(Sync::Data), direct(Sync::All)], ["W0 W4", "W0 W4"]);
    let cached = |sync| text("rw=rw\nrwmixread=0\nsize=8k\nbuffered=1\n", |job| job.sync = sync);
    assert_eq!(cached(Sync::Data), "w0 datasync w4 datasync");
    assert_eq!(cached(Sync::All), "w0 sync w4 sync");
}

/// Reads what was written: in the order of the writes, or sorted and each place once where it may come again.
#[test]
fn writes_are_verified() {
    let verified = |options: &str, map: bool| {
        text(options, |job| (job.verify, job.map) = (true, map))
            .split(" sync ")
            .map(String::from)
            .collect::<Vec<_>>()
    };
    let [writes, reads] = &verified("rw=randwrite\nsize=64k\n", true)[..] else { panic!() };
    assert_eq!(writes.replace('w', "r"), *reads);
    let [writes, reads] = &verified("rw=randwrite\nsize=64k\n", false)[..] else { panic!() };
    let mut places: Vec<u64> = writes.split(' ').map(|op| op[1..].parse().unwrap()).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(*reads, places.iter().map(|at| format!("r{at}")).collect::<Vec<_>>().join(" "));
    assert!(places.len() < 16);
    assert_eq!(
        text("rw=write\nsize=8k\nloops=2\n", |job| job.verify = true),
        "w0 w4 sync r0 r4 w0 w4 sync r0 r4"
    );
    // What is read counts as transferred: there is no second pass.
    assert_eq!(text("rw=write\nsize=8k\nio_size=16k\n", |job| job.verify = true), "w0 w4 sync r0 r4");
    let mixed = verified("rw=randrw\nsize=64k\n", true);
    assert_eq!(mixed[0].split(' ').count(), 16);
    assert_eq!(mixed[1].split(' ').count(), mixed[0].matches('w').count());
}

/// Some of what was written is read before the rest is written, as in fio 3.33 to 3.41, and what is left when the pass
/// is over.
#[test]
fn writes_are_verified_early() {
    let of = |more: &str| ops(&format!("rw=write\nsize=36k\nverify=crc32c\n{more}")).join(" ");
    assert_eq!(
        of("verify_backlog=3\n"),
        "w0 w4 w8 r0 r4 r8 w12 w16 w20 r12 r16 r20 w24 w28 w32 sync r24 r28 r32"
    );
    assert_eq!(
        of("verify_backlog=3\nverify_backlog_batch=1\n"),
        "w0 w4 w8 r0 w12 r4 w16 r8 w20 r12 w24 r16 w28 r20 w32 sync r24 r28 r32"
    );
    assert_eq!(
        of("verify_backlog=3\nverify_backlog_batch=5\n"),
        "w0 w4 w8 r0 r4 r8 w12 r12 w16 r16 w20 w24 w28 r20 r24 r28 w32 sync r32"
    );
    // By address, where a block may come again: those written twice count once.
    let again = ops("rw=randwrite\nsize=48k\nnorandommap\nverify=crc32c\nverify_backlog=3\n");
    let reads: Vec<&String> = again.iter().filter(|op| op.starts_with('r')).collect();
    assert!(reads.len() < 12 && again.iter().position(|op| op.starts_with('r')).unwrap() >= 3, "{again:?}");
    // What is in flight is not read.
    let steps = play("rw=write\nsize=48k\niodepth=4\nverify=crc32c\nverify_backlog=3\n");
    assert_eq!(listed(&steps)[..5].join(" "), "w0 w4 w8 w12 r0");
}

/// At full depth a job waits for a number of requests before it issues further ones: as `fio --debug=io` (3.33) says.
#[test]
fn a_full_queue_is_filled_again() {
    let bursts = |more: &str| {
        let options = format!("rw=read\nsize=128k\niodepth=8\n{more}");
        let requests = requests(&play_on(true, &options, Engine::Queues, |_| ()));
        requests.chunk_by(|one, two| one.0 == two.0).map(|burst| burst.len()).collect::<Vec<_>>()
    };
    assert_eq!(bursts("")[..3], [8, 1, 1]);
    assert_eq!(bursts("iodepth_low=2\n"), [8, 6, 6, 6, 6]);
    assert_eq!(bursts("iodepth_batch_complete_min=4\n"), [8, 4, 4, 4, 4, 4, 4]);
    assert_eq!(bursts("iodepth_low=3\niodepth_batch_complete_min=3\n"), [8, 6, 6, 6, 6]);
}

/// The files of a worker take turns: as fio 3.33 to 3.41 do.
#[test]
fn files_take_turns() {
    let of = |more: &str| ops(&format!("rw=write\nsize=48k\nnrfiles=3\n{more}")).join(" ");
    assert_eq!(of(""), "w0 w16 w32 w4 w20 w36 w8 w24 w40 w12 w28 w44");
    assert_eq!(of("file_service_type=roundrobin:2\n"), "w0 w4 w16 w20 w32 w36 w8 w12 w24 w28 w40 w44");
    let whole = "w0 w4 w8 w12 w16 w20 w24 w28 w32 w36 w40 w44";
    assert_eq!(of("file_service_type=sequential\n"), whole);
    assert_eq!(of("openfiles=1\n"), whole);
    assert_eq!(of("openfiles=2\n"), "w0 w16 w4 w20 w8 w24 w12 w28 w32 w36 w40 w44");
    assert_eq!(of("io_size=20k\nloops=2\n"), "w0 w16 w32 w4 w20 w36 w8 w24 w40 w12");
    let random = ops("rw=randwrite\nsize=48k\nnrfiles=3\nfile_service_type=random\nloops=2\n");
    for pass in random.chunks(12) {
        let mut places = pass.to_vec();
        places.sort_unstable_by_key(|op| op[1..].parse::<u64>().unwrap());
        assert_eq!(places.join(" "), whole, "each block once");
    }
}

#[test]
fn a_steady_load_ends() {
    let of = |more: &str| {
        let job = "rw=read\nsize=1m\ntime_based\nruntime=20s\nrate_iops=100\n";
        let (_, requests, begin_us, end_us) = measured(&play(&format!("{job}{more}")));
        (requests, begin_us / 1000, end_us / 1000)
    };
    assert_eq!(of("ss=iops:5%\nss_dur=3\n"), (301, 0, 3000));
    assert_eq!(of("ss_dur=3\n"), (301, 0, 3000), "a slope of nothing");
    assert_eq!(of("ss=bw:4k\nss_dur=3\nss_ramp=2\n"), (601, 0, 6000));
    assert_eq!(of("ss=bw_slope:4k\nss_dur=3\nramp_time=2\n"), (301, 2000, 5000), "the ramp does not count");
    assert_eq!(of("ss=iops:5%\nss_dur=6\nss_interval=2\n"), (601, 0, 6000));
    assert_eq!(of("ss=iops:0\nss_dur=3\n"), (2000, 0, 20_000), "below nothing there is nothing");
    // A pause is not an end: seconds without requests count.
    assert_eq!(of("ss=iops:10%\nss_dur=3\nthinktime=4s\nthinktime_blocks=150\n").2, 20_000);
}

#[test]
fn a_number_of_requests() {
    let count = |number, options: &str| {
        requests(&play_as(options, Engine::Queues, |job| job.number_ios = number)).len()
    };
    assert_eq!(count(5, "rw=randread\nsize=64k\n"), 5);
    assert_eq!(count(9, "rw=randread\nsize=16k\nio_size=64k\n"), 9);
    assert_eq!(count(9, "rw=randread\nsize=16k\nloops=3\n"), 12, "of all loops");
}

/// Workers of a job begin one after another in the file, and a job may begin late.
#[test]
fn offsets_and_delays() {
    let mut jobs = parse("a.fio", "[a]\ndirect=1\nfilename=x\nsize=64k\nnumjobs=3\noffset=1m\n").unwrap();
    jobs[0].offset_increment = Extent::Bytes(100 << 10);
    let firsts = |jobs: &[Job]| {
        files(jobs, 16 << 20).unwrap().iter().map(|place| place.first / KIB).collect::<Vec<_>>()
    };
    assert_eq!(firsts(&jobs), [1024, 1124, 1224]);
    (jobs[0].offset, jobs[0].offset_increment) = (Extent::Bytes(0), Extent::Percent(10));
    assert_eq!(firsts(&jobs), [0, 1640, 3280], "shares are rounded up");
    (jobs[0].offset_align, jobs[0].offset_increment) = (64 << 10, Extent::Percent(10));
    assert_eq!(firsts(&jobs), [0, 1664, 3328]);
    let steps = play_as("rw=read\nsize=8k\n", Engine::Waits, |job| job.delay_ns = 5_000 * US);
    assert_eq!(requests(&steps).iter().map(|request| request.0 / US).collect::<Vec<_>>(), [5000, 5100]);
}

/// Requests of a Poisson process have the rate that was asked for, and no even pace.
#[test]
fn a_poisson_process() {
    let steps = play_as("rw=read\nsize=4m\nrate_iops=1000\n", Engine::Queues, |job| job.poisson = true);
    let times: Vec<u64> = requests(&steps).iter().map(|request| request.0).collect();
    let mean_ns = times[times.len() - 1] as f64 / (times.len() - 1) as f64;
    assert!((mean_ns / 1e6 - 1.0).abs() < 0.15, "{mean_ns}");
    let short = times.windows(2).filter(|pair| pair[1] - pair[0] < 500_000).count() as f64;
    assert!((0.25..0.55).contains(&(short / times.len() as f64)), "{short}");
}

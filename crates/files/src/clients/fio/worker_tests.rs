//! Tests of a worker alone: what it asks for, and when, of a device on which every request takes the same time.

use std::collections::VecDeque;

use super::{clients, files, parse};
use crate::clients::{FileOp, Moment, Step};

const LATENCY_NS: u64 = 100_000;
const US: u64 = 1_000;
const KIB: u64 = 1 << 10;

/// Plays the only worker of a job that bypasses the page cache; returns its steps with their times.
fn play(options: &str) -> Vec<(u64, Step)> {
    let jobs = parse("a.fio", &format!("[a]\ndirect=1\n{options}")).unwrap();
    let places = files(&jobs, 16 << 20).unwrap();
    let mut clients = clients(&jobs, &places, 1).clients;
    let (mut now_ns, mut ends, mut steps) = (0, VecDeque::new(), Vec::new());
    loop {
        while ends.front().is_some_and(|&end| end <= now_ns) {
            ends.pop_front();
        }
        let step = clients[0].next(Moment { now_ns, outstanding: ends.len() as u32 });
        steps.push((now_ns, step));
        match step {
            Step::Start(_) => ends.push_back(now_ns + LATENCY_NS),
            Step::Do(op) => now_ns += op.kind().map_or(0, |_| LATENCY_NS),
            Step::Await => now_ns = *ends.front().expect("a worker waits for a request"),
            Step::Until(at_ns) => now_ns = now_ns.max(at_ns),
            Step::Gather | Step::Begin | Step::End => {}
            Step::Done => return steps,
        }
    }
}

/// Returns the time, the offset and the size of each request of the load.
fn requests(steps: &[(u64, Step)]) -> Vec<(u64, u64, u64)> {
    let of = |&(now_ns, step): &(u64, Step)| match step {
        Step::Start(FileOp::Read { offset, size, .. } | FileOp::Write { offset, size, .. }) => {
            Some((now_ns, offset, size))
        }
        _ => None,
    };
    steps.iter().filter_map(of).collect()
}

fn offsets(options: &str) -> Vec<u64> {
    requests(&play(options)).iter().map(|request| request.1 / KIB).collect()
}

fn times(options: &str) -> Vec<u64> {
    requests(&play(options)).iter().map(|request| request.0 / US).collect()
}

/// Returns the numbers of requests before and after the measurement begins, and the times of its begin and end in us.
fn measured(steps: &[(u64, Step)]) -> (usize, usize, u64, u64) {
    let at = |wanted: Step| steps.iter().position(|&(_, step)| step == wanted).expect("it is there once");
    let (begin, end) = (at(Step::Begin), at(Step::End));
    let count = |steps| requests(steps).len();
    (count(&steps[..begin]), count(&steps[begin..]), steps[begin].0 / US, steps[end].0 / US)
}

#[test]
fn a_ramp_adds_to_the_runtime() {
    let steps = play("rw=randread\nsize=1m\nramp_time=1ms\nruntime=2ms\ntime_based\n");
    assert_eq!(measured(&steps), (10, 20, 1000, 3000));
    // A limit of the rate does not keep the ramp from ending in time.
    let steps = play("rw=randread\nsize=1m\nramp_time=1ms\nruntime=20ms\ntime_based\nrate_iops=100\n");
    assert_eq!(measured(&steps), (1, 2, 1000, 21_000));
}

/// What the ramp transfers is not part of `size`, and a sequential job goes on where it was.
#[test]
fn a_ramp_does_not_count_as_io() {
    let steps = play("rw=read\nsize=64k\nramp_time=1ms\n");
    assert_eq!(measured(&steps), (10, 16, 1000, 2600));
    assert_eq!(requests(&steps)[10].1, 10 * 4096);
}

#[test]
fn a_part_of_the_file() {
    assert_eq!(offsets("rw=read\noffset=1m\nsize=12k\n"), [1024, 1028, 1032]);
    let random = offsets("rw=randread\noffset=1m\nsize=16k\nio_size=1m\n");
    assert_eq!((random.len(), random.iter().min(), random.iter().max()), (256, Some(&1024), Some(&1036)));
    // The drive has 16 MiB.
    assert_eq!(offsets("rw=read\nbs=1m\noffset=50%\nsize=25%\n"), [8192, 9216, 10_240, 11_264]);
}

#[test]
fn less_and_more_than_the_file() {
    assert_eq!(offsets("rw=write\nsize=16k\nio_size=8k\n"), [0, 4]);
    assert_eq!(offsets("rw=write\nsize=12k\nio_size=20k\n"), [0, 4, 8, 0, 4]);
}

/// As fio 3.33 does: the whole is `io_size` times `loops`, and a pass ends with the file and its requests.
#[test]
fn loops_repeat_the_job() {
    assert_eq!(offsets("rw=read\nsize=12k\nio_size=8k\nloops=3\n"), [0, 4, 8, 0, 4, 8]);
    assert_eq!(times("rw=read\nsize=16k\niodepth=3\nloops=2\n"), [0, 0, 0, 100, 200, 200, 200, 300]);
    let steps = play("rw=write\nsize=8k\nloops=3\nbuffered=1\n");
    let forgets = steps.iter().filter(|step| step.1 == Step::Do(FileOp::Forget(0))).count();
    assert_eq!(forgets, 2, "a pass begins with a cold cache");
}

#[test]
fn sizes_are_mixed() {
    let requests = requests(&play("rw=randread\nsize=256k\nio_size=64m\nbssplit=4k/60:16k/30:64k/10\n"));
    let share = |size: u64| {
        requests.iter().filter(|request| request.2 == size).count() as f64 / requests.len() as f64
    };
    for (size, expected) in [(4 * KIB, 0.6), (16 * KIB, 0.3), (64 * KIB, 0.1)] {
        assert!((share(size) - expected).abs() < 0.02, "{size}: {}", share(size));
    }
    assert!(requests.iter().all(|&(_, offset, size)| offset % 4096 == 0 && offset + size <= 256 * KIB));
    assert!(requests.iter().any(|&(_, offset, size)| offset % size != 0), "aligned to the smallest only");
}

#[test]
fn addresses_are_aligned_as_asked() {
    let requests = requests(&play("rw=randread\nsize=16k\nio_size=4m\nblockalign=512\n"));
    let mut places: Vec<u64> = requests.iter().map(|request| request.1).collect();
    places.sort_unstable();
    places.dedup();
    // All multiples of 512 from which 4 KiB fit.
    assert_eq!(places, (0..=24).map(|place| place * 512).collect::<Vec<_>>());
}

#[test]
fn requests_per_second() {
    assert_eq!(times("rw=write\nsize=16k\nrate_iops=1000\n"), [0, 1000, 2000, 3000]);
}

/// A pause begins when the requests before it have ended.
#[test]
fn pauses_between_bursts() {
    let given = times("rw=write\nsize=32k\niodepth=4\nthinktime=500\nthinktime_blocks=4\n");
    assert_eq!(given, [0, 0, 0, 0, 600, 600, 600, 600]);
    assert_eq!(times("rw=write\nsize=12k\niodepth=4\nthinktime=50us\n"), [0, 150, 300]);
    let steps = play("rw=write\nsize=1m\nthinktime=1s\nruntime=2ms\n");
    assert_eq!(measured(&steps), (0, 1, 0, 2000), "the runtime ends a pause");
}

#[test]
fn zones_take_turns() {
    let strided = |options: &str| offsets(&format!("size=64k\nzonemode=strided\n{options}"));
    assert_eq!(strided("rw=read\nzonesize=4k\nzoneskip=12k\nio_size=20k\n"), [0, 16, 32, 48, 0]);
    let half = "rw=read\nzonesize=8k\nzonerange=16k\nzoneskip=16k\nio_size=20k\n";
    assert_eq!(strided(half), [0, 4, 32, 36, 0]);
    let twice = "rw=read\nzonesize=16k\nzonerange=8k\nzoneskip=8k\nio_size=24k\n";
    assert_eq!(strided(twice), [0, 4, 0, 4, 16, 20]);
    let far = "rw=read\nzonesize=4k\nzoneskip=1g\nio_size=12k\noffset=1m\n";
    assert_eq!(strided(far), [1024, 1024, 1024]);
    let mut random = strided("rw=randread\nzonesize=1t\nzonerange=16k\nio_size=4m\noffset=1m\n");
    random.sort_unstable();
    random.dedup();
    assert_eq!(random, [1024, 1028, 1032, 1036]);
}

//! A worker alone, on a device on which every request takes the same time: what it asks for, and when.

use std::collections::VecDeque;

use super::{Engine, Job, clients, files, parse};
use crate::clients::{FileOp, Moment, Step};

pub(super) const LATENCY_NS: u64 = 100_000;
pub(super) const US: u64 = 1_000;
pub(super) const KIB: u64 = 1 << 10;

/// Plays the only worker of a job that bypasses the page cache; returns its steps with their times.
pub(super) fn play(options: &str) -> Vec<(u64, Step)> {
    play_as(options, Engine::Queues, |_| ())
}

/// Plays it with this engine, and with fields of the job that are set here.
pub(super) fn play_as(options: &str, engine: Engine, set: impl Fn(&mut Job)) -> Vec<(u64, Step)> {
    play_on(false, options, engine, set)
}

/// Plays it on a device that serves one request at a time, or all of them.
pub(super) fn play_on(
    serial: bool,
    options: &str,
    engine: Engine,
    set: impl Fn(&mut Job),
) -> Vec<(u64, Step)> {
    let mut jobs = parse("a.fio", &format!("[a]\ndirect=1\n{options}")).unwrap();
    jobs[0].engine = engine;
    set(&mut jobs[0]);
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
            Step::Start(_) => {
                let free_ns = if serial { ends.back().copied().unwrap_or(now_ns) } else { now_ns };
                ends.push_back(free_ns + LATENCY_NS);
            }
            Step::Do(op) => now_ns += op.kind().map_or(0, |_| LATENCY_NS),
            Step::Await => now_ns = *ends.front().expect("a worker waits for a request"),
            Step::Until(at_ns) => now_ns = now_ns.max(at_ns),
            Step::Gather | Step::Begin | Step::End => {}
            Step::Done => return steps,
        }
    }
}

/// Returns the operations of the load, as "r4 w8:16 sync": reads, writes and trims with their offset in KiB and, if it
/// is not 4 KiB, their size.
pub(super) fn listed(steps: &[(u64, Step)]) -> Vec<String> {
    let load = steps.iter().skip_while(|step| !matches!(step.1, Step::Start(_)) && step.1 != Step::Begin);
    let of = |&(_, step): &(u64, Step)| {
        let (Step::Start(op) | Step::Do(op)) = step else { return None };
        let (letter, offset, size) = match op {
            FileOp::Read { offset, size, .. } => ('r', offset, size),
            FileOp::Write { offset, size, .. } => ('w', offset, size),
            FileOp::WriteThrough { offset, size, .. } => ('W', offset, size),
            FileOp::Trim { offset, size, .. } => ('t', offset, size),
            FileOp::Fsync(_) => return Some("sync".into()),
            FileOp::Fdatasync(_) => return Some("datasync".into()),
            _ => return None,
        };
        let size = if size == 4096 { String::new() } else { format!(":{}", size / KIB) };
        Some(format!("{letter}{}{size}", offset / KIB))
    };
    load.filter_map(of).collect()
}

/// Returns the operations that an engine that waits makes of a job.
pub(super) fn ops(options: &str) -> Vec<String> {
    listed(&play_as(options, Engine::Waits, |_| ()))
}

pub(super) fn text(options: &str, set: impl Fn(&mut Job)) -> String {
    listed(&play_as(options, Engine::Waits, set)).join(" ")
}

/// Returns the time, the offset and the size of each request of the load.
pub(super) fn requests(steps: &[(u64, Step)]) -> Vec<(u64, u64, u64)> {
    let of = |&(now_ns, step): &(u64, Step)| match step {
        Step::Start(FileOp::Read { offset, size, .. } | FileOp::Write { offset, size, .. }) => {
            Some((now_ns, offset, size))
        }
        _ => None,
    };
    steps.iter().filter_map(of).collect()
}

pub(super) fn offsets(options: &str) -> Vec<u64> {
    requests(&play(options)).iter().map(|request| request.1 / KIB).collect()
}

pub(super) fn times(options: &str) -> Vec<u64> {
    requests(&play(options)).iter().map(|request| request.0 / US).collect()
}

/// Returns the numbers of requests before and after the measurement begins, and the times of its begin and end in us.
pub(super) fn measured(steps: &[(u64, Step)]) -> (usize, usize, u64, u64) {
    let at = |wanted: Step| steps.iter().position(|&(_, step)| step == wanted).expect("it is there once");
    let (begin, end) = (at(Step::Begin), at(Step::End));
    let count = |steps| requests(steps).len();
    (count(&steps[..begin]), count(&steps[begin..]), steps[begin].0 / US, steps[end].0 / US)
}

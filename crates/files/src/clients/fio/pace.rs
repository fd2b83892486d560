//! When a fio job may issue its next request: rate limits and pauses.

use super::streams::Streams;
use super::{Job, Mix};

/// The pace of a worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    /// When the load began or, after the ramp, when it began to be measured.
    pub begun_ns: u64,
    /// Bytes requested since then, by direction.
    bytes: [u64; 3],
    /// When a Poisson process allows the next request of each direction, ns from then.
    due_ns: [u64; 3],
    /// Number of requests whose completion the worker has seen: as fio, it looks only when it has to wait.
    pub completed: u64,
    /// Whether a request has been issued since the last look at pauses, and the number at the last pause.
    asked: bool,
    counted: u64,
}

impl Pace {
    /// Begins anew at this time.
    pub fn begin(&mut self, now_ns: u64) {
        *self = Pace { begun_ns: now_ns, ..Pace::default() };
    }

    /// Counts a request.
    pub fn request(&mut self, job: &Job, way: usize, size: u64, stream: &mut Streams) {
        self.bytes[way] += size;
        self.asked = true;
        if job.poisson && job.rate[way] > 0 {
            let mean_ns = job.block[way].least() as f64 * 1e9 / job.rate[way] as f64;
            self.due_ns[way] = self.due_ns[way].saturating_add((mean_ns * stream.interval()) as u64);
        }
    }

    /// Returns whether it is time for a pause, after this many requests, and takes note of it.
    pub fn pauses(&mut self, job: &Job, requests: u64) -> bool {
        if !std::mem::take(&mut self.asked) || job.think.ns == 0 {
            return false;
        }
        let count = if job.think.issued { requests } else { self.completed };
        let due = count >= self.counted.saturating_add(job.think.requests);
        if due {
            self.counted = count;
        }
        due
    }

    /// Returns the direction of the next request, if this one is drawn, and how long it has to wait for its rate, ns: a
    /// direction that is early makes way for the other one of a mixed job.
    pub fn next(&self, job: &Job, way: usize, now_ns: u64) -> (usize, u64) {
        let wait_ns = |way: usize| self.allowed_ns(job, way).saturating_sub(now_ns);
        let other = way ^ 1;
        let mixed = matches!(job.mix, Mix::Mixed(reads) if [reads, 100 - reads][other] > 0);
        if mixed && wait_ns(other) < wait_ns(way) { (other, wait_ns(other)) } else { (way, wait_ns(way)) }
    }

    /// Returns the time at which the rate limit allows the next request of a direction.
    fn allowed_ns(&self, job: &Job, way: usize) -> u64 {
        let ns = match job.rate[way] {
            0 => return 0,
            _ if job.poisson => self.due_ns[way],
            rate => (u128::from(self.bytes[way]) * 1_000_000_000 / u128::from(rate)) as u64,
        };
        self.begun_ns.saturating_add(ns)
    }
}

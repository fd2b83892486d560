//! How much a fio job has asked for, and when its passes and the job itself are over.

use super::stream::{TRIM, WRITE};
use super::{Engine, Job, Mix, Pattern, Sizes};

/// What a worker has asked for so far.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Bytes that the worker's part of the file has.
    size: u64,
    /// Number of passes that `loops` still asks for.
    loops: u64,
    /// Bytes requested, by direction, since the load began: the ramp's too.
    bytes: [u64; 3],
    /// Number of requests by direction, and of all requests and their bytes (those that verify too), since the load
    /// began to be measured.
    pub issued: [u64; 3],
    pub requests: u64,
    moved: u64,
    /// Bytes requested in this pass, and those of them that an engine would have queued.
    pass: u64,
    queued: u64,
    /// Whether this pass has ended because it found no further request.
    pub exhausted: bool,
}

impl Tally {
    /// Makes the tally of a worker whose part of the file has this many bytes.
    pub fn new(job: &Job, size: u64) -> Tally {
        Tally {
            size,
            loops: job.loops.saturating_sub(1),
            bytes: [0; 3],
            issued: [0; 3],
            requests: 0,
            moved: 0,
            pass: 0,
            queued: 0,
            exhausted: false,
        }
    }

    /// Counts a request.
    pub fn request(&mut self, way: usize, size: u64) {
        self.bytes[way] += size;
        self.issued[way] += 1;
        self.pass += size;
        // A trim is a call that the job waits for.
        self.queued += if way == TRIM { 0 } else { size };
        self.extra(size);
    }

    /// Counts a request that verifies another.
    pub fn extra(&mut self, size: u64) {
        self.requests += 1;
        self.moved += size;
    }

    /// Begins to measure: the ramp counts only for `size`.
    pub fn measure(&mut self) {
        (self.issued, self.requests, self.moved) = ([0; 3], 0, 0);
    }

    /// Returns the bytes that the job transfers in one of its loops.
    fn limit(&self, job: &Job) -> u64 {
        job.io_size.unwrap_or(self.size)
    }

    /// Returns whether the pass is over, though there may be more to find; `map`: whether it touches each block once.
    pub fn is_over(&self, job: &Job, map: bool) -> bool {
        // fio counts what its engines queue; to one that waits, a pass ends only with its file.
        let through = job.engine != Engine::Waits && self.queued >= self.pass_bytes(job, map);
        if job.time_based { through && job.verify } else { through || self.reached(job) }
    }

    /// Returns the number of queued bytes after which a pass is over.
    fn pass_bytes(&self, job: &Job, map: bool) -> u64 {
        let longer = match (job.pattern, job.mix) {
            (Pattern::Random, Mix::Reads | Mix::Trims) => false,
            (Pattern::Random, _) => !map,
            (Pattern::Sequential, Mix::Mixed(_)) => !job.verify,
            (Pattern::Sequential, _) => false,
        };
        let bytes = if longer { self.size.max(job.io_size.unwrap_or(0)) } else { self.size };
        let trims = if job.mix == Mix::TrimWrites { self.limit(job).saturating_mul(job.loops) } else { 0 };
        bytes.saturating_add(trims)
    }

    /// Returns whether the job has issued all that it has to.
    fn reached(&self, job: &Job) -> bool {
        let [read, written, trimmed] = self.bytes;
        let bytes = match job.mix {
            Mix::Reads => read,
            Mix::Writes | Mix::TrimWrites => written,
            Mix::Trims => trimmed,
            Mix::Mixed(_) => read + written,
        };
        bytes >= self.limit(job).saturating_mul(job.loops) || self.counted_out(job)
    }

    /// Returns whether the job has made as many requests as `number_ios` allows.
    fn counted_out(&self, job: &Job) -> bool {
        let each = if job.mix == Mix::TrimWrites { 2 } else { 1 };
        let most = job.number_ios.saturating_mul(job.loops).saturating_mul(each);
        most > 0 && self.requests >= most
    }

    /// Returns whether a pass follows the one that has ended, and begins it.
    pub fn goes_on(&mut self, job: &Job) -> bool {
        let most = job.block.iter().map(Sizes::most).max().unwrap_or(0);
        let left = self.limit(job).saturating_sub(self.moved);
        let more =
            left >= most.max(1) && !self.counted_out(job) && (job.io_size.is_some() || !self.exhausted);
        // A pass without requests would not be the last.
        let goes_on = self.pass > 0 && (job.time_based || self.loops > 0 || more);
        self.loops = self.loops.saturating_sub(1);
        (self.pass, self.queued, self.exhausted) = (0, 0, false);
        goes_on
    }

    /// Returns the fsync that a number of writes asks for.
    pub fn is_due(&self, every: u64) -> bool {
        every > 0 && self.issued[WRITE].is_multiple_of(every)
    }
}

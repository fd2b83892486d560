//! Jobs in fio's own language: a subset of its options, read from a job file.
//!
//! Source: fio's HOWTO. A job is a closed loop with `iodepth` requests outstanding: with `direct=1` they bypass the
//! page cache, otherwise they go through it, one call at a time, which is in effect what fio's buffered engines do.
//! Sizes without a unit are bytes, and units are fio's own (k is 1024; kb_base, which could change that, is not read
//! here); times without a unit are seconds. Options that change nothing here (engine, names, reports) are skipped; any
//! other unknown option is an error.

mod parse;
mod passed;
mod worker;

pub use parse::{JobError, parse};
pub use passed::passed_over;
pub use worker::Worker;
pub(crate) use worker::clients;

/// Order of a job's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// In address order, starting again at the beginning of the file when its end is reached.
    Sequential,
    /// At random addresses, drawn from the job's distribution.
    Random,
}

/// fio's `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform.
    Random,
    /// Zipf with this theta.
    Zipf(f64),
    /// Self-similar (Gray et al.) with this h: fio's pareto.
    Pareto(f64),
    /// For each zone, in address order: its share of the accesses and its share of the file, ppm.
    Zoned(Vec<(u64, u64)>),
}

/// One section of a job file, including the global options that apply to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The section's name.
    pub name: String,
    /// Order of the job's requests.
    pub pattern: Pattern,
    /// Share of reads, percent: 100, 0 or `rwmixread`.
    pub read_percent: u64,
    /// Bytes of each read, and of each write.
    pub block: [u64; 2],
    /// Number of requests outstanding.
    pub iodepth: u32,
    /// Bytes of the file, which is also the number of bytes that one pass transfers.
    pub size: u64,
    /// How random addresses are distributed.
    pub distribution: Distribution,
    /// Number of writes after which an fsync follows; 0: no fsyncs.
    pub fsync: u64,
    /// Limit in bytes per second, for reads and for writes; 0: no limit.
    pub rate: [u64; 2],
    /// Time after which the job ends, ns.
    pub runtime_ns: Option<u64>,
    /// Whether the job continues past `size` until the runtime is over.
    pub time_based: bool,
    /// Number of workers of this job, each with a file of its own.
    pub numjobs: u32,
    /// Whether the job bypasses the page cache.
    pub direct: bool,
}

//! Jobs in fio's own language: a subset of its options, read from a job file.
//!
//! Source: fio's HOWTO. A job is a closed loop with `iodepth` requests outstanding: with `direct=1` they bypass the
//! page cache, otherwise they go through it, one call at a time, which is in effect what fio's buffered engines do.
//! Jobs whose `filename` is the same use one file, as on a drive; a job without it makes a file for each worker. Sizes
//! without a unit are bytes, and units are fio's own (k is 1024; kb_base, which could change that, is not read here);
//! times without a unit are seconds, except for `thinktime`, whose are us. Options that change nothing here (engine,
//! reports, logs) are skipped; any other unknown option is an error.

mod addresses;
mod files;
mod parse;
#[cfg(test)]
mod parse_tests;
mod passed;
mod values;
mod worker;
#[cfg(test)]
mod worker_tests;

pub(crate) use files::files;
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

/// A part of a drive or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// This number of bytes.
    Bytes(u64),
    /// This share of the whole, percent.
    Percent(u64),
}

/// Sizes of the requests of one direction, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All have this size.
    One(u64),
    /// fio's `bssplit`: each size, and the number (out of 100) below which a draw selects it.
    Split(Vec<(u64, u64)>),
}

impl Sizes {
    /// Returns the smallest size.
    pub fn least(&self) -> u64 {
        match self {
            Sizes::One(size) => *size,
            Sizes::Split(sizes) => sizes.iter().map(|size| size.0).min().unwrap_or(0),
        }
    }

    /// Returns the largest size.
    pub fn most(&self) -> u64 {
        match self {
            Sizes::One(size) => *size,
            Sizes::Split(sizes) => sizes.iter().map(|size| size.0).max().unwrap_or(0),
        }
    }
}

/// fio's `zonemode=strided`: the job stays in a zone until it has transferred a number of bytes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// Bytes transferred in a zone before the next zone's turn (`zonesize`).
    pub bytes: u64,
    /// Bytes of a zone (`zonerange`).
    pub range: u64,
    /// Bytes between a zone and the next (`zoneskip`).
    pub skip: u64,
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
    /// Sizes of reads, and of writes.
    pub block: [Sizes; 2],
    /// Random addresses are multiples of this (`blockalign`); `None`: of the smallest size or, if reads and writes have
    /// one size each, of the larger one.
    pub align: Option<u64>,
    /// Number of requests outstanding.
    pub iodepth: u32,
    /// Name of the file that the job shares with others (`filename`); `None`: each worker has a file of its own.
    pub file: Option<String>,
    /// Where in the file the job's part of it begins; a share is one of the drive.
    pub offset: Extent,
    /// The job's part of the file; a share is one of the drive.
    pub size: Extent,
    /// Bytes that the job transfers (`io_size`), if they are not `size`.
    pub io_size: Option<u64>,
    /// How often it transfers that.
    pub loops: u64,
    /// Zones, if the job goes from one to the next.
    pub strides: Option<Strides>,
    /// How random addresses are distributed.
    pub distribution: Distribution,
    /// Number of writes after which an fsync follows; 0: no fsyncs.
    pub fsync: u64,
    /// Limit in bytes per second, for reads and for writes; 0: no limit.
    pub rate: [u64; 2],
    /// Pause, ns (`thinktime`), and after how many requests there is one (`thinktime_blocks`); 0 ns: no pause.
    pub think: (u64, u64),
    /// Time for which the job runs before it is measured, ns.
    pub ramp_ns: u64,
    /// Time after which the job ends, ns; the time before it is measured does not count.
    pub runtime_ns: Option<u64>,
    /// Whether the job continues past `size` until the runtime is over.
    pub time_based: bool,
    /// Number of workers of this job.
    pub numjobs: u32,
    /// Whether the job bypasses the page cache.
    pub direct: bool,
    /// Number of stone walls before this job: it begins when the jobs with smaller numbers have ended.
    pub stage: u32,
}

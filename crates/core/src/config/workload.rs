//! `[workload]`, typed.

use super::SizeMix;
use crate::workload::bench::Parameters;

/// `[workload]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Trace file, if any.
    pub trace: Option<String>,
    /// Layout of the trace.
    pub format: String,
    /// Window in which a repeat is dropped, ns; 0: off.
    pub dedup_ns: u64,
    /// Longest gap between arrivals, ns.
    pub max_gap_ns: Option<u64>,
    /// Lines that may fail to parse.
    pub skip_bad: u64,
    /// Passes over the trace.
    pub repeat: u64,
    /// Addresses beyond the user capacity.
    pub out_of_range: OutOfRange,
    /// Open or closed.
    pub replay: Replay,
    /// Arrival times are divided by this.
    pub speed: f64,
    /// ns per unit of a version 3 fio log.
    pub fio_time_unit_ns: Option<u64>,
    /// The generator, if chosen.
    pub synthetic: Option<Synthetic>,
    /// The benchmark, if chosen.
    pub benchmark: Option<Parameters>,
    /// fio's job file, if any.
    pub fio_job: Option<String>,
}

/// `[workload.synthetic]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// Requests to generate.
    pub requests: u64,
    /// Order of addresses.
    pub pattern: Pattern,
    /// Share of requests that begin where the one before ended, ppm.
    pub sequential_ppm: u64,
    /// Of the others, the share that begin in the range of a request shortly before, ppm.
    pub near_ppm: u64,
    /// Bytes of such a range.
    pub near_range: u64,
    /// Of those, the share that go on where that request's run ended, ppm.
    pub near_sequential_ppm: u64,
    /// Share of reads, ppm.
    pub read_ppm: u64,
    /// Share of trims, ppm.
    pub trim_ppm: u64,
    /// The shares hold exactly.
    pub exact_mix: bool,
    /// Sizes of reads.
    pub read_sizes: SizeMix,
    /// Sizes of writes and trims.
    pub write_sizes: SizeMix,
    /// What drawn addresses are multiples of, bytes; `None`: the smallest size.
    pub align: Option<u64>,
    /// Bytes addressed; `None`: the user capacity.
    pub region: Option<u64>,
    /// Process of arrivals.
    pub arrival: Arrival,
    /// Mean time between arrivals, with bursts within a burst, ns.
    pub interarrival_ns: u64,
    /// Share of the bursts that begin after a pause, ppm.
    pub pause_ppm: u64,
    /// Mean length of a pause, ns.
    pub pause_ns: u64,
}

impl Synthetic {
    /// The largest and the smallest size, bytes.
    pub fn size_range(&self) -> (u64, u64) {
        let (reads, writes) = (self.read_sizes.range(), self.write_sizes.range());
        (reads.0.min(writes.0), reads.1.max(writes.1))
    }

    /// What drawn addresses are multiples of, bytes.
    pub fn align_bytes(&self) -> u64 {
        self.align.unwrap_or(self.size_range().0)
    }
}

/// `workload.synthetic.pattern` with its keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Uniform.
    Random,
    /// Consecutive.
    Sequential,
    /// Zipf-distributed.
    Zipf {
        /// Exponent.
        theta: f64,
    },
    /// A share of the requests to a share of the region.
    HotCold {
        /// Share of requests, ppm.
        share_ppm: u64,
        /// Share of the region, ppm.
        region_ppm: u64,
        /// Bytes of a piece whose beginning is hot; `None`: the region.
        piece: Option<u64>,
    },
}

/// `workload.synthetic.arrival` with its keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// A Poisson process.
    Exponential,
    /// At equal distances.
    Constant,
    /// On and off.
    Bursts {
        /// Mean requests in a burst.
        length: f64,
        /// Mean requests in a burst of reads, if bursts have one operation.
        read_length: f64,
        /// Mean time between bursts, ns.
        gap_ns: u64,
        /// All requests of a burst have one operation.
        single: bool,
    },
}

/// `workload.out_of_range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfRange {
    /// Refuse.
    Error,
    /// Page number modulo the user capacity.
    Wrap,
    /// Touched pages packed densely.
    Compact,
}

/// `workload.replay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// Arrivals at recorded times.
    Open,
    /// `host.queue_depth` outstanding.
    Closed,
}

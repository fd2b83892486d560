//! Jobs in fio's own language: a subset of its options, read from a job file.
//!
//! Source: fio's HOWTO. A job is a closed loop with `iodepth` requests outstanding: with `direct=1` they bypass the
//! page cache, otherwise they go through it, one call at a time, which is in effect what fio's buffered engines do.
//! Jobs whose `filename` is the same use one file, as on a drive; a job without it makes a file for each worker. Values
//! are read as fio reads them (`values.rs`). Options that change nothing here (reports, logs) are skipped; those that
//! would change the load in another way, and unknown ones, are errors (`passed.rs`).

mod addresses;
mod draft;
mod files;
mod group;
mod lines;
mod map;
mod options;
mod pace;
mod parse;
#[cfg(test)]
mod parse_tests;
mod passed;
#[cfg(test)]
mod played;
mod steady;
mod stream;
#[cfg(test)]
mod stream_tests;
mod streams;
mod tally;
mod values;
#[cfg(test)]
mod values_tests;
mod verify;
mod worker;
#[cfg(test)]
mod worker_tests;

pub(crate) use files::files;
pub use lines::{Around, JobError};
pub use parse::{Jobs, parse, parse_with};
pub use steady::Steady;
pub use worker::Worker;
pub(crate) use worker::clients;

/// Order of a job's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// In address order, each direction from a position of its own, starting again at the beginning of the file when
    /// its end is reached.
    Sequential,
    /// At random addresses, drawn from the job's distribution.
    Random,
}

/// What a job's requests do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// They read.
    Reads,
    /// They write.
    Writes,
    /// They trim.
    Trims,
    /// This share of them reads, percent; the others write.
    Mixed(u64),
    /// They trim and write in turn, each write where the trim before it was.
    TrimWrites,
}

/// How a job's engine performs requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// One at a time, whatever `iodepth` asks for: psync, which is fio's default, and its like.
    Waits,
    /// It queues reads, writes and trims, but an fsync is a call that the job waits for, while what is in flight stays
    /// in flight: libaio.
    Queues,
    /// It queues fsyncs too: io_uring and others.
    QueuesAll,
}

/// What the job's writes wait for, beyond the write itself (`sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Nothing.
    None,
    /// The data is durable (`dsync`).
    Data,
    /// The data and the file's metadata are durable (`1`, `sync`).
    All,
}

/// Which workers end when one of a job has ended (`exit_what`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exits {
    /// Those of its group.
    Group,
    /// Those that run at the same time: between the same stone walls.
    Running,
    /// All of the job file, also those that have not begun.
    All,
}

/// fio's `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform.
    Random,
    /// Zipf with this theta; where the hottest block is, as a share of the file (`None`: anywhere).
    Zipf(f64, Option<f64>),
    /// Self-similar (Gray et al.) with this h, fio's pareto; where the hottest block is.
    Pareto(f64, Option<f64>),
    /// fio's normal, with this deviation in percent; where its middle is.
    Normal(f64, Option<f64>),
    /// For reads, writes and trims: for each zone, in address order, its share of the accesses and its share of the
    /// file, ppm; a direction without zones is uniform.
    Zoned([Vec<(u64, u64)>; 3]),
    /// The same with the zones' sizes in bytes (`zoned_abs`).
    ZonedBytes([Vec<(u64, u64)>; 3]),
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
    /// fio's `bsrange`: multiples of the first size, up to the second.
    Range(u64, u64),
}

impl Sizes {
    /// Returns the smallest size.
    pub fn least(&self) -> u64 {
        match self {
            Sizes::One(size) | Sizes::Range(size, _) => *size,
            Sizes::Split(sizes) => sizes.iter().map(|size| size.0).min().unwrap_or(0),
        }
    }

    /// Returns the largest size.
    pub fn most(&self) -> u64 {
        match self {
            Sizes::One(size) | Sizes::Range(_, size) => *size,
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

/// Pauses of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// Length of a pause, ns (`thinktime`); 0: no pauses.
    pub ns: u64,
    /// Number of requests between pauses (`thinktime_blocks`).
    pub requests: u64,
    /// Whether issued requests count (`thinktime_blocks_type=issue`); otherwise completed ones do.
    pub issued: bool,
}

/// Which of a worker's files the next request goes to (`file_service_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// They take turns, each with this number of requests.
    InTurn(u64),
    /// The next one when one has no further request.
    Sequential,
    /// One is drawn for each of this number of requests.
    Random(u64),
}

/// What a request after the first of a group does (`rw=randread:8`, `rw=write:4k`, `rw_sequencer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// It follows its predecessor, until this many have come from one draw; 1: each request is drawn.
    Follows(u64),
    /// It goes where its predecessor went.
    Repeats(u64),
}

impl Group {
    /// Returns the number of requests of a group.
    pub fn count(self) -> u64 {
        let (Group::Follows(count) | Group::Repeats(count)) = self;
        count.max(1)
    }
}

/// One section of a job file, including the global options that apply to it. Arrays are for reads, writes and trims.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The section's name.
    pub name: String,
    /// Order of the job's requests.
    pub pattern: Pattern,
    /// What they do.
    pub mix: Mix,
    /// Their sizes.
    pub block: [Sizes; 3],
    /// Random addresses are multiples of this (`blockalign`); `None`: of the direction's smallest size.
    pub align: [Option<u64>; 3],
    /// How the job's engine performs them.
    pub engine: Engine,
    /// Number of requests outstanding.
    pub iodepth: u32,
    /// At that depth, the worker waits until this many are outstanding (`iodepth_low`, `iodepth_batch_complete_min`).
    pub refill: u32,
    /// Names of the files that the job shares with others (`filename`); `None`: each worker has files of its own.
    pub file: Option<String>,
    /// Number of files of each worker (`nrfiles`).
    pub files: u64,
    /// Number of them that are open at a time (`openfiles`); 0: all.
    pub open_files: u64,
    /// Which of them the next request goes to.
    pub service: Service,
    /// Where in the file the job's part of it begins; a share is one of the drive.
    pub offset: Extent,
    /// How much later each further worker of the job begins (`offset_increment`).
    pub offset_increment: Extent,
    /// The offset of a share is rounded up to a multiple of this, bytes (`offset_align`); 0: of the smallest size.
    pub offset_align: u64,
    /// The job's part of all its files; a share is one of the drive.
    pub size: Extent,
    /// Bytes that the job transfers (`io_size`), if they are not `size`.
    pub io_size: Option<u64>,
    /// Number of requests after which the job ends (`number_ios`); 0: no limit.
    pub number_ios: u64,
    /// How often it transfers that.
    pub loops: u64,
    /// Zones, if the job goes from one to the next.
    pub strides: Option<Strides>,
    /// How random addresses are distributed.
    pub distribution: Distribution,
    /// Whether each block is touched once before any is touched again (not `norandommap`).
    pub map: bool,
    /// Whether each pass has the order of the first (`randrepeat`).
    pub repeat: bool,
    /// Share of requests of a random job that are random, percent; the others are sequential (`percentage_random`).
    pub random_percent: [u64; 3],
    /// Which requests of a random job are drawn.
    pub group: Group,
    /// Bytes between a sequential request and the next (`rw=write:4k`); below 0: backwards.
    pub stride: i64,
    /// Number of writes after which an fsync follows; 0: no fsyncs.
    pub fsync: u64,
    /// Number of writes after which an fdatasync follows; 0: no fdatasyncs.
    pub fdatasync: u64,
    /// Whether an fsync follows the last write (`end_fsync`).
    pub end_fsync: bool,
    /// What each write waits for.
    pub sync: Sync,
    /// Whether what was written is read after it (`verify`).
    pub verify: bool,
    /// Number of writes after which some are read, and of how many (`verify_backlog`, `verify_backlog_batch`); 0: after
    /// the last write, and as many.
    pub verify_backlog: (u64, u64),
    /// Limit in bytes per second; 0: no limit.
    pub rate: [u64; 3],
    /// Whether requests arrive as in a Poisson process of that rate (`rate_process=poisson`).
    pub poisson: bool,
    /// Pauses.
    pub think: Think,
    /// Time after which the job begins, ns (`startdelay`).
    pub delay_ns: u64,
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
    /// Number of its group: one begins at a stone wall and at `new_group`.
    pub groupid: u32,
    /// Whether its workers and those of its group count as one (`group_reporting`).
    pub group_reporting: bool,
    /// Which workers end with it (`exitall`).
    pub exits: Option<Exits>,
    /// When it ends because its load is steady.
    pub steady: Steady,
}

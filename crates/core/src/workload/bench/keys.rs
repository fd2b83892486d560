//! The keys of `[workload.benchmark]`, and the papers' parameters behind `auto`.
//!
//! Shim et al., TC 2014, sections 6.3 to 6.6.

use super::dbench::DBench;
use super::postmark::PostMark;
use super::random_write::RandomWrite;
use super::{Client, Clients};
use crate::config::Kind as Holds;
use crate::config::units::{BYTES, NANOS};
use crate::config::{Choice, Contradiction, Key, Settings};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;
/// Longest stated time: a year.
const YEAR_NS: u64 = 365 * 86_400 * SECOND_NS;

/// Which benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PostMark 1.51.
    PostMark,
    /// SysBench fileio, random writes.
    SysBench,
    /// FileBench, random writes.
    FileBench,
    /// DBench.
    DBench,
}

impl Kind {
    const ALL: [(Kind, &'static str, &'static str); 4] = [
        (Kind::PostMark, "postmark", "many files made, read, appended to, deleted (Katcher, 1997)"),
        (Kind::SysBench, "sysbench", "random writes to one file, a number of requests (SysBench fileio)"),
        (Kind::FileBench, "filebench", "random writes to one file, runs of a fixed time (FileBench)"),
        (Kind::DBench, "dbench", "file server with several clients (Tridgell and Sahlberg)"),
    ];

    /// The benchmark of this name.
    pub fn of(name: &str) -> Option<Kind> {
        Kind::ALL.iter().find(|(_, known, _)| *known == name).map(|&(kind, ..)| kind)
    }

    /// Name as configured.
    pub fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(kind, ..)| *kind == self).expect("all are listed").1
    }
}

fn kinds() -> Vec<Choice> {
    Kind::ALL.iter().map(|&(_, name, doc)| Choice { name, doc }).collect()
}

const AUTO: &[&str] = &["auto"];

const fn auto(path: &'static str, kind: Holds, doc: &'static str) -> Key {
    Key { path, kind, default: "auto", words: AUTO, doc }
}

/// The keys of `[workload.benchmark]`.
pub const KEYS: &[Key] = &[
    Key {
        path: "workload.benchmark.kind",
        kind: Holds::Choice(kinds),
        default: "",
        words: &[],
        doc: "Benchmark above page cache and file system; naming it chooses it instead of a trace.",
    },
    auto(
        "workload.benchmark.clients",
        Holds::Count { min: 1, max: 1024 },
        "dbench: clients, each in a directory of its own (4).",
    ),
    auto(
        "workload.benchmark.files",
        Holds::Count { min: 1, max: 1 << 20 },
        "Files: postmark's pool (128), dbench's for each client (114).",
    ),
    auto(
        "workload.benchmark.file_size",
        Holds::Bytes { min: 4096, max: 1 << 40 },
        "Bytes of a file: the most for postmark (128KiB), each for sysbench (32MiB) and filebench \
         (256MiB), of all of a client's files together for dbench (23MB).",
    ),
    auto(
        "workload.benchmark.request",
        Holds::Bytes { min: 1, max: 1 << 30 },
        "Bytes of a read or write call: postmark (4KiB), sysbench (4KiB), filebench (8KiB).",
    ),
    auto(
        "workload.benchmark.sync_every",
        Holds::Bytes { min: 1, max: 1 << 40 },
        "sysbench, filebench: an fsync after so many bytes (4MiB).",
    ),
    auto(
        "workload.benchmark.transactions",
        Holds::Count { min: 1, max: 1 << 40 },
        "postmark: transactions of a run (1536).",
    ),
    auto(
        "workload.benchmark.requests",
        Holds::Count { min: 1, max: 1 << 40 },
        "sysbench: most requests of the measured run (100000).",
    ),
    auto(
        "workload.benchmark.duration",
        Holds::Duration { max_ns: YEAR_NS },
        "Simulated time of a measured run: at most, sysbench (180s); filebench (60s), dbench (60s).",
    ),
    auto(
        "workload.benchmark.ageing",
        Holds::Duration { max_ns: YEAR_NS },
        "Simulated time of the same load before the measured one: sysbench (30s), dbench (12s).",
    ),
    auto(
        "workload.benchmark.runs",
        Holds::Count { min: 1, max: 1_000_000 },
        "Runs, one after another: postmark (4), filebench (6).",
    ),
    auto(
        "workload.benchmark.ageing_runs",
        Holds::Count { min: 0, max: 1_000_000 },
        "Of these, the first that are not measured: postmark (1), filebench (1).",
    ),
];

/// `[workload.benchmark]`, every `auto` replaced by the paper's value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Which benchmark.
    pub kind: Kind,
    /// dbench: clients.
    pub clients: u32,
    /// Files.
    pub files: u32,
    /// Bytes of a file; see the key.
    pub file_size: u64,
    /// Bytes of a call.
    pub request: u64,
    /// Bytes between two fsyncs.
    pub sync_every: u64,
    /// postmark: transactions.
    pub transactions: u64,
    /// sysbench: requests.
    pub requests: u64,
    /// Length of a measured run, ns.
    pub duration_ns: u64,
    /// Length of the load before, ns.
    pub ageing_ns: u64,
    /// Runs.
    pub runs: u64,
    /// Runs not measured.
    pub ageing_runs: u64,
}

impl Parameters {
    /// The paper's.
    pub fn of(kind: Kind) -> Parameters {
        let none = Parameters {
            kind,
            clients: 1,
            files: 1,
            file_size: 0,
            request: 4 * KIB,
            sync_every: 4 * MIB,
            transactions: 1536,
            requests: 100_000,
            duration_ns: 60 * SECOND_NS,
            ageing_ns: 0,
            runs: 1,
            ageing_runs: 0,
        };
        match kind {
            Kind::PostMark => {
                Parameters { files: 128, file_size: 128 * KIB, runs: 4, ageing_runs: 1, ..none }
            }
            Kind::SysBench => Parameters {
                file_size: 32 * MIB,
                duration_ns: 180 * SECOND_NS,
                ageing_ns: 30 * SECOND_NS,
                ..none
            },
            Kind::FileBench => {
                Parameters { file_size: 256 * MIB, request: 8 * KIB, runs: 6, ageing_runs: 1, ..none }
            }
            Kind::DBench => Parameters {
                clients: 4,
                files: 114,
                file_size: 23_000_000,
                ageing_ns: 12 * SECOND_NS,
                ..none
            },
        }
    }

    /// The clients, seeded.
    pub fn clients(&self, seed: u64) -> Clients {
        let clients = match self.kind {
            Kind::PostMark => vec![Client::PostMark(PostMark::new(self, seed))],
            Kind::SysBench | Kind::FileBench => vec![Client::RandomWrite(RandomWrite::new(self, seed))],
            Kind::DBench => {
                (0..self.clients).map(|n| Client::DBench(Box::new(DBench::new(self, seed, n)))).collect()
            }
        };
        let window_ns = (self.kind == Kind::DBench)
            .then(|| (self.ageing_ns, self.ageing_ns.saturating_add(self.duration_ns)));
        Clients { name: self.kind.name(), clients, window_ns, parameters: self.listed() }
    }

    /// The parameters that this benchmark reads, for the result.
    fn listed(&self) -> Vec<(&'static str, String)> {
        let size = |bytes| BYTES.format(bytes);
        let time = |ns| NANOS.format(ns);
        match self.kind {
            Kind::PostMark => vec![
                ("files", self.files.to_string()),
                ("file_size", size(self.file_size)),
                ("request", size(self.request)),
                ("transactions", self.transactions.to_string()),
                ("runs", self.runs.to_string()),
                ("ageing_runs", self.ageing_runs.to_string()),
            ],
            Kind::SysBench => vec![
                ("file_size", size(self.file_size)),
                ("request", size(self.request)),
                ("sync_every", size(self.sync_every)),
                ("requests", self.requests.to_string()),
                ("duration", time(self.duration_ns)),
                ("ageing", time(self.ageing_ns)),
            ],
            Kind::FileBench => vec![
                ("file_size", size(self.file_size)),
                ("request", size(self.request)),
                ("sync_every", size(self.sync_every)),
                ("duration", time(self.duration_ns)),
                ("runs", self.runs.to_string()),
                ("ageing_runs", self.ageing_runs.to_string()),
            ],
            Kind::DBench => vec![
                ("clients", self.clients.to_string()),
                ("files", self.files.to_string()),
                ("file_size", size(self.file_size)),
                ("duration", time(self.duration_ns)),
                ("ageing", time(self.ageing_ns)),
            ],
        }
    }
}

/// Checks the benchmark against the rest of the configuration.
///
/// # Errors
/// [`Contradiction`] naming the key to change.
pub fn check(settings: &Settings) -> Result<(), Contradiction> {
    let fail = |key, message: String| Err(Contradiction { key, message });
    let workload = &settings.workload;
    let others = [workload.trace.is_some(), workload.synthetic.is_some(), workload.fio_job.is_some()];
    if workload.fio_job.is_some() && (others[0] || others[1]) {
        let message = "a fio job is given beside a trace (workload.trace) or a generator \
                       (workload.synthetic.requests); remove one of the two";
        return fail("workload.fio_job", message.into());
    }
    let Some(bench) = &workload.benchmark else { return Ok(()) };
    let kind = "workload.benchmark.kind";
    if others.contains(&true) {
        let message = "a benchmark is given beside a trace (workload.trace), a generator \
                       (workload.synthetic.requests) or a fio job (workload.fio_job); remove one of the two";
        return fail(kind, message.into());
    }
    if settings.host.files.page_cache_bytes == 0 {
        let message = format!(
            "{} writes through the page cache, and there is none (host.page_cache); \
             the paper's phone has host.page_cache = \"512MiB\"",
            bench.kind.name()
        );
        return fail(kind, message);
    }
    if bench.ageing_runs >= bench.runs {
        let message = format!(
            "{} of {} runs (workload.benchmark.runs) are not measured; leave at least one",
            bench.ageing_runs, bench.runs
        );
        return fail("workload.benchmark.ageing_runs", message);
    }
    if bench.duration_ns == 0 {
        return fail("workload.benchmark.duration", "0ns measures nothing; write 60s, say".into());
    }
    if matches!(bench.kind, Kind::SysBench | Kind::FileBench) && bench.request > bench.file_size {
        let message = format!(
            "a request of {} does not fit in the file of {} (workload.benchmark.file_size)",
            BYTES.format(bench.request),
            BYTES.format(bench.file_size)
        );
        return fail("workload.benchmark.request", message);
    }
    space(settings, bench)
}

/// The files must fit beside the file system's own blocks.
fn space(settings: &Settings, bench: &Parameters) -> Result<(), Contradiction> {
    let files = match bench.kind {
        Kind::PostMark => u128::from(bench.files) * 2,
        Kind::SysBench | Kind::FileBench => 1,
        Kind::DBench => u128::from(bench.clients),
    };
    let needed = files * u128::from(bench.file_size);
    let free = crate::fs::data_bytes(&settings.host.files, settings.user_bytes());
    // Deleted files keep their blocks until the journal has committed.
    if needed * 5 / 4 > u128::from(free) {
        let message = format!(
            "{} needs {} for its files, and the file system has {} for data \
             (less workload.benchmark.file_size, or a larger flash.blocks_per_plane)",
            bench.kind.name(),
            BYTES.format(needed as u64),
            BYTES.format(free)
        );
        return Err(Contradiction { key: "workload.benchmark.kind", message });
    }
    Ok(())
}

//! The keys of `[workload.benchmark]`, and the papers' parameters behind `auto`.
//!
//! Source: Shim et al., TC 2014, sections 6.3 to 6.6.

use super::dbench::DBench;
use super::postmark::PostMark;
use super::random_write::RandomWrite;
use super::{Client, Clients};
use ftlab_core::config::section::{ANY_TIME, Natural, Switched, bytes, count};
use ftlab_core::config::units::{BYTES, NANOS};
use ftlab_core::config::{Key, Kind as Holds, Section, Values, choice, section};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

choice! {
    /// Which benchmark.
    pub enum Kind {
        /// many files are created, read, appended to and deleted (Katcher, 1997)
        PostMark = "postmark",
        /// random writes to one file, up to a number of requests (SysBench fileio)
        SysBench = "sysbench",
        /// random writes to one file, in runs of a fixed time (FileBench)
        FileBench = "filebench",
        /// a file server with several clients (Tridgell and Sahlberg)
        DBench = "dbench",
    }
}

section! {
    /// `[workload.benchmark]`. Whatever is not stated (auto) has the paper's value.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Parameters {
        /// Benchmark that runs above page cache and file system; setting it chooses the benchmark instead of a trace.
        kind: Kind = "workload.benchmark.kind", KIND;
        /// dbench: number of clients, each in a directory of its own (4).
        clients: u32 = "workload.benchmark.clients", count(1, 1024) or "auto", "auto";
        /// Number of files: in postmark's pool (128), or for each client of dbench (114).
        files: u32 = "workload.benchmark.files", count(1, 1 << 20) or "auto", "auto";
        /// File size, bytes: of the largest file for postmark (128KiB), of each file for sysbench (32MiB) and filebench
        /// (256MiB), of all files of a client together for dbench (23MB).
        file_size: u64 = "workload.benchmark.file_size", bytes(4096, 1 << 40) or "auto", "auto";
        /// Bytes of a read or write call: postmark (4KiB), sysbench (4KiB), filebench (8KiB).
        request: u64 = "workload.benchmark.request", bytes(1, 1 << 30) or "auto", "auto";
        /// sysbench, filebench: bytes written between two fsyncs (4MiB).
        sync_every: u64 = "workload.benchmark.sync_every", bytes(1, 1 << 40) or "auto", "auto";
        /// postmark: number of transactions in a run (1536).
        transactions: u64 = "workload.benchmark.transactions", count(1, 1 << 40) or "auto", "auto";
        /// sysbench: largest number of requests in the measured run (100000).
        requests: u64 = "workload.benchmark.requests", count(1, 1 << 40) or "auto", "auto";
        /// Simulated time of a measured run: the most for sysbench (180s), the length for filebench (60s) and dbench
        /// (60s).
        duration_ns: u64 = "workload.benchmark.duration", ANY_TIME or "auto", "auto";
        /// Simulated time for which the same load runs before the measured run: sysbench (30s), dbench (12s).
        ageing_ns: u64 = "workload.benchmark.ageing", ANY_TIME or "auto", "auto";
        /// Number of runs, one after another: postmark (4), filebench (6).
        runs: u64 = "workload.benchmark.runs", count(1, 1_000_000) or "auto", "auto";
        /// Number of runs at the beginning that are not measured: postmark (1), filebench (1).
        ageing_runs: u64 = "workload.benchmark.ageing_runs", count(0, 1_000_000) or "auto", "auto";
    }
}

const KIND: Holds = <Kind as Natural>::KIND;

/// The value of a key that is left at auto.
const AUTO: u64 = u64::MAX;

/// A benchmark is chosen by naming it.
impl Switched for Parameters {
    fn declare_with_switch(keys: &mut Vec<Key>) {
        Parameters::declare(keys);
    }

    fn read_if_on(values: &Values) -> Option<Parameters> {
        values.contains_key("workload.benchmark.kind").then(|| Parameters::read(values).complete())
    }
}

impl Parameters {
    /// Returns the paper's parameters for this benchmark.
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

    /// Returns the parameters with the paper's value for each one left at auto.
    fn complete(mut self) -> Parameters {
        let paper = Parameters::of(self.kind);
        let small =
            |stated: &mut u32, paper: u32| *stated = if *stated == u32::MAX { paper } else { *stated };
        let large = |stated: &mut u64, paper: u64| *stated = if *stated == AUTO { paper } else { *stated };
        small(&mut self.clients, paper.clients);
        small(&mut self.files, paper.files);
        large(&mut self.file_size, paper.file_size);
        large(&mut self.request, paper.request);
        large(&mut self.sync_every, paper.sync_every);
        large(&mut self.transactions, paper.transactions);
        large(&mut self.requests, paper.requests);
        large(&mut self.duration_ns, paper.duration_ns);
        large(&mut self.ageing_ns, paper.ageing_ns);
        large(&mut self.runs, paper.runs);
        large(&mut self.ageing_runs, paper.ageing_runs);
        self
    }

    /// Makes the clients, with their seeds.
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

    /// Returns the parameters that this benchmark reads, each with its value, for the result.
    fn listed(&self) -> Vec<(&'static str, String)> {
        let read: &[&str] = match self.kind {
            Kind::PostMark => &["files", "file_size", "request", "transactions", "runs", "ageing_runs"],
            Kind::SysBench => &["file_size", "request", "sync_every", "requests", "duration", "ageing"],
            Kind::FileBench => &["file_size", "request", "sync_every", "duration", "runs", "ageing_runs"],
            Kind::DBench => &["clients", "files", "file_size", "duration", "ageing"],
        };
        read.iter().map(|&name| (name, self.shown(name))).collect()
    }

    fn shown(&self, name: &str) -> String {
        match name {
            "clients" => self.clients.to_string(),
            "files" => self.files.to_string(),
            "file_size" => BYTES.format(self.file_size),
            "request" => BYTES.format(self.request),
            "sync_every" => BYTES.format(self.sync_every),
            "transactions" => self.transactions.to_string(),
            "requests" => self.requests.to_string(),
            "duration" => NANOS.format(self.duration_ns),
            "ageing" => NANOS.format(self.ageing_ns),
            "runs" => self.runs.to_string(),
            "ageing_runs" => self.ageing_runs.to_string(),
            other => panic!("{other} is not a parameter"),
        }
    }
}

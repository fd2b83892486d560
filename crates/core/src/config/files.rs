//! The typed form of the keys above the block layer: page cache, file system, benchmarks.

use super::typed::Reader;
use crate::workload::bench::{Kind, Parameters};

/// Page cache, file system and their host, from `[host]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Memory for file pages; 0: requests enter below.
    pub page_cache_bytes: u64,
    /// Which dirty pages are flushed together.
    pub flush_policy: String,
    /// Dirty share of the memory at which write-back starts, ppm.
    pub background_ppm: u64,
    /// Dirty share at which writers wait, ppm.
    pub dirty_ppm: u64,
    /// Time between two looks of the flusher for old data, ns; `None`: it does not look.
    pub writeback_ns: Option<u64>,
    /// Age at which data is old, ns.
    pub expire_ns: u64,
    /// Most bytes read ahead.
    pub read_ahead_bytes: u64,
    /// A tree over logical pages finds dirty pages of all files.
    pub global_tree: bool,
    /// Bytes of the journal; `None`: by the size of the file system.
    pub journal_bytes: Option<u64>,
    /// Age at which a transaction is committed, ns.
    pub commit_ns: u64,
    /// Freed blocks are discarded.
    pub discard: bool,
    /// A flush before and after each commit block.
    pub barriers: bool,
    /// Host time of an operation, ns.
    pub operation_ns: u64,
    /// Host time of a byte copied, ps.
    pub copy_ps: u64,
}

impl Files {
    /// No page cache, the other keys at their defaults.
    pub const NONE: Files = Files {
        page_cache_bytes: 0,
        flush_policy: String::new(),
        background_ppm: 100_000,
        dirty_ppm: 200_000,
        writeback_ns: Some(5_000_000_000),
        expire_ns: 30_000_000_000,
        read_ahead_bytes: 128 << 10,
        global_tree: false,
        journal_bytes: None,
        commit_ns: 5_000_000_000,
        discard: false,
        barriers: true,
        operation_ns: 10_000,
        copy_ps: 1_000,
    };
}

impl Reader<'_> {
    pub(super) fn files(&self) -> Files {
        Files {
            page_cache_bytes: self.u64("host.page_cache"),
            flush_policy: self.name("host.flush_policy"),
            background_ppm: self.u64("host.dirty_background_ratio"),
            dirty_ppm: self.u64("host.dirty_ratio"),
            writeback_ns: self.whole("host.dirty_writeback"),
            expire_ns: self.u64("host.dirty_expire"),
            read_ahead_bytes: self.u64("host.read_ahead"),
            global_tree: self.flag("host.global_tree"),
            journal_bytes: self.whole("host.journal"),
            commit_ns: self.u64("host.journal_commit"),
            discard: self.flag("host.discard"),
            barriers: self.flag("host.barriers"),
            operation_ns: self.u64("host.operation_time"),
            copy_ps: self.u64("host.copy_time"),
        }
    }

    pub(super) fn benchmark(&self) -> Option<Parameters> {
        let kind = Kind::of(&self.text("workload.benchmark.kind")?).expect("one of the choices");
        let paper = Parameters::of(kind);
        let or = |name: &str, auto: u64| self.whole(&format!("workload.benchmark.{name}")).unwrap_or(auto);
        let small = |name: &str, auto: u32| or(name, u64::from(auto)) as u32;
        Some(Parameters {
            kind,
            clients: small("clients", paper.clients),
            files: small("files", paper.files),
            file_size: or("file_size", paper.file_size),
            request: or("request", paper.request),
            sync_every: or("sync_every", paper.sync_every),
            transactions: or("transactions", paper.transactions),
            requests: or("requests", paper.requests),
            duration_ns: or("duration", paper.duration_ns),
            ageing_ns: or("ageing", paper.ageing_ns),
            runs: or("runs", paper.runs),
            ageing_runs: or("ageing_runs", paper.ageing_runs),
        })
    }
}

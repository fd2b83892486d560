//! Result sections of runs with a file system: `benchmark`, `page_cache`, `file_system`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::flash::{Flash, per_second};
use super::merges::Merges;
use super::series::SeriesReport;
use super::summary::Summary;
use crate::flash::Counts;
use crate::ftl::hybrid::merges::MergeStats;

/// What the device has done up to a moment.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Flash operations.
    pub counts: Counts,
    /// Merges.
    pub merges: MergeStats,
}

/// What clients of a benchmark or a fio job saw, over the measured runs.
#[derive(Clone, Debug, Serialize)]
pub struct Benchmark {
    /// What ran.
    pub name: &'static str,
    /// Names and values that it ran with, in the order of its keys.
    pub parameters: Vec<(&'static str, String)>,
    /// Clients.
    pub clients: u32,
    /// Each measured run.
    pub runs: Vec<Run>,
    /// The clients' operations that ended in a measured run.
    pub operations: u64,
    /// Mean over the runs of operations x 10^9 / elapsed_ns.
    pub operations_per_s: f64,
    /// Bytes that the clients read.
    pub bytes_read: u64,
    /// Bytes that the clients wrote.
    pub bytes_written: u64,
    /// Mean over the runs of (bytes read + written) x 10^9 / elapsed_ns.
    pub throughput_bytes_per_s: f64,
    /// Standard deviation of the throughput over the runs, B/s.
    pub throughput_stddev: f64,
    /// Simulated time of the measured runs.
    pub elapsed_ns: u64,
    /// When a read-only device refused a write, which ended the clients; null if none did.
    pub failed_ns: Option<u64>,
    /// End - start of the operations of each kind.
    pub latency: BTreeMap<&'static str, Summary>,
    /// (c(i) - d(i)) / pages of i, ns, over the pages of the write requests that complete in each point.
    pub write_latency: SeriesReport,
    /// Mean of `write_latency` over all pages.
    pub write_latency_mean_ns: Option<f64>,
    /// Operations from the first measured run on.
    pub flash: Flash,
    /// Merges from the first measured run on; their costs are relative to the operations of cause `host` since then.
    pub merges: Merges,
}

/// One measured run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Run {
    /// Start.
    pub from_ns: u64,
    /// Simulated time.
    pub elapsed_ns: u64,
    /// Operations that ended.
    pub operations: u64,
    /// Bytes that they read.
    pub bytes_read: u64,
    /// Bytes that they wrote.
    pub bytes_written: u64,
}

impl Run {
    /// Returns the bytes per second.
    pub fn throughput(&self) -> f64 {
        per_second(self.bytes_read + self.bytes_written, self.elapsed_ns)
    }

    /// Returns the operations per second.
    pub fn rate(&self) -> f64 {
        per_second(self.operations, self.elapsed_ns)
    }
}

/// The host's page cache.
#[derive(Clone, Debug, Serialize)]
pub struct PageCache {
    /// `host.page_cache`.
    pub size_bytes: u64,
    /// `host.flush_policy`.
    pub policy: &'static str,
    /// Pages of the clients' reads and writes that were cached.
    pub hits: u64,
    /// Pages of the clients' reads and writes that were not cached.
    pub misses: u64,
    /// hits / (hits + misses).
    pub hit_ratio: Option<f64>,
    /// Dirty pages written, by reason.
    pub pages_written: BTreeMap<&'static str, u64>,
    /// Greatest number of bytes that were dirty or being written at once.
    pub peak_dirty_bytes: u64,
    /// Bytes cached, over time.
    pub cached_bytes: SeriesReport,
    /// Bytes dirty or being written, over time.
    pub dirty_bytes: SeriesReport,
    /// Memory of the files' radix trees, over time; each node takes 288 B.
    pub tree_bytes: SeriesReport,
    /// Mean of `tree_bytes` over all samples.
    pub tree_bytes_mean: Option<f64>,
    /// Memory of the tree over logical pages, over time.
    pub global_tree_bytes: SeriesReport,
    /// Mean of `global_tree_bytes` over all samples.
    pub global_tree_bytes_mean: Option<f64>,
}

/// The host's file system.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileSystem {
    /// Transactions of the journal.
    pub commits: u64,
    /// Blocks written to the journal, descriptors and commit blocks included.
    pub journal_blocks: u64,
    /// Metadata blocks written in place.
    pub checkpoint_blocks: u64,
    /// Blocks discarded.
    pub discarded_blocks: u64,
    /// Requests that were merged with a pending one.
    pub merged_requests: u64,
}

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

/// `benchmark`: what the clients saw.
#[derive(Clone, Debug, Serialize)]
pub struct Benchmark {
    /// Name of the benchmark.
    pub name: &'static str,
    /// The parameters it ran with.
    pub parameters: Vec<(&'static str, String)>,
    /// Clients.
    pub clients: u32,
    /// Each measured run.
    pub runs: Vec<Run>,
    /// Operations of the measured runs.
    pub operations: u64,
    /// Operations per simulated second: mean over the runs.
    pub operations_per_s: f64,
    /// Bytes the clients read.
    pub bytes_read: u64,
    /// Bytes the clients wrote.
    pub bytes_written: u64,
    /// Bytes read and written per simulated second: mean over the runs.
    pub throughput_bytes_per_s: f64,
    /// Standard deviation of the throughput over the runs.
    pub throughput_stddev: f64,
    /// Simulated time of the measured runs, ns.
    pub elapsed_ns: u64,
    /// When the device refused a write, which ended the clients, ns; absent if it did not.
    pub failed_ns: Option<u64>,
    /// Latency of the clients' operations by kind; kinds without one are left out.
    pub latency: BTreeMap<&'static str, Summary>,
    /// Time from dispatch to completion of write requests, for each page of theirs, over time, ns.
    pub write_latency: SeriesReport,
    /// Mean of that over all pages, ns.
    pub write_latency_mean_ns: Option<f64>,
    /// Flash operations of the measured runs and what lies between them, by cause.
    pub flash: Flash,
    /// Merges of the same stretch by kind, their cost relative to its operations of cause `host`.
    pub merges: Merges,
}

/// One measured run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Run {
    /// Begin, ns.
    pub from_ns: u64,
    /// Simulated time, ns.
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

/// `page_cache`.
#[derive(Clone, Debug, Serialize)]
pub struct PageCache {
    /// Capacity.
    pub size_bytes: u64,
    /// The flush policy.
    pub policy: &'static str,
    /// Pages that clients found.
    pub hits: u64,
    /// Pages that they did not.
    pub misses: u64,
    /// hits / (hits + misses); absent without either.
    pub hit_ratio: Option<f64>,
    /// Pages written, by why.
    pub pages_written: BTreeMap<&'static str, u64>,
    /// Most bytes dirty or being written.
    pub peak_dirty_bytes: u64,
    /// Bytes cached, over time.
    pub cached_bytes: SeriesReport,
    /// Bytes dirty or being written, over time.
    pub dirty_bytes: SeriesReport,
    /// Memory of the files' radix trees, bytes, over time.
    pub tree_bytes: SeriesReport,
    /// Mean of that over the simulated time's samples.
    pub tree_bytes_mean: Option<f64>,
    /// Memory of the tree over logical pages, bytes, over time.
    pub global_tree_bytes: SeriesReport,
    /// Mean of that.
    pub global_tree_bytes_mean: Option<f64>,
}

/// `file_system`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileSystem {
    /// Commits of the journal.
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

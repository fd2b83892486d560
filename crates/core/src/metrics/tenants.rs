//! The figures of each tenant.

use serde::Serialize;

use super::flash::{per_second, ratio};
use super::{Benchmark, FileSystem, PageCache, Parts, Recorder};
use crate::device::Share;

/// What one tenant asked for and what it got.
#[derive(Clone, Debug, Serialize)]
pub struct Tenant {
    /// Name of the tenant; that of a stream is its number.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Sum of the sizes of reads.
    pub bytes_read: u64,
    /// Sum of the sizes of writes.
    pub bytes_written: u64,
    /// Completion - arrival.
    pub latency: Parts,
    /// Dispatch - arrival.
    pub wait: Parts,
    /// Completion - dispatch.
    pub access: Parts,
    /// (bytes of completed reads + bytes of completed writes) x 10^9 / elapsed_ns of the run.
    pub throughput_bytes_per_s: f64,
    /// Reads and writes completed x 10^9 / elapsed_ns of the run.
    pub requests_per_s: f64,
    /// The flash's work for the tenant.
    pub flash: TenantFlash,
    /// What the tenant's clients saw, if a benchmark or a fio job sends its requests; `flash` and `merges` in it are
    /// the whole device's over the measured runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<Benchmark>,
    /// The tenant's page cache, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCache>,
    /// The tenant's file system, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystem>,
    /// Mean latency of the tenant's reads and writes when it has the device for itself, where that was run too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_mean_ns: Option<f64>,
    /// Mean latency / alone_mean_ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<f64>,
}

/// The tenants' slowdowns compared, where each also ran alone (Tavakkol et al., ISCA 2018, section 6).
#[derive(Clone, Debug, Serialize)]
pub struct Fairness {
    /// Greatest slowdown / least slowdown.
    pub unfairness: Option<f64>,
    /// Least slowdown / greatest slowdown.
    pub fairness: Option<f64>,
    /// Sum of 1 / slowdown.
    pub weighted_speedup: Option<f64>,
    /// Number of tenants / sum of the slowdowns.
    pub harmonic_speedup: Option<f64>,
}

/// Work of the flash.
#[derive(Clone, Debug, Serialize)]
pub struct TenantFlash {
    /// Pages read.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Time for which cells and buses worked.
    pub busy_ns: u64,
    /// The part of the device's work, by time.
    pub share: Option<f64>,
}

impl TenantFlash {
    /// Makes the figures of a part of the device's whole work.
    pub fn new(part: Share, whole: Share) -> TenantFlash {
        let Share { reads, programs, erases, busy_ns } = part;
        TenantFlash { reads, programs, erases, busy_ns, share: ratio(busy_ns, whole.busy_ns) }
    }
}

impl Tenant {
    /// Makes a tenant's figures; with `bins`, histograms are included.
    pub fn new(
        name: String,
        recorder: &Recorder,
        (flash, whole): (Share, Share),
        elapsed_ns: u64,
        bins: bool,
    ) -> Tenant {
        let [latency, wait, access] =
            [0, 1, 2].map(|part| recorder.times.each_ref().map(|times| &times[part]));
        let [reads, writes, trims, flushes] = recorder.requests;
        let served: u64 = recorder.latencies().0.iter().sum();
        Tenant {
            name,
            requests: recorder.requests.iter().sum(),
            reads,
            writes,
            trims,
            flushes,
            bytes_read: recorder.bytes[0],
            bytes_written: recorder.bytes[1],
            latency: Parts::new(latency, bins),
            wait: Parts::new(wait, bins),
            access: Parts::new(access, bins),
            throughput_bytes_per_s: per_second(recorder.served_bytes.iter().sum(), elapsed_ns),
            requests_per_s: per_second(served, elapsed_ns),
            flash: TenantFlash::new(flash, whole),
            benchmark: None,
            page_cache: None,
            file_system: None,
            alone_mean_ns: None,
            slowdown: None,
        }
    }
}

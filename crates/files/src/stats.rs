//! What is counted above the block layer.

use super::FileHost;
use crate::cache::{PAGE, PageCache};
use crate::clients::{Clients, FileOp};
use ftlab_core::flash::Cause;
use ftlab_core::metrics::{self, Done, Histogram, Run, Series, Summary};
use ftlab_core::request::Request;
use ftlab_core::workload::Op;

/// Why pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// An fsync.
    Fsync,
    /// The pages have been dirty for a long time.
    Expired,
    /// Too many pages are dirty.
    Background,
    /// A commit of the transaction that allocated the pages' blocks.
    Ordered,
    /// A block issue that the FTL requested takes the pages along.
    Joined,
}

const REASONS: [&str; 5] = ["fsync", "expired", "background", "ordered", "joined"];

/// Least simulated time between two samples of the cache's memory, ns.
const SAMPLE_NS: u64 = 1_000_000;

/// The counters of the file host.
#[derive(Clone, Debug)]
pub(super) struct Stats {
    name: &'static str,
    parameters: Vec<(&'static str, String)>,
    clients: u32,
    /// Number of measured runs that are in progress at this moment (each client may have a run of its own).
    depth: u32,
    run: Run,
    runs: Vec<Run>,
    latency: [Histogram; FileOp::KINDS.len()],
    write_latency: Option<Series>,
    /// What the device had done when the first measured run began and when the last one ended.
    base: Option<Done>,
    end: Option<Done>,
    hits: u64,
    misses: u64,
    pub(super) pages_written: [u64; 5],
    peak_dirty: u64,
    sampled_ns: Option<u64>,
    /// Memory over time, in bytes: cached pages, dirty pages, nodes of the files' trees, nodes of the global tree.
    memory: [Series; 4],
    pub(super) file_system: metrics::FileSystem,
    failed_ns: Option<u64>,
    histograms: bool,
}

impl Stats {
    /// Makes the counters; with `histograms`, reports include the bins of the operations' latencies.
    pub(super) fn new(clients: &Clients, histograms: bool) -> Stats {
        Stats {
            name: clients.name,
            parameters: clients.parameters.clone(),
            clients: clients.clients.len() as u32,
            depth: 0,
            run: Run::default(),
            runs: Vec::new(),
            latency: Default::default(),
            write_latency: None,
            base: None,
            end: None,
            hits: 0,
            misses: 0,
            pages_written: [0; 5],
            peak_dirty: 0,
            sampled_ns: None,
            memory: std::array::from_fn(|_| Series::new(0)),
            file_system: metrics::FileSystem::default(),
            failed_ns: None,
            histograms,
        }
    }

    /// Begins a measured run; runs of several clients at the same time count as one.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.depth += 1;
        if self.depth == 1 {
            self.run = Run { from_ns: now_ns, ..Run::default() };
            self.write_latency.get_or_insert_with(|| Series::new(now_ns));
        }
    }

    /// Ends a measured run.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.depth -= 1;
        if self.depth == 0 {
            self.run.elapsed_ns = now_ns - self.run.from_ns;
            self.runs.push(self.run);
        }
    }

    /// Notes that the device has failed, which ends the measured run in progress, if any.
    pub(super) fn fail(&mut self, now_ns: u64) {
        self.failed_ns = Some(now_ns);
        self.stop(now_ns);
    }

    /// Ends the measured run in progress, if any.
    pub(super) fn stop(&mut self, now_ns: u64) {
        if self.depth > 0 {
            self.depth = 1;
            self.end(now_ns);
        }
    }

    /// Whether a measured window has begun or ended since the last call of [`Stats::measure`].
    #[inline]
    pub(super) fn wants_measure(&self) -> bool {
        match self.depth {
            0 => self.base.is_some() && self.end.is_none(),
            _ => self.base.is_none() || self.end.is_some(),
        }
    }

    pub(super) fn measure(&mut self, done: Done) {
        self.base.get_or_insert(done);
        self.end = (self.depth == 0).then_some(done);
    }

    /// Notes that an operation of a client has ended.
    pub(super) fn operation(&mut self, op: &FileOp, begun_ns: u64, now_ns: u64) {
        let (Some(kind), true) = (op.kind(), self.depth > 0) else { return };
        let [read, written] = op.bytes();
        self.run.operations += 1;
        self.run.bytes_read += read;
        self.run.bytes_written += written;
        self.latency[kind].add(now_ns - begun_ns);
    }

    /// Notes that a page was looked up for a client.
    pub(super) fn looked_up(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.misses += u64::from(!hit);
    }

    /// Notes that a request of the block layer has completed.
    pub(super) fn request(&mut self, now_ns: u64, request: &Request) {
        if let (Some(series), Op::Write, true) = (&mut self.write_latency, request.op, self.depth > 0) {
            let pages = u64::from(request.pages.pages.max(1));
            series.add(now_ns, (now_ns - request.dispatch_ns) / pages, pages);
        }
    }

    /// Takes a sample of the cache's memory as it has been until now; called when time is about to advance.
    pub(super) fn sample(&mut self, now_ns: u64, cache: &PageCache) {
        let dirty = (u64::from(cache.dirty) + u64::from(cache.writeback)) * PAGE;
        self.peak_dirty = self.peak_dirty.max(dirty);
        if self.sampled_ns.is_some_and(|last| now_ns - last < SAMPLE_NS) {
            return;
        }
        self.sampled_ns = Some(now_ns);
        let [trees, global] = cache.tree_bytes();
        let values = [u64::from(cache.cached) * PAGE, dirty, trees, global];
        for (series, value) in self.memory.iter_mut().zip(values) {
            series.add(now_ns, value, 1);
        }
    }

    fn benchmark(&self, done: &Done) -> metrics::Benchmark {
        let runs = self.runs.len().max(1) as f64;
        let mean = |of: fn(&Run) -> f64| self.runs.iter().map(of).sum::<f64>() / runs;
        let throughput = mean(Run::throughput);
        let variance =
            self.runs.iter().map(|run| (run.throughput() - throughput).powi(2)).sum::<f64>() / runs;
        let sum = |of: fn(&Run) -> u64| self.runs.iter().map(of).sum();
        let kinds = FileOp::KINDS.iter().zip(&self.latency).filter(|(_, times)| times.count() > 0);
        let Done { mut counts, mut merges } = self.end.unwrap_or(*done);
        if let Some(base) = &self.base {
            (counts, merges) = (counts.since(&base.counts), merges.since(&base.merges));
        }
        let series = self.write_latency.clone().unwrap_or_else(|| Series::new(0));
        metrics::Benchmark {
            name: self.name,
            parameters: self.parameters.clone(),
            clients: self.clients,
            runs: self.runs.clone(),
            operations: sum(|run| run.operations),
            operations_per_s: mean(Run::rate),
            bytes_read: sum(|run| run.bytes_read),
            bytes_written: sum(|run| run.bytes_written),
            throughput_bytes_per_s: throughput,
            throughput_stddev: variance.sqrt(),
            elapsed_ns: sum(|run| run.elapsed_ns),
            failed_ns: self.failed_ns,
            latency: kinds.map(|(&kind, times)| (kind, Summary::new(times, self.histograms))).collect(),
            write_latency: series.report(),
            write_latency_mean_ns: series.mean(),
            flash: metrics::Flash::new(&counts, None),
            merges: metrics::Merges::new(&merges, counts.busy_ns[Cause::Host]),
        }
    }
}

impl FileHost {
    /// Fills in the file host's part of a report; `done` is what the device did, `merged` the number of requests that
    /// merged with a pending one.
    pub(super) fn report(&self, report: &mut metrics::Report, done: &Done, merged: u64) {
        let stats = &self.stats;
        report.benchmark = Some(stats.benchmark(done));
        if !self.fs.has_metadata() {
            return;
        }
        let lookups = stats.hits + stats.misses;
        let [cached, dirty, trees, global] = &stats.memory;
        report.page_cache = Some(metrics::PageCache {
            size_bytes: self.config.page_cache_bytes,
            policy: self.config.flush_policy.name(),
            hits: stats.hits,
            misses: stats.misses,
            hit_ratio: (lookups > 0).then(|| stats.hits as f64 / lookups as f64),
            pages_written: REASONS.iter().copied().zip(stats.pages_written).collect(),
            peak_dirty_bytes: stats.peak_dirty,
            cached_bytes: cached.report(),
            dirty_bytes: dirty.report(),
            tree_bytes: trees.report(),
            tree_bytes_mean: trees.mean(),
            global_tree_bytes: global.report(),
            global_tree_bytes_mean: global.mean(),
        });
        report.file_system =
            Some(metrics::FileSystem { merged_requests: merged, ..stats.file_system.clone() });
    }
}

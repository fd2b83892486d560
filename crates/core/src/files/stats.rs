//! What is counted above the block layer.

use super::FileHost;
use crate::files::cache::{PAGE, PageCache};
use crate::files::clients::{Clients, FileOp};
use crate::flash::{Cause, Counts};
use crate::ftl::hybrid::merges::MergeStats;
use crate::metrics::{self, ByCause, Histogram, Operations, Run, Series, Summary};
use crate::request::Request;
use crate::workload::Op;

/// Why pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// An fsync.
    Fsync,
    /// Dirty for long.
    Expired,
    /// Too many are dirty.
    Background,
    /// A commit whose transaction allocated their blocks.
    Ordered,
    /// A block issue that the FTL asked for takes them along.
    Joined,
}

const REASONS: [&str; 5] = ["fsync", "expired", "background", "ordered", "joined"];

/// Simulated time between two samples of the cache's memory at least, ns.
const SAMPLE_NS: u64 = 1_000_000;

/// The sections of a result.
#[derive(Clone, Debug)]
pub struct Sections {
    /// `benchmark`.
    pub benchmark: metrics::Benchmark,
    /// `page_cache`, if there is one.
    pub page_cache: Option<metrics::PageCache>,
    /// `file_system`, if there is one.
    pub file_system: Option<metrics::FileSystem>,
}

/// What the device has done up to a moment.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Its flash operations.
    pub counts: Counts,
    /// Its merges.
    pub merges: MergeStats,
}

/// The counters.
#[derive(Clone, Debug)]
pub(super) struct Stats {
    name: &'static str,
    parameters: Vec<(&'static str, String)>,
    clients: u32,
    /// Measured runs under way (of several clients each may have its own), and what they come to.
    depth: u32,
    run: Run,
    runs: Vec<Run>,
    latency: [Histogram; 9],
    write_latency: Option<Series>,
    /// What the device had done when the first measured run began, and when the last one ended.
    base: Option<Done>,
    end: Option<Done>,
    hits: u64,
    misses: u64,
    pub(super) pages_written: [u64; 5],
    peak_dirty: u64,
    sampled_ns: Option<u64>,
    /// Cached, dirty, trees, global tree.
    memory: [Series; 4],
    pub(super) commits: u64,
    pub(super) journal_blocks: u64,
    pub(super) checkpoint_blocks: u64,
    pub(super) discarded_blocks: u64,
    failed_ns: Option<u64>,
    histograms: bool,
}

impl Stats {
    /// With `histograms` the bins of the operations' latencies are shown.
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
            commits: 0,
            journal_blocks: 0,
            checkpoint_blocks: 0,
            discarded_blocks: 0,
            failed_ns: None,
            histograms,
        }
    }

    /// A measured run begins; runs of several clients at a time are one.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.depth += 1;
        if self.depth == 1 {
            self.run = Run { from_ns: now_ns, ..Run::default() };
            self.write_latency.get_or_insert_with(|| Series::new(now_ns));
        }
    }

    /// A measured run ends.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.depth -= 1;
        if self.depth == 0 {
            self.run.elapsed_ns = now_ns - self.run.from_ns;
            self.runs.push(self.run);
        }
    }

    /// The device failed: what is being measured ends here.
    pub(super) fn fail(&mut self, now_ns: u64) {
        self.failed_ns = Some(now_ns);
        if self.depth > 0 {
            self.depth = 1;
            self.end(now_ns);
        }
    }

    /// Whether a measured stretch has begun or ended since [`Stats::measure`].
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

    /// An operation of a client ended.
    pub(super) fn operation(&mut self, op: &FileOp, begun_ns: u64, now_ns: u64) {
        let (Some(kind), true) = (op.kind(), self.depth > 0) else { return };
        let [read, written] = op.bytes();
        self.run.operations += 1;
        self.run.bytes_read += read;
        self.run.bytes_written += written;
        self.latency[kind].add(now_ns - begun_ns);
    }

    /// A page was looked up for a client.
    pub(super) fn looked_up(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.misses += u64::from(!hit);
    }

    /// A request of the block layer completed.
    pub(super) fn request(&mut self, now_ns: u64, request: &Request) {
        if let (Some(series), Op::Write, true) = (&mut self.write_latency, request.op, self.depth > 0) {
            let pages = u64::from(request.pages.pages.max(1));
            series.add(now_ns, (now_ns - request.dispatch_ns) / pages, pages);
        }
    }

    /// Time moves: the cache's memory as it was until now.
    pub(super) fn sample(&mut self, now_ns: u64, cache: &PageCache) {
        let dirty = (u64::from(cache.dirty()) + u64::from(cache.writeback())) * PAGE;
        self.peak_dirty = self.peak_dirty.max(dirty);
        if self.sampled_ns.is_some_and(|last| now_ns - last < SAMPLE_NS) {
            return;
        }
        self.sampled_ns = Some(now_ns);
        let [trees, global] = cache.tree_bytes();
        let values = [u64::from(cache.cached()) * PAGE, dirty, trees, global];
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
        let base = self.base.as_ref();
        let end = self.end.as_ref().unwrap_or(done);
        let merges = base.map_or(end.merges, |base| end.merges.since(&base.merges));
        let flash = since(&end.counts, base.map(|base| &base.counts));
        let host_ns = flash.busy_ns[Cause::Host.name()];
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
            flash,
            merges: metrics::Merges::new(&merges, host_ns),
        }
    }
}

/// Operations since the counts of then.
fn since(counts: &Counts, base: Option<&Counts>) -> Operations {
    let of = |now: &[u64; 8], then: fn(&Counts) -> &[u64; 8]| -> ByCause {
        let before = |cause: Cause| base.map_or(0, |base| then(base)[cause as usize]);
        Cause::ALL.iter().map(|&cause| (cause.name(), now[cause as usize] - before(cause))).collect()
    };
    Operations {
        reads: of(&counts.reads, |counts| &counts.reads),
        programs: of(&counts.programs, |counts| &counts.programs),
        erases: of(&counts.erases, |counts| &counts.erases),
        busy_ns: of(&counts.busy_ns, |counts| &counts.busy_ns),
    }
}

pub(super) fn sections(host: &FileHost, done: &Done, merged: u64) -> Sections {
    let stats = &host.stats;
    let lookups = stats.hits + stats.misses;
    let [cached, dirty, trees, global] = &stats.memory;
    let page_cache = host.fs.has_metadata().then(|| metrics::PageCache {
        size_bytes: host.config.page_cache_bytes,
        policy: host.config.flush_policy.clone(),
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
    let file_system = host.fs.has_metadata().then_some(metrics::FileSystem {
        commits: stats.commits,
        journal_blocks: stats.journal_blocks,
        checkpoint_blocks: stats.checkpoint_blocks,
        discarded_blocks: stats.discarded_blocks,
        merged_requests: merged,
    });
    Sections { benchmark: stats.benchmark(done), page_cache, file_system }
}

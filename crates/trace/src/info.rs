//! What a trace holds: the figures of `ftlab trace info`.

use crate::depth::Depth;
use crate::footprint::Footprint;
use crate::input::Input;
use crate::options::Options;
use crate::pipeline::Pipeline;
use crate::range::touch;
use crate::sanity::Sanity;
use crate::text::Stamps;
use ftlab_core::settings::Replay;
use ftlab_core::workload::{Op, Record, Source, SourceError};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;

const SECOND_NS: u64 = 1_000_000_000;
const BLOCK: u64 = 4096;

/// Figures of a trace, with all of the reader's options applied except `out_of_range`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Info {
    /// The file, or the caller's name for it.
    pub path: String,
    /// The layout, which was named or recognised.
    pub format: &'static str,
    /// What the layout was recognised by; `None` if it was named.
    pub recognised_by: Option<String>,
    /// gzip, zstd, xz or bzip2, if the file is compressed.
    pub compression: Option<&'static str>,
    /// Number of requests kept: reads, writes, trims and flushes.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of trims.
    pub trims: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes trimmed.
    pub bytes_trimmed: u64,
    /// Time from the first arrival to the last, ns.
    pub span_ns: u64,
    /// Mean number of requests per second over the span; `None` if there is no span.
    pub mean_rate_per_s: Option<f64>,
    /// Number of requests in the busiest second, counted in whole seconds from the first arrival; `None` if the trace
    /// has no times.
    pub peak_rate_per_s: Option<u64>,
    /// Lowest offset of any request; `None` if no request has a range.
    pub min_offset: Option<u64>,
    /// One past the highest byte of any request.
    pub max_end: Option<u64>,
    /// Bytes of the pages touched.
    pub footprint_bytes: u64,
    /// The page size in which the footprint is counted, bytes.
    pub page_bytes: u32,
    /// Largest power of two that divides every offset and size, bytes.
    pub alignment_bytes: Option<u64>,
    /// Share of the requests with a range whose offset and size are multiples of 4 KiB.
    pub aligned_4kib: Option<f64>,
    /// Share of the requests with a range that begin where the previous one ended.
    pub sequential_ratio: Option<f64>,
    /// Mean size of the requests with a range, bytes.
    pub mean_size_bytes: Option<f64>,
    /// The most frequent sizes, most frequent first.
    pub sizes: Vec<SizeCount>,
    /// What each stream has, in the order of their numbers; empty if the layout has no streams.
    pub streams: Vec<StreamCount>,
    /// Number of stamps that were smaller than an earlier one and were raised to it.
    pub out_of_order: u64,
    /// Number of rows dropped, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Notes for people who read the figures.
    pub notes: Vec<String>,
    /// Reasons to doubt that the trace is what it seems to be, each with the remedy.
    pub doubts: Vec<String>,
}

/// How often a size occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    /// Bytes of a request.
    pub bytes: u64,
    /// Number of requests of that size.
    pub requests: u64,
}

/// What the requests of a stream are.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StreamCount {
    /// Number of the stream, as a request has it.
    pub stream: u16,
    /// What the trace calls it; `None` for stream 0, and in layouts whose streams are numbers.
    pub name: Option<String>,
    /// Number of requests.
    pub requests: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Share of all requests, from 0 to 1.
    pub share: f64,
}

/// Reads a trace to its end and computes its figures.
///
/// # Errors
/// Those of [`crate::open`].
pub fn info(path: &str, options: &Options) -> Result<Info, SourceError> {
    let options = options.as_recorded();
    count(Pipeline::new(Input::file(path, &options)?, &options)?, &options)
}

/// Returns how a trace is replayed, if nobody says how.
fn replay_of(recording: bool, stamps: Stamps) -> Replay {
    match stamps {
        // A trace without times cannot have been mistaken for one of another layout.
        Stamps::Absent => Replay::Closed,
        _ if recording => Replay::Dependent,
        _ => Replay::Open,
    }
}

/// What one pass over the trace counts.
#[derive(Default)]
struct Counts {
    /// Number of requests, by operation.
    requests: [u64; 4],
    bytes: [u64; 4],
    first_ns: Option<u64>,
    last_ns: u64,
    second: u64,
    in_second: u64,
    peak: u64,
    range: Option<(u64, u64)>,
    previous_end: Option<u64>,
    sequential: u64,
    aligned: u64,
    /// All offsets and sizes, combined by "or".
    bits: u64,
    footprint: Footprint,
    sizes: FxHashMap<u64, u64>,
    uncounted_sizes: u64,
    /// By stream, as far as one has a request.
    streams: Vec<StreamCount>,
}

impl Counts {
    fn add(&mut self, record: &Record, page_bytes: u64) {
        let op = record.op as usize;
        self.requests[op] += 1;
        self.add_time(record.time_ns);
        self.add_stream(record);
        if record.size == 0 {
            return;
        }
        self.bytes[op] = self.bytes[op].saturating_add(record.size);
        let end = record.offset + record.size;
        let (low, high) = self.range.unwrap_or((u64::MAX, 0));
        self.range = Some((low.min(record.offset), high.max(end)));
        self.sequential += u64::from(self.previous_end == Some(record.offset));
        self.previous_end = Some(end);
        let bits = record.offset | record.size;
        self.aligned += u64::from(bits.is_multiple_of(BLOCK));
        self.bits |= bits;
        touch(&mut self.footprint, record, page_bytes);
        self.add_size(record.size);
    }

    fn add_stream(&mut self, record: &Record) {
        let stream = usize::from(record.stream);
        if stream >= self.streams.len() {
            self.streams.resize_with(stream + 1, StreamCount::default);
        }
        let count = &mut self.streams[stream];
        count.requests += 1;
        let bytes = match record.op {
            Op::Read => &mut count.bytes_read,
            Op::Write => &mut count.bytes_written,
            Op::Trim | Op::Flush => return,
        };
        *bytes = bytes.saturating_add(record.size);
    }

    /// Returns the streams that have requests, with their names.
    fn named_streams(self, names: &[String], requests: u64) -> Vec<StreamCount> {
        let named = |(stream, count): (u16, StreamCount)| StreamCount {
            stream,
            name: usize::from(stream).checked_sub(1).and_then(|at| names.get(at).cloned()),
            share: count.requests as f64 / requests as f64,
            ..count
        };
        let seen = (0..=u16::MAX).zip(self.streams).filter(|(_, count)| count.requests > 0);
        seen.map(named).collect()
    }

    fn add_time(&mut self, time_ns: u64) {
        let first_ns = *self.first_ns.get_or_insert(time_ns);
        self.last_ns = time_ns;
        let second = (time_ns - first_ns) / SECOND_NS;
        if second != self.second {
            self.second = second;
            self.in_second = 0;
        }
        self.in_second += 1;
        self.peak = self.peak.max(self.in_second);
    }

    fn add_size(&mut self, size: u64) {
        /// The largest number of different sizes that are counted: a bound on memory that no real trace comes
        /// near.
        const MOST: usize = 1 << 18;
        if let Some(count) = self.sizes.get_mut(&size) {
            *count += 1;
        } else if self.sizes.len() < MOST {
            self.sizes.insert(size, 1);
        } else {
            self.uncounted_sizes += 1;
        }
    }

    fn top_sizes(&self) -> Vec<SizeCount> {
        const TOP: usize = 8;
        let mut sizes: Vec<_> =
            self.sizes.iter().map(|(&bytes, &requests)| SizeCount { bytes, requests }).collect();
        sizes.sort_unstable_by_key(|size| (std::cmp::Reverse(size.requests), size.bytes));
        sizes.truncate(TOP);
        sizes
    }
}

fn count(mut source: Pipeline, options: &Options) -> Result<Info, SourceError> {
    let page_bytes = u64::from(options.page_bytes);
    let (mut counts, mut sanity) = (Counts::default(), Sanity::default());
    while let Some(record) = source.next()? {
        counts.add(&record, page_bytes);
        sanity.add(&record);
    }
    let (summary, has_streams) = (source.summary(), source.has_streams()?);
    let [reads, writes, trims, flushes] = counts.requests;
    let requests = reads + writes + trims + flushes;
    let ranged = reads + writes + trims;
    let share = |part: u64| (ranged > 0).then(|| part as f64 / ranged as f64);
    let span_ns = counts.last_ns - counts.first_ns.unwrap_or(0);
    let mut notes = summary.notes;
    notes.extend(source.depth().and_then(Depth::note));
    if counts.uncounted_sizes > 0 {
        notes.push(format!(
            "too many different sizes to count; {} requests are left out",
            counts.uncounted_sizes
        ));
    }
    let total: u128 = counts.bytes.iter().map(|&bytes| u128::from(bytes)).sum();
    let input = source.input();
    Ok(Info {
        path: input.name.clone(),
        format: input.format,
        recognised_by: input.told_by.clone(),
        compression: input.compression,
        requests,
        reads,
        writes,
        trims,
        flushes,
        bytes_read: counts.bytes[Op::Read as usize],
        bytes_written: counts.bytes[Op::Write as usize],
        bytes_trimmed: counts.bytes[Op::Trim as usize],
        span_ns,
        mean_rate_per_s: (span_ns > 0).then(|| requests as f64 / (span_ns as f64 / SECOND_NS as f64)),
        peak_rate_per_s: (input.stamps != Stamps::Absent).then_some(counts.peak),
        min_offset: counts.range.map(|range| range.0),
        max_end: counts.range.map(|range| range.1),
        alignment_bytes: (ranged > 0).then(|| 1 << counts.bits.trailing_zeros()),
        aligned_4kib: share(counts.aligned),
        sequential_ratio: share(counts.sequential),
        mean_size_bytes: (ranged > 0).then(|| total as f64 / ranged as f64),
        sizes: counts.top_sizes(),
        footprint_bytes: std::mem::take(&mut counts.footprint).finish().pages().saturating_mul(page_bytes),
        page_bytes: options.page_bytes,
        streams: match has_streams {
            true => counts.named_streams(source.stream_names(), requests),
            false => Vec::new(),
        },
        out_of_order: summary.out_of_order,
        dropped: summary.dropped,
        notes,
        doubts: sanity.verdict(&source, replay_of(summary.recording, input.stamps)),
    })
}

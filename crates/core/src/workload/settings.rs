//! `[workload]` and the generator's table.

use crate::config::form::Formed;
use crate::config::section::{ANY_TIME, OPERATION, Switched, bytes, count, defaults, number, one_of, share};
use crate::config::{Ignored, Key, Kind, Section, SizeMix, Value, Values, choice, section};

const PATH: Kind = Kind::Path;
/// Sizes of a generator's requests, each within the limits of `workload.synthetic.size`.
const SIZES: Kind = Kind::Form { form: &SizeMix::FORM, min: 512, max: 1 << 30 };

section! {
    /// `[workload]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Workload {
        /// Trace file to replay.
        trace: Option<String> = "workload.trace", PATH;
        /// Layout of the trace file.
        format: String = "workload.format", one_of(super::formats), "auto";
        /// Drop a request that repeats the operation, offset and size of a kept request within this time of it.
        dedup_ns: u64 = "workload.dedup", ANY_TIME, "0ms";
        /// Gaps between arrivals that are longer than this are shortened to it.
        max_gap_ns: Option<u64> = "workload.max_gap", ANY_TIME or "none", "none";
        /// Number of lines that may fail to parse before the trace is refused.
        skip_bad: u64 = "workload.skip_bad", count(0, u64::MAX >> 1), "0";
        /// Number of times that the trace is replayed, one after another.
        repeat: u64 = "workload.repeat", count(1, 1_000_000), "1";
        /// What to do with addresses beyond the user capacity.
        out_of_range: OutOfRange = "workload.out_of_range", "error";
        /// What a stream of a trace is; process and volume need a layout whose lines name one.
        streams: StreamsOf = "workload.streams", "layout";
        /// Whether requests arrive at their recorded times (open), host.queue_depth of them are kept outstanding
        /// (closed), or each waits for the one that it continues (dependent).
        replay: Replay = "workload.replay", "open";
        /// Whose requests these are; several loads at once are tenants of their own ([tenant.NAME]).
        tenants: By = "workload.tenants", "none";
        /// Arrival times are divided by this factor.
        speed: f64 = "workload.speed", number(0.0, 1e9), "1.0";
        /// Unit of the times in a version 3 fio iolog that is not fio's own; fio counts in us.
        fio_time_unit_ns: Option<u64> = "workload.fio_time_unit", OPERATION or "unknown", "unknown";
        /// What the objects of libCacheSim's layouts are: sectors, or bytes.
        object_unit: ObjectUnit = "workload.object_unit", "sector";
        /// The generator, if chosen.
        synthetic: Option<Synthetic>;
        /// Job file of fio; its jobs run as closed loops, which bypass the page cache (direct=1) or go through it.
        fio_job: Option<String> = "workload.fio_job", PATH;
    }
}

choice! {
    /// `workload.out_of_range`.
    pub enum OutOfRange {
        /// refuse a request beyond the user capacity
        Error = "error",
        /// page number modulo the user capacity
        Wrap = "wrap",
        /// the pages touched are packed densely, in the same order
        Compact = "compact",
    }
}

choice! {
    /// `workload.tenants`.
    pub enum By {
        /// all requests have one sender
        None = "none",
        /// the requests of each stream are a tenant's
        Stream = "by-stream",
    }
}

choice! {
    /// `workload.streams`.
    pub enum StreamsOf {
        /// what the layout has as its streams, if it has any
        Layout = "layout",
        /// the requests of a process
        Process = "process",
        /// the requests to a volume, disk or device
        Volume = "volume",
    }
}

choice! {
    /// `workload.object_unit`.
    pub enum ObjectUnit {
        /// an object is the number of a sector of 512 B
        Sector = "sector",
        /// an object is a byte offset, as libCacheSim's own converters write it
        Byte = "byte",
    }
}

choice! {
    /// `workload.replay`.
    pub enum Replay {
        /// requests arrive at their recorded times
        Open = "open",
        /// host.queue_depth requests are kept outstanding; recorded times are ignored
        Closed = "closed",
        /// a request waits for the one of its stream that it continues, and for the time that its sender took since
        /// then; needs a trace with completions
        Dependent = "dependent",
    }
}

section! {
    /// `[workload.synthetic]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Synthetic {
        /// Number of requests; setting it chooses the generator instead of a trace.
        requests: u64 = "workload.synthetic.requests", count(1, 1 << 40);
        /// Order of addresses.
        pattern: Pattern = "workload.synthetic.pattern", "random";
        /// Exponent of pattern zipf.
        zipf_theta: f64 = "workload.synthetic.zipf_theta", number(0.0, 10.0), "1.1";
        /// Share of reads.
        read_ppm: u64 = "workload.synthetic.read_share", share(0, 1_000_000), "50%";
        /// Share of trims; everything but reads and trims is a write.
        trim_ppm: u64 = "workload.synthetic.trim_share", share(0, 1_000_000), "0%";
        /// The shares hold exactly, except for rounding to whole requests: operations are drawn without replacement.
        exact_mix: bool = "workload.synthetic.exact_mix", "false";
        /// Bytes per request.
        size: u64 = "workload.synthetic.size", bytes(512, 1 << 30), "4KiB";
        /// Sizes of reads with their weights, as in fio's bssplit.
        read_sizes: SizeMix
            = "workload.synthetic.read_sizes", SIZES or "size" as "workload.synthetic.size", "size";
        /// Sizes of writes and trims with their weights.
        write_sizes: SizeMix
            = "workload.synthetic.write_sizes", SIZES or "size" as "workload.synthetic.size", "size";
        /// With arrival bursts: share of the requests in a burst that have the same size as the previous request of
        /// their kind; without size_persistence, this is the correlation of the sizes.
        size_correlation_ppm: u64 = "workload.synthetic.size_correlation", share(0, 1_000_000), "0%";
        /// With arrival bursts: correlation of the sizes of any two requests of one kind in a burst, however far
        /// apart: each burst has a size, and its requests take it with the square root of this as probability.
        size_persistence_ppm: u64 = "workload.synthetic.size_persistence", share(0, 1_000_000), "0%";
        /// With size_persistence: share of the bursts that have the size of the previous burst of their kind; this
        /// is the correlation of the bursts' sizes.
        burst_size_correlation_ppm: u64
            = "workload.synthetic.burst_size_correlation", share(0, 1_000_000), "0%";
        /// Addresses drawn are multiples of this; "size": of the smallest request size, as with fio's blockalign.
        align: Option<u64> = "workload.synthetic.align", bytes(512, 1 << 30) or "size", "size";
        /// Number of bytes addressed, from offset 0.
        region: Option<u64> = "workload.synthetic.region", bytes(512, 1 << 60) or "device", "device";
        /// With pattern hot-cold: share of requests that go to the hot part.
        hot_share_ppm: u64 = "workload.synthetic.hot_share", share(0, 1_000_000), "80%";
        /// With pattern hot-cold: share of the region, from its beginning, that is hot.
        hot_region_ppm: u64 = "workload.synthetic.hot_region", share(1, 1_000_000), "20%";
        /// With pattern hot-cold: instead of the region's beginning, the beginning of each piece of this size is hot,
        /// so that hot data is scattered.
        hot_piece: Option<u64> = "workload.synthetic.hot_piece", bytes(512, 1 << 60) or "region", "region";
        /// Share of requests that begin where the previous request ended, whatever the pattern.
        sequential_ppm: u64 = "workload.synthetic.sequential_share", share(0, 1_000_000), "0%";
        /// Share of the non-sequential requests that begin in the same near_range as one of the previous 8 requests.
        near_ppm: u64 = "workload.synthetic.near_share", share(0, 1_000_000), "0%";
        /// Size and alignment of the ranges of near_share; 2MiB is what a translation page maps: 512 pages of 4KiB.
        near_range: u64 = "workload.synthetic.near_range", bytes(512, 1 << 60), "2MiB";
        /// Share of the near requests that continue the run of that earlier request, as interleaved streams do.
        near_sequential_ppm: u64 = "workload.synthetic.near_sequential", share(0, 1_000_000), "0%";
        /// Arrival process.
        arrival: Arrival = "workload.synthetic.arrival", "exponential";
        /// Mean time between arrivals; with arrival bursts, within a burst.
        interarrival_ns: u64 = "workload.synthetic.interarrival", ANY_TIME, "100us";
        /// With arrival bursts: mean number of requests in a burst (geometrically distributed).
        burst_length: f64 = "workload.synthetic.burst_length", number(1.0, 1e9), "10.0";
        /// With arrival bursts: share of bursts that are cut to a single request, in addition to those that
        /// burst_length makes so short.
        isolated_ppm: u64 = "workload.synthetic.isolated_share", share(0, 1_000_000), "0%";
        /// With burst_ops single: mean number of requests in a burst of reads; "same": as burst_length.
        read_burst_length: f64 = "workload.synthetic.read_burst_length",
            number(1.0, 1e9) or "same" as "workload.synthetic.burst_length", "same";
        /// With arrival bursts: mean time from the last request of a burst to the next burst (exponentially
        /// distributed).
        burst_gap_ns: u64 = "workload.synthetic.burst_gap", ANY_TIME, "10ms";
        /// With arrival bursts: share of the bursts that begin after a pause instead of burst_gap.
        pause_ppm: u64 = "workload.synthetic.pause_share", share(0, 1_000_000), "0%";
        /// Mean length of the pauses of pause_share (exponentially distributed).
        pause_ns: u64 = "workload.synthetic.pause", ANY_TIME, "1s";
        /// Operations within a burst.
        burst_ops: BurstOps = "workload.synthetic.burst_ops", "mixed";
        /// With burst_ops mixed: share of the requests in a burst that have the operation of the previous request; the
        /// others draw theirs at random.
        op_correlation_ppm: u64 = "workload.synthetic.op_correlation", share(0, 1_000_000), "0%";
    }
}

/// Setting the number of requests chooses the generator.
impl Switched for Synthetic {
    fn declare_with_switch(keys: &mut Vec<Key>) {
        Synthetic::declare(keys);
    }

    fn read_if_on(values: &Values) -> Option<Synthetic> {
        values.contains_key("workload.synthetic.requests").then(|| Synthetic::read(values))
    }
}

impl Synthetic {
    /// Makes the settings of a generator of this many requests; their number is the only key without a default.
    pub fn new(requests: u64) -> Synthetic {
        let mut values = defaults::<Synthetic>();
        values.insert("workload.synthetic.requests", Value::Count(requests));
        Synthetic::read(&values)
    }

    /// Returns the smallest and the largest size, bytes.
    pub fn size_range(&self) -> (u64, u64) {
        let (reads, writes) = (self.read_sizes.range(), self.write_sizes.range());
        (reads.0.min(writes.0), reads.1.max(writes.1))
    }

    /// Returns the alignment of the addresses drawn, bytes.
    pub fn align_bytes(&self) -> u64 {
        self.align.unwrap_or(self.size_range().0)
    }
}

choice! {
    /// `workload.synthetic.pattern`.
    pub enum Pattern {
        /// uniform over the region, aligned to the request size
        Random = "random",
        /// consecutive; after the region's end, from its start again
        Sequential = "sequential",
        /// aligned to the request size, zipf-distributed over the region
        Zipf = "zipf",
        /// hot_share of the requests go to the first hot_region of the region, the others to the remainder
        HotCold = "hot-cold",
    }
}

choice! {
    /// `workload.synthetic.arrival`.
    pub enum Arrival {
        /// independent arrivals (a Poisson process), interarrival apart on average
        Exponential = "exponential",
        /// requests exactly interarrival apart
        Constant = "constant",
        /// bursts of burst_length requests, interarrival apart (exponentially distributed), with burst_gap between
        /// bursts
        Bursts = "bursts",
    }
}

choice! {
    /// `workload.synthetic.burst_ops`.
    pub enum BurstOps {
        /// each request draws its operation
        Mixed = "mixed",
        /// all requests of a burst have one operation
        Single = "single",
    }
}

/// Collects the keys that the chosen load ignores, with the reason.
pub(crate) fn ignored(workload: &Workload, found: &mut Ignored) {
    let traced = [
        "workload.format",
        "workload.dedup",
        "workload.max_gap",
        "workload.skip_bad",
        "workload.repeat",
        "workload.out_of_range",
        "workload.streams",
        "workload.fio_time_unit",
        "workload.object_unit",
    ];
    found.unless(workload.trace.is_some(), &traced, "there is no trace (workload.trace)");
    let recorded = workload.trace.is_some() || workload.synthetic.is_some();
    let clients = "clients send their requests as those before complete";
    found.unless(recorded, &["workload.replay", "workload.speed"], clients);
    let open = workload.replay != Replay::Closed;
    let closed = "workload.replay = \"closed\" goes by no arrival times";
    found.unless(open, &["workload.max_gap", "workload.speed"], closed);
    let Some(generator) = &workload.synthetic else {
        let none = "there is no generator (workload.synthetic.requests)";
        return found.section::<Synthetic>(false, &[], none);
    };
    found.unless(open, &["workload.synthetic.interarrival"], closed);
    let pattern = |pattern: Pattern| generator.pattern == pattern;
    let zipf = "workload.synthetic.pattern is not \"zipf\"";
    found.unless(pattern(Pattern::Zipf), &["workload.synthetic.zipf_theta"], zipf);
    let hot =
        ["workload.synthetic.hot_share", "workload.synthetic.hot_region", "workload.synthetic.hot_piece"];
    found.unless(pattern(Pattern::HotCold), &hot, "workload.synthetic.pattern is not \"hot-cold\"");
    let near = ["workload.synthetic.near_range", "workload.synthetic.near_sequential"];
    found.unless(generator.near_ppm > 0, &near, "workload.synthetic.near_share is 0%");
    bursts(generator, open, found);
}

fn bursts(generator: &Synthetic, open: bool, found: &mut Ignored) {
    let bursts = [
        "workload.synthetic.burst_length",
        "workload.synthetic.isolated_share",
        "workload.synthetic.read_burst_length",
        "workload.synthetic.burst_gap",
        "workload.synthetic.pause_share",
        "workload.synthetic.pause",
        "workload.synthetic.burst_ops",
        "workload.synthetic.size_correlation",
        "workload.synthetic.op_correlation",
        "workload.synthetic.size_persistence",
        "workload.synthetic.burst_size_correlation",
    ];
    let kind = "workload.synthetic.arrival is not \"bursts\"";
    found.unless(generator.arrival == Arrival::Bursts, &bursts, kind);
    let single = "workload.synthetic.burst_ops is not \"single\"";
    found.unless(generator.burst_ops == BurstOps::Single, &bursts[2..3], single);
    let mixed = "workload.synthetic.burst_ops is not \"mixed\"";
    found.unless(generator.burst_ops == BurstOps::Mixed, &bursts[8..9], mixed);
    found.unless(generator.pause_ppm > 0, &bursts[5..6], "workload.synthetic.pause_share is 0%");
    let persists = generator.size_persistence_ppm > 0;
    found.unless(persists, &bursts[10..], "workload.synthetic.size_persistence is 0%");
    found.unless(open, &bursts[3..4], "workload.replay = \"closed\" goes by no arrival times");
}

//! The keys that belong to no exchangeable part, and the list of all keys.
//!
//! A policy's own keys stand in the policy's file and reach this list through
//! its registry ([`crate::sched`], [`crate::device::sched`], [`crate::ftl`]).

use super::section::{self, ANY_TIME};
use super::{Choice, Key, Kind};

const TIB: u64 = 1 << 40;
const fn key(path: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { path, kind, default, words: &[], doc }
}

const fn or_word(
    path: &'static str,
    kind: Kind,
    words: &'static [&'static str],
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key { path, kind, default, words, doc }
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

/// Sizes of a generator's requests, each within the limits of `workload.synthetic.size`.
const SIZES: Kind = Kind::SizeMix { min: 512, max: 1 << 30 };

fn choices(list: &[(&'static str, &'static str)]) -> Vec<Choice> {
    list.iter().map(|&(name, doc)| Choice { name, doc }).collect()
}

fn out_of_range() -> Vec<Choice> {
    choices(&[
        ("error", "refuse a request beyond the user capacity"),
        ("wrap", "page number modulo the user capacity"),
        ("compact", "touched pages packed densely, their order kept"),
    ])
}

fn replay() -> Vec<Choice> {
    choices(&[
        ("open", "requests arrive at their recorded times"),
        ("closed", "host.queue_depth requests are kept outstanding; recorded times are ignored"),
    ])
}

fn partial_write() -> Vec<Choice> {
    choices(&[
        ("ignore", "a partly written logical page costs a program alone"),
        ("rmw", "a partly written logical page is read first"),
    ])
}

fn capacity_step() -> Vec<Choice> {
    choices(&[("page", "logical pages"), ("block", "erase blocks")])
}

fn pattern() -> Vec<Choice> {
    choices(&[
        ("random", "uniform over the region, aligned to the request size"),
        ("sequential", "consecutive, from the region's start again at its end"),
        ("zipf", "aligned to the request size, zipf-distributed over the region"),
        ("hot-cold", "hot_share of the requests to the first hot_region of the region, the rest to the rest"),
    ])
}

fn arrival() -> Vec<Choice> {
    choices(&[
        ("exponential", "independent arrivals (a Poisson process), interarrival apart on average"),
        ("constant", "interarrival apart"),
        ("bursts", "bursts of burst_length, interarrival apart within (exponential), burst_gap between"),
    ])
}

fn burst_ops() -> Vec<Choice> {
    choices(&[
        ("mixed", "each request draws its operation"),
        ("single", "all requests of a burst have one operation"),
    ])
}

/// Keys outside the registries, in the order of the stack.
pub const GENERAL: &[Key] = &[
    key("seed", count(0, u64::MAX >> 1), "1", "Seed of every random stream of the run."),
    key("workload.trace", Kind::Path, "", "Trace file to replay."),
    key("workload.format", Kind::Choice(crate::workload::formats), "auto", "Layout of the trace file."),
    key(
        "workload.dedup",
        ANY_TIME,
        "0ms",
        "Drop a repeat of op, offset and size within this time of the one kept.",
    ),
    or_word("workload.max_gap", ANY_TIME, &["none"], "none", "Shorten longer gaps between arrivals to this."),
    key(
        "workload.skip_bad",
        count(0, u64::MAX >> 1),
        "0",
        "Lines that may fail to parse before the trace is refused.",
    ),
    key("workload.repeat", count(1, 1_000_000), "1", "Times the trace is replayed, one after another."),
    key(
        "workload.out_of_range",
        Kind::Choice(out_of_range),
        "error",
        "What to do with addresses beyond the user capacity.",
    ),
    key(
        "workload.replay",
        Kind::Choice(replay),
        "open",
        "Open: at recorded times. Closed: host.queue_depth outstanding.",
    ),
    key("workload.speed", Kind::Number { min: 0.0, max: 1e9 }, "1.0", "Arrival times are divided by this."),
    or_word(
        "workload.fio_time_unit",
        Kind::Duration { max_ns: 1_000_000_000 },
        &["unknown"],
        "unknown",
        "Unit of the times in a version 3 fio iolog (1us or 1ns); such a log is refused without it.",
    ),
    key(
        "workload.synthetic.requests",
        count(1, 1 << 40),
        "",
        "Number of requests; naming it chooses the generator instead of a trace.",
    ),
    key("workload.synthetic.pattern", Kind::Choice(pattern), "random", "Order of addresses."),
    key(
        "workload.synthetic.zipf_theta",
        Kind::Number { min: 0.0, max: 10.0 },
        "1.1",
        "Exponent of pattern zipf.",
    ),
    key(
        "workload.synthetic.read_share",
        Kind::Percent { min_ppm: 0, max_ppm: 1_000_000 },
        "50%",
        "Share of reads.",
    ),
    key(
        "workload.synthetic.trim_share",
        Kind::Percent { min_ppm: 0, max_ppm: 1_000_000 },
        "0%",
        "Share of trims; the rest beside reads and trims are writes.",
    ),
    key(
        "workload.synthetic.exact_mix",
        Kind::Bool,
        "false",
        "The shares hold exactly: operations are drawn without replacement (rounded to whole requests).",
    ),
    key("workload.synthetic.size", Kind::Bytes { min: 512, max: 1 << 30 }, "4KiB", "Bytes per request."),
    or_word(
        "workload.synthetic.read_sizes",
        SIZES,
        &["size"],
        "size",
        "Sizes of reads with their weights, as fio's bssplit.",
    ),
    or_word(
        "workload.synthetic.write_sizes",
        SIZES,
        &["size"],
        "size",
        "Sizes of writes and trims with their weights.",
    ),
    or_word(
        "workload.synthetic.align",
        Kind::Bytes { min: 512, max: 1 << 30 },
        &["size"],
        "size",
        "Addresses drawn are multiples of this; \"size\": of the smallest size, as fio's blockalign.",
    ),
    or_word(
        "workload.synthetic.region",
        Kind::Bytes { min: 512, max: 1 << 60 },
        &["device"],
        "device",
        "Bytes addressed, from offset 0.",
    ),
    key(
        "workload.synthetic.hot_share",
        Kind::Percent { min_ppm: 0, max_ppm: 1_000_000 },
        "80%",
        "Pattern hot-cold: share of requests that go to the hot part.",
    ),
    key(
        "workload.synthetic.hot_region",
        Kind::Percent { min_ppm: 1, max_ppm: 1_000_000 },
        "20%",
        "Pattern hot-cold: share of the region that is hot, its beginning.",
    ),
    or_word(
        "workload.synthetic.hot_piece",
        Kind::Bytes { min: 512, max: 1 << 60 },
        &["region"],
        "region",
        "Pattern hot-cold: the beginning of each piece of this size is hot instead, so that hot data is scattered.",
    ),
    key(
        "workload.synthetic.sequential_share",
        Kind::Percent { min_ppm: 0, max_ppm: 1_000_000 },
        "0%",
        "Share of requests that begin where the one before ended, whatever the pattern.",
    ),
    key(
        "workload.synthetic.near_share",
        Kind::Percent { min_ppm: 0, max_ppm: 1_000_000 },
        "0%",
        "Of the requests that are not sequential, the share that begin in the range of one of the 8 before.",
    ),
    key(
        "workload.synthetic.near_range",
        Kind::Bytes { min: 512, max: 1 << 60 },
        "2MiB",
        "Ranges of near_share, aligned; 2MiB: a translation page of 512 pages of 4KiB.",
    ),
    key(
        "workload.synthetic.near_sequential",
        Kind::Percent { min_ppm: 0, max_ppm: 1_000_000 },
        "0%",
        "Of the near requests, the share that go on where the run of that one ended: interleaved streams.",
    ),
    key("workload.synthetic.arrival", Kind::Choice(arrival), "exponential", "Process of arrivals."),
    key(
        "workload.synthetic.interarrival",
        ANY_TIME,
        "100us",
        "Mean time between arrivals; with arrival bursts, within a burst.",
    ),
    key(
        "workload.synthetic.burst_length",
        Kind::Number { min: 1.0, max: 1e9 },
        "10.0",
        "Arrival bursts: mean requests in a burst (geometric).",
    ),
    or_word(
        "workload.synthetic.read_burst_length",
        Kind::Number { min: 1.0, max: 1e9 },
        &["same"],
        "same",
        "Burst_ops single: mean requests in a burst of reads; \"same\": as burst_length.",
    ),
    key(
        "workload.synthetic.burst_gap",
        ANY_TIME,
        "10ms",
        "Arrival bursts: mean time from the last request of a burst to the next burst (exponential).",
    ),
    key(
        "workload.synthetic.pause_share",
        Kind::Percent { min_ppm: 0, max_ppm: 1_000_000 },
        "0%",
        "Arrival bursts: share of the bursts that begin after a pause instead of burst_gap.",
    ),
    key("workload.synthetic.pause", ANY_TIME, "1s", "Mean length of such a pause (exponential)."),
    key("workload.synthetic.burst_ops", Kind::Choice(burst_ops), "mixed", "Operations within a burst."),
    key(
        "workload.fio_job",
        Kind::Path,
        "",
        "Job file of fio: its jobs run as closed loops, past the page cache (direct=1) or through it.",
    ),
    or_word(
        "host.queue_depth",
        count(1, 1 << 30),
        &["unlimited"],
        "128",
        "Requests the scheduler's pending queue holds.",
    ),
    key("host.scheduler", Kind::Choice(crate::sched::choices), "noop", "I/O scheduler."),
    or_word(
        "host.deadline",
        ANY_TIME,
        &["none"],
        "10ms",
        "A request that has waited this long is dispatched before any choice.",
    ),
    key(
        "host.awareness",
        Kind::Choice(crate::coop::choices),
        "full",
        "How the scheduler learns which mappings the device caches.",
    ),
    or_word(
        "host.merge_limit",
        Kind::Bytes { min: 0, max: 1 << 40 },
        &["auto"],
        "auto",
        "Adjacent requests in the pending queue merge up to this; 0B: never; auto: where they come from a page cache 512KiB, or a flash block under irbw, padding and coop; else never.",
    ),
    or_word(
        "host.merge_boundary",
        Kind::Bytes { min: 512, max: 1 << 40 },
        &["none"],
        "none",
        "Requests do not merge across multiples of this; under irbw, padding and coop writes never do across a flash block's.",
    ),
    key("ftl.kind", Kind::Choice(crate::ftl::choices), "page", "Flash translation layer."),
    or_word(
        "ftl.mapping_cache",
        Kind::Bytes { min: 0, max: TIB },
        &["unlimited"],
        "unlimited",
        "Capacity of the mapping cache.",
    ),
    or_word(
        "ftl.logical_page",
        Kind::Bytes { min: 512, max: 1 << 24 },
        &["page"],
        "page",
        "Unit of the mapping; the NAND page unless set.",
    ),
    key(
        "ftl.partial_write",
        Kind::Choice(partial_write),
        "ignore",
        "Cost of writing a part of a logical page.",
    ),
    key(
        "ftl.over_provisioning",
        Kind::Percent { min_ppm: 0, max_ppm: 990_000 },
        "7%",
        "Share of the raw capacity withheld from the user.",
    ),
    key(
        "ftl.capacity_step",
        Kind::Choice(capacity_step),
        "page",
        "What the user capacity is a whole number of, once ftl.over_provisioning is withheld.",
    ),
    key(
        "ftl.gc",
        Kind::Choice(crate::ftl::gc::choices),
        "greedy",
        "Victim selection of garbage collection, of user data and translation pages alike.",
    ),
    key(
        "ftl.gc_free_blocks",
        count(1, 1 << 20),
        "1",
        "Erased blocks each chip keeps, the urgent threshold; taking the last starts garbage collection in the foreground.",
    ),
    key(
        "ftl.gc_background",
        Kind::Bool,
        "false",
        "Collect garbage in steps while a chip is idle, when it has fewer than ftl.gc_normal_blocks erased blocks.",
    ),
    key(
        "ftl.gc_normal_blocks",
        count(2, 1 << 20),
        "4",
        "Erased blocks of a chip, ftl.gc_free_blocks included, below which ftl.gc_background collects.",
    ),
    key(
        "ftl.gc_step",
        count(1, 65_536),
        "1",
        "Pages that a step of ftl.gc_background programs, and a request may have to wait for; an erase is a step.",
    ),
    key(
        "ftl.entry",
        Kind::Bytes { min: 1, max: 64 },
        "8B",
        "Bytes of one mapping entry, in a translation page and in the cache.",
    ),
];

/// Every key of this build: [`GENERAL`] and those of the registered parts.
pub fn all() -> Vec<Key> {
    let mut keys = GENERAL.to_vec();
    // Tables stand in the order of their first keys: the workload's before the host's.
    let host = keys.iter().position(|key| key.path.starts_with("host.")).unwrap_or(keys.len());
    keys.splice(host..host, crate::workload::bench::KEYS.iter().copied());
    let ftl = keys.iter().position(|key| key.path.starts_with("ftl.")).unwrap_or(keys.len());
    keys.splice(ftl..ftl, section::keys::<crate::device::settings::Device>());
    keys.extend(crate::sched::keys());
    keys.extend_from_slice(crate::cache::KEYS);
    keys.extend_from_slice(crate::fs::KEYS);
    keys.extend(crate::ftl::keys());
    keys.push(Key {
        path: "ftl.allocation",
        kind: crate::flash::parallel::ALLOCATION,
        default: "cwdp",
        words: &[],
        doc: "Where pages go: the order of channel, way (chip), die and plane, first letter fastest; or the next idle one.",
    });
    keys.extend(section::keys::<crate::flash::Flash>());
    keys.extend(section::keys::<crate::metrics::Results>());
    keys
}

/// Keys of `[ftl]` and `[flash]` that leave the state at time 0 as it is: times, and what matters
/// to the requests of the run alone.
const NO_STATE: &[&str] = &[
    "ftl.background_flush",
    "ftl.csm_threshold",
    "ftl.gc_background",
    "ftl.gc_normal_blocks",
    "ftl.gc_step",
    "ftl.host_flush",
    "ftl.partial_write",
    "ftl.spare_threshold",
    "flash.cache_program",
    "flash.cache_read",
    "flash.capacity",
    "flash.command",
    "flash.erase",
    "flash.max_passed",
    "flash.max_suspensions",
    "flash.out_of_order",
    "flash.program",
    "flash.read",
    "flash.resume_time",
    "flash.suspend",
    "flash.suspend_time",
    "flash.transfer",
];

/// Whether the state of the flash at time 0 depends on a key, so that a saved state is that of its
/// value alone. A key of `[ftl]` or `[flash]` does unless it is known not to.
pub fn shapes_state(path: &str) -> bool {
    let device = path == "seed" || path.starts_with("device.precondition");
    let shape = path.starts_with("ftl.") || path.starts_with("flash.");
    (device || shape) && !NO_STATE.contains(&path)
}

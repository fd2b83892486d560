//! `[results]`: what a result holds beside its fixed fields.

use super::{Key, Kind};

/// What is measured in addition; all of it off by default, when it costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// The histograms that percentiles come from.
    pub histograms: bool,
    /// What happened over simulated time.
    pub series: bool,
    /// Erase counts by block.
    pub erase_map: bool,
    /// The mapping cache's misses by its size.
    pub miss_curve: bool,
}

const fn part(path: &'static str, doc: &'static str) -> Key {
    Key { path, kind: Kind::Bool, default: "false", words: &[], doc }
}

/// The keys of what a result holds.
pub const KEYS: &[Key] = &[
    part(
        "results.histograms",
        "Show the bins of every latency, wait and access distribution; --html sets all keys of [results].",
    ),
    part(
        "results.series",
        "Show flash operations by cause, requests, latencies and mapping hits over time, at most 256 intervals.",
    ),
    part("results.erase_map", "Show how often each block was erased, at most 4,096 cells."),
    part(
        "results.miss_curve",
        "Show the miss ratio that an LRU mapping cache of each size would have over the run's lookups.",
    ),
];

//! `[results]`: what a result holds besides its fixed fields.

use crate::config::section;

section! {
    /// What is measured in addition; everything is off by default, and then costs nothing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Results {
        /// Show the bins of every latency, wait and access distribution; --html sets all keys of [results].
        histograms: bool = "results.histograms", "false";
        /// Show requests, latencies, mapping hits, and flash operations by cause over time, in at most 256 intervals.
        series: bool = "results.series", "false";
        /// Show how often each block was erased, in at most 4,096 cells.
        erase_map: bool = "results.erase_map", "false";
        /// Show the miss ratio that an LRU mapping cache of each size would have over the run's lookups.
        miss_curve: bool = "results.miss_curve", "false";
    }
}

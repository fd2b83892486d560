//! Cooperation: what the device lets the host ask, and what the host may advise.

use crate::config::Choice;

/// Names for `host.awareness`.
pub fn choices() -> Vec<Choice> {
    const LIST: &[(&str, &str)] = &[
        ("full", "the scheduler asks the device's mapping cache"),
        ("polled", "a snapshot of the cache, taken every 1000 admissions"),
        ("lru", "the host simulates an LRU cache of the same capacity"),
        ("none", "every request counts as a miss"),
    ];
    LIST.iter().map(|&(name, doc)| Choice { name, doc }).collect()
}

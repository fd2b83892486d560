//! Merges of hybrid FTLs, as results show them.

use serde::Serialize;

use super::flash::ratio;
use crate::ftl::hybrid::merges::{MergeCount, MergeKind, MergeStats};

/// Merges of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Merge {
    /// Number of these merges.
    pub count: u64,
    /// Number of pages that they copied; for padded switch merges, of padding pages that they programmed.
    pub pages_copied: u64,
    /// Time of their copies and erases, and of the padding.
    pub busy_ns: u64,
    /// busy_ns / busy_ns of the operations of cause `host`.
    pub cost_ratio: Option<f64>,
}

/// Merges of a hybrid FTL by kind.
#[derive(Clone, Debug, Serialize)]
pub struct Merges {
    /// Full merges.
    pub full: Merge,
    /// Partial merges.
    pub partial: Merge,
    /// Switch merges.
    #[serde(rename = "switch")]
    pub switched: Merge,
    /// Switch merges after padding.
    pub padded_switch: Merge,
    /// Cooperative switch merges.
    pub cooperative: Merge,
}

impl Merges {
    /// Makes the section of these merges; `host_ns` is the time of operations of cause `host`.
    pub fn new(stats: &MergeStats, host_ns: u64) -> Merges {
        let of = |kind| {
            let MergeCount { count, pages_copied, busy_ns } = stats.of(kind);
            let cost_ratio = ratio(busy_ns, host_ns);
            Merge { count, pages_copied, busy_ns, cost_ratio }
        };
        Merges {
            full: of(MergeKind::Full),
            partial: of(MergeKind::Partial),
            switched: of(MergeKind::Switch),
            padded_switch: of(MergeKind::PaddedSwitch),
            cooperative: of(MergeKind::Cooperative),
        }
    }
}

//! `[results]`: what a result holds beside its fixed fields.

use super::{Key, Kind};

/// What is measured in addition; all of it off by default, when it costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// The histograms that percentiles come from.
    pub histograms: bool,
}

const fn part(path: &'static str, doc: &'static str) -> Key {
    Key { path, kind: Kind::Bool, default: "false", words: &[], doc }
}

/// The keys of what a result holds.
pub const KEYS: &[Key] = &[part(
    "results.histograms",
    "Show the bins of every latency, wait and access distribution; --html and --output-format fio set it.",
)];

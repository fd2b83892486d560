//! Which dirty pages are flushed together.
//!
//! A flush of a file, whatever its cause, walks its dirty pages in the order of the file's pages and asks
//! the policy at each for the unit that goes with it. The units' pages go to the block queue in the
//! order in which they are named.

use super::PageCache;
use crate::config::Choice;

/// Names for `host.flush_policy`.
pub fn choices() -> Vec<Choice> {
    vec![Choice { name: "baseline", doc: "a file's dirty pages in the order of its pages (Linux 2.6.32)" }]
}

/// A flush policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Page by page in the order of the file: Linux 2.6.32, the paper's Baseline.
    Baseline,
}

impl Policy {
    /// The policy of this name.
    ///
    /// # Panics
    /// If the name is not one of [`choices`].
    pub fn new(name: &str) -> Policy {
        match name {
            // A run without a page cache names none.
            "baseline" | "" => Policy::Baseline,
            other => panic!("unregistered flush policy {other}"),
        }
    }

    /// Appends the unit of dirty page `id` to `unit`: pages that are dirty, not under write-back and of the
    /// same file, `id` among them.
    pub fn unit(self, _cache: &PageCache, id: u32, unit: &mut Vec<u32>) {
        match self {
            Policy::Baseline => unit.push(id),
        }
    }
}

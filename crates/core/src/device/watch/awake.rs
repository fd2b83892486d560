//! For how long anything was under way in the device, which the controller's power depends on.
//!
//! What is under way changes only at instants, so it is enough to look at the beginning of each instant what has been
//! under way since the last one.

use super::Probe;

pub type Keys = ();

/// The time for which the device held a request of the host or worked for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Awake {
    /// Up to when the time is counted, ns.
    counted_ns: u64,
    /// The time, ns.
    pub active_ns: u64,
    /// The time at the last completion of a request of the workload.
    pub at_last_ns: u64,
}

impl Awake {
    /// Returns the time from the last count up to `now_ns`, ns, if anything has been under way since, but only from
    /// `first_ns` on.
    pub fn more_ns(&self, now_ns: u64, first_ns: Option<u64>, under_way: bool) -> u64 {
        let since_ns = self.counted_ns.max(first_ns.unwrap_or(now_ns));
        if under_way { now_ns.saturating_sub(since_ns) } else { 0 }
    }
}

impl Probe for Awake {
    const ISSUES: bool = false;
    const WORKS: bool = false;
    const TIME: bool = true;

    /// Counts up to `now_ns`, if anything has been under way since the last call, but only from `first_ns` on.
    fn passes(&mut self, now_ns: u64, first_ns: Option<u64>, under_way: bool) {
        self.active_ns += self.more_ns(now_ns, first_ns, under_way);
        self.counted_ns = now_ns;
    }

    fn completes(&mut self) {
        self.at_last_ns = self.active_ns;
    }
}

//! For how long anything was under way in the device, which the controller's power depends on.
//!
//! What is under way changes only at instants, so it is enough to look at the beginning of each instant what has been
//! under way since the last one.

/// The time for which the device held a request of the host or worked for itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Awake {
    /// Up to when the time is counted, ns.
    counted_ns: u64,
    pub active_ns: u64,
    /// The time at the last completion of a request of the workload.
    pub at_last_ns: u64,
}

impl Awake {
    /// Counts up to `now_ns`, if anything has been under way since the last call, but only from `first_ns` on.
    pub fn count(&mut self, now_ns: u64, first_ns: Option<u64>, under_way: bool) {
        let since_ns = self.counted_ns.max(first_ns.unwrap_or(now_ns));
        self.active_ns += if under_way { now_ns.saturating_sub(since_ns) } else { 0 };
        self.counted_ns = now_ns;
    }
}

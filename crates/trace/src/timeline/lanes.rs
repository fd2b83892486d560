//! The lanes on which requests are drawn.

use std::collections::{BTreeMap, BTreeSet};

use ftlab_core::sim::Dispatch;
use ftlab_core::workload::Op;

/// Tracks for requests: requests that overlap in time are drawn on different tracks.
#[derive(Debug, Default)]
pub struct Lanes {
    /// The free lanes: the time at which each became free, and its number.
    free: BTreeSet<(u64, u64)>,
    /// Number of lanes made so far.
    pub count: u64,
    announced: u64,
}

impl Lanes {
    /// Returns a lane that is free from `from_ns` on: the one freed last, or a new one if there are fewer
    /// than `most`.
    pub fn take(&mut self, from_ns: u64, most: u64) -> Option<u64> {
        if let Some(&slot) = self.free.range(..=(from_ns, u64::MAX)).next_back() {
            self.free.remove(&slot);
            return Some(slot.1);
        }
        (self.count < most).then(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// Whether a lane is used for the first time; must be called exactly once for each use.
    pub fn is_new(&mut self, lane: u64) -> bool {
        let new = lane == self.announced;
        self.announced += u64::from(new);
        new
    }

    /// Makes a lane free from this moment on.
    pub fn free(&mut self, lane: u64, from_ns: u64) {
        self.free.insert((from_ns, lane));
    }
}

/// Who sends requests: the tenants, each with lanes of its own, or a single sender.
#[derive(Debug)]
pub struct Senders {
    /// Names by stream; a stream without one is named by its number. `None`: there are no tenants.
    names: Option<Vec<String>>,
    lanes: BTreeMap<u16, Lanes>,
}

impl Senders {
    /// Makes the senders from the tenants' names, if there are tenants.
    pub fn new(names: Option<Vec<String>>) -> Senders {
        Senders { names, lanes: BTreeMap::new() }
    }

    /// Returns the name of a stream's tenant; empty if there are no tenants.
    pub fn name(&self, stream: u16) -> String {
        let Some(names) = &self.names else { return String::new() };
        names.get(usize::from(stream)).cloned().unwrap_or_else(|| stream.to_string())
    }

    /// Returns the name of the tenant for whose request something is done; empty if it is for none: a read without
    /// pages fetches mapping entries for the host.
    pub fn name_for(&self, request: &Dispatch) -> String {
        let for_host = request.op == Op::Read && request.pages == 0;
        if for_host { String::new() } else { self.name(request.stream) }
    }

    /// Returns the lanes of a stream's sender.
    pub fn lanes(&mut self, stream: u16) -> &mut Lanes {
        let own = if self.names.is_some() { stream } else { 0 };
        self.lanes.entry(own).or_default()
    }

    /// Returns the number of a sender's lane among those of all senders.
    pub fn number(&self, stream: u16, lane: u64) -> u64 {
        if self.names.is_some() { lane << 16 | u64::from(stream) } else { lane }
    }
}

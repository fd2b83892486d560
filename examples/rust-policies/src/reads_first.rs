//! Reads first: while the LUNs are idle, a read is issued before all waiting writes; reads keep their order of
//! arrival, and so do writes.

use ftlab_core::device::Array;
use ftlab_core::device::sched::{Keys, Scheduler, Space};
use ftlab_core::ftl::Locate;
use ftlab_core::request::{Pool, Window};
use ftlab_core::workload::Op;

/// The scheduler of the device.
#[derive(Clone, Debug)]
pub struct ReadsFirst {
    /// Requests in the order of arrival.
    waiting: Vec<u32>,
}

impl Scheduler for ReadsFirst {
    fn new(_keys: &Keys, _space: &Space) -> ReadsFirst {
        ReadsFirst { waiting: Vec::new() }
    }

    fn admit(&mut self, id: u32, _luns: Window, _pool: &mut Pool) {
        self.waiting.push(id);
    }

    fn next(&mut self, array: &Array, _ftl: &(impl Locate + ?Sized), pool: &mut Pool) -> Option<u32> {
        if self.waiting.is_empty() || !array.all_idle() {
            return None;
        }
        let read = self.waiting.iter().position(|&id| pool[id].op == Op::Read);
        Some(self.waiting.remove(read.unwrap_or(0)))
    }
}

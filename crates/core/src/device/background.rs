//! Garbage collection while chips are idle, and what a read-only device refuses.
//!
//! **Idle** is a chip without a step in its queue that nothing the device holds waits for: no waiting
//! request touches it, and no flush waits, which needs every chip. Where logical pages are smaller than
//! NAND pages, or allocation is dynamic, the chips of a request are known only when it issues; there a
//! chip is idle while nothing waits in the device at all. A plane is idle while its die is: planes of a
//! die that begin at the same time may collect at once. Requests that wait in the host are unknown to the
//! device. A step that has begun runs to its end: a request that arrives waits for that step alone.
//!
//! Steps have no owner among the requests, and they do not keep a request from being admitted. They
//! end with the workload: none begins once the last request has completed.

use super::{COLLECTION, Device};
use crate::flash::Work;
use crate::ftl::Running;
use crate::workload::Op;

impl Device {
    /// Starts a step of garbage collection on every idle chip that the FTL wants collected.
    pub fn collect(&mut self, now_ns: u64, ftl: &mut impl Running, work: &mut Work) {
        let apart = self.array.counts_at_the_end();
        for chip in 0..self.places.len() as u32 {
            if !self.waiting.wants(chip) && self.array.is_resting(chip) {
                work.clear();
                if work.unfolded(apart, |work| ftl.background_step(chip, work)) {
                    self.array.start(COLLECTION, work, false, now_ns);
                    if ftl.is_read_only() {
                        self.turned_read_only(now_ns, ftl);
                    }
                }
            }
        }
        self.array.settle(now_ns);
    }

    /// Whether an operation is refused before it is queued.
    #[inline]
    pub fn refuses(&self, op: impl FnOnce() -> Op) -> bool {
        self.read_only_ns.is_some() && op() != Op::Read
    }

    /// When the device turned read-only, if it has, ns.
    pub fn read_only_ns(&self) -> Option<u64> {
        self.read_only_ns
    }

    /// Remembers when the FTL turned the device read-only; whether it has refused a request since this was
    /// called last.
    #[cold]
    pub(super) fn turned_read_only(&mut self, now_ns: u64, ftl: &impl Running) -> bool {
        self.read_only_ns.get_or_insert(now_ns);
        let refused = ftl.refused();
        std::mem::replace(&mut self.refused, refused) != refused
    }
}

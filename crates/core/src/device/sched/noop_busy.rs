//! The device's first-in first-out queue, only for requests that find a chip busy.
//!
//! Source: Cui et al., NPC 2016 (VIOS). Section 1 counts NOOP among the schedulers "designed to mitigate the
//! high seek and rotational costs in mechanical disks", section 4 has "baseline NOOP scheduling", section 4.1
//! conflicts "collected under the P/E cycling of 12K with NOOP scheduler". The paper does not say how it
//! works in a device of many chips; [`super::noop`] is another interpretation.
//!
//! Interpretation: a request whose chips are idle when it arrives has nothing to wait for and issues at once.
//! All others wait in one queue, and only the oldest may issue, as under [`super::noop`]. So:
//! - An arriving request may overtake waiting ones, even if it takes a chip that one of them needs: NOOP knows which
//!   chips are busy, but only VIOS's chip-state vector knows how many requests wait for a chip (section 3.2). Nothing
//!   bounds how often the oldest is overtaken.
//! - At an instant the oldest goes first, then those that arrive at that instant, in the order of arrival.
//! - Requests that came after a flush wait behind it.

use super::noop::Noop;
use super::{Scheduler, Space};
use crate::device::Array;
use crate::ftl::Locate;
use crate::request::{Pool, Window};
use crate::util::NONE;
use crate::workload::Op;

pub(super) const NAME: &str = "noop-busy";
pub(super) const DOC: &str =
    "a request whose chips are idle on arrival issues at once, the others as under noop";
pub type Keys = ();

/// The queue; requests that have just arrived are at its end.
#[derive(Clone, Debug)]
pub(super) struct NoopBusy {
    queue: Noop,
    /// The first request in the queue whose chips have not been checked since it arrived, or [`NONE`].
    arrived: u32,
    /// Number of waiting flushes.
    flushes: u32,
}

impl Scheduler for NoopBusy {
    fn new(keys: &super::Keys, space: &Space) -> NoopBusy {
        NoopBusy { queue: Noop::new(keys, space), arrived: NONE, flushes: 0 }
    }

    #[inline]
    fn admit(&mut self, id: u32, chips: Window, pool: &mut Pool) {
        self.queue.admit(id, chips, pool);
        if self.arrived == NONE {
            self.arrived = id;
        }
    }

    #[inline]
    fn next(&mut self, array: &Array, ftl: &(impl Locate + ?Sized), pool: &mut Pool) -> Option<u32> {
        if self.queue.waiting.head() != self.arrived
            && let Some(id) = self.queue.next(array, ftl, pool)
        {
            self.flushes -= u32::from(pool[id].op == Op::Flush);
            return Some(id);
        }
        while self.arrived != NONE {
            let id = self.arrived;
            self.arrived = pool.younger(id);
            // If all chips were idle, the oldest request would have issued: a flush overtakes nothing here.
            if self.flushes == 0 && (array.all_idle() || self.queue.may_issue(&pool[id], array, ftl)) {
                self.queue.waiting.unlink(id, pool);
                return Some(id);
            }
            self.flushes += u32::from(pool[id].op == Op::Flush);
        }
        None
    }
}

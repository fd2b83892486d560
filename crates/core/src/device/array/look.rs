//! The array as other modules see it: what is idle, when something is due, what has been done.

use super::{Array, Overlaps, Span};
use crate::util::Bits;

impl Array {
    /// From now on, records finished activities as spans until they are taken; this requires steps to have labels.
    pub fn keep_spans(&mut self) {
        self.frame.kept.get_or_insert_default();
        self.frame.accounts = true;
    }

    /// Takes out the recorded spans, in the order in which they ended. Spans of one LUN's cells do not overlap each
    /// other, nor do those of its transfers.
    pub fn take_spans(&mut self) -> impl Iterator<Item = Span> + '_ {
        self.frame.kept.iter_mut().flat_map(|kept| kept.spans.drain(..))
    }

    /// Whether a LUN has no work.
    #[inline]
    pub fn is_idle(&self, lun: u32) -> bool {
        !self.frame.busy.get(lun)
    }

    /// Whether a LUN has no work and its die is at rest.
    pub fn is_resting(&self, lun: u32) -> bool {
        self.is_idle(lun) && self.overlap.as_ref().is_none_or(|overlap| overlap.is_resting(lun))
    }

    /// Whether a LUN is idle or, although it is busy, can accept a read (if `read`) or a write.
    #[inline]
    pub fn takes(&self, lun: u32, read: bool) -> bool {
        match &self.overlap {
            None => self.is_idle(lun),
            Some(overlap) => overlap.takes(lun, read),
        }
    }

    /// Stores in `taken` which of the first `luns` LUNs could not begin a program now, alone or together with other
    /// planes of their die.
    pub fn taken(&self, luns: u32, taken: &mut Bits) {
        taken.copy_from(&self.frame.busy);
        let Some(overlap) = &self.overlap else { return };
        for lun in 0..luns {
            if overlap.is_free(&self.frame, lun) { taken.clear(lun) } else { taken.set(lun) }
        }
    }

    /// Returns the LUNs that have work.
    #[inline]
    pub fn busy(&self) -> &Bits {
        &self.frame.busy
    }

    /// Returns how many times a LUN ran out of work; while this stays the same, no LUN has become idle.
    #[inline]
    pub fn rests(&self) -> u64 {
        self.frame.rests
    }

    /// Notes that the FTL has worked for itself, so that requests may now go to other LUNs.
    pub fn stir(&mut self) {
        self.frame.changes += 1;
    }

    /// Returns a number; while it stays the same, and nothing issues, a request that found no LUN to take it finds
    /// none.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.frame.changes
    }

    /// Whether no LUN has work.
    #[inline]
    pub fn all_idle(&self) -> bool {
        self.frame.active == 0
    }

    /// Returns when the next resource is due, ns, or [`crate::clock::NEVER`].
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.frame.clock.next_ns()
    }

    /// Returns how often operations overlapped or overtook each other.
    pub fn overlaps(&self) -> Overlaps {
        self.overlap.as_ref().map_or(Overlaps::default(), |overlap| overlap.overlaps)
    }
}

//! Trims, and zeroes that are written by trims.

use std::sync::Arc;

use ftlab_core::workload::Op;

use super::Engine;
use crate::nbd::Request;

impl Engine {
    /// Writes zeroes: trims the whole pages, and writes zeroes to the partial pages at both ends.
    pub(super) fn zero(&mut self, ticket: usize, offset: u64, end: u64) {
        let page = self.payload.page_bytes() as u64;
        let (first, last) = (offset.next_multiple_of(page), end / page * page);
        let zeroes = |engine: &mut Engine, from: u64, to: u64| {
            if from < to {
                engine.enter(ticket, Op::Write, (from, to), Some(Arc::default()), false);
            }
        };
        if first >= last {
            return zeroes(self, offset, end);
        }
        zeroes(self, offset, first);
        self.trim(ticket, first, last);
        zeroes(self, last, end);
    }

    /// Trims a range; one of 4 GiB or more, which only extended headers can ask for, in parts, at whole pages.
    pub(super) fn trim(&mut self, ticket: usize, offset: u64, end: u64) {
        const PAGES: u64 = 1 << 18;
        let part =
            if end - offset > u32::MAX.into() { PAGES * self.payload.page_bytes() as u64 } else { u64::MAX };
        let mut from = offset;
        while from < end {
            let to = (from / part).saturating_add(1).saturating_mul(part).min(end);
            self.enter(ticket, Op::Trim, (from, to), None, false);
            from = to;
        }
    }

    /// Whether a request to write zeroes trims at least one whole page, and so takes less time than a write.
    pub(super) fn trims(&self, request: &Request) -> bool {
        let page = self.payload.page_bytes() as u64;
        let last = (request.offset + request.length) / page * page;
        !request.flags.no_hole() && request.offset.next_multiple_of(page) < last
    }
}

//! Which logical pages a request touches.

use super::Pages;
use crate::util::NONE;
use crate::workload::Op;

/// Finds the logical pages that a range of bytes touches.
#[derive(Clone, Copy, Debug)]
pub struct Paging {
    logical_page: u64,
    /// Base-2 logarithm of the page size if that is a power of two, else [`NONE`]. It saves a division, which would
    /// take longer than all other work for an arrival.
    shift: u32,
}

impl Paging {
    /// Makes the paging for logical pages of this many bytes.
    pub fn new(logical_page_bytes: u32) -> Paging {
        let logical_page = u64::from(logical_page_bytes);
        let shift = if logical_page.is_power_of_two() { logical_page.trailing_zeros() } else { NONE };
        Paging { logical_page, shift }
    }

    /// Returns the logical page of a byte address, and the offset within the page.
    #[inline]
    fn page_of(self, at: u64) -> (u64, u64) {
        match self.shift {
            NONE => (at / self.logical_page, at % self.logical_page),
            shift => (at >> shift, at & (self.logical_page - 1)),
        }
    }

    /// Returns the pages of a request for the bytes from `offset` to `end`, without a stream.
    #[inline]
    pub fn pages(self, op: Op, offset: u64, end: u64) -> Pages {
        let [(head, before), (tail, behind)] = [offset, end].map(|at| self.page_of(at));
        if before | behind == 0 {
            // The request covers whole pages, as most requests do.
            let first = if tail > head { head as u32 } else { 0 };
            return Pages { first, pages: (tail - head) as u32, ..Pages::NONE };
        }
        let (head_partial, tail_partial) = (before > 0, behind > 0);
        // A trim takes the pages that it covers completely; every other operation takes each page that it touches.
        let (first, pages_end) = if op == Op::Trim {
            (head + u64::from(head_partial), tail)
        } else {
            (head, tail + u64::from(tail_partial))
        };
        let pages = pages_end.saturating_sub(first) as u32;
        Pages {
            first: if pages > 0 { first as u32 } else { 0 },
            pages,
            head_partial: head_partial || (pages == 1 && tail_partial),
            tail_partial: tail_partial || (pages == 1 && head_partial),
            stream: 0,
        }
    }
}

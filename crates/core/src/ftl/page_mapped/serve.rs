//! How a page-mapped FTL serves reads and writes; each is charged as its cause says: the host's own, or
//! padding.

use super::PageMapped;
use crate::flash::{Cause, Work};
use crate::ftl::Request;
use crate::ftl::map::translation::Translation;
use crate::util::NONE;

impl<T: Translation> PageMapped<T> {
    /// Reads `count` logical pages that share the NAND page of `lpn`'s data.
    #[inline]
    fn read_data(&mut self, lpn: u32, count: u32, cause: Cause, work: &mut Work) {
        let data = &self.data;
        match data.slot(lpn) {
            NONE => work.read_part(data.home(lpn), cause, count),
            slot if data.buffered(slot) => (),
            slot => work.at_slot(|| data.slot_page(slot)).read_part(data.slot_chip(slot), cause, count),
        }
    }

    /// How many logical pages from `lpn` on, at most up to `end`, lie in one NAND page.
    fn together(&self, lpn: u32, end: u32) -> u32 {
        let page = |lpn| match self.data.slot(lpn) {
            NONE => (true, self.by_page.div(lpn)),
            slot => (false, self.data.slot_page(slot)),
        };
        let first = page(lpn);
        (lpn + 1..end).take_while(|&next| page(next) == first).count() as u32 + 1
    }

    #[inline]
    fn write_data(&mut self, lpn: u32, cause: Cause, work: &mut Work) {
        self.host_slots += u64::from(cause == Cause::Host);
        self.append(lpn, cause, work);
    }

    /// Reads as the cause says.
    #[inline]
    pub(super) fn read_for(&mut self, request: Request, cause: Cause, work: &mut Work) -> u32 {
        let end = request.first + request.pages;
        let mut misses = 0;
        let mut read_up_to = request.first;
        for lpn in request.first..end {
            work.chain_for(lpn);
            misses += self.translate(lpn, end - lpn - 1, false, work);
            if lpn >= read_up_to {
                let count = if self.by_page.get() == 1 { 1 } else { self.together(lpn, end) };
                self.read_data(lpn, count, cause, work);
                read_up_to = lpn + count;
            }
        }
        // Evicted mappings are programmed too.
        if self.pool.is_exhausted() {
            self.turn_read_only(work);
        }
        misses
    }

    /// Writes as the cause says.
    #[inline]
    pub(super) fn write_for(&mut self, request: Request, cause: Cause, work: &mut Work) -> u32 {
        let last = request.first + request.pages - 1;
        let mut misses = 0;
        for lpn in request.first..=last {
            if self.read_only {
                self.refuse();
                break;
            }
            work.chain_for(lpn);
            misses += self.translate(lpn, last - lpn, true, work);
            let partial =
                (lpn == request.first && request.head_partial) || (lpn == last && request.tail_partial);
            if partial && self.read_modify_write {
                self.read_data(lpn, 1, cause, work);
            }
            self.write_data(lpn, cause, work);
        }
        misses
    }
}

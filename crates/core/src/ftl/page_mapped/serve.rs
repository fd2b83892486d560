//! How a page-mapped FTL serves reads and writes; each is charged to its cause: the host itself, or padding.

use std::ops::Range;

use super::{Above, PageMapped};
use crate::flash::{Cause, Work};
use crate::ftl::log::{Asked, Under};
use crate::ftl::map::context::Context;
use crate::ftl::map::translation::Translation;
use crate::ftl::{Idle, Refreshed, Serve, background};
use crate::request::{Entry, Mark, Pages};
use crate::util::NONE;

impl<T: Translation> PageMapped<T> {
    /// Reads `count` logical pages that share the NAND page of `lpn`'s data.
    #[inline]
    fn read_data(&mut self, lpn: u32, count: u32, cause: Cause, work: &mut Work) {
        let data = &self.data;
        match self.slots.of(lpn) {
            NONE => work.read_unwritten(data.addresses.home_on_flash(lpn), cause, count),
            slot if data.buffered(slot) => (),
            slot => work.read_part(data.addresses.lun(slot), data.addresses.nand_page(slot), cause, count),
        }
    }

    /// Returns how many logical pages starting at `lpn`, at most up to `end`, are in one NAND page.
    fn together(&self, lpn: u32, end: u32) -> u32 {
        let page = |lpn| match self.slots.of(lpn) {
            NONE => (true, self.by_page.div(lpn)),
            slot => (false, self.data.addresses.nand_page(slot)),
        };
        let first = page(lpn);
        (lpn + 1..end).take_while(|&next| page(next) == first).count() as u32 + 1
    }

    /// Reads the pages of a request, charged to `cause`; returns the number of misses. If there are entries, one for
    /// each page, pages whose entry is up to date are not looked up.
    #[inline]
    pub(super) fn read_for(
        &mut self,
        request: Pages,
        entries: &[Entry],
        cause: Cause,
        work: &mut Work,
    ) -> u32 {
        let end = request.first + request.pages;
        let mut misses = 0;
        let mut read_up_to = request.first;
        for lpn in request.first..end {
            work.chain_for(lpn);
            if entries.is_empty() || !self.uses(lpn, entries[(lpn - request.first) as usize]) {
                misses += self.translate(lpn, end - lpn - 1, false, work);
            }
            if lpn >= read_up_to {
                let count = if self.by_page.get() == 1 { 1 } else { self.together(lpn, end) };
                self.read_data(lpn, count, cause, work);
                read_up_to = lpn + count;
            }
        }
        // Reads can wear out blocks too, since they evict mappings, which are programmed.
        self.look_for_exhaustion(work);
        misses
    }

    /// Writes the pages of a request, charged to `cause`; returns the number of misses.
    #[inline]
    pub(super) fn write_for(&mut self, request: Pages, cause: Cause, work: &mut Work) -> u32 {
        let mut misses = 0;
        for at in 0..request.pages {
            if self.read_only {
                self.refuse();
                break;
            }
            misses += self.write_one(request, at, cause, work);
        }
        misses
    }

    /// Writes the `at`-th page of a request; returns the number of misses.
    #[inline(always)] // called for every page
    fn write_one(&mut self, request: Pages, at: u32, cause: Cause, work: &mut Work) -> u32 {
        let (lpn, ahead) = (request.first + at, request.pages - at - 1);
        work.chain_for(lpn);
        let misses = self.translate(lpn, ahead, true, work);
        let partial = (at == 0 && request.head_partial) || (ahead == 0 && request.tail_partial);
        if partial && self.read_modify_write && self.slots.of(lpn) != NONE {
            self.read_data(lpn, 1, cause, work);
        }
        self.host_slots += u64::from(cause == Cause::Host);
        self.append(Asked { owner: lpn, cause, stream: request.stream }, work);
        misses
    }
}

impl<T: Translation> Serve for PageMapped<T> {
    fn read(&mut self, request: Pages, work: &mut Work) -> u32 {
        self.read_for(request, &[], Cause::Host, work)
    }

    fn write(&mut self, request: Pages, work: &mut Work) -> u32 {
        self.write_for(request, Cause::Host, work)
    }

    fn write_page(&mut self, request: Pages, at: u32, mark: Mark, work: &mut Work) -> u32 {
        if self.read_only {
            self.refuse();
            return 0;
        }
        let cause = if mark.pad { Cause::Pad } else { Cause::Host };
        let misses = self.write_one(request, at, cause, work);
        if mark.fua() && at + 1 == request.pages {
            self.program_begun(request, work);
        }
        misses
    }

    fn read_marked(&mut self, request: Pages, mark: Mark, work: &mut Work) -> u32 {
        self.read_for(request, &[], if mark.pad { Cause::Pad } else { Cause::Host }, work)
    }

    fn read_with(&mut self, request: Pages, entries: &[Entry], mark: Mark, work: &mut Work) -> u32 {
        self.read_for(request, entries, if mark.pad { Cause::Pad } else { Cause::Host }, work)
    }

    fn hand_out(&mut self, lpns: Range<u32>, entries: &mut Vec<Entry>, work: &mut Work) {
        self.hand_over(lpns, entries, work);
    }

    fn write_marked(&mut self, request: Pages, mark: Mark, work: &mut Work) -> u32 {
        let misses = self.write_for(request, if mark.pad { Cause::Pad } else { Cause::Host }, work);
        if mark.fua() {
            self.program_begun(request, work);
        }
        misses
    }

    fn trim(&mut self, request: Pages, work: &mut Work) -> u32 {
        let mut misses = 0;
        if self.read_only {
            self.refuse();
            return misses;
        }
        let end = request.first + request.pages;
        for lpn in request.first..end {
            work.chain_for(lpn);
            misses += self.translate(lpn, end - lpn - 1, true, work);
            self.data.trim(&mut self.slots, lpn);
        }
        self.look_for_exhaustion(work);
        misses
    }

    fn flush(&mut self, work: &mut Work) {
        if self.read_only {
            return self.refuse();
        }
        self.data.flush(&mut self.slots, work);
        self.state_trims(work);
        self.pages.flush(&mut self.pool, work);
        if self.host_flush_mappings {
            let (translation, mut context) = self.translation(work);
            translation.flush(&mut context);
        }
        self.look_for_exhaustion(work);
    }

    fn prefetch(&mut self, page: u32, needs: &mut dyn Iterator<Item = Pages>, work: &mut Work) {
        self.missing.clear();
        self.seen.reset();
        let first = u64::from(page) * u64::from(self.pages.entries());
        let end = (first + u64::from(self.pages.entries())).min(u64::from(self.lpns)) as u32;
        for need in needs {
            // A request may begin before the translation page of its batch, if another request was merged into its
            // front.
            for lpn in need.first.max(first as u32)..end.min(need.first + need.pages) {
                let entry = lpn - first as u32;
                if !self.seen.get(entry) && !self.translation.cached(lpn, &self.pages) {
                    self.seen.set(entry);
                    self.missing.push(lpn);
                }
            }
        }
        if !self.missing.is_empty() {
            // If a unit was never written, the directory shows this, and nothing is read.
            self.pages.stats.prefetches += u64::from(self.pages.is_written(page));
            work.chain_for(self.missing[0]);
            let missing = std::mem::take(&mut self.missing);
            let (translation, mut context) = self.translation(work);
            translation.prefetch(page, &missing, &mut context);
            self.missing = missing;
            work.fence();
        }
        self.look_for_exhaustion(work);
    }

    fn wear(&mut self, cycles: u32) -> bool {
        self.pool.wear(cycles);
        true
    }

    fn give_out(&mut self) -> bool {
        self.pool.set_exhausted(true);
        true
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}

impl<T: Translation> Idle for PageMapped<T> {
    fn write_back(&mut self, work: &mut Work) -> bool {
        let (translation, mut context) = self.translation(work);
        let wrote = translation.write_back(&mut context);
        self.look_for_exhaustion(work);
        wrote
    }

    fn fold(&mut self, lun: u32, work: &mut Work) -> bool {
        let PageMapped { data, slots, pages, pool, translation, .. } = self;
        let lun = data.addresses.group_on_flash(lun);
        if self.read_only || !data.stock.folds_on(lun) {
            return false;
        }
        work.chain();
        let mut above = Above { pages, translation, stirred: false, laid: None };
        data.fold(&mut Under { slots, pool, work, keeper: Some(&mut above) }, lun);
        translation.settle(&mut Context { data, newest: slots, pages, pool, work, ahead: 0 });
        self.look_for_exhaustion(work);
        true
    }

    fn background_step(&mut self, lun: u32, work: &mut Work) -> bool {
        let Some(how) = self.background.filter(|_| !self.read_only) else { return false };
        let lun = self.data.addresses.group_on_flash(lun);
        let translation_pages = Some(self.pages.log()).filter(|log| T::ON_FLASH && !log.shape().serial);
        let Some(kind) =
            background::choose(lun, how.normal_blocks, &self.data, translation_pages, &self.pool)
        else {
            return false;
        };
        let PageMapped { data, slots, pages, pool, translation, .. } = self;
        work.chain();
        match kind {
            background::Kind::Data => {
                let mut above = Above { pages, translation, stirred: false, laid: None };
                let mut under = Under { slots, pool, work, keeper: Some(&mut above) };
                data.background_step(&mut under, (lun, how.step_pages));
                translation.settle(&mut Context { data, newest: slots, pages, pool, work, ahead: 0 });
            }
            background::Kind::Pages => {
                let (log, mut under) = pages.on_flash(pool, work);
                log.background_step(&mut under, (lun, how.step_pages));
            }
        }
        self.look_for_exhaustion(work);
        true
    }

    fn refresh(&mut self, block: u32, work: &mut Work) -> Refreshed {
        if self.read_only {
            return Refreshed::Needless;
        }
        let PageMapped { data, slots, pages, pool, translation, .. } = self;
        let block = data.addresses.block_on_flash(block);
        work.chain();
        let done = if data.stock.has(block) {
            let mut above = Above { pages, translation, stirred: false, laid: None };
            let done = data.refresh(&mut Under { slots, pool, work, keeper: Some(&mut above) }, block);
            if done == Refreshed::Moved {
                translation.settle(&mut Context { data, newest: slots, pages, pool, work, ahead: 0 });
            }
            done
        } else {
            let (log, mut under) = pages.on_flash(pool, work);
            log.refresh(&mut under, block)
        };
        if done == Refreshed::Moved {
            self.look_for_exhaustion(work);
        }
        done
    }
}

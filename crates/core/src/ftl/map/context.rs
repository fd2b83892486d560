//! What a mapping cache does on flash: reads and programs of translation pages.

use std::iter::Rev;
use std::ops::Range;

use super::pages::TranslationPages;
use crate::flash::{Cause, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::log::{Asked, Log};
use crate::ftl::slots::Slots;

/// What a mapping cache works with while it serves a request.
pub struct Context<'a> {
    /// The log of the user data.
    pub data: &'a Log,
    /// The slots in which the user data lies.
    pub(crate) newest: &'a Slots,
    /// The translation pages.
    pub pages: &'a mut TranslationPages,
    /// The erased blocks.
    pub pool: &'a mut BlockPool,
    /// The steps of the request.
    pub work: &'a mut Work,
    /// Number of logical pages that the request has after the one being translated.
    pub ahead: u32,
}

impl Context<'_> {
    /// Returns the LPNs after `lpn` that the request needs from the same translation page, the last one first.
    pub(super) fn ahead_of(&self, lpn: u32) -> Rev<Range<u32>> {
        let (_, end) = self.pages.range(self.pages.of(lpn));
        (lpn + 1..(lpn + 1 + self.ahead).min(end)).rev()
    }

    /// Reads a translation page, even if it still waits in a page buffer: `ftl.mapping_cache` is all the RAM in which
    /// mappings are found.
    #[inline(always)] // saves half a percent of all instructions
    pub(super) fn read(&mut self, page: u32) {
        let TranslationPages { log, slots, .. } = &*self.pages;
        let slot = slots.of(page);
        self.work.read(log.addresses.lun(slot), log.addresses.nand_page(slot), Cause::Map);
    }

    /// Reads a translation page into the cache, as [`Context::read`] does; returns the load's number ([`Work::load`]).
    #[inline(always)] // called for every miss
    pub(super) fn load(&mut self, page: u32) -> u32 {
        let TranslationPages { log, slots, .. } = &*self.pages;
        let slot = slots.of(page);
        self.work.load(log.addresses.lun(slot), log.addresses.nand_page(slot), Cause::Map)
    }

    /// Reads a translation unit on behalf of the host, past the cache: all of its NAND page, or the unit's share of it.
    pub(crate) fn read_out(&mut self, unit: u32) {
        self.work.chain();
        if self.pages.log.shape().serial {
            self.load_unit(unit);
        } else {
            self.read(unit);
        }
    }

    /// Programs a translation page with all its entries as they are now; `updated` of them are new to flash.
    pub(super) fn program(&mut self, page: u32, updated: u32) {
        self.program_but(page, updated, |_| false);
    }

    /// Does what `program` does, except that entries for which `newer` is true stay as they are on flash, because the
    /// cache has a newer version of them.
    pub(super) fn program_but(&mut self, page: u32, updated: u32, newer: impl Fn(u32) -> bool) {
        let (first, end) = self.pages.range(page);
        self.persist((first..end).filter(|&lpn| !newer(lpn)));
        self.append(page, updated);
    }

    /// Programs a translation page in which only one entry is new to flash.
    pub(super) fn program_one(&mut self, lpn: u32) {
        self.persist([lpn]);
        self.append(self.pages.of(lpn), 1);
    }

    /// Notes, in check mode, that the entries of these LPNs on flash name their newest slots.
    #[inline]
    pub(super) fn persist(&mut self, lpns: impl IntoIterator<Item = u32>) {
        if let Some(persisted) = &mut self.pages.persisted {
            lpns.into_iter().for_each(|lpn| persisted[lpn as usize] = self.newest.of(lpn));
        }
    }

    fn append(&mut self, page: u32, updated: u32) {
        self.pages.count_updates(updated);
        let (log, under) = self.pages.on_flash(self.pool, self.work);
        log.write(under, Asked::of(page, Cause::Map));
        if self.pages.persisted.is_some() {
            self.pages.hold(page);
        }
    }

    /// After a power cut, programs every unit with an entry that disagrees with where the data was found; all units
    /// must have been read.
    pub(crate) fn renew(&mut self) {
        let serial = self.pages.log.shape().serial;
        for unit in 0..self.pages.units {
            let (first, end) = self.pages.range(unit);
            let Some(persisted) = &self.pages.persisted else { return };
            let stale = |&lpn: &u32| persisted[lpn as usize] != self.newest.of(lpn);
            let stale = (first..end).filter(stale).count() as u32;
            if stale == 0 {
                continue;
            }
            if serial {
                self.pages.gathering.have(unit);
                self.gather(unit, stale, |_| false);
            } else {
                self.work.chain_for(first);
                self.program(unit, stale);
            }
        }
        if serial {
            self.finish_page();
        } else {
            self.pages.flush(self.pool, self.work);
        }
    }
}

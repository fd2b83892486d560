//! What a page-mapped FTL reports: where data is, what is cached, what the FTL has counted, and what is on its media.

use std::ops::Range;

use super::PageMapped;
use crate::flash::Work;
use crate::flash::media::{Kind, Media, Tape};
use crate::flash::moves::Moves;
use crate::ftl::blocks::endurance;
use crate::ftl::log::check;
use crate::ftl::map::pages::MapStats;
use crate::ftl::map::translation::Translation;
use crate::ftl::map::units::UnitSpace;
use crate::ftl::placement::FrontCount;
use crate::ftl::{Cooperate, Follow, Inspect, Locate, LookUp, Police, Survive};
use crate::request::{Entry, Pages};
use crate::util::{Bits, NONE, Stat};

impl<T: Translation> Locate for PageMapped<T> {
    #[inline]
    fn read_lun(&self, lpn: u32) -> u32 {
        match self.slots.of(lpn) {
            NONE => self.data.addresses.home_on_flash(lpn),
            slot => self.data.addresses.lun_on_flash(slot),
        }
    }

    #[inline]
    fn write_lun(&self, first: u32, page: u32) -> u32 {
        self.data.write_lun_ahead(first + page, page)
    }

    fn finds_room(&self, busy: &Bits) -> bool {
        self.data.finds_room(busy)
    }

    #[inline]
    fn home_lun(&self, lpn: u32) -> u32 {
        self.data.addresses.home_on_flash(lpn)
    }

    fn slot(&self, lpn: u32) -> u32 {
        self.data.addresses.slot_on_flash(self.slots.of(lpn))
    }

    fn slot_named(&self, lpn: u32, entry: Entry) -> Option<u32> {
        self.is_current(lpn, entry).then(|| self.data.addresses.slot_on_flash(entry.slot))
    }

    fn reclaimed_with(&self, lun: u32) -> Range<u32> {
        self.data.addresses.luns_with(lun)
    }

    #[inline]
    fn preload(&self, lpn: u32) {
        self.data.fetch_slot(&self.slots, lpn);
    }
}

impl<T: Translation> LookUp for PageMapped<T> {
    fn logical_pages(&self) -> u32 {
        self.lpns
    }

    #[inline]
    fn expect(&self, lpn: u32) {
        self.slots.fetch(lpn);
    }

    #[inline]
    fn cached(&self, lpn: u32) -> bool {
        self.translation.cached(lpn, &self.pages)
    }

    fn each_cached(&self, visit: &mut dyn FnMut(u32)) {
        self.translation.each_cached(&self.pages, &mut |lpn| {
            if lpn < self.lpns {
                visit(lpn);
            }
        });
    }

    fn cache_capacity(&self) -> Option<u32> {
        self.translation.capacity()
    }

    fn map_complete(&self) -> bool {
        !T::ON_FLASH
    }

    #[inline]
    fn translation_page(&self, lpn: u32) -> u32 {
        self.pages.of(lpn)
    }

    fn updates_free(&self) -> bool {
        self.translation.updates_free()
    }
}

impl<T: Translation> Cooperate for PageMapped<T> {}

impl<T: Translation> Inspect for PageMapped<T> {
    fn map_stats(&self) -> MapStats {
        self.pages.stats
    }

    fn units(&self) -> UnitSpace {
        self.space
    }

    fn stats(&self) -> Vec<(&'static str, Vec<Stat>)> {
        let logs = [("gc", &self.data), ("translation_gc", self.pages.log())];
        let of_logs = logs.map(|(part, log)| (part, log.stock.victims.stats()));
        let parts = [("ftl", self.translation.stats()), ("placement", self.data.placement_stats())];
        let handed = self.handed.as_ref().map(|handed| ("host_map", handed.stats()));
        parts.into_iter().chain(of_logs).chain(handed).collect()
    }

    fn front_counts(&self) -> Vec<FrontCount> {
        self.data.front_counts()
    }

    fn host_slots(&self) -> u64 {
        self.host_slots
    }

    fn slots_per_page(&self) -> u32 {
        self.by_page.get()
    }

    fn life(&self) -> endurance::Life {
        self.pool.life(self.data.addresses.luns_with(0).len() as u64)
    }

    fn erases(&self, visit: &mut dyn FnMut(u32)) {
        self.data.addresses.blocks_on_flash().for_each(|block| visit(self.pool.erase_count(block)));
    }

    fn each_slc(&self, visit: &mut dyn FnMut(u32)) {
        self.data.each_slc(visit);
    }

    fn is_free(&self, block: u32) -> bool {
        self.pool.is_free(self.data.addresses.block_on_flash(block))
    }
}

impl<T: Translation> Follow for PageMapped<T> {
    fn follow(&mut self, moves: &Moves) {
        check::follow(&self.data, &mut self.slots, moves, self.lpns);
    }
}

impl<T: Translation> Police for PageMapped<T> {
    fn version(&self, lpn: u32) -> Option<u32> {
        self.slots.version(lpn)
    }

    fn verify_request(&self, request: Pages) -> Result<(), String> {
        self.handed.as_ref().map_or(Ok(()), |handed| handed.verify())?;
        (request.first..request.first + request.pages).try_for_each(|lpn| {
            check::verify_owner(&self.data, &self.slots, lpn)?;
            if T::ON_FLASH {
                check::verify_owner(self.pages.log(), self.pages.slots(), self.pages.of(lpn))?;
                self.pages.verify_entry(lpn, self.translation.dirty(lpn, &self.pages), &self.slots)?;
                self.translation.verify(lpn, self.slots.of(lpn))?;
            }
            Ok(())
        })
    }

    fn verify(&self) -> Result<(), String> {
        self.handed.as_ref().map_or(Ok(()), |handed| handed.verify())?;
        check::verify(&self.data, &self.slots)?;
        check::verify(self.pages.log(), self.pages.slots())?;
        for block in 0..self.pool.count() {
            let owners = [
                self.pool.is_free(block),
                self.data.stock.has(block),
                self.pages.log().stock.has(block),
                self.pool.is_retired(block),
                self.pool.is_spare(block),
            ];
            if owners.iter().filter(|&&has| has).count() != 1 {
                return Err(format!("block {block}: free, data, translation, retired, spare are {owners:?}"));
            }
        }
        if T::ON_FLASH {
            for lpn in 0..self.lpns {
                self.pages.verify_entry(lpn, self.translation.dirty(lpn, &self.pages), &self.slots)?;
                self.translation.verify(lpn, self.slots.of(lpn))?;
            }
        }
        Ok(())
    }
}

impl<T: Translation> Survive for PageMapped<T> {
    fn write_media(&self, media: &mut Media) -> u64 {
        for block in 0..media.blocks() {
            media.set_erases(block, self.pool.erase_count(self.data.addresses.block_on_flash(block)));
        }
        let last = check::write_media(&self.data, &self.slots, media);
        if T::ON_FLASH {
            last.max(check::write_media(self.pages.log(), self.pages.slots(), media))
        } else {
            last
        }
    }

    fn record(&mut self, tape: &Tape, media: &Media) {
        let gathered = self.data.shape().superblocks.map(|superblocks| media.gathered(superblocks));
        let media = gathered.as_ref().unwrap_or(media);
        self.slots.record(tape, self.lpns, media);
        if T::ON_FLASH {
            self.pages.record(tape, media);
        }
    }

    fn version_on(&self, lpn: u32, media: &Media) -> Result<Option<u64>, String> {
        let slot = self.slots.of(lpn);
        if slot == NONE {
            return Ok(None);
        }
        let slots_per_page = self.data.shape().slots_per_page;
        let slot = self.data.addresses.slot_on_flash(slot);
        let found = media.version(Kind::Data, slots_per_page, slot, lpn);
        found
            .map(Some)
            .ok_or_else(|| format!("LPN {lpn} maps to slot {slot}, which does not hold it on flash"))
    }

    fn set_read_only(&mut self, read_only: bool, work: &mut Work) {
        self.pool.set_exhausted(read_only);
        self.read_only &= read_only;
        self.look_for_exhaustion(work);
    }
}

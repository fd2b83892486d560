//! What a hybrid FTL reports: where data is, and what the FTL has counted. Its whole map is in RAM.

use super::frame::Hybrid;
use super::logs::Logs;
use crate::flash::media::{Media, Tape};
use crate::flash::moves::Moves;
use crate::ftl::blocks::endurance::Life;
use crate::ftl::hybrid::merges::MergeStats;
use crate::ftl::map::pages::MapStats;
use crate::ftl::{Follow, Idle, Inspect, Locate, LookUp, Police, Survive};
use crate::request::Pages;
use crate::util::Stat;

impl<L: Logs> Idle for Hybrid<L> {}

impl<L: Logs> Locate for Hybrid<L> {
    #[inline]
    fn home_lun(&self, lpn: u32) -> u32 {
        self.store.lun(self.store.block_of(lpn))
    }

    fn slot(&self, lpn: u32) -> u32 {
        self.store.page(lpn)
    }
}

impl<L: Logs> LookUp for Hybrid<L> {
    fn logical_pages(&self) -> u32 {
        self.store.shape.lpns
    }

    #[inline]
    fn translation_page(&self, lpn: u32) -> u32 {
        self.by_entries.div(lpn)
    }
}

impl<L: Logs> Inspect for Hybrid<L> {
    fn map_stats(&self) -> MapStats {
        self.stats
    }

    fn merges(&self) -> MergeStats {
        self.store.merges
    }

    fn stats(&self) -> Vec<(&'static str, Vec<Stat>)> {
        vec![("ftl", self.logs.stats())]
    }

    fn host_slots(&self) -> u64 {
        self.store.host_pages
    }

    fn life(&self) -> Life {
        self.store.pool.life(1)
    }

    fn erases(&self, visit: &mut dyn FnMut(u32)) {
        self.store.pool.erases().for_each(visit);
    }

    fn is_free(&self, block: u32) -> bool {
        self.store.pool.is_free(block)
    }
}

impl<L: Logs> Follow for Hybrid<L> {
    fn follow(&mut self, moves: &Moves) {
        self.store.follow(moves);
    }
}

impl<L: Logs> Survive for Hybrid<L> {
    fn write_media(&self, media: &mut Media) -> u64 {
        self.store.write_media(|visit| self.logs.each(visit), media)
    }

    fn record(&mut self, tape: &Tape, media: &Media) {
        self.store.keep_tape(tape, media);
    }

    fn version_on(&self, lpn: u32, media: &Media) -> Result<Option<u64>, String> {
        self.store.version_on(lpn, media)
    }
}

impl<L: Logs> Police for Hybrid<L> {
    fn version(&self, lpn: u32) -> Option<u32> {
        self.store.slots.version(lpn)
    }

    fn verify_request(&self, request: Pages) -> Result<(), String> {
        (request.first..request.first + request.pages).try_for_each(|lpn| self.store.verify_lpn(lpn))
    }

    fn verify(&self) -> Result<(), String> {
        self.store.verify()?;
        self.logs.verify(&self.store)
    }
}

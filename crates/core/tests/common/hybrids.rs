//! Drives a hybrid FTL directly.
#![allow(dead_code)]

use ftlab_core::flash::{Cause, Work};
use ftlab_core::ftl::Ftl;
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::hybrid::merges::{MergeKind, MergeStats};
use ftlab_core::request::{Mark, Pages};
use ftlab_core::settings::Settings;

/// An FTL in check mode, verified completely after every operation.
pub struct Driver {
    pub ftl: Ftl,
    pub work: Work,
}

impl Driver {
    pub fn new(settings: &Settings) -> Driver {
        ftlab_core::ftl::check(settings).expect("the settings fit");
        let mut work = settings.work();
        Driver { ftl: Ftl::new(settings, true, &mut work), work }
    }

    pub fn verify(&self) {
        self.ftl.verify().expect("every invariant holds");
    }

    /// Makes data blocks as preconditioning does.
    pub fn prefill(&mut self, lpns: std::ops::Range<u32>) {
        self.ftl.prefill(&Vec::from_iter(lpns), &mut self.work);
        self.ftl.start();
        self.work.reset();
        self.verify();
    }

    pub fn marked(&mut self, first: u32, pages: u32, mark: Mark) {
        self.work.clear();
        let request = Pages { first, pages, ..Pages::NONE };
        self.ftl.write_marked(request, mark, &mut self.work);
        self.verify();
    }

    pub fn write(&mut self, first: u32, pages: u32) {
        self.marked(first, pages, Mark::default());
    }

    /// Writes pages as coop does, but not as part of a preferential issue.
    pub fn write_coop(&mut self, first: u32, pages: u32) {
        self.marked(first, pages, Mark { coop: true, ..Mark::default() });
    }

    pub fn trim(&mut self, first: u32, pages: u32) {
        self.work.clear();
        let request = Pages { first, pages, ..Pages::NONE };
        self.ftl.trim(request, &mut self.work);
        self.verify();
    }

    pub fn issue(&mut self, block: u32) {
        self.work.clear();
        self.ftl.coop_issue(block, &mut self.work);
        self.verify();
    }

    pub fn complete(&mut self, block: u32) {
        self.work.clear();
        self.ftl.coop_complete(block, &mut self.work);
        self.verify();
    }

    pub fn query(&self, first: u32, pages: u32) -> Vec<u32> {
        let mut set = vec![u32::MAX];
        self.ftl.coop_query(first, pages, &mut set);
        set
    }

    /// Makes a block issue of these pages of one block, as Algorithm 2 does if the host holds all pages.
    pub fn cooperate(&mut self, first: u32, pages: u32) {
        let block = first / self.pages_per_block();
        let set = self.query(first, pages);
        if set.contains(&block) {
            self.issue(block);
            self.write_coop(first, pages);
            self.complete(block);
        } else {
            self.write_coop(first, pages);
        }
    }

    pub fn pages_per_block(&self) -> u32 {
        self.ftl.block_size().expect("mapped by blocks").pages
    }

    pub fn stats(&self) -> MergeStats {
        self.ftl.merges()
    }

    /// Returns the merges of each kind (full, partial, switch, padded switch, cooperative) as (count, pages copied).
    pub fn merges(&self) -> [(u64, u64); 5] {
        let stats = self.stats();
        [
            MergeKind::Full,
            MergeKind::Partial,
            MergeKind::Switch,
            MergeKind::PaddedSwitch,
            MergeKind::Cooperative,
        ]
        .map(|kind| (stats.of(kind).count, stats.of(kind).pages_copied))
    }

    pub fn programs(&self, cause: Cause) -> u64 {
        self.work.counts().programs[cause]
    }

    pub fn erases(&self) -> u64 {
        self.work.counts().erases.total()
    }

    pub fn version(&self, lpn: u32) -> Option<u32> {
        self.ftl.version(lpn)
    }

    pub fn lpns(&self) -> u32 {
        self.ftl.logical_pages()
    }

    /// Checks that the breakdown covers all merging: the times of the kinds add up to the time of merging and padding.
    pub fn verify_times(&self) {
        let stats = self.stats();
        let sum: u64 = [
            MergeKind::Full,
            MergeKind::Partial,
            MergeKind::Switch,
            MergeKind::PaddedSwitch,
            MergeKind::Cooperative,
        ]
        .map(|kind| stats.of(kind).busy_ns)
        .iter()
        .sum();
        let busy_ns = self.work.counts().busy_ns;
        assert_eq!(sum, busy_ns[Cause::Merge] + busy_ns[Cause::Pad]);
    }
}

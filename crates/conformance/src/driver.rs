//! Drives an FTL directly, together with a plain map of its contents.

use std::collections::HashMap;

use ftlab_core::flash::Work;
use ftlab_core::ftl::{Idle, Locate, LookUp, Police, Serve};
use ftlab_core::request::Pages;
use ftlab_core::workload::Op;

/// Returns pages that are covered completely.
pub const fn whole(first: u32, pages: u32) -> Pages {
    Pages { first, pages, ..Pages::NONE }
}

/// An FTL in check mode, and the version of every LPN in a plain map.
pub struct Driver<F> {
    /// The FTL.
    pub ftl: F,
    /// The steps that the FTL has emitted.
    pub work: Work,
    /// For each LPN, the version that it must resolve to; `None` once it is trimmed.
    pub versions: HashMap<u32, Option<u32>>,
    writes: HashMap<u32, u32>,
}

impl<F: Serve + Idle + Locate + LookUp + Police> Driver<F> {
    /// Makes an FTL without data.
    pub fn new(ftl: F, work: Work) -> Driver<F> {
        Driver { ftl, work, versions: HashMap::new(), writes: HashMap::new() }
    }

    /// Performs one request.
    pub fn operate(&mut self, op: Op, first: u32, pages: u32) {
        self.work.clear();
        // If blocks are chosen by speed, requests wait for some LUNs and not for others.
        (0..6).filter(|lun| (first + pages) >> lun & 1 != 0).for_each(|lun| self.work.hurry(lun));
        let (request, work) = (whole(first, pages), &mut self.work);
        match op {
            Op::Read => _ = self.ftl.read(request, work),
            Op::Write => _ = self.ftl.write(request, work),
            Op::Trim => _ = self.ftl.trim(request, work),
            Op::Flush => self.ftl.flush(work),
        }
        if matches!(op, Op::Write | Op::Trim) {
            for lpn in first..first + pages {
                let version = self.writes.entry(lpn).or_insert(0);
                *version += 1;
                self.versions.insert(lpn, (op == Op::Write).then_some(*version));
            }
        }
    }

    /// Performs one step of a random load. Values of `op` below 16 select a read, a trim, a flush, idle work, a
    /// prefetch or, most often, a write.
    pub fn step(&mut self, op: u8, at: u32, pages: u32) {
        let lpns = self.ftl.logical_pages();
        let pages = pages.min(lpns);
        let first = at % (lpns - pages + 1);
        match op {
            0..4 => self.operate(Op::Read, first, pages),
            4 => self.operate(Op::Trim, first, pages),
            5 => self.operate(Op::Flush, 0, 0),
            6 if at.is_multiple_of(2) => _ = self.ftl.write_back(&mut self.work),
            6 => _ = self.ftl.fold(self.ftl.home_lun(first), &mut self.work),
            7 => {
                let need = whole(first, pages);
                let page = self.ftl.translation_page(first);
                self.ftl.prefetch(page, &mut [need, need].into_iter(), &mut self.work);
            }
            _ => self.operate(Op::Write, first, pages),
        }
    }

    /// Checks that every invariant holds and every LPN resolves to its newest version.
    pub fn verify(&self) {
        self.ftl.verify().expect("every invariant holds");
        for lpn in 0..self.ftl.logical_pages() {
            let expected = self.versions.get(&lpn).copied().flatten();
            assert_eq!(self.ftl.version(lpn), expected, "LPN {lpn}");
        }
    }

    /// Fills the user capacity and overwrites it ten times, during which garbage collection must never deadlock. If
    /// `skewed`, most writes go to a fifth of the pages.
    pub fn overwrite(&mut self, seed: u64, skewed: bool) {
        let lpns = self.ftl.logical_pages();
        for lpn in 0..lpns {
            self.operate(Op::Write, lpn, 1);
        }
        self.verify();
        let mut state = seed | 1;
        for index in 0..10 * lpns {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut lpn = (state >> 33) as u32 % lpns;
            if skewed && index % 8 != 0 {
                lpn %= lpns.div_ceil(5);
            }
            self.operate(Op::Write, lpn, 1);
            // A look at every page costs as much as the device has pages.
            if index % 64.max(lpns / 16) == 0 {
                self.verify();
            }
        }
        self.verify();
    }
}

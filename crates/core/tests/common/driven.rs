//! An FTL without a device around it.

use std::collections::HashMap;

use ftlab_core::flash::Work;
use ftlab_core::ftl::Ftl;
use ftlab_core::ftl::faces::*;
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;
use ftlab_core::workload::Op;

/// An FTL driven directly, with its versions in a plain map; requests that it refuses leave pages as they were.
pub struct Driven {
    pub ftl: Ftl,
    pub work: Work,
    versions: HashMap<u32, Option<u32>>,
    writes: HashMap<u32, u32>,
}

impl Driven {
    pub fn new(settings: &Settings) -> Driven {
        let mut work = settings.work();
        let mut ftl = Ftl::new(settings, true, &mut work);
        if settings.allocates_by_speed() {
            ftl.choose_by_speed(settings.placement(), settings, work.cells());
        }
        if let Some(how) = settings.ftl.gc_background {
            ftl.collect_in_background(how);
        }
        ftl.start();
        Driven { ftl, work, versions: HashMap::new(), writes: HashMap::new() }
    }

    pub fn operate(&mut self, op: Op, first: u32, pages: u32) {
        self.work.clear();
        let request = Pages { first, pages, ..Pages::NONE };
        let work = &mut self.work;
        let (before, after) = {
            let before = self.ftl.refused();
            match op {
                Op::Read => self.ftl.read(request, work),
                Op::Write => self.ftl.write(request, work),
                Op::Trim => self.ftl.trim(request, work),
                Op::Flush => {
                    self.ftl.flush(work);
                    0
                }
            };
            (before, self.ftl.refused())
        };
        assert!(op != Op::Read || before == after);
        if !matches!(op, Op::Write | Op::Trim) {
            return;
        }
        let mut served = true;
        for lpn in first..first + pages {
            let count = self.writes.get(&lpn).copied().unwrap_or(0) + 1;
            let expected = (op == Op::Write).then_some(count);
            if before != after {
                // The first pages of a write may have been served; a trim is refused completely.
                let found = self.ftl.version(lpn);
                served &= op == Op::Write && found == expected;
            }
            if served {
                self.writes.insert(lpn, count);
                self.versions.insert(lpn, expected);
            }
        }
        assert!(before == after || !served, "a request that was served whole is none that was refused");
    }

    pub fn verify(&self) {
        self.ftl.verify().expect("every invariant holds");
        for lpn in 0..self.ftl.logical_pages() {
            assert_eq!(self.ftl.version(lpn), self.versions.get(&lpn).copied().flatten(), "LPN {lpn}");
        }
        let life = self.ftl.life();
        assert_eq!(life.retired, life.spares.0 - life.spares.1);
    }
}

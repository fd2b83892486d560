//! The device's first-in first-out queue.
//!
//! Source: the baseline of Cui et al., NPC 2016 (VIOS): a request may issue when no chip it touches serves
//! another request, and only the oldest request may issue, so that it blocks those behind it.
//! [`super::noop_busy`] is another interpretation.
//!
//! Interpretation: a flush touches every chip, so everything issued before has completed. With the options of
//! [`crate::flash::parallel`] a busy chip (die, plane) may still accept the request: a read if reads are served out of
//! order or it would interrupt the current operation, and the next operation of the same kind if cache operations let
//! the two overlap. Under dynamic allocation a write may issue when any chip is idle.

use super::{Scheduler, Space};
use crate::device::Array;
use crate::ftl::Locate;
use crate::request::{Ages, Pool, Request, Window};
use crate::util::NONE;
use crate::workload::Op;

pub(super) const NAME: &str = "noop";
pub(super) const DOC: &str = "the oldest request issues once the chips it touches are idle";
pub type Keys = ();

/// The scheduler: a queue in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Noop {
    pub(super) waiting: Ages,
    /// The number of LUNs, under dynamic allocation.
    dynamic: Option<u64>,
    /// What [`Array::changes`] returned when the oldest request was last found unable to issue.
    refused: u64,
}

impl Scheduler for Noop {
    fn new(_keys: &super::Keys, space: &Space) -> Noop {
        let dynamic = space.allocation.is_dynamic();
        Noop {
            waiting: Ages::default(),
            dynamic: dynamic.then(|| u64::from(space.chips())),
            refused: u64::MAX,
        }
    }

    #[inline]
    fn admit(&mut self, id: u32, _chips: Window, pool: &mut Pool) {
        self.waiting.push(id, pool);
    }

    #[inline(always)] // for every event
    fn next(&mut self, array: &Array, ftl: &(impl Locate + ?Sized), pool: &mut Pool) -> Option<u32> {
        let id = self.waiting.head();
        if id == NONE {
            return None;
        }
        if !(array.all_idle() || self.may_issue(&pool[id], array, ftl)) {
            self.refused = array.changes();
            return None;
        }
        self.waiting.pop(pool)
    }

    #[inline]
    fn waits(&self, array: &Array) -> bool {
        self.waiting.head() != NONE && self.refused == array.changes()
    }
}

impl Noop {
    /// Whether a request may issue now, as far as its chips are concerned, while some chip is busy.
    #[inline(never)] // keeps the path of an idle device short
    pub(super) fn may_issue(&self, request: &Request, array: &Array, ftl: &(impl Locate + ?Sized)) -> bool {
        // Most requests have one page, for which a loop costs more than the check.
        match (request.op, request.pages.pages) {
            (Op::Read, 1) => array.takes(ftl.read_lun(request.pages.first), true),
            (Op::Write | Op::Trim, 1) if self.dynamic.is_none() => {
                array.takes(ftl.write_lun(request.pages.first, 0), false)
            }
            _ => self.each_may_issue(request, array, ftl),
        }
    }

    /// Whether each page of a request may issue now.
    #[inline(never)] // keeps the path of a single page short
    fn each_may_issue(&self, request: &Request, array: &Array, ftl: &(impl Locate + ?Sized)) -> bool {
        let first = request.pages.first;
        let mut pages = 0..request.pages.pages;
        match request.op {
            Op::Read => pages.all(|page| array.takes(ftl.read_lun(first + page), true)),
            Op::Write | Op::Trim if self.dynamic.is_some() => self.any_is_idle(array),
            Op::Write | Op::Trim => pages.all(|page| array.takes(ftl.write_lun(first, page), false)),
            Op::Flush => false,
        }
    }

    #[cold]
    fn any_is_idle(&self, array: &Array) -> bool {
        self.dynamic.is_some_and(|chips| array.busy().count() < chips)
    }
}

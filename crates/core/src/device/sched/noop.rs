//! The device's first-in first-out queue.
//!
//! Source: the baseline of Cui et al., NPC 2016 (VIOS): a request may issue when no chip it touches
//! serves another request, and only the oldest request may issue, so that it blocks those behind it.
//!
//! Read into it: a flush touches every chip, so that what was issued before has completed.

use super::Scheduler;
use crate::config::{Key, Settings};
use crate::device::Array;
use crate::ftl::with_ftl;
use crate::ftl::{FlashTranslation, Ftl};
use crate::request::{Ages, Pool, Request, Window};
use crate::util::NONE;
use crate::workload::Op;

pub(super) const NAME: &str = "noop";
pub(super) const DOC: &str = "the oldest request issues once the chips it touches are idle";
pub(super) const KEYS: &[Key] = &[];

/// The queue.
#[derive(Clone, Debug)]
pub(super) struct Noop {
    waiting: Ages,
}

impl Scheduler for Noop {
    fn new(_settings: &Settings) -> Noop {
        Noop { waiting: Ages::default() }
    }

    #[inline]
    fn admit(&mut self, id: u32, _chips: Window, pool: &mut Pool) {
        self.waiting.push(id, pool);
    }

    #[inline]
    fn next(&mut self, array: &Array, ftl: &Ftl, pool: &mut Pool) -> Option<u32> {
        let id = self.waiting.head();
        if id == NONE || !may_issue(&pool[id], array, ftl) {
            return None;
        }
        self.waiting.pop(pool)
    }
}

/// Whether the oldest waiting request may issue now.
#[inline]
fn may_issue(request: &Request, array: &Array, ftl: &Ftl) -> bool {
    if array.all_idle() {
        return true;
    }
    let first = request.pages.first;
    let mut pages = 0..request.pages.pages;
    with_ftl!(ftl, ftl => match request.op {
        Op::Read => pages.all(|page| array.is_idle(ftl.read_chip(first + page))),
        Op::Write | Op::Trim => pages.all(|page| array.is_idle(ftl.write_chip(first, page))),
        Op::Flush => false,
    })
}

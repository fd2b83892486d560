//! The device's first-in first-out queue.
//!
//! Source: the baseline of Cui et al., NPC 2016 (VIOS): a request may issue when no chip it touches
//! serves another request, and only the oldest request may issue, so that it blocks those behind it.
//!
//! Read into it: a flush touches every chip, so that what was issued before has completed.

use super::Array;
use crate::ftl::with_ftl;
use crate::ftl::{FlashTranslation, Ftl};
use crate::request::Request;
use crate::workload::Op;

pub(super) const NAME: &str = "noop";
pub(super) const DOC: &str = "the oldest request issues once the chips it touches are idle";

/// Whether the oldest waiting request may issue now.
#[inline]
pub(super) fn may_issue(request: &Request, array: &Array, ftl: &Ftl) -> bool {
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

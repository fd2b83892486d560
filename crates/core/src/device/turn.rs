//! What the device works with at an instant, and how pages of a request go through the FTL.

use crate::flash::Work;
use crate::ftl::Running;
use crate::request::{Entry, HostSide, Mark, Pages, Pool};
use crate::util::NONE;
use crate::workload::Op;

/// What the device works with at an instant.
#[derive(Debug)]
pub struct Turn<'a, F> {
    /// The instant, ns.
    pub now_ns: u64,
    /// The requests.
    pub pool: &'a mut Pool,
    /// The FTL.
    pub ftl: &'a mut F,
    /// Receives the steps that the FTL decides on.
    pub work: &'a mut Work,
    /// Receives the requests of the host that complete.
    pub done: &'a mut Vec<u32>,
}

impl<F> Turn<'_, F> {
    /// Returns the same again, for a function that is not inlined: so this one can stay in registers.
    #[inline(always)]
    pub(super) fn again(&mut self) -> Turn<'_, F> {
        let Turn { now_ns, pool, ftl, work, done } = self;
        Turn { now_ns: *now_ns, pool, ftl, work, done }
    }
}

/// When the first request of a batch issues, loads the mappings of the batch's translation page that the batch misses.
pub(super) fn fetch_for_batch(id: u32, pool: &Pool, ftl: &mut impl Running, work: &mut Work) {
    let HostSide { batch, translation_page, .. } = pool[id].host;
    let mut at = id;
    // A scheduler of the device may have let later members of the batch overtake this one; the slot of a member
    // that has completed may by now hold a request of another batch.
    let mut needs = std::iter::from_fn(|| {
        let member = (at != NONE && pool[at].host.batch == batch).then(|| &pool[at])?;
        at = pool.behind(at);
        // A read that carries entries needs no mapping.
        Some(if member.mark.has_entries() { Pages::NONE } else { member.pages })
    });
    ftl.prefetch(translation_page, &mut needs, work);
}

/// What is asked of the FTL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub op: Op,
    pub pages: Pages,
    pub mark: Mark,
    /// The mapping entries that the request carries for these pages, or none.
    pub entries: &'a [Entry],
}

/// Runs a request that the host has marked, with the commands of cooperation that go before and after it.
#[cold]
pub(super) fn serve_marked(asked: Asked, ftl: &mut impl Running, work: &mut Work) -> u32 {
    let Asked { pages, mark, .. } = asked;
    let block = ftl.block_size().map_or(0, |size| pages.first / size.pages);
    if mark.begin {
        ftl.coop_issue(block, work);
    }
    let misses = serve(asked, ftl, work);
    if mark.end {
        ftl.coop_complete(block, work);
    }
    misses
}

/// Runs a request through the FTL, with its mark and the entries that it carries; returns the number of its
/// mapping-cache misses.
#[inline(never)] // keeps the path of reads and writes without marks short
pub(super) fn serve(asked: Asked, ftl: &mut impl Running, work: &mut Work) -> u32 {
    let Asked { op, pages, mark, entries } = asked;
    match op {
        Op::Read if entries.is_empty() => ftl.read_marked(pages, mark, work),
        Op::Read => ftl.read_with(pages, entries, mark, work),
        Op::Write => ftl.write_marked(pages, mark, work),
        Op::Trim => ftl.trim(pages, work),
        Op::Flush => {
            ftl.flush(work);
            0
        }
    }
}

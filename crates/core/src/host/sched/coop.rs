//! COOP: block issues that the FTL asks for go first.
//!
//! Source: Shim, Kim, Maeng, TC 2014, sections 5.3 and 5.4, Algorithm 2, word for word: before a write
//! request (here all queued writes of the oldest one's logical block) COOP_Query says which blocks the request would
//! cause the FTL to merge (MBS). For each of these blocks, its write-back pages in the queue (MQPS) and its dirty
//! pages in the page cache (MDPS, the issue range extension), if there are any, are issued between COOP_Issue and
//! COOP_Complete. Then the request itself is issued, unless its block was one of these. Reads are handled as usual.
//!
//! Interpretation: MDPS includes the pages that write-back has submitted but the full queue has not admitted
//! yet; they wait outside, like Linux's dirty pages whose submitter sleeps. A block issue is counted with all
//! its pages; pages on which several writes of a trace overlap count more than once. All writes carry the mark `coop`
//! (`request::Mark`). If the FTL merges nothing, the query returns the empty set, and without a page cache nothing
//! joins: what remains is IRBW.

use super::Needs;
use super::block_issues::{BY_BLOCKS, BlockIssue, ByBlocks, Issue};
use crate::util::NONE;

pub(super) const NAME: &str = "coop";
pub(super) const DOC: &str =
    "as irbw, but writes to flash blocks that the FTL is about to merge go first (Shim et al., TC 2014)";
pub type Keys = ();

/// The scheduler `coop`: block issues, preceded by those that [`Preferential`] adds.
pub(super) type Coop = ByBlocks<Preferential>;

/// Issues, before the writes, pages of the blocks that the writes would cause the FTL to merge.
#[derive(Clone, Debug, Default)]
pub(super) struct Preferential {
    /// MBS, the merge blocks.
    merged: Vec<u32>,
    /// MPS, the pages issued for one merge block.
    preferred: Vec<u32>,
}

impl BlockIssue for Preferential {
    const NEEDS: Needs = Needs { cooperation: true, ..BY_BLOCKS };

    fn issue(&mut self, Issue { block, writes, bundles, pool, around, batch }: &mut Issue) {
        let Preferential { merged, preferred } = self;
        let first = writes.iter().map(|&id| pool[id].pages.first).min().expect("a bundle holds requests");
        let pages = writes.iter().map(|&id| pool[id].pages.pages).sum();
        around.query(first, pages, merged);
        for &merge_block in merged.iter() {
            preferred.clear();
            if merge_block == *block {
                std::mem::swap(preferred, *writes);
            } else {
                bundles.take_block(merge_block, pool, preferred);
            }
            around.join(merge_block, pool, preferred);
            let Some(&eldest) = preferred.first() else { continue };
            pool[eldest].host.prioritized |= merge_block != *block;
            bundles.issue(preferred, pool, batch);
            pool[preferred[0]].mark.begin = true;
            pool[preferred[preferred.len() - 1]].mark.end = true;
        }
        if !writes.is_empty() {
            bundles.issue(writes, pool, batch);
        }
        let mut id = batch.head();
        while id != NONE {
            pool[id].mark.coop = true;
            id = pool.behind(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::{Around, Decision, Sched};
    use crate::request::{Pool, Request};
    use crate::workload::Op;

    /// An FTL that returns prepared answers, below a page cache with these dirty pages.
    struct Figure {
        answer: Vec<u32>,
        dirty: Vec<u32>,
        asked: std::cell::RefCell<Vec<(u32, u32)>>,
    }

    impl Around for Figure {
        fn pages_of(&self, block: u32) -> Range<u32> {
            block * 5..block * 5 + 5
        }

        fn query(&self, first: u32, pages: u32, set: &mut Vec<u32>) {
            self.asked.borrow_mut().push((first, pages));
            set.clone_from(&self.answer);
        }

        fn join(&mut self, block: u32, pool: &mut Pool, found: &mut Vec<u32>) {
            let range = self.pages_of(block);
            self.dirty.retain(|page| {
                let joins = range.contains(page);
                if joins {
                    found.push(pool.insert(Request::of_pages(Op::Write, *page, 1)));
                }
                !joins
            });
        }

        fn now_ns(&self) -> u64 {
            0
        }

        fn pad(&mut self, _op: Op, _pages: Range<u32>, _pool: &mut Pool) -> u32 {
            unreachable!("only padding pads");
        }
    }

    fn of(name: &str, queued: &[(Op, u32, u32)]) -> (Sched, Pool) {
        let mut sched = Sched::new(name, &super::super::Keys::default(), 5);
        let mut pool = Pool::default();
        for &(op, first, pages) in queued {
            let id = pool.insert(Request::of_pages(op, first, pages));
            sched.admit(id, &mut pool);
        }
        (sched, pool)
    }

    /// Returns the pages of the next choice, and whether each request begins or ends a preferential block issue.
    fn chosen(sched: &mut Sched, pool: &mut Pool, around: &mut Figure) -> Vec<(u32, u32, bool, bool)> {
        let show = |id: u32, pool: &Pool| {
            let Request { pages, mark, .. } = pool[id];
            (pages.first, pages.pages, mark.begin, mark.end)
        };
        match sched.choose(pool, around) {
            Decision::Nothing => vec![],
            Decision::One(id) => vec![show(id, pool)],
            Decision::Batch(mut queue) => {
                std::iter::from_fn(|| queue.pop(pool).map(|id| show(id, pool))).collect()
            }
        }
    }

    /// Fig. 6 (five-page blocks): Block0 is the victim. The query for two pages from Page1 on returns Block1 and
    /// Block2; their dirty Page8, Page9, Page10 and Page14 go with them; of Block0, only the write-back pages go.
    #[test]
    fn figure_6() {
        let queue = [(Op::Write, 1, 2), (Op::Write, 6, 1), (Op::Read, 3, 1), (Op::Write, 12, 1)];
        let (mut sched, mut pool) = of("coop", &queue);
        let asked = std::cell::RefCell::new(Vec::new());
        let mut around = Figure { answer: vec![1, 2], dirty: vec![0, 8, 9, 10, 14, 15], asked };
        let first = chosen(&mut sched, &mut pool, &mut around);
        let (begin, end) = (true, true);
        let expected = [
            (6, 1, begin, false),
            (8, 1, false, false),
            (9, 1, false, end),
            (10, 1, begin, false),
            (12, 1, false, false),
            (14, 1, false, end),
            (1, 2, false, false),
        ];
        assert_eq!(first, expected);
        assert_eq!(*around.asked.borrow(), [(1, 2)]);
        assert_eq!(around.dirty, [0, 15], "other dirty pages stay, Block0's too");
        assert_eq!(chosen(&mut sched, &mut pool, &mut around), [(3, 1, false, false)], "reads as ever");
        assert_eq!(chosen(&mut sched, &mut pool, &mut around), []);
        assert_eq!(around.asked.borrow().len(), 1, "no query for a read");
    }

    /// The rest of Algorithm 2: a victim that is itself a merge block goes only once, with its dirty pages, and is
    /// announced; merge blocks without pages are left to the FTL; an empty answer changes nothing.
    #[test]
    fn the_victim_among_the_merge_blocks() {
        let (mut sched, mut pool) = of("coop", &[(Op::Write, 4, 1), (Op::Write, 1, 2)]);
        let mut around = Figure { answer: vec![0, 3], dirty: vec![3], asked: Default::default() };
        let all = chosen(&mut sched, &mut pool, &mut around);
        assert_eq!(all, [(1, 2, true, false), (3, 1, false, false), (4, 1, false, true)]);
        assert_eq!(*around.asked.borrow(), [(1, 3)]);
        let (mut sched, mut pool) = of("coop", &[(Op::Write, 4, 1), (Op::Write, 7, 2)]);
        let mut around = Figure { answer: vec![2], dirty: vec![3], asked: Default::default() };
        assert_eq!(chosen(&mut sched, &mut pool, &mut around), [(4, 1, false, false)]);
        around.answer.clear();
        assert_eq!(chosen(&mut sched, &mut pool, &mut around), [(7, 2, false, false)]);
        assert_eq!(around.dirty, [3]);
    }
}

//! The set of logical pages a trace touches, and their ranks.
//!
//! Pages are kept in chunks of 512: a bitmap if part of a chunk is touched, a run of whole chunks if a
//! request covers them. So memory is bounded by the pages touched (72 B and a table slot for each chunk) and
//! by the number of requests, however large the requests are.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

const WORDS: usize = 8;
const CHUNK: u64 = WORDS as u64 * 64;

/// The set of pages that have been touched.
#[derive(Default)]
pub(crate) struct Footprint {
    partial: FxHashMap<u64, [u64; WORDS]>,
    /// Runs of whole chunks, each from its first chunk to one past its last; the runs are disjoint and not adjacent.
    whole: BTreeMap<u64, u64>,
}

impl Footprint {
    /// Adds pages `first..=last`.
    pub(crate) fn touch(&mut self, first: u64, last: u64) {
        let (first_chunk, last_chunk) = (first / CHUNK, last / CHUNK);
        let (from, to) = (first % CHUNK, last % CHUNK);
        if first_chunk == last_chunk {
            return self.touch_within(first_chunk, from, to);
        }
        let run_start = if from == 0 { first_chunk } else { first_chunk + 1 };
        let run_end = if to == CHUNK - 1 { last_chunk + 1 } else { last_chunk };
        if from != 0 {
            self.touch_within(first_chunk, from, CHUNK - 1);
        }
        if to != CHUNK - 1 {
            self.touch_within(last_chunk, 0, to);
        }
        if run_start < run_end {
            self.touch_whole(run_start, run_end);
        }
    }

    fn touch_within(&mut self, chunk: u64, from: u64, to: u64) {
        if !self.whole.is_empty() && self.is_whole(chunk) {
            return;
        }
        let bits = self.partial.entry(chunk).or_insert([0; WORDS]);
        for (word, bits) in (0..).zip(bits.iter_mut()) {
            let low = from.max(word * 64);
            let high = to.min(word * 64 + 63);
            if low <= high {
                *bits |= (u64::MAX >> (63 - (high - low))) << (low % 64);
            }
        }
    }

    fn is_whole(&self, chunk: u64) -> bool {
        self.whole.range(..=chunk).next_back().is_some_and(|(_, &end)| chunk < end)
    }

    fn touch_whole(&mut self, mut start: u64, mut end: u64) {
        // Joins all runs that overlap the new one or are adjacent to it.
        while let Some((&run_start, &run_end)) = self.whole.range(..=end).next_back() {
            if run_end < start {
                break;
            }
            start = start.min(run_start);
            end = end.max(run_end);
            self.whole.remove(&run_start);
        }
        self.whole.insert(start, end);
    }

    /// Returns the number of chunks kept as bitmaps, which dominate the memory.
    pub(crate) fn bitmaps(&self) -> usize {
        self.partial.len()
    }

    /// Sorts the touched pages, and returns their ranks.
    pub(crate) fn finish(self) -> Ranks {
        let mut runs: Vec<Run> = self
            .partial
            .iter()
            .filter(|(chunk, _)| !self.is_whole(**chunk))
            .map(|(&chunk, &bits)| Run { chunk, chunks: 1, rank: 0, bits })
            .chain(self.whole.iter().map(|(&start, &end)| Run {
                chunk: start,
                chunks: end - start,
                rank: 0,
                bits: [u64::MAX; WORDS],
            }))
            .collect();
        runs.sort_unstable_by_key(|run| run.chunk);
        let mut pages = 0;
        for run in &mut runs {
            run.rank = pages;
            pages += match run.chunks {
                1 => run.bits.iter().map(|word| u64::from(word.count_ones())).sum(),
                chunks => chunks * CHUNK,
            };
        }
        let index = runs.iter().zip(0..).map(|(run, at)| (run.chunk, at)).collect();
        Ranks { runs, index, pages }
    }
}

/// One chunk, or several chunks in a row that are touched as a whole.
struct Run {
    chunk: u64,
    chunks: u64,
    /// Number of touched pages before the run.
    rank: u64,
    bits: [u64; WORDS],
}

/// The touched pages in order.
pub(crate) struct Ranks {
    runs: Vec<Run>,
    /// Finds a run by its first chunk.
    index: FxHashMap<u64, u32>,
    pages: u64,
}

impl Ranks {
    /// Returns the number of touched pages.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the number of touched pages before `page`; `None` if `page` itself is not touched.
    #[inline]
    pub(crate) fn rank(&self, page: u64) -> Option<u64> {
        let (chunk, at) = (page / CHUNK, page % CHUNK);
        let run = match self.index.get(&chunk) {
            Some(&at) => &self.runs[at as usize],
            None => {
                let after = self.runs.partition_point(|run| run.chunk <= chunk);
                let run = &self.runs[after.checked_sub(1)?];
                if chunk - run.chunk >= run.chunks {
                    return None;
                }
                run
            }
        };
        if run.chunks > 1 {
            return Some(run.rank + (chunk - run.chunk) * CHUNK + at);
        }
        let word = (at / 64) as usize;
        let below = (1u64 << (at % 64)) - 1;
        if run.bits[word] >> (at % 64) & 1 == 0 {
            return None;
        }
        let before: u32 = run.bits[..word].iter().map(|bits| bits.count_ones()).sum();
        Some(run.rank + u64::from(before + (run.bits[word] & below).count_ones()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_huge_request_costs_nothing() {
        let mut footprint = Footprint::default();
        footprint.touch(3, (1 << 52) - 1);
        footprint.touch(0, 5);
        let ranks = footprint.finish();
        assert_eq!(ranks.pages(), 1 << 52);
        assert_eq!(ranks.rank((1 << 52) - 1), Some((1 << 52) - 1));
        assert_eq!(ranks.rank(1 << 52), None);
        assert!(ranks.runs.len() < 4);
    }

    proptest! {
        /// Compares the ranks with a set of pages.
        #[test]
        fn ranks_are_those_of_a_set(
            requests in prop::collection::vec((0u64..6000, prop_oneof![1u64..20, 500u64..2500]), 1..40)
        ) {
            let mut footprint = Footprint::default();
            let mut set = BTreeSet::new();
            for &(first, count) in &requests {
                footprint.touch(first, first + count - 1);
                set.extend(first..first + count);
            }
            let ranks = footprint.finish();
            prop_assert_eq!(ranks.pages(), set.len() as u64);
            let mut rank = 0;
            for page in 0..9000 {
                if set.contains(&page) {
                    prop_assert_eq!(ranks.rank(page), Some(rank));
                    rank += 1;
                } else {
                    prop_assert_eq!(ranks.rank(page), None);
                }
            }
        }
    }
}

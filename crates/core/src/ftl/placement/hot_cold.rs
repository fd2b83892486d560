//! Hot-cold: pages that are written often in one open block, other pages in another; an update counter tells them
//! apart.
//!
//! Source: Hsieh, Kuo and Chang, "Efficient Identification of Hot Data for Flash Memory Storage Systems", ACM
//! Transactions on Storage 2(1), 2006. A counter of four bits is increased by each write; a page is hot if one of the
//! two upper bits is set, so from four writes on. After a number of writes all counters are halved, so that old writes
//! count less and less. The paper hashes pages onto a table of counters to save memory. Here each page has its own
//! counter, which is the exact form that the paper, and later Park and Du ("Hot Data Identification for Flash-based
//! Storage Systems Using Multiple Bloom Filters", MSST 2011), compare with.
//!
//! Interpretation: the counters tell whether the page is hot including the write that is about to happen. They are
//! halved whenever the host has written a share of the logical pages (`ftl.hot_decay`), so that the same share means
//! the same on every device; the paper has a fixed number of writes that suits its trace. A copy goes to a block of the
//! copies, hot or not: what is copied has outlived its neighbours, whatever its counter says.

use super::{Own, Page, Placement, Space, Writable};
use crate::config::section;
use crate::config::section::{count, share};

pub(super) const NAME: &str = "hot-cold";
pub(super) const DOC: &str = "pages written often, other pages, and copies apart, by an update counter with decay (Hsieh et al., TOS 2006)";

section! {
    /// The keys that only hot-cold has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Value of its update counter (at most 15) from which a page is hot under ftl.placement hot-cold.
        threshold: u32 = "ftl.hot_threshold", count(1, 15), "4";
        /// Amount of writes, as a share of the user capacity, after which ftl.placement hot-cold halves all counters.
        decay_ppm: u64 = "ftl.hot_decay", share(10_000, 100_000_000), "100%";
    }
}

/// Largest value of a counter, which has four bits.
const MOST: u8 = 15;

#[derive(Clone, Debug)]
pub(super) struct HotCold {
    threshold: u8,
    counters: Vec<u8>,
    /// Number of writes after which the counters are halved, and how many of them are left.
    period: u64,
    left: u64,
}

impl HotCold {
    fn decay(&mut self) {
        self.counters.iter_mut().for_each(|counter| *counter /= 2);
        self.left = self.period;
    }
}

impl Placement for HotCold {
    fn new(keys: &Own, space: Space) -> HotCold {
        let period = (u64::from(space.pages) * keys.hot_cold.decay_ppm / 1_000_000).max(1);
        HotCold {
            threshold: keys.hot_cold.threshold as u8,
            counters: vec![0; space.pages as usize],
            period,
            left: period,
        }
    }

    fn fronts(&self) -> u32 {
        3
    }

    fn front_name(&self, front: u32) -> String {
        ["hot", "cold", "copies"][front as usize].into()
    }

    fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        if page.is_copy() {
            return 2;
        }
        if self.left == 0 {
            self.decay();
        }
        self.left -= 1;
        let counter = &mut self.counters[page.lpn as usize];
        *counter = (*counter + 1).min(MOST);
        u32::from(*counter < self.threshold)
    }

    /// Returns the counters in eights, and how many writes are left until they are halved.
    fn save(&self) -> Vec<u64> {
        let eight = |of: &[u8]| of.iter().rev().fold(0, |word, &counter| word << 8 | u64::from(counter));
        self.counters.chunks(8).map(eight).chain([self.left]).collect()
    }

    fn load(&mut self, saved: &[u64]) -> bool {
        let Some((&left, words)) = saved.split_last() else { return false };
        self.left = left;
        self.counters.chunks_mut(8).zip(words).for_each(|(eight, word)| {
            eight.iter_mut().zip(word.to_le_bytes()).for_each(|(counter, byte)| *counter = byte);
        });
        let fits = words.len() == self.counters.len().div_ceil(8) && left <= self.period;
        fits && self.counters.iter().all(|&counter| counter <= MOST)
    }
}

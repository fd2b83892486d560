//! The miss ratios of LRU caches of all sizes, found in one pass over the references.
//!
//! Source: Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems
//! Journal 9(2), 1970: a reference hits in an LRU cache of `C` items if its stack distance (the number of items
//! referenced since the last reference to the same item, that item included) is at most `C`. Distances are counted
//! with a Fenwick tree over the times of the last references (Bennett and Kruskal, IBM J. Res. Dev. 19(4), 1975).
//! Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC construction with SHARDS", FAST 2015: items are sampled by
//! a hash of their name at the rate R, and distances and counts are divided by R. The size of the sample is limited:
//! when it has too many items, the rate is lowered and the items above the new rate are dropped. References that the
//! sample lacks are added at the smallest distance, and those in excess are subtracted there (SHARDS-adj).
//!
//! Interpretation: the rate starts at 1, so that the curve is exact up to some number of items; after that it is
//! halved as often as necessary. What was counted earlier keeps the weight that it had then instead of being scaled.

use super::{NONE, memory};

/// Distances from one power of two to the next are divided into 2^SUB_BITS bins.
const SUB_BITS: u32 = 3;
const SUB: usize = 1 << SUB_BITS;
const BINS: usize = (64 - SUB_BITS as usize + 1) * SUB;

/// Stack distances of a stream of references.
#[derive(Clone, Debug)]
pub struct StackDistances {
    /// For each item, one more than the slot of its last reference, or 0 if it has none.
    last: Vec<u32>,
    /// Fenwick tree over the slots: how many of them are last references.
    tree: Vec<u32>,
    /// The item of each slot; [`NONE`] once that item has been referenced again.
    items: Vec<u32>,
    /// Number of slots used.
    used: u32,
    /// Number of items held, and the largest number allowed.
    held: u32,
    limit: u32,
    /// The rate at which items are sampled is 2^-shift.
    shift: u32,
    references: u64,
    /// The number of references at each distance, and the number of first references; each is weighted with 2^shift.
    counts: Vec<u64>,
    first: u64,
}

/// The miss ratio as a function of the capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Capacities in items, ascending; from the last one on only first references miss.
    pub capacity: Vec<u64>,
    /// For each capacity, the misses of an LRU cache of that size that starts empty, divided by the references.
    pub miss_ratio: Vec<f64>,
    /// Number of items referenced; an estimate if they were sampled.
    pub items: u64,
    /// The final rate at which items were sampled; 1 means that the curve is exact.
    pub rate: f64,
}

fn bin_of(distance: u64) -> usize {
    if distance < SUB as u64 {
        return distance as usize;
    }
    let shift = 63 - distance.leading_zeros() - SUB_BITS;
    (shift as usize + 1) * SUB + ((distance >> shift) as usize & (SUB - 1))
}

/// Returns the greatest distance that falls into a bin.
fn upper_of(bin: usize) -> u64 {
    if bin < SUB { bin as u64 } else { (((SUB + bin % SUB + 1) as u64) << (bin / SUB - 1)) - 1 }
}

/// Returns a hash of a number: SplitMix64's finalizer.
fn hash(item: u32) -> u64 {
    let mixed = u64::from(item).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl StackDistances {
    /// Makes an empty record of the items `0..items`, which holds at most `limit` of them.
    pub fn new(items: u32, limit: u32) -> StackDistances {
        let limit = limit.min(items).clamp(1, 1 << 30);
        let mut last = vec![0; items as usize];
        memory::prepare(&mut last, false);
        StackDistances {
            last,
            tree: vec![0; 2 * limit as usize + 1],
            items: vec![NONE; 2 * limit as usize],
            used: 0,
            held: 0,
            limit,
            shift: 0,
            references: 0,
            counts: vec![0; BINS],
            first: 0,
        }
    }

    /// Notes that an item is referenced.
    pub fn reference(&mut self, item: u32) {
        self.references += 1;
        if !self.sampled(item) {
            return;
        }
        let weight = 1 << self.shift;
        match self.last[item as usize] {
            0 => {
                self.first += weight;
                if self.held == self.limit {
                    self.sample_fewer();
                    if !self.sampled(item) {
                        return;
                    }
                }
                self.held += 1;
            }
            slot if slot == self.used => {
                self.counts[bin_of(weight)] += weight;
                return;
            }
            slot => {
                let distance = u64::from(self.held - self.up_to(slot) + 1);
                self.counts[bin_of(distance << self.shift)] += weight;
                self.add(slot, u32::MAX);
                self.items[slot as usize - 1] = NONE;
            }
        }
        if self.used as usize == self.items.len() {
            // The item's old slot has already been cleared, so the item is not counted twice.
            self.renumber();
        }
        self.items[self.used as usize] = item;
        self.used += 1;
        self.last[item as usize] = self.used;
        self.add(self.used, 1);
    }

    /// Returns the number of references so far.
    pub fn references(&self) -> u64 {
        self.references
    }

    fn sampled(&self, item: u32) -> bool {
        self.shift == 0 || hash(item) >> (64 - self.shift) == 0
    }

    /// Halves the sampling rate until there is room for another item.
    fn sample_fewer(&mut self) {
        while self.held == self.limit {
            self.shift += 1;
            for at in 0..self.used as usize {
                let item = self.items[at];
                if item != NONE && !self.sampled(item) {
                    (self.items[at], self.last[item as usize]) = (NONE, 0);
                    self.held -= 1;
                }
            }
        }
        self.renumber();
    }

    /// Compacts the slots, so that all of them hold an item.
    fn renumber(&mut self) {
        let mut used = 0;
        for at in 0..self.used as usize {
            let item = std::mem::replace(&mut self.items[at], NONE);
            if item != NONE {
                self.items[used] = item;
                used += 1;
                self.last[item as usize] = used as u32;
            }
        }
        self.used = used as u32;
        // The lowest set bit of a node's number is the number of slots that the node covers.
        for node in 1..self.tree.len() {
            let from = node & (node - 1);
            self.tree[node] = (node.min(used).saturating_sub(from)) as u32;
        }
    }

    /// Returns the number of last references in the slots up to this one; slots count from 1.
    fn up_to(&self, slot: u32) -> u32 {
        let (mut at, mut sum) = (slot as usize, 0);
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    fn add(&mut self, slot: u32, change: u32) {
        let mut at = slot as usize;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(change);
            at += at & at.wrapping_neg();
        }
    }

    /// Returns the curve for the references so far.
    pub fn curve(&self) -> Curve {
        let (mut capacity, mut miss_ratio) = (Vec::new(), Vec::new());
        let weighted = self.first + self.counts.iter().sum::<u64>();
        // References that the sample lacks count as hits of the smallest cache; those in excess are
        // subtracted there.
        let mut hits = self.references as f64 - weighted as f64;
        let end = self.counts.iter().rposition(|&count| count > 0).map_or(1, |bin| bin.max(1));
        for (bin, &count) in self.counts.iter().enumerate().take(end + 1).skip(1) {
            hits += count as f64;
            if self.references > 0 {
                capacity.push(upper_of(bin));
                miss_ratio.push((1.0 - hits / self.references as f64).clamp(0.0, 1.0));
            }
        }
        Curve { capacity, miss_ratio, items: self.first, rate: 0.5f64.powi(self.shift as i32) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{below, stream};
    use super::*;
    use proptest::prelude::*;
    use rand::RngCore;

    /// Returns the number of misses of an LRU cache, found by simulating the cache.
    fn misses(stream: &[u32], items: u32, capacity: u32) -> u64 {
        let mut order: Vec<u32> = Vec::new();
        let mut misses = 0;
        for &item in stream {
            assert!(item < items);
            match order.iter().position(|&other| other == item) {
                Some(at) => drop(order.remove(at)),
                None => {
                    misses += 1;
                    if order.len() == capacity as usize {
                        order.remove(0);
                    }
                }
            }
            order.push(item);
        }
        misses
    }

    #[test]
    fn bins_end_where_the_next_begin() {
        for bin in 1..300 {
            assert_eq!((bin_of(upper_of(bin)), bin_of(upper_of(bin) + 1)), (bin, bin + 1));
        }
    }

    proptest! {
        /// At every capacity of the curve, the miss ratio is that of a simulated cache, although slots are renumbered
        /// again and again.
        #[test]
        fn agrees_with_lru_caches(
            items in 1u32..60,
            draws in proptest::collection::vec(any::<(u32, bool)>(), 0..600),
        ) {
            // Half of the references go to a few items.
            let stream: Vec<u32> =
                draws.iter().map(|&(draw, hot)| if hot { draw % items.div_ceil(8) } else { draw % items }).collect();
            let mut distances = StackDistances::new(items, u32::MAX);
            stream.iter().for_each(|&item| distances.reference(item));
            let curve = distances.curve();
            prop_assert_eq!(curve.rate, 1.0);
            prop_assert_eq!(curve.items, misses(&stream, items, items));
            for (&capacity, ratio) in curve.capacity.iter().zip(&curve.miss_ratio) {
                let exact = misses(&stream, items, capacity as u32) as f64 / stream.len() as f64;
                prop_assert!((ratio - exact).abs() < 1e-12, "{capacity}: {ratio} against {exact}");
            }
        }
    }

    #[test]
    fn a_sample_comes_near() {
        const ITEMS: u32 = 40_000;
        let mut random = stream(3, "references");
        // The draws are skewed: each is the product of two uniform numbers.
        let draws: Vec<u32> = (0..400_000)
            .map(|_| below(random.next_u64(), below(random.next_u64(), u64::from(ITEMS)) + 1) as u32)
            .collect();
        let [mut exact, mut sampled] = [u32::MAX, 4096].map(|limit| StackDistances::new(ITEMS, limit));
        for &item in &draws {
            exact.reference(item);
            sampled.reference(item);
        }
        let (exact, sampled) = (exact.curve(), sampled.curve());
        assert!(exact.rate == 1.0 && sampled.rate <= 0.125, "{}", sampled.rate);
        assert!((sampled.items as f64 / exact.items as f64 - 1.0).abs() < 0.1);
        for (capacity, ratio) in exact.capacity.iter().zip(&exact.miss_ratio) {
            let at = sampled.capacity.iter().position(|other| other >= capacity);
            let found = at.map_or(*sampled.miss_ratio.last().unwrap(), |at| sampled.miss_ratio[at]);
            assert!((ratio - found).abs() < 0.03, "{capacity}: {found} against {ratio}");
        }
    }

    #[test]
    fn nothing_referenced_has_no_curve() {
        assert_eq!(StackDistances::new(0, 8).curve().capacity, []);
    }
}

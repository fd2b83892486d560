//! A binary heap whose entries may go stale.

use std::collections::BinaryHeap;

/// A max-heap whose entries are not removed but recognised as stale when they surface, so that removing a
/// request from the middle costs nothing. It never holds many more stale entries than live ones.
#[derive(Clone, Debug)]
pub struct LazyHeap<K> {
    heap: BinaryHeap<K>,
    live: usize,
}

impl<K: Ord> Default for LazyHeap<K> {
    fn default() -> Self {
        LazyHeap { heap: BinaryHeap::with_capacity(256), live: 0 }
    }
}

impl<K: Ord> LazyHeap<K> {
    /// Returns the number of entries that are not stale.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Adds an entry; if `more` is false, it replaces an entry that the same change made stale.
    pub fn push(&mut self, key: K, more: bool) {
        self.heap.push(key);
        self.live += usize::from(more);
    }

    /// Takes the greatest live entry.
    pub fn pop(&mut self, is_live: impl Fn(&K) -> bool) -> Option<K> {
        while let Some(key) = self.heap.pop() {
            if is_live(&key) {
                self.live -= 1;
                return Some(key);
            }
        }
        None
    }

    /// Notes that an entry became stale and is not replaced.
    pub fn forget(&mut self, is_live: impl Fn(&K) -> bool) {
        self.live -= 1;
        self.tidy(is_live);
    }

    /// Checks that there are `expected` live entries.
    pub(crate) fn verify(&self, expected: usize, is_live: impl Fn(&K) -> bool) -> Result<(), String> {
        let mut found: Vec<&K> = self.heap.iter().filter(|key| is_live(key)).collect();
        found.sort_unstable();
        found.dedup();
        match (found.len(), self.live) {
            (found, live) if found == expected && live == expected => Ok(()),
            (found, live) => {
                Err(format!("{expected} wait, but {found} have their place by size, {live} count"))
            }
        }
    }

    /// Drops the stale entries once they outnumber the live ones.
    pub fn tidy(&mut self, is_live: impl Fn(&K) -> bool) {
        if self.heap.len() > 2 * self.live + 64 {
            self.heap.retain(is_live);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// A heap yields what a set would, while entries are pushed, removed from the middle, and popped, the greatest
        /// first. No entry is pushed twice.
        #[test]
        fn behaves_as_a_set(steps in proptest::collection::vec((0u8..3, 0usize..50), 0..600)) {
            let mut heap: LazyHeap<(usize, usize)> = LazyHeap::default();
            let mut model = BTreeSet::new();
            for (time, (step, value)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        model.insert((value, time));
                        heap.push((value, time), true);
                    }
                    1 => {
                        if let Some(&key) = model.iter().nth(value) {
                            model.remove(&key);
                            heap.forget(|k| model.contains(k));
                            prop_assert!(heap.heap.len() <= 2 * model.len() + 64);
                        }
                    }
                    _ => {
                        let expected = model.last().copied();
                        prop_assert_eq!(heap.pop(|k| model.contains(k)), expected);
                        if let Some(key) = expected {
                            model.remove(&key);
                        }
                    }
                }
                prop_assert_eq!(heap.live(), model.len());
            }
        }
    }
}

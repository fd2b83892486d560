//! Entries of heaps in which items are kept by a time.

use std::cmp::Ordering;

/// An entry of a heap; the one with the least key is the first.
#[derive(Clone, Copy)]
pub struct Sooner {
    /// A time, ns, in the upper half, and below it what tells apart those of the same time: compared at once, without a
    /// branch that cannot be foreseen.
    pub key: u128,
    /// The item's id.
    pub id: u32,
}

impl Sooner {
    /// Makes the entry of an item, by a time, ns, and what tells apart those of the same time.
    pub fn new(time_ns: u64, then: u64, id: u32) -> Sooner {
        Sooner { key: u128::from(time_ns) << 64 | u128::from(then), id }
    }

    /// Returns the time, ns.
    pub fn time_ns(&self) -> u64 {
        (self.key >> 64) as u64
    }
}

impl Ord for Sooner {
    #[inline]
    fn cmp(&self, other: &Sooner) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl PartialOrd for Sooner {
    #[inline]
    fn partial_cmp(&self, other: &Sooner) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn le(&self, other: &Sooner) -> bool {
        other.key <= self.key
    }
}

impl PartialEq for Sooner {
    fn eq(&self, other: &Sooner) -> bool {
        self.key == other.key
    }
}

impl Eq for Sooner {}

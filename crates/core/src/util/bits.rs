//! A set of small integers, one bit each, of a size that is fixed at the start.

use std::ops::Range;

use super::memory;

/// A set of numbers in `0..len`.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Makes the empty set over `0..len`.
    pub fn new(len: usize) -> Bits {
        Bits { words: vec![0; len.div_ceil(64)] }
    }

    /// Whether `index` is in the set.
    #[inline]
    pub fn get(&self, index: u32) -> bool {
        self.words[index as usize / 64] >> (index % 64) & 1 != 0
    }

    /// Begins to load the word of `index`, if there is one, into the CPU cache.
    #[inline]
    pub fn fetch(&self, index: u32) {
        memory::fetch(&self.words, index as usize / 64);
    }

    /// Adds `index`.
    #[inline]
    pub fn set(&mut self, index: u32) {
        self.words[index as usize / 64] |= 1 << (index % 64);
    }

    /// Removes `index`.
    #[inline]
    pub fn clear(&mut self, index: u32) {
        self.words[index as usize / 64] &= !(1 << (index % 64));
    }

    /// Returns the least member in `from..end`.
    #[inline]
    pub fn next_set(&self, from: u32, end: u32) -> Option<u32> {
        if from >= end {
            return None;
        }
        let mut word = from as usize / 64;
        let mut bits = self.words[word] & (u64::MAX << (from % 64));
        loop {
            if bits != 0 {
                let index = word as u32 * 64 + bits.trailing_zeros();
                return (index < end).then_some(index);
            }
            word += 1;
            if word as u64 * 64 >= u64::from(end) {
                return None;
            }
            bits = self.words[word];
        }
    }

    /// Returns the least number in `from..end` that is not in the set.
    pub fn next_clear(&self, from: u32, end: u32) -> Option<u32> {
        let clear = |(word, mask): (usize, u64)| (word as u32, !self.words[word] & mask);
        let (word, bits) = masks(from, end).map(clear).find(|&(_, bits)| bits != 0)?;
        Some(word * 64 + bits.trailing_zeros())
    }

    /// Returns the least member in `from..end` that is not in `other`, a set over the same range.
    #[inline]
    pub fn next_clear_of(&self, other: &Bits, from: u32, end: u32) -> Option<u32> {
        if from >= end {
            return None;
        }
        let mut mask = u64::MAX << (from % 64);
        for word in from as usize / 64..self.words.len() {
            let bits = self.words[word] & !other.words[word] & mask;
            if bits != 0 {
                let index = word as u32 * 64 + bits.trailing_zeros();
                return (index < end).then_some(index);
            }
            mask = u64::MAX;
        }
        None
    }

    /// Removes the members in `from..end`; returns how many there were.
    pub fn take(&mut self, from: u32, end: u32) -> u32 {
        let mut taken = 0;
        for (word, mask) in masks(from, end) {
            taken += (self.words[word] & mask).count_ones();
            self.words[word] &= !mask;
        }
        taken
    }

    /// Adds every number in `from..end`.
    pub fn fill(&mut self, from: u32, end: u32) {
        masks(from, end).for_each(|(word, mask)| self.words[word] |= mask);
    }

    /// Passes on the members in a range, ascending.
    #[inline]
    pub fn each(&self, range: Range<u32>, mut take: impl FnMut(u32)) {
        for (word, mask) in masks(range.start, range.end) {
            let mut left = self.words[word] & mask;
            while left != 0 {
                take(word as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
            }
        }
    }

    /// Returns the members in `from..end`, ascending.
    #[inline]
    pub fn members(&self, from: u32, end: u32) -> impl Iterator<Item = u32> + '_ {
        masks(from, end).flat_map(|(word, mask)| {
            let mut left = self.words[word] & mask;
            std::iter::from_fn(move || {
                let member = (left != 0).then(|| word as u32 * 64 + left.trailing_zeros())?;
                left &= left - 1;
                Some(member)
            })
        })
    }

    /// Returns the number of members.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Makes this set equal to `other`, which must be over the same range.
    pub fn copy_from(&mut self, other: &Bits) {
        self.words.copy_from_slice(&other.words);
    }

    /// Removes all members.
    pub fn reset(&mut self) {
        self.words.fill(0);
    }
}

/// Returns the indices of the words that hold `from..end`, each with a mask of its bits in that range.
#[inline]
fn masks(from: u32, end: u32) -> impl Iterator<Item = (usize, u64)> {
    let (first, last) = (from as usize / 64, end.saturating_sub(1) as usize / 64);
    let words = if from < end { first..last + 1 } else { 0..0 };
    words.map(move |word| {
        let above = if word == first { u64::MAX << (from % 64) } else { u64::MAX };
        let below = if word == last { u64::MAX >> (63 - (end - 1) % 64) } else { u64::MAX };
        (word, above & below)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_set_crosses_words_and_respects_the_end() {
        let mut bits = Bits::new(200);
        for index in [3, 64, 130, 199] {
            bits.set(index);
        }
        assert_eq!(bits.next_set(0, 200), Some(3));
        assert_eq!(bits.next_set(4, 200), Some(64));
        assert_eq!(bits.next_set(65, 130), None);
        assert_eq!(bits.next_set(65, 131), Some(130));
        assert_eq!(bits.next_set(131, 200), Some(199));
        assert_eq!(bits.next_set(200, 200), None);
        assert_eq!(bits.count(), 4);
        assert_eq!(
            [bits.next_clear(3, 200), bits.next_clear(3, 4), bits.next_clear(64, 66)],
            [Some(4), None, Some(65)]
        );
        assert_eq!([bits.next_clear(199, 200), bits.next_clear(70, 70)], [None, None]);
        let mut other = Bits::new(200);
        other.set(64);
        other.set(130);
        assert_eq!(bits.next_clear_of(&other, 3, 200), Some(3));
        assert_eq!(bits.next_clear_of(&other, 4, 200), Some(199));
        assert_eq!(bits.next_clear_of(&other, 4, 199), None);
        assert_eq!(bits.next_clear_of(&other, 200, 200), None);
        bits.clear(64);
        assert!(!bits.get(64) && bits.get(130));
    }

    #[test]
    fn fill_adds_a_range_and_nothing_beside_it() {
        for (from, end) in [(0, 0), (5, 5), (0, 64), (3, 64), (63, 65), (10, 190), (128, 200), (199, 200)] {
            let mut bits = Bits::new(200);
            bits.fill(from, end);
            assert!(bits.members(0, 200).eq(from..end), "{from}..{end}");
        }
    }

    #[test]
    fn take_removes_a_range_and_nothing_beside_it() {
        for (from, end) in [(0, 0), (5, 5), (0, 64), (3, 64), (63, 65), (10, 190), (128, 200), (199, 200)] {
            let mut bits = Bits::new(200);
            (0..200).filter(|n| n % 3 != 0).for_each(|n| bits.set(n));
            let inside: Vec<u32> = (from..end).filter(|n| n % 3 != 0).collect();
            assert!(bits.members(from, end).eq(inside.iter().copied()), "{from}..{end}");
            assert_eq!(bits.take(from, end), inside.len() as u32, "{from}..{end}");
            for n in 0..200 {
                assert_eq!(bits.get(n), n % 3 != 0 && !(from..end).contains(&n), "{n} of {from}..{end}");
            }
        }
    }
}

//! Which blocks a pass has touched: fio's random map.
//!
//! A bit for each block and, so that the next free block is found in a few steps however full the map is, a bit for
//! each word of the level below that is full.

/// The random map of a worker's part of its file, or of a zone.
#[derive(Clone, Debug)]
pub(super) struct Map {
    len: u64,
    levels: Vec<Vec<u64>>,
}

impl Map {
    /// Makes the map of this many blocks, none of them touched.
    pub fn new(len: u64) -> Map {
        let (mut levels, mut bits) = (Vec::new(), len);
        loop {
            bits = bits.div_ceil(64).max(1);
            levels.push(vec![0; bits as usize]);
            if bits == 1 {
                break;
            }
        }
        let mut map = Map { len, levels };
        map.clear();
        map
    }

    /// Forgets what has been touched.
    pub fn clear(&mut self) {
        let mut bits = self.len;
        for level in &mut self.levels {
            level.fill(0);
            // What is beyond the end is never free.
            if !bits.is_multiple_of(64) || bits == 0 {
                *level.last_mut().expect("a level has a word") = u64::MAX << (bits % 64);
            }
            bits = bits.div_ceil(64);
        }
    }

    /// Returns the first block that has not been touched, from `from` on and then from the beginning; `None`: all have
    /// been.
    pub fn next_free(&self, from: u64) -> Option<u64> {
        let from = if from < self.len { from } else { 0 };
        self.free_from(0, from).or_else(|| if from > 0 { self.free_from(0, 0) } else { None })
    }

    /// Returns the first clear bit of a level, from `from` on.
    fn free_from(&self, level: usize, from: u64) -> Option<u64> {
        let words = self.levels.get(level)?;
        let (word, bit) = ((from / 64) as usize, from % 64);
        let free = !*words.get(word)? & (u64::MAX << bit);
        if free != 0 {
            return Some(word as u64 * 64 + u64::from(free.trailing_zeros()));
        }
        let word = self.free_from(level + 1, word as u64 + 1)?;
        let free = !words[word as usize];
        Some(word * 64 + u64::from(free.trailing_zeros()))
    }

    /// Touches up to `count` blocks from `first` on, and stops before one that has been touched; returns how many it
    /// has touched.
    pub fn touch(&mut self, first: u64, count: u64) -> u64 {
        let end = first.saturating_add(count).min(self.len);
        let mut at = first;
        while at < end && self.levels[0][(at / 64) as usize] >> (at % 64) & 1 == 0 {
            let mut bit = at;
            for level in &mut self.levels {
                let word = &mut level[(bit / 64) as usize];
                *word |= 1 << (bit % 64);
                if *word != u64::MAX {
                    break;
                }
                bit /= 64;
            }
            at += 1;
        }
        at.saturating_sub(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As a plain list of flags.
        #[test]
        fn a_map_is_a_list_of_flags(
            len in 0u64..9000,
            steps in prop::collection::vec((0u64..10_000, 1u64..300), 0..200),
        ) {
            let (mut map, mut flags) = (Map::new(len), vec![false; len as usize]);
            for (at, count) in steps {
                let free = (0..len).map(|step| (at.min(len) + step) % len).find(|&at| !flags[at as usize]);
                let free = if at < len { free } else { flags.iter().position(|&flag| !flag).map(|at| at as u64) };
                prop_assert_eq!(map.next_free(at), free);
                let expected = flags.iter().skip(at as usize).take(count as usize);
                let expected = expected.take_while(|&&flag| !flag).count() as u64;
                prop_assert_eq!(map.touch(at, count), expected);
                (at..at + expected).for_each(|at| flags[at as usize] = true);
            }
            while let Some(at) = map.next_free(len / 2) {
                prop_assert_eq!(map.touch(at, 1), 1);
                flags[at as usize] = true;
            }
            prop_assert!(flags.iter().all(|&flag| flag));
            map.clear();
            prop_assert_eq!(map.next_free(0), (len > 0).then_some(0));
        }
    }
}

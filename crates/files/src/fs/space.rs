//! Bitmaps of free and used numbers in a file system: blocks, inodes, directory entries.

/// A bitmap of the numbers `0..len`.
#[derive(Clone, Debug)]
pub struct Space {
    /// A set bit marks a number in use.
    words: Vec<u64>,
    len: u32,
    free: u32,
}

impl Space {
    /// Makes a bitmap of `len` numbers, all of them free.
    pub fn new(len: u32) -> Space {
        Space { words: vec![0; len.div_ceil(64) as usize], len, free: len }
    }

    /// Returns the number of free numbers.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Whether a number is in use.
    pub fn used(&self, at: u32) -> bool {
        self.words[at as usize / 64] >> (at % 64) & 1 != 0
    }

    /// Marks `count` free numbers, from `first` on, as used.
    pub fn take(&mut self, first: u32, count: u32) {
        for at in first..first + count {
            debug_assert!(!self.used(at));
            self.words[at as usize / 64] |= 1 << (at % 64);
        }
        self.free -= count;
    }

    /// Frees `count` numbers in use, from `first` on.
    pub fn give(&mut self, first: u32, count: u32) {
        for at in first..first + count {
            debug_assert!(self.used(at));
            self.words[at as usize / 64] &= !(1 << (at % 64));
        }
        self.free += count;
    }

    /// Returns the least number in `from..end` that is in use or, if `used` is false, the least that is free.
    fn next(&self, from: u32, end: u32, used: bool) -> Option<u32> {
        let mut at = from;
        while at < end {
            let word = self.words[at as usize / 64];
            let bits = if used { word } else { !word } & (u64::MAX << (at % 64));
            if bits != 0 {
                let found = at / 64 * 64 + bits.trailing_zeros();
                return (found < end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Returns the least free number in `from..end`.
    pub fn first_free(&self, from: u32, end: u32) -> Option<u32> {
        self.next(from, end.min(self.len), false)
    }

    /// Returns a run of free numbers, at most `want` long: starting at `goal` if that is free, else the first run of
    /// that length after it, else the first such run from the start, else the longest run.
    pub fn run(&self, goal: u32, want: u32) -> Option<(u32, u32)> {
        let goal = if goal < self.len { goal } else { 0 };
        if !self.used(goal) {
            let end = self.next(goal, self.len, true).unwrap_or(self.len);
            return Some((goal, want.min(end - goal)));
        }
        let mut longest = None;
        for (from, end) in [(goal, self.len), (0, goal)] {
            let mut at = from;
            while let Some(first) = self.next(at, end, false) {
                let behind = self.next(first, end, true).unwrap_or(end);
                if behind - first >= want {
                    return Some((first, want));
                }
                if longest.is_none_or(|(_, length)| length < behind - first) {
                    longest = Some((first, behind - first));
                }
                at = behind;
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_begin_at_the_goal_or_are_whole_or_longest() {
        let mut space = Space::new(200);
        assert_eq!(space.run(70, 4), Some((70, 4)));
        space.take(70, 10);
        assert_eq!(space.run(70, 4), Some((80, 4)));
        assert_eq!(space.run(198, 4), Some((198, 2)), "the goal itself is free");
        space.take(198, 2);
        space.take(85, 113);
        // The numbers 0..70 and 80..85 are free.
        assert_eq!(space.run(79, 5), Some((80, 5)));
        assert_eq!(space.run(79, 6), Some((0, 6)));
        assert_eq!(space.run(79, 100), Some((0, 70)));
        assert_eq!(space.free(), 75);
        space.take(0, 70);
        space.take(80, 5);
        assert_eq!(space.run(0, 1), None);
        space.give(130, 2);
        assert_eq!((space.run(0, 9), space.first_free(0, 200)), (Some((130, 2)), Some(130)));
        assert_eq!(space.first_free(0, 130), None);
    }
}

//! Bitmaps of free and used numbers in a file system: blocks, inodes, directory entries.

use ftlab_core::util::Bits;

/// A bitmap of the numbers `0..len`.
#[derive(Clone, Debug)]
pub struct Space {
    used: Bits,
    len: u32,
    free: u32,
}

impl Space {
    /// Makes a bitmap of `len` numbers, all of them free.
    pub fn new(len: u32) -> Space {
        Space { used: Bits::new(len as usize), len, free: len }
    }

    /// Returns the number of free numbers.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Whether a number is in use.
    pub fn used(&self, at: u32) -> bool {
        self.used.get(at)
    }

    /// Marks `count` free numbers, from `first` on, as used.
    pub fn take(&mut self, first: u32, count: u32) {
        debug_assert_eq!(self.used.next_set(first, first + count), None);
        self.used.fill(first, first + count);
        self.free -= count;
    }

    /// Frees `count` numbers in use, from `first` on.
    pub fn give(&mut self, first: u32, count: u32) {
        let given = self.used.take(first, first + count);
        debug_assert_eq!(given, count);
        self.free += count;
    }

    /// Returns the least free number in `from..end`.
    pub fn first_free(&self, from: u32, end: u32) -> Option<u32> {
        self.used.next_clear(from, end.min(self.len))
    }

    /// Returns a run of free numbers, at most `want` long: starting at `goal` if that is free, else the first run of
    /// that length after it, else the first such run from the start, else the longest run.
    pub fn run(&self, goal: u32, want: u32) -> Option<(u32, u32)> {
        let goal = if goal < self.len { goal } else { 0 };
        if !self.used(goal) {
            let end = self.used.next_set(goal, self.len).unwrap_or(self.len);
            return Some((goal, want.min(end - goal)));
        }
        let mut longest = None;
        for (from, end) in [(goal, self.len), (0, goal)] {
            let mut at = from;
            while let Some(first) = self.used.next_clear(at, end) {
                let behind = self.used.next_set(first, end).unwrap_or(end);
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

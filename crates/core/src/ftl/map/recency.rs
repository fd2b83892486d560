//! Entries in the order of their last access, some of them marked; the first marked entry is found without
//! walking over the entries before it.

use crate::util::NONE;

/// Entries by position; later accesses get higher positions. When all positions are used up, the entries are
/// compacted.
#[derive(Clone, Debug)]
pub(super) struct Recency {
    /// Entry at each position, or [`NONE`].
    entries: Vec<u32>,
    /// Position of each entry.
    places: Vec<u32>,
    /// No position before this one is in use.
    first: usize,
    /// Positions from here on have not been used yet.
    end: usize,
    marks: Marks,
}

impl Recency {
    /// Makes room for this many entries; without a bound, the room grows as needed.
    pub(super) fn new(capacity: Option<u32>) -> Recency {
        let positions = 2 * capacity.unwrap_or(1024) as usize;
        Recency {
            entries: vec![NONE; positions],
            places: vec![0; positions / 2],
            first: 0,
            end: 0,
            marks: Marks::new(positions),
        }
    }

    /// Puts an entry, marked or not, after all others.
    #[inline]
    pub(super) fn push(&mut self, id: u32, marked: bool) {
        if self.end == self.entries.len() {
            self.move_together();
        }
        if id as usize >= self.places.len() {
            self.places.resize(id as usize + 1, 0);
        }
        self.places[id as usize] = self.end as u32;
        self.entries[self.end] = id;
        if marked {
            self.marks.set(self.end);
        }
        self.end += 1;
    }

    /// Removes an entry; returns whether it was marked.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> bool {
        let place = self.places[id as usize] as usize;
        self.entries[place] = NONE;
        self.marks.clear(place)
    }

    /// Marks an entry.
    #[inline]
    pub(super) fn mark(&mut self, id: u32) {
        self.marks.set(self.places[id as usize] as usize);
    }

    /// Removes the mark of an entry.
    pub(super) fn unmark(&mut self, id: u32) {
        self.marks.clear(self.places[id as usize] as usize);
    }

    /// Whether an entry was accessed after another.
    #[inline]
    pub(super) fn is_newer(&self, id: u32, other: u32) -> bool {
        self.places[id as usize] > self.places[other as usize]
    }

    /// Returns the marked entry with the oldest access.
    #[inline]
    pub(super) fn first_marked(&self) -> Option<u32> {
        self.marks.first().map(|place| self.entries[place])
    }

    /// Returns the entries, the one with the oldest access first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries[self.first..self.end].iter().copied().filter(|&id| id != NONE)
    }

    /// Returns the entry with the oldest access.
    pub(super) fn first(&mut self) -> u32 {
        while self.entries[self.first] == NONE {
            self.first += 1;
        }
        self.entries[self.first]
    }

    #[cold]
    fn move_together(&mut self) {
        let mut held = 0;
        for place in self.first..self.end {
            let id = std::mem::replace(&mut self.entries[place], NONE);
            if id != NONE {
                if self.marks.clear(place) {
                    self.marks.set(held);
                }
                self.places[id as usize] = held as u32;
                self.entries[held] = id;
                held += 1;
            }
        }
        (self.first, self.end) = (0, held);
        if 2 * held > self.entries.len() {
            self.entries.resize(2 * held, NONE);
            let old = std::mem::replace(&mut self.marks, Marks::new(2 * held));
            (0..held).filter(|&place| old.get(place)).for_each(|place| self.marks.set(place));
        }
    }
}

/// A set of positions; each level says which words of the level below are not 0.
#[derive(Clone, Debug)]
struct Marks {
    levels: Vec<Vec<u64>>,
}

impl Marks {
    fn new(positions: usize) -> Marks {
        let mut levels = vec![vec![0; positions.div_ceil(64).max(1)]];
        while let Some(words) = levels.last().map(Vec::len).filter(|&words| words > 1) {
            levels.push(vec![0; words.div_ceil(64)]);
        }
        Marks { levels }
    }

    fn get(&self, place: usize) -> bool {
        self.levels[0][place / 64] >> (place % 64) & 1 != 0
    }

    #[inline]
    fn set(&mut self, mut place: usize) {
        for level in &mut self.levels {
            let word = &mut level[place / 64];
            let before = std::mem::replace(word, *word | 1 << (place % 64));
            if before != 0 {
                break;
            }
            place /= 64;
        }
    }

    /// Removes a position from the set; returns whether the set contained it.
    #[inline]
    fn clear(&mut self, place: usize) -> bool {
        let was = self.get(place);
        let mut at = place;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        was
    }

    #[inline]
    fn first(&self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = 64 * at + word.trailing_zeros() as usize;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The order and the marks are those of a plain list of pairs (entry, marked); 200 entries need more than one
        /// level of marks.
        #[test]
        fn behaves_as_a_plain_list(
            bound in any::<bool>(),
            steps in proptest::collection::vec((0u8..4, 0u32..200, any::<bool>()), 0..20_000),
        ) {
            let mut recency = Recency::new(bound.then_some(200));
            let mut model: Vec<(u32, bool)> = Vec::new();
            for (step, id, marked) in steps {
                match (step, model.iter().position(|&(other, _)| other == id)) {
                    (_, None) => {
                        recency.push(id, marked);
                        model.push((id, marked));
                    }
                    (0, Some(at)) => {
                        let (_, was) = model.remove(at);
                        prop_assert_eq!(recency.remove(id), was);
                    }
                    (1, Some(at)) => {
                        let (_, was) = model.remove(at);
                        let kept = recency.remove(id);
                        recency.push(id, kept);
                        model.push((id, was));
                    }
                    (_, Some(at)) => {
                        if marked { recency.mark(id) } else { recency.unmark(id) }
                        model[at].1 = marked;
                    }
                }
                prop_assert_eq!(recency.first_marked(), model.iter().find(|entry| entry.1).map(|entry| entry.0));
                if let [first, .., last] = model[..] {
                    prop_assert_eq!(recency.first(), first.0);
                    prop_assert!(recency.is_newer(last.0, first.0) && !recency.is_newer(first.0, last.0));
                }
            }
            prop_assert!(recency.iter().eq(model.iter().map(|entry| entry.0)));
        }
    }
}

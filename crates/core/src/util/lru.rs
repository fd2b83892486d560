//! Recency lists over keyed entries, whose number may be bounded.
//!
//! Entries live in one arena and are found through a table of 32-bit ids; entries whose keys share a place in it are
//! chained. Therefore removing an entry, as a full cache does at every miss, usually takes a single store.

use super::NONE;

/// The ends of one recency list; the links between its entries are in the [`Lru`].
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// Most recent entry.
    pub head: u32,
    /// Least recent entry.
    pub tail: u32,
    /// Number of entries in the list.
    pub len: u32,
}

impl Default for List {
    fn default() -> List {
        List::EMPTY
    }
}

impl List {
    /// The empty list.
    pub const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    key: u32,
    prev: u32,
    next: u32,
    /// The next entry with the same place in the table.
    chained: u32,
    value: T,
}

/// A set of entries, each with a `u32` key and a small value; its size is bounded, or grows as needed.
#[derive(Clone, Debug)]
pub struct Lru<T> {
    entries: Vec<Entry<T>>,
    bounded: bool,
    free: u32,
    len: u32,
    /// First entry of each chain, or [`NONE`].
    table: Vec<u32>,
    shift: u32,
}

impl<T: Copy + Default> Lru<T> {
    /// Makes room for `capacity` entries (at least 1), which is allocated immediately; with `None`, the room grows as
    /// needed.
    pub fn new(capacity: Option<u32>) -> Lru<T> {
        assert!(capacity.is_none_or(|n| n > 0 && n < NONE), "capacity {capacity:?}");
        let mut lru = Lru {
            entries: Vec::new(),
            bounded: capacity.is_some(),
            free: NONE,
            len: 0,
            table: Vec::new(),
            shift: 0,
        };
        lru.grow(capacity.unwrap_or(1024));
        lru
    }

    /// Adds free entries up to `capacity` and rebuilds the table for them.
    fn grow(&mut self, capacity: u32) {
        debug_assert!(self.free == NONE);
        let first = self.entries.len() as u32;
        let link = |id: u32| if id + 1 < capacity { id + 1 } else { NONE };
        self.entries.extend((first..capacity).map(|id| Entry {
            key: NONE,
            prev: NONE,
            next: link(id),
            chained: NONE,
            value: T::default(),
        }));
        self.free = first;
        let slots = (u64::from(capacity) * 4).next_power_of_two();
        self.table = vec![NONE; slots as usize];
        self.shift = 64 - slots.trailing_zeros();
        for id in 0..first {
            self.enter(self.entries[id as usize].key, id);
        }
    }

    #[inline]
    fn enter(&mut self, key: u32, id: u32) {
        let home = self.home(key);
        self.entries[id as usize].chained = std::mem::replace(&mut self.table[home], id);
    }

    /// Returns the number of entries held.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no entry is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there are as many entries as the bound allows.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bounded && self.free == NONE
    }

    #[inline]
    fn home(&self, key: u32) -> usize {
        (u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Returns the entry with this key, or [`NONE`].
    #[inline]
    pub fn find(&self, key: u32) -> u32 {
        let mut id = self.table[self.home(key)];
        while id != NONE && self.entries[id as usize].key != key {
            id = self.entries[id as usize].chained;
        }
        id
    }

    /// Takes a free entry for a key that is not held. The entry is in no list yet.
    #[inline]
    pub fn insert(&mut self, key: u32, value: T) -> u32 {
        if self.free == NONE {
            assert!(!self.bounded, "no free entry");
            self.grow(self.entries.len() as u32 * 2);
        }
        let id = self.free;
        self.free = self.entries[id as usize].next;
        self.entries[id as usize] = Entry { key, prev: NONE, next: NONE, chained: NONE, value };
        self.enter(key, id);
        self.len += 1;
        id
    }

    /// Frees an entry, which must not be in any list.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        let Entry { key, chained, .. } = self.entries[id as usize];
        let home = self.home(key);
        let mut before = self.table[home];
        if before == id {
            self.table[home] = chained;
        } else {
            while self.entries[before as usize].chained != id {
                before = self.entries[before as usize].chained;
            }
            self.entries[before as usize].chained = chained;
        }
        let entry = &mut self.entries[id as usize];
        entry.key = NONE;
        entry.next = self.free;
        self.free = id;
        self.len -= 1;
    }

    /// Returns the bound, if there is one.
    pub fn capacity(&self) -> Option<u32> {
        self.bounded.then_some(self.entries.len() as u32)
    }

    /// Returns the keys of all entries.
    pub fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|entry| entry.key).filter(|&key| key != NONE)
    }

    /// Returns the key of an entry.
    #[inline]
    pub fn key(&self, id: u32) -> u32 {
        self.entries[id as usize].key
    }

    /// Returns the value of an entry.
    #[inline]
    pub fn value(&self, id: u32) -> &T {
        &self.entries[id as usize].value
    }

    /// Returns the value of an entry, so that it can be changed.
    #[inline]
    pub fn value_mut(&mut self, id: u32) -> &mut T {
        &mut self.entries[id as usize].value
    }

    /// Returns the next less recent entry, or [`NONE`].
    pub fn older(&self, id: u32) -> u32 {
        self.entries[id as usize].next
    }

    /// Returns the next more recent entry, or [`NONE`].
    pub fn newer(&self, id: u32) -> u32 {
        self.entries[id as usize].prev
    }

    /// Visits the entries of a list, least recent first.
    pub fn each(&self, list: List, visit: &mut dyn FnMut(u32)) {
        let mut id = list.tail;
        while id != NONE {
            visit(id);
            id = self.newer(id);
        }
    }

    /// Adds an entry, which must be in no list, at the recent end.
    #[inline]
    pub fn push_head(&mut self, list: &mut List, id: u32) {
        let entry = &mut self.entries[id as usize];
        entry.prev = NONE;
        entry.next = list.head;
        match list.head {
            NONE => list.tail = id,
            head => self.entries[head as usize].prev = id,
        }
        list.head = id;
        list.len += 1;
    }

    /// Removes an entry from its list.
    #[inline]
    pub fn unlink(&mut self, list: &mut List, id: u32) {
        let Entry { prev, next, .. } = self.entries[id as usize];
        match prev {
            NONE => list.head = next,
            prev => self.entries[prev as usize].next = next,
        }
        match next {
            NONE => list.tail = prev,
            next => self.entries[next as usize].prev = prev,
        }
        list.len -= 1;
    }

    /// Makes an entry the most recent of its list.
    #[inline]
    pub fn touch(&mut self, list: &mut List, id: u32) {
        if list.head != id {
            self.unlink(list, id);
            self.push_head(list, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn grows_without_a_bound() {
        let mut lru: Lru<u32> = Lru::new(None);
        let mut list = List::EMPTY;
        for key in 0..5000 {
            let id = lru.insert(key * 7, key);
            lru.push_head(&mut list, id);
        }
        assert!(!lru.is_full() && lru.len() == 5000 && list.len == 5000);
        assert!((0..5000).all(|key| *lru.value(lru.find(key * 7)) == key && lru.find(key * 7 + 1) == NONE));
    }

    proptest! {
        /// The list holds the same entries as a plain deque, in which a touched entry moves to the front and a full
        /// cache drops the back.
        #[test]
        fn behaves_as_a_plain_list(capacity in 1u32..20, keys in proptest::collection::vec(0u32..40, 0..400)) {
            let mut lru: Lru<u32> = Lru::new(Some(capacity));
            let mut list = List::EMPTY;
            let mut model: VecDeque<u32> = VecDeque::new();
            for key in keys {
                let id = lru.find(key);
                prop_assert_eq!(id != NONE, model.contains(&key));
                if id != NONE {
                    prop_assert_eq!(*lru.value(id), key * 3);
                    lru.touch(&mut list, id);
                    model.retain(|&k| k != key);
                } else {
                    prop_assert_eq!(lru.is_full(), model.len() == capacity as usize);
                    if lru.is_full() {
                        let victim = list.tail;
                        prop_assert_eq!(lru.key(victim), model.pop_back().unwrap());
                        lru.unlink(&mut list, victim);
                        lru.remove(victim);
                    }
                    let id = lru.insert(key, key * 3);
                    lru.push_head(&mut list, id);
                }
                model.push_front(key);
                prop_assert_eq!(list.len as usize, model.len());
                let mut at = list.head;
                for &expected in &model {
                    prop_assert_eq!(lru.key(at), expected);
                    at = lru.older(at);
                }
                prop_assert_eq!(at, NONE);
            }
        }
    }
}

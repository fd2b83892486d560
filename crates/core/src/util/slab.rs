//! Items under small numbers, and lists of them.

use std::ops::{Index, IndexMut};

use super::NONE;

/// Items, each under an id that stays valid until it is released.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Makes an empty slab with room for this many.
    pub fn with_capacity(capacity: usize) -> Slab<T> {
        Slab { slots: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity) }
    }

    /// Stores an item and returns its id.
    #[inline(always)] // so that the item is made in its place
    pub fn insert(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = item;
                id
            }
            None => {
                self.slots.push(item);
                // Release must not allocate.
                self.free.reserve(self.slots.len());
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Releases an id; the old item stays readable until the next one is stored there.
    #[inline]
    pub fn release(&mut self, id: u32) {
        self.free.push(id);
    }

    /// Returns the item of an id; `None` for [`NONE`].
    #[inline]
    pub fn get(&self, id: u32) -> Option<&T> {
        self.slots.get(id as usize)
    }

    /// Returns the number of items.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the largest number of items that there were at one time.
    pub fn most(&self) -> usize {
        self.slots.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.slots[id as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.slots[id as usize]
    }
}

/// Neighbours in a list: the one before and the one behind, or [`NONE`].
#[derive(Clone, Copy, Debug)]
pub struct Neighbours {
    /// Nearer to the head.
    pub before: u32,
    /// Nearer to the tail.
    pub behind: u32,
}

impl Neighbours {
    /// The neighbours of an item that is in no list, or alone in one.
    pub const NONE: Neighbours = Neighbours { before: NONE, behind: NONE };
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours::NONE
    }
}

/// An item that can be in one list at a time.
pub trait Linked {
    /// Returns its neighbours.
    fn neighbours(&mut self) -> &mut Neighbours;
}

/// The ends of a list of items that are stored elsewhere, by id.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    /// The first item, or [`NONE`].
    pub head: u32,
    /// The last item, or [`NONE`].
    pub tail: u32,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { head: NONE, tail: NONE }
    }
}

impl Chain {
    /// Adds an item that is in no list at the head.
    pub fn push_head(&mut self, id: u32, items: &mut impl IndexMut<u32, Output: Linked>) {
        *items[id].neighbours() = Neighbours { before: NONE, behind: self.head };
        match self.head {
            NONE => self.tail = id,
            head => items[head].neighbours().before = id,
        }
        self.head = id;
    }

    /// Adds an item that is in no list at the tail.
    pub fn push_tail(&mut self, id: u32, items: &mut impl IndexMut<u32, Output: Linked>) {
        *items[id].neighbours() = Neighbours { before: self.tail, behind: NONE };
        match self.tail {
            NONE => self.head = id,
            tail => items[tail].neighbours().behind = id,
        }
        self.tail = id;
    }

    /// Removes an item.
    pub fn unlink(&mut self, id: u32, items: &mut impl IndexMut<u32, Output: Linked>) {
        let Neighbours { before, behind } = *items[id].neighbours();
        match before {
            NONE => self.head = behind,
            before => items[before].neighbours().behind = behind,
        }
        match behind {
            NONE => self.tail = before,
            behind => items[behind].neighbours().before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Item(Neighbours);

    impl Linked for Item {
        fn neighbours(&mut self) -> &mut Neighbours {
            &mut self.0
        }
    }

    proptest! {
        /// Compares it with a vector of ids: pushed at either end, removed anywhere, ids reused.
        #[test]
        fn a_chain_is_a_list(steps in proptest::collection::vec((0u8..3, any::<usize>()), 1..200)) {
            let (mut items, mut chain, mut model) = (Slab::default(), Chain::default(), Vec::new());
            for (step, pick) in steps {
                match step {
                    0 => {
                        let id = items.insert(Item(Neighbours::NONE));
                        chain.push_head(id, &mut items);
                        model.insert(0, id);
                    }
                    1 => {
                        let id = items.insert(Item(Neighbours::NONE));
                        chain.push_tail(id, &mut items);
                        model.push(id);
                    }
                    _ if model.is_empty() => (),
                    _ => {
                        let id = model.remove(pick % model.len());
                        chain.unlink(id, &mut items);
                        items.release(id);
                    }
                }
                let follow = |id: u32| items.get(id).map(|item: &Item| item.0.behind);
                let ahead: Vec<u32> =
                    std::iter::successors(Some(chain.head), |&id| follow(id)).filter(|&id| id != NONE).collect();
                prop_assert_eq!(&ahead, &model);
                prop_assert_eq!(chain.tail, model.last().copied().unwrap_or(NONE));
                prop_assert!(model.windows(2).all(|pair| items[pair[1]].0.before == pair[0]));
            }
        }
    }
}

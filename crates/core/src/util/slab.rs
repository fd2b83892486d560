//! Items stored under small numbers, and lists of such items.

use std::mem::replace;
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
    /// Makes an empty slab with room for this many items.
    pub fn with_capacity(capacity: usize) -> Slab<T> {
        Slab { slots: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity) }
    }

    /// Stores an item and returns its id.
    #[inline(always)] // so that the item is built in place
    pub fn insert(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = item;
                id
            }
            None => {
                self.slots.push(item);
                // Releasing an id must not allocate.
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

    /// Returns all items by id, including released ones.
    #[inline]
    pub fn all(&mut self) -> &mut [T] {
        &mut self.slots
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

/// An item's neighbours in a list: the item before it and the one behind it, or [`NONE`].
#[derive(Clone, Copy, Debug)]
pub struct Neighbours {
    /// The item next to this one towards the head.
    pub before: u32,
    /// The item next to this one towards the tail.
    pub behind: u32,
}

impl Neighbours {
    /// The neighbours of an item that is in no list, or is the only item of its list.
    pub const NONE: Neighbours = Neighbours { before: NONE, behind: NONE };
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours::NONE
    }
}

/// An item that can be in one list of each kind at a time.
pub trait Linked<const KIND: usize = 0> {
    /// Returns the item's neighbours in the list of this kind.
    fn neighbours(&mut self) -> &mut Neighbours;
}

impl Linked for Neighbours {
    #[inline]
    fn neighbours(&mut self) -> &mut Neighbours {
        self
    }
}

/// The ends of a list of items that are stored elsewhere, by id.
#[derive(Clone, Copy, Debug)]
pub struct Chain<const KIND: usize = 0> {
    /// The first item, or [`NONE`].
    pub head: u32,
    /// The last item, or [`NONE`].
    pub tail: u32,
}

impl<const KIND: usize> Default for Chain<KIND> {
    fn default() -> Self {
        Chain { head: NONE, tail: NONE }
    }
}

impl<const KIND: usize> Chain<KIND> {
    /// Adds an item, which must be in no list, at the head.
    pub fn push_head(&mut self, id: u32, items: &mut [impl Linked<KIND>]) {
        self.insert(id, self.head, items);
    }

    /// Adds an item, which must be in no list, at the tail.
    #[inline]
    pub fn push_tail(&mut self, id: u32, items: &mut [impl Linked<KIND>]) {
        self.insert(id, NONE, items);
    }

    /// Adds an item, which must be in no list, in front of `behind`; at the tail, if that is [`NONE`].
    #[inline]
    pub fn insert(&mut self, id: u32, behind: u32, items: &mut [impl Linked<KIND>]) {
        let before = match behind {
            NONE => replace(&mut self.tail, id),
            behind => replace(&mut items[behind as usize].neighbours().before, id),
        };
        match before {
            NONE => self.head = id,
            before => items[before as usize].neighbours().behind = id,
        }
        *items[id as usize].neighbours() = Neighbours { before, behind };
    }

    /// Removes an item.
    #[inline]
    pub fn unlink(&mut self, id: u32, items: &mut [impl Linked<KIND>]) {
        let Neighbours { before, behind } = *items[id as usize].neighbours();
        match before {
            NONE => self.head = behind,
            before => items[before as usize].neighbours().behind = behind,
        }
        match behind {
            NONE => self.tail = before,
            behind => items[behind as usize].neighbours().before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A chain holds the same ids in the same order as a vector, while items are inserted and removed anywhere and
        /// ids are reused.
        #[test]
        fn a_chain_is_a_list(steps in proptest::collection::vec((0u8..3, any::<usize>()), 1..200)) {
            let (mut items, mut chain, mut model) = (Slab::default(), Chain::<0>::default(), Vec::new());
            for (step, pick) in steps {
                match step {
                    0 => {
                        let (id, at) = (items.insert(Neighbours::NONE), pick % (model.len() + 1));
                        chain.insert(id, model.get(at).copied().unwrap_or(NONE), items.all());
                        model.insert(at, id);
                    }
                    1 => {
                        let id = items.insert(Neighbours::NONE);
                        chain.push_tail(id, items.all());
                        model.push(id);
                    }
                    _ if model.is_empty() => (),
                    _ => {
                        let id = model.remove(pick % model.len());
                        chain.unlink(id, items.all());
                        items.release(id);
                    }
                }
                let follow = |id: u32| items.get(id).map(|item: &Neighbours| item.behind);
                let ahead: Vec<u32> =
                    std::iter::successors(Some(chain.head), |&id| follow(id)).filter(|&id| id != NONE).collect();
                prop_assert_eq!(&ahead, &model);
                prop_assert_eq!(chain.tail, model.last().copied().unwrap_or(NONE));
                prop_assert!(model.windows(2).all(|pair| items[pair[1]].before == pair[0]));
            }
        }
    }
}

//! Ids in the order of a position, in flat arrays.

use super::{NONE, Slab};

/// Ids ordered by a position and, at equal positions, by insertion: a treap (Aragon and Seidel, "Randomized search
/// trees", FOCS 1989) whose priorities follow from the number of insertions, so that every run is the same. Insertion,
/// removal and search take O(log n) expected steps. Each id has a slot while it is there, which its owner keeps, so
/// that memory is in proportion to the most ids that were there at one time, however large ids are.
///
/// Each id may have a start besides; the first id that has started by some time is found in as many steps, because
/// each node keeps the least start below it (as in Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First",
/// 1995).
#[derive(Clone, Debug)]
pub struct Ordered {
    /// Slot of the root, or [`NONE`].
    root: u32,
    nodes: Slab<Node>,
    inserted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Position and number of the insertion.
    key: (u64, u64),
    start: u64,
    /// The least start of this node and of those below it.
    least: u64,
    id: u32,
    priority: u32,
    /// Slots of what is before this node below it, and of what is behind it.
    below: [u32; 2],
}

impl Default for Ordered {
    fn default() -> Ordered {
        Ordered { root: NONE, nodes: Slab::default(), inserted: 0 }
    }
}

/// Returns the priority of an insertion (the finaliser of SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
fn priority(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Ordered {
    /// Returns the position of the id in this slot.
    pub fn position(&self, slot: u32) -> u64 {
        self.nodes[slot].key.0
    }

    /// Inserts an id that is not there, with start 0; returns its slot.
    #[must_use]
    pub fn insert(&mut self, id: u32, position: u64) -> u32 {
        self.insert_from(id, position, 0)
    }

    /// Inserts an id that is not there, with a start; returns its slot.
    #[must_use]
    pub fn insert_from(&mut self, id: u32, position: u64, start: u64) -> u32 {
        let key = (position, self.inserted);
        let priority = (priority(self.inserted) >> 32) as u32;
        self.inserted += 1;
        let slot = self.nodes.insert(Node { key, start, least: start, id, priority, below: [NONE; 2] });
        let [before, behind] = self.split(self.root, key);
        let before = self.join(before, slot);
        self.root = self.join(before, behind);
        slot
    }

    /// Removes the id in this slot.
    pub fn remove(&mut self, slot: u32) {
        let (position, number) = self.nodes[slot].key;
        let [before, rest] = self.split(self.root, (position, number));
        let [_, behind] = self.split(rest, (position, number + 1));
        self.root = self.join(before, behind);
        self.nodes.release(slot);
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.root == NONE
    }

    /// Returns the first id at this position or behind it, or [`NONE`].
    #[inline]
    pub fn first_from(&self, position: u64) -> u32 {
        self.around((position, 0), 1)
    }

    /// Returns the last id before this position, or [`NONE`].
    pub fn last_before(&self, position: u64) -> u32 {
        self.around((position, 0), 0)
    }

    /// Returns the ids next to the one in this slot, before and behind it; each may be [`NONE`].
    pub fn next_to(&self, slot: u32) -> [u32; 2] {
        let (position, number) = self.nodes[slot].key;
        [self.around((position, number), 0), self.around((position, number + 1), 1)]
    }

    /// Returns the id that is nearest to a key, on side 0 before it, on side 1 at it or behind it, or [`NONE`].
    #[inline]
    fn around(&self, key: (u64, u64), side: usize) -> u32 {
        let (mut at, mut found) = (self.root, NONE);
        while at != NONE {
            let node = &self.nodes[at];
            let on = usize::from(node.key >= key);
            if on == side {
                found = node.id;
            }
            at = node.below[1 - on];
        }
        found
    }

    /// Returns the least start; `None` if there are no ids.
    pub fn least_start(&self) -> Option<u64> {
        self.nodes.get(self.root).map(|root| root.least)
    }

    /// Returns the first id whose start is at most this, or [`NONE`].
    pub fn first_started(&self, by: u64) -> u32 {
        let started = |at: u32| self.nodes.get(at).is_some_and(|node| node.least <= by);
        let mut at = self.root;
        while started(at) {
            let node = &self.nodes[at];
            if !started(node.below[0]) && node.start <= by {
                return node.id;
            }
            at = node.below[usize::from(!started(node.below[0]))];
        }
        NONE
    }

    /// Checks the order, and that there are exactly `expected` ids, for each of which `of` holds.
    pub(crate) fn verify(&self, expected: u32, of: impl Fn(u32) -> bool) -> Result<(), String> {
        let (mut stack, mut at, mut last, mut count) = (Vec::new(), self.root, None, 0);
        while at != NONE || !stack.is_empty() {
            while at != NONE {
                stack.push(at);
                at = self.nodes[at].below[0];
            }
            let node = &self.nodes[stack.pop().expect("one is there")];
            let least = node.below.iter().filter_map(|&at| self.nodes.get(at)).map(|node| node.least);
            if least.chain([node.start]).min() != Some(node.least) {
                return Err(format!("{} has a wrong least start", node.id));
            }
            if last >= Some(node.key) || !of(node.id) {
                return Err(format!("{} is out of its place in the order of positions", node.id));
            }
            (last, count, at) = (Some(node.key), count + 1, node.below[1]);
        }
        if (count as usize, count) != (self.nodes.count(), expected) {
            return Err(format!("{expected} wait, but {count} have a place in the order of positions"));
        }
        Ok(())
    }

    /// Sets what stays below a node on one side.
    fn hang(&mut self, at: u32, side: usize, below: u32) {
        self.nodes[at].below[side] = below;
        let Node { start, below, .. } = self.nodes[at];
        let least = |at: u32| self.nodes.get(at).map_or(u64::MAX, |node| node.least);
        self.nodes[at].least = start.min(least(below[0])).min(least(below[1]));
    }

    /// Parts a tree; returns the nodes before a key, and the others.
    fn split(&mut self, at: u32, key: (u64, u64)) -> [u32; 2] {
        if at == NONE {
            return [NONE; 2];
        }
        // What stays below the node is on the side away from the key.
        let side = usize::from(self.nodes[at].key < key);
        let mut parts = self.split(self.nodes[at].below[side], key);
        self.hang(at, side, parts[1 - side]);
        parts[1 - side] = at;
        parts
    }

    /// Joins two trees, of which every node of the first is before every node of the second.
    fn join(&mut self, before: u32, behind: u32) -> u32 {
        if before == NONE || behind == NONE {
            return if before == NONE { behind } else { before };
        }
        if self.nodes[before].priority > self.nodes[behind].priority {
            let below = self.join(self.nodes[before].below[1], behind);
            self.hang(before, 1, below);
            return before;
        }
        let below = self.join(before, self.nodes[behind].below[0]);
        self.hang(behind, 0, below);
        behind
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_order_is_that_of_a_sorted_set() {
        let mut ordered = Ordered::default();
        let mut model: BTreeSet<(u64, u64, u32)> = BTreeSet::new();
        let (mut starts, mut slots) = ([0; 300], [NONE; 300]);
        let mut state = 1;
        for number in 0..4000 {
            state = priority(state);
            let (id, position) = ((state % 300) as u32, state >> 20 & 63);
            match model.iter().copied().find(|&(_, _, other)| other == id) {
                Some(entry) => {
                    model.remove(&entry);
                    ordered.remove(slots[id as usize]);
                }
                None => {
                    model.insert((position, number, id));
                    starts[id as usize] = state >> 30 & 63;
                    slots[id as usize] = ordered.insert_from(id, position, starts[id as usize]);
                    assert_eq!(ordered.position(slots[id as usize]), position);
                }
            }
            let there = |id| model.iter().any(|&(_, _, other)| other == id);
            assert_eq!(ordered.verify(model.len() as u32, there), Ok(()));
            let first = model.range((position, 0, 0)..).next().map_or(NONE, |&(_, _, id)| id);
            assert_eq!(ordered.first_from(position), first);
            let before = model.range(..(position, 0, 0)).next_back().map_or(NONE, |&(_, _, id)| id);
            assert_eq!(ordered.last_before(position), before);
            let (by, start) = (state >> 40 & 63, |id: u32| starts[id as usize]);
            let started = model.iter().find(|entry| start(entry.2) <= by).map_or(NONE, |entry| entry.2);
            assert_eq!(ordered.first_started(by), started);
            assert_eq!(ordered.least_start(), model.iter().map(|entry| start(entry.2)).min());
            let Some(&(_, _, middle)) = model.iter().nth(model.len() / 2) else { continue };
            let ids: Vec<u32> =
                [NONE].into_iter().chain(model.iter().map(|entry| entry.2)).chain([NONE]).collect();
            let place = ids.iter().position(|&id| id == middle).expect("it is there");
            assert_eq!(ordered.next_to(slots[middle as usize]), [ids[place - 1], ids[place + 1]]);
        }
    }

    #[test]
    fn memory_is_that_of_the_ids_that_are_there() {
        let mut ordered = Ordered::default();
        for id in 0..100_000 {
            let slots = [ordered.insert(id, 0), ordered.insert(u32::MAX - 1 - id, 1)];
            slots.into_iter().for_each(|slot| ordered.remove(slot));
        }
        assert_eq!(ordered.nodes.most(), 2);
    }

    #[test]
    fn a_wrong_number_is_noticed() {
        let mut ordered = Ordered::default();
        assert_eq!(ordered.insert(3, 7), 0);
        assert!(ordered.verify(2, |_| true).is_err());
        assert!(ordered.verify(1, |id| id != 3).is_err());
    }
}

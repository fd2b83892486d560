//! Ids in the order of a position, in flat arrays.

use super::NONE;

/// Ids ordered by a position and, at equal positions, by insertion: a treap (Aragon and Seidel, "Randomized search
/// trees", FOCS 1989) whose priorities follow from the number of insertions, so that every run is the same. Insertion,
/// removal and search take O(log n) expected steps.
#[derive(Clone, Debug)]
pub struct Ordered {
    root: u32,
    /// By id.
    nodes: Vec<Node>,
    inserted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Position and number of the insertion.
    key: (u64, u64),
    priority: u64,
    /// What is before this node below it, and what is behind it.
    below: [u32; 2],
}

impl Default for Ordered {
    fn default() -> Ordered {
        Ordered { root: NONE, nodes: Vec::with_capacity(128), inserted: 0 }
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
    /// Returns the position under which an id was inserted last.
    pub fn position(&self, id: u32) -> u64 {
        self.nodes[id as usize].key.0
    }

    /// Inserts an id that is not there.
    pub fn insert(&mut self, id: u32, position: u64) {
        let key = (position, self.inserted);
        let node = Node { key, priority: priority(self.inserted), below: [NONE; 2] };
        self.inserted += 1;
        if self.nodes.len() <= id as usize {
            self.nodes.resize(id as usize + 1, node);
        }
        self.nodes[id as usize] = node;
        let [before, behind] = self.split(self.root, key);
        let before = self.join(before, id);
        self.root = self.join(before, behind);
    }

    /// Removes an id that is there.
    pub fn remove(&mut self, id: u32) {
        let (position, number) = self.nodes[id as usize].key;
        let [before, rest] = self.split(self.root, (position, number));
        let [_, behind] = self.split(rest, (position, number + 1));
        self.root = self.join(before, behind);
    }

    /// Returns the first id at this position or behind it, or [`NONE`].
    pub fn first_from(&self, position: u64) -> u32 {
        let (mut at, mut found) = (self.root, NONE);
        while at != NONE {
            let node = &self.nodes[at as usize];
            let reached = node.key.0 >= position;
            if reached {
                found = at;
            }
            at = node.below[usize::from(!reached)];
        }
        found
    }

    /// Checks the order, and that there are exactly `expected` ids, for each of which `of` holds.
    pub(crate) fn verify(&self, expected: u32, of: impl Fn(u32) -> bool) -> Result<(), String> {
        let (mut stack, mut at, mut last, mut count) = (Vec::new(), self.root, None, 0);
        while at != NONE || !stack.is_empty() {
            while at != NONE {
                stack.push(at);
                at = self.nodes[at as usize].below[0];
            }
            let id = stack.pop().expect("one is there");
            let node = &self.nodes[id as usize];
            if last >= Some(node.key) || !of(id) {
                return Err(format!("{id} is out of its place in the order of positions"));
            }
            (last, count, at) = (Some(node.key), count + 1, node.below[1]);
        }
        if count != expected {
            return Err(format!("{expected} wait, but {count} have a place in the order of positions"));
        }
        Ok(())
    }

    /// Parts a tree; returns the nodes before a key, and the others.
    fn split(&mut self, at: u32, key: (u64, u64)) -> [u32; 2] {
        if at == NONE {
            return [NONE; 2];
        }
        // What stays below the node is on the side away from the key.
        let side = usize::from(self.nodes[at as usize].key < key);
        let mut parts = self.split(self.nodes[at as usize].below[side], key);
        self.nodes[at as usize].below[side] = parts[1 - side];
        parts[1 - side] = at;
        parts
    }

    /// Joins two trees, of which every node of the first is before every node of the second.
    fn join(&mut self, before: u32, behind: u32) -> u32 {
        if before == NONE || behind == NONE {
            return if before == NONE { behind } else { before };
        }
        if self.nodes[before as usize].priority > self.nodes[behind as usize].priority {
            let below = self.nodes[before as usize].below[1];
            self.nodes[before as usize].below[1] = self.join(below, behind);
            return before;
        }
        let below = self.nodes[behind as usize].below[0];
        self.nodes[behind as usize].below[0] = self.join(before, below);
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
        let mut state = 1;
        for number in 0..4000 {
            state = priority(state);
            let (id, position) = ((state % 300) as u32, state >> 20 & 63);
            match model.iter().copied().find(|&(_, _, other)| other == id) {
                Some(entry) => {
                    model.remove(&entry);
                    ordered.remove(id);
                }
                None => {
                    model.insert((position, number, id));
                    ordered.insert(id, position);
                }
            }
            let there = |id| model.iter().any(|&(_, _, other)| other == id);
            assert_eq!(ordered.verify(model.len() as u32, there), Ok(()));
            let first = model.range((position, 0, 0)..).next().map_or(NONE, |&(_, _, id)| id);
            assert_eq!(ordered.first_from(position), first);
        }
    }

    #[test]
    fn a_wrong_number_is_noticed() {
        let mut ordered = Ordered::default();
        ordered.insert(3, 7);
        assert!(ordered.verify(2, |_| true).is_err());
        assert!(ordered.verify(1, |id| id != 3).is_err());
    }
}

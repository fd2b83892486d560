//! Radix trees over page numbers, as Linux 2.6.32 uses them for its page cache (lib/radix-tree.c): nodes of 64 slots
//! with one tag each, which are made when they are needed and freed when they are empty, so that their memory can be
//! counted.

use ftlab_core::util::NONE;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;

/// Bytes of a node on the paper's 32-bit phone: height, count and an RCU head (16 B), 64 pointers
/// (256 B), two tags of 64 bits (16 B).
pub const NODE_BYTES: u64 = 288;

/// A node: its children or items, and which of its slots are tagged.
#[derive(Clone, Debug)]
struct Node {
    slots: [u32; SLOTS],
    tagged: u64,
    used: u32,
}

const EMPTY: Node = Node { slots: [NONE; SLOTS], tagged: 0, used: 0 };

/// The nodes of all trees.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Nodes {
    fn make(&mut self) -> u32 {
        match self.free.pop() {
            // A freed node is empty.
            Some(id) => id,
            None => {
                self.nodes.push(EMPTY);
                self.free.reserve(self.nodes.len());
                self.nodes.len() as u32 - 1
            }
        }
    }

    fn node(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize]
    }
}

/// A tree that maps numbers to items. An item is any id but [`NONE`].
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    root: u32,
    /// Number of levels of nodes; 0: there are no nodes.
    height: u32,
    nodes: u32,
}

impl Default for Tree {
    fn default() -> Self {
        Tree { root: NONE, height: 0, nodes: 0 }
    }
}

fn slot(key: u32, level: u32) -> usize {
    (key >> (level * BITS)) as usize & (SLOTS - 1)
}

impl Tree {
    /// Returns the number of nodes of this tree.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    fn covers(&self, key: u32) -> bool {
        self.height > 0 && (self.height * BITS >= 32 || key >> (self.height * BITS) == 0)
    }

    /// Returns the item stored under a number, or [`NONE`].
    #[inline]
    pub fn get(&self, key: u32, nodes: &Nodes) -> u32 {
        if !self.covers(key) {
            return NONE;
        }
        let mut at = self.root;
        for level in (0..self.height).rev() {
            if at == NONE {
                return NONE;
            }
            at = nodes.nodes[at as usize].slots[slot(key, level)];
        }
        at
    }

    /// Adds an item, without a tag, under a number that has none.
    pub fn insert(&mut self, key: u32, item: u32, nodes: &mut Nodes) {
        while !self.covers(key) {
            self.height += 1;
            // The first number of an empty tree determines its height; no nodes are made for other numbers.
            if self.root != NONE {
                let root = nodes.make();
                let tagged = nodes.node(self.root).tagged != 0;
                let node = nodes.node(root);
                node.slots[0] = self.root;
                node.used = 1;
                node.tagged = u64::from(tagged);
                self.root = root;
                self.nodes += 1;
            }
        }
        if self.root == NONE {
            self.root = nodes.make();
            self.nodes += 1;
        }
        let mut at = self.root;
        for level in (1..self.height).rev() {
            let next = nodes.node(at).slots[slot(key, level)];
            at = if next == NONE {
                let made = nodes.make();
                self.nodes += 1;
                let parent = nodes.node(at);
                parent.slots[slot(key, level)] = made;
                parent.used += 1;
                made
            } else {
                next
            };
        }
        let leaf = nodes.node(at);
        debug_assert_eq!(leaf.slots[slot(key, 0)], NONE);
        leaf.slots[slot(key, 0)] = item;
        leaf.used += 1;
    }

    /// Returns the nodes from the root to the leaf of a number that has an item.
    fn path(&self, key: u32, nodes: &Nodes) -> [u32; 6] {
        let mut path = [NONE; 6];
        let mut at = self.root;
        for level in (0..self.height).rev() {
            path[level as usize] = at;
            at = nodes.nodes[at as usize].slots[slot(key, level)];
        }
        debug_assert_ne!(at, NONE, "{key} has an item");
        path
    }

    /// Removes a number's item, if it has one. The tree keeps its height until it is empty.
    pub fn remove(&mut self, key: u32, nodes: &mut Nodes) {
        if self.get(key, nodes) == NONE {
            return;
        }
        self.set_tag(key, false, nodes);
        let path = self.path(key, nodes);
        for level in 0..self.height {
            let id = path[level as usize];
            let node = nodes.node(id);
            node.slots[slot(key, level)] = NONE;
            node.used -= 1;
            if node.used > 0 {
                return;
            }
            nodes.free.push(id);
            self.nodes -= 1;
        }
        (self.root, self.height) = (NONE, 0);
    }

    /// Tags or untags a number that has an item.
    pub fn set_tag(&mut self, key: u32, tagged: bool, nodes: &mut Nodes) {
        let path = self.path(key, nodes);
        for level in 0..self.height {
            let node = nodes.node(path[level as usize]);
            let bit = 1u64 << slot(key, level);
            let before = node.tagged;
            node.tagged = if tagged { before | bit } else { before & !bit };
            // The tags of the nodes above change only when a node gets its first tag or loses its last one.
            if (before != 0) == (node.tagged != 0) {
                return;
            }
        }
    }

    /// Returns the least tagged number at or after `from`, and its item.
    pub fn next_tagged(&self, from: u32, nodes: &Nodes) -> Option<(u32, u32)> {
        if !self.covers(from) {
            return None;
        }
        self.search(self.root, self.height - 1, 0, from, true, nodes)
    }

    /// Returns the least number at or after `from` that has an item, and the item.
    pub fn next(&self, from: u32, nodes: &Nodes) -> Option<(u32, u32)> {
        if !self.covers(from) {
            return None;
        }
        self.search(self.root, self.height - 1, 0, from, false, nodes)
    }

    /// Searches the subtree of node `at`, whose numbers begin at `base`.
    fn search(
        &self,
        at: u32,
        level: u32,
        base: u32,
        from: u32,
        tagged: bool,
        nodes: &Nodes,
    ) -> Option<(u32, u32)> {
        let node = &nodes.nodes[at as usize];
        let first = if from <= base { 0 } else { slot(from, level) };
        for index in first..SLOTS {
            let child = node.slots[index];
            if child == NONE || (tagged && node.tagged >> index & 1 == 0) {
                continue;
            }
            let key = base | (index as u32) << (level * BITS);
            if level == 0 {
                return Some((key, child));
            }
            if let Some(found) = self.search(child, level - 1, key, from, tagged, nodes) {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_as_a_map(
            steps in proptest::collection::vec((0u8..4, prop_oneof![0u32..200, 0u32..70_000, any::<u32>()]), 1..400),
        ) {
            let (mut nodes, mut tree) = (Nodes::default(), Tree::default());
            let mut model: BTreeMap<u32, (u32, bool)> = BTreeMap::new();
            for (at, (step, key)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 if !model.contains_key(&key) => {
                        tree.insert(key, at as u32, &mut nodes);
                        model.insert(key, (at as u32, false));
                    }
                    2 => {
                        tree.remove(key, &mut nodes);
                        model.remove(&key);
                    }
                    _ => if let Some(entry) = model.get_mut(&key) {
                        entry.1 = !entry.1;
                        tree.set_tag(key, entry.1, &mut nodes);
                    }
                }
                prop_assert_eq!(tree.get(key, &nodes), model.get(&key).map_or(NONE, |entry| entry.0));
                let next = model.range(key..).next().map(|(&key, entry)| (key, entry.0));
                prop_assert_eq!(tree.next(key, &nodes), next);
                let tagged = model.range(key..).find(|(_, entry)| entry.1).map(|(&key, entry)| (key, entry.0));
                prop_assert_eq!(tree.next_tagged(key, &nodes), tagged);
                prop_assert_eq!(nodes.nodes.len() - nodes.free.len(), tree.nodes() as usize);
            }
            let keys: Vec<u32> = model.keys().copied().collect();
            for key in keys {
                tree.remove(key, &mut nodes);
            }
            prop_assert_eq!(tree.nodes(), 0);
        }
    }

    /// 64 pages take one node; a 65th page adds a second leaf and a root; without pages there is no node.
    #[test]
    fn nodes_are_counted() {
        let (mut nodes, mut tree) = (Nodes::default(), Tree::default());
        (0..64).for_each(|key| tree.insert(key, key, &mut nodes));
        assert_eq!(tree.nodes(), 1);
        tree.insert(64, 64, &mut nodes);
        assert_eq!(tree.nodes(), 3);
        (0..65).for_each(|key| tree.remove(key, &mut nodes));
        assert_eq!(tree.nodes(), 0);
    }
}

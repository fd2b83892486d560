//! TPFTL: cached entries kept in nodes, one for each translation page, and two kinds of prefetching.
//!
//! Source: Zhou, Wu, Huang, He, Xie, Zhang, "An Efficient Page-level FTL to Optimize Address Translation
//! in Flash Memory", EuroSys 2015 (TPFTL), as two public codes implement it (WiscSee's and a FEMU's).
//!
//! As ftlab reads it: an entry takes 6 B of the cache and a node, the entries cached of one translation
//! page, 8 B ([`ENTRY_BYTES`], [`NODE_BYTES`]). Nodes are ordered by the mean recency of their
//! entries, the entries of a node by their own. A miss in a full cache evicts from the coldest node its
//! least recent clean entry, else its least recent; where that is dirty, all dirty entries of the
//! node are written with one read and program of the page (batch update), and only the victim leaves. Then
//! the page is read once, for the missed entry and those prefetched: the rest of the request, up to the
//! page's end; and, where selective prefetching is on, as many entries behind the missed one as are
//! cached right before it. Selective prefetching is off at first; a counter, +1 for a node that
//! enters and -1 for one that leaves, turns it on at -3 and off at +3 and begins at 0 again.
//!
//! ftlab's own readings (the codes differ, or nothing is said):
//! - Recency is the number of the translation that touched an entry last; entries loaded together have
//!   the number of the one that missed, and come in the order of their LPNs. Where means are the same, the
//!   lower translation page is the colder. (The FEMU code has one LRU list of nodes instead.)
//! - Every miss within a request prefetches, not its first alone.
//! - Room is made before the page is read, from one node, the coldest; when that has no entry left, no
//!   more is prefetched than fits. It may be the node of the missed entry.
//! - A mapping that garbage collection moves is updated where it is cached, which is no access; else
//!   on flash, together with the dirty entries of its node.
//! - What a batch of the host's scheduler brings in evicts from as many nodes as it takes.

use super::translation::{Context, MovedPages, Translation, TranslationPages};
use crate::config::{Contradiction, Key, Settings};
use crate::util::{List, Lru, NONE};
use serde::{Deserialize, Serialize};

/// Registered name.
pub const NAME: &str = "tpftl";
/// One line for `ftlab components`.
pub const DOC: &str =
    "demand-cached page map by translation page, with prefetching (Zhou et al., EuroSys 2015)";
/// Keys it reads.
pub const KEYS: &[Key] = &[];

/// Bytes of a cached entry: its place in the translation page and a physical page number.
pub const ENTRY_BYTES: u64 = 6;
/// Bytes of a node.
pub const NODE_BYTES: u64 = 8;
/// Nodes that must have entered, or left, for selective prefetching to go off, or on.
const THRESHOLD: i32 = 3;

/// Refuses a cache that cannot hold an entry and its node.
pub fn check(settings: &Settings) -> Result<(), Contradiction> {
    let least = NODE_BYTES + ENTRY_BYTES;
    match settings.ftl.mapping_cache_bytes {
        Some(bytes) if bytes < least => Err(Contradiction {
            key: "ftl.mapping_cache",
            message: format!(
                "tpftl caches entries in nodes, so it needs at least {least} B: a node and an entry"
            ),
        }),
        _ => Ok(()),
    }
}

/// A cached mapping.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Entry {
    dirty: bool,
    /// The read that brought it in.
    load: u32,
    /// The translation that touched it last.
    touched: u64,
}

/// The entries cached of one translation page.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Node {
    entries: List,
    dirty: u32,
    /// Where the heap has it.
    place: u32,
    /// Sum over its entries of when they were touched.
    touched: u64,
}

impl Default for Node {
    fn default() -> Node {
        Node { entries: List::EMPTY, dirty: 0, place: NONE, touched: 0 }
    }
}

/// The mapping cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tpftl {
    /// Bytes; `None`: no bound.
    bytes: Option<u64>,
    capacity: Option<u32>,
    entries: Lru<Entry>,
    nodes: Lru<Node>,
    /// Ids of the nodes as a binary heap, the coldest first.
    heap: Vec<u32>,
    dirty: u32,
    /// Translations so far.
    now: u64,
    /// Nodes that entered less those that left, since selective prefetching was last turned on or off.
    change: i32,
    selective: bool,
    moved: MovedPages,
}

impl Tpftl {
    /// The cache of `settings`, for `pages` translation pages.
    pub fn new(settings: &Settings, pages: u32) -> Tpftl {
        let bytes = settings.ftl.mapping_cache_bytes;
        let most = |of: u64, each: u64, all: u64| (of / each).min(all) as u32;
        let capacity = bytes.map(|bytes| most(bytes - NODE_BYTES, ENTRY_BYTES, settings.user_pages()));
        let nodes = bytes.map(|bytes| most(bytes, NODE_BYTES + ENTRY_BYTES, pages.into()));
        Tpftl {
            bytes,
            capacity,
            entries: Lru::new(capacity),
            nodes: Lru::new(nodes),
            heap: Vec::with_capacity(nodes.unwrap_or(pages) as usize),
            dirty: 0,
            now: 0,
            change: 0,
            selective: false,
            moved: MovedPages::new(pages),
        }
    }

    /// Whether a node's entries are less recent on average than another's.
    fn colder(&self, node: u32, other: u32) -> bool {
        let (a, b) = (self.nodes.value(node), self.nodes.value(other));
        let mean = u128::from(a.touched) * u128::from(b.entries.len);
        let others = u128::from(b.touched) * u128::from(a.entries.len);
        (mean, self.nodes.key(node)) < (others, self.nodes.key(other))
    }

    fn put(&mut self, place: usize, node: u32) {
        self.heap[place] = node;
        self.nodes.value_mut(node).place = place as u32;
    }

    /// Brings a node to where its mean recency belongs.
    fn sift(&mut self, node: u32) {
        let mut place = self.nodes.value(node).place as usize;
        while place > 0 && self.colder(node, self.heap[(place - 1) / 2]) {
            self.put(place, self.heap[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        loop {
            let mut child = 2 * place + 1;
            if child + 1 < self.heap.len() && self.colder(self.heap[child + 1], self.heap[child]) {
                child += 1;
            }
            if child >= self.heap.len() || !self.colder(self.heap[child], node) {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, node);
    }

    fn count_node(&mut self, change: i32) {
        self.change += change;
        if self.change.abs() == THRESHOLD {
            self.selective = self.change < 0;
            self.change = 0;
        }
    }

    fn enter_node(&mut self, page: u32) -> u32 {
        let node = self.nodes.insert(page, Node::default());
        self.nodes.value_mut(node).place = self.heap.len() as u32;
        self.heap.push(node);
        self.count_node(1);
        node
    }

    fn remove_node(&mut self, node: u32) {
        let place = self.nodes.value(node).place as usize;
        self.heap.swap_remove(place);
        if let Some(&other) = self.heap.get(place) {
            self.nodes.value_mut(other).place = place as u32;
            self.sift(other);
        }
        self.nodes.remove(node);
        self.count_node(-1);
    }

    /// Notes that an entry is accessed now.
    fn touch(&mut self, id: u32, node: u32) {
        let now = self.now;
        let before = std::mem::replace(&mut self.entries.value_mut(id).touched, now);
        let held = self.nodes.value_mut(node);
        held.touched += now - before;
        self.entries.touch(&mut held.entries, id);
        self.sift(node);
    }

    fn mark_dirty(&mut self, id: u32, node: u32) {
        let entry = self.entries.value_mut(id);
        if !std::mem::replace(&mut entry.dirty, true) {
            self.nodes.value_mut(node).dirty += 1;
            self.dirty += 1;
        }
    }

    /// Cleans the entries of a node; how many were dirty.
    fn clean(&mut self, node: u32) -> u32 {
        let held = self.nodes.value_mut(node);
        let (mut left, mut id) = (std::mem::take(&mut held.dirty), held.entries.head);
        let cleaned = left;
        self.dirty -= cleaned;
        while left > 0 {
            left -= u32::from(std::mem::take(&mut self.entries.value_mut(id).dirty));
            id = self.entries.older(id);
        }
        cleaned
    }

    /// Updates the flash copy of a page with all that is known of it, read first.
    fn rewrite(&mut self, page: u32, moved: u32, context: &mut Context) {
        context.read(page);
        let cleaned = match self.nodes.find(page) {
            NONE => 0,
            node => self.clean(node),
        };
        context.program(page, cleaned + moved);
    }

    /// Least recent clean entry of a node, else its least recent.
    fn victim(&self, node: u32) -> u32 {
        let Node { entries, dirty, .. } = *self.nodes.value(node);
        let mut id = entries.tail;
        if dirty < entries.len {
            while self.entries.value(id).dirty {
                id = self.entries.newer(id);
            }
        }
        id
    }

    /// Lets an entry of a node go; whether the node goes with it.
    fn evict(&mut self, node: u32, context: &mut Context) -> bool {
        let id = self.victim(node);
        if self.entries.value(id).dirty {
            self.rewrite(self.nodes.key(node), 0, context);
        }
        let held = self.nodes.value_mut(node);
        held.touched -= self.entries.value(id).touched;
        self.entries.unlink(&mut held.entries, id);
        let empty = held.entries.len == 0;
        self.entries.remove(id);
        if empty {
            self.remove_node(node);
        } else {
            self.sift(node);
        }
        empty
    }

    /// Entries of a page that would fit in.
    fn room(&self, page: u32) -> u32 {
        let Some(bytes) = self.bytes else { return u32::MAX };
        let node = u64::from(self.nodes.find(page) == NONE);
        let used =
            (u64::from(self.nodes.len()) + node) * NODE_BYTES + u64::from(self.entries.len()) * ENTRY_BYTES;
        (bytes.saturating_sub(used) / ENTRY_BYTES).min(u32::MAX.into()) as u32
    }

    /// Evicts from the coldest node until `wanted` more entries of a page fit in or that node is gone;
    /// how many fit. Emptying a node makes room for another with an entry, so at least one does.
    fn make_room(&mut self, page: u32, wanted: u32, context: &mut Context) -> u32 {
        if let Some(&coldest) = self.heap.first() {
            while self.room(page) < wanted {
                if self.evict(coldest, context) {
                    break;
                }
            }
        }
        self.room(page).min(wanted)
    }

    /// One past the last LPN to load for a miss: the rest of the request and, behind the missed entry, as
    /// many as are cached right before it.
    fn end_of_load(&self, lpn: u32, context: &Context) -> u32 {
        let (first, end) = context.pages.range(context.pages.of(lpn));
        let mut ahead = context.ahead;
        if self.selective {
            let cached = |&before: &u32| self.entries.find(before) != NONE;
            ahead = ahead.max((first..lpn).rev().take_while(cached).count() as u32);
        }
        lpn.saturating_add(ahead).saturating_add(1).min(end)
    }

    /// Puts an entry that was read in; it is the most recent of its node.
    fn insert(&mut self, lpn: u32, page: u32, load: u32) {
        let mut node = self.nodes.find(page);
        if node == NONE {
            node = self.enter_node(page);
        }
        let id = self.entries.insert(lpn, Entry { dirty: false, load, touched: self.now });
        let held = self.nodes.value_mut(node);
        held.touched += self.now;
        self.entries.push_head(&mut held.entries, id);
        self.sift(node);
    }

    /// Serves a miss; the entry's id.
    fn fetch(&mut self, lpn: u32, context: &mut Context) -> u32 {
        let page = context.pages.of(lpn);
        let end = self.end_of_load(lpn, context);
        let missing = (lpn..end).filter(|&each| self.entries.find(each) == NONE).count();
        let mut room = self.make_room(page, missing as u32, context);
        let load = context.load(page);
        for each in lpn..end {
            if room > 0 && self.entries.find(each) == NONE {
                self.insert(each, page, load);
                room -= 1;
            }
        }
        self.entries.find(lpn)
    }

    /// The node that is the coldest of those with dirty entries.
    fn coldest_dirty(&self) -> Option<u32> {
        if self.dirty == 0 {
            return None;
        }
        let dirty = self.heap.iter().copied().filter(|&node| self.nodes.value(node).dirty > 0);
        dirty.reduce(|coldest, node| if self.colder(node, coldest) { node } else { coldest })
    }
}

impl Translation for Tpftl {
    const ON_FLASH: bool = true;

    #[inline]
    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        self.now += 1;
        let mut id = self.entries.find(lpn);
        let hit = id != NONE;
        if hit {
            context.work.need(self.entries.value(id).load);
            self.touch(id, self.nodes.find(context.pages.of(lpn)));
        } else {
            id = self.fetch(lpn, context);
        }
        if write {
            self.mark_dirty(id, self.nodes.find(context.pages.of(lpn)));
        }
        hit
    }

    fn prefetch(&mut self, page: u32, missing: &[u32], context: &mut Context) {
        self.now += 1;
        let wanted = self.capacity.map_or(missing.len(), |most| missing.len().min(most as usize));
        while self.make_room(page, wanted as u32, context) < wanted as u32 {}
        let load = context.load(page);
        for &lpn in &missing[..wanted] {
            self.insert(lpn, page, load);
        }
    }

    fn moved(&mut self, lpn: u32, pages: &TranslationPages) {
        match self.entries.find(lpn) {
            NONE => self.moved.add(pages.of(lpn)),
            id => self.mark_dirty(id, self.nodes.find(pages.of(lpn))),
        }
    }

    fn settle(&mut self, context: &mut Context) {
        let mut at = 0;
        while let Some((page, moved)) = self.moved.take(at) {
            self.rewrite(page, moved, context);
            at += 1;
        }
    }

    fn write_back(&mut self, context: &mut Context) -> bool {
        let Some(node) = self.coldest_dirty() else { return false };
        self.rewrite(self.nodes.key(node), 0, context);
        true
    }

    #[inline]
    fn cached(&self, lpn: u32, _pages: &TranslationPages) -> bool {
        self.entries.find(lpn) != NONE
    }

    fn each_cached(&self, _pages: &TranslationPages, visit: &mut dyn FnMut(u32)) {
        for &node in &self.heap {
            let mut id = self.nodes.value(node).entries.head;
            while id != NONE {
                visit(self.entries.key(id));
                id = self.entries.older(id);
            }
        }
    }

    fn capacity(&self) -> Option<u32> {
        self.capacity
    }

    fn dirty(&self, lpn: u32, _pages: &TranslationPages) -> bool {
        let id = self.entries.find(lpn);
        id != NONE && self.entries.value(id).dirty
    }
}

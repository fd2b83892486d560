//! TPFTL: cached entries kept in nodes, one for each translation page, and two kinds of prefetching.
//!
//! Source: Zhou, Wu, Huang, He, Xie, Zhang, "An Efficient Page-level FTL to Optimize Address Translation in Flash
//! Memory", EuroSys 2015 (TPFTL), and two public implementations of it (WiscSee's and one for FEMU).
//!
//! Interpretation: an entry takes 6 B of the cache, and a node (the cached entries of one translation page) 8 B
//! ([`ENTRY_BYTES`], [`NODE_BYTES`]). Nodes are ordered by the mean recency of their entries, and the entries of
//! a node by their own recency. A miss in a full cache evicts the least recent clean entry of the coldest node
//! or, if there is none, its least recent entry; if the victim is dirty, all dirty entries of the node are
//! written with one read and one program of the page (batch update), and only the victim leaves. Then the page
//! is read once, for the missed entry and the prefetched ones: the rest of the request, up to the page's end;
//! and, if selective prefetching is on, as many entries after the missed one as are cached right before it.
//! Selective prefetching is off at first; a counter goes up by 1 when a node enters and down by 1 when a node
//! leaves; it turns selective prefetching on at -3 and off at +3, and then begins at 0 again.
//!
//! Where the implementations differ, or the paper says nothing:
//! - Recency is the number of the translation that touched an entry last; entries loaded together have the number of
//!   the translation that missed, and come in the order of their LPNs. If means are equal, the node of the translation
//!   page with the lower number is the colder. (The implementation for FEMU has an LRU list of nodes instead.)
//! - Every miss within a request prefetches, not only its first.
//! - Room is made before the page is read, from one node, the coldest; when that node has no entry left, only as
//!   many entries are prefetched as fit. The coldest node may be that of the missed entry.
//! - A mapping that garbage collection moves is updated in the cache if it is there, which does not count as an
//!   access; otherwise it is updated on flash, together with the dirty entries of its node.
//! - Prefetching for a batch of the host's scheduler evicts from as many nodes as necessary.

use std::io;

use super::context::Context;
use super::entries::Entries;
use super::pages::TranslationPages;
use super::policy::{Cached, Policy};
use crate::config::Contradiction;
use crate::ftl::settings::Settings;
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{List, Lru, NONE};

/// The name under which this FTL is registered.
pub const NAME: &str = "tpftl";
/// Description in one line, for `ftlab components`.
pub const DOC: &str =
    "demand-cached page map by translation page, with prefetching (Zhou et al., EuroSys 2015)";
/// The keys that only tpftl has: none.
pub type Keys = ();

/// Size of a cached entry in bytes: its place in the translation page and a physical page number.
pub const ENTRY_BYTES: u64 = 6;
/// Size of a node in bytes, without its entries.
pub const NODE_BYTES: u64 = 8;
/// Net number of nodes that must enter to turn selective prefetching off, or leave to turn it on.
const THRESHOLD: i32 = 3;
/// The largest number of translations that a saved state may count: sums of their numbers must not overflow.
const MOST_TOUCHES: u64 = 1 << 39;

/// The mapping cache of TPFTL.
pub type Tpftl = Cached<Nodes>;

/// The cached entries of one translation page.
#[derive(Clone, Copy, Debug)]
struct Node {
    entries: List,
    dirty: u32,
    /// The node's index in the heap.
    place: u32,
    /// Sum, over the node's entries, of the number of the translation that last touched the entry.
    touched: u64,
}

impl Default for Node {
    fn default() -> Node {
        Node { entries: List::EMPTY, dirty: 0, place: NONE, touched: 0 }
    }
}

/// The nodes, and the state of selective prefetching.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// Size of the cache in bytes; `None`: no bound.
    bytes: Option<u64>,
    nodes: Lru<Node>,
    /// Ids of the nodes as a binary heap, coldest first.
    heap: Vec<u32>,
    /// The node from which entries are evicted to make room; [`NONE`] once that node is gone.
    leaving: u32,
    dirty: u32,
    /// Number of translations so far.
    now: u64,
    /// Nodes that entered minus nodes that left, since selective prefetching was last turned on or off.
    change: i32,
    selective: bool,
}

impl Nodes {
    /// Whether a node's entries are on average less recent than another's.
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

    /// Moves a node to the place in the heap that corresponds to its mean recency.
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
        if self.leaving == node {
            self.leaving = NONE;
        }
        let place = self.nodes.value(node).place as usize;
        self.heap.swap_remove(place);
        if let Some(&other) = self.heap.get(place) {
            self.nodes.value_mut(other).place = place as u32;
            self.sift(other);
        }
        self.nodes.remove(node);
        self.count_node(-1);
    }

    /// Returns how many more entries of a page would fit in the cache.
    fn room(&self, entries: &Entries<u64>, page: u32) -> u32 {
        let Some(bytes) = self.bytes else { return u32::MAX };
        let node = u64::from(self.nodes.find(page) == NONE);
        let used =
            (u64::from(self.nodes.len()) + node) * NODE_BYTES + u64::from(entries.slab.len()) * ENTRY_BYTES;
        (bytes.saturating_sub(used) / ENTRY_BYTES).min(u32::MAX.into()) as u32
    }

    /// Evicts from the coldest node until `wanted` more entries of a page fit or the coldest node is gone; returns how
    /// many fit. Emptying a node makes room for another node with one entry, so at least one entry fits.
    fn make_room(
        &mut self,
        entries: &mut Entries<u64>,
        page: u32,
        wanted: usize,
        context: &mut Context,
    ) -> usize {
        self.leaving = self.heap.first().copied().unwrap_or(NONE);
        while self.leaving != NONE && (self.room(entries, page) as usize) < wanted {
            let id = self.victim(entries);
            entries.evict(self, id, context);
        }
        wanted.min(self.room(entries, page) as usize)
    }

    /// Returns one past the last LPN to load for a miss: the load covers the rest of the request or, if that reaches
    /// further, as many entries after the missed one as are cached right before it.
    fn end_of_load(&self, entries: &Entries<u64>, lpn: u32, context: &Context) -> u32 {
        let (first, end) = context.pages.range(context.pages.of(lpn));
        let mut ahead = context.ahead;
        if self.selective {
            let cached = |&before: &u32| entries.slab.find(before) != NONE;
            ahead = ahead.max((first..lpn).rev().take_while(cached).count() as u32);
        }
        lpn.saturating_add(ahead).saturating_add(1).min(end)
    }
}

impl Policy for Nodes {
    /// Number of the translation that touched the entry last.
    type Note = u64;

    fn new(settings: &Settings, pages: u32) -> Nodes {
        let bytes = settings.ftl.mapping_cache_bytes;
        let nodes = bytes.map(|bytes| (bytes / (NODE_BYTES + ENTRY_BYTES)).min(pages.into()) as u32);
        Nodes {
            bytes,
            nodes: Lru::new(nodes),
            heap: Vec::with_capacity(nodes.unwrap_or(pages) as usize),
            leaving: NONE,
            dirty: 0,
            now: 0,
            change: 0,
            selective: false,
        }
    }

    /// Refuses a cache that cannot hold an entry and its node.
    fn check(settings: &Settings) -> Result<(), Contradiction> {
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

    fn capacity(settings: &Settings) -> Option<u32> {
        let bytes = settings.ftl.mapping_cache_bytes?;
        Some(((bytes - NODE_BYTES) / ENTRY_BYTES).min(settings.user_pages()) as u32)
    }

    fn hit(&mut self, entries: &mut Entries<u64>, id: u32) {
        self.now += 1;
        let before = std::mem::replace(entries.note(id), self.now);
        let node = self.nodes.find(entries.page(id));
        let held = self.nodes.value_mut(node);
        held.touched += self.now - before;
        entries.slab.touch(&mut held.entries, id);
        self.sift(node);
    }

    fn insert(&mut self, entries: &mut Entries<u64>, id: u32) {
        let page = entries.page(id);
        let node = match self.nodes.find(page) {
            NONE => self.enter_node(page),
            node => node,
        };
        *entries.note(id) = self.now;
        let held = self.nodes.value_mut(node);
        held.touched += self.now;
        entries.slab.push_head(&mut held.entries, id);
        self.sift(node);
    }

    /// Returns the least recent clean entry of the node from which entries are evicted or, if it has none, its least
    /// recent entry.
    fn victim(&mut self, entries: &mut Entries<u64>) -> u32 {
        let Node { entries: list, dirty, .. } = *self.nodes.value(self.leaving);
        let mut id = list.tail;
        if dirty < list.len {
            while entries.is_dirty(id) {
                id = entries.slab.newer(id);
            }
        }
        id
    }

    fn remove(&mut self, entries: &mut Entries<u64>, id: u32) {
        let node = self.nodes.find(entries.page(id));
        let held = self.nodes.value_mut(node);
        held.touched -= *entries.note(id);
        entries.slab.unlink(&mut held.entries, id);
        if held.entries.len == 0 {
            self.remove_node(node);
        } else {
            self.sift(node);
        }
    }

    fn marked(&mut self, entries: &mut Entries<u64>, id: u32, dirty: bool) {
        let node = self.nodes.find(entries.page(id));
        for count in [&mut self.nodes.value_mut(node).dirty, &mut self.dirty] {
            *count = if dirty { *count + 1 } else { *count - 1 };
        }
    }

    fn fetch(&mut self, entries: &mut Entries<u64>, lpn: u32, context: &mut Context) -> (u32, bool) {
        self.now += 1;
        let page = context.pages.of(lpn);
        let end = self.end_of_load(entries, lpn, context);
        let missing = (lpn..end).filter(|&each| entries.slab.find(each) == NONE).count();
        let mut room = self.make_room(entries, page, missing, context);
        let load = context.load(page);
        for each in lpn..end {
            // The entry is looked up again, since entries may have left meanwhile.
            if room > 0 && entries.slab.find(each) == NONE {
                entries.insert(self, each, load);
                room -= 1;
            }
        }
        (entries.slab.find(lpn), false)
    }

    /// Brings in the missing entries, and evicts from as many nodes as necessary.
    fn prefetch(&mut self, entries: &mut Entries<u64>, page: u32, missing: &[u32], context: &mut Context) {
        self.now += 1;
        let bound = entries.slab.capacity().unwrap_or(u32::MAX) as usize;
        let wanted = &missing[..missing.len().min(bound)];
        while self.make_room(entries, page, wanted.len(), context) < wanted.len() {}
        let load = context.load(page);
        for &lpn in wanted {
            entries.insert(self, lpn, load);
        }
    }

    fn each(&self, entries: &Entries<u64>, visit: &mut dyn FnMut(u32)) {
        let mut pages: Vec<u32> = self.nodes.keys().collect();
        pages.sort_unstable();
        for page in pages {
            entries.slab.each(self.nodes.value(self.nodes.find(page)).entries, visit);
        }
    }

    fn has_room(&self, entries: &Entries<u64>, page: u32) -> bool {
        self.room(entries, page) > 0
    }

    /// Sets the saved note of an entry; the note was 0 when the entry was added, since time had not begun.
    fn restore(&mut self, entries: &mut Entries<u64>, id: u32, touched: u64) -> Result<(), Damage> {
        if touched > MOST_TOUCHES {
            return Damage::impossible(format!("a mapping was touched at {touched}"));
        }
        *entries.note(id) = touched;
        let node = self.nodes.find(entries.page(id));
        self.nodes.value_mut(node).touched += touched;
        self.sift(node);
        Ok(())
    }

    fn save_rest(&self, out: &mut Encoder) -> io::Result<()> {
        out.value(&(self.now, self.change, self.selective))
    }

    fn load_rest(
        &mut self,
        entries: &mut Entries<u64>,
        _pages: &TranslationPages,
        from: &mut Decoder,
    ) -> Result<(), Damage> {
        let mut last = 0;
        self.each(entries, &mut |id| last = last.max(entries.slab.value(id).note));
        (self.now, self.change, self.selective) = from.value()?;
        if self.now < last || self.now > MOST_TOUCHES || self.change.abs() >= THRESHOLD {
            return Damage::impossible("its mappings were touched after the last translation");
        }
        Ok(())
    }

    /// Returns a dirty entry of the coldest node that has any.
    fn first_dirty(&self, entries: &Entries<u64>) -> Option<u32> {
        if self.dirty == 0 {
            return None;
        }
        let dirty = self.heap.iter().copied().filter(|&node| self.nodes.value(node).dirty > 0);
        let node = dirty.reduce(|coldest, node| if self.colder(node, coldest) { node } else { coldest })?;
        entries.dirty_of(self.nodes.key(node)).next()
    }
}

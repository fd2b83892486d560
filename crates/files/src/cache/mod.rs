//! The page cache: which pages of files are in memory, which are dirty, what may be written or dropped.
//!
//! Source: Shim et al., TC 2014, sections 5.3 and 6.1, and the page cache of Linux 2.6.32 that they modified:
//! a radix tree of pages for each inode, in which dirty pages are tagged; one more tree, over the logical
//! pages of the device, finds the dirty pages of all files (the paper's global cache tree).
//!
//! Interpretation: the least recently used clean page leaves first; a page joins that order when it becomes
//! clean. Pages are 4 KiB. The cache holds only state; its user decides what is read and written, and when.

mod policy;
mod tree;

pub use policy::{FlushPolicy, Policy};
pub use tree::{NODE_BYTES, Nodes, Tree};

use ftlab_core::util::{Chain, Linked, NONE, Neighbours, Slab};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// A page in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Inode of the file.
    pub inode: u32,
    /// Number of the page within the file.
    pub index: u32,
    /// Block of the device that holds the page; [`NONE`] while it has none.
    pub block: u32,
    /// Whether the page's content is in memory; otherwise it is being read.
    pub present: bool,
    /// Whether the page has been changed since it was last submitted.
    pub dirty: bool,
    /// Whether the page is being written.
    pub writeback: bool,
    order: Neighbours,
}

impl Linked for Page {
    fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.order
    }
}

/// One file's part of the cache.
#[derive(Clone, Debug, Default)]
struct File {
    tree: Tree,
    dirty: u32,
    /// Number of the file's pages that are being written or read.
    busy: u32,
    /// When the file's oldest dirty page became dirty.
    dirtied_ns: u64,
    /// The file's place in the order of `dirtied_ns`, while it has dirty pages.
    order: Neighbours,
}

impl Linked for File {
    fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.order
    }
}

/// The page cache.
#[derive(Clone, Debug)]
pub struct PageCache {
    capacity: u32,
    pages: Slab<Page>,
    /// Files, by inode.
    files: Slab<File>,
    nodes: Nodes,
    /// The tree over the dirty pages of all files, by block.
    global: Option<Tree>,
    /// Clean pages, most recently used first.
    clean: Chain,
    /// Dirty files, the one that has been dirty longest first.
    dirty_files: Chain,
    /// Number of pages in the cache.
    pub cached: u32,
    /// Number of dirty pages, including pages that are being written and have changed again meanwhile.
    pub dirty: u32,
    /// Number of pages being written.
    pub writeback: u32,
    file_nodes: u64,
}

impl PageCache {
    /// Makes an empty cache of this many bytes; with `global`, it has a tree over the dirty pages of all files.
    pub fn new(bytes: u64, global: bool) -> PageCache {
        PageCache {
            capacity: (bytes / PAGE).min(u64::from(NONE - 1)) as u32,
            pages: Slab::default(),
            files: Slab::default(),
            nodes: Nodes::default(),
            global: global.then(Tree::default),
            clean: Chain::default(),
            dirty_files: Chain::default(),
            cached: 0,
            dirty: 0,
            writeback: 0,
            file_nodes: 0,
        }
    }

    /// Returns the page with this id.
    pub fn page(&self, id: u32) -> &Page {
        &self.pages[id]
    }

    /// Returns the bytes of the nodes of the files' trees, and the bytes of the nodes of the tree over logical pages.
    pub fn tree_bytes(&self) -> [u64; 2] {
        [self.file_nodes, self.global.map_or(0, |tree| u64::from(tree.nodes()))]
            .map(|nodes| nodes * NODE_BYTES)
    }

    /// Returns the number of dirty pages of a file.
    pub fn dirty_of(&self, inode: u32) -> u32 {
        self.files.get(inode).map_or(0, |file| file.dirty)
    }

    /// Returns the number of a file's pages that are being written or read.
    pub fn busy_of(&self, inode: u32) -> u32 {
        self.files.get(inode).map_or(0, |file| file.busy)
    }

    /// Returns the file that became dirty next after `inode` (for `None`, the one that has been dirty longest), and
    /// the time at which it became dirty.
    pub fn dirty_file(&self, after: Option<u32>) -> Option<(u32, u64)> {
        let inode = after.map_or(self.dirty_files.head, |inode| self.files[inode].order.behind);
        (inode != NONE).then(|| (inode, self.files[inode].dirtied_ns))
    }

    /// Returns the id of a file's page, or [`NONE`]; this counts as a use of the page.
    pub fn find(&mut self, inode: u32, index: u32) -> u32 {
        let Some(file) = self.files.get(inode) else { return NONE };
        let id = file.tree.get(index, &self.nodes);
        if id != NONE && self.is_evictable(id) {
            self.clean.unlink(id, self.pages.all());
            self.clean.push_head(id, self.pages.all());
        }
        id
    }

    fn is_evictable(&self, id: u32) -> bool {
        let page = &self.pages[id];
        page.present && !page.dirty && !page.writeback
    }

    /// Adds a page that is not in the cache, and drops the least recently used clean page if the cache is full. If
    /// there is no clean page, the cache grows, since pages in flight need a place.
    pub fn insert(&mut self, inode: u32, index: u32, block: u32, present: bool) -> u32 {
        if self.cached >= self.capacity && self.clean.tail != NONE {
            self.drop_page(self.clean.tail);
        }
        let (dirty, writeback, order) = (false, false, Neighbours::NONE);
        let id = self.pages.insert(Page { inode, index, block, present, dirty, writeback, order });
        self.cached += 1;
        while self.files.most() <= inode as usize {
            self.files.insert(File::default());
        }
        let file = &mut self.files[inode];
        let before = file.tree.nodes();
        file.tree.insert(index, id, &mut self.nodes);
        self.file_nodes += u64::from(file.tree.nodes() - before);
        if present {
            self.clean.push_head(id, self.pages.all());
        } else {
            file.busy += 1;
        }
        id
    }

    /// Notes that a page's read has finished.
    pub fn arrived(&mut self, id: u32) {
        let page = &mut self.pages[id];
        debug_assert!(!page.present);
        page.present = true;
        let inode = page.inode;
        self.files[inode].busy -= 1;
        self.clean.push_head(id, self.pages.all());
    }

    /// Notes that a cached page has been changed.
    pub fn change(&mut self, id: u32, block: u32, now_ns: u64) {
        let page = &mut self.pages[id];
        debug_assert!(page.present);
        let (inode, index) = (page.inode, page.index);
        page.block = block;
        if page.dirty {
            return;
        }
        page.dirty = true;
        if !page.writeback {
            self.clean.unlink(id, self.pages.all());
        }
        self.dirty += 1;
        let file = &mut self.files[inode];
        file.tree.set_tag(index, true, &mut self.nodes);
        file.dirty += 1;
        if file.dirty == 1 {
            file.dirtied_ns = now_ns;
            self.dirty_files.push_tail(inode, self.files.all());
        }
        if let Some(global) = &mut self.global {
            global.insert(block, id, &mut self.nodes);
        }
    }

    /// Notes that a page is no longer dirty: it is being written, or its file is gone.
    fn undirty(&mut self, id: u32) {
        let Page { inode, index, block, .. } = self.pages[id];
        self.pages[id].dirty = false;
        self.dirty -= 1;
        let file = &mut self.files[inode];
        file.tree.set_tag(index, false, &mut self.nodes);
        file.dirty -= 1;
        if file.dirty == 0 {
            self.dirty_files.unlink(inode, self.files.all());
        }
        if let Some(global) = &mut self.global {
            global.remove(block, &mut self.nodes);
        }
    }

    /// Notes that a dirty page, which must not be in flight, has been submitted for writing.
    pub fn submit(&mut self, id: u32) {
        debug_assert!(!self.pages[id].writeback);
        self.undirty(id);
        let page = &mut self.pages[id];
        page.writeback = true;
        let inode = page.inode;
        self.writeback += 1;
        self.files[inode].busy += 1;
    }

    /// Notes that a page has been written.
    pub fn written(&mut self, id: u32) {
        let page = &mut self.pages[id];
        debug_assert!(page.writeback);
        page.writeback = false;
        let (inode, dirty) = (page.inode, page.dirty);
        self.writeback -= 1;
        self.files[inode].busy -= 1;
        if !dirty {
            self.clean.push_head(id, self.pages.all());
        }
    }

    /// Drops a file's clean pages and, with `dirty_too`, its dirty pages as well. Pages in flight stay; with
    /// `dirty_too`, they are marked clean. Returns whether no page of the file is left.
    pub fn forget(&mut self, inode: u32, dirty_too: bool) -> bool {
        let mut from = 0;
        let mut whole = true;
        while let Some((index, id)) = self.files.get(inode).and_then(|file| file.tree.next(from, &self.nodes))
        {
            if self.pages[id].dirty && dirty_too {
                self.undirty(id);
                if !self.pages[id].writeback {
                    self.clean.push_head(id, self.pages.all());
                }
            }
            if self.is_evictable(id) {
                self.drop_page(id);
            } else {
                whole = false;
            }
            if index == NONE {
                break;
            }
            from = index + 1;
        }
        whole
    }

    /// Returns the first dirty page of a file at or after `from` that is not being written.
    pub fn next_dirty(&self, inode: u32, mut from: u32) -> Option<u32> {
        let file = self.files.get(inode)?;
        loop {
            let (index, id) = file.tree.next_tagged(from, &self.nodes)?;
            if !self.pages[id].writeback {
                return Some(id);
            }
            from = index.checked_add(1)?;
        }
    }

    /// Appends, in block order, all dirty pages, of whatever file, that are in blocks `first..end` and are not being
    /// written; needs the tree over logical pages.
    pub fn dirty_in(&self, first: u32, end: u32, found: &mut Vec<u32>) {
        let Some(global) = &self.global else { return };
        let mut from = first;
        while let Some((block, id)) = global.next(from, &self.nodes).filter(|&(block, _)| block < end) {
            if !self.pages[id].writeback {
                found.push(id);
            }
            from = block + 1;
        }
    }

    fn drop_page(&mut self, id: u32) {
        self.clean.unlink(id, self.pages.all());
        let Page { inode, index, .. } = self.pages[id];
        let file = &mut self.files[inode];
        let before = file.tree.nodes();
        file.tree.remove(index, &mut self.nodes);
        self.file_nodes -= u64::from(before - file.tree.nodes());
        self.cached -= 1;
        self.pages.release(id);
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

//! DFTL: a page map on flash, its hot entries cached one by one.
//!
//! Source: Gupta, Kim, Urgaonkar, "DFTL: A Flash Translation Layer Employing
//! Demand-Based Selective Caching of Page-Level Address Mappings", ASPLOS 2009,
//! as the MAP+ paper uses it (Ji et al., TCAD 2018, sections III-A, IV-A, V-D).
//!
//! Read into it: the cache is a segmented LRU, protected : probationary = 1 : 7 of
//! the capacity (capacity / 8, rounded down); a hit moves an entry to the
//! protected head, what overflows there goes to the probationary head; a miss in
//! a full cache first evicts the probationary tail (the protected tail if that
//! segment is empty). A dirty victim costs a read and a program of its
//! translation page and cleans all cached dirty entries of that page (batch
//! update; `ftl.batch_update = false` writes the victim's entry alone, as FlashSim
//! does). Then the missed entry costs one read: eq. (2) of the paper. Entries that
//! garbage collection moves are updated in the cache if they are there, else on
//! flash, one read and program for each translation page concerned.

use super::translation::{Context, MovedPages, Translation, TranslationPages};
use crate::config::{Choice, Key, Kind, Settings};
use crate::util::{List, Lru, NONE};
use serde::{Deserialize, Serialize};

/// Registered name.
pub const NAME: &str = "dftl";
/// One line for `ftlab components`.
pub const DOC: &str = "demand-cached page map (Gupta et al., ASPLOS 2009)";
/// Keys it reads.
pub const KEYS: &[Key] = &[
    Key {
        path: "ftl.cache_policy",
        kind: Kind::Choice(policies),
        default: "slru",
        words: &[],
        doc: "Replacement in the mapping cache of dftl.",
    },
    Key {
        path: "ftl.batch_update",
        kind: Kind::Bool,
        default: "true",
        words: &[],
        doc: "A write-back of dftl cleans every cached dirty entry of its translation page.",
    },
];

fn policies() -> Vec<Choice> {
    vec![
        Choice { name: "slru", doc: "segmented LRU, protected : probationary = 1 : 7" },
        Choice { name: "lru", doc: "one LRU list" },
    ]
}

/// A cached mapping: its segment, and its place among the dirty ones of its translation page.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Mapping {
    protected: bool,
    pub(super) dirty: bool,
    prev: u32,
    next: u32,
    /// The read that brought it in.
    pub(super) load: u32,
}

/// The mapping cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dftl {
    capacity: Option<u32>,
    protected_capacity: u32,
    segmented: bool,
    batch_update: bool,
    pub(super) entries: Lru<Mapping>,
    probationary: List,
    protected: List,
    /// First cached dirty entry of each translation page.
    dirty: Vec<u32>,
    /// Dirty entries of the probationary and of the protected segment.
    dirty_in: [u32; 2],
    moved: MovedPages,
}

impl Dftl {
    /// The cache of `settings`, for `pages` translation pages.
    pub fn new(settings: &Settings, pages: u32) -> Dftl {
        let ftl = &settings.ftl;
        let capacity = ftl
            .mapping_cache_bytes
            .map(|bytes| (bytes / u64::from(ftl.entry_bytes)).clamp(1, settings.user_pages()) as u32);
        Dftl {
            capacity,
            protected_capacity: capacity.unwrap_or(u32::MAX) / 8,
            segmented: ftl.cache_policy == "slru",
            batch_update: ftl.batch_update,
            entries: Lru::new(capacity),
            probationary: List::EMPTY,
            protected: List::EMPTY,
            dirty: vec![NONE; pages as usize],
            dirty_in: [0; 2],
            moved: MovedPages::new(pages),
        }
    }

    pub(super) fn hit(&mut self, id: u32) {
        if !self.segmented {
            self.entries.touch(&mut self.probationary, id);
        } else if self.entries.value(id).protected {
            self.entries.touch(&mut self.protected, id);
        } else {
            self.entries.unlink(&mut self.probationary, id);
            self.entries.push_head(&mut self.protected, id);
            self.set_segment(id, true);
            if self.protected.len > self.protected_capacity {
                let demoted = self.protected.tail;
                self.entries.unlink(&mut self.protected, demoted);
                self.entries.push_head(&mut self.probationary, demoted);
                self.set_segment(demoted, false);
            }
        }
    }

    fn set_segment(&mut self, id: u32, protected: bool) {
        let mapping = self.entries.value_mut(id);
        mapping.protected = protected;
        if mapping.dirty {
            self.dirty_in[usize::from(!protected)] -= 1;
            self.dirty_in[usize::from(protected)] += 1;
        }
    }

    pub(super) fn mark_dirty(&mut self, id: u32, page: u32) {
        if self.entries.value(id).dirty {
            return;
        }
        self.dirty_in[usize::from(self.entries.value(id).protected)] += 1;
        let head = self.dirty[page as usize];
        *self.entries.value_mut(id) =
            Mapping { dirty: true, prev: NONE, next: head, ..*self.entries.value(id) };
        if head != NONE {
            self.entries.value_mut(head).prev = id;
        }
        self.dirty[page as usize] = id;
    }

    fn mark_clean(&mut self, id: u32, page: u32) {
        let Mapping { prev, next, .. } = *self.entries.value(id);
        match prev {
            NONE => self.dirty[page as usize] = next,
            prev => self.entries.value_mut(prev).next = next,
        }
        if next != NONE {
            self.entries.value_mut(next).prev = prev;
        }
        let mapping = self.entries.value_mut(id);
        mapping.dirty = false;
        self.dirty_in[usize::from(mapping.protected)] -= 1;
    }

    /// Cleans all cached dirty entries of a translation page; how many.
    pub(super) fn clean_page(&mut self, page: u32) -> u32 {
        let mut id = std::mem::replace(&mut self.dirty[page as usize], NONE);
        let mut cleaned = 0;
        while id != NONE {
            let mapping = self.entries.value_mut(id);
            mapping.dirty = false;
            self.dirty_in[usize::from(mapping.protected)] -= 1;
            id = mapping.next;
            cleaned += 1;
        }
        cleaned
    }

    /// Least recent entry of the probationary segment, else of the protected one.
    pub(super) fn victim(&self) -> u32 {
        if self.probationary.len > 0 { self.probationary.tail } else { self.protected.tail }
    }

    /// Lets that entry go.
    pub(super) fn drop_victim(&mut self) {
        let list = if self.probationary.len > 0 { &mut self.probationary } else { &mut self.protected };
        let id = list.tail;
        self.entries.unlink(list, id);
        self.entries.remove(id);
    }

    fn evict(&mut self, context: &mut Context) {
        let list = if self.probationary.len > 0 { &mut self.probationary } else { &mut self.protected };
        let id = list.tail;
        self.entries.unlink(list, id);
        if self.entries.value(id).dirty {
            self.write_back_entry(id, context);
        }
        self.entries.remove(id);
    }

    pub(super) fn insert(&mut self, lpn: u32, load: u32) -> u32 {
        let id = self.entries.insert(lpn, Mapping { load, ..Mapping::default() });
        self.entries.push_head(&mut self.probationary, id);
        id
    }

    /// Updates the flash copy of a page with all that is known of it, read first.
    fn rewrite(&mut self, page: u32, moved: u32, context: &mut Context) {
        context.read(page);
        let cleaned = self.clean_page(page);
        context.program(page, cleaned + moved);
    }

    /// Writes a dirty entry back: its page is read, updated and programmed.
    fn write_back_entry(&mut self, id: u32, context: &mut Context) {
        let lpn = self.entries.key(id);
        let page = context.pages.of(lpn);
        if self.batch_update {
            self.rewrite(page, 0, context);
        } else {
            context.read(page);
            self.mark_clean(id, page);
            context.program_one(lpn);
        }
    }

    /// The dirty entry nearest the probationary tail, else nearest the protected tail. Looks from both
    /// ends: after idle times the few dirty entries are the recent ones.
    fn least_recent_dirty(&self) -> Option<u32> {
        let segment = self.dirty_in.iter().position(|&count| count > 0)?;
        let list = if segment == 0 { &self.probationary } else { &self.protected };
        let (mut old, mut recent) = (list.tail, list.head);
        let mut left = self.dirty_in[segment];
        loop {
            if self.entries.value(old).dirty {
                return Some(old);
            }
            left -= u32::from(self.entries.value(recent).dirty);
            if left == 0 {
                return Some(recent);
            }
            (old, recent) = (self.entries.newer(old), self.entries.older(recent));
        }
    }
}

impl Translation for Dftl {
    const ON_FLASH: bool = true;

    #[inline]
    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        let mut id = self.entries.find(lpn);
        let hit = id != NONE;
        if hit {
            context.work.need(self.entries.value(id).load);
            self.hit(id);
        } else {
            if self.entries.is_full() {
                self.evict(context);
            }
            let load = context.load(context.pages.of(lpn));
            id = self.insert(lpn, load);
        }
        if write {
            self.mark_dirty(id, context.pages.of(lpn));
        }
        hit
    }

    fn prefetch(&mut self, page: u32, missing: &[u32], context: &mut Context) {
        let load = context.load(page);
        for &lpn in missing {
            if self.entries.is_full() {
                self.evict(context);
            }
            self.insert(lpn, load);
        }
    }

    #[inline]
    fn moved(&mut self, lpn: u32, pages: &TranslationPages) {
        match self.entries.find(lpn) {
            NONE => self.moved.add(pages.of(lpn)),
            id => self.mark_dirty(id, pages.of(lpn)),
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
        let Some(id) = self.least_recent_dirty() else { return false };
        self.write_back_entry(id, context);
        true
    }

    #[inline]
    fn cached(&self, lpn: u32, _pages: &TranslationPages) -> bool {
        self.entries.find(lpn) != NONE
    }

    fn each_cached(&self, _pages: &TranslationPages, visit: &mut dyn FnMut(u32)) {
        for list in [self.probationary, self.protected] {
            let mut id = list.head;
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

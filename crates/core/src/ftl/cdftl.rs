//! CDFTL: a two-level mapping cache, entries above whole translation pages.
//!
//! Source: Qin, Wang, Liu, Shao, "A Two-Level Caching Mechanism for Demand-Based
//! Page-Level Address Mapping in NAND Flash Memory Storage Systems", RTAS 2011.
//!
//! As ftlab reads it: the first level (CMT) holds entries, the second (CTP) whole
//! translation pages, both LRU. A translation looks in the CMT, then in the CTP;
//! both are hits, and a CTP hit copies the entry into the CMT. A miss loads the
//! page into the CTP and the entry into the CMT. The CMT's victim is its least
//! recent entry that is clean, or dirty with its page in the CTP, into which it is
//! merged without a flash operation; dirty entries whose page is absent stay, and
//! if no other is left, the page of the least recent of them is loaded. A dirty
//! CTP victim is programmed without a read, since the CTP holds it whole.
//!
//! ftlab's own readings (the paper leaves them open): half of the capacity,
//! rounded down to whole pages but at least one, is the CTP, the rest the CMT; a
//! CMT hit does not touch the CTP; programming a CTP victim leaves the dirty
//! entries that the CMT has of it dirty; a page that garbage collection updates
//! does not enter the CTP.

use super::translation::{Context, MovedPages, Translation, TranslationPages};
use crate::config::{Contradiction, Key, Settings};
use crate::util::{List, Lru, NONE};
use serde::{Deserialize, Serialize};

/// Registered name.
pub const NAME: &str = "cdftl";
/// One line for `ftlab components`.
pub const DOC: &str = "two-level demand-cached page map (Qin et al., RTAS 2011)";
/// Keys it reads.
pub const KEYS: &[Key] = &[];

/// Entries of the first level and pages of the second, for a capacity in bytes.
fn split(settings: &Settings) -> Option<(u64, u64)> {
    let page = u64::from(settings.flash.page_bytes);
    settings.ftl.mapping_cache_bytes.map(|bytes| {
        let pages = (bytes / 2 / page).max(1);
        (bytes.saturating_sub(pages * page) / u64::from(settings.ftl.entry_bytes), pages)
    })
}

/// Refuses a cache that cannot hold a translation page and an entry.
pub fn check(settings: &Settings) -> Result<(), Contradiction> {
    match split(settings) {
        Some((0, _)) => Err(Contradiction {
            key: "ftl.mapping_cache",
            message: format!(
                "cdftl caches whole translation pages, so it needs at least {} B: a page of {} B and an entry",
                settings.flash.page_bytes + settings.ftl.entry_bytes,
                settings.flash.page_bytes
            ),
        }),
        _ => Ok(()),
    }
}

/// The two levels. The value of an entry says whether it is dirty, that of a page how many entries
/// were merged into it since it was loaded or programmed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cdftl {
    capacity: Option<u32>,
    entries: Lru<bool>,
    entry_list: List,
    pages: Lru<u32>,
    page_list: List,
    /// Dirty first-level entries of each translation page.
    dirty: Vec<u32>,
    moved: MovedPages,
}

impl Cdftl {
    /// The cache of `settings`, for `pages` translation pages.
    pub fn new(settings: &Settings, pages: u32) -> Cdftl {
        let bound = split(settings).map(|(entries, held)| {
            (entries.clamp(1, settings.user_pages()) as u32, held.min(u64::from(pages)) as u32)
        });
        Cdftl {
            capacity: settings
                .ftl
                .mapping_cache_bytes
                .map(|bytes| (bytes / u64::from(settings.ftl.entry_bytes)).min(settings.user_pages()) as u32),
            entries: Lru::new(bound.map(|(entries, _)| entries)),
            entry_list: List::EMPTY,
            pages: Lru::new(bound.map(|(_, pages)| pages)),
            page_list: List::EMPTY,
            dirty: vec![0; pages as usize],
            moved: MovedPages::new(pages),
        }
    }

    fn set_dirty(&mut self, id: u32, dirty: bool, page: u32) {
        if std::mem::replace(self.entries.value_mut(id), dirty) != dirty {
            let count = &mut self.dirty[page as usize];
            *count = if dirty { *count + 1 } else { *count - 1 };
        }
    }

    /// Brings a translation page into the second level: one read, after evicting.
    fn load(&mut self, page: u32, context: &mut Context) {
        if self.pages.is_full() {
            let victim = self.page_list.tail;
            let (key, merged) = (self.pages.key(victim), *self.pages.value(victim));
            if merged > 0 {
                context.program(key, merged);
            }
            self.pages.unlink(&mut self.page_list, victim);
            self.pages.remove(victim);
        }
        context.read(page);
        let id = self.pages.insert(page, 0);
        self.pages.push_head(&mut self.page_list, id);
    }

    /// Cleans the first-level entries of a page; how many.
    fn clean_entries(&mut self, page: u32, pages: &TranslationPages) -> u32 {
        let count = std::mem::take(&mut self.dirty[page as usize]);
        let mut left = count;
        let mut id = self.entry_list.head;
        while left > 0 {
            if *self.entries.value(id) && pages.of(self.entries.key(id)) == page {
                *self.entries.value_mut(id) = false;
                left -= 1;
            }
            id = self.entries.older(id);
        }
        count
    }

    /// Makes room in the first level.
    fn evict_entry(&mut self, context: &mut Context) {
        let mut id = self.entry_list.tail;
        while id != NONE && *self.entries.value(id) {
            let held = self.pages.find(context.pages.of(self.entries.key(id)));
            if held != NONE {
                break;
            }
            id = self.entries.newer(id);
        }
        if id == NONE {
            id = self.entry_list.tail;
            self.load(context.pages.of(self.entries.key(id)), context);
        }
        let page = context.pages.of(self.entries.key(id));
        if *self.entries.value(id) {
            let held = self.pages.find(page);
            *self.pages.value_mut(held) += 1;
            self.set_dirty(id, false, page);
        }
        self.entries.unlink(&mut self.entry_list, id);
        self.entries.remove(id);
    }

    fn insert_entry(&mut self, lpn: u32, context: &mut Context) -> u32 {
        if self.entries.is_full() {
            self.evict_entry(context);
        }
        let id = self.entries.insert(lpn, false);
        self.entries.push_head(&mut self.entry_list, id);
        id
    }
}

impl Translation for Cdftl {
    const ON_FLASH: bool = true;

    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        let page = context.pages.of(lpn);
        let mut id = self.entries.find(lpn);
        let mut hit = true;
        if id != NONE {
            self.entries.touch(&mut self.entry_list, id);
        } else {
            match self.pages.find(page) {
                NONE => {
                    hit = false;
                    self.load(page, context);
                }
                held => self.pages.touch(&mut self.page_list, held),
            }
            id = self.insert_entry(lpn, context);
        }
        if write {
            self.set_dirty(id, true, page);
        }
        hit
    }

    fn prefetch(&mut self, page: u32, missing: &[u32], context: &mut Context) {
        self.load(page, context);
        for &lpn in missing {
            self.insert_entry(lpn, context);
        }
    }

    fn moved(&mut self, lpn: u32, pages: &TranslationPages) {
        let page = pages.of(lpn);
        match (self.entries.find(lpn), self.pages.find(page)) {
            (NONE, NONE) => self.moved.add(page),
            (NONE, held) => *self.pages.value_mut(held) += 1,
            (id, _) => self.set_dirty(id, true, page),
        }
    }

    fn settle(&mut self, context: &mut Context) {
        let mut at = 0;
        while let Some((page, moved)) = self.moved.take(at) {
            context.read(page);
            let cleaned = self.clean_entries(page, context.pages);
            context.program(page, cleaned + moved);
            at += 1;
        }
    }

    fn write_back(&mut self, context: &mut Context) -> bool {
        let mut id = self.entry_list.tail;
        while id != NONE && !*self.entries.value(id) {
            id = self.entries.newer(id);
        }
        let page = if id != NONE {
            context.pages.of(self.entries.key(id))
        } else {
            let mut held = self.page_list.tail;
            while held != NONE && *self.pages.value(held) == 0 {
                held = self.pages.newer(held);
            }
            if held == NONE {
                return false;
            }
            self.pages.key(held)
        };
        let merged = match self.pages.find(page) {
            NONE => {
                context.read(page);
                0
            }
            held => std::mem::take(self.pages.value_mut(held)),
        };
        let cleaned = self.clean_entries(page, context.pages);
        context.program(page, merged + cleaned);
        true
    }

    fn cached(&self, lpn: u32, pages: &TranslationPages) -> bool {
        self.entries.find(lpn) != NONE || self.pages.find(pages.of(lpn)) != NONE
    }

    fn each_cached(&self, pages: &TranslationPages, visit: &mut dyn FnMut(u32)) {
        let mut held = self.page_list.head;
        while held != NONE {
            let first = self.pages.key(held) * pages.entries();
            (first..first.saturating_add(pages.entries())).for_each(&mut *visit);
            held = self.pages.older(held);
        }
        let mut id = self.entry_list.head;
        while id != NONE {
            visit(self.entries.key(id));
            id = self.entries.older(id);
        }
    }

    fn capacity(&self) -> Option<u32> {
        self.capacity
    }

    fn dirty(&self, lpn: u32, pages: &TranslationPages) -> bool {
        let id = self.entries.find(lpn);
        let held = self.pages.find(pages.of(lpn));
        (id != NONE && *self.entries.value(id)) || (held != NONE && *self.pages.value(held) > 0)
    }
}

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
use crate::util::{Bits, List, Lru, NONE};
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

/// A first-level entry.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Entry {
    dirty: bool,
    /// The read that brought its page in.
    load: u32,
}

/// A second-level page.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Page {
    /// Entries in it that flash lacks.
    updated: u32,
    /// The read that brought it in.
    load: u32,
}

/// The two levels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cdftl {
    capacity: Option<u32>,
    entries: Lru<Entry>,
    entry_list: List,
    pages: Lru<Page>,
    page_list: List,
    /// Dirty first-level entries of each translation page, and of all.
    dirty: Vec<u32>,
    all_dirty: u32,
    /// Second-level pages with updates.
    updated_pages: u32,
    /// LPNs whose entry in a second-level page is newer than on flash.
    merged: Bits,
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
            all_dirty: 0,
            updated_pages: 0,
            merged: Bits::new(settings.user_pages() as usize),
            moved: MovedPages::new(pages),
        }
    }

    fn set_dirty(&mut self, id: u32, dirty: bool, page: u32) {
        let entry = self.entries.value_mut(id);
        if std::mem::replace(&mut entry.dirty, dirty) != dirty {
            let count = &mut self.dirty[page as usize];
            (*count, self.all_dirty) =
                if dirty { (*count + 1, self.all_dirty + 1) } else { (*count - 1, self.all_dirty - 1) };
        }
    }

    /// Notes that a second-level page holds a newer mapping of an LPN than flash.
    fn merge(&mut self, lpn: u32, held: u32) {
        if !self.merged.get(lpn) {
            self.merged.set(lpn);
            let page = self.pages.value_mut(held);
            self.updated_pages += u32::from(page.updated == 0);
            page.updated += 1;
        }
    }

    /// Forgets what was merged into a second-level page: it is programmed now. How many entries.
    fn take_updates(&mut self, held: u32, pages: &TranslationPages) -> u32 {
        let updated = std::mem::take(&mut self.pages.value_mut(held).updated);
        if updated > 0 {
            self.updated_pages -= 1;
            let first = self.pages.key(held) * pages.entries();
            let end = first.saturating_add(pages.entries()).min(pages.lpns());
            while let Some(lpn) = self.merged.next_set(first, end) {
                self.merged.clear(lpn);
            }
        }
        updated
    }

    /// Brings a translation page into the second level: one read, after evicting.
    fn load(&mut self, page: u32, context: &mut Context) -> u32 {
        if self.pages.is_full() {
            let victim = self.page_list.tail;
            let updated = self.take_updates(victim, context.pages);
            if updated > 0 {
                let entries = &self.entries;
                let newer = |lpn| matches!(entries.find(lpn), id if id != NONE && entries.value(id).dirty);
                context.program_but(self.pages.key(victim), updated, newer);
            }
            self.pages.unlink(&mut self.page_list, victim);
            self.pages.remove(victim);
        }
        let load = context.load(page);
        let id = self.pages.insert(page, Page { updated: 0, load });
        self.pages.push_head(&mut self.page_list, id);
        load
    }

    /// Cleans the first-level entries of a page; how many, those in `counted` left out.
    fn clean_entries(&mut self, page: u32, pages: &TranslationPages, counted: impl Fn(u32) -> bool) -> u32 {
        let mut left = std::mem::take(&mut self.dirty[page as usize]);
        self.all_dirty -= left;
        let mut cleaned = 0;
        let mut id = self.entry_list.head;
        while left > 0 {
            let lpn = self.entries.key(id);
            if self.entries.value(id).dirty && pages.of(lpn) == page {
                self.entries.value_mut(id).dirty = false;
                left -= 1;
                cleaned += u32::from(!counted(lpn));
            }
            id = self.entries.older(id);
        }
        cleaned
    }

    /// Makes room in the first level.
    fn evict_entry(&mut self, context: &mut Context) {
        let mut id = self.entry_list.tail;
        while id != NONE && self.entries.value(id).dirty {
            if self.pages.find(context.pages.of(self.entries.key(id))) != NONE {
                break;
            }
            id = self.entries.newer(id);
        }
        if id == NONE {
            id = self.entry_list.tail;
            self.load(context.pages.of(self.entries.key(id)), context);
        }
        let lpn = self.entries.key(id);
        let page = context.pages.of(lpn);
        if self.entries.value(id).dirty {
            let held = self.pages.find(page);
            self.merge(lpn, held);
            self.set_dirty(id, false, page);
        }
        self.entries.unlink(&mut self.entry_list, id);
        self.entries.remove(id);
    }

    fn insert_entry(&mut self, lpn: u32, load: u32, context: &mut Context) -> u32 {
        if self.entries.is_full() {
            self.evict_entry(context);
        }
        let id = self.entries.insert(lpn, Entry { dirty: false, load });
        self.entries.push_head(&mut self.entry_list, id);
        id
    }

    /// The translation page of the least recent dirty entry, else of the least recent updated page.
    fn least_recent_dirty(&self, pages: &TranslationPages) -> Option<u32> {
        if self.all_dirty > 0 {
            let mut id = self.entry_list.tail;
            while !self.entries.value(id).dirty {
                id = self.entries.newer(id);
            }
            return Some(pages.of(self.entries.key(id)));
        }
        if self.updated_pages == 0 {
            return None;
        }
        let mut held = self.page_list.tail;
        while self.pages.value(held).updated == 0 {
            held = self.pages.newer(held);
        }
        Some(self.pages.key(held))
    }
}

impl Translation for Cdftl {
    const ON_FLASH: bool = true;

    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        let page = context.pages.of(lpn);
        let mut id = self.entries.find(lpn);
        let mut hit = true;
        if id != NONE {
            context.work.need(self.entries.value(id).load);
            self.entries.touch(&mut self.entry_list, id);
        } else {
            let load = match self.pages.find(page) {
                NONE => {
                    hit = false;
                    self.load(page, context)
                }
                held => {
                    self.pages.touch(&mut self.page_list, held);
                    self.pages.value(held).load
                }
            };
            id = self.insert_entry(lpn, load, context);
            if hit {
                context.work.need(load);
            }
        }
        if write {
            self.set_dirty(id, true, page);
        }
        hit
    }

    fn prefetch(&mut self, page: u32, missing: &[u32], context: &mut Context) {
        let load = self.load(page, context);
        for &lpn in missing {
            self.insert_entry(lpn, load, context);
        }
    }

    fn moved(&mut self, lpn: u32, pages: &TranslationPages) {
        let page = pages.of(lpn);
        match (self.entries.find(lpn), self.pages.find(page)) {
            (NONE, NONE) => self.moved.add(page),
            (NONE, held) => self.merge(lpn, held),
            (id, _) => self.set_dirty(id, true, page),
        }
    }

    fn settle(&mut self, context: &mut Context) {
        let mut at = 0;
        while let Some((page, moved)) = self.moved.take(at) {
            context.read(page);
            let cleaned = self.clean_entries(page, context.pages, |_| false);
            context.program(page, cleaned + moved);
            at += 1;
        }
    }

    fn write_back(&mut self, context: &mut Context) -> bool {
        let Some(page) = self.least_recent_dirty(context.pages) else { return false };
        let held = self.pages.find(page);
        if held == NONE {
            context.read(page);
            let cleaned = self.clean_entries(page, context.pages, |_| false);
            context.program(page, cleaned);
        } else {
            let merged = std::mem::replace(&mut self.merged, Bits::new(0));
            let cleaned = self.clean_entries(page, context.pages, |lpn| merged.get(lpn));
            self.merged = merged;
            let updated = self.take_updates(held, context.pages) + cleaned;
            context.program(page, updated);
        }
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

    fn dirty(&self, lpn: u32, _pages: &TranslationPages) -> bool {
        let id = self.entries.find(lpn);
        (id != NONE && self.entries.value(id).dirty) || self.merged.get(lpn)
    }
}

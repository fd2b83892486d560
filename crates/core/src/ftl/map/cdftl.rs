//! CDFTL: a two-level mapping cache, with single entries above whole translation pages.
//!
//! Source: Qin, Wang, Liu, Shao, "A Two-Level Caching Mechanism for Demand-Based
//! Page-Level Address Mapping in NAND Flash Memory Storage Systems", RTAS 2011.
//!
//! Interpretation: the first level (CMT) holds entries, the second (CTP) whole translation pages; both are LRU
//! lists. A translation looks in the CMT, then in the CTP; finding the entry in either is a hit, and a CTP hit
//! copies the entry into the CMT. A miss loads the page into the CTP and the entry into the CMT. The CMT's
//! victim is its least recent entry that is either clean, or dirty with its page in the CTP; a dirty victim is
//! merged into that page without a flash operation. Dirty entries whose page is absent stay; if there are no
//! other entries, the page of the least recent of them is loaded. A dirty CTP victim is programmed without a
//! read, since the CTP holds the whole page.
//!
//! Where the paper leaves the details open: half of the capacity, rounded down to whole pages but at least one, is the
//! CTP, and the rest is the CMT; a CMT hit does not touch the CTP; when a CTP victim is programmed, the CMT's dirty
//! entries of that page stay dirty; a page that garbage collection updates does not enter the CTP.

use std::io;

use super::context::Context;
use super::entries::Entries;
use super::pages::TranslationPages;
use super::policy::{Cached, Policy};
use super::recency::Recency;
use crate::config::Contradiction;
use crate::ftl::settings::Settings;
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, List, Lru, NONE};

/// The name under which this FTL is registered.
pub const NAME: &str = "cdftl";
/// Description in one line, for `ftlab components`.
pub const DOC: &str = "two-level demand-cached page map (Qin et al., RTAS 2011)";
/// The keys that only cdftl has: none.
pub type Keys = ();

/// Returns the number of entries in the first level and of pages in the second, for the configured capacity.
fn split(settings: &Settings) -> Option<(u64, u64)> {
    let page = u64::from(settings.flash.page_bytes);
    settings.ftl.mapping_cache_bytes.map(|bytes| {
        let pages = (bytes / 2 / page).max(1);
        (bytes.saturating_sub(pages * page) / u64::from(settings.ftl.entry_bytes), pages)
    })
}

/// The mapping cache of CDFTL.
pub type Cdftl = Cached<Levels>;

/// A translation page in the second level.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Number of the page's entries that differ from the copy on flash.
    updated: u32,
    /// Number of the load that brought the page in.
    load: u32,
}

/// The order of the entries in the first level, and the pages of the second level.
#[derive(Clone, Debug)]
pub struct Levels {
    /// First-level entries. The clean ones are marked, and so is, for each page in the second level, the least recent
    /// dirty one: the first marked entry may leave the cache. Dirty entries of absent pages may be marked too, but are
    /// skipped.
    order: Recency,
    dirty: u32,
    pages: Lru<Page>,
    page_list: List,
    /// Number of second-level pages with updates that are not yet on flash.
    updated_pages: u32,
    /// LPNs whose entry in a second-level page is newer than the entry on flash.
    merged: Bits,
    lpns: u32,
}

impl Levels {
    /// Marks the least recent dirty entry of a page that is in the second level.
    #[inline]
    fn mark_oldest(&mut self, entries: &Entries<()>, page: u32) {
        let oldest = entries.oldest_dirty_of(page);
        if oldest != NONE && self.holds(page) {
            self.order.mark(oldest);
        }
    }

    /// Notes that a second-level page holds a newer mapping of an LPN than flash does.
    fn merge(&mut self, lpn: u32, held: u32) {
        if !self.merged.get(lpn) {
            self.merged.set(lpn);
            let page = self.pages.value_mut(held);
            self.updated_pages += u32::from(page.updated == 0);
            page.updated += 1;
        }
    }

    /// Forgets what was merged into a second-level page, which is now programmed; returns the number of entries
    /// that were merged.
    fn take_updates(&mut self, held: u32, pages: &TranslationPages) -> u32 {
        let updated = std::mem::take(&mut self.pages.value_mut(held).updated);
        if updated > 0 {
            self.updated_pages -= 1;
            let (first, end) = pages.range(self.pages.key(held));
            self.merged.take(first, end);
        }
        updated
    }

    /// Returns the translation page of the least recent dirty entry or, if there is none, the least recent
    /// updated page.
    fn first_dirty_page(&self, entries: &Entries<()>) -> Option<u32> {
        if self.dirty > 0 {
            return self.order.iter().find(|&id| entries.is_dirty(id)).map(|id| entries.page(id));
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

impl Policy for Levels {
    type Note = ();

    fn new(settings: &Settings, pages: u32) -> Levels {
        Levels {
            order: Recency::new(Self::entries(settings)),
            dirty: 0,
            pages: Lru::new(split(settings).map(|(_, held)| held.min(pages.into()) as u32)),
            page_list: List::EMPTY,
            updated_pages: 0,
            merged: Bits::new(settings.user_pages() as usize),
            lpns: settings.user_pages() as u32,
        }
    }

    /// Refuses a cache that cannot hold a translation page and an entry.
    fn check(settings: &Settings) -> Result<(), Contradiction> {
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

    fn entries(settings: &Settings) -> Option<u32> {
        split(settings).map(|(entries, _)| entries.clamp(1, settings.user_pages()) as u32)
    }

    fn hit(&mut self, entries: &mut Entries<()>, id: u32) {
        let marked = self.order.remove(id);
        self.order.push(id, marked);
        if entries.is_dirty(id) {
            entries.renew(id);
            self.mark_oldest(entries, entries.page(id));
        }
    }

    fn insert(&mut self, _entries: &mut Entries<()>, id: u32) {
        self.order.push(id, true);
    }

    fn victim(&mut self, entries: &mut Entries<()>) -> u32 {
        while let Some(id) = self.order.first_marked() {
            if !entries.is_dirty(id) || self.holds(entries.page(id)) {
                return id;
            }
            self.order.unmark(id);
        }
        self.order.first()
    }

    fn remove(&mut self, _entries: &mut Entries<()>, id: u32) {
        self.order.remove(id);
    }

    fn marked(&mut self, entries: &mut Entries<()>, id: u32, dirty: bool) {
        if dirty {
            self.dirty += 1;
        } else {
            self.dirty -= 1;
            self.order.mark(id);
            self.mark_oldest(entries, entries.page(id));
        }
    }

    fn is_newer(&self, id: u32, other: u32) -> bool {
        self.order.is_newer(id, other)
    }

    /// Merges the victim into its translation page, which is loaded first if it is absent.
    fn write_back_victim(&mut self, entries: &mut Entries<()>, id: u32, context: &mut Context) {
        let page = entries.page(id);
        if !self.holds(page) {
            self.load(entries, page, context);
        }
        self.merge(entries.lpn(id), self.pages.find(page));
        entries.make_clean(self, id);
    }

    /// Brings a translation page into the second level with one read, after evicting another page if necessary.
    fn load(&mut self, entries: &mut Entries<()>, page: u32, context: &mut Context) -> u32 {
        if self.pages.is_full() {
            let victim = self.page_list.tail;
            let updated = self.take_updates(victim, context.pages);
            if updated > 0 {
                let slab = &entries.slab;
                let newer = |lpn| matches!(slab.find(lpn), id if id != NONE && entries.is_dirty(id));
                context.program_but(self.pages.key(victim), updated, newer);
            }
            self.pages.unlink(&mut self.page_list, victim);
            self.pages.remove(victim);
        }
        let load = context.load(page);
        let id = self.pages.insert(page, Page { updated: 0, load });
        self.pages.push_head(&mut self.page_list, id);
        self.mark_oldest(entries, page);
        load
    }

    fn fetch(&mut self, entries: &mut Entries<()>, lpn: u32, context: &mut Context) -> (u32, bool) {
        let page = context.pages.of(lpn);
        let held = self.pages.find(page);
        let load = if held == NONE {
            self.load(entries, page, context)
        } else {
            self.pages.touch(&mut self.page_list, held);
            self.pages.value(held).load
        };
        entries.make_room(self, context);
        if held != NONE {
            context.work.need(load);
        }
        (entries.insert(self, lpn, load), held != NONE)
    }

    fn write_back(&mut self, entries: &mut Entries<()>, context: &mut Context) -> bool {
        let Some(page) = self.first_dirty_page(entries) else { return false };
        match self.pages.find(page) {
            NONE => entries.rewrite(self, page, 0, context),
            held => {
                let alone = entries.dirty_of(page).filter(|&id| !self.merged.get(entries.lpn(id)));
                let updated = alone.count() as u32 + self.take_updates(held, context.pages);
                entries.clean(self, page);
                context.program(page, updated);
            }
        }
        true
    }

    fn absorb(&mut self, lpn: u32, page: u32) -> bool {
        let held = self.pages.find(page);
        if held != NONE {
            self.merge(lpn, held);
        }
        held != NONE
    }

    #[inline]
    fn holds(&self, page: u32) -> bool {
        self.pages.find(page) != NONE
    }

    fn is_updated(&self, lpn: u32) -> bool {
        self.merged.get(lpn)
    }

    fn each(&self, _entries: &Entries<()>, visit: &mut dyn FnMut(u32)) {
        self.order.iter().for_each(visit);
    }

    /// Marks are not saved: all entries are marked when they come in, and needless marks are skipped.
    fn save_rest(&self, out: &mut Encoder) -> io::Result<()> {
        let mut held = Vec::with_capacity(self.page_list.len as usize);
        self.pages.each(self.page_list, &mut |id| held.push(self.pages.key(id)));
        out.value(&(held, self.merged.members(0, self.lpns).collect::<Vec<_>>()))
    }

    fn load_rest(
        &mut self,
        _entries: &mut Entries<()>,
        pages: &TranslationPages,
        from: &mut Decoder,
    ) -> Result<(), Damage> {
        let (held, merged): (Vec<u32>, Vec<u32>) = from.value()?;
        for page in held {
            if page >= pages.units() || self.holds(page) || self.pages.is_full() {
                return Damage::impossible(format!("translation page {page} cannot be cached"));
            }
            let id = self.pages.insert(page, Page::default());
            self.pages.push_head(&mut self.page_list, id);
        }
        for lpn in merged {
            if lpn >= pages.lpns() || !self.absorb(lpn, pages.of(lpn)) {
                return Damage::impossible(format!("page {lpn} is updated where its mapping is not cached"));
            }
        }
        Ok(())
    }
}

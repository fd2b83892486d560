//! How pages leave the write buffer for the flash.

use super::{Buffer, Destaged, Kept};
use crate::ftl::{Locate, Police};
use crate::request::Pages;

impl Buffer {
    /// Whether pages are to be destaged now; `idle` says that the device has nothing else to do.
    pub fn wants(&self, idle: bool) -> bool {
        let dirty = self.used - self.flights;
        dirty > 0 && (idle || self.destaging || !self.barriers.is_empty() || !self.waiting.is_empty())
    }

    /// Returns the first list whose next pages fill a program unit. If a flush waits, or if a write waits while nothing
    /// is on its way to the flash, the list need only hold a page.
    pub fn next_list(&mut self) -> Option<u32> {
        let hurried = !self.barriers.is_empty() || (!self.waiting.is_empty() && self.flights == 0);
        self.order.next_list(hurried, &mut self.pages)
    }

    /// Calls `visit` with the next `count` pages of a list, or all of them.
    pub fn each_next(&self, list: u32, count: u32, mut visit: impl FnMut(u32)) {
        self.order.next(list, &self.pages).take(count as usize).for_each(|id| visit(self.pages.key(id)));
    }

    /// Takes the next page from a list, to be handed to the FTL.
    pub fn destage(&mut self, list: u32) -> Option<Destaged> {
        let id = self.order.pop(list, &mut self.pages)?;
        let lpn = self.pages.key(id);
        let kept = self.pages.value_mut(id);
        kept.dirty = false;
        kept.flights += 1;
        let Kept { partial, stream, room, .. } = *kept;
        let pages = Pages { first: lpn, pages: 1, head_partial: partial, tail_partial: partial, stream };
        self.flights += 1;
        self.stats.destaged += 1;
        Some(Destaged { pages, room })
    }

    /// Notes that the FTL has taken a page.
    pub fn taken(&mut self, page: Destaged, ftl: &impl Police) {
        if let Some(versions) = &mut self.versions {
            versions.destaged(page.pages.first, ftl.version(page.pages.first));
        }
    }

    /// Takes back a page that the FTL refused.
    pub fn take_back(&mut self, page: Destaged, ftl: &impl Locate) {
        let id = self.pages.find(page.pages.first);
        self.order.arrived(id, &self.pages);
        let kept = self.pages.value_mut(id);
        (kept.dirty, kept.flights) = (true, kept.flights - 1);
        self.order.add(id, &mut self.pages, ftl);
        self.flights -= 1;
        self.stats.destaged -= 1;
    }

    /// Frees the room of a page that has reached the flash.
    pub fn landed(&mut self, lpn: u32, room: u64) {
        let id = self.pages.find(lpn);
        self.order.arrived(id, &self.pages);
        let kept = self.pages.value_mut(id);
        kept.flights -= 1;
        if kept.flights == 0 && !kept.dirty {
            self.pages.remove(id);
        }
        self.flights -= 1;
        self.free(room);
    }
}

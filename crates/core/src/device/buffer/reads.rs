//! What reads find in the buffer: pages that were written, and pages that were read ahead.

use super::{Buffer, Taken};
use crate::request::Pages;
use crate::util::NONE;

impl Buffer {
    /// Takes a read, which may continue a stream.
    pub(super) fn take_read(&mut self, id: u32, pages: Pages) -> Taken {
        if pages.pages == 0 {
            return Taken::ToQueue;
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.follow(pages);
        }
        let taken = self.look_for(id, pages);
        if taken == Taken::Waits {
            self.reads.push((id, pages));
        }
        taken
    }

    /// Returns what becomes of a read: it is answered, waits for pages that are read ahead, or goes to the queue.
    fn look_for(&mut self, id: u32, pages: Pages) -> Taken {
        if self.run(pages, 0) == (true, pages.pages) {
            self.hit(id, pages);
            return Taken::Answered;
        }
        let Some(ahead) = &self.ahead else { return Taken::ToQueue };
        let mut all = pages.first..pages.first + pages.pages;
        if all.all(|lpn| self.holds(lpn) || ahead.awaits(lpn)) { Taken::Waits } else { Taken::ToQueue }
    }

    /// Looks again at the reads that wait, if pages have come.
    pub fn resume_reads(&mut self) {
        if !std::mem::take(&mut self.came) {
            return;
        }
        let mut at = 0;
        // A read stays in the list until it is answered, so that an earlier one does not give up pages that it waits
        // for.
        while let Some(&(id, pages)) = self.reads.get(at) {
            match self.look_for(id, pages) {
                Taken::Waits => at += 1,
                taken => {
                    self.reads.remove(at);
                    self.leaving.push_back((id, taken));
                }
            }
        }
    }

    /// Whether reads may cause pages to be read ahead.
    pub fn reads_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// Returns the next pages to be read ahead, which are on their way from now on.
    pub fn next_ahead(&mut self) -> Option<Pages> {
        let Buffer { ahead, pages, reads, .. } = self;
        ahead.as_mut()?.next(|lpn| pages.find(lpn) != NONE, |lpn| awaited(&*reads, lpn))
    }

    /// Notes that pages that were read ahead have come from the flash.
    pub fn came(&mut self, pages: Pages) {
        if let Some(ahead) = &mut self.ahead {
            ahead.came(pages);
        }
        self.came = true;
    }

    /// Notes that pages that were to be read ahead could not be read.
    #[cold]
    pub fn did_not_come(&mut self, pages: Pages) {
        self.forget_ahead(pages);
        self.came(pages);
    }

    /// Counts pages of a read that are answered from the buffer, and gives up those that were read ahead, unless
    /// another read waits for them.
    pub fn hit(&mut self, id: u32, pages: Pages) {
        self.found[id as usize].pages += pages.pages;
        self.stats.hits += u64::from(pages.pages);
        let Buffer { ahead: Some(ahead), reads, .. } = self else { return };
        let others = reads.iter().filter(|&&(other, _)| other != id);
        (pages.first..pages.first + pages.pages)
            .filter(|&lpn| !awaited(others.clone(), lpn))
            .for_each(|lpn| ahead.forget(lpn));
    }

    /// Gives up pages that were read ahead.
    pub(super) fn forget_ahead(&mut self, pages: Pages) {
        if let Some(ahead) = &mut self.ahead {
            (pages.first..pages.first + pages.pages).for_each(|lpn| ahead.forget(lpn));
        }
    }

    /// Whether the buffer has a page as a whole.
    fn holds(&self, lpn: u32) -> bool {
        let id = self.pages.find(lpn);
        let written = id != NONE && {
            let kept = self.pages.value(id);
            !kept.dropped && !kept.partial
        };
        written || self.ahead.as_ref().is_some_and(|ahead| ahead.has(lpn))
    }

    /// Returns whether the whole page at this index is in the buffer, and for how many pages, counted from it, the
    /// answer is the same.
    pub fn run(&self, pages: Pages, at: u32) -> (bool, u32) {
        let held = |at: u32| self.holds(pages.first + at);
        let first = held(at);
        (first, (at + 1..pages.pages).take_while(|&at| held(at) == first).count() as u32 + 1)
    }
}

/// Whether one of these reads, which wait, wants a page.
fn awaited<'a>(reads: impl IntoIterator<Item = &'a (u32, Pages)>, lpn: u32) -> bool {
    reads.into_iter().any(|(_, pages)| (pages.first..pages.first + pages.pages).contains(&lpn))
}

//! Read-ahead: where reads go on where an earlier one ended, the device reads further pages before they are asked for
//! (`device.read_ahead`).
//!
//! A read that begins where one of the last [`STREAMS`] streams ended continues that stream, any other begins one in
//! place of the stream that was longest without a read. Once a stream has been continued, the pages up to
//! `device.read_ahead` behind its end are read, as soon as they fill a NAND page. A page that was read ahead leaves the
//! RAM when a read has taken it, unless another read waits for it; when it is written or trimmed; or when later pages
//! need the room.

use std::collections::VecDeque;

use super::settings::Around;
use crate::request::Pages;
use crate::util::{List, Lru, NONE};

/// Number of streams that are told apart; each has room for `device.read_ahead` in the RAM.
const STREAMS: usize = 16;

/// Reads of which each goes on where the one before ended.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The page after the last one that was read.
    next: u32,
    /// The page after the last one that was read ahead.
    until: u32,
    /// Number of the stream's last read among all reads; 0: there is no stream.
    read: u64,
}

/// A page that is read ahead.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Whether it has come from the flash.
    here: bool,
    /// Whether it was written or trimmed while it was on its way.
    stale: bool,
}

/// The streams, and what was read ahead of them.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Pages ahead of a stream.
    reach: u32,
    /// Logical pages that fill a NAND page.
    unit: u32,
    /// Number of logical pages of the device.
    end: u32,
    streams: [Stream; STREAMS],
    reads: u64,
    pages: Lru<Page>,
    /// The pages, most recently read ahead first.
    order: List,
    wanted: VecDeque<Pages>,
}

impl Ahead {
    /// Makes the read-ahead of this many pages; `None` for no pages.
    pub fn new(reach: u32, around: Around) -> Option<Ahead> {
        (reach > 0).then(|| Ahead {
            reach,
            unit: around.unit,
            end: around.pages,
            streams: [Stream::default(); STREAMS],
            reads: 0,
            pages: Lru::new(None),
            order: List::EMPTY,
            wanted: VecDeque::new(),
        })
    }

    /// Follows a read that has come; further pages may be wanted then.
    pub fn follow(&mut self, pages: Pages) {
        let end = pages.first + pages.pages;
        let whose = Pages { stream: pages.stream, ..Pages::NONE };
        self.reads += 1;
        let continued = |stream: &&mut Stream| stream.read > 0 && stream.next == pages.first;
        let Some(stream) = self.streams.iter_mut().find(continued) else {
            let oldest = self.streams.iter_mut().min_by_key(|stream| stream.read).expect("there are some");
            *oldest = Stream { next: end, until: end, read: self.reads };
            return;
        };
        (stream.next, stream.read, stream.until) = (end, self.reads, stream.until.max(end));
        let until = end.saturating_add(self.reach).min(self.end);
        if until >= stream.until + self.unit.min(self.reach) || (until == self.end && until > stream.until) {
            self.wanted.push_back(Pages { first: stream.until, pages: until - stream.until, ..whose });
            stream.until = until;
        }
    }

    /// Returns the next pages to be read, at most those of a NAND page, which are on their way from now on. Pages that
    /// are in RAM are passed over; those that reads wait for (`awaited`) keep their room.
    pub fn next(&mut self, in_ram: impl Fn(u32) -> bool, awaited: impl Fn(u32) -> bool) -> Option<Pages> {
        loop {
            let wanted = self.wanted.front_mut()?;
            let left = wanted.first..wanted.first + wanted.pages;
            let there = |lpn: u32| in_ram(lpn) || self.pages.find(lpn) != NONE;
            let skipped = left.clone().take_while(|&lpn| there(lpn)).count() as u32;
            let first = wanted.first + skipped;
            let most = self.unit - first % self.unit;
            let pages = (first..left.end.min(first + most)).take_while(|&lpn| !there(lpn)).count() as u32;
            if pages == 0 {
                self.wanted.pop_front();
                continue;
            }
            let whose = *wanted;
            *wanted = Pages { first: first + pages, pages: left.end - first - pages, ..whose };
            for lpn in first..first + pages {
                let id = self.pages.insert(lpn, Page::default());
                self.pages.push_head(&mut self.order, id);
            }
            self.shrink(awaited);
            return Some(Pages { first, pages, ..whose });
        }
    }

    /// Drops the oldest pages while there are more than the RAM holds; the oldest stays while it is on its way or
    /// awaited.
    fn shrink(&mut self, awaited: impl Fn(u32) -> bool) {
        let most = (self.reach as usize * STREAMS) as u32;
        let goes = |id: u32, pages: &Lru<Page>| pages.value(id).here && !awaited(pages.key(id));
        while self.pages.len() > most && goes(self.order.tail, &self.pages) {
            self.remove(self.order.tail);
        }
    }

    fn remove(&mut self, id: u32) {
        self.pages.unlink(&mut self.order, id);
        self.pages.remove(id);
    }

    /// Notes that pages have come from the flash.
    pub fn came(&mut self, pages: Pages) {
        for lpn in pages.first..pages.first + pages.pages {
            let id = self.pages.find(lpn);
            match id != NONE && !self.pages.value(id).stale {
                true => self.pages.value_mut(id).here = true,
                false if id != NONE => self.remove(id),
                false => {}
            }
        }
    }

    /// Whether a page is here, and not yet taken.
    pub fn has(&self, lpn: u32) -> bool {
        let id = self.pages.find(lpn);
        id != NONE && self.pages.value(id).here
    }

    /// Whether a page is on its way.
    pub fn awaits(&self, lpn: u32) -> bool {
        let id = self.pages.find(lpn);
        id != NONE && !self.pages.value(id).here && !self.pages.value(id).stale
    }

    /// Forgets a page: a read has taken it, or it is written or trimmed.
    pub fn forget(&mut self, lpn: u32) {
        let id = self.pages.find(lpn);
        if id == NONE {
            return;
        }
        match self.pages.value(id).here {
            true => self.remove(id),
            false => self.pages.value_mut(id).stale = true,
        }
    }
}

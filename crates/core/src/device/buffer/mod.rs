//! The write buffer: RAM of the device that holds written pages until they are on flash.
//!
//! It stands between controller and queue. A write is answered once all its pages are in the buffer; where there is no
//! room, it waits in order of arrival and takes room page by page. A written page replaces the version that is in the
//! buffer, unless that version is on its way to the flash: the page then needs room of its own. A page has the stream
//! of its newest version. A read whose pages are all in the buffer is answered from there; any other read leaves out
//! the pages that are in the buffer when it issues. A trim, and a write that goes past the buffer, drops its pages from
//! the buffer when it issues.
//!
//! Destaging (task `destage` of [`crate::device::own`]) hands pages to the FTL in the order of
//! `device.write_buffer_policy` ([`order`]). A page keeps its room until the flash has it.
//!
//! Without `device.power_loss_protection` a flush waits until everything that the buffer held when the flush came is on
//! flash, and a write with FUA goes past the buffer. A write with a command of cooperation goes past the buffer with or
//! without that protection.

mod ahead;
mod destaging;
mod order;
mod reads;
pub mod settings;
mod versions;

use std::collections::VecDeque;

use crate::ftl::{Locate, Police};
use crate::request::{Pages, Request};
use crate::util::{Lru, NONE};
use crate::workload::Op;
use ahead::Ahead;
use order::{Kept, Order};
use settings::{Around, Settings};
use versions::Versions;

/// What becomes of a command that came to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The device answers the command.
    Answered,
    /// The device is read-only, and the command fails.
    Refused,
    /// The command waits in the buffer.
    Waits,
    /// The command goes on to the device's queue.
    ToQueue,
}

/// What a command has found in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Pages that it read here.
    pub pages: u32,
    /// Whether it was answered here, and so was never in the device's queue.
    pub answered: bool,
}

/// A page handed to the FTL.
#[derive(Clone, Copy, Debug)]
pub struct Destaged {
    /// The page.
    pub pages: Pages,
    /// Number of the page's room; rooms are numbered in the order in which they were taken.
    pub room: u64,
}

/// A write that waits for room.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u32,
    /// The pages that have no room yet.
    pages: Pages,
    since_ns: u64,
}

/// A flush that waits until pages are on flash.
#[derive(Clone, Copy, Debug)]
struct Barrier {
    id: u32,
    /// The number of the last room that the flush waits for, and how many rooms it still waits for.
    room: u64,
    left: u32,
}

/// What a buffer did; pages are logical pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Pages of reads that were answered from the buffer.
    pub hits: u64,
    /// Pages written that replaced a page in the buffer.
    pub coalesced: u64,
    /// Pages handed to the FTL.
    pub destaged: u64,
    /// Writes that had to wait for room.
    pub stalls: u64,
    /// Total time that writes waited for room, ns.
    pub wait_ns: u64,
    /// Largest number of pages in use at one time.
    pub high_water: u32,
}

/// The buffer with its pages, and the commands that wait in it.
#[derive(Debug)]
pub struct Buffer {
    own: Settings,
    around: Around,
    capacity: u32,
    /// Destaging begins above this number of pages in use.
    high: u32,
    /// Destaging ends below this number of pages in use.
    low: u32,
    pages: Lru<Kept>,
    order: Order,
    /// Pages in use.
    used: u32,
    /// Pages in use that are on their way to the flash.
    flights: u32,
    /// Rooms taken so far.
    rooms: u64,
    destaging: bool,
    waiting: VecDeque<Waiting>,
    barriers: VecDeque<Barrier>,
    leaving: VecDeque<(u32, Taken)>,
    /// The pages that are read ahead, if the device reads ahead.
    ahead: Option<Ahead>,
    /// Reads that wait for pages that are on their way from the flash.
    reads: Vec<(u32, Pages)>,
    /// Whether such pages have come since those reads were last looked at.
    came: bool,
    /// What each command has found here, by its place in the pool.
    found: Vec<Found>,
    /// In check mode, the version that the device has of each page.
    versions: Option<Versions>,
    /// The counters.
    pub stats: Stats,
}

impl Buffer {
    /// Makes an empty buffer; `None` if the settings want none.
    pub fn new(own: &Settings, around: Around) -> Option<Buffer> {
        let page_bytes = u64::from(around.page_bytes);
        let capacity = (own.bytes / page_bytes).min(u64::from(NONE / 4)) as u32;
        let share = |ppm: u64| (u64::from(capacity) * ppm / 1_000_000) as u32;
        own.any().then(|| Buffer {
            own: own.clone(),
            around,
            capacity,
            high: share(own.high_ppm),
            low: share(own.low_ppm),
            pages: Lru::new(None),
            order: Order::new(own.policy, around, capacity),
            used: 0,
            flights: 0,
            rooms: 0,
            destaging: false,
            waiting: VecDeque::new(),
            barriers: VecDeque::new(),
            leaving: VecDeque::new(),
            ahead: Ahead::new((own.read_ahead / page_bytes) as u32, around),
            reads: Vec::new(),
            came: false,
            found: Vec::new(),
            versions: None,
            stats: Stats::default(),
        })
    }

    /// Takes a command that comes from the host or the controller; `placed` is called with each page that gets room
    /// now.
    pub fn take(
        &mut self,
        id: u32,
        request: &Request,
        now_ns: u64,
        ftl: &impl Locate,
        placed: impl FnMut(u32),
    ) -> Taken {
        if id as usize >= self.found.len() {
            self.found.resize(id as usize + 1, Found::default());
        }
        self.found[id as usize] = Found::default();
        match request.op {
            Op::Trim => Taken::ToQueue,
            Op::Flush if self.own.protects() => Taken::Answered,
            Op::Flush => self.take_flush(id),
            Op::Read => self.take_read(id, request.pages),
            Op::Write if self.goes_past(request) => Taken::ToQueue,
            Op::Write => self.take_write(id, request.pages, now_ns, ftl, placed),
        }
    }

    /// Takes a write: gives room to its pages or, behind writes that wait and once the buffer is full, lets the rest
    /// wait.
    #[inline]
    fn take_write(
        &mut self,
        id: u32,
        mut pages: Pages,
        now_ns: u64,
        ftl: &impl Locate,
        placed: impl FnMut(u32),
    ) -> Taken {
        if self.waiting.is_empty() && self.place(&mut pages, ftl, placed) {
            return Taken::Answered;
        }
        self.waiting.push_back(Waiting { id, pages, since_ns: now_ns });
        self.stats.stalls += 1;
        Taken::Waits
    }

    fn goes_past(&self, request: &Request) -> bool {
        let mark = request.mark;
        self.capacity == 0
            || mark.coop | mark.begin | mark.end | mark.pad | (mark.fua() && !self.own.protects())
    }

    fn take_flush(&mut self, id: u32) -> Taken {
        if self.used == 0 {
            return Taken::ToQueue;
        }
        self.barriers.push_back(Barrier { id, room: self.rooms, left: self.used });
        Taken::Waits
    }

    /// Gives room to these pages of a write, as far as there is room; those that have room are left out from then on.
    /// Returns whether all have room.
    #[inline]
    fn place(&mut self, pages: &mut Pages, ftl: &impl Locate, mut placed: impl FnMut(u32)) -> bool {
        while pages.pages > 0 {
            if !self.place_one(*pages, ftl) {
                return false;
            }
            placed(pages.first);
            *pages = pages.part(1, pages.pages - 1);
        }
        true
    }

    /// Gives room to the first of these pages; returns false if there is no room.
    fn place_one(&mut self, pages: Pages, ftl: &impl Locate) -> bool {
        if !self.take_room(pages, ftl) {
            return false;
        }
        self.forget_ahead(pages.part(0, 1));
        if let Some(versions) = &mut self.versions {
            versions.written(pages.first);
        }
        true
    }

    /// Finds room for the first of these pages: that of the page's older version, if it can be replaced, or free room.
    fn take_room(&mut self, pages: Pages, ftl: &impl Locate) -> bool {
        let lpn = pages.first;
        let part = self.around.completes && (pages.head_partial || (pages.pages == 1 && pages.tail_partial));
        let mut id = self.pages.find(lpn);
        if id != NONE && self.pages.value(id).dirty {
            self.stats.coalesced += 1;
            let kept = self.pages.value_mut(id);
            kept.partial &= part;
            kept.stream = pages.stream;
            self.order.touch(id, &mut self.pages);
            return true;
        }
        if self.used == self.capacity {
            return false;
        }
        if id == NONE {
            id = self.pages.insert(lpn, Kept::default());
            self.pages.value_mut(id).dropped = true;
        }
        self.rooms += 1;
        let kept = self.pages.value_mut(id);
        // A version on its way to the flash is still in the buffer as a whole, unless it was dropped.
        kept.partial = part && (kept.partial || kept.dropped);
        (kept.dirty, kept.dropped, kept.room) = (true, false, self.rooms);
        kept.stream = pages.stream;
        self.order.add(id, &mut self.pages, ftl);
        self.used += 1;
        self.stats.high_water = self.stats.high_water.max(self.used);
        self.destaging |= self.used > self.high;
        true
    }

    /// Lets waiting writes take the room that there is now.
    pub fn admit(&mut self, now_ns: u64, ftl: &impl Locate, mut placed: impl FnMut(u32, u32)) {
        while let Some(&Waiting { id, mut pages, since_ns }) = self.waiting.front() {
            let whole = self.place(&mut pages, ftl, |lpn| placed(id, lpn));
            if !whole {
                self.waiting[0].pages = pages;
                return;
            }
            self.waiting.pop_front();
            self.stats.wait_ns = self.stats.wait_ns.saturating_add(now_ns - since_ns);
            self.leaving.push_back((id, Taken::Answered));
        }
    }

    /// Returns the next command that leaves the buffer now.
    pub fn leave(&mut self) -> Option<(u32, Taken)> {
        self.leaving.pop_front()
    }

    /// Notes that a command is answered here.
    pub fn answers(&mut self, id: u32) {
        self.found[id as usize].answered = true;
    }

    /// Returns what a command that came to the buffer has found.
    pub fn found(&self, id: u32) -> Found {
        self.found.get(id as usize).copied().unwrap_or_default()
    }

    /// Whether commands can leave the buffer, or take room.
    pub fn is_due(&self) -> bool {
        !self.leaving.is_empty()
            || (self.came && !self.reads.is_empty())
            || (!self.waiting.is_empty() && self.used < self.capacity)
    }

    /// Returns the number of pages in use; `None` without room for any.
    pub fn level(&self) -> Option<u32> {
        (self.capacity > 0).then_some(self.used)
    }

    /// Follows the versions of pages from now on, for [`Buffer::version`].
    pub fn keep_versions(&mut self) {
        self.versions.get_or_insert_default();
    }

    /// Returns the version that the device has of a page, if versions are followed.
    pub fn version(&self, lpn: u32, ftl: &impl Police) -> Option<u32> {
        self.versions.as_ref().map_or_else(|| ftl.version(lpn), |versions| versions.of(lpn, ftl))
    }

    /// Drops the pages of a trim, or of a write that goes past the buffer, as the trim or write issues; with `pads` the
    /// write repeats what the device has.
    pub fn discard(&mut self, pages: Pages, pads: bool) {
        self.forget_ahead(pages);
        for lpn in pages.first..pages.first + pages.pages {
            if let Some(versions) = &mut self.versions {
                if pads { versions.repeated(lpn) } else { versions.discard(lpn) }
            }
            let id = self.pages.find(lpn);
            if id == NONE {
                continue;
            }
            let Kept { dirty, flights, room, .. } = *self.pages.value(id);
            if dirty {
                self.order.remove(id, &mut self.pages);
                self.free(room);
            }
            let kept = self.pages.value_mut(id);
            (kept.dirty, kept.dropped) = (false, true);
            if flights == 0 {
                self.pages.remove(id);
            }
        }
    }

    fn free(&mut self, room: u64) {
        self.used -= 1;
        self.destaging &= self.used >= self.low;
        self.barriers.iter_mut().filter(|barrier| room <= barrier.room).for_each(|barrier| barrier.left -= 1);
        while self.barriers.front().is_some_and(|barrier| barrier.left == 0) {
            let barrier = self.barriers.pop_front();
            self.leaving.extend(barrier.map(|barrier| (barrier.id, Taken::ToQueue)));
        }
    }

    /// Refuses the commands that wait: the device has become read-only, and keeps the pages that it has.
    pub fn close(&mut self) {
        let ids = self.waiting.drain(..).map(|write| write.id);
        let ids = ids.chain(self.barriers.drain(..).map(|barrier| barrier.id));
        self.leaving.extend(ids.map(|id| (id, Taken::Refused)));
    }

    /// Whether the newest version of a page is in the buffer and has not been handed to the FTL.
    pub fn is_dirty(&self, lpn: u32) -> bool {
        let id = self.pages.find(lpn);
        id != NONE && self.pages.value(id).dirty
    }

    /// Returns the pages that have not been handed to the FTL, in ascending order.
    pub fn dirty(&self) -> Vec<u32> {
        let mut dirty: Vec<u32> = self.pages.keys().filter(|&lpn| self.is_dirty(lpn)).collect();
        dirty.sort_unstable();
        dirty
    }

    /// Loses all pages and commands because power is cut; only the counters remain.
    pub fn lose(&mut self) {
        let stats = self.stats;
        *self = Buffer::new(&self.own, self.around).expect("it is there");
        self.stats = stats;
    }
}

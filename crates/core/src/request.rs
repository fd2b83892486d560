//! Requests on their way through the stack: all in one slab, and referred to by ids instead of pointers.

mod paging;

use crate::util::{NONE, Slab};
use crate::workload::Op;
pub use paging::Paging;

/// Which half of a scheduler a request belongs to: reads, or everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Half {
    /// Reads.
    Read = 0,
    /// Writes, trims and flushes.
    Write = 1,
}

/// The LUNs that a request touches under static allocation (Cui et al., NPC 2016, eq. (1)): consecutive NAND
/// pages are on consecutive LUNs, and the first LUN follows the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First LUN.
    pub first: u32,
    /// Number of LUNs; at most all of them, 0 for a request that touches none.
    pub width: u32,
}

impl Window {
    /// Returns the LUNs in page order, for a device of `chips` LUNs in all.
    #[inline]
    pub fn members(self, chips: u32) -> impl Iterator<Item = u32> {
        (0..self.width).map(move |at| self.member(at, chips))
    }

    /// Calls `visit` for each LUN. Most windows have one LUN, for which a loop would cost more than the call.
    #[inline(always)]
    pub fn each(self, chips: u32, mut visit: impl FnMut(u32)) {
        match self.width {
            1 => visit(self.first),
            _ => self.members(chips).for_each(visit),
        }
    }

    /// Returns the LUN at this index of the window, for a device of `chips` LUNs in all.
    #[inline]
    pub fn member(self, at: u32, chips: u32) -> u32 {
        let chip = self.first + at;
        if chip >= chips { chip - chips } else { chip }
    }
}

/// The logical pages of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// First LPN.
    pub first: u32,
    /// Number of pages.
    pub pages: u32,
    /// Whether the first page is covered only in part.
    pub head_partial: bool,
    /// Whether the last page is covered only in part (for a one-page request, at either end).
    pub tail_partial: bool,
    /// Stream of the request ([`crate::workload::Record::stream`]); 0: none.
    pub stream: u16,
}

impl Pages {
    /// No pages.
    pub const NONE: Pages = Pages { first: 0, pages: 0, head_partial: false, tail_partial: false, stream: 0 };

    /// Returns the `count` pages that start at index `at`.
    pub fn part(self, at: u32, count: u32) -> Pages {
        Pages {
            first: self.first + at,
            pages: count,
            head_partial: self.head_partial && at == 0,
            tail_partial: self.tail_partial && at + count == self.pages,
            stream: self.stream,
        }
    }
}

/// What a request asks for besides its operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asks {
    /// Nothing.
    #[default]
    Nothing,
    /// The request is a write that completes when it would survive a power cut (force unit access).
    Fua,
    /// The request is a read that carries the mapping entry of each of its pages (HPB READ).
    Entries,
    /// The request reads mapping entries, not data (HPB READ BUFFER): it has no pages, its first page is that of the
    /// first entry, and its size is that of the entries.
    Map,
}

/// What the host tells the device about a request besides its pages. Schedulers that do not work on whole flash blocks
/// set only `asks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The request is part of a cooperative block issue: COOP_Query has announced it, so nothing has to be guessed.
    pub coop: bool,
    /// COOP_Issue for the logical block of the request's first page precedes the request.
    pub begin: bool,
    /// COOP_Complete for that logical block follows the request.
    pub end: bool,
    /// The request is padding: its pages are read, or written back unchanged, to make a block whole.
    pub pad: bool,
    /// What else the request asks for.
    pub asks: Asks,
}

impl Mark {
    /// Whether any mark is set.
    pub fn any(self) -> bool {
        self.coop | self.begin | self.end | self.pad | (self.asks != Asks::Nothing)
    }

    /// Whether the request is a write that completes when it would survive a power cut.
    pub fn fua(self) -> bool {
        self.asks == Asks::Fua
    }

    /// Whether the request carries mapping entries.
    pub fn has_entries(self) -> bool {
        self.asks == Asks::Entries
    }

    /// Whether the request reads mapping entries.
    pub fn reads_map(self) -> bool {
        self.asks == Asks::Map
    }
}

/// A mapping entry that the device has handed to the host. The host keeps it and sends it back, but cannot read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The slot of the logical page, or [`NONE`] if the page has no data.
    pub slot: u32,
    /// Which reading of the page's subregion has handed the entry out, from 1; 0: none has, so it is of no use.
    pub stamp: u32,
}

impl Entry {
    /// Size of an entry on the link and in the host's memory (`HPB_ENTRY_SIZE` of the Linux driver ufshpb).
    pub const BYTES: u64 = 8;
}

/// The part of a request that belongs to the host's scheduler and block layer; the device reads only the fields that it
/// needs for a prefetch.
#[derive(Clone, Copy, Debug)]
pub struct HostSide {
    /// Translation page of the first LPN.
    pub translation_page: u32,
    /// Whether the request was classified as a hit at admission.
    pub hit: bool,
    /// Whether the request is in the queue of a scheduler that forgets requests lazily.
    pub queued: bool,
    /// Whether the request was dispatched ahead of others by choice.
    pub prioritized: bool,
    /// Whether the request was dispatched because its deadline had passed.
    pub expired: bool,
    /// Whether the request is the first of a batch: the device prefetches for it and for the requests linked behind it.
    pub prefetch: bool,
    /// Whether the device read mappings from flash for the request; kept only if the host holds mapping entries.
    pub fetched: bool,
    /// Number of the request's batch in the host's scheduler, from 1; 0 if it has none.
    pub batch: u64,
    /// The slot in which the scheduler stores that batch, or the request's place in its order.
    pub slot: u32,
    /// The id of the whole request, stored in that request and in each of its parts, if the host has cut it; else
    /// [`NONE`].
    pub whole: u32,
    /// Number of this request's parts that have not completed, if the host has cut it.
    pub parts: u32,
}

/// What only the device keeps about a request.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSide {
    /// LUNs of the pages, once the device has the request; none for a flush.
    pub luns: Window,
    /// Number of flash steps that have not finished.
    pub steps_left: u32,
}

/// A request between its admission and its completion.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Number of the request, from 1 in trace order.
    pub id: u64,
    /// Arrival at the host, ns.
    pub arrival_ns: u64,
    /// Time at which the request was handed to the device, ns.
    pub dispatch_ns: u64,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
    /// Operation.
    pub op: Op,
    /// Logical pages (none for a flush, nor for a trim that covers no whole page).
    pub pages: Pages,
    /// What the host tells the device besides the pages.
    pub mark: Mark,
    /// Number of mapping-cache misses.
    pub misses: u32,
    /// Whether a read-only device refused the request, or part of it.
    pub failed: bool,
    /// Number of the device's own task that issued the request; 0 if it came from the host, 255 if it came by way of
    /// the controller ([`crate::device::own`], [`crate::device::controller`]).
    pub task: u8,
    /// Depends on the feed of the host: for a replayed request, the number of others that became part of it (in
    /// dependent replay, an id of the feed's); from the file host, its first block I/O; submitted, its last submission.
    pub tag: u32,
    /// What the host keeps about the request.
    pub host: HostSide,
    /// What the device keeps about the request.
    pub device: DeviceSide,
    links: [[u32; 2]; 2],
}

/// All requests in flight.
pub type Pool = Slab<Request>;

impl Pool {
    /// Returns the request behind `id` in its queue, or [`NONE`].
    #[inline]
    pub fn behind(&self, id: u32) -> u32 {
        self[id].links[QUEUE][1]
    }

    /// Returns the request that arrived next after `id`, if ages are kept, or [`NONE`].
    #[inline]
    pub fn younger(&self, id: u32) -> u32 {
        self[id].links[AGE][1]
    }
}

impl Request {
    /// Returns the half that the request belongs to.
    #[inline]
    pub fn half(&self) -> Half {
        if self.op == Op::Read { Half::Read } else { Half::Write }
    }

    /// Makes a request that has just arrived and is in no queue.
    #[inline(always)] // so that it is built in place
    pub fn new(id: u64, arrival_ns: u64, op: Op, offset: u64, size: u64, pages: Pages) -> Request {
        Request {
            id,
            arrival_ns,
            dispatch_ns: 0,
            offset,
            size,
            op,
            pages,
            mark: Mark::default(),
            misses: 0,
            failed: false,
            task: 0,
            tag: 0,
            host: HostSide {
                translation_page: NONE,
                hit: false,
                queued: false,
                prioritized: false,
                expired: false,
                prefetch: false,
                fetched: false,
                batch: 0,
                slot: NONE,
                whole: NONE,
                parts: 0,
            },
            device: DeviceSide { luns: Window { first: 0, width: 0 }, steps_left: 0 },
            links: [[NONE; 2]; 2],
        }
    }
}

#[cfg(test)]
impl Request {
    /// Makes a request of whole pages of 4 KiB, for tests of schedulers.
    pub fn of_pages(op: Op, first: u32, pages: u32) -> Request {
        let range = Pages { first, pages, ..Pages::NONE };
        Request::new(1, 0, op, u64::from(first) * 4096, u64::from(pages) * 4096, range)
    }
}

const QUEUE: usize = 0;
const AGE: usize = 1;

/// The queue in which a scheduler keeps a request.
pub type Queue = Links<QUEUE>;
/// A queue in order of arrival, either of all pending requests or of all requests that wait in the device.
pub type Ages = Links<AGE>;

/// A first-in first-out queue linked through the requests of a [`Pool`].
#[derive(Clone, Copy, Debug)]
pub struct Links<const KIND: usize> {
    head: u32,
    tail: u32,
    len: u32,
}

impl<const KIND: usize> Default for Links<KIND> {
    fn default() -> Self {
        Links { head: NONE, tail: NONE, len: 0 }
    }
}

impl<const KIND: usize> Links<KIND> {
    /// Returns the first request, or [`NONE`].
    #[inline]
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Returns the number of requests.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no requests.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Appends a request that is in no queue of this kind.
    #[inline]
    pub fn push(&mut self, id: u32, pool: &mut Pool) {
        pool[id].links[KIND] = [self.tail, NONE];
        match self.tail {
            NONE => self.head = id,
            tail => pool[tail].links[KIND][1] = id,
        }
        self.tail = id;
        self.len += 1;
    }

    /// Removes and returns the first request. Its link to the request behind it stays readable ([`Pool::behind`]).
    #[inline(always)] // for every request
    pub fn pop(&mut self, pool: &mut Pool) -> Option<u32> {
        let id = self.head;
        if id == NONE {
            return None;
        }
        self.head = pool[id].links[KIND][1];
        match self.head {
            NONE => self.tail = NONE,
            head => pool[head].links[KIND][0] = NONE,
        }
        self.len -= 1;
        Some(id)
    }

    /// Checks the links in both directions, and the order of arrival; `of` must return true for each request. Returns
    /// the length.
    pub(crate) fn verify(&self, pool: &Pool, of: impl Fn(&Request) -> bool) -> Result<u32, String> {
        let (mut id, mut before, mut count) = (self.head, NONE, 0);
        while id != NONE && count <= self.len {
            let request = &pool[id];
            let place = format!("request {} at {count} of a queue of {}", request.id, self.len);
            if request.links[KIND][0] != before {
                return Err(format!("{place}: its link back is broken"));
            }
            if before != NONE && pool[before].id > request.id {
                return Err(format!("{place}: it is behind request {}", pool[before].id));
            }
            if !of(request) {
                return Err(format!("{place}: it does not belong there"));
            }
            (before, id, count) = (id, request.links[KIND][1], count + 1);
        }
        if (before, id, count) != (self.tail, NONE, self.len) {
            return Err(format!("a queue of {} holds {count} or more requests", self.len));
        }
        Ok(count)
    }

    /// Removes a request from anywhere in the queue.
    #[inline]
    pub fn unlink(&mut self, id: u32, pool: &mut Pool) {
        let [prev, next] = pool[id].links[KIND];
        match prev {
            NONE => self.head = next,
            prev => pool[prev].links[KIND][1] = next,
        }
        match next {
            NONE => self.tail = prev,
            next => pool[next].links[KIND][0] = prev,
        }
        self.len -= 1;
    }
}

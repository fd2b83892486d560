//! Writes that have no die yet, under `direct` with dynamic allocation.
//!
//! A write is divided into its logical pages, which wait in order of arrival. While a die is free the oldest
//! of them is bound to it and begins. If a read or a trim has a page that an earlier, waiting write is going
//! to write, that page waits until the write is bound, and goes right behind it; the other pages do not wait.
//! Pages that wait have not reached the FTL: the mapping is unchanged.
//!
//! What has waited longest goes first: pages to be bound, then requests that have arrived.

use super::{Array, Part, Space};
use crate::flash::Work;
use crate::ftl::Locate;
use crate::request::{Ages, Pages, Pool};
use crate::util::{Bits, Chain, Linked, NONE, Neighbours, Slab};
use crate::workload::Op;

/// A waiting page: of a write that waits for a die, or of another request that waits for a page of a write.
#[derive(Clone, Copy, Debug)]
struct Page {
    request: u32,
    /// The page's index in the request.
    at: u32,
    /// The page's neighbours in its list.
    order: Neighbours,
    /// The pages that wait for this one.
    readers: Chain,
}

impl Linked for Page {
    fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.order
    }
}

/// The waiting pages.
#[derive(Clone, Debug)]
pub(super) struct Unbound {
    pages: Slab<Page>,
    /// Pages that are to be written and have no die yet.
    writes: Chain,
    /// Pages of other requests that waited for a write that has just been bound.
    released: Chain,
    /// For each LPN, the newest page in `writes` that writes it, or [`NONE`].
    newest: Vec<u32>,
    /// The request, not a write, that is being divided, and its first page that has neither issued nor begun to wait.
    divided: Option<(u32, u32)>,
    /// LUNs that were not free when last checked.
    taken: Bits,
    luns: u32,
    part: Option<Part>,
}

impl Unbound {
    pub(super) fn new(space: &Space) -> Unbound {
        let luns = space.chips();
        Unbound {
            pages: Slab::default(),
            writes: Chain::default(),
            released: Chain::default(),
            newest: vec![NONE; space.pages as usize],
            divided: None,
            taken: Bits::new(luns as usize),
            luns,
            part: None,
        }
    }

    /// Returns which part of the request returned by `next` issues; `None` means all of it. Passes the dies that are
    /// taken to `work`.
    pub(super) fn part(&self, work: &mut Work) -> Option<Part> {
        work.set_busy(&self.taken);
        self.part
    }

    /// See [`super::Scheduler::next`].
    pub(super) fn next(
        &mut self,
        waiting: &mut Ages,
        array: &Array,
        ftl: &(impl Locate + ?Sized),
        pool: &mut Pool,
    ) -> Option<u32> {
        if self.released.head != NONE {
            let Page { request, at, .. } = take(&mut self.released, &mut self.pages);
            return Some(self.hand_out(request, Part::Pages { at, count: 1 }));
        }
        if let Some(id) = self.divide(pool) {
            return Some(id);
        }
        if self.writes.head != NONE && self.finds_die(array, ftl) {
            return Some(self.bind(pool));
        }
        let id = waiting.head();
        if id == NONE {
            return None;
        }
        let (op, Pages { first, pages, .. }) = (pool[id].op, pool[id].pages);
        match op {
            Op::Flush if self.writes.head != NONE || !array.all_idle() => return None,
            Op::Write => (0..pages).for_each(|at| self.wait_for_die(id, at, first + at)),
            _ if (first..first + pages).any(|lpn| self.newest[lpn as usize] != NONE) => {
                self.divided = Some((id, 0));
            }
            _ => {
                self.part = None;
                return waiting.pop(pool);
            }
        }
        waiting.pop(pool).map(|id| self.hand_out(id, Part::Begin))
    }

    fn hand_out(&mut self, id: u32, part: Part) -> u32 {
        self.part = Some(part);
        id
    }

    fn wait(&mut self, request: u32, at: u32) -> u32 {
        self.pages.insert(Page { request, at, order: Neighbours::NONE, readers: Chain::default() })
    }

    fn wait_for_die(&mut self, id: u32, at: u32, lpn: u32) {
        let page = self.wait(id, at);
        self.writes.push_tail(page, self.pages.all());
        self.newest[lpn as usize] = page;
    }

    /// Hands out the oldest page that waits for a die; the pages that waited for that page go next.
    fn bind(&mut self, pool: &Pool) -> u32 {
        let page = self.writes.head;
        let Page { request, at, readers, .. } = take(&mut self.writes, &mut self.pages);
        let newest = &mut self.newest[(pool[request].pages.first + at) as usize];
        if *newest == page {
            *newest = NONE;
        }
        self.released = readers;
        self.hand_out(request, Part::Pages { at, count: 1 })
    }

    /// Divides the request further: pages that a waiting write is going to write wait for that write, and the next
    /// pages that wait for nothing are handed out, if there are any.
    fn divide(&mut self, pool: &Pool) -> Option<u32> {
        let (id, mut at) = self.divided?;
        let Pages { first, pages, .. } = pool[id].pages;
        while at < pages {
            let write = self.newest[(first + at) as usize];
            if write == NONE {
                break;
            }
            let page = self.wait(id, at);
            let mut readers = self.pages[write].readers;
            readers.push_tail(page, self.pages.all());
            self.pages[write].readers = readers;
            at += 1;
        }
        let ready = |at: &u32| self.newest[(first + at) as usize] == NONE;
        let count = (at..pages).take_while(ready).count() as u32;
        self.divided = (at + count < pages).then_some((id, at + count));
        (count > 0).then(|| self.hand_out(id, Part::Pages { at, count }))
    }

    /// Whether a page could be bound now.
    fn finds_die(&mut self, array: &Array, ftl: &(impl Locate + ?Sized)) -> bool {
        array.taken(self.luns, &mut self.taken);
        ftl.finds_room(&self.taken)
    }
}

/// Takes the first page of a list.
fn take(list: &mut Chain, pages: &mut Slab<Page>) -> Page {
    let first = list.head;
    list.unlink(first, pages.all());
    pages.release(first);
    pages[first]
}

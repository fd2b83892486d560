//! The order in which pages leave the buffer.
//!
//! Each LUN has a list of the pages that are to leave next, oldest first. Of each list, the pages of only one program
//! are on their way to the flash at a time, so that they do not fill the LUN's queue; where the FTL chooses the LUN,
//! there is a single list, and the pages of as many programs as there are LUNs may be on their way. Under policy
//! `block`, each logical block has a list of its pages, and once the lists of the LUNs are empty, the pages of the
//! fullest block move to them. Of several equally full blocks, the one that has been that full for longest is taken.
//! Policy `sorted` is the same with a single block, the whole device.

use super::settings::{Around, Policy};
use crate::ftl::Locate;
use crate::util::{Bits, List, Lru, NONE};

/// What the buffer knows about a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    /// Whether the newest version waits to be handed to the FTL.
    pub dirty: bool,
    /// Number of the room that the newest version took.
    pub room: u64,
    /// Number of versions that are on their way to the flash.
    pub flights: u32,
    /// Whether the page was trimmed, or overwritten past the buffer.
    pub dropped: bool,
    /// Whether only a part of the page was written, and the rest is to be read from flash.
    pub partial: bool,
    /// Stream of the newest version.
    pub stream: u16,
    /// The list of the page's LUN.
    list: u32,
    /// Whether the page is in the list of its logical block.
    in_block: bool,
}

/// Logical blocks with pages in the buffer.
#[derive(Debug)]
struct Blocks {
    pages: u32,
    /// The list of each block's pages, by number of the block.
    held: Lru<List>,
    /// The blocks that have a given number of pages, by that number.
    with: Vec<List>,
    /// Upper bound on the number of pages of a block.
    most: usize,
}

/// The lists in which the pages wait.
#[derive(Debug)]
pub(super) struct Order {
    policy: Policy,
    /// Logical pages that fill a NAND page.
    unit: u32,
    /// Whether the FTL chooses the LUN of a page.
    dynamic: bool,
    ready: Vec<List>,
    /// Number of pages of each list that are on their way to the flash, and the number at which a list hands out no
    /// more.
    out: Vec<u32>,
    bound: u32,
    taken: Bits,
    /// The lists that are not empty.
    some: Bits,
    /// The lists with enough pages to fill a NAND page.
    full: Bits,
    blocks: Option<Blocks>,
}

impl Order {
    /// Makes the lists of a buffer with this `capacity` in pages.
    pub fn new(policy: Policy, around: Around, capacity: u32) -> Order {
        let Around { unit, luns, dynamic, .. } = around;
        let lists = if dynamic { 1 } else { luns };
        let pages = if policy == Policy::Sorted { around.pages } else { around.block };
        let with = vec![List::EMPTY; pages.min(capacity) as usize + 1];
        let blocks = Blocks { pages, held: Lru::new(None), with, most: 0 };
        Order {
            policy,
            unit,
            dynamic,
            ready: vec![List::EMPTY; lists as usize],
            out: vec![0; lists as usize],
            bound: if dynamic { luns * unit } else { 1 },
            taken: Bits::new(lists as usize),
            some: Bits::new(lists as usize),
            full: Bits::new(lists as usize),
            blocks: matches!(policy, Policy::Block | Policy::Sorted).then_some(blocks),
        }
    }

    /// Adds a page that is in no list.
    pub fn add(&mut self, id: u32, pages: &mut Lru<Kept>, ftl: &impl Locate) {
        let lpn = pages.key(id);
        pages.value_mut(id).list = if self.dynamic { 0 } else { ftl.home_lun(lpn) };
        match &mut self.blocks {
            None => self.ready(id, pages),
            Some(blocks) => {
                pages.value_mut(id).in_block = true;
                blocks.change(lpn, |list| pages.push_head(list, id));
            }
        }
    }

    /// Under policy `lru`, makes a page the most recently written one.
    pub fn touch(&mut self, id: u32, pages: &mut Lru<Kept>) {
        if self.policy == Policy::Lru {
            let list = pages.value(id).list;
            pages.touch(&mut self.ready[list as usize], id);
        }
    }

    /// Removes a page.
    pub fn remove(&mut self, id: u32, pages: &mut Lru<Kept>) {
        let Kept { list, in_block, .. } = *pages.value(id);
        if let (Some(blocks), true) = (&mut self.blocks, in_block) {
            let lpn = pages.key(id);
            pages.value_mut(id).in_block = false;
            return blocks.change(lpn, |list| pages.unlink(list, id));
        }
        let of = &mut self.ready[list as usize];
        pages.unlink(of, id);
        if of.len == 0 {
            self.some.clear(list);
        }
        if of.len + 1 == self.unit {
            self.full.clear(list);
        }
    }

    /// Returns the pages of a list, oldest first.
    pub fn next(&self, list: u32, pages: &Lru<Kept>) -> impl Iterator<Item = u32> {
        let some = |id: u32| (id != NONE).then_some(id);
        std::iter::successors(some(self.ready[list as usize].tail), move |&id| some(pages.newer(id)))
    }

    /// Removes and returns the oldest page of a list, which is now on its way to the flash.
    pub fn pop(&mut self, list: u32, pages: &mut Lru<Kept>) -> Option<u32> {
        let id = self.ready[list as usize].tail;
        if id == NONE {
            return None;
        }
        self.remove(id, pages);
        self.out[list as usize] += 1;
        if self.out[list as usize] >= self.bound {
            self.taken.set(list);
        }
        Some(id)
    }

    /// Notes that a page is no longer on its way to the flash.
    pub fn arrived(&mut self, id: u32, pages: &Lru<Kept>) {
        let list = pages.value(id).list;
        self.out[list as usize] -= 1;
        if self.out[list as usize] < self.bound {
            self.taken.clear(list);
        }
    }

    /// Returns the first list that may hand out a page: one with enough pages to fill a NAND page (with `hurried`, or
    /// under policy `block` or `sorted`, one that is not empty) of which not too many pages are on their way.
    pub fn next_list(&mut self, hurried: bool, pages: &mut Lru<Kept>) -> Option<u32> {
        let lists = self.ready.len() as u32;
        if self.some.next_set(0, lists).is_none() {
            self.choose_block(pages);
        }
        let wanted = if hurried || self.blocks.is_some() { &self.some } else { &self.full };
        wanted.next_clear_of(&self.taken, 0, lists)
    }

    /// Moves the pages of the fullest block to the lists of their LUNs, in the order of the page numbers.
    fn choose_block(&mut self, pages: &mut Lru<Kept>) {
        let Some(list) = self.blocks.as_mut().and_then(Blocks::take) else { return };
        let mut ids = Vec::with_capacity(list.len as usize);
        pages.each(list, &mut |id| ids.push(id));
        ids.sort_unstable_by_key(|&id| pages.key(id));
        for id in ids {
            pages.value_mut(id).in_block = false;
            self.ready(id, pages);
        }
    }

    fn ready(&mut self, id: u32, pages: &mut Lru<Kept>) {
        let list = pages.value(id).list;
        let of = &mut self.ready[list as usize];
        pages.push_head(of, id);
        if of.len == 1 {
            self.some.set(list);
        }
        if of.len == self.unit {
            self.full.set(list);
        }
    }
}

impl Blocks {
    /// Changes the list of a page's block, and moves the block to its new place among the blocks.
    fn change(&mut self, lpn: u32, change: impl FnOnce(&mut List)) {
        let block = lpn / self.pages;
        let mut at = self.held.find(block);
        if at == NONE {
            at = self.held.insert(block, List::EMPTY);
        } else {
            let len = self.held.value(at).len;
            self.held.unlink(&mut self.with[len as usize], at);
        }
        change(self.held.value_mut(at));
        let len = self.held.value(at).len as usize;
        if len == 0 {
            return self.held.remove(at);
        }
        self.held.push_head(&mut self.with[len], at);
        self.most = self.most.max(len);
    }

    /// Takes the pages of the fullest block.
    fn take(&mut self) -> Option<List> {
        while self.most > 0 && self.with[self.most].len == 0 {
            self.most -= 1;
        }
        let at = self.with[self.most].tail;
        (at != NONE).then(|| {
            self.held.unlink(&mut self.with[self.most], at);
            let list = *self.held.value(at);
            self.held.remove(at);
            list
        })
    }
}

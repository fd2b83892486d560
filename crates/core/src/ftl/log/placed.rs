//! What a log asks its placement ([`crate::ftl::placement`]), and what it reports to it.
//!
//! If fronts are classes of data, a page's front follows from the page. If they are the speeds of blocks ("by speed"),
//! the placement chooses among the speeds for which there is a writable block; copies take erased blocks from the
//! reserve alone, and none while an open block is left.

use super::heads::{At, Heads};
use super::{Addresses, Stock};
use crate::flash::{Cause, Cells};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::placement::{FrontCount, ONE, Page, Policy, Space, Writable, needs};
use crate::ftl::settings::Settings;
use crate::util::NONE;

/// The placement, and what is kept to inform it.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(super) policy: Policy,
    pub(super) by_speed: bool,
    /// Whether all pages share the first front, beside that of the SLC cache, so that the policy need not be asked.
    pub(super) one: bool,
    /// Number of fronts, that of the SLC cache included.
    pub(super) fronts: u32,
    /// When each page was written, counted in writes of the log; empty unless the placement needs ages.
    pub(super) written: Vec<u64>,
    /// Front of each block, and when the block was opened, counted in writes of the log.
    pub(super) opened: Vec<(u32, u64)>,
    /// For each front, the pages that were written and moved there in this run, unless fronts are speeds.
    pub(super) counts: Vec<(u64, u64)>,
    /// For each logical page, the front to which its version in the SLC cache will be folded; empty if there is only
    /// one.
    pub(super) kept: Vec<u8>,
}

/// The blocks of a LUN from which a placement by speed chooses.
struct BySpeed<'a> {
    lun: u32,
    writable: u64,
    /// The block that is being filled and its speed class, if there is one.
    open: Option<(u32, u32)>,
    heads: &'a Heads,
    pool: &'a BlockPool,
    of: &'a Addresses,
}

impl Writable for BySpeed<'_> {
    fn fronts(&self) -> u64 {
        self.writable
    }

    fn first(&self, front: u32) -> (u32, u32) {
        let waits = &self.heads[waiting(self.lun, front)];
        let block = match self.open {
            Some((block, class)) if class == front => block,
            _ if !waits.is_full() => self.of.block(waits.next),
            _ => self.pool.first_of_class(self.lun, front),
        };
        (block, self.pool.place_in_order(block))
    }
}

/// Returns a page of an owner about which the placement is asked without a version that it replaces.
pub(super) fn page(lun: u32, lpn: u32, cause: Cause) -> Page {
    Page { lun, lpn, cause, stream: 0, age: u64::MAX, from: None, hurried: false }
}

/// Returns the head of the block of a speed class that waits.
fn waiting(lun: u32, class: u32) -> At {
    At { lun, head: class + 1 }
}

/// What a placement by classes of data may choose from: any front, since each has a block of its own.
struct Any;

impl Writable for Any {
    fn fronts(&self) -> u64 {
        u64::MAX
    }

    fn first(&self, _front: u32) -> (u32, u32) {
        (NONE, 0)
    }
}

impl Placed {
    /// Makes the placement of this name for the log of these addresses. If it chooses by speed, the pool must already
    /// keep its erased blocks sorted by the speed of these cells.
    pub(crate) fn new(name: &str, of: &Addresses, settings: &Settings, cells: Option<&Cells>) -> Placed {
        let (pages, needs) = (of.shape.pages(), needs(name));
        let space = Space { luns: of.shape.luns, pages, fronts: settings.ftl.fronts };
        let policy = Policy::new(name, &settings.ftl.placements, space);
        let speeds = || cells.and_then(Cells::speeds).map_or(1, |speeds| speeds.classes());
        let own = if needs.speeds { speeds() } else { policy.fronts() };
        let cache = of.shape.slc_most > 0;
        let fronts = own + u32::from(cache);
        Placed {
            policy,
            by_speed: needs.speeds,
            one: name == ONE,
            fronts,
            written: vec![0; if needs.ages { pages as usize } else { 0 }],
            opened: vec![(0, 0); of.blocks() as usize],
            counts: vec![(0, 0); fronts as usize],
            kept: vec![0; if cache && own > 1 { pages as usize } else { 0 }],
        }
    }

    /// Returns what went to each front in this run; empty if there is one front, or if fronts are speeds.
    pub(super) fn front_counts(&self, heads: &Heads) -> Vec<FrontCount> {
        if self.fronts == 1 || self.by_speed {
            return Vec::new();
        }
        let name = |front| match heads.has_gap(front) {
            true => "slc".to_owned(),
            false => self.policy.front_name(front),
        };
        let count = |(front, &(written, moved))| FrontCount { name: name(front), written, moved };
        (0..).zip(&self.counts).map(count).collect()
    }

    /// Returns the front of an owner's version in a block; of a cached version, the front to which it will be folded.
    pub(super) fn front_in(&self, stock: &Stock, owner: u32, block: u32) -> u32 {
        match stock.blocks[block].slc {
            true => self.kept.get(owner as usize).map_or(0, |&front| front.into()),
            false => self.opened[block as usize].0,
        }
    }

    /// Returns how long ago an owner was written, counted in writes of the log; `u64::MAX` if that is not known.
    fn age(&self, stock: &Stock, owner: u32) -> u64 {
        self.written.get(owner as usize).map_or(u64::MAX, |at| stock.writes - at)
    }

    /// Tells the placement that the version in slot `old`, if there is one, becomes invalid.
    pub(super) fn invalidated(&mut self, of: &Addresses, stock: &Stock, owner: u32, old: u32) {
        if !self.one && old != NONE && owner < of.shape.pages() {
            let front = self.front_in(stock, owner, of.block(old));
            self.policy.invalidated(owner, front, self.age(stock, owner));
        }
    }

    /// Tells the placement that a block is collected.
    pub(super) fn collected(&mut self, stock: &Stock, block: u32) {
        let (front, opened) = self.opened[block as usize];
        self.policy.collected(front, stock.writes - opened);
    }

    /// Returns the front of a page's next version or copy, which replaces or copies the version in slot `old`, if there
    /// is one; for trim pages it is the first front.
    pub(super) fn front(&mut self, of: &Addresses, stock: &Stock, old: u32, mut page: Page) -> u32 {
        if self.one || page.lpn >= of.shape.pages() {
            return 0;
        }
        if old != NONE {
            page.from = Some(self.front_in(stock, page.lpn, of.block(old)));
            page.age = self.age(stock, page.lpn);
        }
        let front = self.policy.front(page, &Any);
        assert!(front < self.fronts, "ftl.placement: front {front} of {}", self.fronts);
        front
    }

    /// Chooses by speed the block of a LUN that is filled next, unless there is no block to choose, and makes it the
    /// one at the first head; returns the class if it is to be an erased block. Erased blocks are among the choices
    /// only if `erased` is true.
    pub(super) fn turn(
        &mut self,
        (of, stock, heads): (&Addresses, &Stock, &mut Heads),
        (pool, cells): (&BlockPool, &Cells),
        page: Page,
        erased: bool,
    ) -> Option<u32> {
        let (lun, first) = (page.lun, At::first(page.lun));
        let open = Some(heads[first]).filter(|rest| !rest.is_full()).map(|rest| of.block(rest.next));
        let open = open.map(|block| (block, pool.class(block, cells)));
        let waits = (0..self.fronts).filter(|&class| !heads[waiting(lun, class)].is_full());
        let partly = waits.fold(open.map_or(0, |(_, class)| 1u64 << class), |set, class| set | 1 << class);
        let may_take = erased && stock.held(lun) < of.shape.limit;
        let writable = partly | if may_take { pool.free_classes(lun) } else { 0 };
        if writable == 0 {
            return None;
        }
        let class = self.policy.front(page, &BySpeed { lun, writable, open, heads, pool, of });
        match open {
            Some((_, active)) if active == class => return None,
            Some((_, active)) => {
                debug_assert!(heads[waiting(lun, active)].is_full(), "a speed has one open block that waits");
                heads[waiting(lun, active)] = heads.take(first);
            }
            None => (),
        }
        if partly >> class & 1 == 0 {
            return Some(class);
        }
        heads[first] = heads.take(waiting(lun, class));
        None
    }
}

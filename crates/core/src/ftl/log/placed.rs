//! Which front of its LUN takes a page: what the log asks its placement ([`crate::ftl::placement`]), and what the log
//! reports to it.
//!
//! If fronts are classes of data, a page's front follows from the page, and the front's open block becomes the
//! frontier. If fronts are the speeds of blocks ("by speed"), the placement chooses among the speeds for which there
//! is a writable block; copies take erased blocks from the reserve alone, and none while an open block is left.

use super::fronts::Fronts;
use super::run::Run;
use super::{Addresses, Log, Under};
use crate::flash::variation::Speeds;
use crate::flash::{Cause, Cells, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::placement::{FrontCount, MOST_FRONTS, ONE, Page, Policy, Space, Writable, needs};
use crate::ftl::settings::Settings;
use crate::ftl::slots::Slots;
use crate::util::{NONE, Stat, memory};

/// The placement, and what is kept to inform it.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) policy: Policy,
    pub(super) by_speed: bool,
    /// Whether all pages share the first front, beside that of the SLC cache, so that the policy need not be asked.
    one: bool,
    pub(super) fronts: u32,
    /// Front of each LUN's frontier, unless fronts are speeds.
    pub(super) active: Vec<u32>,
    /// When each page was written, counted in writes of the log; empty unless the placement needs ages.
    pub(super) written: Vec<u64>,
    /// Front of each block, and when the block was opened, counted in writes of the log.
    pub(super) opened: Vec<(u32, u64)>,
    /// For each front, the pages that were written and moved there in this run, unless fronts are speeds.
    pub(super) counts: Vec<(u64, u64)>,
    /// Copies while they are being sorted: the front, the current slot and the owner of each.
    copies: Vec<(u32, u32, u32)>,
    /// The sorted copies as runs, the last run first: the front of each run, and the number of its copies. The number 0
    /// stands for all copies that are left, which go wherever there is a block.
    runs: Vec<(u32, u32)>,
}

/// The blocks of a LUN from which a placement by speed chooses.
struct BySpeed<'a> {
    lun: u32,
    writable: u64,
    /// The block of the frontier and its speed class, unless the frontier is full.
    open: Option<(u32, u32)>,
    fronts: &'a Fronts,
    pool: &'a BlockPool,
    addresses: &'a Addresses,
}

impl Writable for BySpeed<'_> {
    fn fronts(&self) -> u64 {
        self.writable
    }

    #[inline]
    fn first(&self, front: u32) -> (u32, u32) {
        let block = match self.open {
            Some((block, class)) if class == front => block,
            _ if self.fronts.waits(self.lun, front) => {
                self.addresses.block(self.fronts.next(self.lun, front))
            }
            _ => self.pool.first_of_class(self.lun, front),
        };
        (block, self.pool.place_in_order(block))
    }
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

impl Log {
    /// Lets the placement of this name say where pages go. If it chooses by speed, the pool must already keep
    /// its erased blocks sorted by the speed of these cells.
    pub(crate) fn place_by(&mut self, name: &str, settings: &Settings, cells: Option<&Cells>) {
        let (luns, pages, needs) = (self.shape.luns, self.pages(), needs(name));
        let space = Space { luns, pages, fronts: settings.ftl.fronts };
        let policy = Policy::new(name, &settings.ftl.placements, space);
        let speeds = || cells.and_then(Cells::speeds).map_or(1, Speeds::classes);
        let own = if needs.speeds { speeds() } else { policy.fronts() };
        if self.shape.slc_most > 0 {
            self.make_cache(settings, own);
        }
        let fronts = own + u32::from(self.slc.is_some());
        self.fronts = Fronts::new(luns, fronts, needs.speeds);
        if self.shape.slots_per_page > 1 {
            assert!(!needs.speeds, "a page is filled by one write");
            self.cursor.luns = (0..fronts).map(|front| front % luns).collect();
        }
        self.chooses = true;
        self.placed = Some(Box::new(Placed {
            policy,
            by_speed: needs.speeds,
            one: name == ONE,
            fronts,
            active: vec![0; luns as usize],
            written: vec![0; if needs.ages { pages as usize } else { 0 }],
            opened: vec![(0, 0); self.blocks.len()],
            counts: vec![(0, 0); fronts as usize],
            copies: Vec::with_capacity(self.addresses.space.slots_per_block as usize),
            runs: Vec::with_capacity(fronts as usize + 1),
        }));
    }

    /// Returns the placement's own figures.
    pub(crate) fn placement_stats(&self) -> Vec<Stat> {
        self.placed.as_ref().map_or(Vec::new(), |placed| placed.policy.stats())
    }

    /// Returns what went to each front in this run; empty if there is one front, or if fronts are speeds.
    pub(crate) fn front_counts(&self) -> Vec<FrontCount> {
        let Some(placed) = self.placed.as_ref().filter(|placed| placed.fronts > 1 && !placed.by_speed) else {
            return Vec::new();
        };
        let name = |front| match self.is_cache(front) {
            true => "slc".to_owned(),
            false => placed.policy.front_name(front),
        };
        let count = |(front, &(written, moved))| FrontCount { name: name(front), written, moved };
        (0..).zip(&placed.counts).map(count).collect()
    }

    /// Whether the placement chooses blocks by their speed.
    pub(super) fn is_by_speed(&self) -> bool {
        self.placed.as_ref().is_some_and(|placed| placed.by_speed)
    }

    /// Does what [`Log::append`] does where there is a placement.
    #[inline(never)] // keeps the path of most writes short
    pub(super) fn append_placed(
        &mut self,
        under: &mut Under,
        lun: u32,
        owner: u32,
        cause: Cause,
        moved: &mut impl FnMut(u32),
    ) {
        self.face(under, lun, owner, cause, moved);
        if self.luns[lun as usize].is_full() {
            self.open_frontier(under, lun, moved);
        }
        let old = self.renew(under.slots, owner);
        let slot = self.place(under.slots, lun, owner);
        self.leave_line(under.slots, lun);
        self.program_placed(under.work, (lun, cause), (owner, old), (slot, self.luns[lun as usize].next));
    }

    /// Turns a LUN to the front that takes an owner's next version, if there is a placement, and sees to it that there
    /// is room.
    #[inline(never)] // keeps the path of most writes short
    pub(super) fn face(
        &mut self,
        under: &mut Under,
        lun: u32,
        owner: u32,
        cause: Cause,
        moved: &mut impl FnMut(u32),
    ) {
        if self.is_by_speed() {
            let hurried = under.work.hurries(lun);
            return self.choose_frontier(under, lun, hurried, true);
        }
        let front = match self.shape.slots_per_page {
            1 => {
                let front = self.asked(under.slots, lun, owner, cause, under.work);
                self.cached_front(under, lun, (owner, front), moved)
            }
            _ => self.cursor.front,
        };
        self.turn_to(lun, front);
        if self.luns[lun as usize].is_full() {
            self.open_frontier(under, lun, moved);
        }
        let (placed, now) = (self.placed.as_mut().expect("one is asked"), self.writes);
        placed.counts[front as usize].0 += 1;
        // Until now, garbage collection may have copied the version that will be replaced.
        if let Some(at) = placed.written.get_mut(owner as usize) {
            *at = now;
        }
    }

    /// Returns the front of an owner's next version; the placement is told about the version that it replaces.
    pub(super) fn asked(&mut self, slots: &Slots, lun: u32, owner: u32, cause: Cause, work: &Work) -> u32 {
        let old = slots.of(owner);
        self.tell_invalid(owner, old);
        self.front_of(lun, (owner, old), (cause, work.stream()), work.hurries(lun))
    }

    /// If slots are smaller than pages, turns to the page buffer of the front that takes an owner's next version; its
    /// LUN is that of the write.
    #[inline(always)] // called for every write
    pub(crate) fn choose_buffer(
        &mut self,
        under: &mut Under,
        owner: u32,
        cause: Cause,
        moved: &mut dyn FnMut(u32),
    ) {
        if self.placed.is_some() {
            self.choose_buffer_of_front(under, owner, cause, moved);
        }
    }

    /// Tells the placement that the version in a slot, if there is one, becomes invalid.
    pub(super) fn tell_invalid(&mut self, owner: u32, old: u32) {
        if self.placed.as_ref().is_none_or(|placed| placed.one) || old == NONE {
            return;
        }
        let front = self.front_at(owner, old);
        if let Some(placed) = &mut self.placed
            && owner < self.shape.owners - self.shape.trim_pages
        {
            let age = placed.written.get(owner as usize).map_or(u64::MAX, |at| self.writes - at);
            placed.policy.invalidated(owner, front, age);
        }
    }

    /// Returns the front of an owner's next version or copy; `old` is its last slot. For trim pages it is the first front.
    fn front_of(
        &mut self,
        lun: u32,
        (owner, old): (u32, u32),
        (cause, stream): (Cause, u16),
        hurried: bool,
    ) -> u32 {
        if self.placed.as_ref().is_none_or(|placed| placed.one) || owner >= self.pages() {
            return 0;
        }
        let from = (old != NONE).then(|| self.front_at(owner, old));
        let Log { placed: Some(placed), writes, .. } = self else { return 0 };
        let known = placed.written.get(owner as usize).filter(|_| old != NONE);
        let age = known.map_or(u64::MAX, |at| *writes - at);
        let page = Page { lun, lpn: owner, cause, stream, age, from, hurried };
        let front = placed.policy.front(page, &Any);
        assert!(front < placed.fronts, "ftl.placement: front {front} of {}", placed.fronts);
        front
    }

    /// Counts pages that were moved into the frontier of a LUN.
    pub(super) fn count_moved(&mut self, lun: u32, pages: u32) {
        if let Some(placed) = &mut self.placed {
            placed.counts[placed.active[lun as usize] as usize].1 += u64::from(pages);
        }
    }

    /// Returns the front of a LUN's frontier.
    pub(super) fn active(&self, lun: u32) -> u32 {
        self.placed.as_ref().map_or(0, |placed| placed.active[lun as usize])
    }

    /// Makes the open block of a front, if it has one, the frontier.
    pub(super) fn turn_to(&mut self, lun: u32, front: u32) {
        let Some(placed) = &mut self.placed else { return };
        let was = std::mem::replace(&mut placed.active[lun as usize], front);
        if was == front || placed.by_speed {
            return;
        }
        let at = &mut self.luns[lun as usize];
        if !at.is_full() {
            self.fronts.put(lun, was, at.next);
            at.next = at.end;
        }
        if self.fronts.waits(lun, front) {
            self.go_on(lun, front);
        }
    }

    /// Turns a LUN to the front of a copy that is made on its own. Once copies of a victim go into a block of the
    /// reserve, all later copies of that victim follow them.
    pub(super) fn face_copy(&mut self, slots: &Slots, lun: u32, owner: u32) {
        if self.placed.is_some() && !self.is_by_speed() && !self.is_short(lun) {
            let front = self.front_of(lun, (owner, slots.of(owner)), (self.shape.gc, 0), false);
            self.turn_to(lun, front);
        }
    }

    /// Sorts the copies of a victim by front. Copies for which their front's open block has no room come last,
    /// together, and take one erased block. `stated` says whether trim pages have just gone into the frontier.
    pub(super) fn sort_copies(
        &mut self,
        lun: u32,
        (cause, stated): (Cause, bool),
        leaving: &mut Vec<(u32, u32)>,
    ) {
        // Wear levelling fills the one block that it chose itself.
        let sorts = self.placed.is_some() && !self.is_by_speed();
        if !sorts || cause == Cause::Wear || self.is_short(lun) || leaving.is_empty() {
            return;
        }
        let mut room = [0; MOST_FRONTS as usize];
        for front in 0..self.fronts.of_lun() {
            let next = self.fronts.next(lun, front);
            if next != NONE && front < MOST_FRONTS {
                room[front as usize] = self.addresses.end(self.addresses.block(next)) - next;
            }
        }
        let at = &self.luns[lun as usize];
        // The page of a trim page is padded before copies of another front are made.
        let begun = if stated { self.addresses.in_page(at.next) } else { 0 };
        let padded = if begun > 0 { self.shape.slots_per_page - begun } else { 0 };
        room[self.active(lun) as usize] = at.end - at.next - padded;
        let placed = self.placed.as_mut().expect("one is asked");
        if placed.one {
            let (all, fits) = (leaving.len() as u32, room[0].min(leaving.len() as u32));
            placed.runs.extend((fits < all).then_some((0, 0)));
            return placed.runs.extend((fits > 0).then_some((0, fits)));
        }
        let (mut copies, mut over) = (std::mem::take(&mut placed.copies), 0);
        if let (Cause::Fold, Some(slc)) = (cause, &self.slc) {
            leaving.iter().for_each(|&(_, owner)| memory::fetch(&slc.kept, owner as usize));
        }
        for &(live, owner) in &*leaving {
            let mut front = match cause {
                Cause::Fold => self.front_at(owner, live),
                _ => self.front_of(lun, (owner, live), (cause, 0), false),
            };
            match &mut room[front as usize] {
                0 => over = std::mem::replace(&mut front, MOST_FRONTS),
                left => *left -= 1,
            }
            copies.push((front, live, owner));
        }
        leaving.clear();
        let placed = self.placed.as_mut().expect("one is asked");
        for front in (0..placed.fronts).chain([MOST_FRONTS]) {
            let before = leaving.len();
            let here = copies.iter().filter(|copy| copy.0 == front);
            leaving.extend(here.map(|&(_, live, owner)| (live, owner)));
            let count = (leaving.len() - before) as u32;
            if count > 0 {
                placed.runs.push(if front == MOST_FRONTS { (over, 0) } else { (front, count) });
            }
        }
        placed.runs.reverse();
        copies.clear();
        placed.copies = copies;
    }

    /// Turns a LUN to the front of the next run of sorted copies; returns the number of its copies, or `None` for all
    /// that are left.
    pub(super) fn next_run(&mut self, lun: u32, run: &mut Run, under: &mut Under) -> Option<u32> {
        let (front, count) = self.placed.as_mut()?.runs.pop()?;
        // Trim pages may have gone to the front already; the copies go on in their page.
        if front != self.active(lun) {
            self.note_copies(lun, run, under.work);
            if self.shape.slots_per_page > 1 {
                self.end_run(lun, run, under.slots);
            }
            self.turn_to(lun, front);
            run.begun = self.fills_page_of_host(lun);
        }
        (count > 0).then_some(count)
    }

    /// If the placement chooses by speed, makes the block that it chooses the frontier, unless there is no block to
    /// choose. Erased blocks are among the choices only if `erased` is true.
    pub(super) fn choose_frontier(&mut self, under: &mut Under, lun: u32, hurried: bool, erased: bool) {
        let Log { placed: Some(placed), fronts, luns, addresses, shape, .. } = self else { return };
        if !placed.by_speed {
            return;
        }
        let at = &mut luns[lun as usize];
        let open = (!at.is_full()).then(|| addresses.block(at.next));
        let open = open.map(|block| (block, under.pool.class(block, under.work.cells())));
        let partly = fronts.waiting(lun) | open.map_or(0, |(_, class)| 1u64 << class);
        let may_take = erased && at.held < shape.limit;
        let writable = partly | if may_take { under.pool.free_classes(lun) } else { 0 };
        if writable == 0 {
            return;
        }
        let cause = if erased { Cause::Host } else { shape.gc };
        let page = Page { lun, lpn: NONE, cause, stream: 0, age: u64::MAX, from: None, hurried };
        let class =
            placed.policy.front(page, &BySpeed { lun, writable, open, fronts, pool: under.pool, addresses });
        match open {
            Some((_, active)) if active == class => return,
            Some((_, active)) => fronts.put(lun, active, at.next),
            None => (),
        }
        if partly >> class & 1 != 0 {
            self.go_on(lun, class);
        } else {
            at.held += 1;
            let block = under.pool.take_class(lun, class);
            self.open(lun, block);
        }
    }
}

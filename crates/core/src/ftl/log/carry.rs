//! The one loop of copies: moves live slots of a block along the route.

use super::Shape;
use super::around::Under;
use super::heads::At;
use super::placed::page;
use super::writer::Writer;
use crate::flash::{Cause, Target, Work};
use crate::ftl::placement::MOST_FRONTS;
use crate::ftl::slots::Slots;
use crate::util::{NONE, memory};

/// The slots of a block, with their owners.
type Copies = Vec<(u32, u32)>;

/// Which block is moved, and how.
#[derive(Clone, Copy)]
pub(super) struct Move {
    /// The LUN of the block; 0 in a serial log.
    pub(super) lun: u32,
    pub(super) block: u32,
    pub(super) cause: Cause,
    /// How many pages are filled at most; `None`: all live slots are moved.
    pub(super) pages: Option<u32>,
}

/// Copies that go to one head, one after another.
pub(super) struct Run {
    at: At,
    /// Whether the host has begun the page into which the first copy goes.
    begun: bool,
    /// Whether there are any.
    pub(super) copies: bool,
    /// The fronts whose begun pages were filled with copies, as a bit set.
    hosts: u64,
    /// Slots that have been placed and are not yet named as targets; trim pages come first among them.
    slots: u32,
    /// Number of trim pages among these slots.
    trims: u32,
    /// In a serial log, the NAND page that was read last.
    read: u32,
}

/// What copies need while they are made.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    /// The live slots of the block being moved, with their owners.
    leaving: Copies,
    /// Copies while they are being sorted: the front, the current slot and the owner of each.
    sorted: Vec<(u32, u32, u32)>,
    /// The runs of sorted copies that are left, the last one first: the front of each, and the number of its copies. 0
    /// stands for all copies that are left, which go wherever there is a block.
    runs: Vec<(u32, u32)>,
}

impl Carrier {
    pub(super) fn new(slots_per_block: u32) -> Carrier {
        let slots = slots_per_block as usize;
        let runs = Vec::with_capacity(MOST_FRONTS as usize + 1);
        Carrier { leaving: Vec::with_capacity(slots), sorted: Vec::with_capacity(slots), runs }
    }

    /// Moves live slots of a block, as many as `what` says: the one loop of copies.
    pub(super) fn carry(&mut self, w: &mut Writer, under: &mut Under, (what, run): (Move, &mut Run)) {
        let Move { lun, block, cause, pages } = what;
        let Shape { serial, superblocks, .. } = *w.shape();
        let mut leaving = std::mem::take(&mut self.leaving);
        take_live(w, under.slots, what, run.at, &mut leaving);
        if pages.is_none() && cause != Cause::Wear {
            self.sort(w, cause, run, &mut leaving);
        }
        match serial {
            true => under.work.chain(),
            false => w.name_sources(&leaving, under.work),
        }
        w.turn_by_speed(under, lun, None);
        let mut rest = &leaving[..];
        while !rest.is_empty() {
            let sorted = self.next_run(w, under, (what, run), rest[0]);
            if w.heads[run.at].is_full() {
                run.note(w, under.work);
                w.next_for_copies(under, run.at, pages.is_some());
            }
            let most = sorted.unwrap_or_else(|| w.room_for_copies(run.at));
            let (copies, later) = rest.split_at(rest.len().min(most as usize));
            if serial {
                run.read_shares(w, under.work, cause, (copies.len(), rest));
            }
            w.place_copies(under, run.at, copies);
            run.slots += copies.len() as u32;
            run.copies = true;
            run.close(w, under.work, cause);
            rest = later;
        }
        self.leaving = leaving;
        run.note(w, under.work);
        run.end(w, under, cause);
        let waits = superblocks.is_some() && under.work.has_targets();
        under.work.copy(lun, cause);
        if waits {
            // The copies from a superblock go to several LUNs, and must be there before it is erased.
            w.durable.after[block as usize] = under.work.mark();
        }
        while run.hosts != 0 {
            w.host_goes_on(run.hosts.trailing_zeros(), under.work);
            run.hosts &= run.hosts - 1;
        }
    }

    /// Sorts the copies of a block by front, unless a block of the reserve takes them all.
    fn sort(&mut self, w: &mut Writer, cause: Cause, run: &Run, leaving: &mut Copies) {
        let lun = run.at.lun;
        let Writer { addresses, stock, heads, route, .. } = w;
        let Some(placed) = route.placed.as_deref_mut().filter(|placed| !placed.by_speed) else { return };
        if stock.is_short(lun) || leaving.is_empty() {
            return;
        }
        let mut room = [0; MOST_FRONTS as usize];
        for (head, room) in (0..placed.fronts).zip(&mut room) {
            *room = heads[At { lun, head }].left();
        }
        // The page of a trim page is padded before copies of another front are made.
        let begun = if run.copies { addresses.in_page(heads[run.at].next) } else { 0 };
        room[run.at.head as usize] -= if begun > 0 { addresses.shape.slots_per_page - begun } else { 0 };
        if placed.one {
            let (copies, room) = (leaving.len() as u32, room[0]);
            self.runs.extend((room < copies).then_some((0, 0)));
            return self.runs.extend((room > 0).then_some((0, room.min(copies))));
        }
        if cause == Cause::Fold {
            leaving.iter().for_each(|&(_, owner)| memory::fetch(&placed.kept, owner as usize));
        }
        // Copies for which their front has no room come last, together, and take one erased block.
        let mut over = 0;
        for (old, owner) in leaving.drain(..) {
            let mut front = match cause {
                Cause::Fold => placed.front_in(stock, owner, addresses.block(old)),
                _ => placed.front(addresses, stock, old, page(lun, owner, cause)),
            };
            match &mut room[front as usize] {
                0 => over = std::mem::replace(&mut front, MOST_FRONTS),
                left => *left -= 1,
            }
            self.sorted.push((front, old, owner));
        }
        for front in (0..placed.fronts).chain([MOST_FRONTS]) {
            let before = leaving.len();
            let here = self.sorted.iter().filter(|copy| copy.0 == front);
            leaving.extend(here.map(|&(_, live, owner)| (live, owner)));
            let count = (leaving.len() - before) as u32;
            if count > 0 {
                self.runs.push(if front == MOST_FRONTS { (over, 0) } else { (front, count) });
            }
        }
        self.runs.reverse();
        self.sorted.clear();
    }

    /// Turns to the front of the next run of copies; returns the number of its copies, or `None` for all that are left.
    /// In the background each copy is a run, until one of them has taken a block of the reserve.
    fn next_run(
        &mut self,
        w: &mut Writer,
        under: &mut Under,
        (what, run): (Move, &mut Run),
        (old, owner): (u32, u32),
    ) -> Option<u32> {
        let asks = what.pages.is_some() && !w.route.is_by_speed() && !w.stock.is_short(what.lun);
        let (front, count) = match self.runs.pop() {
            Some(next) => next,
            None => {
                let Writer { addresses, stock, route, .. } = w;
                let placed = route.placed.as_deref_mut().filter(|_| asks)?;
                (placed.front(addresses, stock, old, page(what.lun, owner, what.cause)), 1)
            }
        };
        // Trim pages may have gone to the front already; the copies go on in their page.
        if front != run.at.head {
            run.note(w, under.work);
            if w.shape().slots_per_page > 1 {
                run.end(w, under, what.cause);
            }
            run.at.head = front;
            w.route.facing[what.lun as usize] = front;
            run.begun = w.fills_page_of_host(run.at);
        }
        (count > 0).then_some(count)
    }
}

/// Takes live slots of a block, with their owners, as many as `what` says, and begins to load the owners' map entries
/// into the CPU cache.
#[inline(never)] // so that its loop has registers
fn take_live(w: &mut Writer, slots: &mut Slots, what: Move, at: At, leaving: &mut Copies) {
    let (first, end) = (w.addresses.first(what.block), w.addresses.end(what.block));
    let valid = w.stock.blocks[what.block].valid;
    leaving.clear();
    if let Some(pages) = what.pages {
        let most = pages * w.shape().slots_per_page - w.addresses.in_page(w.heads[at].next);
        let live = slots.valid.members(first, end).take(most as usize);
        leaving.extend(live.map(|live| (live, slots.spare.of(live))));
        for &(live, _) in &*leaving {
            slots.valid.clear(live);
            // From now on a trim of the owner concerns the copy, not this slot.
            slots.spare.set(live, NONE);
        }
    } else {
        leaving.resize(valid as usize, (0, 0));
        let mut count = 0;
        slots.each_live(first, end, |live, owner| {
            leaving[count] = (live, owner);
            count += 1;
        });
        debug_assert_eq!(count, leaving.len(), "a block counts its live slots");
        slots.valid.take(first, end);
    }
    w.stock.leave(what.lun, what.block, leaving.len() as u32);
}

impl Run {
    /// Begins to move a block of a LUN.
    pub(super) fn begin(w: &mut Writer, lun: u32) -> Run {
        let at = w.route.face_own(&w.heads, lun);
        Run { at, begun: w.fills_page_of_host(at), copies: false, hosts: 0, slots: 0, trims: 0, read: NONE }
    }

    /// Writes the trim pages without which trimmed data could come back once a block is erased; returns whether
    /// there are any. The trim pages go where the copies will go first, and the run counts them among these copies.
    pub(super) fn state_trims(&mut self, w: &mut Writer, under: &mut Under, block: u32) -> bool {
        if !w.durable.relies(block) {
            return false;
        }
        let mut any = false;
        for slot in w.addresses.first(block)..w.addresses.end(block) {
            // A trim page that was written for another slot is no longer due.
            let Some(owner) = w.durable.awaited(under.slots, slot) else { continue };
            any = true;
            w.durable.moves(under.slots, owner);
            let relied = under.slots.spare.of(slot) == owner;
            let old = w.renew(under.slots, owner);
            if relied || (old != NONE && w.addresses.block(old) == block) {
                // The new version states that there is data, which may still be on its way to another LUN.
                w.durable.after[block as usize] = under.work.mark();
            }
            if w.heads[self.at].is_full() {
                self.note(w, under.work);
                w.next_for_copies(under, self.at, false);
            }
            w.place(under.slots, self.at, owner);
            self.slots += 1;
            self.trims += 1;
            w.close_if_full(self.at);
            w.durable.hold(under.slots, owner);
            w.durable.written(owner);
        }
        if w.route.is_by_speed() {
            self.note(w, under.work);
        }
        any
    }

    /// Ends a run of copies: they are programmed before the block they come from is erased, so the rest of their last
    /// page stays empty. If there are no copies, a page that the host has begun stays part-full; one of a serial log is
    /// always programmed.
    #[inline]
    fn end(&mut self, w: &mut Writer, under: &mut Under, cause: Cause) {
        if std::mem::take(&mut self.copies) || w.shape().serial {
            self.hosts |= u64::from(self.begun) << self.at.head;
            if w.pad(under.slots, self.at) {
                self.close(w, under.work, cause);
            }
        }
    }

    /// Closes the block if it is full. In a serial log, first programs the page that is full.
    #[inline]
    fn close(&self, w: &mut Writer, work: &mut Work, cause: Cause) {
        let next = w.heads[self.at].next;
        if w.shape().serial && w.addresses.in_page(next) == 0 {
            return w.program_page(self.at, next - 1, cause, work);
        }
        w.close_if_full(self.at);
    }

    /// Names the pages of the last copies as targets, unless they have been named; in a serial log they are programmed
    /// as they fill.
    #[inline]
    fn note(&mut self, w: &mut Writer, work: &mut Work) {
        let (slots, trims) = (std::mem::take(&mut self.slots), std::mem::take(&mut self.trims));
        if slots > 0 && !w.shape().serial {
            w.route.count_moved(self.at.lun, slots);
            let last = w.heads[self.at].next - 1;
            let placed = last + 1 - slots;
            let first = w.addresses.page(placed);
            work.target(Target {
                first,
                units: w.addresses.page(last) + 1 - first,
                slots: w.shape().slots_per_page,
                // The first copy may be in a page that the host has begun.
                begun: w.addresses.in_page(placed) + trims,
                copies: slots - trims,
            });
        }
    }

    /// In a serial log, reads the pages of the first `count` of these slots, as much of each as is live.
    fn read_shares(
        &mut self,
        w: &Writer,
        work: &mut Work,
        cause: Cause,
        (count, leaving): (usize, &[(u32, u32)]),
    ) {
        for (at, &(live, _)) in leaving[..count].iter().enumerate() {
            let page = w.addresses.nand_page(live);
            if std::mem::replace(&mut self.read, page) != page {
                let wanted =
                    leaving[at..].iter().take_while(|copy| w.addresses.nand_page(copy.0) == page).count();
                let share = [wanted as u32, w.shape().slots_per_nand_page()];
                work.read_share(w.addresses.lun(live), page, cause, share);
            }
        }
    }
}

//! Waiting requests, grouped by the chips they touch.
//!
//! A request's chips are a [`Window`] of consecutive chips. Requests with the same window conflict, so only
//! the first of them can issue. Only windows in which something waits are stored: each first chip has a list of its
//! windows, narrowest first. Memory grows with chips and waiting requests, and finding a window means examining at
//! most the narrower ones in its list.
//!
//! If every window of a first chip was found to contain a taken chip, that first chip is not considered again until a
//! chip of one of the windows has become free, or something new waits there.

use crate::request::Window;
use crate::util::{Bits, Chain, Linked, NONE, Neighbours, Slab};

/// The waiting requests with the same chips, in order of arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Same {
    pub chips: Window,
    /// The first and the last request.
    pub head: u32,
    pub tail: u32,
    /// Every batch before this place has one of these chips, or is gone. The place is forgotten with the window.
    pub first_free: u64,
    /// The next narrower and the next wider window with the same first chip.
    order: Neighbours,
}

impl Linked for Same {
    fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.order
    }
}

/// The windows in which something waits.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    slots: Slab<Same>,
    /// The windows of each first chip, narrowest first; the last row holds the window of requests that touch no chip.
    rows: Vec<Chain>,
    /// First chips at which something waits, and which of them may be ready.
    starts: Bits,
    hopeful: Bits,
    /// Width of the widest window so far.
    widest: u32,
}

impl Windows {
    pub fn new(chips: u32) -> Windows {
        Windows {
            slots: Slab::with_capacity(256),
            rows: vec![Chain::default(); chips as usize + 1],
            starts: Bits::new(chips as usize),
            hopeful: Bits::new(chips as usize),
            widest: 0,
        }
    }

    /// Returns the number of chips, which is also the row of requests that touch no chip.
    fn chips(&self) -> u32 {
        self.rows.len() as u32 - 1
    }

    /// Returns the slot of a window, to which the caller adds a request at once.
    pub fn slot(&mut self, chips: Window) -> u32 {
        let row = if chips.width == 0 { self.chips() } else { chips.first };
        if chips.width > 0 {
            self.starts.set(row);
            self.hopeful.set(row);
            self.widest = self.widest.max(chips.width);
        }
        let mut wider = self.rows[row as usize].head;
        while wider != NONE && self.slots[wider].chips.width < chips.width {
            wider = self.slots[wider].order.behind;
        }
        if wider != NONE && self.slots[wider].chips.width == chips.width {
            return wider;
        }
        let chips = Window { first: row, ..chips };
        let order = Neighbours::NONE;
        let slot = self.slots.insert(Same { chips, head: NONE, tail: NONE, first_free: 0, order });
        self.rows[row as usize].insert(slot, wider, self.slots.all());
        slot
    }

    /// Forgets a window in which nothing waits any more.
    pub fn remove(&mut self, slot: u32) {
        let chips = self.slots[slot].chips;
        let row = &mut self.rows[chips.first as usize];
        row.unlink(slot, self.slots.all());
        if row.head == NONE && chips.width > 0 {
            self.starts.clear(chips.first);
            self.hopeful.clear(chips.first);
        }
        self.slots.release(slot);
    }

    /// Notes that a chip is no longer taken.
    #[inline]
    pub fn came_free(&mut self, chip: u32, taken: &Bits) {
        let mut start = chip;
        for _ in 0..self.widest {
            if self.starts.get(start) {
                self.hopeful.set(start);
            }
            start = if start == 0 { self.chips() - 1 } else { start - 1 };
            if taken.get(start) {
                break;
            }
        }
    }

    /// Calls `found` with the first request of each window none of whose chips is taken.
    #[inline]
    pub fn each_free(&mut self, taken: &Bits, mut found: impl FnMut(u32)) {
        let chips = self.chips();
        if let Some(none) = self.slots.get(self.rows[chips as usize].head) {
            found(none.head);
        }
        let mut from = 0;
        while let Some(start) = self.hopeful.next_clear_of(taken, from, chips) {
            from = start + 1;
            let mut any = false;
            // Number of chips from `start` on that are known not to be taken.
            let mut reach = 1;
            let mut slot = self.rows[start as usize].head;
            while let Some(same) = self.slots.get(slot) {
                while reach < same.chips.width && !taken.get(same.chips.member(reach, chips)) {
                    reach += 1;
                }
                if reach < same.chips.width {
                    break;
                }
                found(same.head);
                any = true;
                slot = same.order.behind;
            }
            if !any {
                self.hopeful.clear(start);
            }
        }
    }
}

impl std::ops::Index<u32> for Windows {
    type Output = Same;

    #[inline]
    fn index(&self, slot: u32) -> &Same {
        &self.slots[slot]
    }
}

impl std::ops::IndexMut<u32> for Windows {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Same {
        &mut self.slots[slot]
    }
}

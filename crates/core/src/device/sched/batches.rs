//! The queue that PIQ and VIOS share: batches of requests without a chip conflict.
//!
//! Source: Cui et al., NPC 2016, section 3.3 and eq. (3); Gao et al., MSST 2014. Chips and channels are kept as bit
//! sets; two requests conflict if their sets intersect. Reads and writes (with trims and flushes) are batched
//! separately; batches of both kinds are numbered from 1 by one counter, channel batches from 1 within their chip
//! batch.
//!
//! Interpretation:
//! - A batch keeps the chips of members that have issued until all members have issued, so that its sets only grow.
//!   Then the batch is gone. A request that fits no batch opens a new one.
//! - No chip idles for the sake of order: of all waiting requests whose chips are idle, one from the oldest read batch
//!   issues; within that batch, one from its first channel batch (VIOS); and among those, the oldest. A write issues
//!   only when no read can.
//! - Starvation is bounded: when `device.max_passed` requests have issued since the oldest waiting request,
//!   read or write, became the oldest, it is due: nothing else may take its chips until it issues. So the
//!   request at place n waits for at most n times `device.max_passed` issues, and for at most that many times
//!   the longest work of a chip.
//! - A flush touches every chip and is due as soon as it is the oldest. No older write can be behind it: when all chips
//!   are idle, any older write issues first.
//!
//! **Cost.** Neither an arrival nor a choice examines every request. Requests with the same window of chips share one
//! queue ([`super::windows`]), in which both batch numbers and arrivals ascend. On arrival: since sets only grow, the
//! first batch that may have room for a window only moves forward; while a request waits in the window, a hint keeps
//! the search from starting over. On choice: only windows that begin at an idle chip and have a waiting request are
//! considered. Memory is linear in the number of chips and in the number of requests held.

use super::channels::ChannelBatches;
use super::sets::{fill, join, meet};
use super::windows::Windows;
use super::{Keys, Needs, Scheduler, Space};
use crate::device::Array;
use crate::ftl::Locate;
use crate::request::{Ages, Pool, Window};
use crate::util::{Bits, NONE};
use crate::workload::Op;

/// The largest number of chips that is supported: every choice and every arrival examines sets of chips.
pub(in crate::device) const MOST_CHIPS: u32 = 1024;

/// A waiting request, by its id in the pool.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    /// Slot of the window of all requests with the same chips.
    window: u32,
    /// The next request with the same chips.
    behind: u32,
    /// Number of the request's channel batch, from 1; 0 without channel batches.
    channel: u32,
    /// Number of the request's batch, from 1.
    number: u64,
    /// Place of the request's batch in the half's list.
    batch: u64,
    arrival: u64,
}

#[derive(Clone, Copy, Debug)]
struct ChipBatch {
    /// The batch's number, from 1; both halves share one counter.
    number: u64,
    /// Number of members that have not issued.
    waiting: u32,
    /// The first of the batch's channel batches, or [`NONE`].
    channels: u32,
}

/// The queue of one half: reads, or everything else.
#[derive(Clone, Debug)]
struct HalfQueue {
    windows: Windows,
    /// Live batches, and batches that are gone but are between or just before live ones, in order of creation.
    batches: Vec<ChipBatch>,
    /// Chips of each of `batches`; all ones when the batch is gone.
    sets: Vec<u64>,
    /// Places of `batches[0]` and of the first live batch.
    base: u64,
    first: u64,
}

/// The waiting requests of both halves: with channel batches and blocks chosen by speed (VIOS), or with neither (PIQ).
#[derive(Clone, Debug)]
pub(super) struct ChipBatches<const CHANNELS: bool> {
    chips: u32,
    /// Number of words in a set of chips.
    words: usize,
    halves: [HalfQueue; 2],
    entries: Vec<Waiter>,
    ages: Ages,
    /// Number of requests issued since the oldest waiting request became the oldest.
    passed: u32,
    most_passed: u32,
    arrived: u64,
    created: u64,
    /// The array's `rests` at the last choice, if nothing could issue then and nothing has arrived since.
    nothing_since: Option<u64>,
    channel_batches: ChannelBatches,
    /// Scratch: the chips of a request.
    mask: Vec<u64>,
    /// The chips that may not be taken, at the last choice and at the one before it.
    taken: Bits,
    before: Bits,
}

impl HalfQueue {
    fn new(chips: u32, words: usize) -> HalfQueue {
        HalfQueue {
            windows: Windows::new(chips),
            batches: Vec::with_capacity(256),
            sets: Vec::with_capacity(256 * words),
            base: 0,
            first: 0,
        }
    }

    /// Returns the place of the first live batch at or after `from` that has none of the chips in `mask`, or the
    /// place after the last batch.
    #[inline]
    fn find(&self, from: u64, mask: &[u64]) -> u64 {
        let from = from.max(self.first);
        let rest = &self.sets[(from - self.base) as usize * mask.len()..];
        let found = rest.chunks_exact(mask.len()).position(|set| !meet(set, mask));
        from + found.unwrap_or(rest.len() / mask.len()) as u64
    }

    /// Removes a batch whose members have all issued; forgets gone batches at the front.
    fn remove(&mut self, place: u64, words: usize) {
        let at = (place - self.base) as usize;
        self.sets[at * words..(at + 1) * words].fill(u64::MAX);
        while self.batches.get((self.first - self.base) as usize).is_some_and(|batch| batch.waiting == 0) {
            self.first += 1;
        }
        let gone = (self.first - self.base) as usize;
        if gone >= 64 && gone * 2 >= self.batches.len() {
            self.batches.drain(..gone);
            self.sets.drain(..gone * words);
            self.base = self.first;
        }
    }
}

impl<const CHANNELS: bool> Scheduler for ChipBatches<CHANNELS> {
    const NEEDS: Needs = Needs { chips: true, speeds: CHANNELS };

    fn new(keys: &Keys, space: &Space) -> ChipBatches<CHANNELS> {
        let chips = space.chips();
        let words = chips.div_ceil(64) as usize;
        ChipBatches {
            chips,
            words,
            halves: [HalfQueue::new(chips, words), HalfQueue::new(chips, words)],
            entries: Vec::with_capacity(1024),
            ages: Ages::default(),
            passed: 0,
            most_passed: keys.max_passed,
            arrived: 0,
            created: 0,
            nothing_since: None,
            channel_batches: ChannelBatches::new(&space.channels),
            mask: vec![0; words],
            taken: Bits::new(chips as usize),
            before: Bits::new(chips as usize),
        }
    }

    fn admit(&mut self, id: u32, chips: Window, pool: &mut Pool) {
        let half = pool[id].half() as usize;
        let window = self.halves[half].windows.slot(chips);
        let place = self.join_batch(half, window, chips);
        let queue = &mut self.halves[half];
        let batch = &mut queue.batches[(place - queue.base) as usize];
        let channel =
            if CHANNELS { self.channel_batches.join(&mut batch.channels, chips, self.chips) } else { 0 };
        batch.waiting += 1;
        let number = batch.number;
        self.ages.push(id, pool);
        self.nothing_since = None;
        let entry = Waiter { window, behind: NONE, channel, number, batch: place, arrival: self.arrived };
        self.arrived += 1;
        if id as usize >= self.entries.len() {
            self.entries.resize(id as usize + 1, entry);
        }
        self.entries[id as usize] = entry;
        let same = &mut queue.windows[window];
        match std::mem::replace(&mut same.tail, id) {
            NONE => same.head = id,
            tail => self.entries[tail as usize].behind = id,
        }
    }

    #[inline]
    fn next(&mut self, array: &Array, _ftl: &(impl Locate + ?Sized), pool: &mut Pool) -> Option<u32> {
        if self.nothing_since == Some(array.rests()) {
            return None;
        }
        let id = self.choose(array.busy(), pool);
        self.nothing_since = id.is_none().then_some(array.rests());
        id.map(|id| self.take(id, pool))
    }

    #[inline]
    fn batch_of(&self, id: u32) -> Option<(u64, u32)> {
        let Waiter { number, channel, .. } = self.entries[id as usize];
        Some((number, channel))
    }

    fn batches(&self) -> u64 {
        self.created
    }
}

impl<const CHANNELS: bool> ChipBatches<CHANNELS> {
    /// Returns the place of the first batch without a chip conflict, or of a new batch if there is none; adds the
    /// chips to the batch.
    fn join_batch(&mut self, half: usize, window: u32, chips: Window) -> u64 {
        fill(&mut self.mask, chips, self.chips);
        let queue = &mut self.halves[half];
        let place = queue.find(queue.windows[window].first_free, &self.mask);
        // If no chip is touched, any batch has room, even an earlier one.
        if chips.width > 0 {
            queue.windows[window].first_free = place;
        }
        let at = (place - queue.base) as usize;
        if at == queue.batches.len() {
            self.created += 1;
            queue.batches.push(ChipBatch { number: self.created, waiting: 0, channels: NONE });
            queue.sets.extend_from_slice(&self.mask);
        } else {
            join(&mut queue.sets[at * self.words..(at + 1) * self.words], &self.mask);
        }
        place
    }

    /// Returns the request that may issue now, if any, while these chips are busy.
    fn choose(&mut self, busy: &Bits, pool: &Pool) -> Option<u32> {
        let oldest = self.ages.head();
        if oldest == NONE {
            return None;
        }
        std::mem::swap(&mut self.taken, &mut self.before);
        self.taken.copy_from(busy);
        let due = self.passed >= self.most_passed || pool[oldest].op == Op::Flush;
        let mut goes = None;
        if due {
            let window = self.entries[oldest as usize].window;
            let chips = self.halves[pool[oldest].half() as usize].windows[window].chips;
            if chips.members(self.chips).all(|chip| !busy.get(chip)) {
                goes = Some(oldest);
            } else {
                chips.members(self.chips).for_each(|chip| self.taken.set(chip));
            }
        }
        self.note_free();
        goes.or_else(|| self.first(0)).or_else(|| self.first(1))
    }

    /// Tells the windows which chips have become free since the last choice.
    #[inline]
    fn note_free(&mut self) {
        let mut from = 0;
        while let Some(chip) = self.before.next_clear_of(&self.taken, from, self.chips) {
            from = chip + 1;
            self.halves.iter_mut().for_each(|half| half.windows.came_free(chip, &self.taken));
        }
    }

    /// Returns the first request of a half, in the order of batch, channel batch and arrival, none of whose
    /// chips is taken.
    #[inline]
    fn first(&mut self, half: usize) -> Option<u32> {
        let mut best = NONE;
        let order = |id: u32| {
            let Waiter { batch, channel, arrival, .. } = self.entries[id as usize];
            (batch, channel, arrival)
        };
        self.halves[half].windows.each_free(&self.taken, |head| {
            if best == NONE || order(head) < order(best) {
                best = head;
            }
        });
        (best != NONE).then_some(best)
    }

    /// Removes a request, which must be the oldest of those with its chips.
    fn take(&mut self, id: u32, pool: &mut Pool) -> u32 {
        let half = pool[id].half() as usize;
        let Waiter { window, behind, batch: place, .. } = self.entries[id as usize];
        let queue = &mut self.halves[half];
        let same = &mut queue.windows[window];
        debug_assert_eq!(same.head, id);
        same.head = behind;
        if behind == NONE {
            queue.windows.remove(window);
        }
        let batch = &mut queue.batches[(place - queue.base) as usize];
        batch.waiting -= 1;
        if batch.waiting == 0 {
            self.channel_batches.release(batch.channels);
            queue.remove(place, self.words);
        }
        self.passed = if self.ages.head() == id { 0 } else { self.passed.saturating_add(1) };
        self.ages.unlink(id, pool);
        id
    }
}

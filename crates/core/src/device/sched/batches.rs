//! The queue that PIQ and VIOS share: batches of requests without a chip conflict.
//!
//! Source: Cui et al., NPC 2016, section 3.3 and eq. (3); Gao et al., MSST 2014. Chips and channels
//! are bit sets, a conflict is an intersection. Reads and writes (with trims and flushes) are batched
//! apart; batches of both are numbered from 1 by one counter, channel batches from 1 within their
//! chip batch.
//!
//! Read into them:
//! - A batch keeps the chips of the members that have issued until all have, so that its sets only
//!   grow; then it is gone, and a request without a place opens a new one.
//! - No chip idles for the order's sake: of all waiting requests whose chips are idle, that of the
//!   oldest read batch issues, inside it that of the first channel batch (VIOS), then the oldest; a
//!   write issues when no read can.
//! - Starvation is bounded: when `device.max_passed` requests have issued since the oldest waiting
//!   request, read or write, became the oldest, it is due: nothing else may take its chips until it
//!   issues. So a request waits for at most so many issues as there were requests before it, and
//!   itself, times the bound, and for as many times the longest work of a chip.
//! - A flush touches every chip and is due as soon as it is the oldest. No write older than it can
//!   be behind it: with all chips idle any older write would issue first.
//!
//! **Cost.** Neither arrival nor choice looks at all requests. A request's chips are a window of
//! consecutive chips, and requests with the same window conflict, so each window has a queue in
//! which batches and arrivals ascend alike. Arrival: since sets only grow, the first batch that may
//! have room for a window only moves on; a hint per window makes the search amortised
//! O(batches x windows) over a whole run. Choice: only windows that begin at an idle chip with
//! something waiting are looked at.

use crate::config::Settings;
use crate::device::Engine;
use crate::request::{Ages, Pool, Window};
use crate::util::{Bits, NONE};
use crate::workload::Op;

/// Chips up to which the queues of all windows are kept: 16 MiB for each half.
pub(super) const MOST_CHIPS: u32 = 1024;

/// A waiting request, by its id in the pool.
#[derive(Clone, Copy, Debug)]
struct Entry {
    chips: Window,
    /// Next request with the same chips.
    behind: u32,
    /// Channel batch, from 1; 0 without channel batches.
    channel: u32,
    /// Number of its batch, from 1.
    number: u64,
    /// Place of its batch in the half's list.
    batch: u64,
    arrival: u64,
}

/// The waiting requests with the same chips; its batch hint.
#[derive(Clone, Copy, Debug)]
struct Same {
    head: u32,
    tail: u32,
    /// Every batch before this one has one of these chips, or is gone.
    first_free: u64,
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    /// From 1, one counter for both halves.
    number: u64,
    /// Members that have not issued.
    waiting: u32,
    /// First of its channel batches, or [`NONE`].
    channels: u32,
}

/// Reads, or everything else.
#[derive(Clone, Debug)]
struct HalfQueue {
    /// By first chip and width; the last one for requests that touch no chip.
    same: Vec<Same>,
    /// Bit `width - 1` of the row of a first chip: something waits there.
    widths: Vec<u64>,
    /// First chips at which something waits.
    starts: Bits,
    /// Live batches and the gone ones between and shortly before them, in order of creation.
    batches: Vec<Batch>,
    /// Chips of each of `batches`; all ones when it is gone.
    sets: Vec<u64>,
    /// Place of `batches[0]`, and of the first live batch.
    base: u64,
    first: u64,
}

/// A channel batch; its channels stand in `channel_sets`.
#[derive(Clone, Copy, Debug)]
struct ChannelBatch {
    next: u32,
}

/// The waiting requests of both halves, with channel batches or without.
#[derive(Clone, Debug)]
pub(super) struct Batches<const CHANNELS: bool> {
    chips: u32,
    channels: u32,
    /// Channel of each chip, where it is not chip mod channels.
    channel_of: Option<Vec<u32>>,
    /// Words of a set of chips, and of channels.
    words: usize,
    channel_words: usize,
    halves: [HalfQueue; 2],
    entries: Vec<Entry>,
    ages: Ages,
    /// Requests issued since the oldest became the oldest.
    passed: u32,
    most_passed: u32,
    arrived: u64,
    created: u64,
    /// Nothing could issue when chips had come to rest so many times, and nothing has arrived since.
    nothing_since: Option<u64>,
    channel_batches: Vec<ChannelBatch>,
    channel_sets: Vec<u64>,
    channel_free: Vec<u32>,
    /// Scratch: the chips of a request, its channels, and the chips that may not be taken.
    mask: Vec<u64>,
    channel_mask: Vec<u64>,
    taken: Bits,
}

/// Makes `mask` the set of a window over `0..of`.
#[inline]
fn fill(mask: &mut [u64], window: Window, of: u32) {
    mask.fill(0);
    let end = window.first + window.width;
    for (from, to) in [(window.first, end.min(of)), (0, end.saturating_sub(of))] {
        let mut at = from;
        while at < to {
            let bits = (64 - at % 64).min(to - at);
            mask[at as usize / 64] |= (u64::MAX >> (64 - bits)) << (at % 64);
            at += bits;
        }
    }
}

#[inline]
fn meet(set: &[u64], other: &[u64]) -> bool {
    set.iter().zip(other).any(|(a, b)| a & b != 0)
}

#[inline]
fn join(set: &mut [u64], other: &[u64]) {
    set.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
}

impl HalfQueue {
    fn new(chips: u32, words: usize) -> HalfQueue {
        let chips = chips as usize;
        HalfQueue {
            same: vec![Same { head: NONE, tail: NONE, first_free: 0 }; chips * chips + 1],
            widths: vec![0; chips * words],
            starts: Bits::new(chips),
            batches: Vec::with_capacity(256),
            sets: Vec::with_capacity(256 * words),
            base: 0,
            first: 0,
        }
    }

    /// Place of the first live batch from `from` on that has none of the chips in `mask`, or the
    /// place behind the last.
    #[inline]
    fn find(&self, from: u64, mask: &[u64]) -> u64 {
        let from = from.max(self.first);
        let rest = &self.sets[(from - self.base) as usize * mask.len()..];
        let found = rest.chunks_exact(mask.len()).position(|set| !meet(set, mask));
        from + found.unwrap_or(rest.len() / mask.len()) as u64
    }

    /// Takes a batch out of which everything has issued; forgets those gone at the front.
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

impl<const CHANNELS: bool> Batches<CHANNELS> {
    pub fn new(settings: &Settings) -> Batches<CHANNELS> {
        let (chips, channels) = (settings.flash.units(), settings.flash.channels);
        let (words, channel_words) = (chips.div_ceil(64) as usize, channels.div_ceil(64) as usize);
        let channel_of: Vec<u32> = settings.spread().places().iter().map(|place| place.channel).collect();
        let in_turn = channel_of.iter().enumerate().all(|(chip, &channel)| chip as u32 % channels == channel);
        Batches {
            chips,
            channels,
            channel_of: (!in_turn).then_some(channel_of),
            words,
            channel_words,
            halves: [HalfQueue::new(chips, words), HalfQueue::new(chips, words)],
            entries: Vec::with_capacity(1024),
            ages: Ages::default(),
            passed: 0,
            most_passed: settings.device.max_passed,
            arrived: 0,
            created: 0,
            nothing_since: None,
            channel_batches: Vec::with_capacity(256),
            channel_sets: Vec::with_capacity(256 * channel_words),
            channel_free: Vec::with_capacity(256),
            mask: vec![0; words],
            channel_mask: vec![0; channel_words],
            taken: Bits::new(chips as usize),
        }
    }

    /// Batches created so far.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// Batch and channel batch (0: none) of a request that was admitted, until its id is used again.
    pub fn batch_of(&self, id: u32) -> (u64, u32) {
        let Entry { number, channel, .. } = self.entries[id as usize];
        (number, channel)
    }

    #[inline]
    fn key(&self, window: Window) -> usize {
        let chips = self.chips as usize;
        match window.width {
            0 => chips * chips,
            width => window.first as usize * chips + width as usize - 1,
        }
    }

    /// A request that touches these chips enters.
    pub fn admit(&mut self, id: u32, chips: Window, pool: &mut Pool) {
        let half = pool[id].half() as usize;
        let place = self.join_batch(half, chips);
        let channel = if CHANNELS { self.join_channel_batch(half, place, chips) } else { 0 };
        let queue = &mut self.halves[half];
        let batch = &mut queue.batches[(place - queue.base) as usize];
        batch.waiting += 1;
        let number = batch.number;
        self.ages.push(id, pool);
        self.nothing_since = None;
        let entry = Entry { chips, behind: NONE, channel, number, batch: place, arrival: self.arrived };
        self.arrived += 1;
        if id as usize >= self.entries.len() {
            self.entries.resize(id as usize + 1, entry);
        }
        self.entries[id as usize] = entry;
        let key = self.key(chips);
        let queue = &mut self.halves[half];
        match std::mem::replace(&mut queue.same[key].tail, id) {
            NONE => {
                queue.same[key].head = id;
                if chips.width > 0 {
                    let width = chips.width as usize - 1;
                    queue.widths[chips.first as usize * self.words + width / 64] |= 1 << (width % 64);
                    queue.starts.set(chips.first);
                }
            }
            tail => self.entries[tail as usize].behind = id,
        }
    }

    /// Place of the first batch without a chip conflict, which gets the chips; of a new one, if none.
    fn join_batch(&mut self, half: usize, chips: Window) -> u64 {
        fill(&mut self.mask, chips, self.chips);
        let key = self.key(chips);
        let queue = &mut self.halves[half];
        let place = queue.find(queue.same[key].first_free, &self.mask);
        if chips.width > 0 {
            queue.same[key].first_free = place;
        }
        let at = (place - queue.base) as usize;
        if at == queue.batches.len() {
            self.created += 1;
            queue.batches.push(Batch { number: self.created, waiting: 0, channels: NONE });
            queue.sets.extend_from_slice(&self.mask);
        } else {
            join(&mut queue.sets[at * self.words..(at + 1) * self.words], &self.mask);
        }
        place
    }

    /// Number of the first channel batch without a channel conflict in a chip batch, which gets the
    /// channels; of a new one, if none.
    fn join_channel_batch(&mut self, half: usize, place: u64, chips: Window) -> u32 {
        match &self.channel_of {
            None => {
                let width = chips.width.min(self.channels);
                fill(
                    &mut self.channel_mask,
                    Window { first: chips.first % self.channels, width },
                    self.channels,
                );
            }
            Some(channel_of) => {
                self.channel_mask.fill(0);
                for chip in chips.members(self.chips) {
                    let channel = channel_of[chip as usize];
                    self.channel_mask[channel as usize / 64] |= 1 << (channel % 64);
                }
            }
        }
        let words = self.channel_words;
        let queue = &mut self.halves[half];
        let batch = &mut queue.batches[(place - queue.base) as usize];
        let (mut at, mut last, mut number) = (batch.channels, NONE, 1);
        while at != NONE {
            let set = &mut self.channel_sets[at as usize * words..(at as usize + 1) * words];
            if !meet(set, &self.channel_mask) {
                join(set, &self.channel_mask);
                return number;
            }
            (last, at, number) = (at, self.channel_batches[at as usize].next, number + 1);
        }
        let new = match self.channel_free.pop() {
            Some(free) => {
                let from = free as usize * words;
                self.channel_sets[from..from + words].copy_from_slice(&self.channel_mask);
                self.channel_batches[free as usize].next = NONE;
                free
            }
            None => {
                self.channel_batches.push(ChannelBatch { next: NONE });
                self.channel_sets.extend_from_slice(&self.channel_mask);
                // Giving them back must not allocate.
                self.channel_free.reserve(self.channel_batches.len());
                self.channel_batches.len() as u32 - 1
            }
        };
        match last {
            NONE => batch.channels = new,
            last => self.channel_batches[last as usize].next = new,
        }
        number
    }

    /// Takes out the request that issues now, if one may.
    #[inline]
    pub fn next(&mut self, array: &Engine, pool: &mut Pool) -> Option<u32> {
        if self.nothing_since == Some(array.rests()) {
            return None;
        }
        let id = self.choose(array.busy(), pool);
        self.nothing_since = id.is_none().then_some(array.rests());
        id.map(|id| self.take(id, pool))
    }

    /// The request that may issue now, if any, when these chips are at work.
    fn choose(&mut self, busy: &Bits, pool: &Pool) -> Option<u32> {
        let oldest = self.ages.head();
        if oldest == NONE {
            return None;
        }
        self.taken.copy_from(busy);
        if self.passed >= self.most_passed || pool[oldest].op == Op::Flush {
            let mut chips = self.entries[oldest as usize].chips.members(self.chips);
            if chips.all(|chip| !busy.get(chip)) {
                return Some(oldest);
            }
            for chip in self.entries[oldest as usize].chips.members(self.chips) {
                self.taken.set(chip);
            }
        }
        self.first(0).or_else(|| self.first(1))
    }

    /// The first request of a half, in the order of batch, channel batch and arrival, none of whose
    /// chips is taken.
    #[inline]
    fn first(&self, half: usize) -> Option<u32> {
        let queue = &self.halves[half];
        let mut best = queue.same[self.chips as usize * self.chips as usize].head;
        let order = |id: u32| {
            let Entry { batch, channel, arrival, .. } = self.entries[id as usize];
            (batch, channel, arrival)
        };
        let mut from = 0;
        while let Some(start) = queue.starts.next_clear_of(&self.taken, from, self.chips) {
            from = start + 1;
            let row = &queue.widths[start as usize * self.words..(start as usize + 1) * self.words];
            // Chips from `start` on known not to be taken.
            let mut reach = 1;
            'widths: for (word, &bits) in row.iter().enumerate() {
                let mut bits = bits;
                while bits != 0 {
                    let width = word as u32 * 64 + bits.trailing_zeros() + 1;
                    bits &= bits - 1;
                    while reach < width {
                        if self.taken.get(Window { first: start, width }.member(reach, self.chips)) {
                            break 'widths;
                        }
                        reach += 1;
                    }
                    let head = queue.same[self.key(Window { first: start, width })].head;
                    if best == NONE || order(head) < order(best) {
                        best = head;
                    }
                }
            }
        }
        (best != NONE).then_some(best)
    }

    /// Takes a request out that is the oldest with its chips.
    fn take(&mut self, id: u32, pool: &mut Pool) -> u32 {
        let half = pool[id].half() as usize;
        let Entry { chips, behind, batch: place, .. } = self.entries[id as usize];
        let key = self.key(chips);
        let queue = &mut self.halves[half];
        debug_assert_eq!(queue.same[key].head, id);
        queue.same[key].head = behind;
        if behind == NONE {
            queue.same[key].tail = NONE;
            if chips.width > 0 {
                let width = chips.width as usize - 1;
                let row = chips.first as usize * self.words;
                queue.widths[row + width / 64] &= !(1 << (width % 64));
                if queue.widths[row..row + self.words].iter().all(|&bits| bits == 0) {
                    queue.starts.clear(chips.first);
                }
            }
        }
        let batch = &mut queue.batches[(place - queue.base) as usize];
        batch.waiting -= 1;
        if batch.waiting == 0 {
            let mut channel = batch.channels;
            while channel != NONE {
                self.channel_free.push(channel);
                channel = self.channel_batches[channel as usize].next;
            }
            queue.remove(place, self.words);
        }
        self.passed = if self.ages.head() == id { 0 } else { self.passed.saturating_add(1) };
        self.ages.unlink(id, pool);
        id
    }
}

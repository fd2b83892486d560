//! When a request of a recording is sent on another device (`workload.replay = "dependent"`).
//!
//! A program sends a request once what it waits for has completed and it has thought. A recording does not say what
//! that was, but it says how many requests had completed by then. So a request waits until as many of its stream have
//! completed here, and then for the time that its sender took since the last of those completions. A client that keeps
//! a fixed number under way does so here too, and one that waits for all it has sent waits for all of them. On the
//! device of the recording, every request is sent when it was recorded.
//!
//! `hfplayer` (Haghdoost et al., "On the Accuracy and Scalability of Intensive I/O Workload Replay", FAST 2017) has the
//! same end; it speculates which request depends on which. DEVIATIONS.md says why this rule only counts.

use crate::clock::NEVER;
use crate::util::{NONE, Slab};
use crate::workload::Record;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The requests that have been read but not sent, and the completions that those wait for.
#[derive(Default)]
pub struct Dependence {
    /// By stream.
    chains: Vec<Chain>,
    slots: Slab<Slot>,
    /// For each stream whose next request waits for no completion any more: when that is due, ns, the number of the
    /// request in the recording, and the stream. The earliest is the greatest.
    due: BinaryHeap<Reverse<(u64, u64, u16)>>,
    read: u64,
    waiting: usize,
}

/// The requests of a stream.
struct Chain {
    /// Recorded completions after the arrival of the request that is next, the earliest first: the time, ns, and
    /// whether it is that of its own arrival.
    later: BinaryHeap<Reverse<(u64, bool)>>,
    /// Number of completions before that arrival, and the last of them, ns; at the start, both are 0.
    before: u64,
    recorded_ns: u64,
    /// Number of completions here, up to as many, and the last of them, ns.
    passed: u64,
    here_ns: u64,
    /// Completions here that are more than those, ns.
    more: VecDeque<u64>,
    /// When the previous request was sent, ns, or the next one was read: a stream keeps its order.
    sent_ns: u64,
    /// The first and the last of the requests that have not been sent.
    first: u32,
    last: u32,
}

/// A request that has not been sent.
#[derive(Clone, Copy)]
struct Slot {
    record: Record,
    number: u64,
    /// The slot behind it in its stream.
    next: u32,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain {
            later: BinaryHeap::new(),
            before: 0,
            recorded_ns: 0,
            passed: 0,
            here_ns: 0,
            more: VecDeque::new(),
            sent_ns: 0,
            first: NONE,
            last: NONE,
        }
    }
}

impl Dependence {
    /// Returns the number of requests that have been read but not sent.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds the next request of the recording, which is read now: it cannot have been sent before.
    pub fn push(&mut self, record: Record, now_ns: u64) {
        let stream = record.stream;
        self.read += 1;
        self.waiting += 1;
        let slot = self.slots.insert(Slot { record, number: self.read, next: NONE });
        if self.chains.len() <= usize::from(stream) {
            self.chains.resize_with(usize::from(stream) + 1, Chain::default);
        }
        let chain = &mut self.chains[usize::from(stream)];
        let last = std::mem::replace(&mut chain.last, slot);
        if last == NONE {
            (chain.first, chain.sent_ns) = (slot, chain.sent_ns.max(now_ns));
            self.consider(stream);
        } else {
            self.slots[last].next = slot;
        }
    }

    /// Returns when the next request is sent, ns; [`NEVER`] if there is none, or if all wait for completions.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.due.peek().map_or(NEVER, |&Reverse((due_ns, ..))| due_ns)
    }

    /// Returns the next request, if one waits for no completion any more.
    #[inline]
    pub fn next(&self) -> Option<&Record> {
        let &Reverse((.., stream)) = self.due.peek()?;
        Some(&self.slots[self.chains[usize::from(stream)].first].record)
    }

    /// Sends the next request, which waits for no completion any more.
    pub fn send(&mut self) {
        let Some(Reverse((due_ns, _, stream))) = self.due.pop() else { return };
        let chain = &mut self.chains[usize::from(stream)];
        // A copy of the whole record would be made for every request.
        let Slot { record: Record { time_ns, latency_ns, .. }, next, .. } = self.slots[chain.first];
        self.slots.release(chain.first);
        self.waiting -= 1;
        (chain.sent_ns, chain.first) = (due_ns, next);
        if next == NONE {
            chain.last = NONE;
        }
        if latency_ns != Record::UNKNOWN {
            chain.later.push(Reverse((time_ns.saturating_add(latency_ns), latency_ns == 0)));
        }
        self.consider(stream);
    }

    /// Drops the requests that have not been sent.
    pub fn end(&mut self) {
        self.due.clear();
        self.waiting = 0;
        for chain in &mut self.chains {
            (chain.first, chain.last) = (NONE, NONE);
        }
    }

    /// Notes that a request of a stream, whose completion was recorded, completes now.
    #[inline]
    pub fn complete(&mut self, stream: u16, now_ns: u64) {
        let chain = &mut self.chains[usize::from(stream)];
        if chain.passed == chain.before {
            return chain.more.push_back(now_ns);
        }
        (chain.passed, chain.here_ns) = (chain.passed + 1, now_ns);
        self.schedule(stream);
    }

    /// Finds what the next request of a stream waits for.
    fn consider(&mut self, stream: u16) {
        let chain = &mut self.chains[usize::from(stream)];
        if chain.first == NONE {
            return;
        }
        let arrival_ns = self.slots[chain.first].record.time_ns;
        // A request does not wait for one that arrived and completed at its own arrival: they were sent together.
        while let Some(&Reverse((complete_ns, at_arrival))) = chain.later.peek()
            && (complete_ns, at_arrival) <= (arrival_ns, false)
        {
            chain.later.pop();
            (chain.before, chain.recorded_ns) = (chain.before + 1, complete_ns);
        }
        while chain.passed < chain.before
            && let Some(now_ns) = chain.more.pop_front()
        {
            (chain.passed, chain.here_ns) = (chain.passed + 1, now_ns);
        }
        self.schedule(stream);
    }

    /// Sets when the next request of a stream is sent, unless it waits for a completion.
    fn schedule(&mut self, stream: u16) {
        let chain = &self.chains[usize::from(stream)];
        if chain.passed == chain.before && chain.first != NONE {
            let Slot { record, number, .. } = &self.slots[chain.first];
            let due_ns = chain.here_ns.saturating_add(record.time_ns - chain.recorded_ns);
            self.due.push(Reverse((due_ns.max(chain.sent_ns), *number, stream)));
        }
    }
}

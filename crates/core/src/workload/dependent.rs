//! When a request of a recording is sent on another device (`workload.replay = "dependent"`).
//!
//! A program sends a request once those that it waits for have completed and it has thought. A recording does not say
//! which those are, but no request can have waited for one that had not completed when it was sent. So a request waits
//! for all of its stream that had completed by then, and for the time that its sender took since the last of those
//! completions. On the device of the recording, every request is therefore sent when it was recorded.
//!
//! `hfplayer` (Haghdoost et al., "On the Accuracy and Scalability of Intensive I/O Workload Replay", FAST 2017) takes
//! completions of a recording for dependences as well. Here the rule is simpler: nobody tells dependences that hold from
//! those that only seem to.

use super::Record;
use crate::clock::NEVER;
use crate::util::{NONE, Slab};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The requests that have been read but not sent, and those whose completion may still matter.
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
    /// Recorded completions after the arrival of the request that is next, the earliest first: the time, ns; whether it
    /// is that of the arrival; and the slot.
    later: BinaryHeap<Reverse<(u64, bool, u32)>>,
    /// The last completion before that arrival, as recorded and here, ns; at the start, both are 0.
    recorded_ns: u64,
    here_ns: u64,
    /// Number of completions before that arrival that are still to come here.
    awaited: u32,
    /// When the previous request was sent, ns: a stream keeps its order.
    sent_ns: u64,
    /// The first and the last of the requests that have not been sent.
    first: u32,
    last: u32,
}

/// A request from when it is read until both of its completions have passed.
#[derive(Clone, Copy)]
struct Slot {
    record: Record,
    number: u64,
    /// Before it is sent, the slot behind it in its stream; afterwards, the next one of the ring of those that complete
    /// together.
    next: u32,
    /// When it completed here, ns; [`NEVER`] before.
    here_ns: u64,
    /// Whether the next request of its stream waits for it.
    awaited: bool,
}

impl Default for Chain {
    fn default() -> Chain {
        let later = BinaryHeap::new();
        Chain { later, recorded_ns: 0, here_ns: 0, awaited: 0, sent_ns: 0, first: NONE, last: NONE }
    }
}

impl Dependence {
    /// Returns the number of requests that have been read but not sent.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds the next request of the recording.
    pub fn push(&mut self, record: Record) {
        let stream = record.stream;
        self.read += 1;
        self.waiting += 1;
        let number = self.read;
        let slot = self.slots.insert(Slot { record, number, next: NONE, here_ns: NEVER, awaited: false });
        if self.chains.len() <= usize::from(stream) {
            self.chains.resize_with(usize::from(stream) + 1, Chain::default);
        }
        let chain = &mut self.chains[usize::from(stream)];
        match chain.last {
            NONE => {
                (chain.first, chain.last) = (slot, slot);
                self.consider(stream);
            }
            last => {
                chain.last = slot;
                self.slots[last].next = slot;
            }
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

    /// Sends the next request; returns its slot, or [`NONE`] if nothing waits for its completion.
    pub fn send(&mut self) -> u32 {
        let Some(Reverse((due_ns, _, stream))) = self.due.pop() else { return NONE };
        let chain = &mut self.chains[usize::from(stream)];
        let slot = chain.first;
        let Record { time_ns, latency_ns, .. } = self.slots[slot].record;
        chain.sent_ns = due_ns;
        chain.first = std::mem::replace(&mut self.slots[slot].next, slot);
        if chain.first == NONE {
            chain.last = NONE;
        }
        self.waiting -= 1;
        let known = latency_ns != Record::UNKNOWN;
        if known {
            chain.later.push(Reverse((time_ns.saturating_add(latency_ns), latency_ns == 0, slot)));
        } else {
            self.slots.release(slot);
        }
        self.consider(stream);
        if known { slot } else { NONE }
    }

    /// Notes that the requests of one slot complete with those of another; returns the slot of all.
    pub fn join(&mut self, one: u32, other: u32) -> u32 {
        if one != NONE && other != NONE {
            let first = self.slots[one].next;
            self.slots[one].next = self.slots[other].next;
            self.slots[other].next = first;
        }
        if one == NONE { other } else { one }
    }

    /// Notes that the requests of a slot complete now.
    #[inline]
    pub fn complete(&mut self, slot: u32, now_ns: u64) {
        let mut at = slot;
        while at != NONE {
            let next = self.slots[at].next;
            self.complete_one(at, now_ns);
            at = if next == slot { NONE } else { next };
        }
    }

    fn complete_one(&mut self, slot: u32, now_ns: u64) {
        let Slot { record: Record { stream, .. }, awaited, .. } = self.slots[slot];
        if !awaited {
            self.slots[slot].here_ns = now_ns;
            return;
        }
        self.slots.release(slot);
        let chain = &mut self.chains[usize::from(stream)];
        chain.here_ns = chain.here_ns.max(now_ns);
        chain.awaited -= 1;
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
        while let Some(&Reverse((complete_ns, at_arrival, slot))) = chain.later.peek()
            && (complete_ns, at_arrival) <= (arrival_ns, false)
        {
            chain.later.pop();
            chain.recorded_ns = complete_ns;
            match self.slots[slot].here_ns {
                NEVER => {
                    self.slots[slot].awaited = true;
                    chain.awaited += 1;
                }
                here_ns => {
                    chain.here_ns = chain.here_ns.max(here_ns);
                    self.slots.release(slot);
                }
            }
        }
        self.schedule(stream);
    }

    /// Sets when the next request of a stream is sent, unless it waits for a completion.
    fn schedule(&mut self, stream: u16) {
        let chain = &self.chains[usize::from(stream)];
        if chain.awaited == 0 && chain.first != NONE {
            let Slot { record, number, .. } = &self.slots[chain.first];
            let due_ns = chain.here_ns.saturating_add(record.time_ns - chain.recorded_ns);
            self.due.push(Reverse((due_ns.max(chain.sent_ns), *number, stream)));
        }
    }
}

//! When a request of a recording is sent on another device (`workload.replay = "dependent"`).
//!
//! A program sends a request once another of its own has completed and it has thought. A recording does not say which
//! program a request is of, but it says which requests of its stream had completed and were not yet continued by a
//! later one. A request continues the one of them that had been idle for longest, as workers that think for about as
//! long as each other do; if there is none, several were sent at once, and it follows the last that had completed. It
//! is sent when that one has completed here, after the pause of the recording. A client with one thread is busy with
//! others for most of that pause. So once the last that had completed has done so here too, the request is sent as soon
//! after the two of them as it was after the last.
//!
//! Not every completion has a request that continues it: `fsync` waits for many writes and goes on with one. So a write
//! or a trim that came before a flush is forgotten when that has completed; so is any request that was idle while
//! [`ROUNDS`] others were sent and completed, and the one that was idle for longest of more than [`MOST`]. A request
//! with a flush before it is sent with that flush, right behind it.
//!
//! On the device of the recording, every request is sent when it was recorded. `hfplayer` (Haghdoost et al., "On the
//! Accuracy and Scalability of Intensive I/O Workload Replay", FAST 2017) has the same end; it speculates which request
//! depends on which by its kind and its address. docs/readings/time.md says what else was tried.

use crate::clock::NEVER;
use crate::util::{NONE, Slab, Sooner};
use crate::workload::{Op, Record};
use std::collections::{BinaryHeap, VecDeque};

/// Number of requests that are sent and complete while another is idle, before that counts as idle no longer.
const ROUNDS: u8 = 4;
/// Largest number of requests of a stream that count as idle.
const MOST: usize = 32;

/// The requests that have been read but not sent, and those that they wait for.
pub struct Dependence {
    /// By number.
    streams: Vec<Stream>,
    links: Slab<Link>,
    /// The requests whose predecessor has completed, by when they are due and their numbers in the recording. The
    /// first is valid; behind it, a time that is not its link's is none any more.
    due: BinaryHeap<Sooner>,
    read: u64,
    waiting: usize,
    /// Number of requests that have been sent and whose completion others may wait for.
    under_way: usize,
}

/// What had been recorded of a stream by the arrival of the request that was read last.
struct Stream {
    /// Completions after that arrival, by their times, whether those are of the own arrival too, and the requests'
    /// numbers.
    later: BinaryHeap<Sooner>,
    /// The requests that had completed and may be continued, in order of their completion.
    idle: VecDeque<Idle>,
    /// The request that had completed last.
    last: u32,
    /// Number of the request that was read last.
    read: u64,
    /// If that may be a flush before a request, which is then of the same line and read next: the line, and what both
    /// continue, used once more.
    flush: Option<(u64, u32)>,
}

/// A request that had completed and that none has continued.
struct Idle {
    id: u32,
    /// Whether a flush waits for it.
    dirty: bool,
    /// Number of requests that have been sent and have completed since.
    rounds: u8,
    /// Its number in the recording, and that of the request of its stream that was sent last when it became idle.
    number: u64,
    since: u64,
}

/// A request.
struct Link {
    record: Record,
    /// Its number in the recording.
    number: u64,
    /// When it has completed here, ns; [`NEVER`] before.
    here_ns: u64,
    /// When it is due, ns; [`NEVER`] before its predecessor has completed here, and once it has been sent.
    due_ns: u64,
    /// Time between the last completion before its arrival and that, ns.
    rest_ns: u64,
    /// Whether the request that had completed last has completed here.
    follows: bool,
    /// Whether it is a flush, or there was one before it.
    flushes: bool,
    /// The first of the requests that wait for it, and the next of those that wait for the same: twice the id, and 1
    /// more if for that request this one is not the predecessor but had completed last. [`NONE`]: there is none.
    first: u32,
    next: [u32; 2],
    /// The next in the circle of those that complete as one here.
    merged: u32,
    /// Number of places that name it: it has not completed here; it is in `later` or `idle`; it is the last of its
    /// stream, or what a flush and its request continue; it waits for the last.
    uses: u8,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            later: BinaryHeap::new(),
            idle: VecDeque::with_capacity(MOST + 1),
            last: NONE,
            read: 0,
            flush: None,
        }
    }
}

impl Dependence {
    /// Makes a rule for up to this many requests that wait.
    pub fn new(most: usize) -> Dependence {
        Dependence {
            streams: Vec::new(),
            // Those under way, here or in the recording, have a link too.
            links: Slab::with_capacity(2 * most),
            // Each may have been due later at first.
            due: BinaryHeap::with_capacity(2 * most),
            read: 0,
            waiting: 0,
            under_way: 0,
        }
    }

    /// Whether requests are under way whose completion others may wait for.
    pub fn is_awaited(&self) -> bool {
        self.under_way > 0
    }

    /// Returns the number of requests that have been read but not sent.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds the next request of the recording, which is read now: it cannot have been sent before.
    pub fn push(&mut self, record: Record, now_ns: u64) {
        let (at, known) = (usize::from(record.stream), record.latency_ns != Record::UNKNOWN);
        self.read += 1;
        self.waiting += 1;
        let number = self.read;
        if self.streams.len() <= at {
            self.streams.resize_with(at + 1, Stream::default);
        }
        let stream = &mut self.streams[at];
        let (before, flushed) = stream.before(&record, &mut self.links);
        let last = stream.last;
        stream.read = number;
        let id = self.links.insert(Link::of(record, number, flushed));
        let link = &mut self.links[id];
        link.merged = id;
        if known {
            link.uses += 1;
            let at_arrival = u64::from(record.latency_ns == 0) << 63;
            stream.later.push(Sooner::new(link.recorded_ns(), at_arrival | number, id));
        }
        if before == NONE {
            self.schedule(id, record.time_ns.max(now_ns));
        } else {
            self.await_both(id, (before, last), now_ns);
        }
    }

    /// Lets a request wait for its predecessor, and for the one that had completed last; uses the former once less.
    #[inline]
    fn await_both(&mut self, id: u32, (before, last): (u32, u32), now_ns: u64) {
        let time_ns = self.links[id].record.time_ns;
        let (before_ns, last_ns) = (self.links[before].here_ns, self.links[last].here_ns);
        let pause_ns = time_ns - self.links[before].recorded_ns();
        let rest_ns = time_ns - self.links[last].recorded_ns();
        self.links[id].rest_ns = rest_ns;
        self.links[id].follows = before == last || last_ns != NEVER;
        if !self.links[id].follows {
            self.links[id].uses += 1;
            self.links[id].next[1] = std::mem::replace(&mut self.links[last].first, 2 * id + 1);
        }
        if before_ns == NEVER {
            self.links[id].next[0] = std::mem::replace(&mut self.links[before].first, 2 * id);
        } else {
            let whole_ns = before_ns.saturating_add(pause_ns);
            // If the last has not completed, its time is the latest there is.
            let due_ns = whole_ns.min(before_ns.max(last_ns).saturating_add(rest_ns));
            self.schedule(id, due_ns.max(now_ns));
        }
        release(before, &mut self.links);
    }

    /// Sets when a request is due.
    #[inline]
    fn schedule(&mut self, id: u32, due_ns: u64) {
        let link = &mut self.links[id];
        link.due_ns = due_ns;
        self.due.push(Sooner::new(due_ns, link.number, id));
    }

    /// Returns when the next request is sent, ns; [`NEVER`] if there is none, or if all wait for completions.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.due.peek().map_or(NEVER, Sooner::time_ns)
    }

    /// Returns the next request, if one is due at some time.
    #[inline]
    pub fn next(&self) -> Option<&Record> {
        self.due.peek().map(|first| &self.links[first.id].record)
    }

    /// Sends the next request, of which it is known when it is due; returns its id, or [`NONE`] if its completion was
    /// not recorded.
    pub fn send(&mut self) -> u32 {
        let Some(Sooner { id, .. }) = self.due.pop() else { return NONE };
        self.waiting -= 1;
        self.links[id].due_ns = NEVER;
        while let Some(&Sooner { key, id: other }) = self.due.peek()
            && key != Sooner::new(self.links[other].due_ns, self.links[other].number, other).key
        {
            self.due.pop();
        }
        if self.links[id].record.latency_ns != Record::UNKNOWN {
            self.under_way += 1;
            return id;
        }
        release(id, &mut self.links);
        NONE
    }

    /// Drops the requests that have not been sent.
    pub fn end(&mut self) {
        self.due.clear();
        self.waiting = 0;
    }

    /// Notes that requests that were sent have become one; returns its id.
    pub fn merge(&mut self, one: u32, other: u32) -> u32 {
        if one == NONE || other == NONE {
            return if one == NONE { other } else { one };
        }
        let next = self.links[one].merged;
        self.links[one].merged = std::mem::replace(&mut self.links[other].merged, next);
        one
    }

    /// Notes that a request that was sent completes now, with those that have become one with it.
    #[inline]
    pub fn complete(&mut self, id: u32, now_ns: u64) {
        let mut at = self.complete_one(id, now_ns);
        while at != id {
            at = self.complete_one(at, now_ns);
        }
    }

    /// Notes that a request completes now; returns the next one of its circle.
    fn complete_one(&mut self, id: u32, now_ns: u64) -> u32 {
        self.under_way -= 1;
        let link = &mut self.links[id];
        link.here_ns = now_ns;
        let (merged, recorded_ns) = (link.merged, link.recorded_ns());
        let mut waits = std::mem::replace(&mut link.first, NONE);
        while waits != NONE {
            let (other, last) = (waits / 2, waits % 2 == 1);
            let Link { record: Record { time_ns, .. }, due_ns, rest_ns, follows, next, .. } =
                self.links[other];
            waits = next[usize::from(last)];
            let pause_ns = if last || follows { rest_ns } else { time_ns - recorded_ns };
            let then_ns = now_ns.saturating_add(pause_ns);
            // Requests that have been dropped are still in the list.
            let sooner = !last || due_ns != NEVER && then_ns < due_ns;
            if sooner && self.waiting > 0 {
                self.schedule(other, then_ns);
            }
            if last {
                self.links[other].follows = true;
                release(other, &mut self.links);
            }
        }
        release(id, &mut self.links);
        merged
    }
}

impl Link {
    /// Makes the link of a request that has been read, and that nothing else names.
    #[inline(always)] // so that it is built in place
    fn of(record: Record, number: u64, flushed: bool) -> Link {
        Link {
            flushes: flushed || record.op == Op::Flush,
            record,
            number,
            here_ns: NEVER,
            due_ns: NEVER,
            rest_ns: 0,
            follows: false,
            first: NONE,
            next: [NONE; 2],
            merged: NONE,
            uses: 1,
        }
    }

    /// Returns when it completed in the recording, ns.
    fn recorded_ns(&self) -> u64 {
        self.record.time_ns.saturating_add(self.record.latency_ns)
    }
}

impl Stream {
    /// Returns the request that this one continues, used once more ([`NONE`] if none had completed), and whether it has
    /// a flush before it. That is a record of the same line, whose completion is not known; both are sent together.
    #[inline]
    fn before(&mut self, record: &Record, links: &mut Slab<Link>) -> (u32, bool) {
        let both = match self.flush.take() {
            Some((line, both)) if line == record.line => return (both, true),
            Some((_, both)) => both,
            None => NONE,
        };
        if both != NONE {
            release(both, links);
        }
        let before = self.continued(record.time_ns, links);
        // What has no line was not read from a file, and stands for itself.
        if record.op == Op::Flush && record.latency_ns == Record::UNKNOWN && record.line > 0 {
            self.flush = Some((record.line, before));
            if before != NONE {
                links[before].uses += 1;
            }
        }
        (before, false)
    }

    /// Returns the request that one which arrives at this time continues, used once more; [`NONE`] if none had
    /// completed.
    #[inline]
    fn continued(&mut self, arrival_ns: u64, links: &mut Slab<Link>) -> u32 {
        // A request does not wait for one that arrived and completed at its own arrival: they were sent together.
        let before = Sooner::new(arrival_ns, 1 << 63, NONE).key;
        while let Some(&Sooner { key, id }) = self.later.peek()
            && key < before
        {
            self.later.pop();
            let number = links[id].number;
            self.forget(number, links[id].flushes, links);
            let dirty = matches!(links[id].record.op, Op::Write | Op::Trim);
            self.idle.push_back(Idle { id, dirty, rounds: 0, number, since: self.read });
            if self.idle.len() > MOST
                && let Some(first) = self.idle.pop_front()
            {
                release(first.id, links);
            }
            links[id].uses += 1;
            let last = std::mem::replace(&mut self.last, id);
            if last != NONE {
                release(last, links);
            }
        }
        if let Some(idle) = self.idle.pop_front() {
            return idle.id;
        }
        if self.last != NONE {
            links[self.last].uses += 1;
        }
        self.last
    }

    /// Forgets the idle requests that none will continue, now that the request with this number has completed.
    #[inline]
    fn forget(&mut self, number: u64, flushes: bool, links: &mut Slab<Link>) {
        if self.idle.is_empty() {
            return;
        }
        self.idle.retain_mut(|idle| {
            idle.rounds += u8::from(idle.since < number);
            let flushed = flushes && idle.dirty && idle.number < number;
            let stays = idle.rounds < ROUNDS && !flushed;
            if !stays {
                release(idle.id, links);
            }
            stays
        });
    }
}

/// Uses a request once less; its id is free when nothing uses it.
#[inline]
fn release(id: u32, links: &mut Slab<Link>) {
    links[id].uses -= 1;
    if links[id].uses == 0 {
        links.release(id);
    }
}

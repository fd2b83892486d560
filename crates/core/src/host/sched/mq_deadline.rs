//! mq-deadline, Linux's deadline scheduler: batches by address, reads before writes, and a soft expiry for both.
//!
//! Source: Documentation/block/deadline-iosched.rst and block/mq-deadline.c of Linux 6 (read in the form that it has
//! after 6.18, whose choice is that of every version since 6.5, where the position of the last dispatched request
//! replaced a pointer to the next one). A batch goes on in its direction, by address, from the position dispatched last
//! in that direction, up to `fifo_batch` requests. Between batches, reads go first unless that has happened
//! `writes_starved` times while a write waited; a new batch begins with the oldest request of its direction if that one
//! has expired or nothing lies ahead, else where the direction's last batch ended.
//!
//! Interpretation: expiry counts from a request's arrival, in nanoseconds instead of ticks. A flush goes to the device
//! at once, since Linux leads flushes past its schedulers; trims count as writes. Requests carry no priority, so there
//! is one class, and `prio_aging_expire` has nothing to act on; `async_depth` limits the admission of writes, and
//! `front_merges` is a matter of `host.merge_limit`.

use super::{Around, Decision, Needs, Scheduler};
use crate::config::section;
use crate::config::section::{ANY_TIME, count};
use crate::request::{Half, Pool, Queue};
use crate::util::{NONE, Ordered};
use crate::workload::Op;

pub(super) const NAME: &str = "mq-deadline";
pub(super) const DOC: &str = "batches by address, reads first, soft expiry of reads and writes (Linux 6)";

section! {
    /// Its own keys.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// mq-deadline: a read that has waited this long begins the next batch of reads.
        read_expire_ns: u64 = "host.read_expire", ANY_TIME, "500ms";
        /// mq-deadline: a write that has waited this long begins the next batch of writes.
        write_expire_ns: u64 = "host.write_expire", ANY_TIME, "5s";
        /// mq-deadline: how many batches of reads may go while a write waits.
        writes_starved: u32 = "host.writes_starved", count(0, 1 << 30), "2";
        /// mq-deadline: the largest number of requests of a batch, whose addresses ascend; 0 counts as 1.
        fifo_batch: u32 = "host.fifo_batch", count(0, 1 << 30), "16";
    }
}

/// The waiting requests of one direction.
#[derive(Clone, Debug, Default)]
struct Direction {
    /// In order of arrival.
    fifo: Queue,
    /// By first byte.
    sorted: Ordered,
    /// First byte of the request dispatched last.
    last_pos: u64,
}

impl Direction {
    /// Returns the request that goes on by address, or [`NONE`].
    fn next(&self) -> u32 {
        self.sorted.first_from(self.last_pos)
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        self.fifo.unlink(id, pool);
        self.sorted.remove(pool[id].host.slot);
    }
}

#[derive(Clone, Debug)]
pub(super) struct MqDeadline {
    keys: Keys,
    directions: [Direction; 2],
    flushes: Queue,
    /// Direction of the request dispatched last.
    last: Half,
    /// Number of requests that the batch has dispatched.
    batching: u32,
    /// Number of batches of reads begun while a write waited.
    starved: u32,
}

impl MqDeadline {
    /// Returns the direction of a new batch, if any request waits.
    fn turn(&mut self) -> Option<Half> {
        let [reads, writes] = self.directions.each_ref().map(|direction| !direction.fifo.is_empty());
        if reads && !(writes && self.starved >= self.keys.writes_starved) {
            self.starved += u32::from(writes);
            return Some(Half::Read);
        }
        if writes {
            self.starved = 0;
            return Some(Half::Write);
        }
        None
    }

    /// Returns the first request of a new batch, and whether it goes because it has expired.
    fn begin(&self, half: Half, now_ns: u64, pool: &Pool) -> (u32, bool) {
        let direction = &self.directions[half as usize];
        let expire_ns = match half {
            Half::Read => self.keys.read_expire_ns,
            Half::Write => self.keys.write_expire_ns,
        };
        let oldest = direction.fifo.head();
        if now_ns - pool[oldest].arrival_ns >= expire_ns {
            return (oldest, true);
        }
        match direction.next() {
            NONE => (oldest, false),
            next => (next, false),
        }
    }
}

impl Scheduler for MqDeadline {
    const NEEDS: Needs = Needs::NOTHING;

    fn new(keys: &super::Keys, _block_pages: u32) -> MqDeadline {
        MqDeadline {
            keys: keys.own.mq_deadline.clone(),
            directions: Default::default(),
            flushes: Queue::default(),
            last: Half::Write,
            batching: 0,
            starved: 0,
        }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        if pool[id].op == Op::Flush {
            return self.flushes.push(id, pool);
        }
        let direction = &mut self.directions[pool[id].half() as usize];
        direction.fifo.push(id, pool);
        pool[id].host.slot = direction.sorted.insert(id, pool[id].offset);
    }

    fn grown(&mut self, id: u32, _before: u32, pool: &mut Pool) {
        let (sorted, slot) = (&mut self.directions[pool[id].half() as usize].sorted, pool[id].host.slot);
        if sorted.position(slot) != pool[id].offset {
            sorted.remove(slot);
            pool[id].host.slot = sorted.insert(id, pool[id].offset);
        }
    }

    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
        if let Some(id) = self.flushes.pop(pool) {
            return Decision::One(id);
        }
        let mut id = self.directions[self.last as usize].next();
        if id == NONE || self.batching >= self.keys.fifo_batch {
            let Some(half) = self.turn() else { return Decision::Nothing };
            let expired;
            (id, expired) = self.begin(half, around.now_ns(), pool);
            pool[id].host.expired = expired;
            (self.last, self.batching) = (half, 0);
        }
        self.batching += 1;
        let direction = &mut self.directions[self.last as usize];
        direction.last_pos = pool[id].offset;
        direction.remove(id, pool);
        Decision::One(id)
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        let mut waiting = self.flushes.verify(pool, |request| request.op == Op::Flush)?;
        for (half, direction) in [Half::Read, Half::Write].into_iter().zip(&self.directions) {
            let held = direction.fifo.verify(pool, |request| request.half() == half)?;
            // A request that grows within its first page keeps its position.
            direction.sorted.verify(held, |id| {
                pool[id].half() == half && direction.sorted.position(pool[id].host.slot) >= pool[id].offset
            })?;
            waiting += held;
        }
        Ok(waiting)
    }
}

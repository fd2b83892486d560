//! BFQ, budget fair queueing: a queue for each process, which is served until its budget of sectors is used up, in the
//! ratio of the processes' weights; and idling for a process that is about to go on.
//!
//! Source: Documentation/block/bfq-iosched.rst, block/bfq-iosched.c and block/bfq-wf2q.c of Linux 6.12, with
//! `low_latency` off; whose turn it is: [`super::wf2q`], the rest: [`super::turns`]. A turn ends if the next request
//! does not fit into the budget, after `timeout_sync`, or if the process has no request and is not worth waiting for;
//! then its next budget grows or shrinks. A process that has used its turn slowly is charged with the time, not the
//! service. Within a process the request nearest to the last one goes next, but once in a turn the oldest, if it is
//! older than `fifo_expire_sync`.
//!
//! The device rests for `slice_idle` if a process whose turn it is has nothing to send, and weights differ, or it is
//! the only one, or (on a device that takes one request after the other) it streams. Without that, a process that
//! becomes active ends the turn of another that is not worth waiting for.
//!
//! Interpretation: a process is a stream, and its weight that of the tenant with this number, else 1. All requests
//! are synchronous, as direct I/O is, so there is no queue of asynchronous writes (`fifo_expire_async`). Left out:
//! `low_latency` (raised weights of interactive and soft real-time processes), queues that merge with others or have
//! wakers, requests injected while the device rests for another process, priority classes, groups, and the limit on
//! the depth of a process. A flush goes to the device at once. Times are exact to the nanosecond, not the tick.

use super::turns::Turns;
use super::{Around, Decision, Needs, Scheduler};
use crate::request::{Pool, Queue};
use crate::util::Stat;
use crate::workload::Op;

pub(super) const NAME: &str = "bfq";
pub(super) const DOC: &str = "budgets for each stream in the ratio of weights (Linux 6); without low_latency, merged queues and injection";

pub type Keys = super::turns::Keys;

#[derive(Clone, Debug)]
pub(super) struct Bfq {
    /// Apart, since all schedulers would take its room.
    turns: Box<Turns>,
    flushes: Queue,
}

impl Scheduler for Bfq {
    const NEEDS: Needs = Needs { completions: true, timer: true, weights: true, ..Needs::NOTHING };

    fn new(keys: &super::Keys, _block_pages: u32) -> Bfq {
        let turns = Turns::new(&keys.own.bfq, keys.weights.0.clone());
        Bfq { turns: Box::new(turns), flushes: Queue::default() }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        if pool[id].op == Op::Flush {
            return self.flushes.push(id, pool);
        }
        self.turns.insert(id, pool);
    }

    fn grown(&mut self, id: u32, _before: u32, pool: &mut Pool) {
        self.turns.grown(id, pool);
    }

    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
        self.turns.run_to(around.now_ns(), pool);
        let id = self.flushes.pop(pool).or_else(|| self.turns.choose(pool));
        id.map_or(Decision::Nothing, Decision::One)
    }

    fn completed(&mut self, id: u32, now_ns: u64, pool: &Pool) {
        if pool[id].op != Op::Flush {
            self.turns.note_completion(pool[id].pages.stream, now_ns);
        }
    }

    fn due_ns(&self) -> u64 {
        self.turns.due_ns()
    }

    fn stats(&self) -> Vec<Stat> {
        self.turns.budgets.stats()
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        let flushes = self.flushes.verify(pool, |request| request.op == Op::Flush)?;
        Ok(flushes + self.turns.verify(pool)?)
    }
}

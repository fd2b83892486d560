//! Batches of both halves, and hits as batches of their own, each with the time that the device needs for it.
//!
//! Source: ftlab's own, for map-rate and map-ratio; batches are those of RB (Ji et al., TCAD 2018, section V-B).
//!
//! Interpretation: a batch costs one read of its translation page, and a read or a program for each of its pages; a hit
//! costs only the latter; the pages of a trim cost nothing (`times.rs`). Write-backs of dirty mappings, and what a
//! request needs from a second translation page, are left out, as the host does not know about them. Within a batch the
//! request with the fewest pages goes first; if several have equally few, the oldest of them does.

use super::Decision;
use super::batches::Batches;
use super::times::Times;
use crate::request::{Half, Pool, Queue, Request};
use crate::util::NONE;
use crate::workload::Op;

/// A waiting batch, as schedulers compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// Number of requests; 0 for a flush.
    pub requests: u64,
    /// Time that the device needs for all its requests, ns; at least 1.
    pub cost_ns: u64,
    /// Number of the batch's oldest request.
    pub oldest: u64,
    pub slot: u32,
}

/// The waiting batches and hits.
#[derive(Clone, Debug)]
pub(super) struct Costed {
    batches: Batches,
    times: Times,
    /// The cost of each batch, by slot: the time that the device needs for it, ns.
    costs: Vec<u64>,
    /// Time that the device needs for all pages that wait to be programmed, ns.
    programs_ns: u64,
    /// Scratch space for sorting.
    scratch: Vec<u32>,
}

impl Costed {
    pub fn new(times: Times) -> Costed {
        Costed {
            batches: Batches::new(),
            times,
            costs: Vec::with_capacity(128),
            programs_ns: 0,
            scratch: Vec::with_capacity(128),
        }
    }

    /// Returns the time of all programs that have to be done before a flush ends, plus the time of one read, ns.
    pub fn flush_ns(&self) -> u64 {
        self.programs_ns + self.times.read_ns()
    }

    /// Returns the time that reading the translation page takes for a batch with this request, ns.
    #[inline]
    fn load_ns(&self, request: &Request) -> u64 {
        if request.host.hit || request.pages.pages == 0 { 0 } else { self.times.read_ns() }
    }

    /// Returns the number of batches created so far, including hits.
    pub fn created(&self) -> u64 {
        self.batches.created
    }

    /// Returns a waiting batch in the form that schedulers compare.
    #[inline]
    pub fn job(&self, slot: u32, pool: &Pool) -> Job {
        let queue = &self.batches.get(slot).queue;
        let first = &pool[queue.head()];
        let requests = if first.op == Op::Flush { 0 } else { u64::from(queue.len()) };
        Job { requests, cost_ns: self.costs[slot as usize].max(1), oldest: first.id, slot }
    }

    /// Whether the batch of `job` still waits in its slot, unchanged since `job` was made.
    #[inline]
    pub fn is(&self, job: &Job, pool: &Pool) -> bool {
        self.batches.waits(job.slot) && self.job(job.slot, pool) == *job
    }

    /// Adds a request to its batch; returns the batch and whether it is new.
    pub fn admit(&mut self, id: u32, pool: &mut Pool) -> (u32, bool) {
        let (slot, new) = if pool[id].host.hit {
            (self.batches.alone(id, pool), true)
        } else {
            self.batches.join(id, pool)
        };
        if self.costs.len() <= slot as usize {
            self.costs.resize(slot as usize + 1, 0);
        }
        let request = &pool[id];
        if new {
            self.costs[slot as usize] = self.load_ns(request);
        }
        self.grows(slot, request.op, self.times.own(request));
        (slot, new)
    }

    /// Notes that a waiting request that had `before` pages has grown; returns its batch.
    pub fn grown(&mut self, id: u32, before: u32, pool: &Pool) -> u32 {
        let slot = self.batches.grown(id, before, pool);
        let request = &pool[id];
        self.grows(slot, request.op, self.times.of(request.op, request.pages.pages - before));
        slot
    }

    #[inline]
    fn grows(&mut self, slot: u32, op: Op, by_ns: u64) {
        self.costs[slot as usize] += by_ns;
        self.programs_ns += if op == Op::Read { 0 } else { by_ns };
    }

    /// Removes one request; returns its batch, and whether that batch still has others.
    pub fn remove(&mut self, id: u32, pool: &mut Pool) -> (u32, bool) {
        let slot = pool[id].host.slot;
        let own_ns = self.times.own(&pool[id]);
        self.costs[slot as usize] -= own_ns;
        self.programs_ns -= if pool[id].op == Op::Read { 0 } else { own_ns };
        (slot, self.batches.remove(id, pool).is_some())
    }

    /// Removes a whole batch and returns it, with small requests first. A hit goes alone, and counts as prioritized.
    pub fn take(&mut self, slot: u32, pool: &mut Pool) -> Decision {
        let mut queue = self.batches.withdraw(slot);
        let first = queue.head();
        if pool[first].half() == Half::Write {
            self.programs_ns -= self.costs[slot as usize] - self.load_ns(&pool[first]);
        }
        if pool[first].host.hit {
            pool[first].host.prioritized = true;
            return Decision::One(first);
        }
        if queue.len() > 1 {
            queue = self.sorted(queue, pool);
        }
        super::batches::mark(&queue, pool);
        Decision::Batch(queue)
    }

    fn sorted(&mut self, mut queue: Queue, pool: &mut Pool) -> Queue {
        self.scratch.clear();
        while let Some(id) = queue.pop(pool) {
            self.scratch.push(id);
        }
        self.scratch.sort_unstable_by_key(|&id| (pool[id].pages.pages, pool[id].id));
        let mut sorted = Queue::default();
        self.scratch.iter().for_each(|&id| sorted.push(id, pool));
        sorted
    }

    /// Checks every waiting batch and its cost, and calls `each` for the slots that wait; returns the number of
    /// requests.
    pub fn verify(
        &self,
        pool: &Pool,
        mut each: impl FnMut(u32) -> Result<(), String>,
    ) -> Result<u32, String> {
        let requests = self.batches.verify(pool, |_, _| Ok(()))?;
        for slot in self.batches.waiting() {
            let queue = &self.batches.get(slot).queue;
            let first = &pool[queue.head()];
            let mut cost_ns = self.load_ns(first);
            let mut id = queue.head();
            while id != NONE {
                cost_ns += self.times.own(&pool[id]);
                id = pool.behind(id);
            }
            if self.costs[slot as usize] != cost_ns {
                let counted = self.costs[slot as usize];
                return Err(format!("a batch counts {counted} ns, its requests take {cost_ns}"));
            }
            each(slot)?;
        }
        Ok(requests)
    }
}

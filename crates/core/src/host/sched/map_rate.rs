//! MAP-rate: hits and batches of both halves in one order; the one that completes the most requests per unit of time
//! goes first.
//!
//! Source: ftlab's own, after MAP+ (Ji et al., TCAD 2018, section V-C). MAP+ uses requests per page as the rate at
//! which a batch completes requests. Here the rate is requests per unit of device time, including the read of the
//! translation page, and there is one order for all: reads, writes and hits need no ranks, as the cheaper ones have the
//! higher rates.
//!
//! Interpretation: costs are as in `costed.rs`; at equal rates, the batch with the oldest request goes first; a flush
//! has rate 0, so that it goes after the writes it waits for. Late requests go first, each with its batch.

use std::cmp::Ordering;

use super::batches::BATCHED;
use super::costed::{Costed, Job};
use super::{Around, Decision, Needs, Scheduler};
use crate::request::Pool;
use crate::util::LazyHeap;

pub(super) const NAME: &str = "map-rate";
pub(super) const DOC: &str = "hits and batches in one order, most requests per device time first (ftlab)";
pub type Keys = ();

/// A batch's rate at its last change. A faster batch compares as greater and, at equal rate, an older one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate(Job);

impl Ord for Rate {
    fn cmp(&self, other: &Rate) -> Ordering {
        let (Rate(own), Rate(others)) = (self, other);
        let [left, right] =
            [(own, others), (others, own)].map(|(a, b)| u128::from(a.requests) * u128::from(b.cost_ns));
        left.cmp(&right)
            .then(others.oldest.cmp(&own.oldest))
            .then(own.requests.cmp(&others.requests))
            .then(own.slot.cmp(&others.slot))
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Rate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Debug)]
pub(super) struct MapRate {
    jobs: Costed,
    heap: LazyHeap<Rate>,
}

impl MapRate {
    /// Enters a batch's new rate, which makes the old entry stale.
    fn enter(&mut self, slot: u32, more: bool, pool: &Pool) {
        let MapRate { jobs, heap } = self;
        heap.push(Rate(jobs.job(slot, pool)), more);
        heap.tidy(|entry| jobs.is(&entry.0, pool));
    }

    /// Notes that a batch is gone.
    fn forget(&mut self, pool: &Pool) {
        let MapRate { jobs, heap } = self;
        heap.forget(|entry| jobs.is(&entry.0, pool));
    }
}

impl Scheduler for MapRate {
    const NEEDS: Needs = Needs { hits: true, ..BATCHED };

    fn new(keys: &super::Keys, _block_pages: u32) -> MapRate {
        MapRate { jobs: Costed::new(keys.times), heap: LazyHeap::default() }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        let (slot, new) = self.jobs.admit(id, pool);
        self.enter(slot, new, pool);
    }

    fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
        let slot = self.jobs.grown(id, before, pool);
        self.enter(slot, false, pool);
    }

    fn choose(&mut self, pool: &mut Pool, _around: &mut dyn Around) -> Decision {
        let MapRate { jobs, heap } = self;
        match heap.pop(|entry| jobs.is(&entry.0, pool)) {
            Some(Rate(job)) => jobs.take(job.slot, pool),
            None => Decision::Nothing,
        }
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        match self.jobs.remove(id, pool) {
            (slot, true) => self.enter(slot, false, pool),
            (_, false) => self.forget(pool),
        }
    }

    fn expire(&mut self, id: u32, pool: &mut Pool) -> Decision {
        let taken = self.jobs.take(pool[id].host.slot, pool);
        self.forget(pool);
        taken
    }

    fn batches(&self) -> u64 {
        self.jobs.created()
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        let mut waiting = 0;
        let requests = self.jobs.verify(pool, |_| {
            waiting += 1;
            Ok(())
        })?;
        self.heap.verify(waiting, |entry| self.jobs.is(&entry.0, pool))?;
        Ok(requests)
    }
}

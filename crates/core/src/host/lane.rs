//! A pending queue with its scheduler: the one of all requests, or one tenant's.

use super::Arrivals;
use super::merge::Merging;
use super::sched::{Needs, Sched};
use crate::host::settings::{Late, Settings};
use crate::request::{Ages, Pool, Queue, Request};
use crate::util::NONE;

/// Requests that are pending, and what decides which of them go next.
pub(super) struct Lane {
    pub(super) sched: Sched,
    /// Number of requests that may be pending.
    pub(super) depth: u32,
    pub(super) pending: u32,
    /// All pending requests in order of arrival, if a deadline, merging or a scheduler that works on whole flash blocks
    /// needs the order.
    pub(super) ages: Ages,
    pub(super) aged: bool,
    deadline_ns: Option<u64>,
    /// Whether a request whose deadline has passed takes its batch along.
    whole_batches: bool,
    /// Requests chosen but not handed over: the rest of a batch, or of the requests whose deadline had passed.
    pub(super) chosen: Queue,
    /// Whether the deadlines are to be checked before the next choice.
    deadlines_due: bool,
    pub(super) merging: Option<Merging>,
}

impl Lane {
    /// Makes an empty queue for `depth` requests; `block_pages` is the number of logical pages of a flash block.
    pub(super) fn new(
        settings: &Settings,
        needs: &Needs,
        depth: u32,
        (merging, block_pages): (Option<Merging>, u32),
    ) -> Lane {
        let deadline_ns = settings.host.deadline_ns.filter(|_| needs.deadline);
        Lane {
            sched: Sched::new(&settings.host.scheduler, &settings.host.sched, block_pages),
            depth,
            pending: 0,
            ages: Ages::default(),
            aged: deadline_ns.is_some() || needs.blocks || merging.is_some(),
            deadline_ns,
            whole_batches: needs.batches && settings.host.late == Late::Batch,
            chosen: Queue::default(),
            deadlines_due: false,
            merging,
        }
    }

    /// Returns the number of requests that are pending, or chosen but not yet handed over.
    pub(super) fn waiting(&self) -> u32 {
        self.pending + self.chosen.len()
    }

    /// Notes that a choice was made, after which the deadlines are to be checked.
    #[inline]
    pub(super) fn note_choice(&mut self) {
        self.deadlines_due = self.deadline_ns.is_some();
    }

    /// Chooses the pending requests whose deadline has passed, if that is to be checked now; returns the first.
    #[inline]
    pub(super) fn late(&mut self, now_ns: u64, pool: &mut Pool) -> Option<u32> {
        if !self.deadlines_due {
            return None;
        }
        self.deadlines_due = false;
        self.collect_expired(now_ns, pool)
    }

    /// Chooses every pending request that has waited for `host.deadline` or longer, oldest first; returns the first
    /// one.
    fn collect_expired(&mut self, now_ns: u64, pool: &mut Pool) -> Option<u32> {
        let deadline_ns = self.deadline_ns?;
        if self.whole_batches {
            return self.expire_batch(now_ns, deadline_ns, pool);
        }
        while self.ages.head() != NONE && now_ns - pool[self.ages.head()].arrival_ns >= deadline_ns {
            let id = self.ages.head();
            self.leave(id, pool);
            self.sched.remove(id, pool);
            pool[id].host.expired = true;
            self.chosen.push(id, pool);
        }
        self.chosen.pop(pool)
    }

    /// Chooses the oldest pending request, if it has waited for `host.deadline` or longer, and the batch that it
    /// belongs to; returns the first request.
    #[inline(never)] // as when a scheduler chooses, most decisions find nobody late
    fn expire_batch(&mut self, now_ns: u64, deadline_ns: u64, pool: &mut Pool) -> Option<u32> {
        let oldest = self.ages.head();
        if oldest == NONE || now_ns - pool[oldest].arrival_ns < deadline_ns {
            return None;
        }
        self.chosen = match self.sched.expire(oldest, pool) {
            super::Decision::Batch(queue) => queue,
            super::Decision::One(_) | super::Decision::Nothing => {
                let mut alone = Queue::default();
                alone.push(oldest, pool);
                alone
            }
        };
        let mut id = self.chosen.head();
        while id != NONE {
            self.leave(id, pool);
            let Request { arrival_ns, host, .. } = &mut pool[id];
            host.expired = now_ns - *arrival_ns >= deadline_ns;
            host.prioritized &= !host.expired;
            id = pool.behind(id);
        }
        self.deadlines_due = true;
        self.chosen.pop(pool)
    }

    /// Lets a request that has arrived become part of a pending one; returns whether it did.
    pub(super) fn join(&mut self, id: u32, pool: &mut Pool, arrivals: &mut impl Arrivals) -> bool {
        let Some(merging) = &mut self.merging else { return false };
        let taken = pool[id];
        let Some((pending, before)) = merging.join(&taken, pool) else {
            merging.enter(id, pool);
            return false;
        };
        pool.release(id);
        if pool[pending].pages.pages > before {
            self.sched.grown(pending, before, pool);
        }
        arrivals.merged(&mut pool[pending], &taken);
        true
    }

    /// Adds a request to the pending queue.
    #[inline(always)] // for every request
    pub(super) fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.pending += 1;
        if self.aged {
            self.ages.push(id, pool);
        }
        self.sched.admit(id, pool);
    }

    /// Takes a request out of the pending queue.
    #[inline]
    pub(super) fn leave(&mut self, id: u32, pool: &mut Pool) {
        if self.aged {
            // Where requests merge, their order is kept.
            if let Some(merging) = &mut self.merging {
                merging.leave(id, pool);
            }
            self.ages.unlink(id, pool);
        }
        self.pending -= 1;
    }

    /// Checks the queue, for check mode.
    ///
    /// # Errors
    /// A message that says what does not hold.
    pub(super) fn verify(&self, pool: &Pool) -> Result<(), String> {
        let held = self.sched.verify(pool)?;
        let aged = if self.aged { self.ages.verify(pool, |_| true)? } else { held };
        if (held, aged) != (self.pending, self.pending) {
            return Err(format!(
                "{} requests are pending, {held} in the scheduler, {aged} in order of arrival",
                self.pending
            ));
        }
        self.merging.as_ref().map_or(Ok(()), |merging| merging.verify(pool, &self.ages))
    }
}

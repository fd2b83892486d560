//! The host's block layer: the pending queue with admission, merging and deadline, and the scheduler.

mod arrivals;
pub mod awareness;
mod blocks;
pub(crate) mod check;
mod merge;
mod replay;
pub mod sched;
pub mod settings;
mod submitted;

pub use arrivals::{Above, Account, Arrivals, VersionOf};
pub use blocks::block_pages;
pub use replay::{Intake, LATEST_NS, Replayed};
pub use submitted::{Submission, SubmitError, Submitted};

use crate::host::awareness::{Awareness, DeviceView};
use crate::host::sched::{Decision, Needs, Sched, needs};
use crate::host::settings::{Late, Settings};
use crate::request::{Ages, Pool, Queue, Request};
use crate::util::{NONE, Stat};
use crate::workload::{Op, SourceError};
use blocks::{Blocks, Surroundings};
use merge::Merging;

/// The host: its scheduler and the pending queue.
pub struct Host {
    /// All requests in flight.
    pub pool: Pool,
    sched: Sched,
    needs: Needs,
    awareness: Awareness,
    depth: u32,
    deadline_ns: Option<u64>,
    /// Whether a request whose deadline has passed takes its batch along.
    whole_batches: bool,
    pending: u32,
    /// All pending requests in order of arrival, if a deadline, merging or a scheduler that works on whole flash blocks
    /// needs the order.
    ages: Ages,
    aged: bool,
    /// Requests chosen but not handed over: the rest of a batch, or of the requests whose deadline had passed.
    chosen: Queue,
    /// Whether the deadlines are to be checked before the next choice.
    deadlines_due: bool,
    merging: Option<Merging>,
    /// Whether requests may merge or be cut.
    reshapes: bool,
    /// State kept for a scheduler that works on whole flash blocks ([`Needs::blocks`]).
    blocks: Blocks,
}

impl Host {
    /// Makes an empty host; `files` says whether its requests come from a page cache.
    pub fn new(settings: &Settings, device: &impl DeviceView, files: bool) -> Host {
        let needs = needs(&settings.host.scheduler);
        let blocks = Blocks::new(settings, device);
        let deadline_ns = settings.host.deadline_ns.filter(|_| needs.deadline);
        let merging = Merging::new(settings, files, needs.blocks.then_some(blocks.bytes()));
        Host {
            pool: Pool::default(),
            awareness: Awareness::new(settings.host.awareness, device),
            depth: settings.host.queue_depth,
            deadline_ns,
            whole_batches: needs.batches && settings.host.late == Late::Batch,
            aged: deadline_ns.is_some() || needs.blocks || merging.is_some(),
            sched: Sched::new(&settings.host.scheduler, &settings.host.sched, blocks.pages),
            needs,
            pending: 0,
            ages: Ages::default(),
            chosen: Queue::default(),
            deadlines_due: false,
            reshapes: needs.blocks || merging.is_some(),
            merging,
            blocks,
        }
    }

    /// Whether requests may become part of others.
    pub fn merges(&self) -> bool {
        self.merging.is_some()
    }

    /// Returns the number of requests that became part of another.
    pub fn merged(&self) -> u64 {
        self.merging.as_ref().map_or(0, |merging| merging.merged)
    }

    /// Returns the number of batches that the scheduler created.
    pub fn batches(&self) -> u64 {
        self.sched.batches()
    }

    /// Returns the scheduler's own figures.
    pub fn stats(&self) -> Vec<Stat> {
        self.sched.stats()
    }

    /// Returns the number of requests in the pending queue or chosen but not yet handed over.
    pub fn waiting(&self) -> u32 {
        self.pending + self.chosen.len()
    }

    /// Returns the number of requests, including the device's own but not padding, that have arrived but not completed.
    pub fn under_way(&self) -> usize {
        self.pool.count() - self.blocks.pads as usize
    }

    /// Returns the number of commands that went to the device besides the workload's requests, and the bytes of their
    /// data: padding, and all but the last part of a write that was cut, whose data are the workload's.
    pub fn beside(&self) -> [u64; 2] {
        self.blocks.beside
    }

    /// Whether requests of the host's own may outlast the requests of the workload.
    pub fn pads(&self) -> bool {
        self.needs.blocks
    }

    /// Returns the next request for the device at a moment when it has room.
    ///
    /// The order is the paper's (Ji et al., TCAD 2018, section V-D.4): after each dispatched request or batch, the
    /// requests that have reached their deadline are collected and dispatched; then the next choice is made. Where a
    /// late request takes its batch along, only one such batch is dispatched, that of the oldest request, before the
    /// deadlines are checked again.
    ///
    /// # Errors
    /// The workload's error.
    pub fn next(
        &mut self,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<Option<u32>, SourceError> {
        if self.is_held() || arrivals.holds(now_ns) {
            return Ok(None);
        }
        let id = match self.chosen.pop(&mut self.pool) {
            Some(id) => id,
            None => {
                self.admit(now_ns, arrivals, device)?;
                let due = std::mem::take(&mut self.deadlines_due);
                let expired = if due { self.collect_expired(now_ns) } else { None };
                let Some(id) = expired.or_else(|| self.choose(now_ns, arrivals, device)) else {
                    return Ok(None);
                };
                id
            }
        };
        let request = &mut self.pool[id];
        request.dispatch_ns = now_ns;
        if self.needs.hits {
            self.awareness.dispatched(request.pages);
        }
        if self.needs.blocks {
            self.blocks.handed_over(id, &mut self.pool);
        }
        Ok(Some(id))
    }

    /// Whether the next chosen request has to wait before it may go to the device; nothing is admitted meanwhile.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.needs.blocks && !self.chosen.is_empty() && self.blocks.holds(&self.pool[self.chosen.head()])
    }

    /// Whether a request that arrives could become pending now, if the device has room. A scheduler that is told about
    /// completions may hold requests back until the pending queue is full.
    #[inline]
    pub fn admits(&self) -> bool {
        let full = self.needs.completions && self.pending >= self.depth;
        !full && !self.is_held()
    }

    /// Completes a request that was handed over; returns the workload's request that completes with it, if
    /// any.
    #[inline]
    pub fn finish(&mut self, id: u32, now_ns: u64) -> Option<u32> {
        if self.needs.completions {
            self.sched.completed(id, now_ns, &self.pool);
        }
        if self.needs.blocks { self.blocks.finish(id, &mut self.pool) } else { Some(id) }
    }

    /// Admits every request that has arrived, in order, while the pending queue has room.
    #[inline]
    fn admit(
        &mut self,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<(), SourceError> {
        // A request that joins a pending one needs no place of its own, but whether it joins one is known only after it
        // has been admitted; so, as with a full request queue, the remaining requests wait outside.
        while self.pending < self.depth && arrivals.next_ns() <= now_ns {
            let id = arrivals.take(arrivals.next_ns(), &mut self.pool)?;
            if !(self.reshapes && self.reshape(id, arrivals)) {
                self.enter(id, device);
            }
        }
        Ok(())
    }

    /// Cuts a request that has arrived, or lets it become part of a pending one; returns whether it did either.
    #[inline(never)] // keeps the path short where requests stay as they are
    fn reshape(&mut self, id: u32, arrivals: &mut impl Arrivals) -> bool {
        if self.needs.blocks && self.cut(id) {
            return true;
        }
        let Host { merging: Some(merging), pool, sched, .. } = self else { return false };
        let taken = pool[id];
        let Some((pending, before)) = merging.join(&taken, pool) else {
            merging.enter(id, pool);
            return false;
        };
        pool.release(id);
        if pool[pending].pages.pages > before {
            sched.grown(pending, before, pool);
        }
        arrivals.merged(&mut pool[pending], &taken);
        true
    }

    /// Adds a request to the pending queue.
    #[inline(always)] // called in one place, for every request
    fn enter(&mut self, id: u32, device: &impl DeviceView) {
        device.expect(self.pool[id].pages.first);
        if self.needs.translation_pages | self.needs.hits {
            self.classify(id, device);
        }
        self.pending += 1;
        if self.aged {
            self.ages.push(id, &mut self.pool);
        }
        self.sched.admit(id, &mut self.pool);
    }

    /// Determines what the scheduler needs to know about a request's mapping.
    #[inline(never)] // keeps the path short for schedulers that need nothing
    fn classify(&mut self, id: u32, device: &impl DeviceView) {
        let request = &mut self.pool[id];
        if self.needs.translation_pages && request.pages.pages > 0 {
            request.host.translation_page = device.translation_page(request.pages.first);
        }
        // A request without pages cannot hit a mapping; polled awareness counts its admission.
        let updates = request.op != Op::Read;
        let cached = self.needs.hits && self.awareness.classify(request.pages, updates, device);
        request.host.hit = cached && request.pages.pages > 0;
    }

    /// Cuts a write that covers several flash blocks, and admits its parts, which do not merge; returns whether the
    /// request was such a write.
    fn cut(&mut self, id: u32) -> bool {
        let Host { sched, ages, pending, .. } = self;
        self.blocks.cut(id, &mut self.pool, |part, pool| {
            *pending += 1;
            ages.push(part, pool);
            sched.admit(part, pool);
        })
    }

    /// Chooses every pending request that has waited for `host.deadline` or longer, oldest first; returns the first
    /// one.
    fn collect_expired(&mut self, now_ns: u64) -> Option<u32> {
        let deadline_ns = self.deadline_ns?;
        if self.whole_batches {
            return self.expire_batch(now_ns, deadline_ns);
        }
        while self.ages.head() != NONE && now_ns - self.pool[self.ages.head()].arrival_ns >= deadline_ns {
            let id = self.ages.head();
            self.leave(id);
            self.sched.remove(id, &mut self.pool);
            self.pool[id].host.expired = true;
            self.chosen.push(id, &mut self.pool);
        }
        self.chosen.pop(&mut self.pool)
    }

    /// Chooses the oldest pending request, if it has waited for `host.deadline` or longer, and the batch that it
    /// belongs to; returns the first request.
    #[inline(never)] // as in `choose`, most decisions find nobody late
    fn expire_batch(&mut self, now_ns: u64, deadline_ns: u64) -> Option<u32> {
        let oldest = self.ages.head();
        if oldest == NONE || now_ns - self.pool[oldest].arrival_ns < deadline_ns {
            return None;
        }
        self.chosen = match self.sched.expire(oldest, &mut self.pool) {
            Decision::Batch(queue) => queue,
            Decision::One(_) | Decision::Nothing => self.alone(oldest),
        };
        let mut id = self.chosen.head();
        while id != NONE {
            self.leave(id);
            let Request { arrival_ns, host, .. } = &mut self.pool[id];
            host.expired = now_ns - *arrival_ns >= deadline_ns;
            host.prioritized &= !host.expired;
            id = self.pool.behind(id);
        }
        self.deadlines_due = true;
        self.chosen.pop(&mut self.pool)
    }

    fn alone(&mut self, id: u32) -> Queue {
        let mut queue = Queue::default();
        queue.push(id, &mut self.pool);
        queue
    }

    /// Lets the scheduler decide which requests go next; returns the first of them, if there is one.
    #[inline]
    fn choose(&mut self, now_ns: u64, arrivals: &mut impl Arrivals, device: &impl DeviceView) -> Option<u32> {
        let Host { sched, pool, blocks, ages, pending, .. } = self;
        let decision =
            sched.choose_in(pool, || Surroundings { blocks, arrivals, device, ages, pending, now_ns });
        let id = match decision {
            Decision::Nothing => return None,
            Decision::One(id) => {
                self.leave(id);
                // A hit that was the only pending request overtakes no other.
                if self.pending == 0 {
                    self.pool[id].host.prioritized = false;
                }
                id
            }
            Decision::Batch(queue) => {
                let mut id = queue.head();
                while id != NONE {
                    self.leave(id);
                    id = self.pool.behind(id);
                }
                self.chosen = queue;
                if self.is_held() {
                    return None;
                }
                self.chosen.pop(&mut self.pool)?
            }
        };
        self.deadlines_due = self.deadline_ns.is_some();
        Some(id)
    }

    /// Checks the pending queue, for check mode.
    ///
    /// # Errors
    /// A message that says what does not hold.
    pub fn verify(&self) -> Result<(), String> {
        let held = self.sched.verify(&self.pool)?;
        let aged = if self.aged { self.ages.verify(&self.pool, |_| true)? } else { held };
        if (held, aged) != (self.pending, self.pending) {
            return Err(format!(
                "{} requests are pending, {held} in the scheduler, {aged} in order of arrival",
                self.pending
            ));
        }
        self.merging.as_ref().map_or(Ok(()), |merging| merging.verify(&self.pool, &self.ages))
    }

    #[inline]
    fn leave(&mut self, id: u32) {
        if let Some(merging) = &mut self.merging {
            merging.leave(id, &self.pool);
        }
        if self.aged {
            self.ages.unlink(id, &mut self.pool);
        }
        self.pending -= 1;
    }
}

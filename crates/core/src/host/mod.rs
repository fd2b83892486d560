//! The host's block layer: the pending queue with admission, merging and deadline, and the scheduler.

pub mod arbiter;
mod arrivals;
pub mod awareness;
mod blocks;
pub(crate) mod check;
mod dependence;
mod dependent;
pub mod held;
mod lane;
mod lent;
mod merge;
mod part;
mod replay;
mod reshape;
pub mod sched;
pub mod settings;
mod several;
mod submitted;
mod tenancy;

pub use arrivals::{Above, Account, Arrivals, VersionOf};
pub use blocks::block_pages;
pub use dependent::Dependent;
pub use replay::{Intake, LATEST_NS, Replayed};
pub use several::{Placed, Sender, Several};
pub use submitted::{Submission, SubmitError, Submitted};

use crate::clock::NEVER;
use crate::host::awareness::{Awareness, DeviceView};
use crate::host::sched::{Decision, Needs, needs};
use crate::host::settings::Settings;
use crate::request::Pool;
use crate::util::{NONE, Stat};
use crate::workload::SourceError;
use blocks::{Blocks, Surroundings};
use held::Held;
use lane::Lane;
use merge::Merging;
use reshape::{classify, reshape};
use tenancy::Tenancy;

/// The host: the pending queues, each with its scheduler.
pub struct Host {
    /// All requests in flight.
    pub pool: Pool,
    /// Whether requests that complete are to be passed to [`Host::finish`] and [`Host::note_completed`].
    pub follows: bool,
    needs: Needs,
    awareness: Awareness,
    /// The pending queue; where tenants have queues of their own, that of the tenant whose turn it is.
    lane: Box<Lane>,
    /// Whether tenants have queues of their own, the scheduler works on whole blocks, or the host holds entries.
    more_at_choice: bool,
    /// What there is besides if tenants have queues of their own.
    tenancy: Option<Box<Tenancy>>,
    /// Whether requests may merge or be cut.
    reshapes: bool,
    /// State kept for a scheduler that works on whole flash blocks ([`Needs::blocks`]).
    blocks: Blocks,
    /// The part of the device's map that the host holds, if it holds any.
    held: Option<Box<Held>>,
}

impl Host {
    /// Makes an empty host; `files` says whether its requests come from a page cache.
    pub fn new(settings: &Settings, device: &impl DeviceView, files: bool) -> Host {
        let needs = needs(&settings.host.scheduler);
        let blocks = Blocks::new(settings, device);
        let whole = needs.blocks.then_some(blocks.bytes());
        let (own, pages) = (settings.clone(), blocks.pages);
        let lane =
            move |depth| Box::new(Lane::new(&own, &needs, depth, (Merging::new(&own, files, whole), pages)));
        let depth = tenancy::depth_of_first(settings);
        let first = lane(depth);
        let tenancy = Tenancy::new(settings, Box::new(lane)).map(Box::new);
        let first = tenancy.as_ref().map_or(first, |tenancy| tenancy.first(depth));
        let held = Held::new(settings, device.logical_pages());
        Host {
            pool: Pool::default(),
            more_at_choice: needs.blocks || tenancy.is_some() || held.is_some(),
            awareness: Awareness::new(settings.host.awareness, device),
            follows: needs.blocks || needs.completions || held.is_some(),
            reshapes: needs.blocks || first.merging.is_some(),
            tenancy,
            lane: first,
            needs,
            blocks,
            held,
        }
    }

    /// Returns all pending queues.
    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        std::iter::once(&*self.lane).chain(self.tenancy.iter().flat_map(|tenancy| tenancy.parked()))
    }

    /// Whether requests may become part of others.
    pub fn merges(&self) -> bool {
        self.lane.merging.is_some()
    }

    /// Returns the number of requests that became part of another.
    pub fn merged(&self) -> u64 {
        self.lanes().filter_map(|lane| lane.merging.as_ref()).map(|merging| merging.merged).sum()
    }

    /// Returns the number of batches that the schedulers created.
    pub fn batches(&self) -> u64 {
        self.lanes().map(|lane| lane.sched.batches()).sum()
    }

    /// Returns the scheduler's own figures; none where there are several schedulers.
    pub fn stats(&self) -> Vec<Stat> {
        if self.tenancy.is_some() { Vec::new() } else { self.lane.sched.stats() }
    }

    /// Returns the number of requests in the pending queues or chosen but not yet handed over.
    pub fn waiting(&self) -> u32 {
        self.lanes().map(Lane::waiting).sum()
    }

    /// Returns the number of requests, including the device's own but not those of the host, that have arrived but not
    /// completed.
    pub fn under_way(&self) -> usize {
        self.pool.count() - self.blocks.pads as usize - self.loads_under_way()
    }

    /// Returns the number of commands that went to the device besides the workload's requests, and the bytes of their
    /// data: padding, mapping entries, and all but the last part of a write that was cut, which are the workload's.
    pub fn beside(&self) -> [u64; 2] {
        let ([commands, bytes], [loads, entries]) = (self.blocks.beside, self.held_traffic());
        [commands + loads, bytes + entries]
    }

    /// Whether requests of the host's own may outlast the requests of the workload.
    pub fn pads(&self) -> bool {
        self.needs.blocks || self.held.is_some()
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
        if arrivals.holds(now_ns) {
            return Ok(None);
        }
        if self.more_at_choice {
            return self.next_or_load(now_ns, arrivals, device);
        }
        self.take::<false>(now_ns, arrivals, device)
    }

    /// Takes the next request for the device out of its queue; `MORE` is [`Host::more_at_choice`].
    #[inline(always)] // for every request
    pub(super) fn take<const MORE: bool>(
        &mut self,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<Option<u32>, SourceError> {
        let id = if MORE && self.tenancy.is_some() {
            self.next_of_tenants(now_ns, arrivals, device)?
        } else if let Some(id) = self.lane.chosen.pop(&mut self.pool) {
            Some(id)
        } else {
            self.admit(now_ns, arrivals, device)?;
            self.decide(now_ns, arrivals, device)
        };
        let Some(id) = id else { return Ok(None) };
        let request = &mut self.pool[id];
        request.dispatch_ns = now_ns;
        if self.needs.hits {
            self.awareness.dispatched(request.pages);
        }
        if MORE && self.needs.blocks {
            self.blocks.handed_over(id, &mut self.pool);
        }
        Ok(Some(id))
    }

    /// Returns the next request for the device, where tenants have queues of their own.
    #[inline(always)] // called in one place
    fn next_of_tenants(
        &mut self,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<Option<u32>, SourceError> {
        let Some(mut tenancy) = self.tenancy.take() else { return Ok(None) };
        if !tenancy.is_amid_batch(&self.lane) {
            self.admit_of_tenants(&mut tenancy, now_ns, arrivals, device)?;
        }
        let mut found = None;
        while found.is_none()
            && let Some(tenant) = tenancy.choose(&mut self.lane)
        {
            found = match self.lane.chosen.pop(&mut self.pool) {
                Some(id) => Some(id),
                None => self.decide(now_ns, arrivals, device),
            };
            tenancy.note(tenant, found.is_some(), &self.lane);
            arrivals.block(tenant, self.lane.pending >= self.lane.depth);
        }
        if self.needs.blocks {
            // Whether a request is held is asked of the queue that is next.
            tenancy.choose(&mut self.lane);
        }
        tenancy.settle();
        self.tenancy = Some(tenancy);
        Ok(found)
    }

    /// Admits the requests that have arrived, in order, to the queues of their tenants. A request for which there is no
    /// room waits outside; those of other tenants pass it only if they come from other sources.
    fn admit_of_tenants(
        &mut self,
        tenancy: &mut Tenancy,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<(), SourceError> {
        tenancy.is_shut = false;
        let mut due_ns = arrivals.next_ns();
        while due_ns <= now_ns {
            let (tenant, room) = tenancy.turn_to_stream(arrivals.next_stream(), &mut self.lane);
            if room {
                self.admit_one(due_ns, arrivals, device)?;
            } else if !arrivals.block(tenant, true) {
                tenancy.is_shut = true;
                break;
            }
            due_ns = arrivals.next_ns();
        }
        Ok(())
    }

    /// Returns the first of the requests that go next from the queue whose turn it is.
    #[inline(always)] // for every request
    fn decide(&mut self, now_ns: u64, arrivals: &mut impl Arrivals, device: &impl DeviceView) -> Option<u32> {
        match self.lane.late(now_ns, &mut self.pool) {
            Some(id) => Some(id),
            None => self.choose(now_ns, arrivals, device),
        }
    }

    /// Whether the next chosen request has to wait before it may go to the device; nothing is admitted meanwhile.
    #[inline]
    pub fn is_held(&self) -> bool {
        let chosen = &self.lane.chosen;
        self.needs.blocks && !chosen.is_empty() && self.blocks.holds(&self.pool[chosen.head()])
    }

    /// Whether a request that arrives could become pending now, if the device has room. A scheduler that is told about
    /// completions may hold requests back until the pending queue is full.
    #[inline]
    pub fn admits(&self) -> bool {
        let full = || match &self.tenancy {
            None => self.lane.pending >= self.lane.depth,
            Some(tenancy) => tenancy.is_shut,
        };
        !(self.is_held() || self.needs.completions && full())
    }

    /// Whether a scheduler may hold requests back until a time of its own.
    pub fn waits(&self) -> bool {
        self.needs.timer
    }

    /// Returns when a scheduler is to be asked again even if nothing happens, ns; [`NEVER`] if not.
    pub fn due_ns(&self) -> u64 {
        if !self.needs.timer {
            return NEVER;
        }
        self.lanes().map(|lane| lane.sched.due_ns()).min().unwrap_or(NEVER)
    }

    /// Completes a request that was handed over; returns the workload's request that completes with it, if
    /// any.
    #[inline]
    pub fn finish(&mut self, id: u32, now_ns: u64) -> Option<u32> {
        if self.needs.completions {
            self.tell_completed(id, now_ns);
        }
        if self.needs.blocks { self.blocks.finish(id, &mut self.pool) } else { Some(id) }
    }

    /// Tells the scheduler of a request that it has completed.
    #[cold]
    fn tell_completed(&mut self, id: u32, now_ns: u64) {
        let stream = self.pool[id].pages.stream;
        let lane = match &mut self.tenancy {
            None => &mut self.lane,
            Some(tenancy) => tenancy.of_stream(stream, &mut self.lane),
        };
        lane.sched.completed(id, now_ns, &self.pool);
    }

    /// Admits every request that has arrived, in order, while the pending queue has room.
    #[inline(always)] // for every request
    fn admit(
        &mut self,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<(), SourceError> {
        // A request that joins a pending one needs no place of its own, but whether it joins one is known only after it
        // has been admitted; so, as with a full request queue, the remaining requests wait outside.
        let mut due_ns = arrivals.next_ns();
        while self.lane.pending < self.lane.depth && due_ns <= now_ns {
            self.admit_one(due_ns, arrivals, device)?;
            due_ns = arrivals.next_ns();
        }
        Ok(())
    }

    /// Admits the request that arrives next to the queue whose turn it is.
    #[inline(always)] // for every request
    fn admit_one(
        &mut self,
        due_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<(), SourceError> {
        let id = arrivals.take(due_ns, &mut self.pool)?;
        let Host { lane, pool, blocks, needs, reshapes, .. } = self;
        if !(*reshapes && reshape(id, lane, needs.blocks.then_some(blocks), pool, arrivals)) {
            self.enter(id, device);
        }
        Ok(())
    }

    /// Adds a request to the pending queue.
    #[inline(always)] // called in one place, for every request
    fn enter(&mut self, id: u32, device: &impl DeviceView) {
        device.expect(self.pool[id].pages.first);
        if self.needs.translation_pages | self.needs.hits {
            let carried = self.has_entries(id);
            classify(&mut self.pool[id], carried, &self.needs, &mut self.awareness, device);
        }
        self.lane.admit(id, &mut self.pool);
    }

    /// Lets the scheduler decide which requests go next; returns the first of them, if there is one.
    #[inline(always)] // for every request
    fn choose(&mut self, now_ns: u64, arrivals: &mut impl Arrivals, device: &impl DeviceView) -> Option<u32> {
        let Host { lane, pool, blocks, .. } = self;
        let Lane { sched, ages, pending, .. } = &mut **lane;
        let decision =
            sched.choose_in(pool, || Surroundings { blocks, arrivals, device, ages, pending, now_ns });
        let id = match decision {
            Decision::Nothing => return None,
            Decision::One(id) => {
                self.lane.leave(id, &mut self.pool);
                // A hit that was the only pending request overtakes no other.
                if self.lane.pending == 0 {
                    self.pool[id].host.prioritized = false;
                }
                id
            }
            Decision::Batch(queue) => {
                let mut id = queue.head();
                while id != NONE {
                    self.lane.leave(id, &mut self.pool);
                    id = self.pool.behind(id);
                }
                self.lane.chosen = queue;
                if self.is_held() {
                    return None;
                }
                self.lane.chosen.pop(&mut self.pool)?
            }
        };
        self.lane.note_choice();
        Some(id)
    }

    /// Checks the pending queues, for check mode.
    ///
    /// # Errors
    /// A message that says what does not hold.
    pub fn verify(&self) -> Result<(), String> {
        self.lanes().try_for_each(|lane| lane.verify(&self.pool))
    }
}

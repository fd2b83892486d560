//! One instant of a simulation.

use std::hint::black_box;

use super::{Completion, Feed, Observer, RunError, Simulation};
use crate::device::Turn;
use crate::ftl::{Ftl, Inspect, Police, with_ftl};
use crate::host::Arrivals;
use crate::metrics::Done;
use crate::sim::{Activity, Handling};
use crate::util::NONE;
use crate::workload::SourceError;

/// Number of instants and completions between two calls of [`Observer::progress`].
const PROGRESS_INTERVAL: u64 = 4096;

/// In check mode, devices up to this many logical pages are verified completely after every request; larger devices are
/// verified completely at doubling intervals and at the end, but the pages and blocks of each request always.
const VERIFY_WHOLE: u32 = 2048;

/// Knows when check mode next verifies the whole device.
pub(super) struct Checker {
    lpns: u32,
    next_whole: u64,
}

/// What observers have been told, and when they are to be asked next.
pub(super) struct Seen {
    /// Submissions answered so far.
    pub answered: u64,
    /// Instants and completions so far, and at how many of them the observer is asked next.
    events: u64,
    looks: u64,
    /// When activity was last reported, if activity is reported.
    pub reported_ns: Option<u64>,
    /// Whether activity is reported, or commands go through a controller or a write buffer.
    pub more_at_instant: bool,
    /// Whether completions are reported.
    pub completions: bool,
    /// Whether more is done for a request that completes than recording it.
    pub more_at_completion: bool,
}

impl Seen {
    /// Begins to count; `more_at_instant` says whether commands go through a controller or a write buffer.
    pub fn new(more_at_instant: bool) -> Seen {
        Seen {
            answered: 0,
            events: 0,
            looks: PROGRESS_INTERVAL,
            reported_ns: None,
            more_at_instant,
            completions: true,
            more_at_completion: true,
        }
    }
}

impl Checker {
    pub(super) fn new(lpns: u32) -> Checker {
        Checker { lpns, next_whole: 1 }
    }
}

impl Simulation<'_> {
    /// Lets everything that is due now happen: steps end, requests complete, others arrive and are handed over.
    #[inline]
    pub(super) fn instant(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        if self.now_ns >= self.sampler.due_ns {
            self.sample();
        }
        let mut moved = self.device.advance(self.now_ns, &mut self.host.pool, &mut self.done);
        if self.seen.more_at_instant
            && (self.seen.reported_ns.is_some() || self.device.stages_ns() <= self.now_ns)
        {
            moved |= self.do_more(observer);
        }
        if !moved && self.nothing_begins() {
            return Ok(());
        }
        self.undecided = true;
        // Clients are not told about steps of the device's own: at how many instants such steps end depends on
        // whether activity is reported.
        let mut told = !self.done.is_empty() || self.feed.timer_ns() <= self.now_ns;
        loop {
            self.complete(observer)?;
            if told {
                self.tick()?;
            }
            let completed = self.hand_over()?;
            told = completed || self.feed.goes_on();
            if !told {
                return Ok(());
            }
        }
    }

    /// Whether nothing comes from above now and no task of the device's own is due, so that an instant at which steps
    /// and commands have only moved on is over.
    fn nothing_begins(&self) -> bool {
        let takes = self.device.has_room() && (self.host.waiting() > 0 || self.feed.next_ns() <= self.now_ns);
        let alarm_ns = self.device.tasks.alarm_ns(self.now_ns.saturating_sub(1));
        !takes && alarm_ns > self.now_ns && self.feed.timer_ns() > self.now_ns
    }

    /// Handles the controller and reports activity, in runs that have either; called once chips and buses have moved
    /// on. Returns whether anything can begin because of it.
    #[inline(never)] // keeps the path of all other runs short
    fn do_more(&mut self, observer: &mut dyn Observer) -> bool {
        let Simulation { device, host, ftl, work, done, now_ns, .. } = self;
        let pool = &mut host.pool;
        let moved = with_ftl!(ftl, ftl => {
            device.go_through(&mut Turn { now_ns: *now_ns, pool, ftl, work, done })
        });
        if self.seen.reported_ns.is_some() {
            self.tell_activity(observer);
        }
        moved
    }

    /// Lets the device begin work of its own; returns whether it did anything.
    pub(super) fn begin_own(&mut self) -> bool {
        let Simulation { device, host, feed, ftl, work, done, now_ns, .. } = self;
        let lull = !feed.ended() && feed.next_ns() > *now_ns;
        device.begin_own(Turn { now_ns: *now_ns, pool: &mut host.pool, ftl, work, done }, lull)
    }

    /// Runs the events that are due above the block layer.
    fn tick(&mut self) -> Result<(), RunError> {
        let Simulation { feed: Feed::Above(above), device, ftl, work, now_ns, check, .. } = self else {
            return Ok(());
        };
        above.tick(*now_ns)?;
        if above.wants_measure() {
            above.measure(Done { counts: *work.counts(), merges: ftl.merges() });
        }
        let kept = if check.is_some() { above.verify(&|lpn| device.version(lpn, ftl)) } else { Ok(()) };
        kept.map_err(|fault| self.broken(&fault))
    }

    /// Hands over everything for which the device has room, then lets the device choose; returns whether
    /// requests completed at once, so that there may be room again at this instant.
    #[inline(never)] // keeps its many addresses apart from those of the loop
    fn hand_over(&mut self) -> Result<bool, RunError> {
        // Opaque in each round; otherwise the compiler keeps dozens of addresses on the stack for other rounds.
        while self.device.has_room() && black_box(&mut *self).hand_over_one()? {}
        self.issue();
        if self.check.is_some() {
            self.host.verify().map_err(|fault| self.broken(&fault))?;
        }
        Ok(!self.done.is_empty())
    }

    /// Hands over a request, if there is one; returns whether there was.
    #[inline(always)] // for every request
    fn hand_over_one(&mut self) -> Result<bool, SourceError> {
        let Simulation { device, host, feed, ftl, work, done, now_ns, .. } = self;
        with_ftl!(ftl, ftl => {
            let Some(id) = host.next(*now_ns, feed, ftl)? else { return Ok(false) };
            let (pool, lent) = host.lend();
            let mut turn = Turn { now_ns: *now_ns, pool, ftl, work, done };
            device.accept(id, &mut turn, |request| lent.entries_of(request));
        });
        Ok(true)
    }

    /// Lets the device choose requests to issue.
    #[inline(always)] // for every instant
    fn issue(&mut self) {
        let Simulation { device, host, ftl, work, done, now_ns, .. } = self;
        with_ftl!(ftl, ftl => device.issue(&mut Turn { now_ns: *now_ns, pool: &mut host.pool, ftl, work, done }));
    }

    /// Reports activities that have ended by now, and how many requests have been pending since the last report.
    #[cold]
    pub(super) fn tell_activity(&mut self, observer: &mut dyn Observer) {
        let since_ns = self.seen.reported_ns.replace(self.now_ns).unwrap_or(0);
        observer.pending(since_ns, self.host.waiting());
        let power = &mut self.power;
        self.device.take_spans(&self.host.pool, |span, place, request| {
            if let Some(power) = power {
                power.operations.add_span(span);
            }
            observer.activity(&Activity::of(span, place, request));
        });
        self.device.take_served(self.now_ns, &self.host.pool, |served, request| {
            observer.handled(&Handling::of(served, request));
        });
    }

    /// Reports how much of the write buffer is in use, once all of an instant has happened.
    #[cold]
    pub(super) fn tell_level(&self, observer: &mut dyn Observer) {
        if let Some(pages) = self.device.buffer_level() {
            observer.buffer(self.now_ns, pages);
        }
    }

    /// Records and reports completed requests.
    #[inline(always)] // called in one place, for every request
    fn complete(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        self.seen.events += 1 + self.done.len() as u64;
        if self.seen.events >= self.seen.looks {
            self.look(observer)?;
        }
        for index in 0..self.done.len() {
            let mut id = self.done[index];
            if self.host.follows {
                let Some(whole) = self.finish(id) else { continue };
                id = whole;
            }
            self.complete_one(id, observer);
            if self.check.is_some() {
                // A request that has been released stays readable.
                self.verify(self.host.pool[id].pages)?;
            }
        }
        self.done.clear();
        Ok(())
    }

    /// Notes a completion that the host follows; returns the workload's request that completes with it, if any, which a
    /// command that reads mapping entries does not have.
    #[inline(never)] // keeps the path of all other hosts short
    fn finish(&mut self, id: u32) -> Option<u32> {
        if self.host.holds_map() {
            self.device.forget_carried(id, &self.host.pool[id]);
            if self.host.note_completed(id, self.device.handed_out()) {
                return None;
            }
        }
        self.host.finish(id, self.now_ns)
    }

    /// Records and reports one completed request.
    #[inline(never)] // within a loop, the compiler keeps dozens of addresses on the stack for it
    fn complete_one(&mut self, id: u32, observer: &mut dyn Observer) {
        self.recorder.complete(&self.host.pool[id], self.now_ns);
        if self.seen.more_at_completion {
            self.attend(id, observer);
        }
        if self.extent.outlasts {
            self.note_last();
        }
        self.feed.completed(self.now_ns, &self.host.pool[id]);
        self.host.pool.release(id);
        self.completed += 1;
        self.extent.last_ns = self.now_ns;
    }

    /// Does what only some runs need for a request that completes: reporting it, checking it, or noting how long parts
    /// worked.
    #[inline(never)] // keeps the path of all other runs short
    fn attend(&mut self, id: u32, observer: &mut dyn Observer) {
        if self.seen.completions {
            self.tell_completion(id, observer);
        }
        if let Some(tenants) = &mut self.tenants {
            tenants.complete(&self.host.pool[id], self.now_ns);
        }
        if let (Feed::Above(above), Some(_)) = (&mut self.feed, &self.check) {
            above.landed(&self.host.pool[id], &|lpn| self.device.version(lpn, &self.ftl));
        }
        self.device.completes();
    }

    /// Gives the observer a chance, now and then, to stop the run: timers may run for years without a completion.
    #[cold]
    fn look(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        self.seen.looks = self.seen.events + PROGRESS_INTERVAL;
        match observer.progress(self.completed) {
            true => Ok(()),
            false => Err(SourceError::Interrupted.into()),
        }
    }

    fn tell_completion(&mut self, id: u32, observer: &mut dyn Observer) {
        let completion = self.completion(id);
        observer.complete(&completion);
        let Feed::Submitted(submitted) = &self.feed else { return };
        let mut misses = completion.mapping_misses;
        submitted.each_behind(&self.host.pool[id], |of| {
            self.seen.answered += 1;
            let mapping_misses = std::mem::take(&mut misses);
            let (id, arrival_ns, offset, size) = (of.number, of.arrival_ns, of.offset, of.size);
            observer.answer(&Completion { id, arrival_ns, offset, size, mapping_misses, ..completion });
        });
    }

    /// Returns the report of a request that completes now.
    fn completion(&self, id: u32) -> Completion {
        let request = &self.host.pool[id];
        // A request that was refused, or cut, may never have been in the device's queue.
        let whole = !request.failed && request.host.whole == NONE;
        let found = if whole { self.device.found(id) } else { Default::default() };
        let of_device = if whole && !found.answered { self.device.batch_of(id) } else { None };
        let (batch, channel_batch) = of_device.unwrap_or((request.host.batch, 0));
        Completion {
            id: request.id,
            arrival_ns: request.arrival_ns,
            dispatch_ns: request.dispatch_ns,
            complete_ns: self.now_ns,
            failed: request.failed,
            op: request.op,
            offset: request.offset,
            size: request.size,
            mapping_misses: request.misses,
            prioritized: request.host.prioritized,
            expired: request.host.expired,
            batch,
            channel_batch: u64::from(channel_batch),
            buffered: found.pages,
            stream: request.pages.stream,
        }
    }

    #[cold]
    fn verify(&mut self, pages: crate::request::Pages) -> Result<(), RunError> {
        let Some(checker) = &mut self.check else { return Ok(()) };
        if checker.lpns <= VERIFY_WHOLE || self.completed >= checker.next_whole {
            checker.next_whole = self.completed * 2;
            return self.verify_whole();
        }
        self.ftl.verify_request(pages).map_err(|fault| self.broken(&fault))
    }

    pub(super) fn verify_whole(&self) -> Result<(), RunError> {
        let (elapsed_ns, used) = self.extent();
        if used.most() > elapsed_ns {
            return Err(self.broken(&format!("busy for {} of {elapsed_ns} ns", used.most())));
        }
        self.verify_energy(elapsed_ns).map_err(|fault| self.broken(&fault))?;
        self.ftl.verify().map_err(|fault| self.broken(&fault))
    }

    fn broken(&self, fault: &str) -> RunError {
        RunError::Check(format!("{fault} (after {} requests, at {} ns)", self.completed, self.now_ns))
    }
}

//! The simulation's one loop, as an object that holds the clock, the host and the device.
//!
//! A [`Simulation`] is a device at time 0 and what feeds it: requests submitted from outside ([`Simulation::new`]), a
//! trace or a generator ([`Simulation::replay`]), or something above the block layer that is told about completions
//! ([`Simulation::below`]). Its driver controls the time; into which calls of [`Simulation::advance`] does not matter.

mod feed;
mod instant;
mod kept;
mod observer;
mod operations;
mod outside;
mod power;
mod prepare;
mod report;
mod start;
mod state;
mod tenants;
mod timeline;

use crate::clock::NEVER;
use crate::device::Device;
use crate::flash::Work;
use crate::flash::moves::Moves;
use crate::ftl::{Follow, Ftl, Locate, Serve};
use crate::host::{Arrivals, Host, LATEST_NS, SubmitError};
use crate::metrics::{Preconditioning, Recorder, Report};
use crate::request::Pages;
use crate::settings::Settings;
use crate::workload::Record;
use feed::Feed;
use instant::{Checker, Seen};
pub use kept::Kept;
pub use observer::{Completion, Observer, RunError};
pub use operations::Operations;
pub use outside::Outside;
pub use power::{Cut, Power, Recovered};
pub use prepare::Prepared;
use report::{Extent, Sampler};
pub use start::{run, run_prepared, run_tenants};
pub use state::{FORMAT, Identity, StateError, is_state};
pub use timeline::{Activity, Dispatch, Handling, Track, Tracks};

/// One simulation in progress. It shares nothing with any other.
pub struct Simulation<'a> {
    settings: Settings,
    now_ns: u64,
    extent: Extent,
    feed: Feed<'a>,
    host: Host,
    device: Device,
    ftl: Ftl,
    work: Work,
    done: Vec<u32>,
    recorder: Recorder,
    /// The figures of the tenants, if there are any.
    tenants: Option<Box<tenants::Tenants>>,
    completed: u64,
    seen: Seen,
    precondition: Preconditioning,
    /// True until it is decided whether the device begins work of its own at this instant.
    undecided: bool,
    /// Whether there may be events of timers above the block layer or in it, or of commands in controller and write
    /// buffer.
    timed: bool,
    check: Option<Checker>,
    sampler: Sampler,
    /// The media and the record of operations that a power cut needs, if cuts are possible.
    power: Option<Box<power::Power>>,
    /// Whether power is off.
    off: bool,
}

impl<'a> Simulation<'a> {
    /// Returns a copy of the device, to be saved while nothing is in flight; in the copy, what the write buffer holds
    /// is on flash.
    pub fn prepared(&self) -> Prepared {
        let (mut ftl, done) = (self.ftl.clone(), self.precondition.clone());
        let mut work = self.settings.work();
        work.set_past(self.work.past(self.now_ns), |_| true);
        for lpn in self.device.dirty() {
            work.clear();
            ftl.write(Pages { first: lpn, pages: 1, ..Pages::NONE }, &mut work);
        }
        let mut prepared = Prepared::with(&self.settings, ftl, done, self.check.is_some());
        prepared.work.set_past(work.past(0), |_| true);
        prepared
    }

    /// From now on, reports all activity to observers; must be called before time has moved.
    pub fn report_activity(&mut self) {
        self.seen.reported_ns = Some(self.now_ns);
        self.seen.more_at_instant = true;
        self.device.keep_spans();
        self.work.label();
    }

    /// Submits a request, which arrives at `record.time_ns`; if that is now, it arrives after the decisions already
    /// taken. Returns the number of the submission, from 1.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing has changed in that case.
    pub fn submit(&mut self, record: Record) -> Result<u64, SubmitError> {
        let Feed::Submitted(submitted) = &mut self.feed else { return Err(SubmitError::Fed) };
        if self.off {
            return Err(SubmitError::Off);
        }
        let number = submitted.submit(self.now_ns, record)?;
        if self.extent.first_ns.is_none() {
            self.extent.first_ns = Some(record.time_ns);
            self.sampler = Sampler::new(&self.settings, self.extent.first_ns);
        }
        Ok(number)
    }

    /// Returns a record of where user data goes from now on; must be called before anything is submitted.
    pub fn follow(&mut self) -> Moves {
        let moves = Moves::default();
        self.ftl.follow(&moves);
        self.device.follow(&moves);
        if let Feed::Submitted(submitted) = &mut self.feed {
            submitted.moves = Some(moves.clone());
        }
        moves
    }

    /// Returns the slot of the user data that a logical page resolves to, or `u32::MAX` if it has no data.
    pub fn slot(&self, lpn: u32) -> u32 {
        self.ftl.slot(lpn)
    }

    /// Returns the simulated time, ns.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns when something can next happen without another submission, ns; `None` if nothing can.
    pub fn next_event_ns(&self) -> Option<u64> {
        // The device looks for work of its own once time moves on.
        let looks_ns = match (self.device.tasks.any(), self.undecided) {
            (false, _) => NEVER,
            (true, true) => self.now_ns + 1,
            (true, false) => self.device.tasks.alarm_ns(self.now_ns),
        };
        Some(self.due_ns().min(looks_ns)).filter(|&at_ns| at_ns != NEVER)
    }

    /// Lets everything up to and including `until_ns` happen. The time is then `until_ns`, even if nothing happened;
    /// but if [`Observer::room`] is used up first, time stops there.
    ///
    /// # Errors
    /// [`RunError::Past`] if `until_ns` is in the past, [`RunError::Late`] if it is more than a century after the
    /// start; otherwise the errors of [`run`].
    pub fn advance(&mut self, until_ns: u64, observer: &mut dyn Observer) -> Result<(), RunError> {
        if until_ns < self.now_ns {
            return Err(RunError::Past { until_ns, now_ns: self.now_ns });
        }
        if until_ns > LATEST_NS.max(self.now_ns) {
            return Err(RunError::Late(until_ns));
        }
        self.has_power()?;
        self.keep_open(true);
        if self.drive(until_ns, observer)? {
            self.now_ns = until_ns;
        }
        Ok(())
    }

    /// Lets everything happen up to the completion of the last request, including the host's own padding, and
    /// stops there, or when [`Observer::room`] is used up. Work of the device that no request waits for does
    /// not begin at that instant.
    ///
    /// # Errors
    /// The errors of [`run`].
    pub fn run_until_idle(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        self.has_power()?;
        self.keep_open(false);
        if !self.drive(NEVER, observer)? {
            return Ok(());
        }
        let pending = self.host.waiting();
        if pending > 0 {
            return Err(RunError::Held { pending, now_ns: self.now_ns });
        }
        if self.check.is_some() {
            self.verify_whole()?;
        }
        Ok(())
    }

    /// Runs a workload to its end.
    ///
    /// # Errors
    /// The errors of [`run`].
    pub fn run(mut self, observer: &mut dyn Observer) -> Result<Report, RunError> {
        if observer.wants_activity() {
            self.report_activity();
        }
        self.run_until_idle(observer)?;
        debug_assert!(self.feed.ended() && self.host.waiting() == 0);
        let report = self.report();
        if self.seen.reported_ns.is_some() {
            self.end_background(observer);
        }
        Ok(report)
    }

    /// Lets the device's own work in progress end, so that all activity is reported.
    fn end_background(&mut self, observer: &mut dyn Observer) {
        while self.device.next_ns() != NEVER {
            self.now_ns = self.device.next_ns();
            self.device.advance(self.now_ns, &mut self.host.pool, &mut self.done);
            self.tell_activity(observer);
        }
    }

    /// Sets whether more requests may be submitted before time moves on.
    fn keep_open(&mut self, open: bool) {
        if let Feed::Submitted(submitted) = &mut self.feed {
            submitted.open = open;
        }
    }

    /// Returns when something happens next, ns; [`NEVER`] if nothing will. A request that arrived while the
    /// device had no room waits for a completion.
    #[inline(always)] // for every instant
    fn due_ns(&self) -> u64 {
        let admits = self.device.has_room() && self.host.admits();
        let arrival_ns = if admits { self.feed.next_ns() } else { NEVER };
        let due_ns = self.device.array().next_ns().min(arrival_ns);
        if self.timed { self.due_with_others(due_ns) } else { due_ns }
    }

    /// Returns the time of the next event, ns, including those of timers above the block layer and in it, and of
    /// commands in the controller.
    #[inline(never)] // keeps the path short where there are none
    fn due_with_others(&self, due_ns: u64) -> u64 {
        let due_ns = due_ns.min(self.device.stages_ns()).min(self.feed.timer_ns());
        if self.host.waits() { self.due_with_scheduler(due_ns) } else { due_ns }
    }

    /// Returns the time of the next event, ns, including those of a scheduler that waits.
    #[cold]
    fn due_with_scheduler(&self, due_ns: u64) -> u64 {
        // A scheduler whose time has come is asked as soon as the device has room.
        let asks = |&host_ns: &u64| host_ns > self.now_ns && self.device.has_room();
        due_ns.min(Some(self.host.due_ns()).filter(asks).unwrap_or(NEVER))
    }

    /// Runs one instant after another up to `until_ns`, or until every request has completed; returns false if the
    /// observer's room was used up first.
    fn drive(&mut self, until_ns: u64, observer: &mut dyn Observer) -> Result<bool, RunError> {
        self.seen.completions = observer.wants_completions();
        self.seen.more_at_completion = self.seen.completions || self.check.is_some();
        self.seen.more_at_completion |= self.device.hears_time() || self.tenants.is_some();
        let most = self.seen.answered.saturating_add(observer.room());
        let last_ns = until_ns.min(NEVER - 1);
        let whole = loop {
            if self.seen.answered >= most {
                break false;
            }
            let mut next_ns = self.due_ns();
            if self.extent.outlasts {
                next_ns = self.due_with_own(next_ns, until_ns);
            }
            if next_ns > last_ns {
                break true;
            }
            self.now_ns = self.now_ns.max(next_ns);
            self.instant(observer)?;
            if self.seen.reported_ns.is_some() {
                self.tell_level(observer);
            }
        };
        if self.seen.reported_ns.is_some() {
            self.tell_activity(observer);
        }
        Ok(whole)
    }

    /// Lets the device's own work begin. Returns the time of the next event, ns, events of that work included;
    /// [`NEVER`] if there will be none, or if `until_ns` is [`NEVER`] and no request is left.
    #[inline(never)] // keeps the path short where nothing outlasts the requests
    fn due_with_own(&mut self, mut next_ns: u64, until_ns: u64) -> u64 {
        if self.device.tasks.any() {
            let over = self.is_over();
            if over && until_ns == NEVER {
                return NEVER;
            }
            // Only when time moves on has every event of an instant been handled.
            if next_ns > self.now_ns
                && self.now_ns < until_ns
                && std::mem::take(&mut self.undecided)
                && !over
                && self.device.acts()
                && self.begin_own()
            {
                next_ns = self.due_ns();
            }
            // Tasks that begin at set times do not keep a run alive: they are due only while requests are left, and
            // then only if something else will happen or time is limited.
            if !over && (next_ns != NEVER || until_ns != NEVER) {
                next_ns = next_ns.min(self.device.tasks.alarm_ns(self.now_ns));
            }
        }
        if next_ns <= until_ns && next_ns != NEVER && self.extent.used_before.is_none() {
            self.note_first(next_ns);
        }
        next_ns
    }

    /// Whether no request is left and none will come.
    fn is_over(&self) -> bool {
        self.feed.ended() && self.host.waiting() == 0 && !self.device.has_requests()
    }
}

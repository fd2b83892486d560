//! The one loop: clock, host, device.

mod arrivals;
mod blocks;
pub mod crash;
mod extras;
pub mod files;
mod host;
mod merge;
mod prepare;
mod state;
mod timeline;

use crate::clock::NEVER;
use crate::config::Settings;
use crate::coop::DeviceView;
use crate::device::Device;
use crate::flash::Work;
use crate::ftl::with_ftl;
use crate::ftl::{FlashTranslation, Ftl};
use crate::metrics::{Preconditioning, Recorder, Report, Sources};
use crate::util::NONE;
use crate::workload::bench::Clients;
use crate::workload::{Op, Source, SourceError};
use arrivals::Arrivals;
use extras::Sampler;
use files::{Done, FileHost};
use host::Host;
pub use prepare::Prepared;
pub use state::{FORMAT, Identity, StateError};
pub use timeline::{Activity, Dispatch, Track, Tracks};

/// A finished request, as the per-request file shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Number of the request, from 1 in trace order.
    pub id: u64,
    /// Arrival at the host, ns.
    pub arrival_ns: u64,
    /// Handed to the device, ns.
    pub dispatch_ns: u64,
    /// Completed, ns; of a failed request the time at which it was refused.
    pub complete_ns: u64,
    /// The device was read-only and refused it, or part of it.
    pub failed: bool,
    /// Operation.
    pub op: Op,
    /// First byte on the simulated device (after `out_of_range`).
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Mapping-cache misses of its pages.
    pub mapping_misses: u32,
    /// Dispatched ahead of others by choice (see the scheduler).
    pub prioritized: bool,
    /// Dispatched by deadline.
    pub expired: bool,
    /// Batch, from 1; 0: none. The device's, where its scheduler has batches, else the host's.
    pub batch: u64,
    /// Channel batch within its chip batch, from 1; 0: none.
    pub channel_batch: u64,
}

/// Receives what happens in a run.
pub trait Observer {
    /// A request completed. Completions of an instant come in dispatch order.
    fn complete(&mut self, completion: &Completion);

    /// Whether to call [`Observer::complete`]. Asked once, before the run.
    fn wants_completions(&self) -> bool {
        true
    }

    /// Called every some ten thousand pages before time 0 with what was done so far; `false` stops it.
    fn preconditioning(&mut self, _done: &Preconditioning) -> bool {
        true
    }

    /// Called every few thousand requests with their number so far; `false` stops the run.
    fn progress(&mut self, _requests: u64) -> bool {
        true
    }

    /// Whether to report what every chip and bus does. Asked once, before the run; its results are
    /// the same either way.
    fn wants_activity(&self) -> bool {
        false
    }

    /// A chip or a bus has worked; called when it ends, before the completion it leads to. Activities
    /// of one chip (die, plane) do not overlap, nor do those of one bus; with cache operations
    /// the cells of one and its transfers may ([`Tracks::overlap`]).
    fn activity(&mut self, _activity: &Activity) {}

    /// So many requests are in the scheduler's pending queue from `now_ns` on; called while activity
    /// is reported.
    fn pending(&mut self, _now_ns: u64, _requests: u32) {}
}

/// Ignores everything.
impl Observer for () {
    fn complete(&mut self, _completion: &Completion) {}

    fn wants_completions(&self) -> bool {
        false
    }
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Check mode found a broken invariant: a fault of ftlab. Says which and when.
    #[error("check failed: {0}")]
    Check(String),
}

/// Completions between two calls of [`Observer::progress`].
const PROGRESS_INTERVAL: u64 = 4096;

/// Devices up to this many logical pages are verified whole after every request in check mode;
/// larger ones whole at doubling intervals and at the end, and each request's pages and blocks always.
const VERIFY_WHOLE: u32 = 2048;

/// Preconditions the device and runs one simulation to its end.
///
/// # Errors
/// [`RunError`] if the source fails, the observer stops it or, with `check`, an invariant does not
/// hold.
pub fn run(
    settings: &Settings,
    source: &mut dyn Source,
    observer: &mut dyn Observer,
    check: bool,
) -> Result<Report, RunError> {
    let prepared = Prepared::new(settings, observer, check)?;
    run_prepared(settings, prepared, source, observer)
}

/// Runs one simulation on a device that was prepared for the same settings, or for settings with
/// the same [`Identity`].
///
/// # Errors
/// As [`run`].
pub fn run_prepared(
    settings: &Settings,
    prepared: Prepared,
    source: &mut dyn Source,
    observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    let arrivals = Arrivals::replay(source, settings)?;
    run_fed(settings, prepared, arrivals, observer)
}

/// As [`run_prepared`], with clients above a file system and its page cache instead of a source.
///
/// # Errors
/// As [`run`].
pub fn run_clients(
    settings: &Settings,
    prepared: Prepared,
    clients: Clients,
    observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    let block = blocks::block_pages(settings, DeviceView::new(&prepared.ftl));
    let block_bytes = u64::from(block) * u64::from(settings.ftl.logical_page_bytes);
    let files = FileHost::new(settings, clients, block_bytes, prepared.check);
    run_fed(settings, prepared, Arrivals::Files(Box::new(files)), observer)
}

fn run_fed(
    settings: &Settings,
    prepared: Prepared,
    mut arrivals: Arrivals,
    observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    let Prepared { mut ftl, work, done: precondition, check, tape } = prepared;
    if settings.allocates_by_speed() {
        with_ftl!(&mut ftl, ftl => ftl.choose_by_speed());
    }
    if let Some(how) = settings.ftl.gc_background {
        with_ftl!(&mut ftl, ftl => ftl.collect_in_background(how));
    }
    let lpns = with_ftl!(&ftl, ftl => ftl.logical_pages());
    let first_ns = arrivals.next_ns().unwrap_or(0);
    let mut run = Run {
        now_ns: 0,
        last_ns: 0,
        host: Host::new(settings, DeviceView::new(&ftl), arrivals.files().is_some()),
        arrivals,
        device: Device::new(settings),
        ftl,
        work,
        done: Vec::with_capacity(256),
        recorder: Recorder::new(lpns),
        completed: 0,
        background_flush: settings.ftl.background_flush,
        gc_background: settings.ftl.gc_background.is_some(),
        check: check.then_some(Checker { lpns, next_whole: 1 }),
        reported_ns: observer.wants_activity().then_some(0),
        reports_completions: observer.wants_completions(),
        sampler: Sampler::new(settings, first_ns),
    };
    if run.device.array().overlaps_steps() {
        run.work.keep_apart();
        run.work.number_loads();
    }
    if run.reported_ns.is_some() {
        run.device.keep_spans();
        run.work.label();
    }
    if let Some(tape) = tape {
        run.device.keep_tape(tape);
    }
    if settings.results.miss_curve {
        run.device.keep_lookups(&run.ftl);
    }
    run.drive(observer)?;
    Ok(run.report(settings, &precondition, first_ns))
}

/// When check mode looks at everything.
struct Checker {
    lpns: u32,
    next_whole: u64,
}

/// A simulation under way.
struct Run<'a> {
    now_ns: u64,
    /// Time of the last completion.
    last_ns: u64,
    arrivals: Arrivals<'a>,
    host: Host,
    device: Device,
    ftl: Ftl,
    work: Work,
    done: Vec<u32>,
    recorder: Recorder,
    completed: u64,
    background_flush: bool,
    gc_background: bool,
    check: Option<Checker>,
    /// When activity was reported last, if it is.
    reported_ns: Option<u64>,
    reports_completions: bool,
    sampler: Sampler,
}

impl Run<'_> {
    /// What there is to say once everything has completed.
    fn report(&mut self, settings: &Settings, precondition: &Preconditioning, first_ns: u64) -> Report {
        let page = u64::from(settings.flash.page_bytes);
        let mut report = Report::new(&Sources {
            recorder: &self.recorder,
            source: self.arrivals.summary(),
            scheduler: (&settings.host.scheduler, self.host.batches()),
            device_scheduler: &settings.device.scheduler,
            device: &self.device,
            ftl: &self.ftl,
            precondition,
            counts: self.work.counts(),
            elapsed_ns: self.last_ns.saturating_sub(first_ns),
            page_bytes: (page, u64::from(settings.ftl.logical_page_bytes)),
            dies_per_chip: settings.flash.dies_per_chip,
            program_ns: settings.flash.program_ns,
            spare_threshold_ppm: settings.ftl.spare_threshold_ppm,
            histograms: settings.results.histograms,
        });
        if let Some(files) = self.arrivals.files() {
            let merges = with_ftl!(&self.ftl, ftl => ftl.merges());
            let done = Done { counts: *self.work.counts(), merges };
            let sections = files.sections(&done, self.host.merged());
            report.benchmark = Some(sections.benchmark);
            report.page_cache = sections.page_cache;
            report.file_system = sections.file_system;
        }
        self.add_extras(settings, &mut report);
        report
    }

    fn drive(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        loop {
            if self.now_ns >= self.sampler.due_ns {
                self.sample();
            }
            self.device.advance(self.now_ns, &mut self.host.pool, &mut self.done);
            if self.reported_ns.is_some() {
                self.report_activity(observer);
            }
            loop {
                self.complete(observer)?;
                if let Arrivals::Files(_) = self.arrivals {
                    self.tick()?;
                }
                if !self.hand_over()? {
                    break;
                }
            }
            if self.background_flush
                && self.device.is_idle()
                && !self.arrivals.ended()
                && self.arrivals.next_ns().is_none_or(|at| at > self.now_ns)
            {
                self.device.write_back(self.now_ns, &mut self.ftl, &mut self.work);
            }
            if self.gc_background && !self.ended() {
                self.device.collect(self.now_ns, &mut self.ftl, &mut self.work);
            }
            let admits = self.device.has_room() && !self.host.is_held();
            let arrival_ns = if admits { self.arrivals.next_ns() } else { None };
            let next_ns =
                self.device.next_ns().min(arrival_ns.unwrap_or(NEVER)).min(self.arrivals.timer_ns());
            if next_ns == NEVER {
                if self.reported_ns.is_some() {
                    self.report_activity(observer);
                }
                break;
            }
            self.now_ns = self.now_ns.max(next_ns);
        }
        debug_assert!(self.arrivals.ended() && self.host.waiting() == 0 && self.device.is_idle());
        match &self.check {
            Some(_) => self.verify_whole(),
            None => Ok(()),
        }
    }

    /// Lets what is above the block layer do what is due.
    fn tick(&mut self) -> Result<(), RunError> {
        self.arrivals.tick(self.now_ns)?;
        let Some(files) = self.arrivals.files() else { return Ok(()) };
        if files.wants_measure() {
            let merges = with_ftl!(&self.ftl, ftl => ftl.merges());
            files.measure(Done { counts: *self.work.counts(), merges });
        }
        if self.check.is_none() {
            return Ok(());
        }
        let ftl = &self.ftl;
        let version = |lpn| with_ftl!(ftl, ftl => ftl.version(lpn));
        files.verify(&version).map_err(|fault| self.broken(&fault))
    }

    /// Whether every request has completed.
    fn ended(&self) -> bool {
        self.device.is_idle() && self.host.waiting() == 0 && self.arrivals.ended()
    }

    /// Hands over all the device has room for, then lets the device choose; whether requests
    /// completed at once, so that there may be room again at this instant.
    #[inline(always)] // called in one place, for every request
    fn hand_over(&mut self) -> Result<bool, RunError> {
        while self.device.has_room() {
            let view = DeviceView::new(&self.ftl);
            let Some(id) = self.host.next(self.now_ns, &mut self.arrivals, view)? else { break };
            if self.device.refuses(self.host.pool[id].op) {
                self.host.pool[id].failed = true;
                self.done.push(id);
                continue;
            }
            self.device.accept(id, &mut self.host.pool, &self.ftl);
        }
        let Run { device, host, ftl, work, done, now_ns, .. } = self;
        device.issue(*now_ns, &mut host.pool, ftl, work, done);
        Ok(!self.done.is_empty())
    }

    /// Reports what has ended now, and what is pending since the last report.
    #[cold]
    fn report_activity(&mut self, observer: &mut dyn Observer) {
        let since_ns = self.reported_ns.replace(self.now_ns).unwrap_or(0);
        observer.pending(since_ns, self.host.waiting());
        self.device.take_spans(&self.host.pool, |span, place, request| {
            observer.activity(&Activity::of(span, place, request));
        });
    }

    /// Records and reports what has completed.
    #[inline(always)] // called in one place, for every request
    fn complete(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        for index in 0..self.done.len() {
            self.last_ns = self.now_ns;
            let Some(id) = self.host.finish(self.done[index]) else { continue };
            let request = &self.host.pool[id];
            let pages = request.pages;
            self.recorder.complete(request, self.now_ns);
            if self.reports_completions {
                observer.complete(&self.completion(id));
            }
            if self.check.is_some()
                && let Some(files) = self.arrivals.files()
            {
                let ftl = &self.ftl;
                files.landed(&self.host.pool[id], &|lpn| with_ftl!(ftl, ftl => ftl.version(lpn)));
            }
            self.arrivals.completed(self.now_ns, &self.host.pool[id]);
            self.host.pool.release(id);
            self.completed += 1;
            if self.check.is_some() {
                self.verify(pages)?;
            }
            if self.completed.is_multiple_of(PROGRESS_INTERVAL) && !observer.progress(self.completed) {
                return Err(SourceError::Interrupted.into());
            }
        }
        self.done.clear();
        Ok(())
    }

    /// What is reported of a request that completes now.
    fn completion(&self, id: u32) -> Completion {
        let request = &self.host.pool[id];
        // A request that was refused, or cut, may never have been in the device's queue.
        let whole = !request.failed && request.whole == NONE;
        let of_device = if whole { self.device.batch_of(id) } else { None };
        let (batch, channel_batch) = of_device.unwrap_or((request.batch, 0));
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
            prioritized: request.prioritized,
            expired: request.expired,
            batch,
            channel_batch: u64::from(channel_batch),
        }
    }

    fn verify(&mut self, pages: crate::ftl::Request) -> Result<(), RunError> {
        let Some(checker) = &mut self.check else { return Ok(()) };
        if checker.lpns <= VERIFY_WHOLE || self.completed >= checker.next_whole {
            checker.next_whole = self.completed * 2;
            return self.verify_whole();
        }
        with_ftl!(&self.ftl, ftl => ftl.verify_request(pages)).map_err(|fault| self.broken(&fault))
    }

    fn verify_whole(&self) -> Result<(), RunError> {
        with_ftl!(&self.ftl, ftl => ftl.verify()).map_err(|fault| self.broken(&fault))
    }

    fn broken(&self, fault: &str) -> RunError {
        RunError::Check(format!("{fault} (after {} requests, at {} ns)", self.completed, self.now_ns))
    }
}

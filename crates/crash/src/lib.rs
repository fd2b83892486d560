//! Power cuts: a device loses power again and again, and what it recovers is compared with what it
//! promised.
//!
//! A *life* is one device. It runs requests through the whole stack until power is cut, between two flash operations
//! or inside some of them; the flash then holds what had finished ([`leg`]), and everything else is gone. The FTL is
//! rebuilt from the flash alone, in a recovery that may be cut too, and the host's account ([`ledger`]) says which
//! versions each logical page may now have. Then the device continues, in check mode, until the next cut.

mod ledger;
mod leg;
mod requests;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use ftlab_core::ftl::recovery::{Flaw, Recovery};
use ftlab_core::ftl::{Ftl, Police, Serve};
use ftlab_core::metrics::Preconditioning;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Completion, Observer, Power, Prepared, RunError, run_prepared};
use ftlab_core::util::{below, stream};
use ftlab_core::workload::{Source, SourceError};
use ledger::Ledger;
use leg::Leg;
pub use requests::Requests;

/// Upper bound on the number of cuts during one recovery.
const RECOVERY_CUTS: u32 = 3;

/// Upper bound on the number of requests that the host or the device holds, however deep its queue is: the workload
/// repeats without end, and all its requests may arrive at the same time.
const MOST_WAITING: u32 = 1 << 10;

/// When power is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// `count` times, each after a random number of flash operations whose mean is `mean`.
    Random {
        /// Number of cuts.
        count: u64,
        /// Mean number of operations between cuts.
        mean: u64,
    },
    /// At each of these numbers of finished programs and erases, which ascend and are counted from time 0, without the
    /// operations of recoveries.
    At(Vec<u64>),
}

/// How the cuts are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// When power is cut.
    pub cuts: Cuts,
    /// Seed of the cuts.
    pub seed: u64,
    /// A deliberate defect, for tests.
    #[doc(hidden)]
    pub flaw: Flaw,
}

/// Mean and maximum of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct MeanAndMax {
    /// Sum.
    #[serde(skip)]
    sum: u128,
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: u64,
}

impl MeanAndMax {
    fn add(&mut self, value: u64, count: u64) {
        self.sum += u128::from(value);
        self.mean = self.sum as f64 / count as f64;
        self.max = self.max.max(value);
    }
}

/// Number of recoveries, and the cost of those that were not cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Recoveries {
    /// Number of recoveries that finished.
    pub count: u64,
    /// Number of recoveries that were cut.
    pub cut: u64,
    /// Pages whose spare area was read.
    pub scan_reads: MeanAndMax,
    /// Translation pages and trims read.
    pub map_reads: MeanAndMax,
    /// Pages read to be copied.
    pub gc_reads: MeanAndMax,
    /// Pages programmed.
    pub programs: MeanAndMax,
    /// Blocks erased.
    pub erases: MeanAndMax,
    /// Simulated time, ns.
    pub elapsed_ns: MeanAndMax,
}

impl Recoveries {
    fn add(&mut self, recovery: &Recovery, elapsed_ns: u64) {
        self.count += 1;
        let count = self.count;
        self.scan_reads.add(recovery.scan_reads, count);
        self.map_reads.add(recovery.map_reads, count);
        self.gc_reads.add(recovery.gc_reads, count);
        self.programs.add(recovery.programs, count);
        self.erases.add(recovery.erases, count);
        self.elapsed_ns.add(elapsed_ns, count);
    }
}

/// The outcome of a life.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Number of cuts, not counting those during recoveries.
    pub cuts: u64,
    /// Whether worn-out blocks made the device read-only; its cut was then the last.
    pub read_only: bool,
    /// Number of requests acknowledged.
    pub requests: u64,
    /// Number of programs and erases finished.
    pub operations: u64,
    /// Number of programs torn, including those of recoveries.
    pub torn_programs: u64,
    /// Number of erases torn, including those of recoveries.
    pub torn_erases: u64,
    /// Number of writes, over all cuts, that had to be there because a flush or FUA had made them durable since the
    /// previous cut.
    pub durable_writes: u64,
    /// Number of trims, over all cuts, that had to be in effect because they had become durable since the previous cut.
    pub durable_trims: u64,
    /// Number of logical pages compared, over all cuts.
    pub pages_verified: u64,
    /// Cost of the recoveries.
    pub recovery: Recoveries,
}

/// Why a life ended early.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// The workload failed or was interrupted.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The device broke a promise, or ftlab one of its own rules: a bug in ftlab.
    #[error("cut {cut}: {what}")]
    Fault {
        /// Number of the cut, from 1.
        cut: u64,
        /// What went wrong.
        what: String,
    },
}

/// One device and its cuts.
struct Life<'a> {
    settings: &'a Settings,
    options: &'a Options,
    random: Xoshiro256PlusPlus,
    power: Power,
    ledger: Ledger,
    summary: Summary,
}

/// Cuts the power of one device again and again. `reopen` opens the workload at the start, and again whenever its
/// requests have run out. `progress` is called at every cut, and now and then between cuts, and may stop the campaign.
///
/// # Errors
/// [`CrashError`].
///
/// # Panics
/// If the settings were not checked.
pub fn crash<'s>(
    settings: &Settings,
    reopen: &mut (dyn FnMut() -> Result<Box<dyn Source + Send + 's>, SourceError> + Send),
    options: &Options,
    progress: &mut dyn FnMut(&Summary) -> bool,
) -> Result<Summary, CrashError> {
    let mut settings = settings.clone();
    settings.ftl.power_safe = true;
    settings.host.queue_depth = settings.host.queue_depth.min(MOST_WAITING);
    settings.device.queue_depth = settings.device.queue_depth.min(MOST_WAITING);
    let settings = &settings;
    let mut prepared =
        Prepared::new(settings, &mut Beginning(progress), true).map_err(|error| before(0, error))?;
    let power =
        prepared.allow_cuts(settings).map_err(|message| CrashError::Source(SourceError::Input(message)))?;
    let mut life = Life {
        settings,
        options,
        random: stream(options.seed, "crash"),
        ledger: Ledger::new(prepared.ftl(), &power.media)
            .map_err(|what| CrashError::Fault { cut: 0, what })?,
        power,
        summary: Summary::default(),
    };
    let mut requests = leg::Passes::new(reopen)?;
    let mut next = Some(prepared);
    while let Some(until) = life.next_cut() {
        let prepared = next.take().expect("recovered");
        let step = catch_unwind(AssertUnwindSafe(|| life.cut(prepared, until, &mut requests, progress)));
        next = Some(match step {
            Ok(outcome) => outcome?,
            Err(panic) => return Err(life.fault(panicked(&*panic))),
        });
        if life.summary.read_only {
            break;
        }
        if !progress(&life.summary) {
            return Err(SourceError::Interrupted.into());
        }
    }
    Ok(life.summary)
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    format!("panicked: {}", text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message"))
}

/// Follows the preconditioning of a device, and may stop it.
struct Beginning<'a>(&'a mut dyn FnMut(&Summary) -> bool);

impl Observer for Beginning<'_> {
    fn complete(&mut self, _completion: &Completion) {}

    fn preconditioning(&mut self, _done: &Preconditioning) -> bool {
        (self.0)(&Summary::default())
    }
}

fn before(cut: u64, error: RunError) -> CrashError {
    match error {
        RunError::Source(error) => CrashError::Source(error),
        RunError::Check(what) => CrashError::Fault { cut, what },
        other => CrashError::Fault { cut, what: other.to_string() },
    }
}

impl Life<'_> {
    fn fault(&self, what: String) -> CrashError {
        CrashError::Fault { cut: self.summary.cuts, what }
    }

    fn draw(&mut self, bound: u64) -> u64 {
        below(self.random.next_u64(), bound)
    }

    /// Returns the number of operations to the next cut; `None` if there are no more cuts.
    fn next_cut(&mut self) -> Option<u64> {
        match &self.options.cuts {
            Cuts::Random { count, mean } => {
                let (count, mean) = (*count, *mean);
                (self.summary.cuts < count).then(|| self.draw(2 * mean + 1))
            }
            Cuts::At(at) => {
                let next = at.get(self.summary.cuts as usize)?;
                Some(next.saturating_sub(self.summary.operations))
            }
        }
    }

    /// Runs requests up to a cut, recovers, verifies, and returns the device with which to continue.
    fn cut(
        &mut self,
        prepared: Prepared,
        until: u64,
        requests: &mut leg::Passes,
        progress: &mut dyn FnMut(&Summary) -> bool,
    ) -> Result<Prepared, CrashError> {
        let so_far = self.summary.clone();
        let mut go_on = || progress(&so_far);
        let mut leg = Leg::new(until, &mut go_on);
        self.summary.cuts += 1;
        requests.begin(&leg);
        run_prepared(self.settings, prepared, requests, &mut leg)
            .map_err(|error| before(self.summary.cuts, error))?;
        let target = leg.target(&mut self.random);
        self.power.operations = std::mem::take(&mut leg.operations);
        let cut = self.power.cut_after(target, &mut self.random).map_err(|what| self.fault(what))?;
        self.summary.operations += cut.finished;
        self.summary.torn_programs += cut.torn_programs;
        self.summary.torn_erases += cut.torn_erases;
        let (issues, events) = self.power.tape.take_events();
        let kept = &mut self.power.kept;
        self.summary.requests += self.ledger.take(&leg, (&issues, &events), cut.time_ns, self.settings, kept);
        let ftl = self.recover()?;
        let ftl = self.verify(ftl)?;
        Ok(Prepared::recovered(self.settings, ftl, &self.power.tape))
    }

    /// Recovers the FTL: zero or more attempts are cut, then one is not.
    fn recover(&mut self) -> Result<Ftl, CrashError> {
        let mut cuts = if self.draw(4) == 0 { 1 + self.draw(u64::from(RECOVERY_CUTS)) } else { 0 };
        loop {
            let found = self.power.recover(self.settings, self.options.flaw);
            let (ftl, recovery, elapsed_ns) =
                found.map_err(|what| self.fault(format!("recovery: {what}")))?;
            let total = self.power.operations.count();
            self.power.tape.take_events();
            // A cut before the first change of the flash, or after the last, shows nothing new.
            let target = if cuts > 0 && total > 0 { self.draw(total) } else { total };
            cuts = cuts.saturating_sub(1);
            let cut = self.power.cut_after(target, &mut self.random);
            let cut = cut.map_err(|what| self.fault(format!("recovery: {what}")))?;
            self.summary.torn_programs += cut.torn_programs;
            self.summary.torn_erases += cut.torn_erases;
            if target == total {
                self.summary.recovery.add(&recovery, elapsed_ns);
                return Ok(ftl);
            }
            self.summary.recovery.cut += 1;
        }
    }

    /// Compares what the device has with what it promised.
    fn verify(&mut self, ftl: Ftl) -> Result<Ftl, CrashError> {
        if let Some(fault) = self.power.media.fault() {
            return Err(self.fault(fault.into()));
        }
        ftl.verify().map_err(|what| self.fault(format!("recovered: {what}")))?;
        let verdict = self
            .ledger
            .settle(&ftl, &self.power.media, &mut self.power.kept)
            .map_err(|what| self.fault(what))?;
        self.summary.durable_writes += verdict.durable_writes;
        self.summary.durable_trims += verdict.durable_trims;
        self.summary.pages_verified += verdict.pages;
        self.summary.read_only = ftl.is_read_only();
        Ok(ftl)
    }
}

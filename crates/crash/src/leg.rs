//! A stretch of a device's life up to a power cut: the simulation is run past the cut, so that the end of
//! everything in service at the cut is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ftlab_core::device::Stage;
use ftlab_core::flash::Operation;
use ftlab_core::sim::{Activity, Completion, Observer, Operations};
use ftlab_core::util::below;
use ftlab_core::workload::{Op, Record, Source, SourceError, SourceSummary};
use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Watches the run of one leg.
pub struct Leg<'a> {
    /// Number of programs and erases that finish before the cut.
    until: u64,
    go_on: &'a mut dyn FnMut() -> bool,
    over: Arc<AtomicBool>,
    /// The programs and erases of the run.
    pub operations: Operations,
    /// The completions of the run.
    pub completions: Vec<Completion>,
}

impl<'a> Leg<'a> {
    /// Makes the observer for a cut after this many programs and erases; `go_on` is asked now and then, and may
    /// stop the run.
    pub fn new(until: u64, go_on: &'a mut dyn FnMut() -> bool) -> Leg<'a> {
        let over = Arc::new(AtomicBool::new(until == 0));
        Leg { until, go_on, over, operations: Operations::default(), completions: Vec::new() }
    }

    /// Returns the number of programs and erases that have finished at the cut: the chosen number or, if the device
    /// became read-only before reaching it, a smaller one, drawn at random.
    pub fn target(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        let ran = self.operations.count();
        let ended = self.completions.iter().any(is_refused) && ran < self.until;
        if ended { below(random.next_u64(), ran + 1) } else { self.until }
    }
}

/// Whether a read-only device refused a request; a read that fails could not be corrected.
fn is_refused(completion: &Completion) -> bool {
    completion.failed && completion.op != Op::Read
}

impl Observer for Leg<'_> {
    fn complete(&mut self, completion: &Completion) {
        if is_refused(completion) {
            // The device has become read-only: nothing changes any more.
            self.over.store(true, Relaxed);
        }
        self.completions.push(*completion);
    }

    fn progress(&mut self, _requests: u64) -> bool {
        (self.go_on)()
    }

    fn wants_activity(&self) -> bool {
        true
    }

    fn activity(&mut self, activity: &Activity) {
        let Some(number) = activity.number.filter(|_| activity.stage == Stage::Cells) else { return };
        let erase = activity.operation == Operation::Erase;
        self.operations.add(number, erase, [activity.begin_ns, activity.end_ns], activity.suspended);
        if self.operations.count() >= self.until {
            self.over.store(true, Relaxed);
        }
    }
}

/// A function that opens the requests from the start.
type Reopen<'a, 's> = &'a mut (dyn FnMut() -> Result<Box<dyn Source + Send + 's>, SourceError> + Send);

/// The requests of a device's life, leg by leg; each leg begins at time 0.
pub struct Passes<'a, 's> {
    reopen: Reopen<'a, 's>,
    source: Box<dyn Source + Send + 's>,
    over: Arc<AtomicBool>,
    /// Stamp of the first record since the source was last opened.
    base_ns: Option<u64>,
    /// The stamp from which this pass goes on, and the last stamp handed out, ns.
    from_ns: u64,
    last_ns: u64,
    /// Whether the current pass has had any requests, and any writes.
    any: bool,
    writes: bool,
}

impl<'a, 's> Passes<'a, 's> {
    /// Opens the requests from the start.
    pub fn new(reopen: Reopen<'a, 's>) -> Result<Passes<'a, 's>, SourceError> {
        let source = reopen()?;
        let over = Arc::default();
        Ok(Passes { reopen, source, over, base_ns: None, from_ns: 0, last_ns: 0, any: false, writes: false })
    }

    /// Begins a leg: the next requests belong to it.
    pub fn begin(&mut self, leg: &Leg) {
        self.over = leg.over.clone();
        (self.base_ns, self.from_ns, self.last_ns) = (None, 0, 0);
    }
}

impl Passes<'_, '_> {
    /// Begins the next pass, which continues from the last stamp.
    fn begin_anew(&mut self) -> Result<(), SourceError> {
        if !self.any {
            return Err(SourceError::Input("the workload has no requests, so nothing can be cut".into()));
        }
        if !self.writes {
            return Err(SourceError::Input("the workload writes nothing, so nothing can be cut".into()));
        }
        (self.any, self.writes) = (false, false);
        self.source = (self.reopen)()?;
        (self.base_ns, self.from_ns) = (None, self.last_ns);
        Ok(())
    }
}

impl Source for Passes<'_, '_> {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.over.load(Relaxed) {
            return Ok(None);
        }
        let Some(mut record) = self.source.next()? else {
            self.begin_anew()?;
            return self.next();
        };
        self.any = true;
        self.writes |= record.op == Op::Write;
        let base_ns = *self.base_ns.get_or_insert(record.time_ns);
        record.time_ns = self.from_ns + (record.time_ns - base_ns);
        self.last_ns = record.time_ns;
        Ok(Some(record))
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        self.source.has_streams()
    }

    fn summary(&self) -> SourceSummary {
        self.source.summary()
    }

    fn locate(&self, record: &Record) -> String {
        self.source.locate(record)
    }
}

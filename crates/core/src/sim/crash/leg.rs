//! A stretch of a device's life up to a power cut.
//!
//! The simulation is run past the cut, so that everything in service at the cut is known with its
//! end; then the cut is made: what had finished is applied to the media, what was in service is
//! torn (or, one time in four, just made it), the rest never happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::{Part, Span};
use crate::flash::Operation;
use crate::flash::media::{Change, Media};
use crate::sim::{Activity, Completion, Observer};
use crate::util::{NONE, below};
use crate::workload::{Op, Record, Source, SourceError, SourceSummary};

/// A program or an erase.
#[derive(Clone, Copy, Debug)]
struct Ran {
    erase: bool,
    begin_ns: u64,
    end_ns: u64,
}

/// The programs and erases of a leg, by number, and the order in which they finished.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    ran: Vec<Option<Ran>>,
    finished: Vec<u32>,
}

/// What a cut did.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// What is before this has happened, ns.
    pub time_ns: u64,
    /// Programs and erases finished.
    pub finished: u64,
    /// Programs torn.
    pub torn_programs: u64,
    /// Erases torn.
    pub torn_erases: u64,
}

impl Operations {
    /// Takes a stretch of an operation, the last unless it was `suspended`.
    fn add(&mut self, number: u32, erase: bool, [begin_ns, end_ns]: [u64; 2], suspended: bool) {
        let at = number as usize;
        if at >= self.ran.len() {
            self.ran.resize(at + 1, None);
        }
        let begin_ns = self.ran[at].map_or(begin_ns, |before| before.begin_ns);
        self.ran[at] = Some(Ran { erase, begin_ns, end_ns });
        if !suspended {
            self.finished.push(number);
        }
    }

    /// Takes what an idle device's chip did.
    pub fn add_span(&mut self, span: &Span) {
        if span.part == Part::Cells && span.label.number != NONE {
            let erase = span.label.operation == Operation::Erase;
            self.add(span.label.number, erase, [span.begin_ns, span.end_ns], span.suspended);
        }
    }

    /// Operations that ran.
    pub fn count(&self) -> u64 {
        self.finished.len() as u64
    }

    /// How many have finished at `time_ns`.
    pub fn finished_by(&self, time_ns: u64) -> usize {
        self.finished
            .partition_point(|&number| self.ran[number as usize].is_some_and(|ran| ran.end_ns <= time_ns))
    }

    /// The cut when `target` operations have finished (all, if there are fewer): their number, and a moment
    /// until the next one finishes, ns.
    pub fn after(&self, target: u64, random: &mut Xoshiro256PlusPlus) -> (usize, u64) {
        let finished = target.min(self.finished.len() as u64) as usize;
        let end_ns = |at: usize| self.at(self.finished[at]).end_ns;
        let last_ns = if finished == 0 { 0 } else { end_ns(finished - 1) };
        let time_ns = match self.finished.len() > finished {
            false => u64::MAX,
            true if end_ns(finished) > last_ns => {
                last_ns + 1 + below(random.next_u64(), end_ns(finished) - last_ns)
            }
            true => last_ns,
        };
        (finished, time_ns)
    }

    /// Cuts the power at a moment when so many operations have finished: what is before it has happened.
    ///
    /// # Errors
    /// In words, if the tape and the array do not tell the same.
    pub fn cut(
        &self,
        changes: Vec<Change>,
        (finished, time_ns): (usize, u64),
        random: &mut Xoshiro256PlusPlus,
        media: &mut Media,
    ) -> Result<Cut, String> {
        self.compare(&changes)?;
        let mut changes: Vec<Option<Change>> = changes.into_iter().map(Some).collect();
        for &number in &self.finished[..finished] {
            media.apply(changes[number as usize].take().expect("each finishes once"));
        }
        let mut cut = Cut { time_ns, finished: finished as u64, torn_programs: 0, torn_erases: 0 };
        for &number in &self.finished[finished..] {
            let Ran { erase, begin_ns, .. } = *self.at(number);
            if begin_ns >= time_ns {
                continue;
            }
            let change = changes[number as usize].take().expect("each finishes once");
            if below(random.next_u64(), 4) == 0 {
                media.apply(change);
            } else {
                media.tear(change);
                cut.torn_erases += u64::from(erase);
                cut.torn_programs += u64::from(!erase);
            }
        }
        Ok(cut)
    }

    fn at(&self, number: u32) -> &Ran {
        self.ran[number as usize].as_ref().expect("compared")
    }

    /// Every change on the tape is an operation that ran, in the same order of decision.
    fn compare(&self, changes: &[Change]) -> Result<(), String> {
        if changes.len() != self.finished.len() || self.ran.iter().any(Option::is_none) {
            return Err(format!(
                "the FTL decided {} programs and erases, {} ran",
                changes.len(),
                self.finished.len()
            ));
        }
        let differs = |(change, ran): (&Change, &Option<Ran>)| {
            matches!(change, Change::Erase { .. }) != ran.is_some_and(|ran| ran.erase)
        };
        match changes.iter().zip(&self.ran).position(differs) {
            Some(at) => Err(format!("operation {at} ran as another than the FTL decided: {:?}", changes[at])),
            None => Ok(()),
        }
    }
}

/// Watches a run.
pub struct Leg<'a> {
    /// Programs and erases that finish before the cut.
    until: u64,
    go_on: &'a mut dyn FnMut() -> bool,
    over: Arc<AtomicBool>,
    /// Programs and erases.
    pub operations: Operations,
    /// Completions.
    pub completions: Vec<Completion>,
}

impl<'a> Leg<'a> {
    /// Up to a cut after so many programs and erases; `go_on` is asked now and then, and may stop it.
    pub fn new(until: u64, go_on: &'a mut dyn FnMut() -> bool) -> Leg<'a> {
        let over = Arc::new(AtomicBool::new(until == 0));
        Leg { until, go_on, over, operations: Operations::default(), completions: Vec::new() }
    }

    /// Programs and erases that have finished at the cut; of a device that turned read-only before the
    /// cut that was chosen, some of those there are.
    pub fn target(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        let ran = self.operations.finished.len() as u64;
        let ended = self.completions.iter().any(|done| done.failed) && ran < self.until;
        if ended { below(random.next_u64(), ran + 1) } else { self.until }
    }
}

impl Observer for Leg<'_> {
    fn complete(&mut self, completion: &Completion) {
        if completion.failed {
            // The device is read-only: nothing changes any more.
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
        let Some(number) = activity.number.filter(|_| activity.part == Part::Cells) else { return };
        let erase = activity.operation == Operation::Erase;
        self.operations.add(number, erase, [activity.begin_ns, activity.end_ns], activity.suspended);
        if self.operations.finished.len() as u64 >= self.until {
            self.over.store(true, Relaxed);
        }
    }
}

/// Opens the requests from their beginning.
type Reopen<'a, 's> = &'a mut (dyn FnMut() -> Result<Box<dyn Source + Send + 's>, SourceError> + Send);

/// The requests of a life, leg by leg; each leg begins at time 0.
pub struct Passes<'a, 's> {
    reopen: Reopen<'a, 's>,
    source: Box<dyn Source + Send + 's>,
    over: Arc<AtomicBool>,
    /// Stamp of the first record since the last beginning.
    base_ns: Option<u64>,
    /// Where stamps have gone on from since then, and the last one handed out, ns.
    from_ns: u64,
    last_ns: u64,
    /// Whether the pass under way had requests, and writes.
    any: bool,
    writes: bool,
}

impl<'a, 's> Passes<'a, 's> {
    /// Opens them.
    pub fn new(reopen: Reopen<'a, 's>) -> Result<Passes<'a, 's>, SourceError> {
        let source = reopen()?;
        let over = Arc::default();
        Ok(Passes { reopen, source, over, base_ns: None, from_ns: 0, last_ns: 0, any: false, writes: false })
    }

    /// The next ones belong to a leg.
    pub fn begin(&mut self, leg: &Leg) {
        self.over = leg.over.clone();
        (self.base_ns, self.from_ns, self.last_ns) = (None, 0, 0);
    }
}

impl Passes<'_, '_> {
    /// The pass has ended: the next one goes on where its stamps stood.
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

    fn summary(&self) -> SourceSummary {
        self.source.summary()
    }

    fn locate(&self, record: &Record) -> String {
        self.source.locate(record)
    }
}

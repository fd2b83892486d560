//! A worker of a fio job: when its requests are issued, and what happens between the passes over its file.

use std::collections::BTreeMap;

use super::files::Place;
use super::pace::Pace;
use super::stream::{READ, Stream, WRITE};
use super::tally::Tally;
use super::{Engine, Job, Mix, Pattern, Sync};
use crate::clients::{Client, Clients, FileOp, Moment, Step};

/// Bytes of each write call that lays out a file to be read later.
const LAY_OUT: u64 = 128 << 10;

/// Phases of a worker: first it makes its file, then come the passes over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Make,
    /// The worker lays the file out and has written it up to this byte.
    LayOut(u64),
    Forget,
    /// The worker waits for the others, this number of times: fio lays out the files of all jobs before any job begins,
    /// and a job behind a stone wall begins when those before it have ended.
    Gather(u32),
    Begin,
    Load,
    /// A pass is over but for the requests in flight.
    Drain,
    /// What the pass has written is durable, if it has to be.
    Synced,
    /// What the pass has written is dropped from the page cache.
    Cold,
    /// What the pass has written is read; this many requests of it have been.
    Verify(usize),
    Ended,
}

/// One worker of a job.
#[derive(Clone, Debug)]
pub struct Worker {
    job: Job,
    number: u32,
    place: Place,
    stream: Stream,
    tally: Tally,
    pace: Pace,
    phase: Phase,
    /// When the jobs began: what `startdelay` counts from.
    jobs_ns: Option<u64>,
    measured: bool,
    /// Whether the job ends with this pass.
    stopped: bool,
    /// Whether the last operation was a write, after which an fsync may be due; and whether it is still to be made
    /// durable (`sync`).
    wrote: bool,
    unsynced: bool,
    /// The direction of the next request, if it waits for its time.
    held: Option<usize>,
    /// How long the worker sleeps once nothing is in flight, ns.
    sleeps: Option<u64>,
    /// Whether it waits for one of its requests, because the queue is full.
    full: bool,
    /// The writes of this pass, if they are to be verified.
    written: Vec<(u64, u64)>,
}

/// Returns the workers of these jobs, of which each uses its place.
pub fn clients(jobs: &[Job], places: &[Place], seed: u64) -> Clients {
    let workers = jobs.iter().flat_map(|job| (0..job.numjobs).map(move |number| (job, number)));
    let clients = (0..).zip(workers).zip(places).map(|((client, (job, number)), place)| {
        let stream = Stream::new(job, place, seed, &format!("{} {number}", job.name));
        Client::Fio(Box::new(Worker::new(job, client, *place, stream)))
    });
    let clients = clients.collect();
    let (mut parameters, mut first) = (Vec::new(), 0);
    for job in jobs {
        parameters.extend(listed(job, &places[first]));
        first += job.numjobs as usize;
    }
    Clients { name: "fio", clients, window_ns: None, parameters }
}

fn listed(job: &Job, place: &Place) -> [(&'static str, String); 5] {
    [
        ("job", job.name.clone()),
        ("size", place.bytes.to_string()),
        ("iodepth", depth(job).to_string()),
        ("numjobs", job.numjobs.to_string()),
        ("direct", u8::from(job.direct).to_string()),
    ]
}

impl Worker {
    fn new(job: &Job, number: u32, place: Place, stream: Stream) -> Worker {
        // Nothing is allocated during the load, unless it is out of proportion.
        let most = job.io_size.unwrap_or(0).max(place.bytes) / job.block[WRITE].least().max(1);
        Worker {
            tally: Tally::new(job, place.bytes),
            pace: Pace::default(),
            stream,
            number,
            place,
            phase: Phase::Make,
            jobs_ns: None,
            measured: false,
            stopped: false,
            wrote: false,
            unsynced: false,
            held: None,
            sleeps: None,
            full: false,
            written: Vec::with_capacity(if verifies(job) { most.min(1 << 24) as usize } else { 0 }),
            job: job.clone(),
        }
    }

    /// Returns the next step.
    pub fn next(&mut self, moment: Moment) -> Step {
        let size = self.place.file;
        match self.phase {
            Phase::Make if self.place.owner != self.number => {
                self.phase = Phase::Gather(self.job.stage);
                Step::Gather
            }
            Phase::Make if !self.place.laid_out => {
                self.phase = Phase::Gather(self.job.stage + 1);
                Step::Do(FileOp::Allocate { file: 0, size })
            }
            Phase::Make => {
                self.phase = Phase::LayOut(0);
                Step::Do(FileOp::Create(0))
            }
            Phase::LayOut(at) if at == size => {
                self.phase = Phase::Forget;
                Step::Do(FileOp::Fsync(0))
            }
            Phase::LayOut(at) => {
                let size = LAY_OUT.min(size - at);
                self.phase = Phase::LayOut(at + size);
                Step::Do(FileOp::Write { file: 0, offset: at, size })
            }
            Phase::Forget => {
                self.phase = Phase::Gather(self.job.stage + 1);
                Step::Do(FileOp::Forget(0))
            }
            Phase::Gather(left) if left == self.job.stage && self.jobs_ns.is_none() => {
                // All files are laid out.
                self.jobs_ns = Some(moment.now_ns);
                self.next(moment)
            }
            Phase::Gather(0) if self.place.owner != self.number => {
                self.phase = Phase::Begin;
                Step::Do(FileOp::Share(self.place.owner))
            }
            Phase::Gather(0) => {
                self.phase = Phase::Begin;
                self.next(moment)
            }
            Phase::Gather(left) => {
                self.phase = Phase::Gather(left - 1);
                Step::Gather
            }
            Phase::Begin => {
                let begin_ns = self.jobs_ns.unwrap_or(moment.now_ns).saturating_add(self.job.delay_ns);
                if moment.now_ns < begin_ns {
                    return Step::Until(begin_ns);
                }
                self.phase = Phase::Load;
                self.pace.begin(moment.now_ns);
                self.load(moment)
            }
            Phase::Load => self.load(moment),
            Phase::Verify(done) => self.verify(done, moment),
            Phase::Drain | Phase::Synced | Phase::Cold => self.pass_over(moment),
            Phase::Ended => Step::Done,
        }
    }

    fn load(&mut self, moment: Moment) -> Step {
        if let Some(step) = self.waits(moment) {
            return step;
        }
        if !self.measured && moment.now_ns - self.pace.begun_ns >= self.job.ramp_ns {
            return self.measure(moment.now_ns);
        }
        if std::mem::take(&mut self.unsynced) {
            let all = self.job.sync == Sync::All;
            return Step::Do(if all { FileOp::Fsync(0) } else { FileOp::Fdatasync(0) });
        }
        if self.pace.pauses(&self.job, self.tally.requests) {
            self.sleeps = Some(self.job.think.ns);
            return self.load(moment);
        }
        if self.is_late(moment.now_ns) || self.tally.is_over(&self.job, self.stream.has_map()) {
            self.phase = Phase::Drain;
            return self.pass_over(moment);
        }
        if let Some(op) = self.sync_due() {
            self.wrote = false;
            return Step::Do(op);
        }
        let way = match self.held.take() {
            Some(way) => way,
            None => {
                let drawn = self.stream.direction(&self.tally.issued);
                let (way, wait_ns) = self.pace.next(&self.job, drawn, moment.now_ns);
                self.stream.switch_to(way);
                if wait_ns > 0 {
                    (self.held, self.sleeps) = (Some(way), Some(wait_ns));
                    return self.load(moment);
                }
                way
            }
        };
        match self.stream.next(way) {
            Some((offset, size)) => self.request(way, offset, size),
            None => {
                (self.tally.exhausted, self.phase) = (true, Phase::Drain);
                self.pass_over(moment)
            }
        }
    }

    /// Waits for what is in flight, if the worker has to before it looks for the next request.
    fn waits(&mut self, moment: Moment) -> Option<Step> {
        if let Some(ns) = self.sleeps {
            if moment.outstanding > 0 {
                return Some(Step::Await);
            }
            (self.sleeps, self.full, self.pace.completed) = (None, false, self.tally.requests);
            let until_ns = self.until(moment.now_ns.saturating_add(ns));
            return Some(Step::Until(until_ns.max(moment.now_ns)));
        }
        if moment.outstanding >= depth(&self.job) {
            self.full = true;
            return Some(Step::Await);
        }
        if std::mem::take(&mut self.full) || !self.job.direct {
            self.pace.completed = self.tally.requests - u64::from(moment.outstanding);
        }
        None
    }

    /// Begins to measure after the ramp: what the load has done until then is part of `size`, but of no rate.
    fn measure(&mut self, now_ns: u64) -> Step {
        self.measured = true;
        self.pace.begin(now_ns);
        self.tally.measure();
        Step::Begin
    }

    /// Returns whether the job's time is over; before it is measured, it has no end.
    fn is_late(&mut self, now_ns: u64) -> bool {
        let late = self.job.runtime_ns.is_some_and(|runtime| now_ns - self.pace.begun_ns >= runtime);
        self.stopped |= late && self.measured;
        self.stopped
    }

    /// Returns the fsync or fdatasync that has to follow the last write.
    fn sync_due(&self) -> Option<FileOp> {
        let due = |every: u64| self.wrote && self.tally.is_due(every);
        if due(self.job.fsync) {
            Some(FileOp::Fsync(0))
        } else {
            due(self.job.fdatasync).then_some(FileOp::Fdatasync(0))
        }
    }

    /// Returns this time, or the end of the ramp or of the runtime if that is earlier.
    fn until(&self, ns: u64) -> u64 {
        let stretch = if self.measured { self.job.runtime_ns } else { Some(self.job.ramp_ns) };
        stretch.map_or(ns, |stretch| ns.min(self.pace.begun_ns.saturating_add(stretch)))
    }

    fn request(&mut self, way: usize, offset: u64, size: u64) -> Step {
        self.tally.request(way, size);
        self.pace.request(&self.job, way, size, &mut self.stream);
        self.wrote = way == WRITE;
        if way == WRITE && verifies(&self.job) {
            self.written.push((offset, size));
        }
        let (file, direct) = (0, self.job.direct);
        let through = self.job.sync != Sync::None;
        self.unsynced = way == WRITE && through && !direct;
        let op = match way {
            READ => FileOp::Read { file, offset, size },
            WRITE if through && direct => FileOp::WriteThrough { file, offset, size },
            WRITE => FileOp::Write { file, offset, size },
            _ => return Step::Do(FileOp::Trim { file, offset, size }),
        };
        if direct { Step::Start(op) } else { Step::Do(op) }
    }

    /// Does what follows a pass, when its requests have ended.
    fn pass_over(&mut self, moment: Moment) -> Step {
        if moment.outstanding > 0 {
            return Step::Await;
        }
        (self.full, self.sleeps, self.held, self.pace.completed) = (false, None, None, self.tally.requests);
        match self.phase {
            Phase::Drain => {
                self.phase = Phase::Synced;
                if self.job.end_fsync && writes(&self.job) && self.wrote {
                    self.wrote = false;
                    return Step::Do(FileOp::Fsync(0));
                }
                self.pass_over(moment)
            }
            Phase::Synced if self.written.is_empty() || self.stopped => self.next_pass(moment),
            Phase::Synced => {
                self.phase = Phase::Cold;
                self.sort_written();
                Step::Do(FileOp::Fsync(0))
            }
            _ => {
                self.phase = Phase::Verify(0);
                Step::Do(FileOp::Forget(0))
            }
        }
    }

    /// Puts what the pass has written into the order in which fio verifies it: that of the writes or, where a block may
    /// have been written twice, by address and each place once, as it was written last.
    fn sort_written(&mut self) {
        let once = self.job.pattern == Pattern::Sequential || self.stream.has_map();
        if once && self.job.stride == 0 && self.job.group.count() <= 1 {
            return;
        }
        let mut places: BTreeMap<u64, u64> = BTreeMap::new();
        for &(offset, size) in &self.written {
            while let Some((&at, _)) =
                places.range(..offset + size).next_back().filter(|&(&at, &size)| at + size > offset)
            {
                places.remove(&at);
            }
            places.insert(offset, size);
        }
        self.written.clear();
        self.written.extend(places);
    }

    /// Reads what the pass has written.
    fn verify(&mut self, done: usize, moment: Moment) -> Step {
        let next = if self.is_late(moment.now_ns) { None } else { self.written.get(done).copied() };
        if moment.outstanding > 0 && (next.is_none() || moment.outstanding >= depth(&self.job)) {
            return Step::Await;
        }
        let Some((offset, size)) = next else { return self.next_pass(moment) };
        self.phase = Phase::Verify(done + 1);
        self.tally.extra(size);
        let op = FileOp::Read { file: 0, offset, size };
        if self.job.direct { Step::Start(op) } else { Step::Do(op) }
    }

    /// Begins the next pass, with a cold page cache, or ends the job.
    fn next_pass(&mut self, moment: Moment) -> Step {
        self.stopped |= !self.tally.goes_on(&self.job);
        if self.stopped {
            if !self.measured {
                // The job has ended within its ramp.
                return self.measure(moment.now_ns);
            }
            self.phase = Phase::Ended;
            return Step::End;
        }
        self.stream.begin();
        self.written.clear();
        self.phase = Phase::Load;
        if self.job.direct { self.load(moment) } else { Step::Do(FileOp::Forget(0)) }
    }
}

/// Returns the number of requests of a worker that may be in flight.
fn depth(job: &Job) -> u32 {
    if job.engine == Engine::Waits { 1 } else { job.iodepth }
}

fn writes(job: &Job) -> bool {
    matches!(job.mix, Mix::Writes | Mix::Mixed(_) | Mix::TrimWrites)
}

/// Whether the job reads what it has written; one whose only pass ends with its time never comes to it.
fn verifies(job: &Job) -> bool {
    job.verify && writes(job) && !(job.time_based && job.engine == Engine::Waits)
}

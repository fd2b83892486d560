//! A worker of a fio job: when its requests are issued, and what happens between the passes over its file.

use super::files::Place;
use super::group::Member;
use super::pace::Pace;
use super::stream::{READ, WRITE};
use super::streams::Streams;
use super::tally::Tally;
use super::verify::{Written, writes};
use super::{Engine, Job, Sync};
use crate::clients::{Client, Clients, FileOp, Moment, Step};

/// Bytes of each write call that lays out a file to be read later.
const LAY_OUT: u64 = 128 << 10;

/// Most of a pause after which a worker looks whether another has it end, as in fio.
const NAP_NS: u64 = 1_000_000_000;

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
    /// What the pass has written is read.
    Verify,
    Ended,
}

/// One worker of a job.
#[derive(Clone, Debug)]
pub struct Worker {
    job: Job,
    number: u32,
    place: Place,
    stream: Streams,
    tally: Tally,
    pace: Pace,
    phase: Phase,
    /// When the jobs began: what `startdelay` counts from.
    jobs_ns: Option<u64>,
    measured: bool,
    /// Whether the job ends with this pass.
    stopped: bool,
    /// Direction of the last request that was drawn.
    last: usize,
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
    written: Written,
    /// What it has to do with other workers, if it does.
    member: Option<Member>,
}

/// Returns the workers of these jobs, of which each uses its place.
pub fn clients(jobs: &[Job], places: &[Place], seed: u64) -> Clients {
    let workers = jobs.iter().flat_map(|job| (0..job.numjobs).map(move |number| (job, number)));
    let mut members = Member::of(jobs).into_iter();
    let clients = (0..).zip(workers).zip(places).map(|((client, (job, number)), place)| {
        let stream = Streams::new(job, place, seed, &format!("{} {number}", job.name));
        let member = members.next();
        Client::Fio(Box::new(Worker { member, ..Worker::new(job, client, *place, stream) }))
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
        ("size", place.total().to_string()),
        ("iodepth", depth(job).to_string()),
        ("numjobs", job.numjobs.to_string()),
        ("direct", u8::from(job.direct).to_string()),
    ]
}

impl Worker {
    fn new(job: &Job, number: u32, place: Place, stream: Streams) -> Worker {
        Worker {
            tally: Tally::new(job, place.total()),
            pace: Pace::default(),
            number,
            place,
            phase: Phase::Make,
            jobs_ns: None,
            measured: false,
            stopped: false,
            last: WRITE,
            wrote: false,
            unsynced: false,
            held: None,
            sleeps: None,
            full: false,
            written: Written::new(job, &place, stream.has_map()),
            member: None,
            stream,
            job: job.clone(),
        }
    }

    /// Returns the next step.
    pub fn next(&mut self, moment: Moment) -> Step {
        let size = self.place.file;
        self.stopped |=
            self.member.as_mut().is_some_and(|member| member.is_over(moment.now_ns, moment.outstanding));
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
            Phase::Begin if self.stopped => Step::Done,
            Phase::Begin => self.begin(moment),
            Phase::Load => self.load(moment),
            Phase::Verify => self.verify(moment),
            Phase::Drain | Phase::Synced | Phase::Cold => self.pass_over(moment),
            Phase::Ended => Step::Done,
        }
    }

    /// Begins the load once the job's delay is over.
    fn begin(&mut self, moment: Moment) -> Step {
        let begin_ns = self.jobs_ns.unwrap_or(moment.now_ns).saturating_add(self.job.delay_ns);
        if moment.now_ns < begin_ns {
            return Step::Until(begin_ns);
        }
        self.phase = Phase::Load;
        self.pace.begin(moment.now_ns);
        self.load(moment)
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
        if let Some((offset, size)) = self.written.pop_due(moment.outstanding, self.last == READ) {
            return self.read_again(offset, size);
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
        if let (Some(ns), false) = (self.sleeps, self.stopped) {
            if moment.outstanding > 0 {
                return Some(Step::Await);
            }
            (self.sleeps, self.full, self.pace.completed) = (None, false, self.tally.requests);
            let until_ns = self.until(moment.now_ns.saturating_add(ns)).max(moment.now_ns);
            if self.member.is_some() && until_ns > moment.now_ns + NAP_NS {
                self.sleeps = Some(until_ns - moment.now_ns - NAP_NS);
                return Some(Step::Until(moment.now_ns + NAP_NS));
            }
            return Some(Step::Until(until_ns));
        }
        let refills = self.full && moment.outstanding > self.job.refill;
        if refills || moment.outstanding >= depth(&self.job) {
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
        if let Some(member) = &self.member {
            member.begins(now_ns);
        }
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
        self.count(size);
        self.pace.request(&self.job, way, size, &mut self.stream);
        (self.last, self.wrote) = (way, way == WRITE);
        if way == WRITE {
            self.written.push(offset, size);
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

    /// Counts a request for the figures of its group.
    fn count(&mut self, size: u64) {
        if let Some(member) = &mut self.member {
            member.request(size);
        }
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
                Step::Do(FileOp::Fsync(0))
            }
            _ => {
                self.phase = Phase::Verify;
                Step::Do(FileOp::Forget(0))
            }
        }
    }

    /// Reads what the pass has written.
    fn verify(&mut self, moment: Moment) -> Step {
        if moment.outstanding >= depth(&self.job) {
            return Step::Await;
        }
        let next = if self.is_late(moment.now_ns) { None } else { self.written.pop() };
        match next {
            Some((offset, size)) => self.read_again(offset, size),
            None if moment.outstanding > 0 => Step::Await,
            None => self.next_pass(moment),
        }
    }

    fn read_again(&mut self, offset: u64, size: u64) -> Step {
        self.tally.extra(size);
        self.count(size);
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
            if let Some(member) = &self.member {
                member.ends(self.job.exits);
            }
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

//! A worker of a fio job.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::addresses::Addresses;
use super::files::Place;
use super::{Job, Mix, Pattern, Sizes};
use crate::clients::{Client, Clients, FileOp, Moment, Step};
use ftlab_core::util::{below, stream};

/// Bytes of each write call that lays out a file to be read later.
const LAY_OUT: u64 = 128 << 10;

/// Phases of a worker: first it makes its file, then comes the load.
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
    /// The worker waits for its direct requests to end.
    Drain,
    Ended,
}

/// One worker of a job.
#[derive(Clone, Debug)]
pub struct Worker {
    random: Xoshiro256PlusPlus,
    job: Job,
    number: u32,
    place: Place,
    addresses: Addresses,
    /// What random addresses are multiples of, and how many of them there are in a zone.
    unit: u64,
    blocks: u64,
    phase: Phase,
    /// When the load began or, after the ramp, when it began to be measured.
    begun_ns: u64,
    measured: bool,
    /// Number of bytes requested since then, by reads and by writes.
    bytes: [u64; 2],
    /// Number of bytes requested since the worker began at the beginning of its part of the file.
    pass: u64,
    /// Where the zone begins in the worker's part of the file, and number of bytes requested in it.
    zone: (u64, u64),
    /// Offset in the zone of the next sequential request; without zones, in the worker's part of the file.
    at: u64,
    /// Number of writes since the last fsync.
    unsynced: u64,
    /// Number of requests since the last pause.
    unpaused: u64,
}

/// Returns the workers of these jobs, of which each uses its place.
pub fn clients(jobs: &[Job], places: &[Place], seed: u64) -> Clients {
    let workers = jobs.iter().flat_map(|job| (0..job.numjobs).map(move |number| (job, number)));
    let clients = (0..).zip(workers).zip(places).map(|((client, (job, number)), place)| {
        let random = stream(seed, &format!("fio {} {number}", job.name));
        Client::Fio(Box::new(Worker::new(job, client, *place, random)))
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
        ("iodepth", job.iodepth.to_string()),
        ("numjobs", job.numjobs.to_string()),
        ("direct", u8::from(job.direct).to_string()),
    ]
}

/// Returns what random addresses are multiples of, and how many of them there are in a zone or, without zones, in
/// these bytes.
fn blocks(job: &Job, bytes: u64) -> (u64, u64) {
    let least = job.block[0].least().min(job.block[1].least());
    let unit = job.align[0].unwrap_or(match &job.block {
        [Sizes::One(read), Sizes::One(write), _] => *read.max(write),
        _ => least,
    });
    let span = job.strides.map_or(bytes, |strides| strides.range);
    (unit, ((span - least.saturating_sub(unit)) / unit).max(1))
}

impl Worker {
    fn new(job: &Job, number: u32, place: Place, mut random: Xoshiro256PlusPlus) -> Worker {
        let (unit, blocks) = blocks(job, place.bytes);
        Worker {
            addresses: Addresses::new(&job.distribution, blocks, &mut random),
            random,
            job: job.clone(),
            number,
            place,
            unit,
            blocks,
            phase: Phase::Make,
            begun_ns: 0,
            measured: false,
            bytes: [0; 2],
            pass: 0,
            zone: (0, 0),
            at: 0,
            unsynced: 0,
            unpaused: 0,
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
                self.phase = Phase::Load;
                self.begun_ns = moment.now_ns;
                self.load(moment)
            }
            Phase::Load => self.load(moment),
            Phase::Drain if moment.outstanding > 0 => Step::Await,
            Phase::Drain => {
                self.phase = Phase::Ended;
                Step::End
            }
            Phase::Ended => Step::Done,
        }
    }

    /// Returns whether the load is over; before it is measured, nothing ends it.
    fn is_over(&self, now_ns: u64) -> bool {
        let late = self.job.runtime_ns.is_some_and(|runtime| now_ns - self.begun_ns >= runtime);
        let limit = self.place.limit.saturating_mul(self.job.loops);
        late || (!self.job.time_based && self.bytes[0] + self.bytes[1] + self.least() > limit)
    }

    /// Returns whether the job begins again: `io_size` and `loops` can ask for more than the part of the file.
    fn pass_is_over(&self) -> bool {
        !self.job.time_based && self.pass + self.least() > self.place.bytes
    }

    fn least(&self) -> u64 {
        self.job.block[0].least().min(self.job.block[1].least())
    }

    /// Begins to measure after the ramp: what the load has done until then does not count.
    fn measure(&mut self, now_ns: u64) -> Step {
        (self.measured, self.begun_ns) = (true, now_ns);
        (self.bytes, self.pass, self.zone.1) = ([0; 2], 0, 0);
        Step::Begin
    }

    /// Returns the time at which the rate limit allows the next read (`half` is 0) or write (`half` is 1).
    fn allowed_ns(&self, half: usize) -> u64 {
        match self.job.rate[half] {
            0 => 0,
            rate => {
                let ns = u128::from(self.bytes[half]) * 1_000_000_000 / u128::from(rate);
                self.begun_ns.saturating_add(ns as u64)
            }
        }
    }

    fn load(&mut self, moment: Moment) -> Step {
        if !self.measured {
            if moment.now_ns - self.begun_ns >= self.job.ramp_ns {
                return self.measure(moment.now_ns);
            }
        } else if self.is_over(moment.now_ns) {
            self.phase = Phase::Drain;
            return self.next(moment);
        } else if self.pass_is_over() {
            return self.next_pass(moment);
        }
        let due = self.job.fsync > 0 && self.unsynced >= self.job.fsync;
        let pause = self.job.think.ns > 0 && self.unpaused >= self.job.think.requests;
        if due || pause {
            if moment.outstanding > 0 {
                return Step::Await;
            }
            if due {
                self.unsynced = 0;
                return Step::Do(FileOp::Fsync(0));
            }
            self.unpaused = 0;
            return Step::Until(self.until(moment.now_ns.saturating_add(self.job.think.ns)));
        }
        if self.job.direct && moment.outstanding >= self.job.iodepth {
            return Step::Await;
        }
        // An operation is drawn only when it can be issued, so that waiting uses up no draws; if both reads and writes
        // have to wait for their rate limits, none is drawn.
        let half = match self.job.mix {
            Mix::Reads => 0,
            Mix::Writes | Mix::Trims | Mix::TrimWrites => 1,
            Mix::Mixed(share) => {
                let limits = [0, 1].map(|half| self.allowed_ns(half) > moment.now_ns);
                match limits {
                    [true, true] => return self.wait(),
                    [true, false] => 1,
                    [false, true] => 0,
                    [false, false] => usize::from(below(self.random.next_u64(), 100) >= share),
                }
            }
        };
        let allowed_ns = self.allowed_ns(half);
        if allowed_ns > moment.now_ns {
            return Step::Until(self.until(allowed_ns));
        }
        self.request(half)
    }

    /// Begins again when the requests of this pass have ended: at the beginning of the part, with a cold page cache.
    fn next_pass(&mut self, moment: Moment) -> Step {
        if moment.outstanding > 0 {
            return Step::Await;
        }
        (self.pass, self.zone, self.at) = (0, (0, 0), 0);
        if self.job.direct { self.load(moment) } else { Step::Do(FileOp::Forget(0)) }
    }

    fn wait(&self) -> Step {
        Step::Until(self.until(self.allowed_ns(0).min(self.allowed_ns(1))))
    }

    /// Returns this time, or the end of the ramp or of the runtime if that is earlier.
    fn until(&self, ns: u64) -> u64 {
        let stretch = if self.measured { self.job.runtime_ns } else { Some(self.job.ramp_ns) };
        stretch.map_or(ns, |stretch| ns.min(self.begun_ns.saturating_add(stretch)))
    }

    fn request(&mut self, half: usize) -> Step {
        let size = match &self.job.block[half] {
            Sizes::One(size) => *size,
            Sizes::Range(least, _) => *least,
            Sizes::Split(sizes) => {
                let draw = below(self.random.next_u64(), 100);
                sizes.iter().find(|each| draw < each.1).or(sizes.last()).expect("at least one").0
            }
        };
        let (base, span) = self.zone();
        let at = match self.job.pattern {
            Pattern::Sequential => {
                let at = if self.at + size > span { 0 } else { self.at };
                self.at = at + size;
                at
            }
            Pattern::Random => {
                let at = self.addresses.draw(self.blocks, &mut self.random) * self.unit;
                // A large request near the end begins earlier, so that it ends there.
                at.min((span - size) / self.unit * self.unit)
            }
        };
        let offset = self.place.first + base + at;
        self.bytes[half] += size;
        self.pass += size;
        self.zone.1 += size;
        self.unsynced += half as u64;
        self.unpaused += 1;
        let (file, read) = (0, half == 0);
        let op =
            if read { FileOp::Read { file, offset, size } } else { FileOp::Write { file, offset, size } };
        if self.job.direct { Step::Start(op) } else { Step::Do(op) }
    }

    /// Returns where the zone of the next request begins in the worker's part of the file, and the zone's bytes;
    /// without zones, the part is one.
    fn zone(&mut self) -> (u64, u64) {
        let Some(strides) = self.job.strides else { return (0, self.place.bytes) };
        if self.zone.1 >= strides.bytes {
            let next = self.zone.0.saturating_add(strides.range).saturating_add(strides.skip);
            // The last zone is left out if it is not whole.
            let ends = next.saturating_add(strides.range);
            self.zone = (if ends > self.place.bytes { 0 } else { next }, 0);
            self.at = 0;
        }
        (self.zone.0, strides.range)
    }
}

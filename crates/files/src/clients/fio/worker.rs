//! A worker of a fio job.

use rand::RngCore;
use rand_distr::{Distribution as _, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Distribution, Job, Pattern};
use crate::clients::{Client, Clients, FileOp, Moment, Step};
use ftlab_core::util::{below, stream};
use ftlab_core::workload::Scatter;

/// Bytes of each write call that lays out a file to be read later.
const LAY_OUT: u64 = 128 << 10;

/// Where random requests go, in blocks.
#[derive(Clone, Debug)]
enum Addresses {
    Random,
    /// The distribution of ranks, and how ranks are scattered over the file.
    Zipf(Zipf<f64>, Scatter),
    /// The exponent of the power law, and how ranks are scattered over the file.
    Pareto(f64, Scatter),
    /// For each zone: the number (out of 1,000,000) below which a draw selects the zone, the zone's first block, and
    /// its number of blocks.
    Zoned(Vec<(u64, u64, u64)>),
}

impl Addresses {
    fn new(distribution: &Distribution, blocks: u64, random: &mut Xoshiro256PlusPlus) -> Addresses {
        match distribution {
            Distribution::Random => Addresses::Random,
            Distribution::Zipf(theta) => Addresses::Zipf(
                Zipf::new(blocks as f64, *theta).expect("a checked theta"),
                Scatter::new(blocks, random),
            ),
            // As in fio: the share h of the blocks takes 1 - h of the accesses, and so on within that share.
            Distribution::Pareto(h) => {
                Addresses::Pareto(libm::log(*h) / libm::log(1.0 - h), Scatter::new(blocks, random))
            }
            Distribution::Zoned(zones) => {
                let (mut accesses, mut size) = (0, 0);
                let at = |size: u64| (u128::from(blocks) * u128::from(size) / 1_000_000) as u64;
                let zone = |&(share, part): &(u64, u64)| {
                    let first = at(size).min(blocks - 1);
                    accesses += share;
                    size += part;
                    (accesses, first, at(size).saturating_sub(first).max(1))
                };
                Addresses::Zoned(zones.iter().map(zone).collect())
            }
        }
    }

    fn draw(&self, blocks: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Addresses::Random => below(random.next_u64(), blocks),
            Addresses::Zipf(ranks, scatter) => {
                // Ranks run from 1 to the number of blocks; the clamp guards against rounding at both ends.
                scatter.place((ranks.sample(random) as u64).clamp(1, blocks) - 1)
            }
            Addresses::Pareto(power, scatter) => {
                let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                let rank = (blocks as f64 * libm::pow(uniform, *power)) as u64;
                scatter.place(rank.min(blocks - 1))
            }
            Addresses::Zoned(zones) => {
                let draw = below(random.next_u64(), 1_000_000);
                let zone = zones.iter().find(|zone| draw < zone.0).or(zones.last()).expect("at least one");
                zone.1 + below(random.next_u64(), zone.2)
            }
        }
    }
}

/// Phases of a worker: first it makes its file, then comes the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Make,
    /// The worker lays the file out and has written it up to this byte.
    LayOut(u64),
    Forget,
    /// The worker waits for the others: fio lays out the files of all jobs before any job begins.
    Gather,
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
    places: Addresses,
    phase: Phase,
    begun_ns: u64,
    /// Number of bytes requested so far, by reads and by writes.
    bytes: [u64; 2],
    /// Offset of the next sequential request.
    at: u64,
    /// Number of writes since the last fsync.
    unsynced: u64,
}

/// Returns the workers of these jobs.
pub fn clients(jobs: &[Job], seed: u64) -> Clients {
    let workers = jobs.iter().flat_map(|job| (0..job.numjobs).map(move |number| (job, number)));
    let clients = workers
        .map(|(job, number)| {
            let mut random = stream(seed, &format!("fio {} {number}", job.name));
            let block = job.block[0].max(job.block[1]);
            let places = Addresses::new(&job.distribution, (job.size / block).max(1), &mut random);
            Client::Fio(Box::new(Worker {
                random,
                job: job.clone(),
                places,
                phase: Phase::Make,
                begun_ns: 0,
                bytes: [0; 2],
                at: 0,
                unsynced: 0,
            }))
        })
        .collect();
    Clients { name: "fio", clients, window_ns: None, parameters: jobs.iter().flat_map(listed).collect() }
}

fn listed(job: &Job) -> Vec<(&'static str, String)> {
    vec![
        ("job", job.name.clone()),
        ("size", job.size.to_string()),
        ("iodepth", job.iodepth.to_string()),
        ("numjobs", job.numjobs.to_string()),
        ("direct", u8::from(job.direct).to_string()),
    ]
}

impl Worker {
    /// Returns the next step.
    pub fn next(&mut self, moment: Moment) -> Step {
        let size = self.job.size;
        match self.phase {
            Phase::Make if self.job.read_percent == 0 || self.job.direct => {
                self.phase = Phase::Gather;
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
                self.phase = Phase::Gather;
                Step::Do(FileOp::Forget(0))
            }
            Phase::Gather => {
                self.phase = Phase::Begin;
                Step::Gather
            }
            Phase::Begin => {
                self.phase = Phase::Load;
                self.begun_ns = moment.now_ns;
                Step::Begin
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

    fn is_over(&self, now_ns: u64) -> bool {
        let late = self.job.runtime_ns.is_some_and(|runtime| now_ns - self.begun_ns >= runtime);
        let whole = self.bytes[0] + self.bytes[1] + self.job.block[0].min(self.job.block[1]) > self.job.size;
        late || (whole && !self.job.time_based)
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
        if self.is_over(moment.now_ns) {
            self.phase = Phase::Drain;
            return self.next(moment);
        }
        let due = self.job.fsync > 0 && self.unsynced >= self.job.fsync;
        if due {
            if moment.outstanding > 0 {
                return Step::Await;
            }
            self.unsynced = 0;
            return Step::Do(FileOp::Fsync(0));
        }
        if self.job.direct && moment.outstanding >= self.job.iodepth {
            return Step::Await;
        }
        // An operation is drawn only when it can be issued, so that waiting uses up no draws; if both reads and writes
        // have to wait for their rate limits, none is drawn.
        let half = match self.job.read_percent {
            100 => 0,
            0 => 1,
            share => {
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

    fn wait(&self) -> Step {
        Step::Until(self.until(self.allowed_ns(0).min(self.allowed_ns(1))))
    }

    /// Returns `allowed_ns`, or the end of the runtime if that is earlier.
    fn until(&self, allowed_ns: u64) -> u64 {
        self.job
            .runtime_ns
            .map_or(allowed_ns, |runtime| allowed_ns.min(self.begun_ns.saturating_add(runtime)))
    }

    fn request(&mut self, half: usize) -> Step {
        let Job { size: whole, block, direct, .. } = self.job;
        let size = block[half];
        let offset = match self.job.pattern {
            Pattern::Sequential => {
                let at = if self.at + size > whole { 0 } else { self.at };
                self.at = at + size;
                at
            }
            Pattern::Random => {
                let unit = block[0].max(block[1]);
                self.places.draw((whole / unit).max(1), &mut self.random) * unit
            }
        };
        self.bytes[half] += size;
        self.unsynced += half as u64;
        let file = 0;
        let read = half == 0;
        let op =
            if read { FileOp::Read { file, offset, size } } else { FileOp::Write { file, offset, size } };
        if direct { Step::Start(op) } else { Step::Do(op) }
    }
}

//! Random writes to one file, with an fsync each time a certain number of bytes has been written: SysBench fileio rndwr
//! and FileBench randomwrite.
//!
//! Sources: Shim et al., TC 2014, sections 6.4 and 6.5. The offsets are those of the benchmarks' own code: uniform,
//! rounded down to the request size. Before the load, the file is written once in order and synced. SysBench: the load
//! first runs for a time to age the device; then comes the measured run, which ends after a number of requests or after
//! a given time, whichever comes first, and closes with an fsync. FileBench: each run takes a fixed time.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::keys::Kind;
use super::{FileOp, Moment, Parameters, Step};
use ftlab_core::util::{below, stream};

/// Bytes of each write call while the file is made.
const PREPARE: u64 = 128 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Make,
    /// The file is being made and has been written up to this byte.
    Fill(u64),
    /// The load before the measured run, until this time.
    Age(Option<u64>),
    /// A run is about to begin.
    Begin,
    /// A run, which lasts until this time and has this many requests left.
    Run(u64, u64),
    /// The last fsync of a run.
    Close,
    Ended,
}

/// The client that runs SysBench's or FileBench's load.
#[derive(Clone, Debug)]
pub struct RandomWrite {
    random: Xoshiro256PlusPlus,
    of: Parameters,
    run: u64,
    phase: Phase,
    /// Bytes written since the last fsync.
    unsynced: u64,
}

impl RandomWrite {
    /// Makes the client with these parameters.
    pub fn new(parameters: &Parameters, seed: u64) -> RandomWrite {
        RandomWrite {
            random: stream(seed, parameters.kind.name()),
            of: parameters.clone(),
            run: 0,
            phase: Phase::Make,
            unsynced: 0,
        }
    }

    /// Returns a random write or, if one is due, an fsync, and whether the operation is a write.
    fn load(&mut self) -> (FileOp, bool) {
        if self.unsynced >= self.of.sync_every {
            self.unsynced = 0;
            return (FileOp::Fsync(0), false);
        }
        self.unsynced += self.of.request;
        let slots = self.of.file_size / self.of.request;
        let offset = below(self.random.next_u64(), slots) * self.of.request;
        (FileOp::Write { file: 0, offset, size: self.of.request }, true)
    }

    /// Returns the next step.
    pub fn next(&mut self, moment: Moment) -> Step {
        match self.phase {
            Phase::Make => {
                self.phase = Phase::Fill(0);
                Step::Do(FileOp::Create(0))
            }
            Phase::Fill(at) if at == self.of.file_size => {
                self.phase = if self.of.ageing_ns > 0 { Phase::Age(None) } else { Phase::Begin };
                Step::Do(FileOp::Fsync(0))
            }
            Phase::Fill(offset) => {
                let size = PREPARE.min(self.of.file_size - offset);
                self.phase = Phase::Fill(offset + size);
                Step::Do(FileOp::Write { file: 0, offset, size })
            }
            Phase::Age(None) => {
                self.phase = Phase::Age(Some(moment.now_ns.saturating_add(self.of.ageing_ns)));
                self.next(moment)
            }
            Phase::Age(Some(until)) if moment.now_ns >= until => {
                self.phase = Phase::Begin;
                self.next(moment)
            }
            Phase::Age(_) => Step::Do(self.load().0),
            Phase::Begin => {
                let requests = if self.of.kind == Kind::SysBench { self.of.requests } else { u64::MAX };
                self.phase = Phase::Run(moment.now_ns.saturating_add(self.of.duration_ns), requests);
                if self.run >= self.of.ageing_runs { Step::Begin } else { self.next(moment) }
            }
            Phase::Run(until_ns, left) => self.measured(moment, until_ns, left),
            Phase::Close => self.end_run(),
            Phase::Ended => Step::Done,
        }
    }

    fn measured(&mut self, moment: Moment, until_ns: u64, left: u64) -> Step {
        if left == 0 || moment.now_ns >= until_ns {
            if self.of.kind == Kind::SysBench {
                self.phase = Phase::Close;
                self.unsynced = 0;
                return Step::Do(FileOp::Fsync(0));
            }
            return self.end_run();
        }
        let (op, request) = self.load();
        self.phase = Phase::Run(until_ns, left - u64::from(request));
        Step::Do(op)
    }

    fn end_run(&mut self) -> Step {
        let measured = self.run >= self.of.ageing_runs;
        self.run += 1;
        self.phase = if self.run == self.of.runs { Phase::Ended } else { Phase::Begin };
        if measured { Step::End } else { Step::Do(FileOp::Lookup) }
    }
}

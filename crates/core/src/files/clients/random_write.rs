//! Random writes to one file, with an fsync after so many bytes: SysBench fileio rndwr, FileBench
//! randomwrite.
//!
//! Sources: Shim et al., TC 2014, sections 6.4 and 6.5; the benchmarks' own codes for the offsets:
//! uniform, floored to the request size. The file is written once in order before the load, and synced.
//! SysBench: ageing by the same load, then one run of so many requests or so much time, whichever ends
//! first, and an fsync at its end. FileBench: runs of a fixed time.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::keys::Kind;
use super::{FileOp, Moment, Parameters, Step};
use crate::util::{below, stream};

/// Bytes of a call while the file is made.
const PREPARE: u64 = 128 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Make,
    /// Written up to here.
    Fill(u64),
    /// The load before the measured one, until then.
    Age(Option<u64>),
    /// A run is to begin.
    Begin,
    /// A run until then, with so many requests left.
    Run(Option<u64>, u64),
    /// The last fsync of a run.
    Close,
    Ended,
}

/// The client.
#[derive(Clone, Debug)]
pub struct RandomWrite {
    random: Xoshiro256PlusPlus,
    kind: Kind,
    file_size: u64,
    request: u64,
    sync_every: u64,
    requests: u64,
    duration_ns: u64,
    ageing_ns: u64,
    runs: u64,
    ageing_runs: u64,
    run: u64,
    phase: Phase,
    /// Bytes since the last fsync.
    unsynced: u64,
}

impl RandomWrite {
    /// The client of these parameters.
    pub fn new(parameters: &Parameters, seed: u64) -> RandomWrite {
        RandomWrite {
            random: stream(seed, parameters.kind.name()),
            kind: parameters.kind,
            file_size: parameters.file_size,
            request: parameters.request,
            sync_every: parameters.sync_every,
            requests: if parameters.kind == Kind::SysBench { parameters.requests } else { u64::MAX },
            duration_ns: parameters.duration_ns,
            ageing_ns: parameters.ageing_ns,
            runs: parameters.runs,
            ageing_runs: parameters.ageing_runs,
            run: 0,
            phase: Phase::Make,
            unsynced: 0,
        }
    }

    /// A write at random, or the fsync that is due.
    fn load(&mut self) -> (FileOp, bool) {
        if self.unsynced >= self.sync_every {
            self.unsynced = 0;
            return (FileOp::Fsync(0), false);
        }
        self.unsynced += self.request;
        let slots = self.file_size / self.request;
        let offset = below(self.random.next_u64(), slots) * self.request;
        (FileOp::Write { file: 0, offset, size: self.request }, true)
    }

    /// The next step.
    pub fn next(&mut self, moment: Moment) -> Step {
        match self.phase {
            Phase::Make => {
                self.phase = Phase::Fill(0);
                Step::Do(FileOp::Create(0))
            }
            Phase::Fill(at) if at == self.file_size => {
                self.phase = if self.ageing_ns > 0 { Phase::Age(None) } else { Phase::Begin };
                Step::Do(FileOp::Fsync(0))
            }
            Phase::Fill(offset) => {
                let size = PREPARE.min(self.file_size - offset);
                self.phase = Phase::Fill(offset + size);
                Step::Do(FileOp::Write { file: 0, offset, size })
            }
            Phase::Age(None) => {
                self.phase = Phase::Age(Some(moment.now_ns.saturating_add(self.ageing_ns)));
                self.next(moment)
            }
            Phase::Age(Some(until)) if moment.now_ns >= until => {
                self.phase = Phase::Begin;
                self.next(moment)
            }
            Phase::Age(_) => Step::Do(self.load().0),
            Phase::Begin => {
                self.phase = Phase::Run(Some(moment.now_ns.saturating_add(self.duration_ns)), self.requests);
                if self.run >= self.ageing_runs { Step::Begin } else { self.next(moment) }
            }
            Phase::Run(until, left) => self.measured(moment, until, left),
            Phase::Close => self.end_run(),
            Phase::Ended => Step::Done,
        }
    }

    fn measured(&mut self, moment: Moment, until: Option<u64>, left: u64) -> Step {
        if left == 0 || until.is_some_and(|until| moment.now_ns >= until) {
            if self.kind == Kind::SysBench {
                self.phase = Phase::Close;
                self.unsynced = 0;
                return Step::Do(FileOp::Fsync(0));
            }
            return self.end_run();
        }
        let (op, request) = self.load();
        self.phase = Phase::Run(until, left - u64::from(request));
        Step::Do(op)
    }

    fn end_run(&mut self) -> Step {
        let measured = self.run >= self.ageing_runs;
        self.run += 1;
        self.phase = if self.run == self.runs { Phase::Ended } else { Phase::Begin };
        if measured { Step::End } else { Step::Do(FileOp::Lookup) }
    }
}

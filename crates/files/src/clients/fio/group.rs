//! What the workers of a job file do to each other: one that ends has others end (`exitall`), and a group whose load is
//! steady ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::steady::Figures;
use super::{Exits, Job};

/// What is known about a worker.
#[derive(Clone, Copy, Debug)]
struct Known {
    group: u32,
    stage: u32,
    /// Where its requests are counted, and whether the figures there are of its time: those of a group are of its last
    /// worker's.
    figures: Option<(usize, bool)>,
    over: bool,
}

#[derive(Debug)]
struct Workers {
    known: Vec<Known>,
    figures: Vec<Figures>,
}

impl Workers {
    fn of(workers: &[&Job]) -> Workers {
        let (mut known, mut figures) = (Vec::<Known>::new(), Vec::new());
        for (number, job) in workers.iter().enumerate() {
            let with =
                |other: &&Job| job.group_reporting && other.group_reporting && other.groupid == job.groupid;
            let last = !workers[number + 1..].iter().any(with);
            let mut index = || {
                let before =
                    workers[..number].iter().rposition(with).and_then(|before| known[before].figures);
                before.map_or_else(
                    || {
                        figures.push(Figures::new(job.steady));
                        figures.len() - 1
                    },
                    |(index, _)| index,
                )
            };
            let figures = (job.steady.count > 0).then(|| (index(), last));
            known.push(Known { group: job.groupid, stage: job.stage, figures, over: false });
        }
        Workers { known, figures }
    }

    fn end(&mut self, which: impl Fn(&Known) -> bool) {
        self.known.iter_mut().for_each(|known| known.over |= which(known));
    }
}

/// A worker among the others.
#[derive(Clone, Debug)]
pub(super) struct Member {
    all: Arc<Mutex<Workers>>,
    number: usize,
    /// Requests issued and ended, each with their bytes, and how many were in flight at the last look.
    issued: (u64, u64),
    ended: (u64, u64),
    flying: u32,
}

impl Member {
    /// Returns a member for each worker of these jobs, unless each is for itself.
    pub fn of(jobs: &[Job]) -> Vec<Member> {
        if jobs.iter().all(|job| job.exits.is_none() && job.steady.count == 0) {
            return Vec::new();
        }
        let workers: Vec<&Job> = jobs.iter().flat_map(|job| (0..job.numjobs).map(move |_| job)).collect();
        let all = Arc::new(Mutex::new(Workers::of(&workers)));
        let member = |number| Member { all: all.clone(), number, issued: (0, 0), ended: (0, 0), flying: 0 };
        (0..workers.len()).map(member).collect()
    }

    fn all(&self) -> MutexGuard<'_, Workers> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that is issued.
    pub fn request(&mut self, size: u64) {
        self.issued = (self.issued.0 + 1, self.issued.1 + size);
        self.flying += 1;
    }

    /// Counts what has ended by now; returns whether the worker has to end.
    pub fn is_over(&mut self, now_ns: u64, outstanding: u32) -> bool {
        let ended = u64::from(self.flying.saturating_sub(outstanding));
        self.flying = outstanding;
        let before = self.ended;
        if ended > 0 {
            // Which of them have ended is not known: they have the mean size.
            let requests = before.0 + ended;
            let bytes = u128::from(self.issued.1) * u128::from(requests) / u128::from(self.issued.0);
            self.ended = (requests, bytes as u64);
        }
        let mut all = self.all();
        if let Some((index, _)) = all.known[self.number].figures {
            let figures = &mut all.figures[index];
            let steady = figures.is_steady(now_ns);
            figures.count(ended, self.ended.1.saturating_sub(before.1));
            if steady {
                all.end(|known| known.figures.is_some_and(|figures| figures.0 == index));
            }
        }
        all.known[self.number].over
    }

    /// Begins (with the time) or ends the time of the figures that are of this worker's time.
    fn time(&self, now_ns: Option<u64>) {
        let mut all = self.all();
        if let Some((index, true)) = all.known[self.number].figures {
            all.figures[index].begin(now_ns);
        }
    }

    /// The worker's load begins, after its ramp.
    pub fn begins(&self, now_ns: u64) {
        self.time(Some(now_ns));
    }

    /// The worker ends, and others with it.
    pub fn ends(&self, exits: Option<Exits>) {
        self.time(None);
        let mut all = self.all();
        let Known { group, stage, .. } = all.known[self.number];
        match exits {
            None => {}
            Some(Exits::Group) => all.end(|known| known.group == group),
            Some(Exits::Running) => all.end(|known| known.stage == stage),
            Some(Exits::All) => all.end(|_| true),
        }
    }
}

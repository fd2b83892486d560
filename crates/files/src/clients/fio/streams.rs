//! The files of a worker, which take turns (`file_service_type`): each has requests of its own.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::files::Place;
use super::stream::Stream;
use super::{Job, Service};
use ftlab_core::util::{below, stream};

/// The requests of a worker, over all of its files.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    each: Vec<Stream>,
    service: Service,
    /// Number of files that may be open (`openfiles`).
    most_open: usize,
    /// Whether each file is open, and whether it has no further request in this pass; how many are.
    open: Vec<bool>,
    done: Vec<bool>,
    opened: usize,
    through: usize,
    /// The file whose turn it is, and number of its requests before the next one's; the next file in turn.
    file: Option<usize>,
    left: u64,
    next: usize,
    draws: Xoshiro256PlusPlus,
}

impl Streams {
    /// Makes the requests of a worker that has this name among all of a run.
    pub fn new(job: &Job, place: &Place, seed: u64, name: &str) -> Streams {
        let of = |file: u64| {
            let name = if file == 0 { name.to_owned() } else { format!("{name} file {file}") };
            let place = Place { first: place.first + file * place.each, ..*place };
            Stream::new(job, &place, seed, &name)
        };
        let count = job.files as usize;
        Streams {
            each: (0..job.files).map(of).collect(),
            service: job.service,
            most_open: if job.open_files == 0 { count } else { job.open_files as usize },
            open: vec![false; count],
            done: vec![false; count],
            opened: 0,
            through: 0,
            file: None,
            left: 0,
            next: 0,
            draws: stream(seed, &format!("fio {name} files")),
        }
    }

    /// Whether each block is touched once a pass.
    pub fn has_map(&self) -> bool {
        self.each[0].has_map()
    }

    /// Begins a pass.
    pub fn begin(&mut self) {
        self.each.iter_mut().for_each(Stream::begin);
        self.done.fill(false);
        self.through = 0;
    }

    /// Draws the direction of the next request of a job that has issued this many in each.
    pub fn direction(&mut self, issued: &[u64; 3]) -> usize {
        self.each[0].direction(issued)
    }

    /// Takes the other direction, because the rate limits hold this one back.
    pub fn switch_to(&mut self, way: usize) {
        self.each[0].switch_to(way);
    }

    /// Draws the time between two requests of a Poisson process, in units of its mean.
    pub fn interval(&mut self) -> f64 {
        self.each[0].interval()
    }

    /// Returns offset and size of the next request of this direction; `None` if the pass is over.
    pub fn next(&mut self, way: usize) -> Option<(u64, u64)> {
        if let [one] = &mut self.each[..] {
            return one.next(way);
        }
        loop {
            let file = self.turn()?;
            let request = self.each[file].next(way);
            if request.is_some() {
                return request;
            }
            (self.done[file], self.open[file]) = (true, false);
            self.through += 1;
            self.opened -= 1;
        }
    }

    /// Returns the file of the next request; `None` if all are done.
    fn turn(&mut self) -> Option<usize> {
        if let Some(file) = self.file.filter(|&file| !self.done[file] && self.left > 0) {
            self.left -= 1;
            return Some(file);
        }
        if self.through == self.each.len() {
            return None;
        }
        let file = loop {
            let file = match self.service {
                Service::Random(_) => below(self.draws.next_u64(), self.each.len() as u64) as usize,
                _ => {
                    let next = (self.next + 1) % self.each.len();
                    std::mem::replace(&mut self.next, next)
                }
            };
            if !self.done[file] && (self.open[file] || self.opened < self.most_open) {
                break file;
            }
        };
        let requests = match self.service {
            Service::Sequential => u64::MAX,
            Service::InTurn(requests) | Service::Random(requests) => requests,
        };
        self.opened += usize::from(!self.open[file]);
        (self.open[file], self.file, self.left) = (true, Some(file), requests - 1);
        Some(file)
    }
}

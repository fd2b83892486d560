//! What a job has written and is to read again (`verify`).

use std::collections::{BTreeMap, VecDeque};

use super::files::Place;
use super::stream::WRITE;
use super::{Engine, Job, Mix, Pattern};

/// The writes that are to be read, in the order in which fio reads them.
#[derive(Clone, Debug)]
enum Order {
    /// That of the writes.
    Issue(VecDeque<(u64, u64)>),
    /// By address, where a block may be written twice: each place once, as it was written last.
    Address(BTreeMap<u64, u64>),
}

/// The writes of a pass: offsets and sizes.
#[derive(Clone, Debug)]
pub(super) struct Written {
    order: Order,
    /// Whether they are kept.
    verifies: bool,
    /// After how many of them some are read, and how many (`verify_backlog`); 0: none before the pass is over.
    backlog: (u64, u64),
    /// Number of them that are to be read now; as in fio, what is left of it holds for the next pass.
    due: u64,
}

impl Written {
    /// Makes the list of a worker; `map`: whether a pass touches each block once.
    pub fn new(job: &Job, place: &Place, map: bool) -> Written {
        let verifies = verifies(job);
        // Nothing is allocated during the load, unless it is out of proportion.
        let most = job.io_size.unwrap_or(0).max(place.total()) / job.block[WRITE].least().max(1);
        let once = job.pattern == Pattern::Sequential || map;
        let order = if once && job.stride == 0 && job.group.count() <= 1 {
            Order::Issue(VecDeque::with_capacity(if verifies { most.min(1 << 24) as usize } else { 0 }))
        } else {
            Order::Address(BTreeMap::new())
        };
        Written { order, verifies, backlog: job.verify_backlog, due: 0 }
    }

    pub fn clear(&mut self) {
        match &mut self.order {
            Order::Issue(places) => places.clear(),
            Order::Address(places) => places.clear(),
        }
    }

    fn len(&self) -> u64 {
        match &self.order {
            Order::Issue(places) => places.len() as u64,
            Order::Address(places) => places.len() as u64,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, offset: u64, size: u64) {
        if !self.verifies {
            return;
        }
        let places = match &mut self.order {
            Order::Issue(places) => return places.push_back((offset, size)),
            Order::Address(places) => places,
        };
        while let Some((&at, _)) =
            places.range(..offset + size).next_back().filter(|&(&at, &size)| at + size > offset)
        {
            places.remove(&at);
        }
        places.insert(offset, size);
    }

    /// Takes out the next place to be read.
    pub fn pop(&mut self) -> Option<(u64, u64)> {
        match &mut self.order {
            Order::Issue(places) => places.pop_front(),
            Order::Address(places) => places.pop_first(),
        }
    }

    /// Takes out a place that is to be read before the pass is over; `outstanding`: number of requests in flight,
    /// `read`: whether the last one drawn was a read.
    pub fn pop_due(&mut self, outstanding: u32, read: bool) -> Option<(u64, u64)> {
        let (every, many) = self.backlog;
        if every == 0 || self.is_empty() {
            return None;
        }
        if self.due == 0 && !read && self.len().is_multiple_of(every) {
            self.due = if many > 0 { many } else { every };
        }
        // What is still being written is not read.
        if self.due == 0 || self.len() <= u64::from(outstanding) {
            return None;
        }
        self.due -= 1;
        self.pop()
    }
}

/// Whether the job writes.
pub(super) fn writes(job: &Job) -> bool {
    matches!(job.mix, Mix::Writes | Mix::Mixed(_) | Mix::TrimWrites)
}

/// Whether the job reads what it has written; one whose only pass ends with its time comes to it only before that.
fn verifies(job: &Job) -> bool {
    job.verify
        && writes(job)
        && (job.verify_backlog.0 > 0 || !(job.time_based && job.engine == Engine::Waits))
}

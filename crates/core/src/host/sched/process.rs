//! The requests of a process, as bfq keeps them: how it sends them, and which of them goes next.
//!
//! Source: block/bfq-iosched.c of Linux 6.12. A process is I/O-bound if it rests for less than a fifth of the time;
//! its think time is short unless the mean of more than 80 samples is above half of `slice_idle`; it seeks if 20 of its
//! last 32 requests were small and far from the one before.

use super::peak_rate::seeks;
use crate::request::{Pool, Queue, Request};
use crate::util::{Bits, NONE, Ordered};

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;
/// Bits of a place in the order of addresses that are the sector.
const SECTOR_BITS: u32 = 48;
/// A request is small enough to rest on below this, sectors.
const SMALL_REQUEST: u64 = 32;
/// A device takes several requests if it has held more than this many; that many samples say so.
const QUEUED: u32 = 3;
const SAMPLES: u32 = 32;
/// Weight of a new sample of the think time is 1 / 8; a sample counts as this much.
const ONE: u64 = 256;
/// From this sum of samples on the think time counts.
const ENOUGH: u64 = 80;
/// Length of time over which the share of rest is taken, ns; then both halve.
const REST_WINDOW_NS: u64 = 200_000_000;

/// Returns the first sector of a request, and the number of its sectors.
pub(super) fn sectors(request: &Request) -> (u64, u64) {
    let first = request.offset / SECTOR;
    (first, (request.offset + request.size).div_ceil(SECTOR) - first)
}

/// What bfq keeps about a process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    /// Its waiting requests in order of arrival.
    pub fifo: Queue,
    /// Its next request, or [`NONE`].
    pub next: u32,
    /// Its next request, if that is next because it has expired, or [`NONE`].
    pub late: u32,
    /// The largest budget that it is given, sectors.
    pub max_budget: u64,
    /// Number of its requests in the device.
    pub out: u32,
    /// Number of its weight among the different ones, from the lowest.
    pub class: u32,
    /// Whether it waits for its turn or has it.
    pub is_busy: bool,
    /// Whether its last turn ended before its budget, so that it may go on.
    pub resumes: bool,
    /// Whether the oldest request has been looked at in this turn.
    pub looked: bool,
    /// Whether no request of it was seen before.
    pub is_new: bool,
    pub thinks_short: bool,
    pub is_io_bound: bool,
    /// End of its turn by time, ns.
    pub timeout_ns: u64,
    pub last_end_ns: u64,
    seeks: u32,
    last_sector: u64,
    thinks: u64,
    think_ns: u64,
    since_ns: u64,
    rest_ns: u64,
}

impl Process {
    /// Makes a process whose first request arrives now.
    pub fn new(class: u32, max_budget: u64, now_ns: u64) -> Process {
        Process {
            fifo: Queue::default(),
            next: NONE,
            late: NONE,
            max_budget,
            out: 0,
            class,
            is_busy: false,
            resumes: false,
            looked: false,
            is_new: true,
            thinks_short: true,
            is_io_bound: true,
            timeout_ns: 0,
            last_end_ns: now_ns,
            seeks: 1,
            last_sector: 0,
            thinks: 0,
            think_ns: 0,
            since_ns: now_ns,
            rest_ns: 0,
        }
    }

    /// Whether most of its last requests were small and far apart.
    pub fn seeks(&self) -> bool {
        self.seeks.count_ones() > 19
    }

    /// Whether it asks for one place after the other, and at once.
    pub fn streams(&self) -> bool {
        !self.seeks() && self.is_io_bound && self.thinks_short
    }

    /// Returns the sectors that its next request is charged with; 0 if it has none.
    pub fn charge(&self, pool: &Pool) -> u64 {
        pool.get(self.next).map_or(0, |request| sectors(request).1)
    }

    /// Whether this request is the only one and small, and the process streams: the device then rests on for it.
    pub fn has_just_a_small(&self, id: u32, pool: &Pool) -> bool {
        self.fifo.len() == 1 && sectors(&pool[id]).1 < SMALL_REQUEST && self.streams()
    }

    /// Lets its next request leave, after which another is nearest. The oldest goes before that one, once in a turn, if
    /// it arrived at `looks_ns` or earlier.
    pub fn sends(&mut self, id: u32, nearest: u32, looks_ns: Option<u64>, pool: &mut Pool) {
        pool[id].host.expired = self.late == id;
        let oldest = self.fifo.head();
        let is_late = !std::mem::replace(&mut self.looked, true)
            && oldest != id
            && looks_ns.is_some_and(|at_ns| pool[oldest].arrival_ns <= at_ns);
        self.late = if is_late { oldest } else { NONE };
        self.next = if is_late { oldest } else { nearest };
        self.fifo.unlink(id, pool);
        self.out += 1;
    }

    /// Notes how a request arrives that is not in the queue yet.
    pub fn arrives(&mut self, (sector, sectors): (u64, u64), now_ns: u64, slice_idle_ns: u64) {
        if self.out == 0 && !self.is_busy {
            let thought_ns = (now_ns - self.last_end_ns).min(2 * slice_idle_ns);
            self.thinks = (7 * self.thinks + ONE) / 8;
            self.think_ns = (7 * self.think_ns + ONE * thought_ns) / 8;
        }
        if slice_idle_ns > 0 {
            let long = self.thinks > ENOUGH && (self.think_ns + ONE / 2) / self.thinks > slice_idle_ns / 2;
            self.thinks_short = !long;
        }
        self.seeks = self.seeks << 1 | u32::from(seeks(self.last_sector, sector, sectors));
        self.last_sector = sector + sectors;
        let whole_ns = now_ns - self.since_ns;
        if self.fifo.is_empty() && self.out == 0 {
            self.rest_ns += now_ns - self.last_end_ns;
        }
        if self.is_new {
            return;
        }
        self.is_io_bound = self.rest_ns * 5 <= whole_ns;
        if whole_ns > REST_WINDOW_NS {
            self.since_ns = now_ns - whole_ns / 2;
            self.rest_ns /= 2;
        }
    }
}

/// The different weights of the processes that have requests, waiting or in the device.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    /// All weights that there may be, from the lowest, and how many such processes have each.
    weights: Vec<u32>,
    counts: Vec<u32>,
    present: Bits,
    different: u32,
}

impl Classes {
    /// Makes the classes of processes with these weights and of others with weight 1.
    pub fn new(weights: &[u32]) -> Classes {
        let mut weights: Vec<u32> = [weights, &[1]].concat();
        weights.sort_unstable();
        weights.dedup();
        let (counts, present) = (vec![0; weights.len()], Bits::new(weights.len()));
        Classes { weights, counts, present, different: 0 }
    }

    /// Returns the class of a weight.
    pub fn of(&self, weight: u32) -> u32 {
        self.weights.partition_point(|&other| other < weight) as u32
    }

    /// Notes that a process of this class has requests now.
    pub fn enter(&mut self, class: u32) {
        let count = &mut self.counts[class as usize];
        *count += 1;
        if *count == 1 {
            self.different += 1;
            self.present.set(class);
        }
    }

    /// Notes that a process of this class has no requests any more.
    pub fn leave(&mut self, class: u32) {
        let count = &mut self.counts[class as usize];
        *count -= 1;
        if *count == 0 {
            self.different -= 1;
            self.present.clear(class);
        }
    }

    /// Whether weights differ and those of this class are not the lowest, so that it has something to lose.
    pub fn is_uneven_for(&self, class: u32) -> bool {
        self.different > 1 && self.present.next_set(0, self.weights.len() as u32) != Some(class)
    }
}

/// Whether the device takes more than one request after the other, as its depth shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Depth {
    takes_several: Option<bool>,
    most: u32,
    samples: u32,
}

impl Depth {
    /// Looks at the number of requests in the device and of those that wait; `of_turn` is the process whose turn it is.
    pub fn sample(&mut self, out: u32, waiting: u32, of_turn: Option<&Process>) {
        self.most = self.most.max(out);
        let lags = |own: &Process| own.thinks_short && own.out + own.fifo.len() < QUEUED && out < QUEUED;
        if self.takes_several == Some(true) || out + waiting <= QUEUED || of_turn.is_some_and(lags) {
            return;
        }
        self.samples += 1;
        if self.samples > SAMPLES {
            *self = Depth { takes_several: Some(self.most > QUEUED), ..Depth::default() };
        }
    }

    /// Whether the device is known to take one request after the other.
    pub fn takes_one(&self) -> bool {
        self.takes_several == Some(false)
    }
}

/// The waiting requests of all processes by address.
#[derive(Clone, Debug)]
pub(super) struct Places {
    sorted: Ordered,
    /// How far back a request may be, sectors, and how many times farther a sector is if it is behind.
    back: u64,
    penalty: u64,
}

/// Returns the place of a request: the process is above the sector.
fn place(process: u32, request: &Request) -> u64 {
    u64::from(process) << SECTOR_BITS | sectors(request).0
}

impl Places {
    /// Makes an empty order, in which requests may be `back` sectors behind.
    pub fn new(back: u64, penalty: u64) -> Places {
        Places { sorted: Ordered::default(), back, penalty }
    }

    pub fn insert(&mut self, process: u32, id: u32, pool: &mut Pool) {
        pool[id].host.slot = self.sorted.insert(id, place(process, &pool[id]));
    }

    pub fn remove(&mut self, id: u32, pool: &Pool) {
        self.sorted.remove(pool[id].host.slot);
    }

    fn place_of(&self, id: u32, pool: &Pool) -> u64 {
        self.sorted.position(pool[id].host.slot)
    }

    /// Moves a request that may begin earlier now; returns whether it does.
    pub fn moved(&mut self, process: u32, id: u32, pool: &mut Pool) -> bool {
        let moves = self.place_of(id, pool) != place(process, &pool[id]);
        if moves {
            self.remove(id, pool);
            self.insert(process, id, pool);
        }
        moves
    }

    /// Returns which of two requests goes first after a position; the first may be [`NONE`]. Of requests equally near,
    /// the one at the higher address; of requests too far back, the one at the lower.
    pub fn nearer(&self, one: u32, other: u32, last: u64, pool: &Pool) -> u32 {
        if one == NONE || other == NONE || one == other {
            return if one == NONE { other } else { one };
        }
        let at = [one, other].map(|id| sectors(&pool[id]).0);
        let distance = |sector: u64| match sector.checked_sub(last) {
            Some(ahead) => Some(ahead),
            None if sector + self.back >= last => Some((last - sector) * self.penalty),
            None => None,
        };
        let wins = match (distance(at[0]), distance(at[1])) {
            (Some(own), Some(others)) => own < others || own == others && at[0] >= at[1],
            (own, None) => own.is_some() || at[0] <= at[1],
            (None, Some(_)) => false,
        };
        if wins { one } else { other }
    }

    /// Returns the nearest request of the process to one that leaves, or [`NONE`]: of the one behind it, or else the
    /// process's first, and the one before it.
    pub fn after(&self, process: u32, id: u32, pool: &Pool) -> u32 {
        let from = u64::from(process) << SECTOR_BITS;
        let is_own =
            |&other: &u32| other != NONE && self.place_of(other, pool) >> SECTOR_BITS == process.into();
        let [before, behind] =
            self.sorted.next_to(pool[id].host.slot).map(|other| Some(other).filter(is_own).unwrap_or(NONE));
        let first = self.sorted.first_from(from);
        let ahead = if behind == NONE && first != id { first } else { behind };
        self.nearer(ahead, before, sectors(&pool[id]).0, pool)
    }

    /// Checks the order.
    pub fn verify(&self, expected: u32, pool: &Pool) -> Result<(), String> {
        let sector = |id: u32| self.place_of(id, pool) & ((1 << SECTOR_BITS) - 1);
        // A request that grows within its first page keeps its place.
        self.sorted.verify(expected, |id| sector(id) >= sectors(&pool[id]).0)
    }
}

//! Requests that are submitted from outside, one after another.

use std::collections::VecDeque;

use super::{Arrivals, Intake, LATEST_NS};
use crate::clock::NEVER;
use crate::flash::moves::{Move, Moves};
use crate::host::settings::Settings;
use crate::request::{Pool, Request};
use crate::util::{NONE, Slab};
use crate::workload::{Op, Record, SourceError};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The request has no bytes, or some of them are beyond the user capacity.
    #[error("{size} B at offset {offset} are not within the user capacity, {user_bytes} B")]
    Range {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        size: u64,
        /// User capacity.
        user_bytes: u64,
    },
    /// The stream is not the number of a tenant.
    #[error("stream {stream} is not the number of a tenant: there are {tenants}, numbered from 0")]
    Stream {
        /// Stream of the request.
        stream: u16,
        /// Number of tenants.
        tenants: usize,
    },
    /// The request would arrive in the past.
    #[error("an arrival at {at_ns} ns is in the past: the time is {now_ns} ns")]
    Past {
        /// Arrival asked for, ns.
        at_ns: u64,
        /// Time of the simulation, ns.
        now_ns: u64,
    },
    /// The request would arrive before a request that was submitted earlier.
    #[error("an arrival at {at_ns} ns is before that of the last request submitted, {last_ns} ns")]
    Before {
        /// Arrival asked for, ns.
        at_ns: u64,
        /// Arrival of the previous submission, ns.
        last_ns: u64,
    },
    /// The request would arrive more than a century after the start.
    #[error("an arrival at {0} ns is more than a century after the start")]
    Late(u64),
    /// The simulation replays its own workload.
    #[error("this simulation has a workload of its own and takes no other requests")]
    Fed,
    /// Power is off.
    #[error("the power is cut; recover first")]
    Off,
}

/// One submission, to be answered when its request, or the one that it became part of, completes.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// Number of the submission, from 1 in the order of submission.
    pub number: u64,
    /// Arrival, ns.
    pub arrival_ns: u64,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
    next: u32,
}

/// Requests submitted from outside.
pub struct Submitted {
    waiting: VecDeque<Record>,
    intake: Intake,
    submitted: u64,
    last_ns: u64,
    /// Number of tenants by table; 0: any stream will do.
    tenants: usize,
    /// Number of requests that have arrived, and number of those that became part of another.
    arrived: u64,
    merged: u64,
    /// Whether more requests may be submitted before time moves on, so that the workload has not ended.
    pub open: bool,
    /// The submissions behind each request, in a slab, if requests merge. The submissions of one request form a ring,
    /// and the request's tag is the slot of the last one.
    behind: Option<Slab<Submission>>,
    /// Receives merges, if the bytes of requests are followed.
    pub moves: Option<Moves>,
}

impl Submitted {
    /// Makes an empty queue of submissions; `merges` says whether requests may become part of others.
    pub fn new(settings: &Settings, merges: bool) -> Submitted {
        Submitted {
            waiting: VecDeque::new(),
            intake: Intake::new(settings),
            submitted: 0,
            tenants: settings.tenants.0.len(),
            last_ns: 0,
            arrived: 0,
            merged: 0,
            open: true,
            behind: merges.then(Slab::default),
            moves: None,
        }
    }

    /// Notes that a request arrived or became part of another.
    fn note(&self, what: Move) {
        if let Some(moves) = &self.moves {
            moves.note(what);
        }
    }

    /// Takes a request; returns the number of its submission.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing has changed in that case.
    pub fn submit(&mut self, now_ns: u64, record: Record) -> Result<u64, SubmitError> {
        let Record { time_ns: at_ns, op, offset, size, .. } = record;
        let user_bytes = self.intake.user_bytes;
        if at_ns < now_ns {
            return Err(SubmitError::Past { at_ns, now_ns });
        }
        if at_ns < self.last_ns {
            return Err(SubmitError::Before { at_ns, last_ns: self.last_ns });
        }
        if at_ns > LATEST_NS {
            return Err(SubmitError::Late(at_ns));
        }
        if op != Op::Flush && (size == 0 || offset.checked_add(size).is_none_or(|end| end > user_bytes)) {
            return Err(SubmitError::Range { offset, size, user_bytes });
        }
        if self.tenants > 0 && usize::from(record.stream) >= self.tenants {
            return Err(SubmitError::Stream { stream: record.stream, tenants: self.tenants });
        }
        self.waiting.push_back(record);
        self.last_ns = at_ns;
        self.submitted += 1;
        Ok(self.submitted)
    }

    /// Calls `visit` with every submission behind a request that completes.
    pub fn each_behind(&self, request: &Request, mut visit: impl FnMut(Submission)) {
        let Some(behind) = &self.behind else {
            let Request { id: number, arrival_ns, offset, size, .. } = *request;
            return visit(Submission { number, arrival_ns, offset, size, next: NONE });
        };
        let mut at = request.tag;
        loop {
            at = behind[at].next;
            visit(behind[at]);
            if at == request.tag {
                return;
            }
        }
    }

    /// Drops the submissions that have not completed.
    pub fn lose(&mut self) {
        self.waiting.clear();
        self.last_ns = 0;
        self.arrived = self.submitted;
        self.behind = self.behind.take().map(|_| Slab::default());
    }
}

impl Arrivals for Submitted {
    #[inline]
    fn next_ns(&self) -> u64 {
        self.waiting.front().map_or(NEVER, |record| record.time_ns)
    }

    fn next_stream(&self) -> u16 {
        self.waiting.front().map_or(0, |record| record.stream)
    }

    fn ended(&self) -> bool {
        !self.open && self.waiting.is_empty()
    }

    #[inline]
    fn take(&mut self, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        let record = self.waiting.pop_front().expect("one arrives");
        let number = self.arrived + 1 - self.merged;
        let request = self.intake.request(number, arrival_ns, &record).expect("checked when submitted");
        self.arrived += 1;
        let id = pool.insert(request);
        if let Some(behind) = &mut self.behind {
            let Request { arrival_ns, offset, size, .. } = pool[id];
            let slot =
                behind.insert(Submission { number: self.arrived, arrival_ns, offset, size, next: NONE });
            behind[slot].next = slot;
            pool[id].tag = slot;
            self.note(Move::Arrive { request: number, submission: self.arrived });
        }
        Ok(id)
    }

    fn merged(&mut self, pending: &mut Request, taken: &Request) {
        self.merged += 1;
        let behind = self.behind.as_mut().expect("requests merge");
        let first = behind[pending.tag].next;
        behind[pending.tag].next = taken.tag;
        behind[taken.tag].next = first;
        pending.tag = taken.tag;
        let submission = behind[taken.tag].number;
        self.note(Move::Merge { request: pending.id, submission });
    }

    #[inline]
    fn completed(&mut self, _now_ns: u64, request: &Request) {
        let Some(behind) = &mut self.behind else { return };
        let mut at = request.tag;
        loop {
            behind.release(at);
            at = behind[at].next;
            if at == request.tag {
                return;
            }
        }
    }
}

//! The object behind a handle.

use std::collections::VecDeque;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::time::Instant;

use ftlab_config::Resolved;
use ftlab_core::Simulation;
use ftlab_core::ftl::recovery::Recovery;
use ftlab_core::sim::{Completion, Cut, Observer, Recovered, RunError};
use ftlab_core::workload::{Op, Record};

use crate::failure::Failure;
use crate::ftlab_code::{self, *};
use crate::handle::c_string;
use crate::{FTLAB_NOW, ftlab_completion, ftlab_cut_report, ftlab_recovery, ftlab_request};

/// The part of an object that one call at a time may use.
pub struct Object {
    pub simulation: Simulation<'static>,
    resolved: Resolved,
    opened: Instant,
    /// Completions that did not fit the caller's buffer.
    kept: VecDeque<ftlab_completion>,
    /// Number of requests submitted, and number of requests that have completed or never will.
    pub submitted: u64,
    answered: u64,
    /// The message of the last failed call.
    pub error: CString,
    json: CString,
    /// The message of the fault after which the object cannot be trusted.
    pub broken: Option<String>,
}

impl Object {
    /// Wraps a new simulation.
    pub fn new(simulation: Simulation<'static>, resolved: Resolved) -> Object {
        Object {
            simulation,
            resolved,
            opened: Instant::now(),
            kept: VecDeque::new(),
            submitted: 0,
            answered: 0,
            error: CString::default(),
            json: CString::default(),
            broken: None,
        }
    }

    /// Submits a request and returns its number.
    #[inline]
    pub fn submit(&mut self, request: &ftlab_request) -> Result<u64, Failure> {
        let op = match request.op as u8 {
            b'R' => Op::Read,
            b'W' => Op::Write,
            b'T' => Op::Trim,
            b'F' => Op::Flush,
            other => return Err(Failure::unknown_op(other)),
        };
        let time_ns = if request.at_ns == FTLAB_NOW { self.simulation.now_ns() } else { request.at_ns };
        let flags = if request.fua != 0 { Record::FUA } else { 0 };
        let stream = u16::try_from(request.stream).map_err(|_| Failure::unknown_stream(request.stream))?;
        let record = Record {
            time_ns,
            op,
            offset: request.offset,
            size: request.size,
            flags,
            stream,
            ..Record::FLUSH
        };
        self.submitted = self.simulation.submit(record)?;
        Ok(self.submitted)
    }

    /// Advances time to `until_ns`, or until every request has completed. `filled` counts the completions in `buffer`.
    pub fn drive(
        &mut self,
        until_ns: Option<u64>,
        buffer: &mut [MaybeUninit<ftlab_completion>],
        filled: &mut usize,
    ) -> Result<ftlab_code, Failure> {
        let outstanding = self.submitted - self.answered;
        let Object { simulation, kept, answered, .. } = self;
        if let Some(until_ns) = until_ns.filter(|&until_ns| until_ns < simulation.now_ns()) {
            return Err(RunError::Past { until_ns, now_ns: simulation.now_ns() }.into());
        }
        let capacity = buffer.len();
        let mut heard = Heard { buffer, filled, kept, answered, room: 0 };
        while *heard.filled < capacity
            && let Some(first) = heard.kept.pop_front()
        {
            heard.take(first);
        }
        if !heard.kept.is_empty() {
            return Ok(FTLAB_MORE);
        }
        let free = (capacity - *heard.filled) as u64;
        // If everything outstanding fits the buffer, there is no reason to stop.
        heard.room = if outstanding <= free { u64::MAX } else { free.max(u64::from(capacity == 0)) };
        let stopped = if let Some(until_ns) = until_ns {
            simulation.advance(until_ns, &mut heard)?;
            let full = *heard.filled == capacity && heard.kept.is_empty();
            let more = simulation.next_event_ns().is_some_and(|at_ns| at_ns <= until_ns);
            if full && !more {
                heard.room = u64::MAX;
                simulation.advance(until_ns, &mut heard)?;
            }
            full && more
        } else {
            simulation.run_until_idle(&mut heard)?;
            *answered < self.submitted
        };
        Ok(if stopped || !kept.is_empty() { FTLAB_MORE } else { FTLAB_OK })
    }

    /// Cuts the power, and returns the effects.
    pub fn cut(&mut self, seed: u64) -> Result<ftlab_cut_report, Failure> {
        let Cut { finished: operations, torn_programs, torn_erases, .. } = self.simulation.cut(seed)?;
        self.answered = self.submitted;
        Ok(ftlab_cut_report { operations, torn_programs, torn_erases })
    }

    /// Recovers the device from its flash alone, and returns the cost.
    pub fn recover(&mut self) -> Result<ftlab_recovery, Failure> {
        let Recovered { recovery, elapsed_ns } = self.simulation.recover()?;
        let Recovery { scan_reads, map_reads, gc_reads, programs, erases, .. } = recovery;
        Ok(ftlab_recovery { scan_reads, map_reads, gc_reads, programs, erases, elapsed_ns })
    }

    /// Returns the result up to now; the object keeps the text until the next call of this function.
    pub fn result_json(&mut self) -> *const c_char {
        let wall_s = self.opened.elapsed().as_secs_f64();
        let result = ftlab_embed::Fields::json(&self.resolved, &self.simulation.report(), wall_s);
        self.json = c_string(&result.to_string());
        self.json.as_ptr()
    }
}

/// The caller's buffer, and what else is updated while time advances.
struct Heard<'a> {
    buffer: &'a mut [MaybeUninit<ftlab_completion>],
    filled: &'a mut usize,
    kept: &'a mut VecDeque<ftlab_completion>,
    answered: &'a mut u64,
    room: u64,
}

impl Heard<'_> {
    fn take(&mut self, completion: ftlab_completion) {
        match self.buffer.get_mut(*self.filled) {
            Some(place) => {
                place.write(completion);
                *self.filled += 1;
            }
            None => self.kept.push_back(completion),
        }
    }
}

impl Observer for Heard<'_> {
    fn complete(&mut self, _: &Completion) {}

    fn answer(&mut self, completion: &Completion) {
        *self.answered += 1;
        self.take(completion.into());
    }

    fn room(&self) -> u64 {
        self.room
    }
}

impl From<&Completion> for ftlab_completion {
    #[inline]
    fn from(of: &Completion) -> ftlab_completion {
        // All fields are named, so that the compiler reports a new field that is missing here.
        let &Completion {
            id,
            arrival_ns,
            dispatch_ns,
            complete_ns,
            failed,
            op,
            offset,
            size,
            mapping_misses,
            prioritized,
            expired,
            batch,
            channel_batch,
            buffered,
            // The caller has said which.
            stream: _,
        } = of;
        let op = op.letter() as c_char;
        ftlab_completion {
            id,
            arrival_ns,
            dispatch_ns,
            complete_ns,
            offset,
            size,
            batch,
            channel_batch,
            mapping_misses,
            buffered,
            op,
            prioritized,
            expired,
            failed,
        }
    }
}

//! Records every request of a live device, as a trace that can be replayed.
//!
//! A row waits until its request has completed, since it says when that was, and until those before it have been
//! written.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ftlab_core::workload::Record;
use ftlab_trace::TOLD;
use ftlab_trace::atomic::{OutputError, OutputFile};

use crate::LiveError;

/// The trace, which appears under its name once it is finished.
pub struct Recording {
    path: PathBuf,
    out: OutputFile,
    /// Whether there is a column for streams.
    streams: bool,
    /// Requests that have not been written, in order of arrival.
    held: VecDeque<Held>,
    /// Number of the first of them.
    first: u64,
    /// The first failure; nothing is written after it.
    failed: Option<io::Error>,
}

/// A request that has not been written.
struct Held {
    record: Record,
    outstanding: usize,
    completed: bool,
}

impl Recording {
    /// Begins the trace; `streams` says whether requests may have streams.
    ///
    /// # Errors
    /// The file's error.
    pub fn create(path: &Path, streams: bool) -> Result<Recording, LiveError> {
        let mut out = OutputFile::create(path).map_err(|error| LiveError::User(error.to_string()))?;
        let stream = if streams { ",stream" } else { "" };
        let failed = writeln!(out, "time_ns,op,offset,size,outstanding,latency_ns{stream}").err();
        Ok(Recording { path: path.into(), out, streams, held: VecDeque::new(), first: 1, failed })
    }

    /// Adds a request with its number, from 1 on; `outstanding` is the number of client requests under way, including
    /// this one.
    pub fn push(&mut self, number: u64, record: &Record, outstanding: usize) {
        if self.held.is_empty() {
            self.first = number;
        }
        debug_assert_eq!(number, self.first + self.held.len() as u64);
        self.held.push_back(Held { record: *record, outstanding, completed: false });
    }

    /// Notes when a request has completed.
    pub fn complete(&mut self, number: u64, now_ns: u64) {
        let Some(held) = number.checked_sub(self.first).and_then(|at| self.held.get_mut(at as usize)) else {
            return;
        };
        held.record.latency_ns = now_ns.saturating_sub(held.record.time_ns);
        held.completed = true;
        while self.held.front().is_some_and(|held| held.completed) {
            self.write_first();
        }
    }

    /// Writes the first of the requests that have not been written.
    fn write_first(&mut self) {
        let Some(Held { record, outstanding, completed }) = self.held.pop_front() else { return };
        self.first += 1;
        if self.failed.is_some() {
            return;
        }
        let Record { time_ns, op, offset, size, flags, stream, latency_ns, .. } = record;
        let (op, fua) = (op.letter(), if flags & Record::FUA == 0 { "" } else { "F" });
        let latency = if completed { latency_ns.to_string() } else { String::new() };
        let stream = if self.streams { format!(",{stream}") } else { String::new() };
        self.failed =
            writeln!(self.out, "{time_ns},{op}{fua},{offset},{size},{outstanding},{latency}{stream}").err();
    }

    /// Notes that the device was told something that a replay does not repeat.
    pub fn tell(&mut self, time_ns: u64, command: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.out, "{TOLD} at {time_ns} ns: {command}").err();
        }
    }

    /// Ends the trace. A request that has not completed has no latency in it.
    ///
    /// # Errors
    /// The first failure to write.
    pub fn finish(mut self) -> Result<(), LiveError> {
        while !self.held.is_empty() {
            self.write_first();
        }
        let told = |error: OutputError| LiveError::User(error.to_string());
        if let Some(error) = self.failed {
            return Err(told(OutputError::new(&self.path, error)));
        }
        self.out.finish().map_err(told)
    }
}

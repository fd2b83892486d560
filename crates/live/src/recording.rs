//! Records every request of a live device, as a trace that can be replayed.

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
    /// The first failure; nothing is written after it.
    failed: Option<io::Error>,
}

impl Recording {
    /// Begins the trace; `streams` says whether requests may have streams.
    ///
    /// # Errors
    /// The file's error.
    pub fn create(path: &Path, streams: bool) -> Result<Recording, LiveError> {
        let mut out = OutputFile::create(path).map_err(|error| LiveError::User(error.to_string()))?;
        let stream = if streams { ",stream" } else { "" };
        let failed = writeln!(out, "time_ns,op,offset,size,outstanding{stream}").err();
        Ok(Recording { path: path.into(), out, streams, failed })
    }

    /// Adds a request; `outstanding` is the number of client requests under way, including this one.
    pub fn push(&mut self, record: &Record, outstanding: usize) {
        if self.failed.is_none() {
            let Record { time_ns, op, offset, size, flags, stream, .. } = record;
            let fua = if flags & Record::FUA == 0 { "" } else { "F" };
            let op = op.letter();
            let row = match self.streams {
                true => writeln!(self.out, "{time_ns},{op}{fua},{offset},{size},{outstanding},{stream}"),
                false => writeln!(self.out, "{time_ns},{op}{fua},{offset},{size},{outstanding}"),
            };
            self.failed = row.err();
        }
    }

    /// Notes that the device was told something that a replay does not repeat.
    pub fn tell(&mut self, time_ns: u64, command: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.out, "{TOLD} at {time_ns} ns: {command}").err();
        }
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// The first failure to write.
    pub fn finish(self) -> Result<(), LiveError> {
        let told = |error: OutputError| LiveError::User(error.to_string());
        if let Some(error) = self.failed {
            return Err(told(OutputError::new(&self.path, error)));
        }
        self.out.finish().map_err(told)
    }
}

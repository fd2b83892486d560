//! Records every request of a live device, as a trace that can be replayed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ftlab_core::workload::Record;
use ftlab_trace::atomic::{OutputError, OutputFile};

use crate::LiveError;

/// The trace, which appears under its name once it is finished.
pub struct Recording {
    path: PathBuf,
    out: OutputFile,
    /// The first failure; nothing is written after it.
    failed: Option<io::Error>,
}

impl Recording {
    /// Begins the trace.
    ///
    /// # Errors
    /// The file's error.
    pub fn create(path: &Path) -> Result<Recording, LiveError> {
        let mut out = OutputFile::create(path).map_err(|error| LiveError::User(error.to_string()))?;
        let failed = out.write_all(b"time_ns,op,offset,size,outstanding\n").err();
        Ok(Recording { path: path.into(), out, failed })
    }

    /// Adds a request; `outstanding` is the number of client requests under way, including this one.
    pub fn push(&mut self, record: &Record, outstanding: usize) {
        if self.failed.is_none() {
            let Record { time_ns, op, offset, size, flags, .. } = record;
            let fua = if flags & Record::FUA == 0 { "" } else { "F" };
            self.failed =
                writeln!(self.out, "{time_ns},{}{fua},{offset},{size},{outstanding}", op.letter()).err();
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

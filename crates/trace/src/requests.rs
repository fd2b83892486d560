//! The per-request file of a run.

use crate::atomic::{OutputError, OutputFile};
use ftlab_core::sim::{Completion, Observer};
use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};

const HEADER: &[u8] = b"id,arrival_ns,dispatch_ns,complete_ns,op,offset,size,mapping_misses,prioritized,\
    expired,batch,channel_batch";

/// The columns that only some per-request files have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Further {
    /// `buffered`: the pages of a read that the device had in RAM.
    pub buffered: bool,
    /// `stream`: the stream of the request.
    pub stream: bool,
}

/// Writes one row per request, in order of id, as requests complete.
///
/// A request that completes before one with a smaller id is held back until that one has completed; nothing is
/// allocated once the ring of requests held back has grown to the number of outstanding requests. The file appears
/// when [`RequestsCsv::finish`] is called.
#[derive(Debug)]
pub struct RequestsCsv {
    path: PathBuf,
    out: Option<OutputFile>,
    /// Id of the next row.
    next: u64,
    /// Requests after `next` that have already completed.
    held: VecDeque<Option<Completion>>,
    line: Vec<u8>,
    further: Further,
    rows: u64,
    error: Option<OutputError>,
}

impl RequestsCsv {
    /// Starts the file `path`; `further` adds columns.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, further: Further) -> Result<RequestsCsv, OutputError> {
        let mut requests = RequestsCsv {
            path: path.to_owned(),
            out: Some(OutputFile::create(path)?),
            next: 1,
            held: VecDeque::new(),
            line: HEADER.to_vec(),
            further,
            rows: 0,
            error: None,
        };
        for (there, name) in
            [(further.buffered, &b",buffered"[..]), (further.stream, b",stream"), (true, b"\n")]
        {
            requests.line.extend_from_slice(if there { name } else { b"" });
        }
        requests.write_line();
        Ok(requests)
    }

    /// Puts the file in its place and returns the number of rows.
    ///
    /// # Errors
    /// The first error of writing, in [`Observer::complete`] or now.
    pub fn finish(mut self) -> Result<u64, OutputError> {
        // Requests that never completed leave gaps; later requests still belong in the file.
        while let Some(slot) = self.held.pop_front() {
            if let Some(completion) = slot {
                self.write_row(&completion);
            }
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some(out) = self.out.take() {
            out.finish()?;
        }
        Ok(self.rows)
    }

    fn write_row(&mut self, completion: &Completion) {
        let c = completion;
        self.line.clear();
        let mut digits = itoa::Buffer::new();
        for value in [c.id, c.arrival_ns, c.dispatch_ns] {
            self.line.extend_from_slice(digits.format(value).as_bytes());
            self.line.push(b',');
        }
        // A request that was refused never completed.
        if !c.failed {
            self.line.extend_from_slice(digits.format(c.complete_ns).as_bytes());
        }
        self.line.push(b',');
        self.line.push(c.op.letter() as u8);
        let flags = [u64::from(c.prioritized), u64::from(c.expired)];
        for value in [c.offset, c.size, u64::from(c.mapping_misses), flags[0], flags[1]] {
            self.line.push(b',');
            self.line.extend_from_slice(digits.format(value).as_bytes());
        }
        for value in [c.batch, c.channel_batch] {
            self.line.push(b',');
            if value > 0 {
                self.line.extend_from_slice(digits.format(value).as_bytes());
            }
        }
        let further = [(self.further.buffered, c.buffered), (self.further.stream, u32::from(c.stream))];
        for (_, value) in further.into_iter().filter(|&(there, _)| there) {
            self.line.push(b',');
            self.line.extend_from_slice(digits.format(value).as_bytes());
        }
        self.line.push(b'\n');
        self.rows += 1;
        self.write_line();
    }

    fn write_line(&mut self) {
        let Some(out) = &mut self.out else { return };
        if let Err(error) = out.write_all(&self.line) {
            self.error = Some(OutputError::new(&self.path, error));
            // Dropping the output also removes the file next to the target.
            self.out = None;
        }
    }
}

impl Observer for RequestsCsv {
    fn complete(&mut self, completion: &Completion) {
        if self.error.is_some() {
            return;
        }
        debug_assert!(completion.id >= self.next, "request {} completed twice", completion.id);
        if completion.id != self.next {
            let index = (completion.id - self.next) as usize;
            if self.held.len() <= index {
                self.held.resize(index + 1, None);
            }
            self.held[index] = Some(*completion);
            return;
        }
        self.write_row(completion);
        // Frees the slot of the row just written, if any later request is held.
        self.held.pop_front();
        self.next += 1;
        while let Some(Some(completion)) = self.held.front().copied() {
            self.write_row(&completion);
            self.held.pop_front();
            self.next += 1;
        }
    }

    /// Stops the run once the file cannot be written.
    fn progress(&mut self, _requests: u64) -> bool {
        self.error.is_none()
    }
}

//! Records every request of a live device, as a trace that can be replayed.
//!
//! A row waits until its request has completed, since it says when that was, and until those before it have been passed
//! on. A thread writes the rows, so that a slow disk delays no reply, and only whole lines: what a killed process or a
//! full disk leaves under the recording's name is a trace up to there.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use ftlab_core::workload::Record;
use ftlab_trace::TOLD;
use ftlab_trace::atomic::{NEW, OutputError, OutputFile};

use crate::LiveError;

/// How long rows wait for others before they are written; a killed process loses those of this time.
const GATHER: Duration = Duration::from_millis(100);
/// Bytes of waiting rows that are written at once.
const ENOUGH_BYTES: usize = 64 << 10;
/// Bytes of waiting rows above which requests wait for the disk.
const MOST_BYTES: usize = 16 << 20;
/// Digits of the numbers of files, so that their names sort as their numbers do.
const DIGITS: usize = 4;

/// How far a recording has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingStatus {
    /// Number of requests in the files.
    pub requests: u64,
    /// Number of files.
    pub files: u64,
    /// Why the recording has ended before the device, if it has.
    pub error: Option<String>,
}

/// Rows on their way to the thread that writes them.
#[derive(Default)]
struct Waiting {
    rows: String,
    ended: bool,
    /// Whether the device has never been served, so that no file is to take its name.
    forgotten: bool,
    status: RecordingStatus,
}

#[derive(Default)]
struct Rows {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Rows {
    fn open(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no panic while rows are passed on")
    }
}

/// A trace that is being written.
pub struct Recording {
    rows: Arc<Rows>,
    /// Whether there is a column for streams.
    streams: bool,
    /// Requests whose rows have not been passed on, in order of arrival.
    held: VecDeque<Held>,
    /// Number of the first of them.
    first: u64,
    writer: Option<JoinHandle<()>>,
}

/// A request that has not been written.
struct Held {
    record: Record,
    outstanding: usize,
    completed: bool,
}

impl Recording {
    /// Begins the trace; `streams` says whether requests may have streams, and `rotate` after how many bytes the next
    /// numbered file begins. The file appears under its name with the first rows, or at the end.
    ///
    /// # Errors
    /// [`LiveError::User`]: the file's error, or there are numbered files already.
    pub fn create(path: &Path, streams: bool, rotate: Option<u64>) -> Result<Recording, LiveError> {
        let stream = if streams { ",stream" } else { "" };
        let header = format!("time_ns,op,offset,size,outstanding,latency_ns{stream}\n");
        let files = Files::create(path, header, rotate)?;
        let rows = Arc::new(Rows::default());
        let shared = rows.clone();
        let writer = Some(spawn(move || write_rows(&shared, files)));
        Ok(Recording { rows, streams, held: VecDeque::new(), first: 1, writer })
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
            self.pass_first();
        }
    }

    /// Passes on the row of the first request that is held.
    fn pass_first(&mut self) {
        let Some(Held { record, outstanding, completed }) = self.held.pop_front() else { return };
        self.first += 1;
        let Record { time_ns, op, offset, size, flags, stream, latency_ns, .. } = record;
        let (op, fua) = (op.letter(), if flags & Record::FUA == 0 { "" } else { "F" });
        let latency = if completed { latency_ns.to_string() } else { String::new() };
        let stream = if self.streams { format!(",{stream}") } else { String::new() };
        self.pass(format_args!("{time_ns},{op}{fua},{offset},{size},{outstanding},{latency}{stream}"));
    }

    /// Notes that the device was told something that a replay does not repeat.
    pub fn tell(&mut self, time_ns: u64, command: &str) {
        self.pass(format_args!("{TOLD} at {time_ns} ns: {command}"));
    }

    /// Passes a line on to the thread that writes.
    fn pass(&self, line: std::fmt::Arguments) {
        let mut waiting = self.rows.open();
        while waiting.rows.len() >= MOST_BYTES {
            waiting = self.rows.changed.wait(waiting).expect("no panic while rows are passed on");
        }
        if waiting.status.error.is_some() {
            return;
        }
        let before = waiting.rows.len();
        writeln!(waiting.rows, "{line}").expect("a text takes everything");
        if before == 0 || (before < ENOUGH_BYTES && waiting.rows.len() >= ENOUGH_BYTES) {
            self.rows.changed.notify_all();
        }
    }

    /// Returns how far the recording has come.
    pub fn status(&self) -> RecordingStatus {
        self.rows.open().status.clone()
    }

    /// Writes what is left, and ends the trace; [`Recording::status`] then says whether that failed. A request that has
    /// not completed has no latency in it.
    pub fn finish(&mut self) {
        while !self.held.is_empty() {
            self.pass_first();
        }
        self.rows.open().ended = true;
        self.rows.changed.notify_all();
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            let why = "the thread that writes it has failed".to_owned();
            self.rows.open().status.error.get_or_insert(why);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.rows.open().forgotten = true;
        self.finish();
    }
}

/// Writes rows until the recording ends or cannot be written.
fn write_rows(shared: &Rows, mut files: Files) {
    let mut rows = String::new();
    loop {
        let mut waiting = shared.open();
        waiting.status.requests = files.requests;
        waiting.status.files = files.number;
        while waiting.rows.is_empty() && !waiting.ended {
            waiting = shared.changed.wait(waiting).expect("no panic while rows are passed on");
        }
        let little = |waiting: &mut Waiting| waiting.rows.len() < ENOUGH_BYTES && !waiting.ended;
        let gathered = shared.changed.wait_timeout_while(waiting, GATHER, little);
        let mut waiting = gathered.expect("no panic while rows are passed on").0;
        std::mem::swap(&mut waiting.rows, &mut rows);
        let (ended, forgotten) = (waiting.ended, waiting.forgotten);
        drop(waiting);
        shared.changed.notify_all();
        let mut outcome = files.write(&rows);
        if ended && !(forgotten && files.file.is_none()) {
            outcome = outcome.and_then(|()| files.end());
        }
        rows.clear();
        if ended || outcome.is_err() {
            let mut waiting = shared.open();
            let error = outcome.err().map(|error| {
                format!("{error}; the recording ends after {} requests, which are kept", files.requests)
            });
            waiting.status = RecordingStatus { requests: files.requests, files: files.number, error };
            waiting.rows = String::new();
            drop(waiting);
            return shared.changed.notify_all();
        }
    }
}

/// The files of a recording: one, or numbered ones.
struct Files {
    path: PathBuf,
    header: String,
    rotate: Option<u64>,
    /// The file before it has its name.
    unplaced: Option<OutputFile>,
    file: Option<File>,
    /// Whether the file is a regular one, and not a pipe or a device.
    regular: bool,
    /// Bytes of the file.
    bytes: u64,
    /// Number of the file, from 1 on.
    number: u64,
    requests: u64,
}

impl Files {
    fn create(path: &Path, header: String, rotate: Option<u64>) -> Result<Files, LiveError> {
        let mut files = Files {
            path: path.into(),
            header,
            rotate,
            unplaced: None,
            file: None,
            regular: true,
            bytes: 0,
            number: 0,
            requests: 0,
        };
        if let Some(other) = rotate.and_then(|_| files.left()) {
            return Err(LiveError::User(format!(
                "{}: exists, and numbered files of two recordings would be taken for one: remove them, or name \
                 another file",
                other.display()
            )));
        }
        files.next().map_err(|error| LiveError::User(error.to_string()))?;
        Ok(files)
    }

    /// Returns a numbered file that is there already.
    fn left(&self) -> Option<PathBuf> {
        let any = self.path.with_file_name(self.name(1).file_name()?.to_str()?.replacen(".0001", ".*", 1));
        let found = ftlab_trace::files(any.to_str()?);
        match found {
            Ok(files) => files.into_iter().next(),
            // Some are there, with gaps between them.
            Err(_) => (1..10_000).map(|number| self.name(number)).find(|name| name.exists()),
        }
    }

    /// Returns the name of the file with this number.
    fn name(&self, number: u64) -> PathBuf {
        let Some(stem) = self.path.file_stem().filter(|_| self.rotate.is_some()) else {
            return self.path.clone();
        };
        let mut name = stem.to_owned();
        name.push(format!(".{number:0DIGITS$}"));
        if let Some(extension) = self.path.extension() {
            name.push(".");
            name.push(extension);
        }
        self.path.with_file_name(name)
    }

    fn fail(&self, error: io::Error) -> OutputError {
        OutputError::new(&self.name(self.number), error)
    }

    /// Begins the next file.
    fn next(&mut self) -> Result<(), OutputError> {
        let name = self.name(self.number + 1);
        // A numbered name is ftlab's own.
        let mut out = match self.rotate {
            Some(_) => OutputFile::replace(&name, NEW)?,
            None => OutputFile::create(&name)?,
        };
        out.write_all(self.header.as_bytes()).map_err(|error| self.fail(error))?;
        self.number += 1;
        self.bytes = self.header.len() as u64;
        self.unplaced = Some(out);
        self.file = None;
        Ok(())
    }

    /// Gives the file its name, if it has not got it yet.
    fn placed(&mut self) -> Result<&mut File, OutputError> {
        if let Some(out) = self.unplaced.take() {
            let file = out.place()?;
            self.regular = file.metadata().is_ok_and(|meta| meta.is_file());
            self.file = Some(file);
        }
        Ok(self.file.as_mut().expect("a file that has its name is open"))
    }

    /// Writes whole lines, and begins further files where one is full.
    fn write(&mut self, rows: &str) -> Result<(), OutputError> {
        let mut rest = rows.as_bytes();
        while !rest.is_empty() {
            let room = self.rotate.map_or(usize::MAX, |most| most.saturating_sub(self.bytes) as usize);
            let mut lines = lines_within(rest, room);
            if lines == 0 && self.bytes > self.header.len() as u64 {
                self.end()?;
                self.next()?;
                continue;
            }
            if lines == 0 {
                // Each file has a request, however small the files are to be.
                lines = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1);
            }
            self.write_lines(&rest[..lines])?;
            rest = &rest[lines..];
        }
        Ok(())
    }

    /// Writes lines to the file; if that fails, the file keeps those that are whole.
    fn write_lines(&mut self, lines: &[u8]) -> Result<(), OutputError> {
        let mut written = 0;
        let mut outcome = Ok(());
        while written < lines.len() && outcome.is_ok() {
            let file = self.placed()?;
            match file.write(&lines[written..]) {
                Ok(0) => outcome = Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => written += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => outcome = Err(error),
            }
        }
        let whole = lines_within(lines, written);
        self.bytes += whole as u64;
        let rows = lines[..whole].split_inclusive(|&byte| byte == b'\n');
        self.requests += rows.filter(|row| !row.starts_with(TOLD.as_bytes())).count() as u64;
        outcome.map_err(|error| {
            if let Some(file) = self.file.as_ref().filter(|_| self.regular) {
                // Should this fail too, a reader drops the part of a line.
                let _ = file.set_len(self.bytes);
            }
            self.fail(error)
        })
    }

    /// Ends the file; errors of delayed allocation show now.
    fn end(&mut self) -> Result<(), OutputError> {
        let file = self.placed()?;
        let synced = file.sync_all();
        if self.regular { synced.map_err(|error| self.fail(error)) } else { Ok(()) }
    }
}

/// Returns how many of the first `most` bytes are whole lines.
fn lines_within(rows: &[u8], most: usize) -> usize {
    let within = &rows[..rows.len().min(most)];
    within.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;

//! What a binary layout provides (a [`Reader`]), and the rows made from its records.

use crate::formats::{Format, Probe};
use crate::lines::{Lines, input_error};
use crate::options::Options;
use crate::paired::paired;
use crate::streams::Streams;
use crate::text::{BEYOND, Dropped, Recognised, Row, Rows, Stamps, Trouble, bad_row};
use ftlab_core::workload::{Objects, Record, SourceError};

/// A binary layout: perhaps a header, then records of one length, each possibly followed by more bytes.
pub(crate) trait Reader: Send + Sized {
    /// What the layout's stamps mean.
    const STAMPS: Stamps = Stamps::Clock;
    /// What the layout's own streams are, for people; `None` if it has none.
    const STREAMS: Option<&'static str> = None;
    /// Whether it may be recorded when requests completed, each time as a record of its own.
    const COMPLETIONS: bool = false;
    /// What [`Reader::is_one`] goes by, for people.
    const TOLD_BY: &'static str = "its first bytes";
    /// A small file, for tests to read and to damage.
    const SAMPLE: &'static [u8];

    /// Makes a reader for a file with this name and beginning.
    fn new(path: &str, head: &[u8], options: &Options) -> Self;

    /// Whether a file is of this layout, judging by its name and beginning.
    fn is_one(path: &str, head: &[u8]) -> bool;

    /// Returns the number of bytes before the first record.
    fn header(&self) -> usize {
        0
    }

    /// Returns the number of bytes of a record, at least 1.
    fn record(&self) -> usize;

    /// Reads a record; returns it with the number of bytes that follow it and are to be skipped.
    fn read(&mut self, record: &[u8]) -> Result<(Row, usize), Trouble>;

    /// Lets completions be rows too; returns whether there are any.
    fn keep_completions(&mut self) -> bool {
        false
    }

    /// Returns notes for people who read the figures.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what the requests access, in a trace of a cache.
    fn objects(&self) -> Option<Objects> {
        None
    }

    /// Returns the streams that records name; `None` if they name none.
    fn streams(&self) -> Option<&Streams> {
        None
    }
}

/// Rows of a binary file.
struct Records<R> {
    path: String,
    bytes: Lines,
    reader: R,
    /// Number of the record read last, from 1.
    number: u64,
    skip_bad: u64,
    bad: u64,
    dropped: Dropped,
    done: bool,
    completions: bool,
}

impl<R: Reader> Records<R> {
    #[cold]
    fn bad(&mut self, message: &str) -> Result<(), SourceError> {
        self.bad += 1;
        *self.dropped.entry("bad_line").or_default() += 1;
        self.done = self.bad > self.skip_bad;
        bad_row(&format!("{}: row {}", self.path, self.number), message, self.bad, self.skip_bad)
    }

    fn read(&mut self) -> Result<Option<Result<Row, Trouble>>, SourceError> {
        let bytes = self.reader.record();
        let Some(record) = self.bytes.take(bytes)? else { return Ok(None) };
        if record.len() < bytes {
            let message = format!("the file ends within a record of {bytes} B");
            return Ok(Some(Err(Trouble::Line(message))));
        }
        Ok(Some(match self.reader.read(record) {
            Ok((row, rest)) => {
                self.bytes.take(rest)?;
                Ok(row)
            }
            Err(trouble) => Err(trouble),
        }))
    }
}

impl<R: Reader> Rows for Records<R> {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.number == 0 {
            self.bytes.take(self.reader.header())?;
        }
        while !self.done {
            self.number += 1;
            let line = self.number;
            match self.read()? {
                None | Some(Ok(Row::End)) => self.done = true,
                Some(Ok(Row::Request { time_ns, op, offset, size })) => {
                    if offset.checked_add(size).is_some() {
                        return Ok(Some(Record { time_ns, op, offset, size, line, ..Record::FLUSH }));
                    }
                    self.bad(BEYOND)?;
                }
                Some(Ok(Row::Flagged(record))) => {
                    if record.offset.checked_add(record.size).is_some() {
                        return Ok(Some(Record { line, ..record }));
                    }
                    self.bad(BEYOND)?;
                }
                Some(Ok(Row::Drop(reason))) => *self.dropped.entry(reason).or_default() += 1,
                Some(Ok(Row::Nothing)) => {}
                Some(Err(Trouble::Line(message))) => self.bad(&message)?,
                Some(Err(Trouble::Input(message))) => {
                    self.done = true;
                    return Err(input_error(&format!("{}: row {line}", self.path), &message));
                }
            }
        }
        Ok(None)
    }

    fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    fn notes(&self) -> Vec<String> {
        self.reader.notes()
    }

    fn objects(&self) -> Option<Objects> {
        self.reader.objects()
    }

    fn has_completions(&mut self) -> Result<bool, SourceError> {
        Ok(self.completions)
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        Ok(self.reader.streams().is_some())
    }

    fn stream_names(&self) -> &[String] {
        self.reader.streams().map_or(&[], Streams::names)
    }
}

fn rows<R: Reader + 'static>(path: &str, bytes: Lines, options: &Options) -> Box<dyn Rows> {
    let mut reader = R::new(path, bytes.head().0, options);
    let completions = options.wants_completions() && reader.keep_completions();
    let records = Records {
        path: path.to_owned(),
        bytes,
        reader,
        number: 0,
        skip_bad: options.skip_bad,
        bad: 0,
        dropped: Dropped::new(),
        done: false,
        completions,
    };
    paired(Box::new(records), R::COMPLETIONS, options)
}

/// Returns the layout that a reader reads.
pub(crate) const fn format<R: Reader + 'static>(name: &'static str) -> Binary {
    Binary {
        format: Format {
            name,
            stamps: R::STAMPS,
            recognised: Recognised::Never,
            told_by: R::TOLD_BY,
            header: |_| false,
            sources: &[],
            streams: R::STREAMS,
            completions: R::COMPLETIONS,
            sample: R::SAMPLE,
            rows: rows::<R>,
            probe: |_, _| Probe::default(),
        },
        is_one: R::is_one,
    }
}

/// A binary layout, and how it is recognised.
pub(crate) struct Binary {
    pub(crate) format: Format,
    pub(crate) is_one: fn(&str, &[u8]) -> bool,
}

//! Lines of a text file, plain or compressed, from one fixed buffer.

pub(crate) use crate::opened::input_error;
pub use crate::opened::reason;
use crate::opened::{decompressed, read_full};
use crate::options::GoOn;
use crate::series::{self, Series};
use ftlab_core::workload::SourceError;
use memchr::memchr;
use std::io::{self, Read};

/// Bytes of the buffer, and upper bound on the bytes of a line.
const BUFFER: usize = 256 << 10;

/// Returns the lines of a text, without their line ends (LF or CR LF).
pub(crate) fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n').map(without_end)
}

fn without_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Reads lines, without their line ends (LF or CR LF), and counts them from 1.
pub(crate) struct Lines {
    path: String,
    input: Box<dyn Read + Send>,
    compression: Option<&'static str>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    at_end: bool,
    number: u64,
    /// Whether a last line without a line feed is left out, and whether there was one.
    only_whole: bool,
    cut_off: bool,
    go_on: GoOn,
}

impl Lines {
    /// Opens a file, and decompresses it if it begins with the magic bytes of gzip, zstd, xz or bzip2.
    ///
    /// # Errors
    /// If the file is missing, a directory, unreadable or empty.
    pub(crate) fn open(path: &str, go_on: &GoOn) -> Result<Lines, SourceError> {
        let fail = |error: io::Error| input_error(path, &reason(&error));
        let mut files = series::files(path)?.into_iter();
        let first = files.next().unwrap_or_default();
        if first.is_dir() {
            return Err(input_error(path, "is a directory, not a trace file"));
        }
        let (compression, mut input) = decompressed(&first).map_err(fail)?;
        if files.len() > 0 {
            input = Box::new(Series::new(input, files).map_err(fail)?);
        }
        let mut lines = Lines {
            path: path.to_owned(),
            input,
            compression,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            at_end: false,
            number: 0,
            only_whole: false,
            cut_off: false,
            go_on: go_on.clone(),
        };
        lines.fill()?;
        if lines.end == 0 {
            let what = lines.compression.unwrap_or("file");
            return Err(input_error(path, &format!("the {what} data is empty")));
        }
        if lines.buffer[..lines.end].starts_with(b"\xef\xbb\xbf") {
            lines.start = 3;
        }
        Ok(lines)
    }

    /// Returns how the file is compressed, if it is.
    pub(crate) fn compression(&self) -> Option<&'static str> {
        self.compression
    }

    /// Returns the file's beginning (all of it if it is short), and whether that is the whole file. Must be
    /// called before the first [`Lines::next`].
    pub(crate) fn head(&self) -> (&[u8], bool) {
        (&self.buffer[self.start..self.end], self.at_end)
    }

    /// Returns the number of the line returned last.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Sets whether a last line without a line feed is left out.
    pub(crate) fn set_only_whole(&mut self, only_whole: bool) {
        self.only_whole = only_whole;
    }

    /// Whether a last line without a line feed was left out.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Returns the next line and its number.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], u64)>, SourceError> {
        let length = match memchr(b'\n', &self.buffer[self.start..self.end]) {
            Some(length) => length,
            None => match self.find_end()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        let line = &self.buffer[self.start..self.start + length];
        self.start = (self.start + length + 1).min(self.end);
        self.number += 1;
        Ok(Some((without_end(line), self.number)))
    }

    /// Returns the next `count` bytes (at most as many as the buffer holds), or fewer at the end of the file; `None`
    /// if none are left.
    pub(crate) fn take(&mut self, count: usize) -> Result<Option<&[u8]>, SourceError> {
        if self.end - self.start < count && !self.at_end {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            self.fill()?;
        }
        let from = self.start;
        self.start = (from + count).min(self.end);
        Ok((from < self.end).then(|| &self.buffer[from..self.start]))
    }

    /// Returns the length of the line that begins at `start` and does not end within the buffer's current contents.
    #[cold]
    fn find_end(&mut self) -> Result<Option<usize>, SourceError> {
        if !self.at_end {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            let seen = self.end;
            self.fill()?;
            if let Some(more) = memchr(b'\n', &self.buffer[seen..self.end]) {
                return Ok(Some(seen + more));
            }
            if !self.at_end {
                let line = self.number + 1;
                return Err(input_error(
                    &format!("{}:{line}", self.path),
                    &format!("a line longer than {} KiB: this is not a text trace", BUFFER >> 10),
                ));
            }
        }
        // The last line need not end in a newline.
        if self.only_whole {
            self.cut_off = self.start < self.end;
            self.start = self.end;
        }
        Ok((self.start < self.end).then_some(self.end - self.start))
    }

    /// Reads until the buffer is full or the file ends.
    fn fill(&mut self) -> Result<(), SourceError> {
        let go_on = &*self.go_on.0;
        match read_full(&mut self.input, &mut self.buffer[self.end..], go_on) {
            Ok(_) if !go_on(false) => Err(SourceError::Interrupted),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(SourceError::Interrupted),
            Ok(read) => {
                self.end += read;
                self.at_end = self.end < self.buffer.len();
                Ok(())
            }
            Err(error) => {
                // A decoder must not be called again after an error.
                self.at_end = true;
                self.start = self.end;
                self.input = Box::new(io::empty());
                Err(input_error(&self.path, &self.trouble(&error)))
            }
        }
    }

    fn trouble(&self, error: &io::Error) -> String {
        let Some(compression) = self.compression else { return reason(error) };
        if is_truncated(error) {
            format!("the {compression} data ends too early: the file is truncated")
        } else {
            format!("the {compression} data is damaged: {}", reason(error))
        }
    }
}

fn is_truncated(error: &io::Error) -> bool {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return true;
    }
    let mut cause = error.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static));
    while let Some(inner) = cause {
        if inner.downcast_ref::<io::Error>().is_some_and(is_truncated) {
            return true;
        }
        cause = inner.source();
    }
    false
}

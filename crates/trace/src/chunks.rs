//! Rows that come in columns: from a Parquet file, or from the caller.

use crate::depth::Depth;
use crate::lines::input_error;
use crate::options::Options;
use crate::text::{Dropped, Rows, bad_row};
use ftlab_core::workload::{Op, Record, SourceError};

/// Some rows in columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Stamps, ns.
    pub ts_ns: Vec<i64>,
    /// Operations: the letters R, W, T, F in either case, or 0 to 3 in that order.
    pub op: Vec<u8>,
    /// Offset of the first byte of each request.
    pub offset: Vec<i64>,
    /// Number of bytes of each request.
    pub size: Vec<i64>,
    /// Flags as in [`Record::flags`]; empty: none. Unknown bits, and FUA on anything but a write, are
    /// ignored.
    pub flags: Vec<u8>,
    /// Streams, up to 65,535; empty: none.
    pub stream: Vec<i64>,
    /// For each request, the number of requests under way when it arrived, including itself; empty: unknown.
    pub outstanding: Vec<i64>,
    /// For each request, the time from arrival to completion, ns; negative: not known. Empty: none is known.
    pub latency_ns: Vec<i64>,
}

/// The chunks of one pass. Each call replaces the chunk with the next one, and returns `false` if there is no next one.
/// An error ends the pass.
pub type Chunks = Box<dyn FnMut(&mut Chunk) -> Result<bool, SourceError> + Send>;

/// Restarts the chunks, for another pass.
pub type MakeChunks = Box<dyn FnMut() -> Chunks + Send>;

/// The rows of a pass.
pub(crate) struct ChunkRows {
    name: String,
    chunks: Chunks,
    chunk: Chunk,
    at: usize,
    /// Number of the row returned last, from 1.
    row: u64,
    skip_bad: u64,
    bad: u64,
    dropped: Dropped,
    depth: Depth,
    /// Whether completions are wanted.
    completions: bool,
    done: bool,
}

impl ChunkRows {
    pub(crate) fn new(name: &str, chunks: Chunks, options: &Options) -> ChunkRows {
        ChunkRows {
            name: name.to_owned(),
            chunks,
            chunk: Chunk::default(),
            at: 0,
            row: 0,
            skip_bad: options.skip_bad,
            bad: 0,
            dropped: Dropped::new(),
            depth: Depth::default(),
            completions: options.wants_completions(),
            done: false,
        }
    }

    fn next_chunk(&mut self) -> Result<bool, SourceError> {
        let chunk = &mut self.chunk;
        if !(self.chunks)(chunk)? {
            return Ok(false);
        }
        let rows = chunk.ts_ns.len();
        let fit = |length: usize| length == 0 || length == rows;
        let further = [&chunk.stream, &chunk.latency_ns].iter().all(|column| fit(column.len()))
            && fit(chunk.flags.len());
        if [chunk.op.len(), chunk.offset.len(), chunk.size.len()] != [rows; 3] || !further {
            return Err(input_error(&self.name, "columns of different length"));
        }
        self.at = 0;
        chunk.outstanding.iter().for_each(|&outstanding| self.depth.add(outstanding.max(0) as u64));
        Ok(true)
    }

    /// Loads chunks until there is a row; returns `false` if there is none.
    fn load(&mut self) -> Result<bool, SourceError> {
        while self.at == self.chunk.ts_ns.len() {
            let next = self.next_chunk();
            self.done = next.is_err();
            if !next? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[cold]
    fn bad(&mut self, message: &str) -> Result<(), SourceError> {
        self.bad += 1;
        *self.dropped.entry("bad_line").or_default() += 1;
        self.done = self.bad > self.skip_bad;
        bad_row(&format!("{}: row {}", self.name, self.row), message, self.bad, self.skip_bad)
    }

    #[inline]
    fn parse(&self, at: usize) -> Result<Record, String> {
        let positive = |value: i64, name: &str| {
            u64::try_from(value).map_err(|_| format!("{name} is {value}: it must not be negative"))
        };
        let time_ns = positive(self.chunk.ts_ns[at], "ts_ns")?;
        let stream = self.chunk.stream.get(at).copied().unwrap_or(0);
        let stream = u16::try_from(stream)
            .map_err(|_| format!("stream is {stream}: it must be a number from 0 to 65535"))?;
        let latency_ns = match self.chunk.latency_ns.get(at) {
            Some(&latency) if self.completions => u64::try_from(latency).unwrap_or(Record::UNKNOWN),
            _ => Record::UNKNOWN,
        };
        let op = match self.chunk.op[at] {
            b'R' | b'r' | 0 => Op::Read,
            b'W' | b'w' | 1 => Op::Write,
            b'T' | b't' | 2 => Op::Trim,
            b'F' | b'f' | 3 => {
                let line = self.row;
                return Ok(Record {
                    time_ns,
                    op: Op::Flush,
                    offset: 0,
                    size: 0,
                    line,
                    flags: 0,
                    stream,
                    latency_ns,
                });
            }
            other => {
                return Err(format!("op is \"{}\", not R, W, T (trim) or F (flush)", other.escape_ascii()));
            }
        };
        let offset = positive(self.chunk.offset[at], "offset")?;
        let size = positive(self.chunk.size[at], "size")?;
        let known = if op == Op::Write { Record::FUA | Record::PREFLUSH } else { Record::PREFLUSH };
        let flags = self.chunk.flags.get(at).map_or(0, |flags| flags & known);
        Ok(Record { time_ns, op, offset, size, line: self.row, flags, stream, latency_ns })
    }
}

impl Rows for ChunkRows {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        while !self.done && self.load()? {
            let at = self.at;
            self.at += 1;
            self.row += 1;
            match self.parse(at) {
                Ok(record) => return Ok(Some(record)),
                Err(message) => self.bad(&message)?,
            }
        }
        self.done = true;
        Ok(None)
    }

    fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn depth(&self) -> Option<&Depth> {
        Some(&self.depth)
    }

    fn is_recording(&self) -> bool {
        !self.chunk.outstanding.is_empty() && !self.chunk.latency_ns.is_empty()
    }

    fn has_completions(&mut self) -> Result<bool, SourceError> {
        self.load()?;
        Ok(!self.chunk.latency_ns.is_empty())
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        self.load()?;
        Ok(!self.chunk.stream.is_empty())
    }
}

//! What a text layout provides (a [`Parser`]), and the rows made from its lines.

use crate::depth::Depth;
use crate::devices::{DEVICE_STRIDE, Devices};
pub(crate) use crate::fields::Trouble;
use crate::lines::{Lines, input_error};
use crate::options::Options;
use crate::streams::Streams;
use ftlab_core::settings::StreamsOf;
use ftlab_core::workload::{Objects, Op, Record, SourceError};
use std::collections::BTreeMap;

/// The flag of a row that is the completion of requests before it. It never leaves this crate.
pub(crate) const COMPLETION: u8 = 1 << 7;

/// Number of rows dropped, by reason.
pub(crate) type Dropped = BTreeMap<&'static str, u64>;

/// Rows of a trace as recorded: stamps in ns of the trace's own clock, not yet in order.
pub(crate) trait Rows: Send {
    /// Returns the next row that is a request.
    fn next(&mut self) -> Result<Option<Record>, SourceError>;

    /// Returns the rows dropped so far, by reason.
    fn dropped(&self) -> &Dropped;

    /// Returns notes for people who read the figures.
    fn notes(&self) -> Vec<String>;

    /// Returns a summary of how many requests were under way during the recording; `None` if that is unknown.
    fn depth(&self) -> Option<&Depth> {
        None
    }

    /// Returns what the requests access, in a trace of a cache.
    fn objects(&self) -> Option<Objects> {
        None
    }

    /// Whether this is ftlab's own recording, with completions; asked after [`Rows::has_completions`], or after rows.
    fn is_recording(&self) -> bool {
        false
    }

    /// Whether it is recorded when requests completed; may be asked before the first row.
    fn has_completions(&mut self) -> Result<bool, SourceError> {
        Ok(false)
    }

    /// Whether requests may have streams; may be asked before the first row.
    fn has_streams(&mut self) -> Result<bool, SourceError> {
        Ok(false)
    }

    /// Returns the names of the streams seen so far, from stream 1 on; none where streams have no names.
    fn stream_names(&self) -> &[String] {
        &[]
    }
}

/// What a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// A request.
    Request {
        /// Stamp, ns of the trace's clock.
        time_ns: u64,
        /// Operation.
        op: Op,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        size: u64,
    },
    /// A request with flags, a stream or both.
    Flagged(Record),
    /// Not a request to be replayed; counted under this reason.
    Drop(&'static str),
    /// A header or the like: not counted.
    Nothing,
    /// What follows is not trace data (a summary).
    End,
}

impl Row {
    /// Makes a flush, which has no range.
    pub(crate) fn flush(time_ns: u64) -> Row {
        Row::Request { time_ns, op: Op::Flush, offset: 0, size: 0 }
    }

    /// Makes a request, with or without flags.
    pub(crate) fn flagged(time_ns: u64, op: Op, [offset, size]: [u64; 2], flags: u8) -> Row {
        Row::streamed(time_ns, op, [offset, size], flags, 0)
    }

    /// Makes a request of a stream, with or without flags.
    pub(crate) fn streamed(time_ns: u64, op: Op, [offset, size]: [u64; 2], flags: u8, stream: u16) -> Row {
        Row::of(Record { time_ns, op, offset, size, flags, stream, ..Record::FLUSH })
    }

    /// Makes a request that completed this long after its arrival.
    pub(crate) fn timed(time_ns: u64, op: Op, [offset, size]: [u64; 2], latency_ns: u64) -> Row {
        Row::of(Record { time_ns, op, offset, size, line: 0, flags: 0, stream: 0, latency_ns })
    }

    /// Makes the completion of a range, which belongs to the requests before it.
    pub(crate) fn completion(time_ns: u64, op: Op, range: [u64; 2]) -> Row {
        Row::flagged(time_ns, op, range, COMPLETION)
    }

    /// Makes a request, with or without flags, stream and latency.
    pub(crate) fn of(record: Record) -> Row {
        match record {
            Record {
                time_ns, op, offset, size, flags: 0, stream: 0, latency_ns: Record::UNKNOWN, ..
            } => Row::Request { time_ns, op, offset, size },
            record => Row::Flagged(record),
        }
    }
}

/// The meaning of a layout's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// The stamps are simulation time already, and are kept as they are.
    Own,
    /// The stamps are times of the trace's own clock: the first kept arrival becomes 0.
    Clock,
    /// The stamps are whole seconds of the trace's own clock: the requests of a second are spread evenly over it.
    Seconds,
    /// There are no stamps.
    Absent,
}

/// How a layout is recognised.
#[derive(Clone, Copy)]
pub(crate) enum Recognised {
    /// By its first line, whatever the other lines are.
    Header(fn(&[u8]) -> bool),
    /// By its first line, or by its lines if the first was cut off.
    HeaderOrLines(fn(&[u8]) -> bool),
    /// By its lines.
    Lines,
    /// Not at all: it resembles other layouts and has to be named.
    Never,
}

/// A text layout.
pub(crate) trait Parser: Default + Send {
    /// What the layout's stamps mean.
    const STAMPS: Stamps = Stamps::Clock;
    /// How the layout is recognised.
    const RECOGNISED: Recognised = Recognised::Lines;
    /// What in the lines shows that they are of this layout, for people; see [`Parser::shows`].
    const TOLD_BY: &'static str = "fields that no other layout has";
    /// Whether a first line is a header, which is skipped.
    const HEADER: fn(&[u8]) -> bool = |_| false;
    /// Sample lines, for tests to read and to damage.
    const SAMPLE: &'static str;
    /// Bytes of the range of each device, file or block that a line names.
    const STRIDE: u64 = DEVICE_STRIDE;
    /// What a line names besides the streams that the layout has.
    const SOURCES: &'static [StreamsOf] = &[];
    /// What the layout's own streams are, for people; `None` if it has none.
    const STREAMS: Option<&'static str> = None;
    /// Whether lines may say when requests completed.
    const COMPLETIONS: bool = false;
    /// Whether completions are lines of their own.
    const COMPLETIONS_APART: bool = false;

    /// Makes a parser that has seen no line.
    fn new(_: &Options) -> Self {
        Self::default()
    }

    /// Returns the name of the process or volume in a line that parses; asked only for what is in `SOURCES`.
    fn source(_line: &[u8], _of: StreamsOf) -> Option<&[u8]> {
        None
    }

    /// Prepares for a file with this beginning; called before the first line is parsed.
    fn prepare(&mut self, _head: &[u8]) {}

    /// Parses a line that is not blank; if the line names a device, `devices` gives the request its place.
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble>;

    /// Whether a line that parses has what no line of another layout has, so that it may be recognised by it; a line
    /// that can tell neither way passes.
    fn shows(&self, _line: &[u8]) -> bool {
        true
    }

    /// Whether each line ends in a line feed, so that a last one without was cut off and its numbers may lack digits;
    /// asked after a header.
    fn has_whole_lines(&self) -> bool {
        false
    }

    /// Returns notes for people who read the figures, besides those about the devices.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns a summary of how many requests were under way during the recording; `None` if that is unknown.
    fn depth(&self) -> Option<&Depth> {
        None
    }

    /// Whether this is ftlab's own recording, with completions; may be asked once the parser is prepared.
    fn is_recording(&self) -> bool {
        false
    }

    /// Whether lines say when requests completed; may be asked once the parser is prepared.
    fn has_completions(&self) -> bool {
        Self::COMPLETIONS
    }

    /// Whether requests may have streams; may be asked once the parser is prepared.
    fn has_streams(&self) -> bool {
        self.streams().is_some()
    }

    /// Returns the streams that lines name; `None` if they name none.
    fn streams(&self) -> Option<&Streams> {
        None
    }
}

/// Rows of a text file.
pub(crate) struct TextRows<P> {
    path: String,
    lines: Lines,
    parser: P,
    devices: Devices,
    /// What streams are instead of what the layout has as its streams.
    sources: Option<(StreamsOf, Streams)>,
    skip_bad: u64,
    bad: u64,
    dropped: Dropped,
    at_first: bool,
    done: bool,
}

impl<P: Parser> TextRows<P> {
    /// Makes the rows of a file, starting at its first line.
    pub(crate) fn new(path: &str, lines: Lines, options: &Options) -> TextRows<P> {
        let mut parser = P::new(options);
        parser.prepare(lines.head().0);
        TextRows {
            path: path.to_owned(),
            lines,
            parser,
            devices: Devices::spaced(P::STRIDE),
            sources: P::SOURCES.contains(&options.streams).then(|| (options.streams, Streams::default())),
            skip_bad: options.skip_bad,
            bad: 0,
            dropped: Dropped::new(),
            at_first: true,
            done: false,
        }
    }

    #[cold]
    fn bad_line(&mut self, message: &str) -> Result<(), SourceError> {
        self.bad += 1;
        *self.dropped.entry("bad_line").or_default() += 1;
        self.done = self.bad > self.skip_bad;
        let place = format!("{}:{}", self.path, self.lines.number());
        bad_row(&place, message, self.bad, self.skip_bad)
    }
}

/// Gives a request the stream of the process or volume that its line names, if that is wanted.
#[inline]
fn sourced<P: Parser>(
    sources: &mut Option<(StreamsOf, Streams)>,
    line: &[u8],
    row: Row,
) -> Result<Row, Trouble> {
    let Some((of, streams)) = sources else { return Ok(row) };
    let record = match row {
        Row::Request { time_ns, op, offset, size } => Record { time_ns, op, offset, size, ..Record::FLUSH },
        Row::Flagged(record) if record.flags & COMPLETION == 0 => record,
        other => return Ok(other),
    };
    let stream = streams.number(P::source(line, *of).unwrap_or_default())?;
    Ok(Row::of(Record { stream, ..record }))
}

/// Fails at the `bad`-th bad line or row, unless `skip_bad` allows that many.
pub(crate) fn bad_row(place: &str, message: &str, bad: u64, skip_bad: u64) -> Result<(), SourceError> {
    if bad <= skip_bad {
        return Ok(());
    }
    let allowed = if skip_bad == 0 {
        "--skip-bad N (workload.skip_bad) skips up to N lines that do not parse".to_owned()
    } else {
        format!("this is bad line {bad}; --skip-bad (workload.skip_bad) allows {skip_bad}")
    };
    Err(input_error(place, &format!("{message}\n  {allowed}")))
}

impl<P: Parser> Rows for TextRows<P> {
    #[inline]
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.done {
            return Ok(None);
        }
        loop {
            let Some((line, number)) = self.lines.next()? else {
                self.done = true;
                if self.lines.is_cut_off() {
                    self.dropped.insert("cut_off", 1);
                }
                return Ok(None);
            };
            if is_blank(line) {
                continue;
            }
            if std::mem::replace(&mut self.at_first, false) && (P::HEADER)(line) {
                continue;
            }
            let row = self.parser.parse(line, &mut self.devices);
            match row.and_then(|row| sourced::<P>(&mut self.sources, line, row)) {
                Ok(Row::Request { time_ns, op, offset, size }) => {
                    if offset.checked_add(size).is_some() {
                        return Ok(Some(Record { time_ns, op, offset, size, line: number, ..Record::FLUSH }));
                    }
                    self.bad_line(BEYOND)?;
                }
                Ok(Row::Flagged(record)) => {
                    if record.offset.checked_add(record.size).is_some() {
                        return Ok(Some(Record { line: number, ..record }));
                    }
                    self.bad_line(BEYOND)?;
                }
                Ok(Row::Drop(reason)) => *self.dropped.entry(reason).or_default() += 1,
                Ok(Row::Nothing) => self.lines.set_only_whole(self.parser.has_whole_lines()),
                Ok(Row::End) => {
                    self.done = true;
                    return Ok(None);
                }
                Err(Trouble::Line(message)) => self.bad_line(&message)?,
                Err(Trouble::Input(message)) => {
                    self.done = true;
                    let place = format!("{}:{}", self.path, self.lines.number());
                    return Err(input_error(&place, &message));
                }
            }
        }
    }

    fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    fn notes(&self) -> Vec<String> {
        [self.parser.notes(), self.devices.notes()].concat()
    }

    fn depth(&self) -> Option<&Depth> {
        self.parser.depth()
    }

    fn is_recording(&self) -> bool {
        self.parser.is_recording()
    }

    fn has_completions(&mut self) -> Result<bool, SourceError> {
        Ok(self.parser.has_completions())
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        Ok(self.sources.is_some() || self.parser.has_streams())
    }

    fn stream_names(&self) -> &[String] {
        let sources = self.sources.as_ref().map(|(_, streams)| streams);
        sources.or(self.parser.streams()).map_or(&[], Streams::names)
    }
}

/// The message for a range that does not end within 64 bits.
pub(crate) const BEYOND: &str = "offset and size together exceed 2^64 bytes";

/// Whether a line has only blanks.
#[inline]
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.first().is_none_or(u8::is_ascii_whitespace) && line.trim_ascii().is_empty()
}

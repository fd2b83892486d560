//! The layouts, with a file for each. Their list, with their names, is [`ftlab_core::trace_formats`].

use crate::binary::Binary;
use crate::devices::Devices;
use crate::lines::Lines;
use crate::number;
use crate::options::Options;
use crate::paired::paired;
use crate::text::{Parser, Row, Rows, TextRows, Trouble};
pub(crate) use crate::text::{Recognised, Stamps};
pub(crate) use csv::{is_headless as is_csv_without_header, wrong_header as wrong_csv_header};
use ftlab_core::settings::StreamsOf;

/// A text layout.
pub(crate) struct Format {
    /// Name in `workload.format`.
    pub(crate) name: &'static str,
    pub(crate) stamps: Stamps,
    pub(crate) recognised: Recognised,
    /// What in the lines shows that they are of this layout, for people.
    pub(crate) told_by: &'static str,
    /// Whether a first line is a header, which is skipped.
    pub(crate) header: fn(&[u8]) -> bool,
    /// What a line names besides the streams that the layout has.
    pub(crate) sources: &'static [StreamsOf],
    /// What the layout's own streams are, for people.
    pub(crate) streams: Option<&'static str>,
    /// Whether it may be recorded when requests completed.
    pub(crate) completions: bool,
    /// Some lines of the layout, or a small file of it.
    pub(crate) sample: &'static [u8],
    /// Makes the rows of an opened file.
    pub(crate) rows: fn(&str, Lines, &Options) -> Box<dyn Rows>,
    /// Counts how many of these lines (none of them blank) parse, and of those, how many may be of another layout.
    pub(crate) probe: fn(&[&[u8]], &Options) -> Probe,
}

/// How well a layout fits some lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Number of lines that are requests, or rows to be dropped.
    pub(crate) good: usize,
    /// Number of lines that do not parse.
    pub(crate) bad: usize,
    /// Number of lines that show that they are of this layout, and of those that move data and do not show it.
    shown: usize,
    unsure: usize,
    /// Whether what should be a clock, or should not be one, says that they are not.
    clockless: bool,
}

impl Probe {
    /// Whether most lines parse; the reader reports each line that does not, with its place.
    pub(crate) fn fits(self) -> bool {
        self.good > self.bad
    }

    /// Whether the lines fit, and show that they are of this layout.
    pub(crate) fn is_sure(self) -> bool {
        self.fits() && self.shown > self.unsure && !self.clockless
    }
}

/// Steps from one line to the next, of stamps and of the names of volumes.
#[derive(Default)]
struct Steps {
    last: Option<(u64, Option<u64>)>,
    steps: usize,
    back: usize,
    rising: usize,
}

impl Steps {
    fn add(&mut self, time_ns: u64, volume: Option<u64>) {
        if let Some((before_ns, before)) = self.last.replace((time_ns, volume)) {
            self.steps += 1;
            self.back += usize::from(time_ns < before_ns);
            self.rising += usize::from(before.is_some() && volume > before);
        }
    }

    /// Whether the stamps go back too often to be times, or a volume rises with each line as only a time does.
    fn are_no_clock(&self) -> bool {
        const ENOUGH: usize = 6;
        self.steps >= ENOUGH && (self.back * 3 > self.steps || self.rising * 10 > self.steps * 9)
    }
}

const fn format<P: Parser + 'static>(name: &'static str) -> Format {
    Format {
        name,
        stamps: P::STAMPS,
        recognised: P::RECOGNISED,
        told_by: P::TOLD_BY,
        header: P::HEADER,
        sources: P::SOURCES,
        streams: P::STREAMS,
        completions: P::COMPLETIONS,
        sample: P::SAMPLE.as_bytes(),
        rows: rows::<P>,
        probe: probe::<P>,
    }
}

fn rows<P: Parser + 'static>(path: &str, lines: Lines, options: &Options) -> Box<dyn Rows> {
    paired(Box::new(TextRows::<P>::new(path, lines, options)), P::COMPLETIONS_APART, options)
}

fn probe<P: Parser>(lines: &[&[u8]], options: &Options) -> Probe {
    let (mut parser, mut devices) = (P::new(options), Devices::spaced(P::STRIDE));
    let (mut probe, mut steps) = (Probe::default(), Steps::default());
    let has_volumes = P::SOURCES.contains(&StreamsOf::Volume);
    for line in lines.iter().skip(usize::from(lines.first().is_some_and(|line| (P::HEADER)(line)))) {
        let (time_ns, size) = match parser.parse(line, &mut devices) {
            Ok(Row::Request { time_ns, size, .. }) => (time_ns, size),
            Ok(Row::Flagged(record)) => (record.time_ns, record.size),
            Ok(Row::Drop(reason)) => {
                probe.good += 1;
                probe.shown += usize::from(reason != "other_op");
                continue;
            }
            Ok(Row::Nothing) => continue,
            Ok(Row::End) => break,
            Err(Trouble::Line(_) | Trouble::Input(_)) => {
                probe.bad += 1;
                continue;
            }
        };
        probe.good += 1;
        let shows = parser.shows(line);
        probe.shown += usize::from(shows);
        probe.unsure += usize::from(!shows && size > 0);
        if has_volumes {
            let volume = P::source(line, StreamsOf::Volume).and_then(|name| number::uint(name).ok());
            steps.add(time_ns, volume);
        }
    }
    probe.clockless = steps.are_no_clock();
    probe
}

macro_rules! readers {
    ($($module:ident { $($type:ident = $name:literal, $doc:literal;)+ })*) => {
        $(mod $module;)*

        /// Every text layout.
        pub(crate) static FORMATS: &[Format] = &[$($(format::<$module::$type>($name)),+),*];
    };
}
ftlab_core::trace_formats!(readers);

macro_rules! binary_readers {
    ($($module:ident { $type:ident = $name:literal, $doc:literal; })*) => {
        $(mod $module;)*

        /// Every binary layout.
        pub(crate) static BINARIES: &[Binary] = &[$(crate::binary::format::<$module::$type>($name)),*];
    };
}
ftlab_core::binary_trace_formats!(binary_readers);

/// Returns the name and a sample of each layout: some lines of every text layout, and small files of the others.
pub fn samples() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let all = FORMATS.iter().chain(BINARIES.iter().map(|binary| &binary.format));
    all.map(|format| (format.name, format.sample))
        .chain(crate::parquet::SAMPLES.iter().map(|sample| ("parquet", *sample)))
}

/// Returns the layout of this name.
pub(crate) fn named(name: &str) -> Option<&'static Format> {
    let binaries = BINARIES.iter().map(|binary| &binary.format);
    FORMATS.iter().chain(binaries).find(|format| format.name == name)
}

/// Whether a line is a header that lists these names, in upper or lower case, ignoring surrounding blanks; anything
/// may follow the last name after a comma or a blank.
fn header_is(line: &[u8], names: &[&str]) -> bool {
    let mut fields = crate::fields::Commas::of(line);
    let (last, first) = names.split_last().expect("a header has names");
    first.iter().all(|name| fields.next().is_some_and(|field| field.eq_ignore_ascii_case(name.as_bytes())))
        && fields.next().is_some_and(|field| {
            let end = field.iter().position(|byte| *byte == b' ').unwrap_or(field.len());
            field[..end].eq_ignore_ascii_case(last.as_bytes())
        })
}

/// Whether a first line is a header that begins with one of these names.
///
/// A file in a layout without a header may have gained one when somebody loaded and saved it.
fn added_header(line: &[u8], first_names: &[&str]) -> bool {
    let field = crate::fields::Commas::of(line).next().unwrap_or_default();
    first_names.iter().any(|name| field.eq_ignore_ascii_case(name.as_bytes()))
}

/// Whether a number of this many per second is a time from the year 2000 to the year 2100, counted from 1970.
fn is_date(text: &[u8], per_second: u64) -> bool {
    let whole = text.split(|&byte| byte == b'.').next().unwrap_or_default();
    number::uint(whole).is_ok_and(|time| (946_684_800..4_102_444_800).contains(&(time / per_second)))
}

/// Parses a letter or word that stands for an operation: R, W, read or write, in any case.
#[inline]
fn read_or_write(text: &[u8], name: &'static str) -> Result<ftlab_core::workload::Op, Trouble> {
    use ftlab_core::workload::Op;
    match text {
        [b'R' | b'r'] => Ok(Op::Read),
        [b'W' | b'w'] => Ok(Op::Write),
        _ if text.eq_ignore_ascii_case(b"read") => Ok(Op::Read),
        _ if text.eq_ignore_ascii_case(b"write") => Ok(Op::Write),
        _ => Err(crate::fields::unexpected(name, text, "R or W")),
    }
}

/// Returns the operation of a SCSI command: the READ and WRITE commands of 6, 10, 12 and 16 bytes, and SYNCHRONIZE
/// CACHE; `None` for another command.
fn scsi(command: u8) -> Option<ftlab_core::workload::Op> {
    use ftlab_core::workload::Op;
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

/// Parses a digit that stands for an operation; `read` and `write` are the two digits allowed.
#[inline]
fn digit_op(
    text: &[u8],
    name: &'static str,
    [read, write]: [u8; 2],
) -> Result<ftlab_core::workload::Op, Trouble> {
    use ftlab_core::workload::Op;
    match text {
        [digit] if *digit == read => Ok(Op::Read),
        [digit] if *digit == write => Ok(Op::Write),
        _ => {
            let want = format!("{} (read) or {} (write)", char::from(read), char::from(write));
            Err(crate::fields::unexpected(name, text, &want))
        }
    }
}

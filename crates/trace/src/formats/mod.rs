//! The layouts, with a file for each. Their list, with their names, is [`ftlab_core::trace_formats`].

use crate::binary::Binary;
use crate::devices::Devices;
use crate::lines::Lines;
use crate::options::Options;
use crate::paired::paired;
use crate::text::{Parser, Row, Rows, TextRows, Trouble};
pub(crate) use crate::text::{Recognised, Stamps};
pub(crate) use csv::wrong_header as wrong_csv_header;
use ftlab_core::settings::StreamsOf;

/// A text layout.
pub(crate) struct Format {
    /// Name in `workload.format`.
    pub(crate) name: &'static str,
    pub(crate) stamps: Stamps,
    pub(crate) recognised: Recognised,
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
    /// Counts how many of these lines (none of them blank) parse, and how many do not.
    pub(crate) probe: fn(&[&[u8]], &Options) -> Probe,
}

/// How well a layout fits some lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Number of lines that are requests, or rows to be dropped.
    pub(crate) good: usize,
    /// Number of lines that do not parse.
    pub(crate) bad: usize,
}

const fn format<P: Parser + 'static>(name: &'static str) -> Format {
    Format {
        name,
        stamps: P::STAMPS,
        recognised: P::RECOGNISED,
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
    let mut probe = Probe::default();
    for line in lines.iter().skip(usize::from(lines.first().is_some_and(|line| (P::HEADER)(line)))) {
        match parser.parse(line, &mut devices) {
            Ok(Row::Request { .. } | Row::Flagged(_) | Row::Drop(_)) => probe.good += 1,
            Ok(Row::Nothing) => {}
            Ok(Row::End) => break,
            Err(Trouble::Line(_) | Trouble::Input(_)) => probe.bad += 1,
        }
    }
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

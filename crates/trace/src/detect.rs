//! Determines a file's layout: the named one, or one recognised from the file's beginning.

use crate::formats::{self, Format, Probe};
use crate::lines::{Lines, input_error};
use crate::options::Options;
use crate::text::{Recognised, is_blank};
use ftlab_core::workload::SourceError;

/// Number of lines that are examined.
const LINES: usize = 200;

/// Returns the layout of an opened file.
///
/// # Errors
/// If there is no layout of that name, or if no layout or several layouts fit.
pub(crate) fn format(path: &str, lines: &Lines, options: &Options) -> Result<&'static Format, SourceError> {
    let (head, is_all) = lines.head();
    let binary = formats::BINARIES.iter().find(|binary| match options.format.as_str() {
        "auto" => (binary.is_one)(path, head),
        name => name == binary.format.name,
    });
    if let Some(binary) = binary {
        return Ok(&binary.format);
    }
    refuse_binary(path, head)?;
    if options.format != "auto" {
        return formats::named(&options.format).ok_or_else(|| {
            input_error(
                path,
                &format!("no trace format is called \"{}\"; there are {}", options.format, names()),
            )
        });
    }
    let lines = first_lines(head, is_all);
    let Some(first) = lines.first() else {
        return Err(input_error(path, "the file holds only blank lines"));
    };
    for format in formats::FORMATS {
        match format.recognised {
            Recognised::Header(is_header) | Recognised::HeaderOrLines(is_header) if is_header(first) => {
                return Ok(format);
            }
            _ => {}
        }
    }
    by_lines(&lines, options).map_err(|message| {
        // The header of ftlab's own csv with a slip in it says more than a list of all layouts.
        let slip = formats::wrong_csv_header(first);
        input_error(path, &slip.unwrap_or(message))
    })
}

/// Whether most lines parse; the reader reports each line that does not, with its place.
fn fits(probe: Probe) -> bool {
    probe.good > probe.bad
}

/// Returns the layouts that the lines fit.
fn fitting(lines: &[&[u8]], options: &Options, kind: impl Fn(Recognised) -> bool) -> Vec<&'static Format> {
    formats::FORMATS
        .iter()
        .filter(|format| kind(format.recognised) && fits((format.probe)(lines, options)))
        .collect()
}

/// Removes the signs of numbers: a negative number should be reported with its line and not hide the layout.
fn unsigned(lines: &[&[u8]]) -> Vec<Vec<u8>> {
    let is_sign = |line: &[u8], at: usize| {
        line[at] == b'-'
            && (at == 0 || matches!(line[at - 1], b',' | b' ' | b'\t'))
            && line.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    let strip = |line: &&[u8]| (0..line.len()).filter(|&at| !is_sign(line, at)).map(|at| line[at]).collect();
    lines.iter().map(strip).collect()
}

fn by_lines(lines: &[&[u8]], options: &Options) -> Result<&'static Format, String> {
    let known = |kind| matches!(kind, Recognised::Lines | Recognised::HeaderOrLines(_));
    let mut candidates = fitting(lines, options, known);
    if candidates.is_empty() {
        let unsigned = unsigned(lines);
        let unsigned: Vec<&[u8]> = unsigned.iter().map(Vec::as_slice).collect();
        candidates = fitting(&unsigned, options, known);
    }
    match candidates[..] {
        [format] => return Ok(format),
        [] => {}
        _ => {
            let names: Vec<_> = candidates.iter().map(|format| format.name).collect();
            return Err(format!(
                "the layout could be any of {}\n  name it: --format {}",
                names.join(", "),
                names[0]
            ));
        }
    }
    // Only those of the similar layouts that the lines fit are offered.
    let alike = fitting(lines, options, |kind| matches!(kind, Recognised::Never));
    let alike: Vec<_> = alike.iter().map(|format| format.name).collect();
    if !alike.is_empty() {
        return Err(format!(
            "five numbers a line can be {}: they differ in units alone, so ftlab does not guess\n  \
             name the layout, e.g. --format {}",
            alike.join(" or "),
            alike[0]
        ));
    }
    Err(format!(
        "the layout is none that ftlab recognises\n  name it with --format NAME if it is one of \
         {}\n  ftlab's own csv begins with a header: time_ns,op,offset,size",
        names()
    ))
}

fn names() -> String {
    let names: Vec<_> = ftlab_core::workload::formats().iter().map(|choice| choice.name).collect();
    names.join(", ")
}

/// Returns the first lines that are not blank and are complete.
fn first_lines(head: &[u8], is_all: bool) -> Vec<&[u8]> {
    let whole = if is_all { head.len() } else { memchr::memrchr(b'\n', head).unwrap_or(0) };
    head[..whole]
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !is_blank(line))
        .take(LINES)
        .collect()
}

fn refuse_binary(path: &str, head: &[u8]) -> Result<(), SourceError> {
    /// Number of bytes searched for bytes that never occur in text.
    const SAMPLE: usize = 4096;
    let known = match head {
        [b'P', b'A', b'R', b'1', ..] => {
            Some("a Parquet file, which is read as format parquet and from a regular file that is not packed")
        }
        _ if head.get(257..262) == Some(b"ustar") => {
            Some("a tar (or pax) archive: unpack it with tar -xf, and name a file of it")
        }
        _ => None,
    };
    if let Some(known) = known {
        return Err(input_error(path, &format!("is {known}")));
    }
    let odd = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    match head.iter().take(SAMPLE).position(odd) {
        Some(at) => Err(input_error(
            path,
            &format!("is not a text trace: byte {at} is 0x{:02x}, which no text has", head[at]),
        )),
        None => Ok(()),
    }
}

//! Determines a file's layout: the named one, or one recognised from the file's beginning.

use crate::binary::Binary;
use crate::formats::{self, Format};
use crate::lines::{Lines, input_error, lines_of};
use crate::options::Options;
use crate::text::{Recognised, is_blank};
use ftlab_core::workload::SourceError;

/// Number of lines that are examined.
const LINES: usize = 200;

/// Returns the layout of an opened file, and what it was recognised by; `None`: it was named.
///
/// # Errors
/// If there is no layout of that name, or if no layout or several layouts fit.
pub(crate) fn format(
    path: &str,
    lines: &Lines,
    options: &Options,
) -> Result<(&'static Format, Option<String>), SourceError> {
    let (head, is_all) = lines.head();
    let named = (options.format != "auto").then_some(options.format.as_str());
    let binary = formats::BINARIES.iter().find(|binary| match named {
        None => (binary.is_one)(path, head),
        Some(name) => name == binary.format.name,
    });
    if let Some(Binary { format, .. }) = binary {
        return Ok((format, named.is_none().then(|| format.told_by.to_owned())));
    }
    refuse_binary(path, head)?;
    if let Some(name) = named {
        let unknown = || format!("no trace format is called \"{name}\"; there are {}", names());
        return match formats::named(name) {
            Some(format) => Ok((format, None)),
            None => Err(input_error(path, &unknown())),
        };
    }
    let (format, told_by) =
        recognised(&first_lines(head, is_all), options).map_err(|message| input_error(path, &message))?;
    Ok((format, Some(told_by)))
}

/// Returns the layout of these first lines, and what shows it.
fn recognised(lines: &[&[u8]], options: &Options) -> Result<(&'static Format, String), String> {
    let Some(first) = lines.first() else { return Err("the file holds only blank lines".into()) };
    if lines.iter().take(2).any(|line| line.starts_with(b"TIME(ms) ")) {
        return Err("is what biosnoop.bt of bpftrace prints, which has neither addresses nor sizes\n  \
                    print them of tracepoint:block:block_rq_issue (layout bpftrace)"
            .into());
    }
    let by_header = formats::FORMATS.iter().find(|format| match format.recognised {
        Recognised::Header(is_header) | Recognised::HeaderOrLines(is_header) => is_header(first),
        Recognised::Lines | Recognised::Never => false,
    });
    if let Some(format) = by_header {
        return Ok((format, "its header".into()));
    }
    // A header that no layout has says more than a list of all layouts, or than what its lines resemble.
    let slip = formats::wrong_csv_header(first);
    if slip.is_none() || formats::FORMATS.iter().any(|format| (format.header)(first)) {
        match by_lines(lines, options) {
            Ok(format) => return Ok((format, format!("its lines: {}", format.told_by))),
            Err(message) if slip.is_none() => return Err(message),
            Err(_) => {}
        }
    }
    Err(slip.unwrap_or_default())
}

/// Returns the layouts that the lines fit, and whether they show it.
fn fitting(
    lines: &[&[u8]],
    options: &Options,
    kind: impl Fn(Recognised) -> bool,
) -> Vec<(&'static Format, bool)> {
    let probed = formats::FORMATS.iter().filter(|format| kind(format.recognised));
    let probed = probed.map(|format| (format, (format.probe)(lines, options)));
    probed.filter(|(_, probe)| probe.fits()).map(|(format, probe)| (format, probe.is_sure())).collect()
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

/// Returns the one layout that the lines show they are of.
fn by_lines(lines: &[&[u8]], options: &Options) -> Result<&'static Format, String> {
    let known = |kind| matches!(kind, Recognised::Lines | Recognised::HeaderOrLines(_));
    let mut fits = fitting(lines, options, known);
    if fits.is_empty() {
        let unsigned = unsigned(lines);
        let unsigned: Vec<&[u8]> = unsigned.iter().map(Vec::as_slice).collect();
        fits = fitting(&unsigned, options, known);
    }
    let sure: Vec<_> = fits.iter().filter(|(_, sure)| *sure).map(|(format, _)| *format).collect();
    match sure[..] {
        [format] => return Ok(format),
        [] => {}
        [first, ..] => {
            let names: Vec<_> = sure.iter().map(|format| format.name).collect();
            return Err(format!(
                "the layout could be any of {}\n  name it: --format {}",
                names.join(", "),
                first.name
            ));
        }
    }
    let headless = formats::is_csv_without_header(lines);
    let mut candidates: Vec<_> =
        fits.iter().map(|(format, _)| format!("{} if it has {}", format.name, format.told_by)).collect();
    if headless {
        candidates.push("ftlab's own csv without its header".into());
    }
    if !candidates.is_empty() {
        let name = fits.first().map(|(format, _)| format!("name it, e.g. --format {}", format.name));
        let header = headless.then(|| "put this in the first line: time_ns,op,offset,size".to_owned());
        let remedy: Vec<_> = [name, header].into_iter().flatten().collect();
        return Err(format!(
            "nothing in the lines shows their layout; it could be {}\n  {}",
            candidates.join(", or "),
            remedy.join("; or ")
        ));
    }
    // Only those of the similar layouts that the lines fit are offered.
    let alike = fitting(lines, options, |kind| matches!(kind, Recognised::Never));
    let alike: Vec<_> = alike.iter().map(|(format, _)| format.name).collect();
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
    lines_of(&head[..whole]).filter(|line| !is_blank(line)).take(LINES).collect()
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

//! The layouts: one file each, and the table that names them.

mod alicloud;
mod biotracer;
mod blkparse;
mod cloudphysics;
mod columns;
mod csv;
mod fio;
mod mobile_ebpf;
mod msr;
mod notimes;
mod spc;
mod sqlitewal;
mod systor17;
mod tencent;

use crate::lines::Lines;
use crate::options::Options;
use crate::text::{Parser, Row, Rows, TextRows, Trouble};

/// What the stamps of a layout are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// Simulation time already: kept as they are.
    Own,
    /// A clock of the trace's own: the first kept arrival becomes 0.
    Clock,
    /// The same in whole seconds: the requests of a second are spread over it.
    Seconds,
    /// None.
    Absent,
}

/// How a layout is recognised.
#[derive(Clone, Copy)]
pub(crate) enum Recognised {
    /// By its first line alone.
    Header(fn(&[u8]) -> bool),
    /// By its first line, or by its lines where that was cut off.
    HeaderOrLines(fn(&[u8]) -> bool),
    /// By its lines.
    Lines,
    /// By neither: it looks like others, and has to be named.
    Never,
}

/// A text layout.
pub(crate) struct Format {
    /// Name in `workload.format`.
    pub(crate) name: &'static str,
    pub(crate) stamps: Stamps,
    pub(crate) recognised: Recognised,
    /// Rows of an opened file.
    pub(crate) rows: fn(&str, Lines, &Options) -> Box<dyn Rows>,
    /// How many of these lines (none of them blank) parse, and how many do not.
    pub(crate) probe: fn(&[&[u8]], &Options) -> Probe,
}

/// How a layout fits some lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Lines that are requests, or rows to drop.
    pub(crate) good: usize,
    /// Lines that do not parse.
    pub(crate) bad: usize,
}

const fn format<P: Parser + 'static>(name: &'static str, stamps: Stamps, recognised: Recognised) -> Format {
    Format { name, stamps, recognised, rows: rows::<P>, probe: probe::<P> }
}

fn rows<P: Parser + 'static>(path: &str, lines: Lines, options: &Options) -> Box<dyn Rows> {
    Box::new(TextRows::<P>::new(path, lines, options))
}

fn probe<P: Parser>(lines: &[&[u8]], options: &Options) -> Probe {
    let mut parser = P::new(options);
    let mut probe = Probe::default();
    for (index, line) in lines.iter().enumerate() {
        match parser.parse(line, index == 0) {
            Ok(Row::Request { .. } | Row::Flagged(_) | Row::Drop(_)) => probe.good += 1,
            Ok(Row::Nothing) => {}
            Ok(Row::End) => break,
            Err(Trouble::Line(_) | Trouble::Input(_)) => probe.bad += 1,
        }
    }
    probe
}

/// Every text layout, as in [`ftlab_core::workload::formats`].
pub(crate) static FORMATS: &[Format] = &[
    format::<csv::Csv>("csv", Stamps::Own, Recognised::Header(csv::is_header)),
    format::<msr::Msr>("msr", Stamps::Clock, Recognised::Lines),
    format::<spc::Spc>("spc", Stamps::Clock, Recognised::Lines),
    format::<blkparse::Blkparse>("blkparse", Stamps::Clock, Recognised::Lines),
    format::<fio::Fio>("fio-iolog", Stamps::Clock, Recognised::Header(fio::is_header)),
    format::<columns::Columns<columns::Mqsim>>("mqsim", Stamps::Clock, Recognised::Never),
    format::<columns::Columns<columns::Ssdsim>>("ssdsim", Stamps::Clock, Recognised::Never),
    format::<columns::Columns<columns::Disksim>>("disksim", Stamps::Clock, Recognised::Never),
    format::<columns::Columns<columns::Replayer>>("replayer", Stamps::Clock, Recognised::Never),
    format::<biotracer::Biotracer>("biotracer", Stamps::Clock, Recognised::Lines),
    format::<mobile_ebpf::MobileEbpf>(
        "mobile-ebpf",
        Stamps::Clock,
        Recognised::HeaderOrLines(mobile_ebpf::is_header),
    ),
    format::<systor17::Systor17>("systor17", Stamps::Clock, Recognised::HeaderOrLines(systor17::is_header)),
    format::<alicloud::Alicloud>("alicloud", Stamps::Clock, Recognised::Lines),
    format::<tencent::Tencent>("tencent", Stamps::Seconds, Recognised::Lines),
    format::<notimes::Notimes>("notimes", Stamps::Absent, Recognised::Header(notimes::is_header)),
    format::<sqlitewal::Sqlitewal>("sqlitewal", Stamps::Clock, Recognised::Lines),
    format::<cloudphysics::Cloudphysics>(
        "cloudphysics-csv",
        Stamps::Seconds,
        Recognised::HeaderOrLines(cloudphysics::is_header),
    ),
];

/// The layout of this name.
pub(crate) fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Whether a line is a header: these names, in any case, blanks around them aside; what follows
/// the last name (after a comma or a blank) is free.
fn header_is(line: &[u8], names: &[&str]) -> bool {
    let mut fields = crate::fields::Commas::of(line);
    let (last, first) = names.split_last().expect("a header has names");
    first.iter().all(|name| fields.next().is_some_and(|field| field.eq_ignore_ascii_case(name.as_bytes())))
        && fields.next().is_some_and(|field| {
            let end = field.iter().position(|byte| *byte == b' ').unwrap_or(field.len());
            field[..end].eq_ignore_ascii_case(last.as_bytes())
        })
}

/// Whether a first line is a header beginning with one of these names.
///
/// Layouts without a header are found with one added where somebody loaded and saved them.
fn added_header(line: &[u8], first_names: &[&str]) -> bool {
    let field = crate::fields::Commas::of(line).next().unwrap_or_default();
    first_names.iter().any(|name| field.eq_ignore_ascii_case(name.as_bytes()))
}

/// A letter or word for an operation: R, W (any case), read, write.
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

/// A digit for an operation; the two digits are given.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configured_name_has_a_reader() {
        for choice in ftlab_core::workload::formats() {
            let elsewhere = ["auto", "parquet"].contains(&choice.name);
            assert!(elsewhere || named(choice.name).is_some(), "{}", choice.name);
        }
        assert_eq!(FORMATS.len(), ftlab_core::workload::formats().len() - 2);
    }
}

//! cacheMon's io-tracer (github.com/cacheMon/io-tracer, -win, -mac, -android; docs/TRACE_FORMAT.md): its files
//! `ds_*.csv` of block requests.
//!
//! From schema 3 on, the header is `timestamp,operation,pid,tid,command,sector,size,latency_ms,device,flags,...`; files
//! before it have no header and begin with `timestamp,pid,command,sector,operation,size,latency_ms,tid`. The stamp is
//! that of the completion, as a local date and time, and the latency is that from issue to completion: the request
//! arrives where it was issued. The operation is a word, followed or accompanied (`flags`) by those of the kernel's
//! rwbs letters, separated by `|`. A process (pid) is a stream.

use super::Recognised;
use crate::devices::Devices;
use crate::fields::{Commas, sectors, time, unexpected, whole};
use crate::header::Header;
use crate::number::unit;
use crate::options::Options;
use crate::rwbs::{Flagged, Rwbs};
use crate::streams::Streams;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::workload::{Op, Record};

const NAMES: [&str; 9] =
    ["timestamp", "operation", "sector", "size", "latency_ms", "pid", "command", "device", "flags"];
/// Columns of files without a header; the two layouts that there were differ from the ninth column on.
const BEFORE: &[u8] = b"timestamp,pid,command,sector,operation,size,latency_ms,tid,,,device";
const NEEDED: usize = 5;

fn header(line: &[u8]) -> Option<Header<9>> {
    Header::of(Commas::of(line), &NAMES, NEEDED)
}

/// The parser of this layout.
pub(crate) struct IoTracer {
    columns: Header<9>,
    named: bool,
    /// Whether completions are wanted.
    completions: bool,
    flagged: Flagged,
    streams: Streams,
}

impl Default for IoTracer {
    fn default() -> IoTracer {
        let columns = header(BEFORE).expect("the columns have these names");
        IoTracer {
            columns,
            named: false,
            completions: false,
            flagged: Flagged::default(),
            streams: Streams::default(),
        }
    }
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar, from 1970 on.
fn days([year, month, day]: [u64; 3]) -> u64 {
    // A year that begins in March has its leap day at its end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    days - 719_468
}

/// Returns the number of days of a month.
fn days_of(year: u64, month: u64) -> u64 {
    let next = if month == 12 { [year + 1, 1, 1] } else { [year, month + 1, 1] };
    days(next) - days([year, month, 1])
}

/// Parses `YYYY-MM-DD HH:MM:SS.ffffff`; returns ns since 1970.
fn date(text: &[u8]) -> Result<u64, Trouble> {
    let wrong = || unexpected("timestamp", text, "a date and time such as 2024-01-15 10:30:45.123456");
    let part = |from: usize, to: usize| {
        let digits = text.get(from..to).filter(|part| part.iter().all(u8::is_ascii_digit))?;
        whole(digits, "timestamp").ok()
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':')];
    if !marks.iter().all(|&(at, mark)| text.get(at) == Some(&mark)) {
        return Err(wrong());
    }
    let date = [part(0, 4), part(5, 7), part(8, 10)];
    let [Some(year @ 1970..), Some(month @ 1..=12), Some(day @ 1..)] = date else { return Err(wrong()) };
    if day > days_of(year, month) {
        return Err(wrong());
    }
    let (Some(hour @ 0..24), Some(minute @ 0..60), Some(..60)) = (part(11, 13), part(14, 16), part(17, 19))
    else {
        return Err(wrong());
    };
    let second_ns = time(&text[17..], "timestamp", unit::S)?;
    let minutes = (days([year, month, day]) * 24 + hour) * 60 + minute;
    let ns = minutes.checked_mul(60_000_000_000).and_then(|ns| ns.checked_add(second_ns));
    ns.ok_or_else(wrong)
}

/// Returns what the words of an operation mean, in the order of the rwbs letters that they stand for.
fn rwbs_of(words: [&[u8]; 2], size: u64) -> Option<Rwbs> {
    let mut rwbs = Rwbs { op: None, preflush: false, fua: false };
    let mut first = true;
    for word in words.into_iter().flat_map(|words| words.split(|&byte| byte == b'|')) {
        match word.to_ascii_lowercase().as_slice() {
            b"" if !first => {}
            b"read" => rwbs.op = Some(Op::Read),
            b"write" => rwbs.op = Some(Op::Write),
            b"discard" | b"secure_erase" => rwbs.op = Some(Op::Trim),
            // Before the operation it is a flush first, behind it FUA, as in the rwbs letters.
            b"flush" if rwbs.op.is_none() => rwbs.preflush = true,
            b"flush" | b"fua" | b"req_fua" => rwbs.fua = true,
            word if first && !word.iter().all(|&byte| byte.is_ascii_lowercase() || byte == b'_') => {
                return None;
            }
            _ => {}
        }
        first = false;
    }
    // A flush with data can only be a write.
    if rwbs.op.is_none() && rwbs.preflush {
        rwbs.op = Some(if size > 0 { Op::Write } else { Op::Flush });
    }
    Some(rwbs)
}

impl Parser for IoTracer {
    const TOLD_BY: &'static str = "a date, and an operation in words";
    const STREAMS: Option<&'static str> = Some("processes (pid)");
    const COMPLETIONS: bool = true;
    const RECOGNISED: Recognised = Recognised::HeaderOrLines(|line| header(line).is_some());
    const SAMPLE: &'static str = "timestamp,operation,pid,tid,command,sector,size,latency_ms,device,flags,cpu_id\n\
        2024-01-15 10:30:45.123456,write,1234,1235,python3,2048000,8192,1.234,259:0,sync,0\n\
        2024-01-15 10:30:45.234567,read,77,77,\"a, b\",2048016,4096,0.567,259:0,,1\n\
        2024-01-15 10:30:45.345678,flush,1234,1235,python3,0,0,2.345,259:0,,2\n";

    fn new(options: &Options) -> IoTracer {
        IoTracer { completions: options.wants_completions(), ..IoTracer::default() }
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        // Files that were put together have a header each.
        if line.starts_with(b"timestamp,") {
            self.columns = header(line).ok_or_else(|| {
                let names = NAMES[..NEEDED].join(", ");
                Trouble::Input(format!("the header does not name {names}: no trace of block requests"))
            })?;
            self.named = true;
            return Ok(Row::Nothing);
        }
        let fields = self.columns.pick(Commas::of(line));
        let need = |field: usize| {
            fields[field].ok_or_else(|| Trouble::Line(format!("{} is missing: too few fields", NAMES[field])))
        };
        let (stamp, words, size) = (date(need(0)?)?, need(1)?, whole(need(3)?, NAMES[3])?);
        let latency = need(4)?;
        let latency_ns = if latency.is_empty() { 0 } else { time(latency, NAMES[4], unit::MS)? };
        let time_ns = stamp.saturating_sub(latency_ns);
        let known = self.completions && !latency.is_empty();
        let latency_ns = if known { latency_ns } else { Record::UNKNOWN };
        let [pid, command, device, flags] = [5, 6, 7, 8].map(|field| fields[field].unwrap_or_default());
        let rwbs = rwbs_of([words, flags], size)
            .ok_or_else(|| unexpected(NAMES[1], words, "a word such as read or write"))?;
        let stream = self.streams.labelled(pid, command)?;
        let Some(op) = rwbs.op else { return Ok(Row::Drop("other_op")) };
        if op == Op::Flush || size == 0 && (rwbs.preflush || rwbs.fua) {
            let (offset, size, line, flags) = (0, 0, 0, 0);
            let op = Op::Flush;
            return Ok(Row::of(Record { time_ns, op, offset, size, line, flags, stream, latency_ns }));
        }
        // In the older of the two layouts without a header, this column has the parent process.
        let device = if self.named || device.contains(&b':') { device } else { b"" };
        let offset = devices.place(device, sectors(need(2)?, NAMES[2])?, size)?;
        let flags = self.flagged.count(rwbs);
        Ok(Row::of(Record { time_ns, op, offset, size, line: 0, flags, stream, latency_ns }))
    }

    fn notes(&self) -> Vec<String> {
        self.flagged.notes()
    }

    fn streams(&self) -> Option<&Streams> {
        Some(&self.streams)
    }
}

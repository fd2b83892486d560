//! ftlab's own csv: a header that names `time_ns`, `time_us` or `time_s`, `op`, `offset` and `size`, in any
//! order, and may name `flags`, `stream`, `outstanding` and `latency_ns` (or `latency_us`, `latency_s`: the time from
//! arrival to completion); other columns are ignored. Offsets and sizes are in bytes.
//! Flags are the bits of [`Record::flags`]; op WF is a write with FUA, too. An empty flag or stream counts as 0.

use super::{Recognised, Stamps};
use crate::depth::{self, Depth};
use crate::devices::Devices;
use crate::fields::{Commas, shown, time, unexpected, whole};
use crate::lines::lines_of;
use crate::number::unit;
use crate::options::Options;
use crate::text::{Parser, Row, Trouble, is_blank};
use ftlab_core::workload::{Op, Record};

/// The number of columns examined; further columns are ignored.
const COLUMNS: usize = 32;
/// The required columns, what each may be called here, and parts of the names that others give them.
const NEEDED: [(&str, &str, &[&str]); 4] = [
    ("time_ns", "time_ns, time_us or time_s", &["time", "ts", "ts_", "arrival", "nsecs", "clock"]),
    ("op", "op", &["op", "oper", "opcode", "type", "rw", "rwbs", "rw_", "cmd", "action", "direction"]),
    ("offset", "offset (bytes)", &["offset", "lba", "lbn", "addr", "sector", "block", "pos"]),
    ("size", "size (bytes)", &["size", "len", "bytes", "sectors", "blocks"]),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Other,
    Time,
    Op,
    Offset,
    Size,
    Outstanding,
    Flags,
    Stream,
    Latency,
}

/// The parser; its columns are known from the first line on.
pub(crate) struct Csv {
    columns: [Column; COLUMNS],
    /// Number of columns up to the last one used.
    used: usize,
    time_unit: u32,
    depth: Depth,
    /// Whether there is a column for streams.
    streams: bool,
    /// The unit of the column for latencies, if there is one; whether it is read.
    latency_unit: Option<u32>,
    /// Whether there is a column for outstanding requests.
    outstanding: bool,
    completions: bool,
}

/// Whether a line names the required columns.
fn is_header(line: &[u8]) -> bool {
    Csv::default().read_header(line).is_ok()
}

/// Returns what keeps a first line from being the header: it names two of the required columns or more, or it is the
/// header of a table with other names. `None`: it is not a header.
pub(crate) fn wrong_header(line: &[u8]) -> Option<String> {
    let separators = [(b',', ""), (b';', "semicolons"), (b'\t', "tabs"), (b'|', "bars")];
    separators.into_iter().find_map(|(separator, word)| {
        let line: Vec<u8> = line.iter().map(|&byte| if byte == separator { b',' } else { byte }).collect();
        let is_own = |name: &[u8]| name.starts_with(b"time_") || matches!(name, b"op" | b"offset" | b"size");
        let is_word =
            |name: &[u8]| name.first().is_none_or(|&byte| byte.is_ascii_alphabetic() || byte == b'_');
        let names: Vec<_> = Commas::of(&line).take(COLUMNS).map(<[u8]>::to_ascii_lowercase).collect();
        let own = names.iter().filter(|name| is_own(name)).count();
        if own < 2 && (names.len() < 3 || !names.iter().all(|name| is_word(name))) {
            return None;
        }
        let lacks = match Csv::default().read_header(&line) {
            Err(Trouble::Line(what) | Trouble::Input(what)) => Some(what),
            Ok(()) => None,
        };
        let separated =
            (!word.is_empty()).then(|| format!("{word} between the fields, where ftlab's csv has commas"));
        let wrong: Vec<String> = [separated, lacks].into_iter().flatten().collect();
        (!wrong.is_empty()).then(|| wrong.join("; "))
    })
}

/// Whether most lines are those of `time_ns,op,offset,size`, perhaps with more columns.
pub(crate) fn is_headless(lines: &[&[u8]]) -> bool {
    let mut csv = Csv::default();
    csv.read_header(b"time_ns,op,offset,size").expect("these are the required columns");
    let fits = lines.iter().filter(|line| csv.parse(line, &mut Devices::default()).is_ok()).count();
    fits * 2 > lines.len()
}

/// Returns what a header has instead of the required columns that it lacks, as a line of its own.
fn nearest(line: &[u8], lacking: &[&(&str, &str, &[&str])]) -> String {
    const SHOWN: usize = 12;
    let names: Vec<String> = Commas::of(line).take(SHOWN).map(shown).collect();
    let near = lacking.iter().filter_map(|(_, called, others)| {
        let is_near = |name: &&String| {
            let name = name.to_ascii_lowercase();
            let own = NEEDED.iter().any(|(own, ..)| name == *own);
            !own && others.iter().any(|part| name == **part || part.len() > 2 && name.contains(part))
        };
        names.iter().find(is_near).map(|name| format!("{name} for {called}"))
    });
    let near: Vec<String> = near.collect();
    let nearest = if near.is_empty() { String::new() } else { format!("; nearest: {}", near.join(", ")) };
    format!("\n  it has {}{nearest}", names.join(","))
}

impl Default for Csv {
    fn default() -> Csv {
        Csv {
            columns: [Column::Other; COLUMNS],
            used: 0,
            time_unit: unit::NS,
            depth: Depth::default(),
            streams: false,
            latency_unit: None,
            outstanding: false,
            completions: false,
        }
    }
}

impl Csv {
    /// Returns the latency in this text, ns; an empty one is not known.
    #[inline]
    fn latency_of(&self, text: &[u8]) -> Result<u64, Trouble> {
        match self.latency_unit {
            Some(unit) if self.completions && !text.is_empty() => time(text, "latency", unit),
            _ => Ok(Record::UNKNOWN),
        }
    }

    fn read_header(&mut self, line: &[u8]) -> Result<(), Trouble> {
        let wrong = |what: String, more: &str| {
            Trouble::Input(format!(
                "{what}; the header must name time_ns (or time_us, time_s), op, offset and size{more}"
            ))
        };
        let mut found = [false; 8];
        for (index, name) in Commas::of(line).take(COLUMNS).enumerate() {
            let column = match name.to_ascii_lowercase().as_slice() {
                b"time_ns" => (Column::Time, unit::NS),
                b"time_us" => (Column::Time, unit::US),
                b"time_s" => (Column::Time, unit::S),
                b"op" => (Column::Op, 0),
                b"offset" => (Column::Offset, 0),
                b"size" => (Column::Size, 0),
                b"flags" => (Column::Flags, 0),
                b"stream" => (Column::Stream, 0),
                b"latency_ns" => (Column::Latency, unit::NS),
                b"latency_us" => (Column::Latency, unit::US),
                b"latency_s" => (Column::Latency, unit::S),
                name if name == depth::NAME.as_bytes() => (Column::Outstanding, 0),
                _ => continue,
            };
            let seen = &mut found[column.0 as usize - 1];
            if std::mem::replace(seen, true) {
                return Err(wrong(format!("column \"{}\" appears twice", shown(name)), ""));
            }
            match column.0 {
                Column::Time => self.time_unit = column.1,
                Column::Latency => self.latency_unit = Some(column.1),
                Column::Outstanding => self.outstanding = true,
                _ => {}
            }
            self.columns[index] = column.0;
            self.used = index + 1;
        }
        let lacking: Vec<_> =
            NEEDED.iter().zip(found).filter(|(_, seen)| !seen).map(|(need, _)| need).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = lacking.iter().map(|(name, ..)| *name).collect();
        Err(wrong(format!("no column {} in the header", names.join(", ")), &nearest(line, &lacking)))
    }
}

/// Returns the flags in this text, as far as an operation can have them.
fn flags_of(text: &[u8], op: Op) -> Result<u8, Trouble> {
    let known = if op == Op::Write { Record::FUA | Record::PREFLUSH } else { Record::PREFLUSH };
    let flags = if text.is_empty() { 0 } else { whole(text, "flags")? };
    Ok(flags as u8 & known)
}

fn stream_of(text: &[u8]) -> Result<u16, Trouble> {
    let stream = if text.is_empty() { 0 } else { whole(text, "stream")? };
    u16::try_from(stream).map_err(|_| unexpected("stream", text, "a number up to 65535"))
}

fn op_of(text: &[u8]) -> Result<Op, Trouble> {
    const WORDS: [(&str, Op); 5] = [
        ("read", Op::Read),
        ("write", Op::Write),
        ("trim", Op::Trim),
        ("discard", Op::Trim),
        ("flush", Op::Flush),
    ];
    match text {
        [b'R' | b'r'] => Ok(Op::Read),
        [b'W' | b'w'] => Ok(Op::Write),
        [b'T' | b't'] => Ok(Op::Trim),
        [b'F' | b'f'] => Ok(Op::Flush),
        _ => WORDS
            .iter()
            .find(|(word, _)| text.eq_ignore_ascii_case(word.as_bytes()))
            .map(|&(_, op)| op)
            .ok_or_else(|| unexpected("op", text, "R, W, WF (write with FUA), T (trim) or F (flush)")),
    }
}

impl Parser for Csv {
    const STAMPS: Stamps = Stamps::Own;
    const STREAMS: Option<&'static str> = Some("those of its column stream");
    const COMPLETIONS: bool = true;
    const RECOGNISED: Recognised = Recognised::Header(is_header);
    const SAMPLE: &'static str =
        "time_ns,op,offset,size\n100,R,4096,512\n200,w,0,1\n250,T,8192,4096\n300,F,,\n";

    fn new(options: &Options) -> Csv {
        Csv { completions: options.wants_completions(), ..Csv::default() }
    }

    fn parse(&mut self, line: &[u8], _: &mut Devices) -> Result<Row, Trouble> {
        if self.used == 0 {
            self.read_header(line)?;
            return Ok(Row::Nothing);
        }
        if line.first() == Some(&b'#') && self.depth.notes(line) {
            return Ok(Row::Nothing);
        }
        let mut fields = Commas::of(line);
        let (mut time_text, mut op_text, mut offset_text, mut size_text) =
            (&b""[..], &b""[..], &b""[..], &b""[..]);
        let (mut flags_text, mut stream_text) = (&b""[..], &b""[..]);
        let mut latency_text = &b""[..];
        for &column in &self.columns[..self.used] {
            match column {
                Column::Time => time_text = fields.need("time")?,
                Column::Op => op_text = fields.need("op")?,
                Column::Offset => offset_text = fields.need("offset")?,
                Column::Size => size_text = fields.need("size")?,
                Column::Outstanding => self.depth.add(whole(fields.need(depth::NAME)?, depth::NAME)?),
                Column::Flags => flags_text = fields.need("flags")?,
                Column::Stream => stream_text = fields.need("stream")?,
                Column::Latency => latency_text = fields.need("latency")?,
                Column::Other => _ = fields.need("a column before the last one used")?,
            }
        }
        let time_ns = time(time_text, "time", self.time_unit)?;
        let fua = op_text.eq_ignore_ascii_case(b"WF");
        let op = if fua { Op::Write } else { op_of(op_text)? };
        let stream = stream_of(stream_text)?;
        let latency_ns = self.latency_of(latency_text)?;
        if op == Op::Flush {
            return Ok(Row::of(Record {
                time_ns,
                op,
                offset: 0,
                size: 0,
                line: 0,
                flags: 0,
                stream,
                latency_ns,
            }));
        }
        let (offset, size) = (whole(offset_text, "offset")?, whole(size_text, "size")?);
        let flags = (u8::from(fua) * Record::FUA) | flags_of(flags_text, op)?;
        Ok(Row::of(Record { time_ns, op, offset, size, line: 0, flags, stream, latency_ns }))
    }

    fn prepare(&mut self, head: &[u8]) {
        let mut named = Csv::default();
        if lines_of(head).find(|line| !is_blank(line)).is_some_and(|line| named.read_header(line).is_ok()) {
            self.streams = named.columns.contains(&Column::Stream);
            (self.latency_unit, self.outstanding) = (named.latency_unit, named.outstanding);
        }
    }

    fn is_recording(&self) -> bool {
        self.outstanding && self.latency_unit.is_some()
    }

    fn has_completions(&self) -> bool {
        self.latency_unit.is_some()
    }

    fn has_streams(&self) -> bool {
        self.streams
    }

    /// Those of a live device's recording; other files may lack the last line feed.
    fn has_whole_lines(&self) -> bool {
        self.columns.contains(&Column::Outstanding)
    }

    fn depth(&self) -> Option<&Depth> {
        Some(&self.depth)
    }
}

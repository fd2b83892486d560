//! Thesios (Phothilimthana et al., ASPLOS 2024; github.com/google-research-datasets/thesios): requests to a storage
//! server of Google with one disk. A header names the columns, among them `filename`, `file_offset`, `application`,
//! `op_type`, `cache_hit`, `request_io_size_bytes` and `start_time`.
//!
//! A request arrives at `start_time`, in seconds, with the size that was requested. A read that the server's buffer
//! cache answers (`cache_hit` 1) never comes to the disk and is dropped as `cache_hit`. A request has completed
//! `simulated_latency` later: a write as it was measured, a read as the authors' simulator has it. Each file has an
//! address range of its own, since the traces do not say where on the disk it is. An application is a stream. A day's
//! shards that are put together have a header each.

use super::{Recognised, read_or_write};
use crate::devices::Devices;
use crate::fields::{Commas, time, whole};
use crate::header::Header;
use crate::lines::lines_of;
use crate::number::unit;
use crate::options::Options;
use crate::streams::Streams;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::workload::{Op, Record};

const NAMES: [&str; 8] = [
    "filename",
    "file_offset",
    "op_type",
    "request_io_size_bytes",
    "start_time",
    "cache_hit",
    "application",
    "simulated_latency",
];
const NEEDED: usize = 5;
const LATENCY: usize = 7;

fn header(line: &[u8]) -> Option<Header<8>> {
    Header::of(Commas::of(line), &NAMES, NEEDED)
}

/// The parser of this layout; its columns are known from the first line on.
#[derive(Default)]
pub(crate) struct Thesios {
    columns: Option<Header<8>>,
    streams: Streams,
    /// Whether completions are wanted, and the first line names their column.
    completions: bool,
}

impl Parser for Thesios {
    const COMPLETIONS: bool = true;
    const STREAMS: Option<&'static str> = Some("applications");
    const RECOGNISED: Recognised = Recognised::Header(|line| header(line).is_some());
    const SAMPLE: &'static str = "filename,file_offset,application,op_type,cache_hit,request_io_size_bytes,start_time,\
        simulated_latency\n3f9a,1050624,spanner,READ,0,4096,1705305600.25,0.03\n\
        77c0,0,bigtable,WRITE,-1,8192,1705305600.5,\n3f9a,0,spanner,READ,1,4096,1705305600.75,0\n";
    /// The files are of up to some GB, and there are a great many.
    const STRIDE: u64 = 1 << 40;

    fn new(options: &Options) -> Thesios {
        Thesios { completions: options.wants_completions(), ..Thesios::default() }
    }

    fn prepare(&mut self, head: &[u8]) {
        self.completions &= lines_of(head).find_map(header).is_some_and(|header| header.has(LATENCY));
    }

    fn has_completions(&self) -> bool {
        self.completions
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        if self.columns.is_none() || line.starts_with(b"filename,") {
            self.columns = header(line);
            return match self.columns {
                Some(_) => Ok(Row::Nothing),
                None => Err(Trouble::Input(format!("the header must name {}", NAMES[..NEEDED].join(", ")))),
            };
        }
        let columns = self.columns.as_ref().expect("the header is the first line");
        let fields = columns.pick(Commas::of(line));
        let need = |field: usize| {
            fields[field].ok_or_else(|| Trouble::Line(format!("{} is missing: too few fields", NAMES[field])))
        };
        let (file, offset) = (need(0)?, whole(need(1)?, NAMES[1])?);
        let op = read_or_write(need(2)?, NAMES[2])?;
        let size = whole(need(3)?, NAMES[3])?;
        let time_ns = time(need(4)?, NAMES[4], unit::S)?;
        if op == Op::Read && fields[5] == Some(b"1") {
            return Ok(Row::Drop("cache_hit"));
        }
        let latency_ns = match fields[LATENCY] {
            Some(text) if self.completions && !text.is_empty() => time(text, NAMES[LATENCY], unit::S)?,
            _ => Record::UNKNOWN,
        };
        let stream = self.streams.number(fields[6].unwrap_or_default())?;
        let offset = devices.place(file, offset, size)?;
        Ok(Row::of(Record { time_ns, op, offset, size, line: 0, flags: 0, stream, latency_ns }))
    }

    fn streams(&self) -> Option<&Streams> {
        Some(&self.streams)
    }
}

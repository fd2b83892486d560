//! Output of a bpftrace program that prints the arguments of a tracepoint of the block layer (`block_rq_issue`,
//! `block_rq_insert`, `block_bio_queue`; Linux's include/trace/events/block.h), as in
//! `printf("%llu %s %u %llu %u\n", nsecs, args->rwbs, args->bytes, args->sector, args->nr_sector)`.
//!
//! A line is `nsecs rwbs bytes sector nr_sector`, separated by blanks or commas. A line that names the columns may come
//! first, with these names in any order; then there may be `dev`, `pid` and `comm` too, and `bytes` or `nr_sector` may
//! be missing. A process (pid) is a stream. One event of a request is to be printed, not several.

use super::Recognised;
use crate::devices::Devices;
use crate::fields::{Blanks, sectors, time, unexpected, whole};
use crate::header::Header;
use crate::lines::lines_of;
use crate::number::unit;
use crate::rwbs::{self, Flagged};
use crate::streams::Streams;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::workload::Op;

const NAMES: [&str; 8] = ["nsecs", "rwbs", "sector", "bytes", "nr_sector", "dev", "pid", "comm"];
const NEEDED: usize = 3;
const DEV: usize = 5;
const PID: usize = 6;

fn header(line: &[u8]) -> Option<Header<8>> {
    let header = Header::of(Blanks::of(line), &NAMES, NEEDED)?;
    (header.has(3) || header.has(4)).then_some(header)
}

/// Whether a line is about bpftrace itself, not about a request.
fn is_message(line: &[u8]) -> bool {
    line.starts_with(b"Attaching ") || line.starts_with(b"Attached ") || line.starts_with(b"Lost ")
}

/// The parser of this layout.
pub(crate) struct Bpftrace {
    columns: Header<8>,
    /// Whether a line names the columns.
    named: bool,
    flagged: Flagged,
    streams: Streams,
}

impl Default for Bpftrace {
    fn default() -> Bpftrace {
        let columns = header(b"nsecs rwbs bytes sector nr_sector").expect("the columns have these names");
        Bpftrace { columns, named: false, flagged: Flagged::default(), streams: Streams::default() }
    }
}

/// Returns the size of a request, which the two fields give in bytes and in sectors.
fn size_of(bytes: Option<&[u8]>, count: Option<&[u8]>) -> Result<u64, Trouble> {
    let counted = count.map(|text| sectors(text, NAMES[4])).transpose()?;
    let Some(text) = bytes else { return Ok(counted.unwrap_or_default()) };
    let size = whole(text, NAMES[3])?;
    // So no line of another layout with five columns is taken for one of this.
    match counted {
        Some(counted) if counted != size => Err(unexpected(NAMES[3], text, "512 times nr_sector")),
        _ => Ok(size),
    }
}

impl Parser for Bpftrace {
    const STREAMS: Option<&'static str> = Some("processes (pid)");
    const RECOGNISED: Recognised = Recognised::HeaderOrLines(|line| header(line).is_some());
    const TOLD_BY: &'static str = "bytes that are 512 times nr_sector";
    const SAMPLE: &'static str = "Attaching 1 probe...\nnsecs rwbs bytes sector nr_sector pid comm\n\
        45502109053447 W 4096 170104688 8 812 fio\n45502109071121 R 512 8 1 7 sh\n45502109071122 FF 0 0 0 7 sh\n";

    fn prepare(&mut self, head: &[u8]) {
        if let Some(columns) = lines_of(head).find_map(header) {
            (self.columns, self.named) = (columns, true);
        }
    }

    fn shows(&self, line: &[u8]) -> bool {
        // Without a name, a line of zeros may be of any layout.
        let fields = self.columns.pick(Blanks::of(line));
        self.named || size_of(fields[3], fields[4]).is_ok_and(|size| size > 0)
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        // At its end, bpftrace prints the maps of the program.
        if line.starts_with(b"@") {
            return Ok(Row::End);
        }
        let fields = self.columns.pick(Blanks::of(line));
        let need = |field: usize| {
            fields[field].ok_or_else(|| Trouble::Line(format!("{} is missing: too few fields", NAMES[field])))
        };
        if is_message(line) {
            return Ok(Row::Nothing);
        }
        let letters = need(1)?;
        let Some(rwbs) = rwbs::parse(letters) else {
            return match header(line) {
                Some(columns) => {
                    (self.columns, self.named) = (columns, true);
                    Ok(Row::Nothing)
                }
                None => Err(unexpected(NAMES[1], letters, "flags such as R, WS or FWFS")),
            };
        };
        let time_ns = time(need(0)?, NAMES[0], unit::NS)?;
        // A column that the header names is in every line; only what comes last, a command, may be empty.
        let named = |field: usize| self.columns.has(field).then(|| need(field)).transpose();
        let size = size_of(named(3)?, named(4)?)?;
        let [device, pid] = [named(DEV)?, named(PID)?].map(Option::unwrap_or_default);
        let stream = self.streams.labelled(pid, fields[7].unwrap_or_default())?;
        let Some(op) = rwbs.op else { return Ok(Row::Drop("other_op")) };
        // A flush has no place: its sector is 0 or 2^64 - 1.
        if op == Op::Flush || size == 0 && (rwbs.preflush || rwbs.fua) {
            return Ok(Row::streamed(time_ns, Op::Flush, [0, 0], 0, stream));
        }
        let offset = sectors(need(2)?, NAMES[2])?;
        let offset = devices.place(device, offset, size)?;
        let flags = self.flagged.count(rwbs);
        Ok(Row::streamed(time_ns, op, [offset, size], flags, stream))
    }

    fn notes(&self) -> Vec<String> {
        self.flagged.notes()
    }

    fn streams(&self) -> Option<&Streams> {
        self.columns.has(PID).then_some(&self.streams)
    }
}

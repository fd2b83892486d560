//! fio's I/O log, version 2 (`file action offset length`, waits in microseconds) and version 3
//! (`time file action offset length`).
//!
//! Version 3 counts time in microseconds (older fio) or nanoseconds; nothing in the file shows which, so an option has
//! to say which it is.

use super::Recognised;
use crate::devices::Devices;
use crate::fields::{Words, ticks, unexpected, whole};
use crate::options::Options;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::workload::Op;

const MICROSECOND_NS: u64 = 1000;

/// Whether a line is the first line of such a log.
fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"fio version ")
}

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Fio {
    version: Option<u8>,
    time_unit_ns: Option<u64>,
    waited_ns: u64,
}

impl Fio {
    fn header(&mut self, line: &[u8]) -> Result<Row, Trouble> {
        let wrong = |what: &str| Trouble::Input(format!("{what}; ftlab reads fio iologs of version 2 and 3"));
        self.version = match line.strip_prefix(b"fio version ") {
            None => return Err(wrong("the first line is not \"fio version N iolog\"")),
            Some([b'2', b' ', ..]) => Some(2),
            Some([b'3', b' ', ..]) if self.time_unit_ns.is_none() => {
                return Err(Trouble::Input(
                    "a version 3 fio iolog does not tell its unit of time\n  \
                     name it: --set workload.fio_time_unit=1us (older fio) or 1ns"
                        .into(),
                ));
            }
            Some([b'3', b' ', ..]) => Some(3),
            Some(_) => return Err(wrong("a version of fio's iolog that is not supported")),
        };
        Ok(Row::Nothing)
    }
}

impl Parser for Fio {
    const RECOGNISED: Recognised = Recognised::Header(is_header);
    const SAMPLE: &'static str =
        "fio version 2 iolog\n/dev/a add\n/dev/a read 4096 512\n/dev/a wait 1500 0\n/dev/b write 0 4096\n";

    fn new(options: &Options) -> Fio {
        Fio { time_unit_ns: options.fio_time_unit_ns, ..Fio::default() }
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let Some(version) = self.version else { return self.header(line) };
        let mut fields = Words::of(line);
        let time_ns = match version {
            3 => ticks(fields.need("time")?, "time", self.time_unit_ns.unwrap_or(1))?,
            _ => self.waited_ns,
        };
        let file = fields.need("file")?;
        let action = fields.need("action")?;
        let op = match action {
            b"add" | b"open" | b"close" => return Ok(Row::Nothing),
            b"wait" if version == 2 => {
                let wait = ticks(fields.need("wait")?, "wait", MICROSECOND_NS)?;
                self.waited_ns = self
                    .waited_ns
                    .checked_add(wait)
                    .ok_or_else(|| Trouble::Line("the waits exceed 2^64 ns together".into()))?;
                return Ok(Row::Nothing);
            }
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"syncfs" | b"sync_file_range" => return Ok(Row::flush(time_ns)),
            _ => return Err(unexpected("action", action, "one of a fio iolog")),
        };
        let offset = whole(fields.need("offset")?, "offset")?;
        let size = whole(fields.need("length")?, "length")?;
        let offset = devices.place(file, offset, size)?;
        Ok(Row::Request { time_ns, op, offset, size })
    }
}

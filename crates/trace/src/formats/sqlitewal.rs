//! SQLite over ext4: `pid D|C operation offset bytes time ...`, separated by blanks; times in seconds. D is
//! the dispatch of a request and C its completion, so only D rows are counted.

use crate::devices::Devices;
use crate::fields::{Words, time, unexpected, whole};
use crate::number::unit;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;
use ftlab_core::workload::Op;

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Sqlitewal;

impl Parser for Sqlitewal {
    const TOLD_BY: &'static str = "D or C, and an operation in words";
    const SAMPLE: &'static str =
        "39949 D read 299008 4096 0.000000000 0 False\n0 C read 1 2 7.39e-05 0 False\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Process];

    fn source(line: &[u8], _: StreamsOf) -> Option<&[u8]> {
        Words::of(line).next()
    }

    fn parse(&mut self, line: &[u8], _: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Words::of(line);
        whole(fields.need("pid")?, "pid")?;
        match fields.need("action")? {
            b"D" => {}
            b"C" => return Ok(Row::Drop("not_issue")),
            other => return Err(unexpected("action", other, "D or C")),
        }
        let op = match fields.need("operation")? {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"discard" => Op::Trim,
            b"flush" => Op::Flush,
            other => return Err(unexpected("operation", other, "read, write, discard or flush")),
        };
        let offset = whole(fields.need("offset")?, "offset")?;
        let size = whole(fields.need("bytes")?, "bytes")?;
        let time_ns = time(fields.need("time")?, "time", unit::S)?;
        match op {
            Op::Flush => Ok(Row::flush(time_ns)),
            _ => Ok(Row::Request { time_ns, op, offset, size }),
        }
    }
}

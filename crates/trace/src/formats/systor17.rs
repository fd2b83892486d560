//! SYSTOR '17 (Lee et al., enterprise VDI): `Timestamp,Response,IOType,LUN,Offset,Size` with a header; stamps
//! in seconds, offset and size in bytes. IOType may be blank: such a row may be a read or a write, and is
//! dropped (`other_op`).

use super::{Recognised, header_is, is_date, read_or_write};
use crate::devices::Devices;
use crate::fields::{Commas, in_sectors, time, whole};
use crate::number::unit;
use crate::options::Options;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;
use ftlab_core::workload::Record;

/// Whether a line is the header.
fn is_header(line: &[u8]) -> bool {
    header_is(line, &["Timestamp", "Response", "IOType", "LUN", "Offset", "Size"])
}

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Systor17 {
    /// Whether completions are wanted.
    completions: bool,
}

impl Parser for Systor17 {
    const TOLD_BY: &'static str = "stamps in seconds since 1970, and whole sectors";
    const RECOGNISED: Recognised = Recognised::HeaderOrLines(is_header);
    const HEADER: fn(&[u8]) -> bool = is_header;
    const SAMPLE: &'static str =
        "Timestamp,Response,IOType,LUN,Offset,Size\n1456752000.02,0.1,R,0,35264577536,32768\n1.03,,,0,0,0\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Volume];
    const COMPLETIONS: bool = true;

    fn new(options: &Options) -> Systor17 {
        Systor17 { completions: options.wants_completions() }
    }

    fn source(line: &[u8], _: StreamsOf) -> Option<&[u8]> {
        Commas::of(line).nth(3)
    }

    fn shows(&self, line: &[u8]) -> bool {
        let fields: Vec<_> = Commas::of(line).collect();
        fields.len() == 6 && is_date(fields[0], 1) && in_sectors(&fields[4..])
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Commas::of(line);
        let time_ns = time(fields.need("Timestamp")?, "Timestamp", unit::S)?;
        // The real device's response time, which may be blank as well.
        let response = fields.need("Response")?;
        let latency_ns = match self.completions && !response.is_empty() {
            true => time(response, "Response", unit::S)?,
            false => Record::UNKNOWN,
        };
        let io_type = fields.need("IOType")?;
        if io_type.is_empty() {
            return Ok(Row::Drop("other_op"));
        }
        let op = read_or_write(io_type, "IOType")?;
        let lun = fields.need("LUN")?;
        let offset = whole(fields.need("Offset")?, "Offset")?;
        let size = whole(fields.need("Size")?, "Size")?;
        let offset = devices.place(lun, offset, size)?;
        Ok(Row::timed(time_ns, op, [offset, size], latency_ns))
    }
}

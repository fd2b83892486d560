//! Traces without times: a header line, then `offset,size,type`; offset in sectors, size in bytes, type 1 for a write
//! and 0 for a read.

use super::{Recognised, Stamps, digit_op, header_is};
use crate::devices::Devices;
use crate::fields::{Commas, sectors, whole};
use crate::text::{Parser, Row, Trouble};

/// Whether a line is the header; numbers may follow its last name.
fn is_header(line: &[u8]) -> bool {
    header_is(line, &["offset", "size", "type"])
}

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Notimes;

impl Parser for Notimes {
    const STAMPS: Stamps = Stamps::Absent;
    const RECOGNISED: Recognised = Recognised::Header(is_header);
    const HEADER: fn(&[u8]) -> bool = is_header;
    const SAMPLE: &'static str = "offset,size,type 507\n4220896,4096,1\n8,8704,0\n";

    fn parse(&mut self, line: &[u8], _: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Commas::of(line);
        let offset = sectors(fields.need("offset")?, "offset")?;
        let size = whole(fields.need("size")?, "size")?;
        let op = digit_op(fields.need("type")?, "type", [b'0', b'1'])?;
        Ok(Row::Request { time_ns: 0, op, offset, size })
    }

    fn notes(&self) -> Vec<String> {
        vec!["the trace has no times: span and rates say nothing, and it needs closed replay".into()]
    }
}

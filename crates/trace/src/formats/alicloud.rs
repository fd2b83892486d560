//! Alibaba Cloud block traces (Li et al., IISWC 2020): `device_id,opcode,offset,length,timestamp`; offset and
//! length are in bytes, stamps in microseconds.

use super::{Recognised, added_header, header_is, is_date, read_or_write};
use crate::devices::Devices;
use crate::fields::{Commas, in_sectors, time, whole};
use crate::number::unit;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Alicloud;

impl Parser for Alicloud {
    const TOLD_BY: &'static str = "stamps in microseconds since 1970, and whole sectors";
    const RECOGNISED: Recognised = Recognised::HeaderOrLines(|line| {
        header_is(line, &["device_id", "opcode", "offset", "length", "timestamp"])
    });
    const HEADER: fn(&[u8]) -> bool = |line| added_header(line, &["device_id"]);
    const SAMPLE: &'static str =
        "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,36864,1577808144360813\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Volume];

    fn source(line: &[u8], _: StreamsOf) -> Option<&[u8]> {
        Commas::of(line).next()
    }

    fn shows(&self, line: &[u8]) -> bool {
        let fields: Vec<_> = Commas::of(line).collect();
        fields.len() == 5 && is_date(fields[4], 1_000_000) && in_sectors(&fields[2..4])
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Commas::of(line);
        let device = fields.need("device_id")?;
        let op = read_or_write(fields.need("opcode")?, "opcode")?;
        let offset = whole(fields.need("offset")?, "offset")?;
        let size = whole(fields.need("length")?, "length")?;
        let time_ns = time(fields.need("timestamp")?, "timestamp", unit::US)?;
        let offset = devices.place(device, offset, size)?;
        Ok(Row::Request { time_ns, op, offset, size })
    }
}

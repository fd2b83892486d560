//! Tencent CBS (Zhang et al., ATC 2020): `Timestamp,Offset,Size,IOType,VolumeID`; whole seconds, offset and size in
//! sectors, IOType 0 for a read and 1 for a write.

use super::{Recognised, Stamps, added_header, digit_op, header_is, is_date};
use crate::devices::Devices;
use crate::fields::{Commas, in_sectors, sectors, ticks};
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;

const SECOND_NS: u64 = 1_000_000_000;

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Tencent;

impl Parser for Tencent {
    const TOLD_BY: &'static str = "stamps in seconds since 1970, and sizes that are too small for bytes";
    const STAMPS: Stamps = Stamps::Seconds;
    const RECOGNISED: Recognised = Recognised::HeaderOrLines(|line| {
        header_is(line, &["Timestamp", "Offset", "Size", "IOType", "VolumeID"])
    });
    const HEADER: fn(&[u8]) -> bool = |line| added_header(line, &["timestamp"]);
    const SAMPLE: &'static str = "1538323200,12910952,8,0,1063\n1538323201,6265368,8,1,1064\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Volume];

    fn source(line: &[u8], _: StreamsOf) -> Option<&[u8]> {
        Commas::of(line).nth(4)
    }

    fn shows(&self, line: &[u8]) -> bool {
        let fields: Vec<_> = Commas::of(line).collect();
        fields.len() == 5 && is_date(fields[0], 1) && !in_sectors(&fields[2..3])
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Commas::of(line);
        let time_ns = ticks(fields.need("Timestamp")?, "Timestamp", SECOND_NS)?;
        let offset = sectors(fields.need("Offset")?, "Offset")?;
        let size = sectors(fields.need("Size")?, "Size")?;
        let op = digit_op(fields.need("IOType")?, "IOType", [b'0', b'1'])?;
        let volume = fields.need("VolumeID")?;
        let offset = devices.place(volume, offset, size)?;
        Ok(Row::Request { time_ns, op, offset, size })
    }
}

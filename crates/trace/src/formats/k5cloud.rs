//! FUJITSU K5 cloud service (SNIA IOTTA 2018): `ID,Timestamp,Type,Offset,Length` without a header, a file for each
//! volume and day; stamps in seconds since the first request of all volumes, offset and length in bytes.

use super::{Recognised, added_header, header_is, read_or_write};
use crate::devices::Devices;
use crate::fields::{Commas, in_sectors, time, unexpected, whole};
use crate::number::unit;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct K5cloud;

impl Parser for K5cloud {
    const TOLD_BY: &'static str = "stamps with decimals in order, R or W, and whole sectors";
    const RECOGNISED: Recognised =
        Recognised::HeaderOrLines(|line| header_is(line, &["ID", "Timestamp", "Type", "Offset", "Length"]));
    const HEADER: fn(&[u8]) -> bool = |line| added_header(line, &["id"]);
    const SAMPLE: &'static str = "2264,86400.121837000,R,48195870720,4096\n2264,86400.5,W,0,8192\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Volume];

    fn source(line: &[u8], _: StreamsOf) -> Option<&[u8]> {
        Commas::of(line).next()
    }

    fn shows(&self, line: &[u8]) -> bool {
        let fields: Vec<_> = Commas::of(line).collect();
        fields[1].contains(&b'.') && in_sectors(&fields[3..])
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Commas::of(line);
        let volume = fields.need("ID")?;
        whole(volume, "ID")?;
        let time_ns = time(fields.need("Timestamp")?, "Timestamp", unit::S)?;
        let op = read_or_write(fields.need("Type")?, "Type")?;
        let offset = whole(fields.need("Offset")?, "Offset")?;
        let size = whole(fields.need("Length")?, "Length")?;
        if let Some(extra) = fields.next() {
            return Err(unexpected("what follows the length", extra, "nothing: five fields make a line"));
        }
        let offset = devices.place(volume, offset, size)?;
        Ok(Row::Request { time_ns, op, offset, size })
    }
}

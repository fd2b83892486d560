//! SPC: `ASU,LBA,Size,Opcode,Timestamp[,...]`; LBA in sectors within its ASU, size in bytes (0 and odd values
//! occur), opcode in any case, stamp in seconds, blanks after the commas.

use super::{Recognised, added_header, header_is, read_or_write};
use crate::devices::Devices;
use crate::fields::{Commas, in_sectors, sectors, time, whole};
use crate::number::unit;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Spc;

impl Parser for Spc {
    const TOLD_BY: &'static str = "stamps with decimals in order, and addresses that are too odd for bytes";
    const RECOGNISED: Recognised =
        Recognised::HeaderOrLines(|line| header_is(line, &["ASU", "LBA", "Size", "Opcode", "Timestamp"]));
    const HEADER: fn(&[u8]) -> bool = |line| added_header(line, &["asu"]);
    const SAMPLE: &'static str = "0, 20941264, 8192, W, 0.551706\n1,100,3573,r,0.554041,extra\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Volume];

    fn source(line: &[u8], _: StreamsOf) -> Option<&[u8]> {
        Commas::of(line).next()
    }

    fn shows(&self, line: &[u8]) -> bool {
        let mut fields = Commas::of(line).skip(1);
        let address = fields.next().unwrap_or_default();
        (address == b"0" || !in_sectors(&[address]))
            && fields.nth(2).is_some_and(|stamp| stamp.contains(&b'.'))
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Commas::of(line);
        let asu = fields.need("ASU")?;
        whole(asu, "ASU")?;
        let offset = sectors(fields.need("LBA")?, "LBA")?;
        let size = whole(fields.need("Size")?, "Size")?;
        let op = read_or_write(fields.need("Opcode")?, "Opcode")?;
        let time_ns = time(fields.need("Timestamp")?, "Timestamp", unit::S)?;
        let offset = devices.place(asu, offset, size)?;
        Ok(Row::Request { time_ns, op, offset, size })
    }
}

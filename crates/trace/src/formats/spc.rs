//! SPC: `ASU,LBA,Size,Opcode,Timestamp[,...]`; LBA in sectors within its ASU, size in bytes (0 and odd values
//! occur), opcode in any case, stamp in seconds, blanks after the commas.

use super::{added_header, read_or_write};
use crate::devices::Devices;
use crate::fields::{Commas, sectors, time, whole};
use crate::number::unit;
use crate::options::Options;
use crate::text::{Parser, Row, Trouble};

/// The parser.
pub(crate) struct Spc(Devices);

impl Parser for Spc {
    const SAMPLE: &'static str = "0, 20941264, 8192, W, 0.551706\n1,100,3573,r,0.554041,extra\n";

    fn new(_: &Options) -> Spc {
        Spc(Devices::default())
    }

    fn parse(&mut self, line: &[u8], first: bool) -> Result<Row, Trouble> {
        if first && added_header(line, &["asu"]) {
            return Ok(Row::Nothing);
        }
        let mut fields = Commas::of(line);
        let asu = fields.need("ASU")?;
        whole(asu, "ASU")?;
        let offset = sectors(fields.need("LBA")?, "LBA")?;
        let size = whole(fields.need("Size")?, "Size")?;
        let op = read_or_write(fields.need("Opcode")?, "Opcode")?;
        let time_ns = time(fields.need("Timestamp")?, "Timestamp", unit::S)?;
        let offset = self.0.place(asu, offset, size)?;
        Ok(Row::Request { time_ns, op, offset, size })
    }

    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }
}

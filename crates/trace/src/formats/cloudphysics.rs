//! CloudPhysics (Waldspurger et al., FAST 2015), as csv: `version,time,op,size,lbn`; whole seconds,
//! the SCSI operation code in hexadecimal, size in bytes, lbn in sectors.

use super::{Recognised, Stamps, header_is, scsi};
use crate::devices::Devices;
use crate::fields::{Commas, sectors, ticks, unexpected, whole};
use crate::text::{Parser, Row, Trouble};
use ftlab_core::workload::Op;

const SECOND_NS: u64 = 1_000_000_000;

/// Whether a line is the header.
fn is_header(line: &[u8]) -> bool {
    header_is(line, &["version", "time", "op", "size", "lbn"])
}

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Cloudphysics;

impl Parser for Cloudphysics {
    const TOLD_BY: &'static str = "a version, and codes of SCSI commands";
    const STAMPS: Stamps = Stamps::Seconds;
    const RECOGNISED: Recognised = Recognised::HeaderOrLines(is_header);
    const HEADER: fn(&[u8]) -> bool = is_header;
    const SAMPLE: &'static str = "version,time,op,size,lbn\n1,5633898,2a,512,10\n1,5633899,28,1024,20\n";

    fn parse(&mut self, line: &[u8], _: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Commas::of(line);
        // These are the columns of the hypervisor's trace record. Their values are checked, since the columns of other
        // traces would otherwise be taken for these.
        match fields.need("version")? {
            b"1" | b"2" => {}
            other => return Err(unexpected("version", other, "1 or 2")),
        }
        let time_ns = ticks(fields.need("time")?, "time", SECOND_NS)?;
        let code = fields.need("op")?;
        let size = whole(fields.need("size")?, "size")?;
        let offset = sectors(fields.need("lbn")?, "lbn")?;
        let digits = Some(code).filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        let command = digits.and_then(|code| std::str::from_utf8(code).ok());
        let command =
            command.filter(|code| code.len() <= 2).and_then(|code| u8::from_str_radix(code, 16).ok());
        match command.map(scsi) {
            Some(Some(Op::Flush)) => Ok(Row::flush(time_ns)),
            Some(Some(op)) => Ok(Row::Request { time_ns, op, offset, size }),
            Some(None) => Ok(Row::Drop("other_op")),
            None => Err(unexpected("op", code, "an operation code such as 28 or 2a")),
        }
    }
}

//! CloudPhysics (Waldspurger et al., FAST 2015), as csv: `version,time,op,size,lbn`; whole seconds,
//! the SCSI operation code in hexadecimal, size in bytes, lbn in sectors.

use super::{Recognised, Stamps, header_is};
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
        // The READ and WRITE commands of 6, 10, 12 and 16 bytes, and SYNCHRONIZE CACHE.
        let op = match code.to_ascii_lowercase().as_slice() {
            b"28" | b"8" | b"08" | b"a8" | b"88" => Op::Read,
            b"2a" | b"a" | b"0a" | b"aa" | b"8a" => Op::Write,
            b"35" | b"91" => return Ok(Row::flush(time_ns)),
            other if !other.is_empty() && other.len() <= 2 && other.iter().all(u8::is_ascii_hexdigit) => {
                return Ok(Row::Drop("other_op"));
            }
            _ => return Err(unexpected("op", code, "an operation code such as 28 or 2a")),
        };
        Ok(Row::Request { time_ns, op, offset, size })
    }
}

//! MobileBlockIOTraces (Pixel 6a): `proces,device,rw_flag,sector,size,timestamp` with a header; size in
//! sectors, stamps in seconds. Process names are free text, so fields are parsed from the right.

use super::{Recognised, header_is};
use crate::devices::Devices;
use crate::fields::{sectors, time, trim, unexpected, whole};
use crate::number::unit;
use crate::rwbs::{self, Flagged};
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;
use ftlab_core::workload::Op;
use memchr::memrchr;

/// Whether a line is the header.
fn is_header(line: &[u8]) -> bool {
    let rest = ["device", "rw_flag", "sector", "size", "timestamp"];
    ["proces", "process"].iter().any(|first| {
        let [b, c, d, e, f] = rest;
        header_is(line, &[first, b, c, d, e, f])
    })
}

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct MobileEbpf {
    flagged: Flagged,
}

/// Takes the last field from `rest`.
#[inline]
fn last<'a>(rest: &mut &'a [u8], name: &'static str) -> Result<&'a [u8], Trouble> {
    match memrchr(b',', rest) {
        Some(at) => {
            let field = trim(&rest[at + 1..]);
            *rest = &rest[..at];
            Ok(field)
        }
        None => Err(Trouble::Line(format!("{name} is missing: the line has too few fields"))),
    }
}

impl Parser for MobileEbpf {
    const TOLD_BY: &'static str = "the name of a process, and stamps with decimals";
    const RECOGNISED: Recognised = Recognised::HeaderOrLines(is_header);
    const HEADER: fn(&[u8]) -> bool = is_header;
    const SAMPLE: &'static str = "proces,device,rw_flag,sector,size,timestamp\n<...>-1,8,R,29880920,16,159273.83748699998\na,8,FF,0,0,1.5\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Process, StreamsOf::Volume];

    fn source(line: &[u8], of: StreamsOf) -> Option<&[u8]> {
        // The name of a process may have commas.
        let mut parts = line.rsplitn(6, |&byte| byte == b',');
        parts.nth(if of == StreamsOf::Process { 5 } else { 4 }).map(trim)
    }

    fn shows(&self, line: &[u8]) -> bool {
        let named =
            Self::source(line, StreamsOf::Process).is_some_and(|name| !name.iter().all(u8::is_ascii_digit));
        named && line.rsplit(|&byte| byte == b',').next().is_some_and(|stamp| stamp.contains(&b'.'))
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let mut rest = line;
        let time_ns = time(last(&mut rest, "timestamp")?, "timestamp", unit::S)?;
        let size = sectors(last(&mut rest, "size")?, "size")?;
        let offset = sectors(last(&mut rest, "sector")?, "sector")?;
        let flags = last(&mut rest, "rw_flag")?;
        let device = last(&mut rest, "device")?;
        whole(device, "device")?;
        let rwbs =
            rwbs::parse(flags).ok_or_else(|| unexpected("rw_flag", flags, "flags such as R, WS or D"))?;
        match rwbs.op {
            None => Ok(Row::Drop("other_op")),
            Some(Op::Flush) => Ok(Row::flush(time_ns)),
            Some(_) if (rwbs.preflush || rwbs.fua) && size == 0 => Ok(Row::flush(time_ns)),
            Some(op) => {
                let offset = devices.place(device, offset, size)?;
                Ok(Row::flagged(time_ns, op, [offset, size], self.flagged.count(rwbs)))
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        self.flagged.notes()
    }
}

//! FIU (SRCMap and I/O Deduplication, Florida International University): `time pid process lba size W|R major
//! minor md5`, separated by blanks; times in nanoseconds, address and size in sectors of 512 B. Later files
//! lack the hash of the content.

use super::read_or_write;
use crate::devices::Devices;
use crate::fields::{Words, sectors, time, unexpected, whole};
use crate::number::unit;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;

/// Returns the part of a line with the two numbers that together name the device.
fn device<'a>(line: &'a [u8], major: &[u8], minor: &[u8]) -> &'a [u8] {
    let at = |field: &[u8]| field.as_ptr() as usize - line.as_ptr() as usize;
    &line[at(major)..at(minor) + minor.len()]
}

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Fiu;

impl Parser for Fiu {
    const TOLD_BY: &'static str = "a process, R or W, and the numbers of a device";
    const SAMPLE: &'static str = "89966437846610 4892 syslogd 904265560 8 W 6 0 531e779a25eab7b5\n\
                                  89967195423840 2522 kjournald 909467400 16 R 8 1\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Process, StreamsOf::Volume];

    fn source(line: &[u8], of: StreamsOf) -> Option<&[u8]> {
        let mut fields = Words::of(line);
        match of {
            StreamsOf::Process => fields.nth(1),
            _ => Some(device(line, fields.nth(6)?, fields.next()?)),
        }
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Words::of(line);
        let time_ns = time(fields.need("time")?, "time", unit::NS)?;
        whole(fields.need("pid")?, "pid")?;
        let process = fields.need("process")?;
        // Otherwise five numbers on a line, as in other layouts, would match.
        if process.iter().all(u8::is_ascii_digit) {
            return Err(unexpected("process", process, "the name of a process"));
        }
        let offset = sectors(fields.need("lba")?, "lba")?;
        let size = sectors(fields.need("size")?, "size")?;
        let op = read_or_write(fields.need("operation")?, "operation")?;
        let (major, minor) = (fields.need("major")?, fields.need("minor")?);
        whole(major, "major")?;
        whole(minor, "minor")?;
        let offset = devices.place(device(line, major, minor), offset, size)?;
        Ok(Row::Request { time_ns, op, offset, size })
    }
}

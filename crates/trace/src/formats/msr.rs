//! MSR Cambridge: `Timestamp,Host,Disk,Type,Offset,Size,ResponseTime` without a header.
//!
//! Stamps are Windows file times: ticks of 100 ns since 1601, beyond the exact range of a float.

use super::{Recognised, added_header, header_is, read_or_write};
use crate::devices::Devices;
use crate::fields::{Commas, ticks, whole};
use crate::number::uint;
use crate::options::Options;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;
use ftlab_core::workload::Record;

const TICK_NS: u64 = 100;
const TICKS_1970: u64 = 116_444_736_000_000_000;

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Msr {
    /// Whether completions are wanted.
    completions: bool,
}

impl Parser for Msr {
    const TOLD_BY: &'static str = "seven fields with the name of a host, or ticks since 1601";
    const RECOGNISED: Recognised = Recognised::HeaderOrLines(|line| {
        header_is(line, &["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"])
    });
    const HEADER: fn(&[u8]) -> bool = |line| added_header(line, &["timestamp"]);
    const SAMPLE: &'static str =
        "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372003061630,usr,1,Write,13,8192,1963\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Volume];
    const COMPLETIONS: bool = true;

    fn new(options: &Options) -> Msr {
        Msr { completions: options.wants_completions() }
    }

    fn source(line: &[u8], _: StreamsOf) -> Option<&[u8]> {
        let mut fields = Commas::of(line);
        fields.next()?;
        let from_host = fields.rest();
        fields.nth(1)?;
        Some(&from_host[..from_host.len() - fields.rest().len() - 1])
    }

    fn shows(&self, line: &[u8]) -> bool {
        let fields: Vec<_> = Commas::of(line).collect();
        let named = fields[1].iter().any(u8::is_ascii_alphabetic);
        fields.len() == 7 && (named || uint(fields[0]).is_ok_and(|ticks| ticks > TICKS_1970))
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Commas::of(line);
        let time_ns = ticks(fields.need("Timestamp")?, "Timestamp", TICK_NS)?;
        // The host and the disk together name a volume.
        let from_host = fields.rest();
        let host = fields.need("Host")?;
        let disk = fields.need("Disk")?;
        whole(disk, "Disk")?;
        let volume =
            if host.is_empty() { disk } else { &from_host[..from_host.len() - fields.rest().len() - 1] };
        let op = read_or_write(fields.need("Type")?, "Type")?;
        let offset = whole(fields.need("Offset")?, "Offset")?;
        let size = whole(fields.need("Size")?, "Size")?;
        let offset = devices.place(volume, offset, size)?;
        let response = if self.completions { fields.need("ResponseTime")? } else { b"" };
        let latency_ns = match response {
            b"" => Record::UNKNOWN,
            response => ticks(response, "ResponseTime", TICK_NS)?,
        };
        Ok(Row::timed(time_ns, op, [offset, size], latency_ns))
    }
}

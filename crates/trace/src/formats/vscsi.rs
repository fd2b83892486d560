//! VMware's vscsiStats traces, of which those of CloudPhysics are (Waldspurger et al., FAST 2015), as libCacheSim reads
//! them (traceReader/customizedReader/vscsi.h): little-endian records of 32 B (version 1) or 40 B (version 2).
//!
//! - version 1: serial number (u32), bytes (u32), number of segments (u32), SCSI command (u16), version (u16), sector
//!   (u64), time (u64, microseconds);
//! - version 2: command (u16), version (u16), serial number (u32), bytes (u32), number of segments (u32), sector (u64),
//!   time (u64), response time (u64).
//!
//! The number of the version is in the upper byte of its field.

use super::scsi;
use crate::binary::Reader;
use crate::options::Options;
use crate::text::{Row, Trouble};
use ftlab_core::workload::Op;

const SECTOR: u64 = 512;
const US: u64 = 1000;

/// Where a version has its fields.
struct Version {
    number: u8,
    record: usize,
    command: usize,
    version: usize,
    bytes: usize,
    sector: usize,
    time: usize,
}

static VERSIONS: [Version; 2] = [
    Version { number: 1, record: 32, command: 12, version: 14, bytes: 4, sector: 16, time: 24 },
    Version { number: 2, record: 40, command: 0, version: 2, bytes: 8, sector: 16, time: 24 },
];

impl Version {
    /// Whether the first records at a file's beginning, two if there are two, are of this version; if they must be
    /// `known`, whether their commands are ones that this reader takes.
    fn fits(&self, head: &[u8], known: bool) -> bool {
        let mut records = head.chunks_exact(self.record).take(2).peekable();
        let taken = |record: &[u8]| scsi(record[self.command]).is_some() && record[self.command + 1] == 0;
        records.peek().is_some()
            && records.all(|record| record[self.version + 1] == self.number && (!known || taken(record)))
    }
}

/// The reader of this layout.
pub(crate) struct Vscsi(Option<&'static Version>);

impl Reader for Vscsi {
    const SAMPLE: &'static [u8] = b"\xf4\0\0\x80\0\x02\0\0\x01\0\0\0\x2a\0\0\x01\x09\x1a\x8f\x02\0\0\0\0\
        \x22\xcf\x82\xbe\x1f\x05\0\0\
        \xf5\0\0\x80\0\x10\0\0\x01\0\0\0\x28\0\0\x01\x08\0\0\0\0\0\0\0\
        \x23\xcf\x82\xbe\x1f\x05\0\0";

    fn new(_: &str, head: &[u8], _: &Options) -> Vscsi {
        Vscsi(VERSIONS.iter().find(|version| version.fits(head, false)))
    }

    fn is_one(_: &str, head: &[u8]) -> bool {
        VERSIONS.iter().any(|version| version.fits(head, true))
    }

    fn record(&self) -> usize {
        self.0.map_or(VERSIONS[0].record, |version| version.record)
    }

    fn read(&mut self, record: &[u8]) -> Result<(Row, usize), Trouble> {
        let Some(at) = self.0.filter(|at| record[at.version + 1] == at.number) else {
            return Err(Trouble::Input("no record of vscsi (version 1 or 2) begins here".into()));
        };
        let u64_at = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
        let size = u32::from_le_bytes(record[at.bytes..at.bytes + 4].try_into().expect("four bytes"));
        let (sector, time) = (u64_at(at.sector), u64_at(at.time));
        let time_ns = time.checked_mul(US);
        let time_ns = time_ns.ok_or_else(|| Trouble::Line(format!("time {time} is too large")))?;
        let row = match scsi(record[at.command]) {
            Some(Op::Flush) => Row::flush(time_ns),
            Some(op) => {
                let offset = sector.checked_mul(SECTOR);
                let offset =
                    offset.ok_or_else(|| Trouble::Line(format!("sector {sector} is beyond 2^64 bytes")))?;
                Row::Request { time_ns, op, offset, size: u64::from(size) }
            }
            None => Row::Drop("other_op"),
        };
        Ok((row, 0))
    }
}

//! libCacheSim's oracleGeneralOpNS (traceReader/customizedReader/oracle/oracleGeneralBin.h): records of 27 B,
//! little-endian: time (u32, seconds), object (u64), size (u32, bytes), operation (u8), namespace (u16), next access
//! (i64). As in oracleGeneral, the object is the sector. A namespace is a stream.

use super::Stamps;
use super::oracle_general::{Access, Accesses, is_named};
use crate::binary::Reader;
use crate::options::Options;
use crate::streams::Streams;
use crate::text::{Row, Trouble};
use ftlab_core::workload::Objects;

const RECORD: usize = 27;

/// The reader of this layout.
pub(crate) struct OracleGeneralOp {
    accesses: Accesses,
    streams: Streams,
}

impl Reader for OracleGeneralOp {
    const TOLD_BY: &'static str = "the name of the file";
    const STAMPS: Stamps = Stamps::Seconds;
    const STREAMS: Option<&'static str> = Some("namespaces");
    const SAMPLE: &'static [u8] =
        b"\x64\0\0\0\x08\0\0\0\0\0\0\0\0\x10\0\0\x0c\x07\0\xff\xff\xff\xff\xff\xff\xff\xff\
        \x66\0\0\0\x10\0\0\0\0\0\0\0\0\x10\0\0\x0d\x09\0\xff\xff\xff\xff\xff\xff\xff\xff";

    fn new(_: &str, _: &[u8], options: &Options) -> OracleGeneralOp {
        OracleGeneralOp { accesses: Accesses::new(options), streams: Streams::default() }
    }

    fn is_one(path: &str, head: &[u8]) -> bool {
        is_named(path, "oraclegeneralopns") && head.len() >= RECORD
    }

    fn record(&self) -> usize {
        RECORD
    }

    fn read(&mut self, record: &[u8]) -> Result<(Row, usize), Trouble> {
        let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
        let tenant = u32::from(u16::from_le_bytes([record[17], record[18]]));
        let access = Access {
            second: u32_at(0),
            object: u64::from_le_bytes(record[4..12].try_into().expect("eight bytes")),
            size: u64::from(u32_at(12)),
            op: record[16],
        };
        let stream = self.streams.number(itoa::Buffer::new().format(tenant).as_bytes())?;
        Ok((self.accesses.row(&access, stream)?, 0))
    }

    fn notes(&self) -> Vec<String> {
        self.accesses.notes()
    }

    fn objects(&self) -> Option<Objects> {
        Some(self.accesses.objects())
    }

    fn streams(&self) -> Option<&Streams> {
        Some(&self.streams)
    }
}

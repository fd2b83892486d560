//! libCacheSim's oracleGeneral: records of 24 B, little-endian: time (u32, seconds), object (u64), size (u32,
//! bytes), next access (i64). In its block traces the object is the sector; there are no operations.

use super::Stamps;
use crate::binary::Reader;
use crate::text::{Row, Trouble};
use ftlab_core::workload::Op;

const SECTOR: u64 = 512;
const SECOND_NS: u64 = 1_000_000_000;

/// The reader of this layout.
pub(crate) struct OracleGeneral;

impl Reader for OracleGeneral {
    const RECORD: usize = 24;
    const STAMPS: Stamps = Stamps::Seconds;

    fn new(_: &str, _: &[u8]) -> OracleGeneral {
        OracleGeneral
    }

    fn is_one(path: &str, head: &[u8]) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.to_ascii_lowercase().contains("oraclegeneral") && head.len() >= Self::RECORD
    }

    fn read(&mut self, record: &[u8]) -> Result<(Row, usize), Trouble> {
        let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
        let object = u64::from_le_bytes(record[4..12].try_into().expect("eight bytes"));
        let offset = object.checked_mul(SECTOR).ok_or_else(|| {
            Trouble::Line(format!("object {object} is not a sector: this is not a trace of a block device"))
        })?;
        let time_ns = u64::from(u32_at(0)) * SECOND_NS;
        Ok((Row::Request { time_ns, op: Op::Read, offset, size: u64::from(u32_at(12)) }, 0))
    }

    fn notes(&self) -> Vec<String> {
        vec!["the layout has no operations: all requests are reads; objects are taken for sectors".to_owned()]
    }
}

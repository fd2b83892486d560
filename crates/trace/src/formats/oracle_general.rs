//! libCacheSim's oracleGeneral: records of 24 B, little-endian: time (u32, seconds), object (u64), size (u32,
//! bytes), next access (i64). In its block traces the object is the sector; there are no operations.

use super::Stamps;
use crate::binary::Reader;
use crate::text::{Row, Trouble};
use ftlab_core::workload::Op;

const RECORD: usize = 24;
const SECTOR: u64 = 512;
const SECOND_NS: u64 = 1_000_000_000;

/// Whether the name of a file, without its folder, contains this word.
pub(super) fn is_named(path: &str, word: &str) -> bool {
    path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase().contains(word)
}

/// An access to an object, as libCacheSim's layouts have it.
pub(super) struct Access {
    /// Time, whole seconds.
    pub(super) second: u32,
    /// The sector.
    pub(super) object: u64,
    /// Bytes.
    pub(super) size: u64,
    /// Number of the operation (`req_op_e` of libCacheSim's enum.h).
    pub(super) op: u8,
}

impl Access {
    /// Makes the row of a request; `without` counts those that name no operation.
    pub(super) fn row(&self, stream: u16, without: &mut NoOperation) -> Result<Row, Trouble> {
        let op = match self.op {
            0 => {
                without.0 += 1;
                Op::Read
            }
            // get, gets; read
            1 | 2 | 12 => Op::Read,
            // set, add, cas, replace, append, prepend; incr, decr; write, update
            3..=8 | 10 | 11 | 13 | 14 => Op::Write,
            // delete
            9 => Op::Trim,
            _ => return Ok(Row::Drop("other_op")),
        };
        let object = self.object;
        let offset = object.checked_mul(SECTOR).ok_or_else(|| {
            Trouble::Line(format!("object {object} is not a sector: this is not a trace of a block device"))
        })?;
        let time_ns = u64::from(self.second) * SECOND_NS;
        Ok(Row::streamed(time_ns, op, [offset, self.size], 0, stream))
    }
}

/// Number of requests without an operation.
#[derive(Default)]
pub(super) struct NoOperation(u64);

impl NoOperation {
    /// Returns a note, if there are any.
    pub(super) fn notes(&self) -> Vec<String> {
        match self.0 {
            0 => Vec::new(),
            requests => vec![format!("{requests} requests name no operation: they are reads")],
        }
    }
}

/// The reader of this layout.
pub(crate) struct OracleGeneral;

impl Reader for OracleGeneral {
    const STAMPS: Stamps = Stamps::Seconds;
    const SAMPLE: &'static [u8] = b"\x64\0\0\0\x08\0\0\0\0\0\0\0\0\x10\0\0\x01\0\0\0\0\0\0\0\
        \x66\0\0\0\x08\0\0\0\0\0\0\0\0\x10\0\0\xff\xff\xff\xff\xff\xff\xff\xff";

    fn new(_: &str, _: &[u8]) -> OracleGeneral {
        OracleGeneral
    }

    fn is_one(path: &str, head: &[u8]) -> bool {
        is_named(path, "oraclegeneral") && !is_named(path, "oraclegeneralopns") && head.len() >= RECORD
    }

    fn record(&self) -> usize {
        RECORD
    }

    fn read(&mut self, record: &[u8]) -> Result<(Row, usize), Trouble> {
        let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
        let access = Access {
            second: u32_at(0),
            object: u64::from_le_bytes(record[4..12].try_into().expect("eight bytes")),
            size: u64::from(u32_at(12)),
            op: 0,
        };
        Ok((access.row(0, &mut NoOperation::default())?, 0))
    }

    fn notes(&self) -> Vec<String> {
        vec!["the layout has no operations: all requests are reads; objects are taken for sectors".to_owned()]
    }
}

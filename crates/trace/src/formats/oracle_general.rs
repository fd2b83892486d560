//! libCacheSim's oracleGeneral: records of 24 B, little-endian: time (u32, seconds), object (u64), size (u32,
//! bytes), next access (i64); there are no operations. In its block traces the object is the sector, or the offset in
//! bytes: libCacheSim's converters write that for MSR, and the volume's number added to it for Alibaba, K5 and SPC.

use super::Stamps;
use crate::binary::Reader;
use crate::options::Options;
use crate::text::{Row, Trouble};
use ftlab_core::settings::ObjectUnit;
use ftlab_core::workload::{Objects, Op};

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

/// Makes requests of accesses to objects.
pub(super) struct Accesses(Objects);

impl Accesses {
    pub(super) fn new(options: &Options) -> Accesses {
        let unit_bytes = match options.object_unit {
            ObjectUnit::Sector => SECTOR,
            ObjectUnit::Byte => 1,
        };
        Accesses(Objects { unit_bytes, without_op: 0 })
    }

    /// Makes the row of a request.
    pub(super) fn row(&mut self, access: &Access, stream: u16) -> Result<Row, Trouble> {
        let op = match access.op {
            0 => {
                self.0.without_op += 1;
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
        let object = access.object;
        let offset = object.checked_mul(self.0.unit_bytes).ok_or_else(|| {
            Trouble::Line(format!("object {object} is not a sector: this is not a trace of a block device"))
        })?;
        let time_ns = u64::from(access.second) * SECOND_NS;
        Ok(Row::streamed(time_ns, op, [offset, access.size], 0, stream))
    }

    pub(super) fn objects(&self) -> Objects {
        self.0
    }

    /// Returns notes for people who read the figures.
    pub(super) fn notes(&self) -> Vec<String> {
        let unit = if self.0.unit_bytes == 1 { "byte offsets" } else { "sectors" };
        let mut notes = vec![format!("objects are taken for {unit} (workload.object_unit)")];
        if self.0.without_op > 0 {
            notes.insert(0, format!("{} requests name no operation: they are reads", self.0.without_op));
        }
        notes
    }
}

/// The reader of this layout.
pub(crate) struct OracleGeneral(Accesses);

impl Reader for OracleGeneral {
    const TOLD_BY: &'static str = "the name of the file";
    const STAMPS: Stamps = Stamps::Seconds;
    const SAMPLE: &'static [u8] = b"\x64\0\0\0\x08\0\0\0\0\0\0\0\0\x10\0\0\x01\0\0\0\0\0\0\0\
        \x66\0\0\0\x08\0\0\0\0\0\0\0\0\x10\0\0\xff\xff\xff\xff\xff\xff\xff\xff";

    fn new(_: &str, _: &[u8], options: &Options) -> OracleGeneral {
        OracleGeneral(Accesses::new(options))
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
        Ok((self.0.row(&access, 0)?, 0))
    }

    fn notes(&self) -> Vec<String> {
        let sizes =
            "the size of an object is that of its first access, whatever is read of it later".to_owned();
        [self.0.notes(), vec![sizes]].concat()
    }

    fn objects(&self) -> Option<Objects> {
        Some(self.0.objects())
    }
}

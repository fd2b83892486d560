//! blktrace's binary output: one file for each CPU, or one stream for all CPUs. Its records are those of Linux's
//! blktrace_api.h: `struct blk_io_trace` (version 7), or `struct blk_io_trace2` (version 8, Linux 6.19 on), whose
//! action is wider and has the operations of zoned devices.
//!
//! As in blkparse's text, only the rows of one action are counted ([`Counted`]).

use crate::actions::Counted;
use crate::binary::Reader;
use crate::devices::Devices;
use crate::options::Options;
use crate::rwbs::{Flagged, Rwbs};
use crate::text::{Row, Trouble};
use ftlab_core::workload::Op;

const SECTOR: u64 = 512;

/// Where a version has what differs.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    /// First byte of a record, if it is little-endian, else the fourth.
    number: u8,
    /// Bytes of a record.
    record: usize,
    /// Place and number of bytes of the action.
    action: (usize, usize),
    device: usize,
    extra: usize,
}

const VERSIONS: [Version; 2] = [
    Version { number: 7, record: 48, action: (28, 4), device: 36, extra: 46 },
    Version { number: 8, record: 64, action: (32, 8), device: 40, extra: 50 },
];

/// Actions, and blkparse's letters for them.
const LETTERS: [(u8, u8); 4] = [(1, b'Q'), (7, b'D'), (8, b'C'), (12, b'I')];

/// Categories of an action: bits of its field from the 16th on.
const WRITE: u64 = 1 << 1;
const FLUSH: u64 = 1 << 2;
const COMPLETE: u64 = 1 << 7;
const COMMAND: u64 = 1 << 9;
const NOTIFY: u64 = 1 << 10;
const DISCARD: u64 = 1 << 13;
const FUA: u64 = 1 << 15;
const ZONE_APPEND: u64 = 1 << 16;
/// Reset of a zone, and of all zones: what they held is no longer needed.
const ZONE_RESETS: u64 = 3 << 17;

/// The reader of this layout.
pub(crate) struct Blktrace {
    kind: Kind,
    counted: Counted,
    /// Whether completions are wanted, and there are some.
    completions: bool,
    flagged: Flagged,
    devices: Devices,
    /// Number of zone appends counted by another action than their completion.
    appends: u64,
    /// Whether the file's name shows that the trace has other files too.
    one_of_several: bool,
}

/// Byte order and version of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    big_endian: bool,
    version: &'static Version,
}

impl Kind {
    fn of(record: &[u8]) -> Option<Kind> {
        let (big_endian, number) = match record {
            [number, b't', b'a', b'e', ..] => (false, number),
            [b'e', b'a', b't', number, ..] => (true, number),
            _ => return None,
        };
        let version = VERSIONS.iter().find(|version| version.number == *number)?;
        Some(Kind { big_endian, version })
    }
}

/// The fields of a record, in its byte order.
struct Fields<'a> {
    record: &'a [u8],
    kind: Kind,
}

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        let bytes = self.record[at..at + 2].try_into().expect("two bytes");
        if self.kind.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn u32(&self, at: usize) -> u32 {
        let bytes = self.record[at..at + 4].try_into().expect("four bytes");
        if self.kind.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn u64(&self, at: usize) -> u64 {
        let bytes = self.record[at..at + 8].try_into().expect("eight bytes");
        if self.kind.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    fn whole_action(&self) -> u64 {
        match self.kind.version.action {
            (at, 4) => u64::from(self.u32(at)),
            (at, _) => self.u64(at),
        }
    }

    /// Returns blkparse's letter for the action, or 0 if it has none. The action is the lowest byte of the field,
    /// without the flag of control groups.
    fn action(&self) -> u8 {
        let action = self.whole_action() as u8;
        match LETTERS.iter().find(|(number, _)| *number == action) {
            // A second record says where a zone append went; it lacks the category.
            Some((_, b'C')) if self.categories() & (ZONE_APPEND | COMPLETE) == ZONE_APPEND => 0,
            letter => letter.map_or(0, |&(_, letter)| letter),
        }
    }

    fn categories(&self) -> u64 {
        self.whole_action() >> 16
    }

    fn device(&self) -> &[u8] {
        &self.record[self.kind.version.device..][..4]
    }

    fn extra(&self) -> usize {
        usize::from(self.u16(self.kind.version.extra))
    }
}

/// Returns the actions of the records at a file's beginning.
fn actions(head: &[u8], kind: Kind) -> impl Iterator<Item = u8> {
    let mut rest = head;
    std::iter::from_fn(move || {
        loop {
            let fields = Fields { record: rest.get(..kind.version.record)?, kind };
            let (action, notify) = (fields.action(), fields.categories() & NOTIFY != 0);
            rest = rest.get(kind.version.record + fields.extra()..).unwrap_or_default();
            if !notify {
                return Some(action);
            }
        }
    })
}

impl Reader for Blktrace {
    const COMPLETIONS: bool = true;
    const SAMPLE: &'static [u8] =
        b"\x07tae\x01\0\0\0\xe8\x03\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\0\x10\0\0\x01\0\x01\0\
        \xb9\x02\0\0\x10\0\x80\0\0\0\0\0\0\0\x03\0abc\
        \x07tae\x02\0\0\0\xd0\x07\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\x20\0\0\x01\0\x02\x80\
        \xb9\x02\0\0\x10\0\x80\0\0\0\0\0\0\0\0\0";

    fn new(path: &str, head: &[u8], _: &Options) -> Blktrace {
        let kind = Kind::of(head).unwrap_or(Kind { big_endian: false, version: &VERSIONS[0] });
        let number = path.rsplit_once(".blktrace.").map(|(_, number)| number);
        let one_of_several = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        Blktrace {
            kind,
            counted: Counted::of(actions(head, kind)),
            completions: false,
            flagged: Flagged::default(),
            devices: Devices::default(),
            appends: 0,
            one_of_several,
        }
    }

    fn is_one(_: &str, head: &[u8]) -> bool {
        Kind::of(head).is_some()
    }

    fn keep_completions(&mut self) -> bool {
        self.completions = self.counted.completions;
        self.completions
    }

    fn record(&self) -> usize {
        self.kind.version.record
    }

    fn read(&mut self, record: &[u8]) -> Result<(Row, usize), Trouble> {
        if Kind::of(record) != Some(self.kind) {
            let number = self.kind.version.number;
            return Err(Trouble::Input(format!(
                "no record of blktrace (version {number}) begins here: the file is damaged"
            )));
        }
        let fields = Fields { record, kind: self.kind };
        let (extra, categories) = (fields.extra(), fields.categories());
        if categories & NOTIFY != 0 {
            return Ok((Row::Nothing, extra));
        }
        let completes = self.completions && fields.action() == b'C';
        if !(self.counted.counts(fields.action()) || completes) {
            return Ok((Row::Drop("not_issue"), extra));
        }
        let (time_ns, sector, size) = (fields.u64(8), fields.u64(16), u64::from(fields.u32(24)));
        let op = match categories {
            _ if categories & (DISCARD | ZONE_RESETS) != 0 => Some(Op::Trim),
            _ if categories & (WRITE | ZONE_APPEND) != 0 => Some(Op::Write),
            _ => (size > 0).then_some(Op::Read),
        };
        let rwbs = Rwbs { op, preflush: categories & FLUSH != 0, fua: categories & FUA != 0 };
        let row = if size == 0 && (rwbs.preflush || rwbs.fua) {
            if completes { Row::completion(time_ns, Op::Flush, [0, 0]) } else { Row::flush(time_ns) }
        } else if let (Some(op), false) = (op, categories & COMMAND != 0 || size == 0) {
            let offset = sector
                .checked_mul(SECTOR)
                .ok_or_else(|| Trouble::Line(format!("sector {sector} is beyond 2^64 bytes")))?;
            let offset = self.devices.place(fields.device(), offset, size)?;
            if completes {
                Row::completion(time_ns, op, [offset, size])
            } else {
                self.appends += u64::from(categories & ZONE_APPEND != 0 && fields.action() != b'C');
                Row::flagged(time_ns, op, [offset, size], self.flagged.count(rwbs))
            }
        } else {
            Row::Drop("other_op")
        };
        Ok((row, extra))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![self.counted.note()];
        if self.appends > 0 {
            notes.push(format!(
                "{} zone appends have the start of their zone as their address: only a completion says where they went",
                self.appends
            ));
        }
        if self.one_of_several {
            notes.push(
                "blktrace writes a file for each CPU; for all as one: blkparse -i NAME -d all.bin -O"
                    .to_owned(),
            );
        }
        notes.extend(self.flagged.notes());
        notes
    }
}

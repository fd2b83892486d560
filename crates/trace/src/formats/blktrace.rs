//! blktrace's binary output (`struct blk_io_trace` of Linux's blktrace_api.h, version 7): one file for each CPU, or
//! one stream for all CPUs.
//!
//! As in blkparse's text, only the rows of one action are counted ([`Counted`]).

use crate::actions::Counted;
use crate::binary::Reader;
use crate::devices::Devices;
use crate::rwbs::{Flagged, Rwbs};
use crate::text::{Row, Trouble};
use ftlab_core::workload::Op;

const RECORD: usize = 48;
const SECTOR: u64 = 512;

/// Actions, and blkparse's letters for them.
const LETTERS: [(u8, u8); 4] = [(1, b'Q'), (7, b'D'), (8, b'C'), (12, b'I')];

/// Categories of an action: bits in the upper half of its field.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const COMMAND: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

/// The reader of this layout.
pub(crate) struct Blktrace {
    big_endian: bool,
    counted: Counted,
    /// Whether completions are wanted, and there are some.
    completions: bool,
    flagged: Flagged,
    devices: Devices,
    /// Whether the file's name shows that the trace has other files too.
    one_of_several: bool,
}

/// The fields of a record, in its byte order.
struct Fields<'a> {
    record: &'a [u8],
    big_endian: bool,
}

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        let bytes = self.record[at..at + 2].try_into().expect("two bytes");
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn u32(&self, at: usize) -> u32 {
        let bytes = self.record[at..at + 4].try_into().expect("four bytes");
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn u64(&self, at: usize) -> u64 {
        let bytes = self.record[at..at + 8].try_into().expect("eight bytes");
        if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    /// Returns blkparse's letter for the action, or 0 if it has none. The action is the lower half of the field,
    /// without the flag of control groups.
    fn action(&self) -> u8 {
        let action = self.u32(28) as u8;
        LETTERS.iter().find(|(number, _)| *number == action).map_or(0, |&(_, letter)| letter)
    }

    fn categories(&self) -> u32 {
        self.u32(28) >> 16
    }

    fn extra(&self) -> usize {
        usize::from(self.u16(46))
    }
}

/// Returns the actions of the records at a file's beginning.
fn actions(head: &[u8], big_endian: bool) -> impl Iterator<Item = u8> {
    let mut rest = head;
    std::iter::from_fn(move || {
        loop {
            let fields = Fields { record: rest.get(..RECORD)?, big_endian };
            let (action, notify) = (fields.action(), fields.categories() & NOTIFY != 0);
            rest = rest.get(RECORD + fields.extra()..).unwrap_or_default();
            if !notify {
                return Some(action);
            }
        }
    })
}

fn magic(record: &[u8]) -> Option<bool> {
    match record {
        [0x07, b't', b'a', b'e', ..] => Some(false),
        [b'e', b'a', b't', 0x07, ..] => Some(true),
        _ => None,
    }
}

impl Reader for Blktrace {
    const COMPLETIONS: bool = true;
    const SAMPLE: &'static [u8] =
        b"\x07tae\x01\0\0\0\xe8\x03\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\0\x10\0\0\x01\0\x01\0\
        \xb9\x02\0\0\x10\0\x80\0\0\0\0\0\0\0\x03\0abc\
        \x07tae\x02\0\0\0\xd0\x07\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\x20\0\0\x01\0\x02\x80\
        \xb9\x02\0\0\x10\0\x80\0\0\0\0\0\0\0\0\0";

    fn new(path: &str, head: &[u8]) -> Blktrace {
        let big_endian = magic(head) == Some(true);
        let number = path.rsplit_once(".blktrace.").map(|(_, number)| number);
        let one_of_several = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        Blktrace {
            big_endian,
            counted: Counted::of(actions(head, big_endian)),
            completions: false,
            flagged: Flagged::default(),
            devices: Devices::default(),
            one_of_several,
        }
    }

    fn is_one(_: &str, head: &[u8]) -> bool {
        magic(head).is_some()
    }

    fn keep_completions(&mut self) -> bool {
        self.completions = self.counted.completions;
        self.completions
    }

    fn record(&self) -> usize {
        RECORD
    }

    fn read(&mut self, record: &[u8]) -> Result<(Row, usize), Trouble> {
        if magic(record) != Some(self.big_endian) {
            return Err(Trouble::Input(
                "no record of blktrace (version 7) begins here: the file is damaged".into(),
            ));
        }
        let fields = Fields { record, big_endian: self.big_endian };
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
            _ if categories & DISCARD != 0 => Some(Op::Trim),
            _ if categories & WRITE != 0 => Some(Op::Write),
            _ => (size > 0).then_some(Op::Read),
        };
        let rwbs = Rwbs { op, preflush: categories & FLUSH != 0, fua: categories & FUA != 0 };
        let row = if size == 0 && (rwbs.preflush || rwbs.fua) {
            if completes { Row::completion(time_ns, Op::Flush, [0, 0]) } else { Row::flush(time_ns) }
        } else if let (Some(op), false) = (op, categories & COMMAND != 0 || size == 0) {
            let offset = sector
                .checked_mul(SECTOR)
                .ok_or_else(|| Trouble::Line(format!("sector {sector} is beyond 2^64 bytes")))?;
            let offset = self.devices.place(&record[36..40], offset, size)?;
            if completes {
                Row::completion(time_ns, op, [offset, size])
            } else {
                Row::flagged(time_ns, op, [offset, size], self.flagged.count(rwbs))
            }
        } else {
            Row::Drop("other_op")
        };
        Ok((row, extra))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![self.counted.note()];
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

//! libCacheSim's own layout, lcs (traceReader/customizedReader/lcs.h; generalReader/lcs.h until March 2024): a header,
//! then records of one length, little-endian, without gaps.
//!
//! A header of 8,192 B has the magic number, the version (u64), statistics, and the magic number again. Its versions:
//!
//! - 1: time (u32, seconds), object (u64), size (u32, bytes), next access (i64);
//! - 2: time, object, size, operation (8 bits), tenant (24 bits), next access;
//! - 3: time, object, size (i64), operation (8 bits), tenant (24 bits), time to live (u32), next access;
//! - 4 to 8: version 3, then 1, 2, 4, 8 or 16 features (u32 each).
//!
//! The first header, of 1,024 B, has the magic number, the record's fields as a format of Python's `struct` (240 B,
//! `<` first), the numbers of the fields that hold object, size, time, last access, next access, operation, time to
//! live and tenant (a byte each, from 1; 0: there is none), and the magic number at its end. As in oracleGeneral, the
//! object of a block trace is the sector. A tenant is a stream.

use super::Stamps;
use super::oracle_general::{Access, Accesses};
use crate::binary::Reader;
use crate::options::Options;
use crate::streams::Streams;
use crate::text::{Row, Trouble};
use ftlab_core::workload::Objects;

const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
const HEADER: usize = 8192;
const FIRST_HEADER: usize = 1024;
/// Where the first header has the format, and the numbers of the fields.
const FORMAT: std::ops::Range<usize> = 8..248;

/// A number in a record: its first byte, and how many bytes it has.
#[derive(Clone, Copy)]
struct Field {
    at: usize,
    bytes: usize,
}

impl Field {
    fn of(self, record: &[u8]) -> u64 {
        let mut number = [0; 8];
        number[..self.bytes].copy_from_slice(&record[self.at..self.at + self.bytes]);
        u64::from_le_bytes(number)
    }
}

/// The fields of a record that are read.
struct Shape {
    header: usize,
    record: usize,
    time: Field,
    object: Field,
    size: Field,
    op: Option<Field>,
    tenant: Option<Field>,
}

impl Shape {
    /// Returns the shape that a file's header describes, or what is wrong with the header.
    fn of(head: &[u8]) -> Result<Shape, String> {
        match head.get(8) {
            Some(b'<') => Shape::by_format(head),
            _ => Shape::by_version(head),
        }
    }

    fn by_version(head: &[u8]) -> Result<Shape, String> {
        let (Some(version), Some(end)) = (head.get(8..16), head.get(HEADER - 8..HEADER)) else {
            return Err(format!("the file ends within the header of {HEADER} B"));
        };
        if end != MAGIC {
            return Err(format!("the header of {HEADER} B does not end with lcs's magic number"));
        }
        let version = u64::from_le_bytes(version.try_into().expect("eight bytes"));
        let (record, size, op) = match version {
            1 => (24, 4, None),
            2 => (28, 4, Some(16)),
            3 => (36, 8, Some(20)),
            4..=8 => (36 + (4 << (version - 4)), 8, Some(20)),
            _ => return Err(format!("version {version} of lcs, where ftlab reads 1 to 8")),
        };
        Ok(Shape {
            header: HEADER,
            record,
            time: Field { at: 0, bytes: 4 },
            object: Field { at: 4, bytes: 8 },
            size: Field { at: 12, bytes: size },
            op: op.map(|at| Field { at, bytes: 1 }),
            tenant: op.map(|at| Field { at: at + 1, bytes: 3 }),
        })
    }

    fn by_format(head: &[u8]) -> Result<Shape, String> {
        if head.get(FIRST_HEADER - 8..FIRST_HEADER) != Some(&MAGIC) {
            return Err(format!("the header of {FIRST_HEADER} B does not end with lcs's magic number"));
        }
        let mut fields = Vec::new();
        let mut record = 0;
        for &letter in head[FORMAT].iter().skip(1).take_while(|&&letter| letter != 0) {
            let bytes = match letter {
                b'c' | b'b' | b'B' => 1,
                b'h' | b'H' => 2,
                b'i' | b'I' | b'l' | b'L' | b'f' => 4,
                b'q' | b'Q' | b'd' => 8,
                _ => return Err(format!("the header has a field of kind '{}'", letter.escape_ascii())),
            };
            // A number with a fraction is neither a sector nor a time here.
            fields.push((Field { at: record, bytes }, !matches!(letter, b'f' | b'd')));
            record += bytes;
        }
        // Fields are numbered from 1.
        let field = |at: usize| match usize::from(head[FORMAT.end + at]) {
            0 => Ok(None),
            number => match fields.get(number - 1) {
                Some(&(field, true)) => Ok(Some(field)),
                _ => Err(format!("field {number} of the header's format is not a whole number")),
            },
        };
        let need =
            |at, name: &str| field(at)?.ok_or_else(|| format!("the header names no field for the {name}"));
        Ok(Shape {
            header: FIRST_HEADER,
            record,
            object: need(0, "object")?,
            size: need(1, "size")?,
            time: need(2, "time")?,
            op: field(5)?,
            tenant: field(7)?,
        })
    }
}

/// The reader of this layout.
pub(crate) struct Lcs {
    shape: Result<Shape, String>,
    accesses: Accesses,
    streams: Streams,
}

impl Reader for Lcs {
    const STAMPS: Stamps = Stamps::Seconds;
    const STREAMS: Option<&'static str> = Some("tenants");
    const SAMPLE: &'static [u8] = &SAMPLE;

    fn new(_: &str, head: &[u8], options: &Options) -> Lcs {
        let accesses = Accesses::new(options);
        Lcs { shape: Shape::of(head), accesses, streams: Streams::default() }
    }

    fn is_one(_: &str, head: &[u8]) -> bool {
        head.starts_with(&MAGIC)
    }

    fn header(&self) -> usize {
        self.shape.as_ref().map_or(0, |shape| shape.header)
    }

    fn record(&self) -> usize {
        self.shape.as_ref().map_or(1, |shape| shape.record)
    }

    fn read(&mut self, record: &[u8]) -> Result<(Row, usize), Trouble> {
        let shape = self.shape.as_ref().map_err(|wrong| Trouble::Input(wrong.clone()))?;
        let second = shape.time.of(record);
        let access = Access {
            second: u32::try_from(second)
                .map_err(|_| Trouble::Line(format!("time {second} is too large")))?,
            object: shape.object.of(record),
            size: shape.size.of(record),
            op: shape.op.map_or(0, |op| u8::try_from(op.of(record)).unwrap_or(u8::MAX)),
        };
        if i64::try_from(access.size).is_err() {
            return Err(Trouble::Line("the size is negative".into()));
        }
        let stream = match shape.tenant {
            Some(tenant) => self.streams.number(itoa::Buffer::new().format(tenant.of(record)).as_bytes())?,
            None => 0,
        };
        Ok((self.accesses.row(&access, stream)?, 0))
    }

    fn notes(&self) -> Vec<String> {
        self.accesses.notes()
    }

    fn objects(&self) -> Option<Objects> {
        Some(self.accesses.objects())
    }

    fn streams(&self) -> Option<&Streams> {
        self.shape.as_ref().ok().and_then(|shape| shape.tenant).map(|_| &self.streams)
    }
}

/// Two records of version 2.
const SAMPLE: [u8; HEADER + 56] = {
    const RECORDS: [u8; 56] =
        *b"\x64\0\0\0\x08\0\0\0\0\0\0\0\0\x10\0\0\x0c\x01\0\0\xff\xff\xff\xff\xff\xff\xff\xff\
        \x66\0\0\0\x10\0\0\0\0\0\0\0\0\x20\0\0\x0d\x02\0\0\xff\xff\xff\xff\xff\xff\xff\xff";
    let mut sample = [0; HEADER + 56];
    let mut at = 0;
    while at < RECORDS.len() {
        sample[HEADER + at] = RECORDS[at];
        at += 1;
    }
    let mut at = 0;
    while at < MAGIC.len() {
        sample[at] = MAGIC[at];
        sample[HEADER - MAGIC.len() + at] = MAGIC[at];
        at += 1;
    }
    sample[8] = 2;
    sample
};

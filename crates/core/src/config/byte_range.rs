//! A range of addresses.

use super::form::{Bytes, Form, Formed, Misfit};
use super::units::BYTES;
use std::fmt;

/// A range of bytes, "0B..4GiB": from the first to the second address, which is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub from: u64,
    /// One past the last byte; more than `from`.
    pub to: u64,
}

crate::formed!(ByteRange);

impl Formed for ByteRange {
    const FORM: Form = Form {
        takes: "a range such as \"0B..4GiB\"",
        parts: "`from..to`,",
        pattern: "^[^.]+(\\.[0-9]+)?[^.]*\\.\\.[^.]+(\\.[0-9]+)?[^.]*$",
        canonical: ByteRange::canonical,
    };

    /// Reads a range; an empty one is none.
    fn read(text: &str, bytes: &mut Bytes) -> Result<ByteRange, Misfit> {
        let (from, to) = text.split_once("..").ok_or(None)?;
        let range = ByteRange { from: bytes(from.trim()).ok_or(None)?, to: bytes(to.trim()).ok_or(None)? };
        if range.from < range.to { Ok(range) } else { Err(None) }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", BYTES.format(self.from), BYTES.format(self.to))
    }
}

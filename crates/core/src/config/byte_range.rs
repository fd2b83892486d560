//! A range of addresses.

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

impl ByteRange {
    /// Reads a range; `bytes` reads an address. `None`: it is not a range, or it is empty.
    ///
    /// # Errors
    /// Those of `bytes`.
    pub fn parse<E>(text: &str, bytes: impl Fn(&str) -> Result<u64, E>) -> Result<Option<ByteRange>, E> {
        let Some((from, to)) = text.split_once("..") else { return Ok(None) };
        let range = ByteRange { from: bytes(from.trim())?, to: bytes(to.trim())? };
        Ok((range.from < range.to).then_some(range))
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", BYTES.format(self.from), BYTES.format(self.to))
    }
}

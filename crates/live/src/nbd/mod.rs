//! The NBD protocol (fixed newstyle), as a pure function of bytes.
//!
//! A [`Session`] is given what has arrived and says what to make of its beginning; what it answers by itself (the
//! handshake) it appends to a buffer. It knows of no socket and no thread, so that hostile bytes can be tried on it
//! alone. Source: the NetworkBlockDevice project's proto.md.

mod handshake;
pub mod reply;
mod request;

pub(crate) use handshake::ALLOCATION_ID;
pub use handshake::{Export, Session, Turn};
pub use request::{Command, Flags, HEADER, Parsed, Request, parse};

/// Most bytes of one read or write.
pub const MAX_PAYLOAD: u32 = 32 << 20;

/// Error numbers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// Operation not permitted.
    Perm = 1,
    /// Input/output error.
    Io = 5,
    /// Invalid argument.
    Inval = 22,
    /// No space left on device.
    NoSpace = 28,
    /// Value too large.
    Overflow = 75,
    /// Operation not supported.
    NotSup = 95,
}

/// Reads a big-endian number at a place, which has to be there.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

/// As [`u16_at`].
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// As [`u16_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

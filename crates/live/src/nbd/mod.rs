//! The NBD protocol (fixed newstyle), as a pure function of bytes.
//!
//! A [`Session`] is given the received bytes and interprets their beginning; what it answers itself (the handshake) it
//! appends to a buffer. It uses no socket and no thread, so that hostile bytes can be tried on it without a server.
//! Source: the NetworkBlockDevice project's proto.md, for extended headers in its branch extension-ext-header.

mod handshake;
pub mod reply;
mod request;

pub(crate) use handshake::ALLOCATION_ID;
pub use handshake::{Export, Session, Turn};
pub use reply::Form;
pub use request::{Command, Flags, Parsed, Request, header, parse};

/// Upper bound on the bytes of one read or write.
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

/// Reads a big-endian number of 16 bits at `at`, which must lie within `bytes`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

/// Reads a big-endian number of 32 bits, as [`u16_at`] reads one of 16 bits.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Reads a big-endian number of 64 bits, as [`u16_at`] reads one of 16 bits.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

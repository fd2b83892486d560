//! Requests of the transmission phase.
//!
//! Interpretation: with extended headers the data of a write follow also where its flag does not say so. The protocol
//! asks clients for the flag; qemu from 10.0 leaves it out (seen with 10.0.13), and nbdkit serves it.

use super::reply::Form;
use super::{MAX_PAYLOAD, u16_at, u32_at, u64_at};

/// The magic number that begins every request, without extended headers and with them.
const MAGIC: [u32; 2] = [0x2560_9513, 0x21e4_1c71];
/// Bytes of a request's header, without extended headers and with them.
const HEADER: [usize; 2] = [28, 32];

/// Returns the number of bytes of a request's header.
pub fn header(form: Form) -> usize {
    HEADER[usize::from(form == Form::Extended)]
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read.
    Read,
    /// Write; the data follows the header.
    Write,
    /// Disconnect, once all requests are answered.
    Disconnect,
    /// Flush.
    Flush,
    /// Trim.
    Trim,
    /// Prefetch into a cache.
    Cache,
    /// Write zeroes.
    WriteZeroes,
    /// Query which parts are allocated.
    BlockStatus,
    /// A command unknown to this server.
    Unknown(u16),
}

/// Flags of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// With extended headers: the length is that of data which follows the header.
    const PAYLOAD: u16 = 32;

    /// Whether force unit access is requested.
    pub fn fua(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether zeroes must be written rather than left as a hole by a trim.
    pub fn no_hole(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether the client wants only one extent in the answer.
    pub fn one(self) -> bool {
        self.0 & 8 != 0
    }

    /// Whether zeroes should be written only if that is faster than an ordinary write.
    pub fn fast_zero(self) -> bool {
        self.0 & 16 != 0
    }

    /// Whether any flag is set that is not defined for the command.
    pub fn foreign(self, command: Command) -> bool {
        const FUA: u16 = 1;
        let known = match command {
            // Several clients set FUA on every command.
            Command::Read => FUA | 4,
            Command::WriteZeroes => FUA | 2 | 16,
            Command::BlockStatus => FUA | 8,
            _ => FUA,
        };
        self.0 & !known != 0
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// Flags of the command.
    pub flags: Flags,
    /// The client's handle for the request.
    pub cookie: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

/// What a sequence of bytes begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// An incomplete request, which needs at least this many bytes.
    Part(usize),
    /// A request; header and data end at this place.
    Whole(Request, usize),
    /// Not a request: the connection cannot be used any more.
    Bad(&'static str),
}

/// Returns what `bytes` begin with, which a client sends that has negotiated this form.
pub fn parse(bytes: &[u8], form: Form) -> Parsed {
    let extended = form == Form::Extended;
    let seen = bytes.len().min(4);
    if bytes[..seen] != MAGIC[usize::from(extended)].to_be_bytes()[..seen] {
        return Parsed::Bad("a request begins with other bytes than the protocol's");
    }
    if bytes.len() < header(form) {
        return Parsed::Part(header(form));
    }
    let (mut flags, number) = (u16_at(bytes, 4), u16_at(bytes, 6));
    let mut command = match number {
        0 => Command::Read,
        1 => Command::Write,
        2 => Command::Disconnect,
        3 => Command::Flush,
        4 => Command::Trim,
        5 => Command::Cache,
        6 => Command::WriteZeroes,
        7 => Command::BlockStatus,
        other => Command::Unknown(other),
    };
    let length = if extended { u64_at(bytes, 24) } else { u64::from(u32_at(bytes, 24)) };
    let mut payload = command == Command::Write;
    if extended {
        // Behind another command the flag says that there are data, which no command here takes.
        if flags & Flags::PAYLOAD != 0 && !payload {
            payload = true;
            if command != Command::Disconnect {
                command = Command::Unknown(number);
            }
        }
        flags &= !Flags::PAYLOAD;
    }
    // After data that is too long, it cannot be distinguished from what follows.
    if payload && length > u64::from(MAX_PAYLOAD) {
        return Parsed::Bad("the data of a request is longer than the server allows");
    }
    let end = header(form) + if payload { length as usize } else { 0 };
    let request =
        Request { command, flags: Flags(flags), cookie: u64_at(bytes, 8), offset: u64_at(bytes, 16), length };
    if bytes.len() < end { Parsed::Part(end) } else { Parsed::Whole(request, end) }
}

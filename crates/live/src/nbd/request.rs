//! Requests of the transmission phase.

use super::{MAX_PAYLOAD, u16_at, u32_at, u64_at};

/// The magic number that begins every request.
pub const MAGIC: u32 = 0x2560_9513;
/// Bytes of a request's header.
pub const HEADER: usize = 28;

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
    pub length: u32,
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

/// Returns what `bytes` begin with.
pub fn parse(bytes: &[u8]) -> Parsed {
    let seen = bytes.len().min(4);
    if bytes[..seen] != MAGIC.to_be_bytes()[..seen] {
        return Parsed::Bad("a request begins with other bytes than the protocol's");
    }
    if bytes.len() < HEADER {
        return Parsed::Part(HEADER);
    }
    let command = match u16_at(bytes, 6) {
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
    let request = Request {
        command,
        flags: Flags(u16_at(bytes, 4)),
        cookie: u64_at(bytes, 8),
        offset: u64_at(bytes, 16),
        length: u32_at(bytes, 24),
    };
    let data = if command == Command::Write { request.length } else { 0 };
    // After a write that is too long, its data cannot be distinguished from what follows.
    if data > MAX_PAYLOAD {
        return Parsed::Bad("a write is longer than the server allows");
    }
    let end = HEADER + data as usize;
    if bytes.len() < end { Parsed::Part(end) } else { Parsed::Whole(request, end) }
}

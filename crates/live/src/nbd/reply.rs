//! Replies of the transmission phase, simple and structured.

use super::Errno;

const SIMPLE: u32 = 0x6744_6698;
const STRUCTURED: u32 = 0x668e_33ef;
/// Bytes before the data in a reply to a read, for simple replies and for structured ones.
const BEFORE_DATA: [usize; 2] = [16, 28];

/// Writes an answer without data: success or failure.
pub fn plain(out: &mut Vec<u8>, cookie: u64, error: Option<Errno>) {
    out.extend_from_slice(&SIMPLE.to_be_bytes());
    out.extend_from_slice(&error.map_or(0, |error| error as u32).to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
}

/// Writes a failure where the client expects chunks.
pub fn failed(out: &mut Vec<u8>, cookie: u64, error: Errno) {
    chunk(out, 32_769, cookie, 6);
    out.extend_from_slice(&(error as u32).to_be_bytes());
    out.extend_from_slice(&0u16.to_be_bytes());
}

/// Makes a reply to a read with this many zero bytes; returns the reply and the place where these bytes begin.
pub fn read(cookie: u64, offset: u64, length: u32, structured: bool) -> (Vec<u8>, usize) {
    let before = BEFORE_DATA[usize::from(structured)];
    let mut head = Vec::with_capacity(before);
    if structured && length == 0 {
        chunk(&mut head, 0, cookie, 0);
        let end = head.len();
        return (head, end);
    }
    if structured {
        chunk(&mut head, 1, cookie, length + 8);
        head.extend_from_slice(&offset.to_be_bytes());
    } else {
        plain(&mut head, cookie, None);
    }
    // A large buffer comes zeroed from the system, so memory that stays zero is not touched.
    let mut out = vec![0; before + length as usize];
    out[..before].copy_from_slice(&head);
    (out, before)
}

/// Writes extents with their flags, for the context with this number.
pub fn block_status(out: &mut Vec<u8>, cookie: u64, context: u32, extents: &[(u32, u32)]) {
    chunk(out, 5, cookie, 4 + 8 * extents.len() as u32);
    out.extend_from_slice(&context.to_be_bytes());
    for (length, flags) in extents {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
    }
}

/// Writes the head of the only chunk of a reply.
fn chunk(out: &mut Vec<u8>, kind: u16, cookie: u64, length: u32) {
    const DONE: u16 = 1;
    out.extend_from_slice(&STRUCTURED.to_be_bytes());
    out.extend_from_slice(&DONE.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

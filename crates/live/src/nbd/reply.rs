//! Replies of the transmission phase: simple, structured and extended.

use super::Errno;

const SIMPLE: u32 = 0x6744_6698;
const STRUCTURED: u32 = 0x668e_33ef;
const EXTENDED: u32 = 0x6e8a_278c;
/// Types of chunks.
const NONE: u16 = 0;
const OFFSET_DATA: u16 = 1;
const BLOCK_STATUS: u16 = 5;
const BLOCK_STATUS_EXT: u16 = 6;
const ERROR: u16 = 32_769;

/// The form of a client's requests and of the replies to them, as negotiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Simple replies.
    #[default]
    Simple,
    /// Chunks where a reply has data, simple replies otherwise.
    Structured,
    /// Extended headers: 64-bit lengths, and nothing but chunks.
    Extended,
}

/// What a reply repeats of its request, and its form.
#[derive(Clone, Copy, Debug)]
pub struct To {
    /// The form.
    pub form: Form,
    /// The client's handle for the request.
    pub cookie: u64,
    /// The request's offset.
    pub offset: u64,
}

/// Writes that a request without data in its reply has succeeded.
pub fn done(out: &mut Vec<u8>, to: To) {
    match to.form {
        Form::Extended => chunk(out, NONE, to, 0),
        _ => simple(out, to.cookie, 0),
    }
}

/// Writes that a request has failed; `data` says whether its reply would have had data.
pub fn failed(out: &mut Vec<u8>, to: To, error: Errno, data: bool) {
    if to.form == Form::Simple || (to.form == Form::Structured && !data) {
        return simple(out, to.cookie, error as u32);
    }
    chunk(out, ERROR, to, 6);
    out.extend_from_slice(&(error as u32).to_be_bytes());
    out.extend_from_slice(&0u16.to_be_bytes());
}

fn simple(out: &mut Vec<u8>, cookie: u64, error: u32) {
    out.extend_from_slice(&SIMPLE.to_be_bytes());
    out.extend_from_slice(&error.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
}

/// Makes a reply to a read with this many zero bytes; returns the reply and the place where these bytes begin.
pub fn read(to: To, length: u32) -> (Vec<u8>, usize) {
    let mut head = Vec::with_capacity(40);
    match to.form {
        Form::Simple => simple(&mut head, to.cookie, 0),
        _ if length == 0 => chunk(&mut head, NONE, to, 0),
        _ => {
            chunk(&mut head, OFFSET_DATA, to, length + 8);
            head.extend_from_slice(&to.offset.to_be_bytes());
        }
    }
    // A large buffer comes zeroed from the system, so memory that stays zero is not touched.
    let mut out = vec![0; head.len() + length as usize];
    out[..head.len()].copy_from_slice(&head);
    (out, head.len())
}

/// Writes extents (bytes and flags), for the context with this number. Without extended headers no extent may have 2^32
/// bytes or more.
pub fn block_status(out: &mut Vec<u8>, to: To, context: u32, extents: &[(u64, u32)]) {
    let count = extents.len() as u32;
    if to.form == Form::Extended {
        chunk(out, BLOCK_STATUS_EXT, to, 8 + 16 * count);
        out.extend_from_slice(&context.to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        for &(length, flags) in extents {
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&u64::from(flags).to_be_bytes());
        }
        return;
    }
    chunk(out, BLOCK_STATUS, to, 4 + 8 * count);
    out.extend_from_slice(&context.to_be_bytes());
    for &(length, flags) in extents {
        out.extend_from_slice(&(length as u32).to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
    }
}

/// Writes the head of the only chunk of a reply.
fn chunk(out: &mut Vec<u8>, kind: u16, to: To, length: u32) {
    const DONE: u16 = 1;
    let magic = if to.form == Form::Extended { EXTENDED } else { STRUCTURED };
    out.extend_from_slice(&magic.to_be_bytes());
    out.extend_from_slice(&DONE.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&to.cookie.to_be_bytes());
    if to.form == Form::Extended {
        out.extend_from_slice(&to.offset.to_be_bytes());
        out.extend_from_slice(&u64::from(length).to_be_bytes());
    } else {
        out.extend_from_slice(&length.to_be_bytes());
    }
}

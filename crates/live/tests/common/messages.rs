//! Messages of clients, valid and invalid, and what a server may answer to them.

use std::collections::HashMap;

use ftlab_live::nbd::{Command, Export, Form, Request, Session, Turn};
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The magic number that begins an option.
pub const OPTION: &[u8] = b"IHAVEOPT";
const MAGIC: u32 = 0x2560_9513;
const EXTENDED_MAGIC: u32 = 0x21e4_1c71;
/// The flag of a request whose data follows it, with extended headers.
pub const PAYLOAD: u16 = 32;

/// Makes an option of the handshake.
pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [OPTION, &number.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat()
}

/// Makes a request with its data.
pub fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
    let words = [flags.to_be_bytes(), command.to_be_bytes()].concat();
    [
        &MAGIC.to_be_bytes()[..],
        &words,
        &cookie.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
        data,
    ]
    .concat()
}

/// Makes a request with extended headers, with its data.
pub fn extended(flags: u16, command: u16, cookie: u64, offset: u64, length: u64, data: &[u8]) -> Vec<u8> {
    let words = [flags.to_be_bytes(), command.to_be_bytes()].concat();
    let numbers = [cookie, offset, length].map(u64::to_be_bytes).concat();
    [&EXTENDED_MAGIC.to_be_bytes()[..], &words, &numbers, data].concat()
}

/// Makes the client's side of a whole session: flags, options, GO, requests.
pub fn session(random: &mut Xoshiro256PlusPlus) -> Vec<Vec<u8>> {
    let go = [&0u32.to_be_bytes()[..], &1u16.to_be_bytes(), &3u16.to_be_bytes()].concat();
    let context = b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation";
    let mut parts = vec![3u32.to_be_bytes().to_vec()];
    for _ in 0..random.random_range(0..4) {
        parts.push(option([3, 5, 6, 8, 9, 10, 11, 99][random.random_range(0..8)], &[]));
    }
    let extends = random.random_bool(0.5);
    parts.push(option(if extends { 11 } else { 8 }, &[]));
    parts.push(option(10, context));
    parts.push(option(7, &go));
    for cookie in 0..random.random_range(1..12) {
        let (command, mut length) = (random.random_range(0..9), random.random_range(0..20_000));
        // Some requests are beyond the end of the device.
        let mut offset = if random.random_bool(0.2) { 3 << 20 } else { random.random_range(0..2 << 20) };
        match random.random_range(0..16) {
            // Ranges at the limits of their fields, where sums overflow.
            0 => (offset, length) = (u64::MAX - random.random_range(0..3), random.random_range(0..5)),
            1 if command != 1 => (offset, length) = (random.random_range(0..5), u32::MAX),
            // A correct flush, which has no range.
            _ if command == 3 && random.random_bool(0.5) => (offset, length) = (0, 0),
            _ => {}
        }
        let data = vec![cookie as u8; if command == 1 { length as usize } else { 0 }];
        let flags = random.random_range(0..4) | if random.random_bool(0.1) { 16 } else { 0 };
        if !extends {
            parts.push(request(flags, command, cookie, offset, length, &data));
            continue;
        }
        // Now and then data follows another command, or a write has no flag for its data.
        let payload = if (command == 1) != random.random_bool(0.05) { PAYLOAD } else { 0 };
        let follows = command == 1 || payload > 0;
        let data = vec![cookie as u8; if follows { length.min(1 << 20) as usize } else { 0 }];
        let long = match random.random_range(0..20) {
            0 if !follows => u64::MAX - offset,
            1 if !follows => 1 << 33,
            _ if follows => data.len() as u64,
            _ => length.into(),
        };
        parts.push(extended(flags | payload, command, cookie, offset, long, &data));
    }
    parts
}

/// Mutates the messages: overwrites bytes, or truncates, duplicates, swaps or extends messages.
pub fn mutate(random: &mut Xoshiro256PlusPlus, mut parts: Vec<Vec<u8>>) -> Vec<u8> {
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..parts.len());
        let other = random.random_range(0..parts.len());
        let length = parts[at].len();
        match random.random_range(0..6) {
            0 if length > 0 => parts[at][random.random_range(0..length)] = random.random(),
            1 => parts[at].truncate(random.random_range(0..=length)),
            2 => parts.insert(at, parts[other].clone()),
            3 => parts.swap(at, other),
            4 if length >= 4 => {
                let field = random.random_range(0..=length - 4);
                let value: u32 = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX][random.random_range(0..5)];
                parts[at][field..field + 4].copy_from_slice(&value.to_be_bytes());
            }
            _ => (0..random.random_range(1..40)).for_each(|_| parts[at].push(random.random())),
        }
    }
    parts.concat()
}

/// How the server must understand a client's bytes.
pub struct Understood {
    /// The answers to the handshake, greeting included.
    pub handshake: Vec<u8>,
    /// Requests that the server may answer, by cookie, and the number of replies that have come for each cookie.
    requests: HashMap<u64, (Vec<Request>, usize)>,
    form: Form,
    block_status: bool,
}

/// Parses a client's bytes as the server must.
pub fn understand(sent: &[u8], export: &Export) -> Understood {
    let mut handshake = Vec::new();
    let mut session = Session::new(&mut handshake);
    let mut requests: HashMap<u64, (Vec<Request>, usize)> = HashMap::new();
    let mut start = 0;
    loop {
        match session.next(&sent[start..], export, &mut handshake) {
            Turn::Go(length) => start += length,
            Turn::Request(Request { command: Command::Disconnect, .. }, _) | Turn::Wait(_) | Turn::End(_) => {
                break;
            }
            Turn::Request(request, length) => {
                requests.entry(request.cookie).or_default().0.push(request);
                start += length;
            }
        }
    }
    let Session { form, block_status, .. } = session;
    Understood { handshake, requests, form, block_status }
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    Some(bytes.get(at..at + length)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

impl Understood {
    /// Returns what is wrong with the server's output, whose end may be missing.
    pub fn judge(mut self, sent: &[u8]) -> Option<String> {
        let common = sent.len().min(self.handshake.len());
        if sent[..common] != self.handshake[..common] {
            return Some("the handshake is answered otherwise than the protocol alone does".into());
        }
        let mut rest = &sent[common..];
        while !rest.is_empty() {
            match self.reply(rest) {
                Ok(Some(length)) => rest = &rest[length..],
                Ok(None) => return None,
                Err(why) => return Some(why),
            }
        }
        None
    }

    /// Returns the length of the reply at the beginning of `bytes`; `None` if the reply's end is missing.
    fn reply(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let (magic, header) = match (number(bytes, 0, 4), self.form) {
            (None, _) => return Ok(None),
            (Some(0x6744_6698), Form::Simple | Form::Structured) => (0, 16),
            (Some(0x668e_33ef), Form::Structured) => (1, 20),
            (Some(0x6e8a_278c), Form::Extended) => (2, 32),
            (Some(other), form) => {
                return Err(format!("a reply in the form {form:?} begins with {other:#x}"));
            }
        };
        let length = match magic {
            0 => 0,
            1 => number(bytes, 16, 4).unwrap_or(0) as usize,
            _ => number(bytes, 24, 8).unwrap_or(0) as usize,
        };
        // A chunk of data begins with its offset, which must have arrived too.
        let Some(cookie) = number(bytes, 8, 8).filter(|_| bytes.len() >= header + length.min(8)) else {
            return Ok(None);
        };
        let (code, done) = match magic {
            0 => (number(bytes, 4, 4), true),
            _ => (number(bytes, 6, 2), number(bytes, 4, 2) == Some(1)),
        };
        let code = code.expect("the header is there");
        let (several, answered) =
            self.requests.get_mut(&cookie).ok_or(format!("nobody asked with cookie {cookie}"))?;
        // Requests with the same cookie may be answered in any order, and a failure does not say which one it
        // answers.
        let fits = |request: &Request| match (magic, request.command) {
            (0, Command::Read) => self.form == Form::Simple,
            (0, Command::BlockStatus) => !(self.form == Form::Structured && self.block_status),
            (0, _) => true,
            (2, _) if number(bytes, 16, 8) != Some(request.offset) => false,
            (_, Command::Read) => match code {
                0 => request.length == 0,
                1 => {
                    length == request.length as usize + 8 && number(bytes, header, 8) == Some(request.offset)
                }
                code => code == 32_769 && length >= 6,
            },
            (_, _) if code == 32_769 => length >= 6,
            (1, Command::BlockStatus) => code == 5 && length >= 12 && length % 8 == 4,
            (2, Command::BlockStatus) => code == 6 && length >= 24 && length % 16 == 8,
            (2, Command::Unknown(_)) => false,
            (2, _) => code == 0 && length == 0,
            _ => false,
        };
        let request = several
            .iter()
            .find(|request| done && fits(request))
            .ok_or(format!("no request has this reply: code {code}, {length} bytes, cookie {cookie}"))?;
        *answered += 1;
        if *answered > several.len() {
            return Err(format!("more replies than requests with cookie {cookie}"));
        }
        // A plain reply does not state its length: if different requests share a cookie, it is ambiguous.
        let alike = |other: &Request| (other.command, other.length) == (request.command, request.length);
        if magic == 0 && !several.iter().all(alike) {
            return Ok(None);
        }
        let data = match magic {
            0 if request.command == Command::Read && code == 0 => request.length as usize,
            0 => 0,
            _ => length,
        };
        Ok(Some(header + data).filter(|&whole| whole <= bytes.len()))
    }
}

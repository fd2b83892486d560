//! The handshake: options are negotiated until the client chooses the export.

use super::reply::Form;
use super::request::{Parsed, Request, parse};
use super::{MAX_PAYLOAD, u32_at};

const GREETING: [u64; 2] = [0x4e42_444d_4147_4943, OPTION];
const OPTION: u64 = 0x4948_4156_454f_5054;
const REPLY: u64 = 0x0003_e889_0455_65a9;
/// Flags of the handshake, the server's and the client's alike: fixed newstyle, and no zeroes after the export.
const FIXED_NEWSTYLE: u32 = 1;
const NO_ZEROES: u32 = 2;
/// Upper bound on the bytes of an option's data; longer data ends the connection.
const MOST_DATA: u32 = 64 << 10;
/// Upper bound on the number of options that one client may send.
const MOST_OPTIONS: u32 = 256;

const ACK: u32 = 1;
const SERVER: u32 = 2;
const INFO: u32 = 3;
const META_CONTEXT: u32 = 4;
const UNSUPPORTED: u32 = 0x8000_0001;
const POLICY: u32 = 0x8000_0002;
const INVALID: u32 = 0x8000_0003;
const UNKNOWN: u32 = 0x8000_0006;
const EXTENDED_REQUIRED: u32 = 0x8000_000a;

/// The only context that a client can ask for: block status.
const ALLOCATION: &[u8] = b"base:allocation";
/// The number under which that context is reported.
pub(crate) const ALLOCATION_ID: u32 = 1;

/// What is exported: under the empty name and, for clients that name their stream, under the names of the streams.
#[derive(Clone, Debug)]
pub struct Export {
    /// Size of the export, bytes.
    pub size: u64,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Preferred size of a request, bytes.
    pub preferred: u32,
    /// A description for human readers.
    pub description: String,
    /// Number of streams that have a name.
    pub streams: u8,
}

/// What the name of a stream begins with; the number of the stream follows.
const STREAM: &str = "stream-";

impl Export {
    /// Returns the stream of a name: 0 for the empty name, `None` for one that is not exported.
    fn stream(&self, name: &[u8]) -> Option<u16> {
        if name.is_empty() {
            return Some(0);
        }
        (1..=self.streams.into()).find(|stream| format!("{STREAM}{stream}").as_bytes() == name)
    }

    /// Returns the names that are exported.
    fn names(&self) -> impl Iterator<Item = String> {
        std::iter::once(String::new()).chain((1..=self.streams).map(|stream| format!("{STREAM}{stream}")))
    }

    /// Returns what a client is told that asks for another name.
    fn unknown(&self) -> String {
        match self.streams {
            0 => "the only export has the empty name".into(),
            most => format!("the exports are the empty name and {STREAM}1 to {STREAM}{most}"),
        }
    }

    /// Returns the flags that say what the export can do.
    fn flags(&self) -> u16 {
        const HAS_FLAGS: u16 = 1;
        const READ_ONLY: u16 = 2;
        const FLUSH: u16 = 4;
        const FUA: u16 = 8;
        const TRIM: u16 = 32;
        const WRITE_ZEROES: u16 = 64;
        const DF: u16 = 128;
        const MULTI_CONN: u16 = 256;
        const CACHE: u16 = 1024;
        const FAST_ZERO: u16 = 2048;
        let writes = if self.read_only { READ_ONLY } else { TRIM | WRITE_ZEROES | FAST_ZERO };
        HAS_FLAGS | FLUSH | FUA | DF | MULTI_CONN | CACHE | writes
    }
}

/// What to do next on a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// Wait until at least this many bytes have arrived.
    Wait(usize),
    /// Go on: this many bytes have been processed, and what has to be sent is in the buffer.
    Go(usize),
    /// A request of this many bytes, header and data.
    Request(Request, usize),
    /// The connection ends after what is in the buffer has been sent; holds a message if the client violated the
    /// protocol.
    End(Option<&'static str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Flags,
    Options,
    Transmission,
}

/// The protocol state of one client's connection.
#[derive(Clone, Debug)]
pub struct Session {
    phase: Phase,
    no_zeroes: bool,
    options: u32,
    /// The form of requests and replies.
    pub form: Form,
    /// Whether the client may ask for block status.
    pub block_status: bool,
    /// The stream that the client has chosen by the name of its export; 0: none.
    pub stream: u16,
}

impl Session {
    /// Makes the state of a new connection, and appends the server's greeting to `out`.
    pub fn new(out: &mut Vec<u8>) -> Session {
        GREETING.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        out.extend_from_slice(&((FIXED_NEWSTYLE | NO_ZEROES) as u16).to_be_bytes());
        Session {
            phase: Phase::Flags,
            no_zeroes: false,
            options: 0,
            form: Form::Simple,
            block_status: false,
            stream: 0,
        }
    }

    /// Whether the client has chosen the export.
    pub fn transmits(&self) -> bool {
        self.phase == Phase::Transmission
    }

    /// Interprets the beginning of the received bytes, and returns what to do; appends answers of the handshake to
    /// `out`.
    pub fn next(&mut self, bytes: &[u8], export: &Export, out: &mut Vec<u8>) -> Turn {
        match self.phase {
            Phase::Flags => self.flags(bytes),
            Phase::Options => self.option(bytes, export, out),
            Phase::Transmission => match parse(bytes, self.form) {
                Parsed::Part(needed) => Turn::Wait(needed),
                Parsed::Whole(request, end) => Turn::Request(request, end),
                Parsed::Bad(why) => Turn::End(Some(why)),
            },
        }
    }

    fn flags(&mut self, bytes: &[u8]) -> Turn {
        if bytes.len() < 4 {
            return Turn::Wait(4);
        }
        let flags = u32_at(bytes, 0);
        if flags & !(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
            return Turn::End(Some("the client's flags are unknown"));
        }
        if flags & FIXED_NEWSTYLE == 0 {
            return Turn::End(Some("the client does not speak fixed newstyle"));
        }
        self.no_zeroes = flags & NO_ZEROES != 0;
        self.phase = Phase::Options;
        Turn::Go(4)
    }

    fn option(&mut self, bytes: &[u8], export: &Export, out: &mut Vec<u8>) -> Turn {
        const HEADER: usize = 16;
        let seen = bytes.len().min(8);
        if bytes[..seen] != OPTION.to_be_bytes()[..seen] {
            return Turn::End(Some("an option begins with other bytes than the protocol's"));
        }
        if bytes.len() < HEADER {
            return Turn::Wait(HEADER);
        }
        let (option, length) = (u32_at(bytes, 8), u32_at(bytes, 12));
        if length > MOST_DATA {
            return Turn::End(Some("an option is longer than the server allows"));
        }
        let end = HEADER + length as usize;
        let Some(data) = bytes.get(HEADER..end) else { return Turn::Wait(end) };
        self.options += 1;
        if self.options > MOST_OPTIONS {
            return Turn::End(Some("the client haggles without end"));
        }
        self.answer(option, data, export, out).map_or_else(|end| end, |()| Turn::Go(end))
    }

    /// Answers one option; an error ends the connection.
    fn answer(&mut self, option: u32, data: &[u8], export: &Export, out: &mut Vec<u8>) -> Result<(), Turn> {
        let say = |out: &mut Vec<u8>, kind, data: &[u8]| reply(out, option, kind, data);
        match option {
            // EXPORT_NAME can only be refused by closing the connection.
            1 if self.form == Form::Extended => {
                return Err(Turn::End(Some("a client with extended headers chooses its export by GO")));
            }
            1 => {
                let unknown = Turn::End(Some("the client asks for an unknown export"));
                self.stream = export.stream(data).ok_or(unknown)?;
                out.extend_from_slice(&export.size.to_be_bytes());
                out.extend_from_slice(&export.flags().to_be_bytes());
                out.resize(out.len() + if self.no_zeroes { 0 } else { 124 }, 0);
                self.phase = Phase::Transmission;
            }
            2 => {
                say(out, ACK, &[]);
                return Err(Turn::End(None));
            }
            3 if !data.is_empty() => say(out, INVALID, b"LIST has no data"),
            3 => {
                for name in export.names() {
                    let mut entry = (name.len() as u32).to_be_bytes().to_vec();
                    entry.extend_from_slice(name.as_bytes());
                    entry.extend_from_slice(export.description.as_bytes());
                    say(out, SERVER, &entry);
                }
                say(out, ACK, &[]);
            }
            5 => say(out, POLICY, b"no TLS here; use a Unix socket or a tunnel"),
            6 | 7 => self.inform(option, data, export, out),
            8 if !data.is_empty() => say(out, INVALID, b"STRUCTURED_REPLY has no data"),
            8 if self.form == Form::Extended => say(out, EXTENDED_REQUIRED, b"headers are extended already"),
            8 => {
                self.form = Form::Structured;
                say(out, ACK, &[]);
            }
            11 if !data.is_empty() => say(out, INVALID, b"EXTENDED_HEADERS has no data"),
            11 => {
                self.form = Form::Extended;
                say(out, ACK, &[]);
            }
            9 | 10 => self.contexts(option, data, export, out),
            _ => say(out, UNSUPPORTED, &[]),
        }
        Ok(())
    }

    /// Answers the options INFO and GO.
    fn inform(&mut self, option: u32, data: &[u8], export: &Export, out: &mut Vec<u8>) {
        let Some((name, wanted)) = asked(data) else { return reply(out, option, INVALID, b"bad length") };
        let Some(stream) = export.stream(name) else {
            return reply(out, option, UNKNOWN, export.unknown().as_bytes());
        };
        let mut info = 0u16.to_be_bytes().to_vec();
        info.extend_from_slice(&export.size.to_be_bytes());
        info.extend_from_slice(&export.flags().to_be_bytes());
        reply(out, option, INFO, &info);
        for kind in wanted.chunks_exact(2).map(|kind| u16::from_be_bytes([kind[0], kind[1]])) {
            let mut info = kind.to_be_bytes().to_vec();
            match kind {
                1 => info.extend_from_slice(name),
                2 => info.extend_from_slice(export.description.as_bytes()),
                3 => {
                    for size in [1, export.preferred, MAX_PAYLOAD] {
                        info.extend_from_slice(&size.to_be_bytes());
                    }
                }
                _ => continue,
            }
            reply(out, option, INFO, &info);
        }
        reply(out, option, ACK, &[]);
        if option == 7 {
            self.stream = stream;
            self.phase = Phase::Transmission;
        }
    }

    /// Answers the options LIST_META_CONTEXT and SET_META_CONTEXT.
    fn contexts(&mut self, option: u32, data: &[u8], export: &Export, out: &mut Vec<u8>) {
        let Some((name, queries)) = contexts_asked(data) else {
            return reply(out, option, INVALID, b"bad length");
        };
        if self.form == Form::Simple {
            return reply(out, option, INVALID, b"structured replies or extended headers first");
        }
        let sets = option == 10;
        if sets {
            self.block_status = false;
        }
        if export.stream(name).is_none() {
            return reply(out, option, UNKNOWN, export.unknown().as_bytes());
        }
        let listed = |query: &&[u8]| **query == *ALLOCATION || (!sets && **query == *b"base:");
        if queries.iter().any(listed) || (!sets && queries.is_empty()) {
            let number = if sets { ALLOCATION_ID } else { 0 };
            let mut context = number.to_be_bytes().to_vec();
            context.extend_from_slice(ALLOCATION);
            reply(out, option, META_CONTEXT, &context);
            self.block_status |= sets;
        }
        reply(out, option, ACK, &[]);
    }
}

fn reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.extend_from_slice(&REPLY.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
}

/// Splits off a length and the bytes that it counts; returns these bytes and the rest of the data.
fn text(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = (data.len() >= 4).then(|| u32_at(data, 0) as usize)?;
    let end = length.checked_add(4).filter(|&end| end <= data.len())?;
    Some((&data[4..end], &data[end..]))
}

/// Returns the name of an export and the kinds of information requested.
fn asked(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = text(data)?;
    let count = (rest.len() >= 2).then(|| usize::from(u16::from_be_bytes([rest[0], rest[1]])))?;
    (rest.len() == 2 + 2 * count).then(|| (name, &rest[2..]))
}

/// Returns the name of an export and the requested contexts.
fn contexts_asked(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let (name, mut rest) = text(data)?;
    let count = (rest.len() >= 4).then(|| u32_at(rest, 0))?;
    rest = &rest[4..];
    let mut queries = Vec::new();
    for _ in 0..count {
        let (query, behind) = text(rest)?;
        queries.push(query);
        rest = behind;
    }
    rest.is_empty().then_some((name, queries))
}

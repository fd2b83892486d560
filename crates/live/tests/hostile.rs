//! Hostile bytes: the protocol alone, and a server of which another client must notice nothing.
//!
//! The long form: `FTLAB_CAMPAIGN=100000` (tests/README.md).

#[path = "../../trace/tests/common/campaign.rs"]
mod campaign;
mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use campaign::campaign;
use ftlab_live::nbd::{Export, Session, Turn};
use ftlab_live::pace::Time;
use ftlab_live::{Address, Options, Server};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const OPTION: &[u8] = b"IHAVEOPT";
const MAGIC: u32 = 0x2560_9513;

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [OPTION, &number.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat()
}

fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
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

/// The client's side of a whole session: flags, options, GO, requests.
fn session(random: &mut Xoshiro256PlusPlus) -> Vec<Vec<u8>> {
    let go = [&0u32.to_be_bytes()[..], &1u16.to_be_bytes(), &3u16.to_be_bytes()].concat();
    let context = b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation";
    let mut parts = vec![3u32.to_be_bytes().to_vec()];
    for _ in 0..random.random_range(0..4) {
        parts.push(option([3, 5, 6, 8, 9, 10, 99][random.random_range(0..7)], &[]));
    }
    parts.push(option(8, &[]));
    parts.push(option(10, context));
    parts.push(option(7, &go));
    for cookie in 0..random.random_range(1..12) {
        let (command, length) = (random.random_range(0..9), random.random_range(0..20_000));
        let data = vec![cookie as u8; if command == 1 { length } else { 0 }];
        // Some are beyond the end.
        let offset = if random.random_bool(0.2) { 3 << 20 } else { random.random_range(0..2 << 20) };
        parts.push(request(random.random_range(0..4), command, cookie, offset, length as u32, &data));
    }
    parts
}

/// Flips, cuts, doubles, swaps or makes up parts.
fn mutate(random: &mut Xoshiro256PlusPlus, mut parts: Vec<Vec<u8>>) -> Vec<u8> {
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

/// What a session makes of bytes that arrive in pieces; a fault in words.
fn judge(number: u64) -> Option<String> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let parts = session(&mut random);
    let bytes = mutate(&mut random, parts);
    let export = Export { size: 4 << 20, read_only: false, preferred: 4096, description: "test".into() };
    let mut out = Vec::new();
    let mut session = Session::new(&mut out);
    let (mut start, mut end) = (0, 0);
    loop {
        match session.next(&bytes[start..end], &export, &mut out) {
            Turn::Go(0) | Turn::Request(_, 0) => return Some("no byte is dealt with".into()),
            Turn::Go(length) | Turn::Request(_, length) if length > end - start => {
                return Some("more is dealt with than has arrived".into());
            }
            Turn::Go(length) | Turn::Request(_, length) => start += length,
            Turn::Wait(needed) if needed <= end - start => return Some("it waits for what is there".into()),
            Turn::Wait(needed) if needed > (64 << 10) + (32 << 20) + 28 => {
                return Some(format!("it waits for {needed} bytes"));
            }
            Turn::Wait(_) if end == bytes.len() => break,
            Turn::Wait(_) => end = (end + random.random_range(1..3000)).min(bytes.len()),
            Turn::End(_) => break,
        }
    }
    (out.len() > 16 * bytes.len() + 4096).then(|| format!("{} bytes answer {}", out.len(), bytes.len()))
}

#[test]
fn mutated_messages_are_dealt_with_by_the_protocol() {
    campaign("nbd-protocol", 20_000, Duration::from_secs(10), |number, _| judge(number));
}

fn serve(name: &str) -> (Server, PathBuf) {
    let (resolved, prepared) = common::device(&[("ftl.kind", "page")]);
    let path = std::env::temp_dir().join(format!("ftlab-{name}-{}.sock", std::process::id()));
    let options = Options {
        nbd: vec![Address::Unix(path.clone())],
        fuse: None,
        control: None,
        time: Time::Free,
        read_only: false,
        record: None,
        description: "test".into(),
        patience: Duration::from_millis(200),
    };
    let describe = std::sync::Arc::new(|_: &_, _: &_, _| serde_json::Value::Null);
    (Server::start(&resolved.settings, prepared, &options, describe).unwrap(), path)
}

/// A client that does all as it should.
struct Good(UnixStream);

impl Good {
    fn connect(path: &PathBuf) -> Good {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        stream.write_all(&3u32.to_be_bytes()).unwrap();
        stream.write_all(&option(1, &[])).unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Good(stream)
    }

    /// Writes a page and reads it back; what was wrong.
    fn check(&mut self, number: u64) -> Option<String> {
        self.ask(number).map_err(|error| format!("another client: {error}")).err()
    }

    fn ask(&mut self, number: u64) -> std::io::Result<()> {
        let page = vec![number as u8; 4096];
        // Behind what the hostile ones write, but for a rare mutant.
        let at = (2 << 20) + 4096;
        self.0.write_all(&request(0, 1, number, at, 4096, &page))?;
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply)?;
        self.0.write_all(&request(0, 0, number, at, 4096, &[]))?;
        self.0.read_exact(&mut reply)?;
        let mut back = vec![0; 4096];
        self.0.read_exact(&mut back)?;
        let whole = reply[8..] == number.to_be_bytes() && back == page;
        if whole { Ok(()) } else { Err(std::io::Error::other("other bytes came back")) }
    }
}

#[test]
fn hostile_clients_harm_nobody_else() {
    let (server, path) = serve("hostile");
    let mut good = Good::connect(&path);
    campaign("nbd-clients", 300, Duration::from_secs(30), |number, _| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
        let parts = session(&mut random);
        let bytes = match number % 3 {
            // As it should be, but cut off.
            0 => {
                let whole = parts.concat();
                whole[..random.random_range(0..whole.len())].to_vec()
            }
            _ => mutate(&mut random, parts),
        };
        let mut bad = UnixStream::connect(&path).unwrap();
        bad.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        // The server may have hung up.
        let _ = bad.write_all(&bytes);
        if random.random_bool(0.5) {
            bad.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            let _ = bad.read(&mut [0; 4096]);
        }
        drop(bad);
        good.check(number)
    });
    server.look().unwrap();
    server.stop().unwrap();
}

/// Half a message does not keep a connection, an idle client keeps it.
#[test]
fn a_client_that_stops_amid_a_message_is_let_go() {
    let (server, path) = serve("half");
    let mut idle = Good::connect(&path);
    for half in [&b""[..], &3u32.to_be_bytes()[..2], &[&3u32.to_be_bytes()[..], &OPTION[..5]].concat()] {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(half).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 18, "the greeting, and then the end");
    }
    assert_eq!(idle.check(1), None);
    server.stop().unwrap();
    assert!(!path.exists());
}

/// A client that sends requests and reads no reply holds up nobody, nor the end.
#[test]
fn a_client_that_does_not_read_is_survived() {
    let (server, path) = serve("deaf");
    let mut deaf = Good::connect(&path);
    deaf.0.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let reads: Vec<u8> = (0..64).flat_map(|cookie| request(0, 0, cookie, 0, 1 << 20, &[])).collect();
    for _ in 0..50 {
        if deaf.0.write_all(&reads).is_err() {
            break;
        }
    }
    let mut good = Good::connect(&path);
    assert_eq!(good.check(1), None);
    drop(good);
    server.stop().unwrap();
}

//! Hostile bytes, tried on the protocol without a server, and on a server whose other client must notice nothing.
//!
//! `make soak-live` runs the long form.

#[path = "../../trace/tests/common/campaign.rs"]
mod campaign;
mod common;
#[path = "common/messages.rs"]
mod messages;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use campaign::campaign;
use ftlab_live::nbd::{Export, Session, Turn};
use ftlab_live::pace::Time;
use ftlab_live::{Address, Options, Server};
use messages::{OPTION, mutate, option, request, session, understand};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Feeds a session bytes that arrive in pieces; returns what the session did wrong, if anything.
fn judge(number: u64) -> Option<String> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let parts = session(&mut random);
    let bytes = mutate(&mut random, parts);
    let export =
        Export { size: 4 << 20, read_only: false, preferred: 4096, description: "test".into(), streams: 2 };
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
            Turn::Wait(needed) if needed > (64 << 10) + (32 << 20) + 32 => {
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

/// Returns the export of the device served here.
fn export() -> Export {
    let (resolved, _) = common::device(&[("ftl.kind", "page")]);
    let size = resolved.settings.user_bytes();
    let preferred = resolved.settings.ftl.logical_page_bytes.next_power_of_two();
    Export { size, read_only: false, preferred, description: "test".into(), streams: 2 }
}

fn serve(name: &str) -> (Server, PathBuf) {
    serve_in(Time::Free, name, &[])
}

/// Serves a device. If time is real, the thread of one client keeps the time for all of them.
fn serve_in(time: Time, name: &str, keys: &[(&str, &str)]) -> (Server, PathBuf) {
    let (resolved, prepared) = common::device(&[&[("ftl.kind", "page")], keys].concat());
    let path = std::env::temp_dir().join(format!("ftlab-{name}-{}.sock", std::process::id()));
    let options = Options {
        nbd: vec![Address::Unix(path.clone()), Address::parse("tcp:127.0.0.1:0").unwrap()],
        fuse: None,
        control: None,
        metrics: None,
        time,
        wait: ftlab_live::Wait::Auto,
        read_only: false,
        record: None,
        rotate: None,
        description: "test".into(),
        patience: Duration::from_millis(200),
        identity: Default::default(),
        trace_pids: false,
        streams: 2,
    };
    let describe = std::sync::Arc::new(|_: &_, _: &_, _| serde_json::Value::Null);
    (Server::start(&resolved.settings, (prepared, None), &options, describe).unwrap(), path)
}

/// A client that behaves correctly.
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

    /// Writes a page and reads it back; returns what went wrong, if anything.
    fn check(&mut self, number: u64) -> Option<String> {
        self.ask(number).map_err(|error| format!("another client: {error}")).err()
    }

    fn ask(&mut self, number: u64) -> std::io::Result<()> {
        let page = vec![number as u8; 4096];
        // The page is beyond the area that the hostile clients write to, which ends 20,000 bytes after 2 MiB; only a
        // rare mutant reaches it.
        let at = (2 << 20) + (32 << 10);
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

/// Returns the process's memory that is not shared, bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Attacks one server again and again; the server's memory must not grow, and the threads of clients that are gone must
/// end.
fn besiege(
    (name, time): (&str, Time),
    short: u64,
    mut attack: impl FnMut(&Server, &PathBuf, &mut Xoshiro256PlusPlus) -> Option<String>,
) {
    const WARM: u64 = 200;
    const GROWTH: u64 = 48 << 20;
    let (server, path) = serve_in(time, name, &[]);
    let mut good = Good::connect(&path);
    let (mut cases, mut before) = (0, 0);
    campaign(&format!("nbd-{name}"), short, Duration::from_secs(30), |number, _| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
        let fault = attack(&server, &path, &mut random).or_else(|| good.check(number));
        cases += 1;
        if cases == WARM {
            before = memory();
        }
        let grown = memory().saturating_sub(before);
        fault.or_else(|| (before > 0 && grown > GROWTH).then(|| format!("memory has grown by {grown} bytes")))
    });
    server.look().unwrap();
    let since = Instant::now();
    // Each client has two threads, and other tests have theirs.
    while threads() > 60 {
        assert!(since.elapsed() < Duration::from_secs(10), "threads of clients that are gone stay");
        std::thread::sleep(Duration::from_millis(10));
    }
    server.stop().unwrap();
}

/// The server sends only replies that the protocol allows to what it received, and the connection ends.
#[test]
fn hostile_messages_are_answered_by_the_protocol() {
    let export = export();
    besiege(("messages", Time::Free), 300, |_, path, random| {
        let parts = session(random);
        let sent = mutate(random, parts);
        let mut bad = UnixStream::connect(path).unwrap();
        bad.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        bad.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut replies = Vec::new();
        // The server may close the connection before it has read everything.
        let whole = bad.write_all(&sent).and_then(|()| bad.shutdown(Shutdown::Write));
        match bad.read_to_end(&mut replies) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Some("the connection does not end".into());
            }
            Err(error) if whole.is_ok() && error.kind() != ErrorKind::ConnectionReset => {
                return Some(error.to_string());
            }
            _ => {}
        }
        understand(&sent, &export).judge(&replies)
    });
}

/// Clients that leave at any moment, over both kinds of sockets, with replies unread and requests half sent, harm no
/// other client.
#[test]
fn disconnects_harm_nobody_else() {
    besiege(("disconnects", Time::Real { speed: 1.0 }), 300, |server, path, random| {
        let parts = session(random);
        let sent = parts.concat();
        let cut = if random.random_bool(0.3) { sent.len() } else { random.random_range(0..=sent.len()) };
        let tcp = server.addresses().iter().find_map(|address| match address {
            Address::Tcp(at) => Some(*at),
            Address::Unix(_) => None,
        });
        if random.random_bool(0.5) {
            let bad = UnixStream::connect(path).unwrap();
            leave(bad, &sent[..cut], random, |bad| bad.shutdown(Shutdown::Both).unwrap_or(()));
        } else {
            let bad = TcpStream::connect(tcp.unwrap()).unwrap();
            // Half of the clients reset the connection.
            let resets = random.random_bool(0.5).then_some(Duration::ZERO);
            rustix::net::sockopt::set_socket_linger(&bad, resets).unwrap();
            leave(bad, &sent[..cut], random, |_| ());
        }
        None
    });
}

/// Sends some bytes, then reads some or waits, and leaves.
fn leave<S: Read + Write>(mut bad: S, sent: &[u8], random: &mut Xoshiro256PlusPlus, end: impl FnOnce(&S)) {
    let _ = bad.write_all(sent);
    match random.random_range(0..3) {
        0 => _ = bad.read(&mut [0; 100]),
        1 => std::thread::sleep(Duration::from_micros(random.random_range(0..2000))),
        _ => {}
    }
    end(&bad);
}

/// Regression: the offset and length of a flush, which are reserved, were added, and a server built with overflow
/// checks crashed. 100,000 hostile sessions did not find it: offsets were drawn up to 3 MiB, and a sum beyond 2^64
/// required two mutations in the two halves of one flush's offset, which happens in one of some sixty million sessions.
/// Offsets and lengths at their limits are now drawn too.
#[test]
fn a_flush_of_a_range_is_refused() {
    let (server, path) = serve("flush");
    let mut good = Good::connect(&path);
    for (offset, length) in [(u64::MAX, 1), (u64::MAX, 0), (0, 1), (4096, 4096)] {
        good.0.write_all(&request(0, 3, 7, offset, length, &[])).unwrap();
        let mut reply = [0; 16];
        good.0.read_exact(&mut reply).unwrap();
        assert_eq!(reply[4..], [&22u32.to_be_bytes()[..], &7u64.to_be_bytes()].concat(), "{offset} {length}");
    }
    assert_eq!(good.check(1), None);
    server.stop().unwrap();
}

/// A client may send options without choosing the export, but not endlessly.
#[test]
fn a_client_that_haggles_without_end_is_let_go() {
    let (server, path) = serve("haggle");
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let haggling: Vec<u8> = (0..1000).flat_map(|_| option(3, &[])).collect();
    // The server closes the connection while the options are being sent.
    let _ = stream.write_all(&[&3u32.to_be_bytes()[..], &haggling].concat());
    let mut replies = Vec::new();
    let _ = stream.read_to_end(&mut replies);
    let listed = replies.windows(8).filter(|bytes| **bytes == 0x0003_e889_0455_65a9u64.to_be_bytes()).count();
    // Each option has an answer for the empty name, for each of two streams, and an end.
    assert!((4..=1024).contains(&listed), "{listed} replies: four to each of 256 options");
    assert_eq!(Good::connect(&path).check(1), None);
    server.stop().unwrap();
}

/// A client that stops in the middle of a message is disconnected; one that is idle between messages is not.
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

/// A client whose thread keeps the time may stop within a message: it is answered and dropped, and the others
/// are served.
#[test]
fn a_client_that_keeps_the_time_holds_up_nobody() {
    let (server, path) = serve_in(Time::Real { speed: 1.0 }, "keeps", &[("flash.read", "20ms")]);
    let mut good = Good::connect(&path);
    assert_eq!(good.check(1), None);
    let mut half = Good::connect(&path);
    half.0.write_all(&[request(0, 0, 7, (2 << 20) + (32 << 10), 4096, &[]), vec![0x25; 5]].concat()).unwrap();
    for number in 2..20 {
        assert_eq!(good.check(number), None);
    }
    let mut all = Vec::new();
    half.0.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 16 + 4096, "the reply, and then the end");
    assert_eq!(good.check(20), None);
    server.stop().unwrap();
}

/// A client that sends requests and reads no reply delays neither the others nor the end of the server.
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

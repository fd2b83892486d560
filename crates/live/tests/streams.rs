//! Streams of clients, which they choose by the name of their export.

use crate::common;
use crate::messages;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ftlab_live::nbd::{Export, Session, Turn};
use ftlab_live::pace::Time;
use ftlab_live::{Address, Options, Server};
use messages::{option, request};

const EXPORT_NAME: u32 = 1;
const LIST: u32 = 3;
const GO: u32 = 7;
/// Types of replies to options.
const ACK: u32 = 1;
const UNKNOWN: u32 = 0x8000_0006;

fn export(streams: u8) -> Export {
    Export { size: 1 << 20, read_only: false, preferred: 4096, description: "test".into(), streams }
}

/// Makes the data of the option GO for an export of this name.
fn go(name: &str) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes()[..], name.as_bytes(), &0u16.to_be_bytes()].concat()
}

/// Sends an option; returns the session, what came of it, and the answers.
fn answered(streams: u8, number: u32, data: &[u8]) -> (Session, Turn, Vec<u8>) {
    let mut session = Session::new(&mut Vec::new());
    session.next(&3u32.to_be_bytes(), &export(streams), &mut Vec::new());
    let mut out = Vec::new();
    let turn = session.next(&option(number, data), &export(streams), &mut out);
    (session, turn, out)
}

/// Returns the type of the last reply, and whether the client has chosen its export.
fn outcome(streams: u8, name: &str) -> (u32, bool, u16) {
    let (session, _, out) = answered(streams, GO, &go(name));
    let (mut at, mut kind) = (0, 0);
    while at < out.len() {
        let word = |from: usize| u32::from_be_bytes(out[at + from..at + from + 4].try_into().unwrap());
        kind = word(12);
        at += 20 + word(16) as usize;
    }
    (kind, session.transmits(), session.stream)
}

#[test]
fn a_name_chooses_a_stream() {
    assert_eq!(outcome(2, ""), (ACK, true, 0));
    assert_eq!(outcome(2, "stream-1"), (ACK, true, 1));
    assert_eq!(outcome(255, "stream-255"), (ACK, true, 255));
    for name in ["stream-3", "stream-0", "stream-", "stream-01", "2", "STREAM-1"] {
        assert_eq!(outcome(2, name), (UNKNOWN, false, 0), "{name}");
    }
    assert_eq!(outcome(0, "stream-1"), (UNKNOWN, false, 0));
    let (session, turn, _) = answered(2, EXPORT_NAME, b"stream-2");
    assert_eq!((session.stream, session.transmits(), turn), (2, true, Turn::Go(16 + 8)));
    assert!(matches!(answered(1, EXPORT_NAME, b"stream-2").1, Turn::End(Some(_))));
}

#[test]
fn the_names_are_listed() {
    for (streams, names) in [(0, 1), (2, 3)] {
        let out = answered(streams, LIST, &[]).2;
        let text = String::from_utf8_lossy(&out);
        assert_eq!(text.matches("test").count(), names, "each has the description");
        assert_eq!(text.matches("stream-2").count(), usize::from(streams == 2));
    }
}

/// A client that awaits the reply to each request.
struct Client(UnixStream);

impl Client {
    fn connect(path: &Path, name: &str) -> Client {
        let mut socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.read_exact(&mut [0; 18]).unwrap();
        socket.write_all(&3u32.to_be_bytes()).unwrap();
        socket.write_all(&option(EXPORT_NAME, name.as_bytes())).unwrap();
        socket.read_exact(&mut [0; 10]).unwrap();
        Client(socket)
    }

    fn ask(&mut self, flags: u16, command: u16, offset: u64, data: &[u8]) {
        self.0.write_all(&request(flags, command, 1, offset, 4096, data)).unwrap();
        self.0.read_exact(&mut [0; 16]).unwrap();
    }
}

/// Serves a device to clients of three exports; returns the recording without its times.
fn recorded(test: &str, streams: u8, names: [&str; 3]) -> Vec<String> {
    let (resolved, prepared) = common::device(&[("ftl.kind", "page")]);
    let path = |end: &str| -> PathBuf {
        std::env::temp_dir().join(format!("ftlab-{test}-{}.{end}", std::process::id()))
    };
    let (socket, record) = (path("sock"), path("csv"));
    let options = Options {
        nbd: vec![Address::Unix(socket.clone())],
        fuse: None,
        control: None,
        metrics: None,
        time: Time::Free,
        wait: ftlab_live::Wait::Auto,
        read_only: false,
        record: Some(record.clone()),
        rotate: None,
        description: "test".into(),
        patience: Duration::from_secs(10),
        identity: Default::default(),
        trace_pids: false,
        streams,
    };
    let describe = std::sync::Arc::new(|_: &_, _: &_, _| serde_json::Value::Null);
    let server = Server::start(&resolved.settings, (prepared, None), &options, describe).unwrap();
    let mut clients = names.map(|name| Client::connect(&socket, name));
    for (at, client) in (0..).zip(&mut clients) {
        client.ask(0, 1, at * 4096, &[7; 4096]);
    }
    // A trim with FUA is followed by a flush, which belongs to the same client.
    clients[2].ask(1, 4, 0, &[]);
    drop(clients);
    server.stop().unwrap();
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::remove_file(&record).unwrap();
    let without_times = |line: &str| {
        let mut fields: Vec<_> = line.split(',').skip(1).collect();
        let latency = fields.remove(4);
        assert!(latency == "latency_ns" || latency.parse::<u64>().is_ok(), "{line}");
        fields.join(",")
    };
    text.lines().map(without_times).collect()
}

#[test]
fn requests_have_the_stream_of_their_client() {
    let rows = recorded("streams", 2, ["stream-1", "", "stream-2"]);
    let expected =
        ["op,offset,size,outstanding,stream", "W,0,4096,1,1", "W,4096,4096,1,0", "W,8192,4096,1,2"];
    assert_eq!(rows[..4], expected);
    assert_eq!(rows[4..], ["T,0,4096,1,2", "F,0,0,1,2"]);
}

#[test]
fn without_streams_a_recording_has_no_column_of_them() {
    let rows = recorded("plain", 0, ["", "", ""]);
    assert_eq!(rows[..2], ["op,offset,size,outstanding", "W,0,4096,1"]);
}

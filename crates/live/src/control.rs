//! The control socket: one command per line, one answer per line, in JSON.
//!
//! `stats` asks for the result up to now; `flush` is answered when everything written is durable; `trim-all` trims all
//! user data; `cut [OPS [SEED]]` cuts the power, now or in the OPS-th program or erase from now; `stop` stops the
//! device; [`crate::orders`] has further commands. An answer is an object, with `error` in it if the command was
//! refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ftlab_core::metrics::Report;
use serde_json::{Value, json};

use crate::engine::{Asked, Live, Sink};
use crate::nbd::{Command, Flags, Form, Request};
use crate::orders;
use crate::shared::Shared;

/// How long a client may take to send a command, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of the longest command.
const MOST_BYTES: u64 = 4096;
/// Bytes that are read of a command that is longer, so that its sender gets the answer.
const MOST_READ: u64 = 1 << 20;
/// Bytes of each trim that `trim-all` consists of.
const TRIM_BYTES: u64 = 1 << 30;

/// Makes the result up to now, in JSON, from the report, the live figures and the number of clients served.
pub type Describe = dyn Fn(&Report, &Live, u64) -> Value + Send + Sync;

/// Collects the replies to a command's requests.
#[derive(Default)]
struct Replies {
    /// The number of replies that have come, the first error, and whether the power was cut.
    come: Mutex<(usize, u32, bool)>,
    changed: Condvar,
}

impl Sink for Replies {
    fn put(&self, reply: Vec<u8>, _: usize) {
        let mut come = self.come.lock().expect("no panic while a reply is noted");
        come.0 += 1;
        if come.1 == 0 {
            come.1 = u32::from_be_bytes(reply[4..8].try_into().expect("four bytes"));
        }
        self.changed.notify_all();
    }

    fn kick(&self) {}

    fn lose(&self) {
        let mut come = self.come.lock().expect("no panic while a reply is noted");
        come.2 = true;
        self.changed.notify_all();
    }
}

/// Returns the device's result up to now.
pub fn described(shared: &Shared, describe: &Describe) -> Value {
    let (report, live) = shared.report();
    describe(&report, &live, shared.connections.load(Ordering::Relaxed))
}

/// Answers the commands of one client.
pub fn serve(shared: &Shared, stream: &UnixStream, describe: &Describe) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = Vec::new();
    BufReader::new(stream.take(MOST_READ)).read_until(b'\n', &mut line)?;
    let long = line.len() as u64 > MOST_BYTES;
    let answer = match std::str::from_utf8(&line).map(str::trim_end) {
        _ if long => {
            json!({ "error": format!("the command is longer than {MOST_BYTES} bytes: send it in parts") })
        }
        Err(_) => json!({ "error": "the command is not text in UTF-8" }),
        Ok("stats") => described(shared, describe),
        Ok("flush") => ask(shared, &[(Command::Flush, 0, 0)]),
        Ok("trim-all") => {
            let size = shared.export.size;
            let trims: Vec<(Command, u64, u32)> = (0..size.div_ceil(TRIM_BYTES))
                .map(|at| at * TRIM_BYTES)
                .map(|at| (Command::Trim, at, (size - at).min(TRIM_BYTES) as u32))
                .collect();
            ask(shared, &trims)
        }
        Ok("stop") => {
            shared.asked_to_stop.store(true, Ordering::Relaxed);
            json!({})
        }
        Ok(other) => match other
            .strip_prefix("cut")
            .map(|words| planned(words).and_then(|(after, seed)| cut(shared, after, seed)))
        {
            Some(Ok(())) => json!({}),
            Some(Err(why)) => json!({ "error": why }),
            None => orders::obey(shared, other),
        },
    };
    let mut out = stream;
    writeln!(out, "{answer}")
}

/// Parses the words after `cut`: returns the number of operations and the seed, each 0 if it is not given.
fn planned(words: &str) -> Result<(u64, u64), String> {
    let numbers: Result<Vec<u64>, _> = words.split_whitespace().map(str::parse).collect();
    match numbers.as_deref() {
        Ok([]) => Ok((0, 0)),
        Ok(&[after]) => Ok((after, 0)),
        Ok(&[after, seed]) => Ok((after, seed)),
        _ => Err(format!("cut{words}: write cut, or cut OPS, or cut OPS SEED")),
    }
}

/// Cuts the power in the `after`-th program or erase from now, or immediately if `after` is 0.
///
/// # Errors
/// A message, if the power cannot be cut.
pub fn cut(shared: &Shared, after: u64, seed: u64) -> Result<(), String> {
    let mut answered = Vec::new();
    let mut outcome = Ok(());
    shared.with_engine(&mut answered, |engine| {
        engine.catch_up()?;
        outcome = engine.cut(after, seed);
        Ok(())
    });
    answered.iter().for_each(|other| other.kick());
    outcome
}

/// Has the engine serve requests as it serves a client's, and returns the command's answer.
fn ask(shared: &Shared, requests: &[(Command, u64, u32)]) -> Value {
    let replies = Arc::new(Replies::default());
    let sink: Arc<dyn Sink> = replies.clone();
    let mut answered = Vec::new();
    shared.with_engine(&mut answered, |engine| {
        engine.catch_up()?;
        for &(command, offset, length) in requests {
            let request = Request { command, flags: Flags(0), cookie: 0, offset, length: length.into() };
            engine.ask(&Asked {
                request,
                data: &[],
                form: Form::Simple,
                stream: 0,
                program: 0,
                sink: &sink,
                charged: 0,
            });
        }
        engine.go()
    });
    answered.iter().for_each(|other| other.kick());
    let mut come = replies.come.lock().expect("no panic while a reply is noted");
    while come.0 < requests.len() && !come.2 {
        come = replies.changed.wait(come).expect("no panic while a reply is noted");
    }
    match come.1 {
        _ if come.2 => json!({ "error": "the power was cut" }),
        0 => json!({}),
        1 => json!({ "error": "the export is read-only" }),
        number => json!({ "error": format!("the device refused (error {number})") }),
    }
}

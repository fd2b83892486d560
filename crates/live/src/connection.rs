//! The connection of one client: receives its bytes, and passes its requests to the engine.

use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::awake::HOLD;
use crate::clock::{LOOK, Waiting, sleep_exactly};
use crate::engine::{Asked, Sink};
use crate::nbd::{Command, MAX_PAYLOAD, Request, Session, Turn, header};
use crate::outbox::Outbox;
use crate::shared::Shared;
use crate::socket::Stream;

/// Usual size of the buffer for received bytes.
const CHUNK: usize = 256 << 10;
/// Bytes of data and replies after which no more requests are taken in until replies have been sent: about what a
/// socket holds.
const BATCH: usize = 128 << 10;
/// The durations of waits that are probably spent mostly on waking a processor: waking may take ten times as long as
/// answering, while a wait on a processor that is awake is shorter.
const WAKING: RangeInclusive<Duration> = Duration::from_micros(20)..=Duration::from_micros(150);
/// Number of messages that a thread awaits without sleeping after a wait within [`WAKING`]; then it sleeps again, to
/// measure how long the wait takes.
const AWAKE: u32 = 64;
/// Number of prompt requests in a row after which a client counts as one that sends no request before it has received
/// the previous reply.
const PROMPT: u32 = 32;

/// Bytes that have arrived and have not been processed.
struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    fn waiting(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Makes room for a message of this many bytes, and for some of what may follow it.
    fn reserve(&mut self, needed: usize) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > 4 * CHUNK {
                self.bytes = vec![0; CHUNK];
            }
        }
        let room = needed.max(self.end - self.start + 1);
        if self.start + room > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if room > self.bytes.len() {
            self.bytes.resize(room.next_multiple_of(CHUNK), 0);
        }
    }
}

/// A connection, served by its own thread.
pub struct Connection {
    shared: Arc<Shared>,
    stream: Arc<Stream>,
    outbox: Arc<Outbox>,
    sink: Arc<dyn Sink>,
    inbox: Inbox,
    session: Session,
    /// Number of the client's program, where programs are told apart.
    program: u16,
    /// Number of messages still to be awaited without sleeping: see [`WAKING`].
    awake: u32,
    /// How long the last wait for input took; [`Duration::MAX`] if due events were awaited at the same time.
    waited: Duration,
    /// Number of times in a row that the client, while it was the only one, has sent a single request as soon as it
    /// had the previous reply.
    prompt: u32,
    /// The moment at which the connection wakes while it waits for its client: see
    /// [`Clock::keep`](crate::clock::Clock::keep).
    kept: Option<Instant>,
}

impl Connection {
    /// Makes the connection and greets the client.
    pub fn new(shared: Arc<Shared>, stream: Arc<Stream>, outbox: Arc<Outbox>) -> Connection {
        let mut greeting = Vec::new();
        let session = Session::new(&mut greeting);
        outbox.say(&greeting);
        let sink: Arc<dyn Sink> = outbox.clone();
        let program = shared.engine().program(stream.process());
        let inbox = Inbox { bytes: vec![0; CHUNK], start: 0, end: 0 };
        Connection {
            shared,
            stream,
            outbox,
            sink,
            inbox,
            session,
            program,
            awake: 0,
            waited: Duration::MAX,
            prompt: 0,
            kept: None,
        }
    }

    /// Serves the client until it disconnects or violates the protocol, or the server stops.
    pub fn run(mut self) {
        sleep_exactly();
        let mut needed = 1;
        while self.outbox.wait_for_room() && self.receive(needed) {
            match self.take_in() {
                Some(more) => needed = more,
                None => break,
            }
        }
        self.leave_the_clock();
        self.outbox.end();
        self.outbox.kill();
    }

    /// Leaves due events to other threads.
    fn leave_the_clock(&mut self) {
        let _engine = self.shared.engine();
        self.shared.clock.keep(&mut self.kept, None);
        self.shared.clock.wake();
    }

    /// Receives until a message of this many bytes may be complete; returns false if no more bytes will come.
    fn receive(&mut self, needed: usize) -> bool {
        let mut since = Instant::now();
        self.inbox.reserve(needed);
        if self.inbox.waiting().len() >= needed {
            return true;
        }
        loop {
            match self.bytes() {
                Ok(0) => return false,
                Ok(length) => {
                    self.inbox.end += length;
                    if self.inbox.waiting().len() >= needed {
                        return true;
                    }
                    since = Instant::now();
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.outbox.is_dead() || self.shared.stopping.load(Ordering::Relaxed) {
                        return false;
                    }
                    // A client may be idle as long as it likes, but not within a message or the handshake.
                    let amid = !self.inbox.waiting().is_empty() || !self.session.transmits();
                    if amid && since.elapsed() >= self.shared.patience {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
    }

    /// Receives the next bytes; while this connection keeps the time, lets due events happen meanwhile.
    fn bytes(&mut self) -> std::io::Result<usize> {
        let waiting = match self.shared.awake.is_allowed() {
            true if self.prompt >= PROMPT && self.shared.awake.keep() => Waiting::AmongAwake,
            true => Waiting::Awake,
            false => Waiting::Asleep,
        };
        self.waited = Duration::MAX;
        let asked = Instant::now();
        while let Some(due) = self.kept {
            let into = &mut self.inbox.bytes[self.inbox.end..];
            if let Some(outcome) = self.stream.receive_until(into, due, waiting) {
                return outcome;
            }
            if !self.catch_up() {
                return Ok(0);
            }
            if asked.elapsed() >= LOOK {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
        let into = &mut self.inbox.bytes[self.inbox.end..];
        let asked = Instant::now();
        if self.awake > 0 && waiting == Waiting::Awake {
            self.awake -= 1;
            if let Some(outcome) = self.stream.receive_awake(into, asked + *WAKING.end()) {
                self.waited = asked.elapsed();
                return outcome;
            }
        }
        let outcome = self.stream.receive(into, true);
        self.waited = asked.elapsed();
        self.awake = if WAKING.contains(&self.waited) { AWAKE } else { 0 };
        outcome
    }

    /// Lets due events happen; returns false if the engine can no longer be used.
    fn catch_up(&mut self) -> bool {
        let Connection { shared, outbox, kept, .. } = self;
        let mut answered = Vec::new();
        let outcome = shared.with_engine(&mut answered, |engine| {
            let outcome = engine.catch_up();
            shared.clock.keep(kept, engine.due().filter(|_| outbox.owes()));
            outcome
        });
        answered.iter().for_each(|sink| sink.kick());
        outcome
    }

    /// Processes what has arrived; returns the number of bytes needed to continue, or `None` if the connection
    /// ends.
    fn take_in(&mut self) -> Option<usize> {
        let mut said = Vec::new();
        let mut more = None;
        while !self.session.transmits() {
            let turn = self.session.next(self.inbox.waiting(), &self.shared.export, &mut said);
            match turn {
                Turn::Go(bytes) => self.inbox.start += bytes,
                Turn::Wait(needed) => {
                    more = Some(needed);
                    break;
                }
                Turn::Request(..) | Turn::End(_) => {
                    self.outbox.say(&said);
                    return None;
                }
            }
        }
        if !said.is_empty() {
            self.outbox.say(&said);
        }
        if more.is_some() { more } else { self.requests() }
    }

    /// Hands requests that have arrived to the engine; returns the same as [`Connection::take_in`].
    fn requests(&mut self) -> Option<usize> {
        let Connection { shared, inbox, session, sink, outbox, kept, .. } = self;
        let (form, stream, program) = (session.form, session.stream, self.program);
        let mut more = None;
        let (mut requests, mut taken_in) = (0, 0);
        let mut answered = Vec::new();
        let outcome = shared.with_engine(&mut answered, |engine| {
            engine.catch_up()?;
            loop {
                match session.next(inbox.waiting(), &shared.export, &mut Vec::new()) {
                    Turn::Request(Request { command: Command::Disconnect, .. }, _) => break,
                    Turn::Request(mut request, end) => {
                        if request.command == Command::BlockStatus && !session.block_status {
                            request.command = Command::Unknown(7);
                        }
                        let long = request.command == Command::BlockStatus;
                        let data = &inbox.waiting()[header(form)..end];
                        let charged = outbox.charge(size(&request));
                        engine.ask(&Asked { request, data, form, stream, program, sink, charged });
                        inbox.start += end;
                        requests += 1;
                        taken_in += charged;
                        // The status of a large device takes long, and others wait meanwhile.
                        if taken_in >= BATCH || long {
                            more = Some(1);
                            break;
                        }
                    }
                    Turn::Wait(needed) => {
                        more = Some(needed);
                        break;
                    }
                    Turn::Go(_) | Turn::End(_) => break,
                }
            }
            let outcome = engine.go();
            shared.clock.keep(kept, engine.due().filter(|_| outbox.owes()));
            outcome
        });
        if requests > 0 {
            let prompt = requests == 1 && self.waited <= HOLD && shared.clients().len() == 1;
            self.prompt = if prompt { self.prompt.saturating_add(1) } else { 0 };
        }
        // This also sends replies that did not go through the simulation, such as refusals.
        if taken_in > 0 {
            outbox.flush();
        }
        answered.iter().filter(|other| !Arc::ptr_eq(other, sink)).for_each(|other| other.kick());
        if outcome { more } else { None }
    }
}

/// Returns the number of bytes of a request's data or, for a read, of its reply.
fn size(request: &Request) -> usize {
    match request.command {
        // A longer one is refused.
        Command::Read | Command::Write => request.length.min(MAX_PAYLOAD.into()) as usize,
        _ => 0,
    }
}

/// Sets the timeouts of a connection's socket.
pub fn prepare(stream: &Stream, patience: Duration) -> std::io::Result<()> {
    stream.set_timeouts(LOOK, patience)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::Flags;

    /// Regression: the charge for a read of 2^64 - 1 bytes overflowed, which ended the device.
    #[test]
    fn what_is_refused_is_charged_little() {
        let request =
            Request { command: Command::Read, flags: Flags(0), cookie: 0, offset: 0, length: u64::MAX };
        assert_eq!(size(&request), MAX_PAYLOAD as usize);
    }
}

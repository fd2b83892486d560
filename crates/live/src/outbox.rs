//! Replies on their way to one client. A thread with replies first sends as much as the socket takes without waiting; a
//! thread of the connection sends the rest, so that a client that does not read delays nobody else.

use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::engine::Sink;
use crate::socket::Stream;

/// Charge of a client, in bytes, above which its further requests wait.
const MOST_BYTES: usize = 64 << 20;
/// Capacity, in bytes, up to which the buffer of replies that have been sent is kept for later replies.
const KEPT_BYTES: usize = 256 << 10;
/// Bytes that a request is charged in addition to its data.
const REQUEST_BYTES: usize = 4096;

/// Whether the socket is full, and who then sends the replies.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Full {
    /// The socket took everything.
    #[default]
    No,
    /// The socket took no more; the connection's thread has to send the rest.
    Asked,
    /// A thread is sending the replies and waits for the socket.
    Sending,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// How many of `bytes` have been sent.
    sent: usize,
    /// Number of requests that have not been answered.
    open: usize,
    /// Bytes charged for unanswered requests and for replies that have not been sent.
    charged: usize,
    /// Whether the socket takes no more, and who then sends the rest.
    full: Full,
    /// Whether somebody waits until everything is answered and sent.
    ending: bool,
    /// Whether no more replies will come.
    ended: bool,
    /// Whether the client has gone, or should not be waited for.
    dead: bool,
}

/// The replies to one client, and the socket that takes them.
pub struct Outbox {
    stream: Arc<Stream>,
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// The same as [`Waiting::dead`], for readers that only query it.
    dead: AtomicBool,
}

impl Outbox {
    /// Makes an empty outbox for a connection.
    pub fn new(stream: Arc<Stream>) -> Outbox {
        Outbox { stream, waiting: Mutex::default(), changed: Condvar::new(), dead: AtomicBool::new(false) }
    }

    fn open(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no panic while replies are put")
    }

    /// Charges the client for a request with this many bytes of data or of reply; returns the charge, which holds
    /// until the request is answered.
    pub fn charge(&self, bytes: usize) -> usize {
        let mut waiting = self.open();
        waiting.open += 1;
        waiting.charged += bytes + REQUEST_BYTES;
        bytes + REQUEST_BYTES
    }

    /// Whether requests are still unanswered.
    pub fn owes(&self) -> bool {
        self.open().open > 0
    }

    /// Waits until the client has read enough of its replies for another request; returns false if the client has gone.
    pub fn wait_for_room(&self) -> bool {
        let mut waiting = self.open();
        while waiting.charged > MOST_BYTES && !waiting.dead {
            waiting = self.changed.wait(waiting).expect("no panic while replies are put");
        }
        !waiting.dead
    }

    /// Waits until all requests are answered and all replies sent; nothing is accepted afterwards.
    pub fn end(&self) {
        let mut waiting = self.open();
        waiting.ending = true;
        while (waiting.open > 0 || waiting.sent < waiting.bytes.len() || waiting.full != Full::No)
            && !waiting.dead
        {
            waiting = self.changed.wait(waiting).expect("no panic while replies are put");
        }
        waiting.ended = true;
        self.changed.notify_all();
    }

    /// Whether the client is gone.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Gives up on the client.
    pub fn kill(&self) {
        self.fail(&mut self.open());
    }

    fn fail(&self, waiting: &mut Waiting) {
        waiting.dead = true;
        waiting.charged -= waiting.bytes.len() - waiting.sent;
        self.dead.store(true, Ordering::Relaxed);
        waiting.bytes = Vec::new();
        waiting.sent = 0;
        self.stream.shut(Shutdown::Both);
        self.changed.notify_all();
    }

    /// Adds bytes that answer no request.
    pub fn say(&self, bytes: &[u8]) {
        let mut waiting = self.open();
        waiting.bytes.extend_from_slice(bytes);
        waiting.charged += bytes.len();
        drop(waiting);
        self.kick();
    }

    /// Sends, until the connection ends, the replies that the socket did not take immediately.
    pub fn run(&self) {
        let mut waiting = self.open();
        loop {
            while waiting.full != Full::Asked && !waiting.ended && !waiting.dead {
                waiting = self.changed.wait(waiting).expect("no panic while replies are put");
            }
            if waiting.ended || waiting.dead {
                return;
            }
            waiting = self.send(waiting);
        }
    }

    /// Sends the replies that are waiting, and may wait for the client to read them; for the thread that receives the
    /// client's requests.
    pub fn flush(&self) {
        self.kick();
        let waiting = self.open();
        if waiting.full == Full::Asked {
            drop(self.send(waiting));
        }
    }

    /// Sends the replies that are waiting; waits for the socket up to its timeout.
    fn send<'a>(&'a self, mut waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        waiting.full = Full::Sending;
        while waiting.sent < waiting.bytes.len() && !waiting.dead {
            let bytes = std::mem::take(&mut waiting.bytes);
            let mut sent = std::mem::take(&mut waiting.sent);
            drop(waiting);
            let mut failed = false;
            while sent < bytes.len() && !failed {
                match self.stream.send(&bytes[sent..], true) {
                    Ok(length) => {
                        sent += length;
                        self.discharge(&mut self.open(), length);
                    }
                    Err(_) => failed = true,
                }
            }
            waiting = self.open();
            if failed {
                waiting.charged -= bytes.len() - sent;
                self.fail(&mut waiting);
            }
        }
        waiting.full = Full::No;
        self.changed.notify_all();
        waiting
    }

    fn discharge(&self, waiting: &mut Waiting, bytes: usize) {
        let before = waiting.charged;
        waiting.charged -= bytes;
        if before > MOST_BYTES && waiting.charged <= MOST_BYTES {
            self.changed.notify_all();
        }
    }
}

impl Sink for Outbox {
    fn put(&self, reply: Vec<u8>, charged: usize) {
        let mut waiting = self.open();
        waiting.open -= 1;
        // From here on, the reply's own bytes are charged instead of the request's.
        let bytes = if waiting.dead { 0 } else { reply.len() };
        waiting.charged += bytes;
        self.discharge(&mut waiting, charged);
        if waiting.dead {
            self.changed.notify_all();
        } else if waiting.bytes.is_empty() && reply.len() > KEPT_BYTES {
            waiting.bytes = reply;
        } else {
            waiting.bytes.extend_from_slice(&reply);
        }
    }

    fn kick(&self) {
        let mut waiting = self.open();
        while waiting.full == Full::No && !waiting.dead && waiting.sent < waiting.bytes.len() {
            match self.stream.send(&waiting.bytes[waiting.sent..], false) {
                Ok(length) => {
                    waiting.sent += length;
                    self.discharge(&mut waiting, length);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    waiting.full = Full::Asked;
                    self.changed.notify_all();
                }
                Err(_) => return self.fail(&mut waiting),
            }
        }
        if waiting.sent == waiting.bytes.len() {
            waiting.sent = 0;
            if waiting.bytes.capacity() > KEPT_BYTES {
                waiting.bytes = Vec::new();
            } else {
                waiting.bytes.clear();
            }
            // Waking a thread for each reply would cost more than the reply.
            if waiting.ending && waiting.open == 0 {
                self.changed.notify_all();
            }
        }
    }

    fn lose(&self) {
        self.kill();
    }
}

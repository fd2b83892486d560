//! Listeners: for NBD clients, for commands, for metrics.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use crate::connection::{Connection, prepare};
use crate::control::{self, Describe};
use crate::metrics;
use crate::outbox::Outbox;
use crate::shared::Shared;
use crate::socket::{Listener, Stream};

/// Upper bound on the number of connections at a time; further ones are closed immediately.
const MOST_CONNECTIONS: usize = 256;
/// How long to wait if no connection can be accepted, for example because no file descriptor is left; one may be
/// closed meanwhile.
const PAUSE: Duration = Duration::from_millis(10);

/// Serves each client that connects.
pub fn take_connections(listener: &Listener, shared: &Arc<Shared>, threads: &Mutex<Vec<JoinHandle<()>>>) {
    take(listener, shared, |stream| {
        let mut clients = shared.clients();
        if clients.len() >= MOST_CONNECTIONS || prepare(&stream, shared.patience).is_err() {
            return;
        }
        let stream = Arc::new(stream);
        let outbox = Arc::new(Outbox::new(stream.clone()));
        clients.push(stream.clone());
        drop(clients);
        shared.connections.fetch_add(1, Ordering::Relaxed);
        let shared = shared.clone();
        let thread = spawn(move || serve(shared, stream, outbox));
        let mut threads = threads.lock().expect("no panic while threads are listed");
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    });
}

/// Answers commands and queries for metrics, one client after another; a client that has gone is ignored.
pub fn take_questions(listener: &Listener, shared: &Shared, describe: &Describe) {
    take(listener, shared, |stream| {
        _ = match &stream {
            Stream::Unix(stream) => control::serve(shared, stream, describe),
            Stream::Tcp(stream) => metrics::serve(shared, stream),
        };
    });
}

fn take(listener: &Listener, shared: &Shared, mut serve: impl FnMut(Stream)) {
    loop {
        let stream = listener.accept();
        if shared.closing.load(Ordering::Relaxed) {
            return;
        }
        match stream {
            Ok(stream) => serve(stream),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Serves one client until its connection ends.
fn serve(shared: Arc<Shared>, stream: Arc<Stream>, outbox: Arc<Outbox>) {
    let sender = outbox.clone();
    let counts = shared.clone();
    let sends = spawn(move || counts.serving.during(|| sender.run()));
    let connection = Connection::new(shared.clone(), stream.clone(), outbox.clone());
    shared.serving.during(|| connection.run());
    // The sending thread ends with the connection.
    let _ = sends.join();
    shared.clients().retain(|other| !Arc::ptr_eq(other, &stream));
}

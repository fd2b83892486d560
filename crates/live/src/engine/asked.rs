//! What a client asks for, where the reply goes, and the replies that need no simulation.

use std::sync::Arc;

use crate::nbd::reply::{self, Form, To};
use crate::nbd::{Command, Errno, Request};

/// Where replies go.
pub trait Sink: Send + Sync {
    /// Takes the reply to a request that was charged this many bytes (see [`Asked::charged`]); must not block.
    fn put(&self, reply: Vec<u8>, charged: usize);
    /// Sends the replies that were put into the sink; must not block. Called by whoever held the engine, not by the
    /// engine itself.
    fn kick(&self);
    /// Cuts the client off, because the device has lost its power and no reply will come.
    fn lose(&self);
}

/// A client's request with its data, and where the reply goes.
pub struct Asked<'a> {
    /// The request.
    pub request: Request,
    /// Data of a write.
    pub data: &'a [u8],
    /// The form of the reply.
    pub form: Form,
    /// Stream of the request; 0: none.
    pub stream: u16,
    /// Number of the program that asks, where programs are told apart ([`super::Engine::program`]); else 0.
    pub program: u16,
    /// The client, to which the reply goes.
    pub sink: &'a Arc<dyn Sink>,
    /// Bytes charged to the client until the request is answered.
    pub charged: usize,
}

impl Asked<'_> {
    /// Returns what the reply repeats of the request.
    pub(super) fn to(&self) -> To {
        To { form: self.form, cookie: self.request.cookie, offset: self.request.offset }
    }
}

/// Answers a request that needs no simulation.
pub(super) fn done(asked: &Asked) {
    let mut out = Vec::with_capacity(32);
    reply::done(&mut out, asked.to());
    asked.sink.put(out, asked.charged);
}

/// Answers a request that is refused.
pub(super) fn refuse(asked: &Asked, error: Errno) {
    let mut out = Vec::with_capacity(38);
    let data = matches!(asked.request.command, Command::Read | Command::BlockStatus);
    reply::failed(&mut out, asked.to(), error, data);
    asked.sink.put(out, asked.charged);
}

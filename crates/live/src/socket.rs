//! Stream sockets, both Unix and TCP.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::clock::Waiting;
use crate::{Address, LiveError};

/// A connection.
pub enum Stream {
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Over TCP.
    Tcp(TcpStream),
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Stream {
    /// Receives into a buffer; with `wait`, waits for at least one byte, up to the socket's timeout.
    pub fn receive(&self, into: &mut [u8], wait: bool) -> io::Result<usize> {
        let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        loop {
            match recv(self, &mut *into, flags) {
                Ok((length, _)) => return Ok(length),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives what comes before `moment`, and is awake again by then; returns `None` if nothing has come.
    pub fn receive_until(
        &self,
        into: &mut [u8],
        moment: Instant,
        waiting: Waiting,
    ) -> Option<io::Result<usize>> {
        let awake = moment - waiting.early(moment.saturating_duration_since(Instant::now()));
        loop {
            let left = awake.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.receive_awake(into, moment);
            }
            let time = Timespec::try_from(left).expect("the times of a simulation fit");
            // A signal that ends the wait does not matter.
            if poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&time)) == Ok(1) {
                return Some(self.receive(into, false));
            }
        }
    }

    /// Receives what comes before a moment, without sleeping; returns `None` if nothing has come.
    pub fn receive_awake(&self, into: &mut [u8], moment: Instant) -> Option<io::Result<usize>> {
        loop {
            match self.receive(into, false) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                outcome => return Some(outcome),
            }
            if Instant::now() >= moment {
                return None;
            }
        }
    }

    /// Sends as much as the socket takes; with `wait`, waits until it takes at least one byte, up to the socket's
    /// timeout.
    pub fn send(&self, bytes: &[u8], wait: bool) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | if wait { SendFlags::empty() } else { SendFlags::DONTWAIT };
        loop {
            match send(self, bytes, flags) {
                Ok(length) => return Ok(length),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sets how long to wait for a client to send, and how long to wait for it to read.
    pub fn set_timeouts(&self, receive: Duration, send: Duration) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(receive))?;
                stream.set_write_timeout(Some(send))
            }
            Stream::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(receive))?;
                stream.set_write_timeout(Some(send))
            }
        }
    }

    /// Returns the process at the other end: 0 if it is not known, as over TCP.
    pub fn process(&self) -> u32 {
        match self {
            Stream::Unix(stream) => {
                let peer = rustix::net::sockopt::socket_peercred(stream);
                peer.map_or(0, |peer| peer.pid.as_raw_nonzero().get() as u32)
            }
            Stream::Tcp(_) => 0,
        }
    }

    /// Closes one direction of the connection, or both.
    pub fn shut(&self, how: Shutdown) {
        // The connection may be closed already.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(how),
            Stream::Tcp(stream) => stream.shutdown(how),
        };
    }
}

/// A listening socket; a Unix socket is removed from the file system when this is dropped.
pub struct Listener {
    kind: Kind,
    /// The address where it listens, with the actual port.
    pub address: Address,
}

enum Kind {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at an address; a Unix socket is accessible only to its owner.
    ///
    /// # Errors
    /// [`LiveError::User`]: the address is in use, or not available.
    pub fn bind(address: &Address) -> Result<Listener, LiveError> {
        let fail = |error: io::Error| LiveError::User(format!("{address}: cannot listen: {error}"));
        match address {
            Address::Unix(path) => {
                forsaken(path, address)?;
                let before = rustix::process::umask(Mode::from_raw_mode(0o177));
                let bound = UnixListener::bind(path);
                rustix::process::umask(before);
                Ok(Listener { kind: Kind::Unix(bound.map_err(fail)?), address: address.clone() })
            }
            Address::Tcp(at) => {
                let listener = TcpListener::bind(at).map_err(fail)?;
                let address = Address::Tcp(listener.local_addr().map_err(fail)?);
                Ok(Listener { kind: Kind::Tcp(listener), address })
            }
        }
    }

    /// Waits for a connection.
    pub fn accept(&self) -> io::Result<Stream> {
        match &self.kind {
            Kind::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Kind::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            // Another process may have removed the socket.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Makes a connection that sends nothing, to wake a thread that waits for one.
pub fn knock(address: &Address) {
    match address {
        Address::Unix(path) => drop(UnixStream::connect(path)),
        Address::Tcp(at) => drop(TcpStream::connect(at)),
    }
}

/// Removes a socket on which nobody listens any more.
///
/// # Errors
/// [`LiveError::User`] if a process still listens on it, or if something other than a socket has this name.
fn forsaken(path: &Path, address: &Address) -> Result<(), LiveError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(LiveError::User(format!(
            "{address}: there is a file of that name, and it is not a socket"
        )));
    }
    match UnixStream::connect(path) {
        Ok(_) => {
            Err(LiveError::User(format!("{address}: another process listens there; choose another name")))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|error| LiveError::User(format!("{address}: a socket is left there: {error}"))),
        Err(error) => Err(LiveError::User(format!("{address}: a socket is there: {error}"))),
    }
}

//! The live device: a simulated device that real programs use as a block device.
//!
//! - [`nbd`]: the protocol, a pure function of bytes.
//! - [`payload`]: the bytes that the device holds, stored by physical page.
//! - [`engine`]: the simulation with its payload: requests in, replies out.
//! - [`media`]: the flash in a file, which survives the process.
//! - [`unflushed`]: what a volatile cache may lose; [`remains`]: the file in which a cut leaves it.
//! - [`reopen`]: opens the flash in a file, and takes up what a cut has left.
//! - [`pace`]: converts between wall time and simulated time.
//! - [`control`]: commands to a running device.
//! - [`fuse`]: the device as a file.
//! - [`metrics`]: answers to Prometheus.
//! - [`outbox`], [`connection`], [`listen`], [`server`]: sockets and threads.
//!
//! The protocol knows nothing about FTLs, the engine nothing about sockets.

pub mod address;
mod awake;
mod clock;
mod connection;
pub mod control;
pub mod engine;
mod fuse;
mod interference;
mod listen;
pub mod media;
pub mod metrics;
pub mod nbd;
mod orders;
mod outbox;
pub mod pace;
pub mod payload;
mod recording;
pub mod remains;
pub mod reopen;
pub mod server;
mod shared;
mod socket;
pub mod unflushed;

pub use address::Address;
pub use awake::Wait;
pub use interference::{Interference, Waited};
pub use recording::RecordingStatus;
pub use server::{Options, Server};

/// Why a live device cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A mistake of the user, for example in an address or a file.
    #[error("{0}")]
    User(String),
    /// The simulation's error.
    #[error(transparent)]
    Run(#[from] ftlab_core::sim::RunError),
    /// A thread of the device has panicked: a bug in ftlab.
    #[error("a thread of the live device has failed")]
    Broken,
}

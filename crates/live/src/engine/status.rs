//! What a live device reports about itself: which parts are allocated, and how late it answers.

use std::time::Duration;

use ftlab_core::metrics::{Histogram, Summary};

use super::{Asked, Engine, MediaStatus};
use crate::interference::Interference;
use crate::nbd::{ALLOCATION_ID, reply};
use crate::pace::Time;
use crate::recording::{Recording, RecordingStatus};

/// Upper bound on the number of extents in one answer, which has at most 16 MiB; the client asks again for the rest.
const MOST_EXTENTS: usize = 1 << 20;
/// The flags of an extent without data, which reads as zeroes.
const HOLE_AND_ZERO: u32 = 3;

/// Names of the operations, in the order of their numbers.
pub const OPERATIONS: [&str; 4] = ["read", "write", "trim", "flush"];

/// Figures of a live device that are not in the simulation's report.
#[derive(Clone, Debug)]
pub struct Live {
    /// `real` or `free`.
    pub time: &'static str,
    /// Simulated time divided by wall time; 1 if time is free.
    pub speed: f64,
    /// How late replies were sent, ns of wall time; empty if time is free.
    pub lateness: Summary,
    /// Bytes of data stored.
    pub payload_bytes: u64,
    /// Simulated time, ns.
    pub now_ns: u64,
    /// Number of requests waiting in the host, and number of requests held by the device.
    pub queues: [u32; 2],
    /// Number of erased blocks that belong to no log.
    pub free_blocks: u64,
    /// The state of the media, for a device whose flash is in a file.
    pub media: Option<MediaStatus>,
    /// How much other programs took from the device; filled in by the server, whose threads it is about.
    pub interference: Option<Interference>,
    /// The state of the recording, if there is one.
    pub recording: Option<RecordingStatus>,
}

impl Live {
    pub(super) fn new(engine: &Engine) -> Live {
        let Engine { simulation, pace, lateness, payload, .. } = engine;
        let (waiting, held, free_blocks) = simulation.levels();
        let (time, speed) = match pace.time() {
            Time::Real { speed } => ("real", speed),
            Time::Free => ("free", 1.0),
        };
        Live {
            time,
            speed,
            lateness: Summary::new(lateness, false),
            payload_bytes: payload.bytes(),
            now_ns: simulation.now_ns(),
            queues: [waiting, held],
            free_blocks,
            media: None,
            interference: None,
            recording: engine.recording(),
        }
    }
}

impl Engine {
    /// Returns, for each operation, a histogram of the simulated times from arrival to completion (ns, failed requests
    /// left out), and one histogram of how late replies were sent (ns of wall time).
    pub fn histograms(&self) -> (Vec<Histogram>, Histogram) {
        (self.heard.latency.clone(), self.lateness.clone())
    }

    /// Returns the wall time in which requests of clients were under way.
    pub fn served(&self) -> Duration {
        self.tickets.served()
    }

    /// Ends the recording, if there is one; its status says whether it could be written.
    pub fn end_recording(&mut self) {
        self.recording.iter_mut().for_each(Recording::finish);
    }

    /// Returns how far the recording has come, if there is one.
    pub fn recording(&self) -> Option<RecordingStatus> {
        self.recording.as_ref().map(Recording::status)
    }

    /// Answers a query for block status, whose range is within the device.
    pub(super) fn block_status(&self, asked: &Asked) -> Vec<u8> {
        let request = &asked.request;
        let page = self.payload.page_bytes() as u64;
        let end = request.offset + request.length;
        let most = if request.flags.one() { 1 } else { MOST_EXTENTS };
        let mut extents: Vec<(u64, u32)> = Vec::new();
        let mut at = request.offset;
        while at < end {
            let until = end.min((at / page + 1) * page);
            let slot = self.simulation.slot((at / page) as u32);
            let flags = if self.payload.read(slot).is_some() { 0 } else { HOLE_AND_ZERO };
            let full = extents.len() == most;
            match extents.last_mut() {
                Some((length, before)) if *before == flags => *length += until - at,
                _ if full => break,
                _ => extents.push((until - at, flags)),
            }
            at = until;
        }
        let mut out = Vec::with_capacity(40 + 16 * extents.len());
        reply::block_status(&mut out, asked.to(), ALLOCATION_ID, &extents);
        out
    }
}

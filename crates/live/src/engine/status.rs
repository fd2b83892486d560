//! What a live device reports about itself: which parts are allocated, and how late it answers; and what it is told.

use std::ops::Range;
use std::path::Path;

use std::time::Duration;

use ftlab_core::metrics::{Histogram, Summary};
use ftlab_core::sim::Outside;

use super::orders::LBA_BYTES;
use super::programs::{Program, Programs, Slow};
use super::{Asked, Engine, MediaStatus};
use crate::interference::Interference;
use crate::nbd::{ALLOCATION_ID, reply};
use crate::pace::Time;
use crate::recording::{Recording, RecordingStatus};

/// Upper bound on the number of extents in one answer, which has at most 16 MiB; the client asks again for the rest.
const MOST_EXTENTS: usize = 1 << 20;
/// The flags of an extent without data, which reads as zeroes.
const HOLE_AND_ZERO: u32 = 3;

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
    /// What the device was told that changed the simulation: the simulated time, ns, and the command.
    pub told: Vec<(u64, String)>,
    /// Numbers of reads and of writes, trims and zeroes that failed because the device was told so.
    pub failed: [u64; 2],
    /// The programs that have asked, if they are told apart.
    pub programs: Option<Vec<Program>>,
    /// The requests that took longest, the slowest first, likewise.
    pub slowest: Vec<Slow>,
    /// How much other programs took from the device; filled in by the server, whose threads it is about.
    pub interference: Option<Interference>,
    /// The state of the recording, if there is one.
    pub recording: Option<RecordingStatus>,
}

impl Live {
    pub(super) fn new(engine: &Engine) -> Live {
        let Engine { simulation, pace, lateness, payload, orders, .. } = engine;
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
            told: orders.told.clone(),
            failed: orders.failed,
            programs: engine.programs.as_ref().map(|programs| programs.known.clone()),
            slowest: engine.programs.iter().flat_map(Programs::slowest).collect(),
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

impl Engine {
    /// Makes reads (or, if `writes`, writes, trims and zeroes) of these logical blocks fail.
    ///
    /// # Errors
    /// A message, if a block is beyond the device.
    pub fn fail(&mut self, writes: bool, lbas: &[Range<u64>]) -> Result<(), String> {
        let size = self.size / LBA_BYTES;
        if let Some(beyond) = lbas.iter().find(|range| range.end > size) {
            return Err(format!(
                "LBA {} is beyond the device, which has {size} of {LBA_BYTES} B",
                beyond.end - 1
            ));
        }
        let bytes = lbas.iter().map(|range| range.start * LBA_BYTES..range.end * LBA_BYTES);
        self.orders.bad[usize::from(writes)].extend(bytes);
        Ok(())
    }

    /// Makes all sectors good again.
    pub fn fail_nothing(&mut self) {
        self.orders.bad = Default::default();
    }

    /// Lets something happen to the device now; `command` is what it was told, for the recording and the result.
    ///
    /// # Errors
    /// A message, if it cannot happen to this device, or its file cannot be written.
    pub fn suffer(&mut self, what: Outside, command: &str) -> Result<(), String> {
        if self.is_off() {
            return Err("the power is off".into());
        }
        self.simulation.suffer(what)?;
        if let (Outside::Wear(cycles), Some(supply)) = (what, &mut self.supply) {
            supply.wear(cycles)?;
        }
        let now_ns = self.simulation.now_ns();
        if let Some(recording) = &mut self.recording {
            recording.tell(now_ns, command);
        }
        self.orders.told.push((now_ns, command.into()));
        Ok(())
    }

    /// Whether this path names the file that holds the flash.
    pub fn is_media(&self, path: &Path) -> bool {
        let same = |media: &Path| Some(media.canonicalize().ok()? == path.canonicalize().ok()?);
        self.supply.as_ref().and_then(|supply| same(supply.nand.path())).unwrap_or(false)
    }

    /// Tells programs apart from now on.
    pub fn trace_programs(&mut self) {
        self.programs.get_or_insert_default();
    }

    /// Returns the number of the program that a process runs, where programs are told apart; else 0.
    pub fn program(&mut self, process: u32) -> u16 {
        self.programs.as_mut().map_or(0, |programs| programs.of(process))
    }
}

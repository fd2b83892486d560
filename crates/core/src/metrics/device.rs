//! What the device's queue and controller report.

use serde::Serialize;

use super::utilization::shares;
use crate::device::buffer::Stats;
use crate::device::{Device, Spent, Used};

/// The device's scheduler, and the link and the cores, which commands go through in addition to its queue.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceQueue {
    /// `device.scheduler`.
    pub scheduler: String,
    /// Chip batches that piq or vios created.
    pub batches: u64,
    /// Share of the time that the link (or its busier direction) was busy, with `device.link`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_busy: Option<f64>,
    /// Mean share of the time that the cores were busy, where commands take core time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_busy: Option<f64>,
    /// Where commands spent time outside queue and flash, in runs with a controller or link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
    /// What the write buffer did, with `device.write_buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<WriteBuffer>,
}

impl DeviceQueue {
    pub(super) fn new(device: &Device, scheduler: &str, used: &Used, elapsed_ns: u64) -> DeviceQueue {
        let (link, cores) = (shares(&used.link, elapsed_ns), shares(&used.cores, elapsed_ns));
        DeviceQueue {
            scheduler: scheduler.into(),
            batches: device.batches(),
            link_busy: link.iter().copied().reduce(f64::max),
            core_busy: (!cores.is_empty()).then(|| cores.iter().sum::<f64>() / cores.len() as f64),
            commands: device.spent().map(|spent| {
                let Spent { link_ns, core_ns, latency_ns } = spent;
                Commands { link_ns, core_ns, latency_ns }
            }),
            buffer: device.buffered().map(WriteBuffer::new),
        }
    }
}

/// Time that reads and writes together spent outside the device's queue and flash, including waiting.
#[derive(Clone, Debug, Serialize)]
pub struct Commands {
    /// At the link.
    pub link_ns: u64,
    /// At the cores.
    pub core_ns: u64,
    /// In the further delay that keeps nothing busy (`device.latency_read` and the like).
    pub latency_ns: u64,
}

/// What the write buffer did; pages are logical pages.
#[derive(Clone, Debug, Serialize)]
pub struct WriteBuffer {
    /// Pages of reads that were answered from the buffer, those of the host's padding included.
    pub hits: u64,
    /// Pages written that replaced a page in the buffer.
    pub coalesced: u64,
    /// Pages handed to the FTL.
    pub destaged: u64,
    /// Writes that had to wait for room.
    pub stalls: u64,
    /// Time that they waited for room.
    pub wait_ns: u64,
    /// Most pages in use at one time.
    pub high_water: u32,
}

impl WriteBuffer {
    fn new(stats: Stats) -> WriteBuffer {
        let Stats { hits, coalesced, destaged, stalls, wait_ns, high_water } = stats;
        WriteBuffer { hits, coalesced, destaged, stalls, wait_ns, high_water }
    }
}

/// Requests in conflict when the device took them.
#[derive(Clone, Debug, Serialize)]
pub struct Conflicts {
    /// Reads.
    pub read: u64,
    /// Writes and trims.
    pub write: u64,
    /// (read + write) / trace.requests.
    pub ratio: Option<f64>,
}

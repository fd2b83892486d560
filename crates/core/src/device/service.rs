//! Servers of the controller, the link's directions and the cores, and their services.

use crate::workload::Op;

/// A server, with the time at which it will have served all that has come to it, and its total time of service until
/// then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Server {
    pub(super) free_ns: u64,
    busy_ns: u64,
}

impl Server {
    /// Serves a command that comes now, for `ns` nanoseconds; returns when the service ends.
    pub(super) fn serve(&mut self, now_ns: u64, ns: u64) -> u64 {
        self.free_ns = self.free_ns.max(now_ns) + ns;
        self.busy_ns += ns;
        self.free_ns
    }

    /// Returns how long the server was busy up to a moment: its total service time less the part after that moment,
    /// which is a single stretch, because commands are served without a pause.
    pub(super) fn busy_up_to(&self, now_ns: u64) -> u64 {
        self.busy_ns - self.free_ns.saturating_sub(now_ns)
    }
}

/// A service of the link or of a core for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The link carries the command.
    Command,
    /// A core works on the command.
    Work,
    /// The link carries data to the device.
    DataIn,
    /// The link carries data to the host.
    DataOut,
    /// The link carries the answer.
    Answer,
}

impl Service {
    /// Returns the direction of the link that the service needs.
    pub(super) fn direction(self) -> usize {
        usize::from(matches!(self, Service::DataOut | Service::Answer))
    }
}

/// A stretch of time in which the link or a core served a command.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The server, in the order of [`Settings::servers`].
    pub server: u32,
    /// What the server did.
    pub service: Service,
    /// The command, by its place in the pool.
    pub(super) id: u32,
    /// When the service began, ns.
    pub begin_ns: u64,
    /// When the service ends, ns.
    pub end_ns: u64,
}

/// Time that reads and writes together spent outside the device's queue and flash, including waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time at the link.
    pub link_ns: u64,
    /// Time at the cores.
    pub core_ns: u64,
    /// Time in the further delay that keeps nothing busy (`device.latency_read`, `device.latency_write`).
    pub latency_ns: u64,
}

impl Spent {
    /// Adds time at one of the three for a read or a write.
    pub(super) fn add(&mut self, op: Op, at: impl FnOnce(&mut Spent) -> &mut u64, ns: u64) {
        if matches!(op, Op::Read | Op::Write) {
            let spent = at(self);
            *spent = spent.saturating_add(ns);
        }
    }
}

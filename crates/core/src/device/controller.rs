//! The keys of controller and link: how a command reaches the device's queue, and how its answer gets back to the host
//! ([`super::row`]).
//!
//! A command goes through these stages, in this order; stages that take no time are left out:
//!
//! 1. the link carries the command (`device.link_command`);
//! 2. a core works on it (`device.command_time`, and `device.unit_time` for each logical page; a write may have times
//!    of its own);
//! 3. the link carries the data of a write;
//! 4. the command goes through the device's queue, the FTL and the flash, as it does without a controller;
//! 5. the link carries the data of a read;
//! 6. the link carries the answer (`device.link_command`);
//! 7. the command waits for a further delay, which keeps nothing busy (`device.latency_*`).
//!
//! Link and cores serve first come, first served. Each direction of the link is a server of its own, unless
//! `device.link_duplex` is "half". A command keeps its place in `device.queue_depth` until it is answered.
//!
//! Source: the stages are those of the transports of NVMe and UFS. The read curve of a measured drive shows a delay, a
//! number of servers, and a rate; here these are stage 7, the flash, and stages 2 and 5. Measured drives have one rate
//! for reads and another for writes into their buffer, so stage 2 has times for each.

use crate::config::section::{ANY_TIME, OPERATION, bandwidth, count};
use crate::config::{Ignored, choice, section};
use crate::workload::Op;

choice! {
    /// `device.link_duplex`.
    pub enum Duplex {
        /// each direction by itself
        Full = "full",
        /// one direction at a time, as on eMMC and SATA
        Half = "half",
    }
}

section! {
    /// Controller and link.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// Bandwidth of the link between host and device, which the data of all commands cross.
        link: u64 = "device.link", bandwidth(1_000_000, 1_000_000_000_000) or "none", "none";
        /// Whether the link carries data of both directions at once.
        duplex: Duplex = "device.link_duplex", "full";
        /// Time that the link is held by each command, and by each answer.
        link_command_ns: u64 = "device.link_command", OPERATION, "0ns";
        /// Cores of the controller, each of which works on one command at a time.
        cores: u32 = "device.cores", count(1, 1024), "1";
        /// Time that a core is busy with a command.
        command_ns: u64 = "device.command_time", OPERATION, "0ns";
        /// Time that a core is busy with each logical page of a command, in addition to device.command_time.
        unit_ns: u64 = "device.unit_time", OPERATION, "0ns";
        /// Time that a core is busy with a write, in the place of device.command_time.
        command_write_ns: Option<u64> = "device.command_time_write", OPERATION or "command_time", "command_time";
        /// Time that a core is busy with each logical page of a write, in the place of device.unit_time.
        unit_write_ns: Option<u64> = "device.unit_time_write", OPERATION or "unit_time", "unit_time";
        /// Further delay at the end of each read, which keeps nothing busy.
        latency_read_ns: u64 = "device.latency_read", ANY_TIME, "0ns";
        /// Further delay at the end of each write, which keeps nothing busy.
        latency_write_ns: u64 = "device.latency_write", ANY_TIME, "0ns";
        /// Further delay at the end of each trim or flush, which keeps nothing busy.
        latency_other_ns: u64 = "device.latency_other", ANY_TIME, "0ns";
    }
}

impl Settings {
    pub(super) fn has_link(&self) -> bool {
        self.link != u64::MAX
    }

    /// Whether the link is held by commands and answers.
    pub(super) fn takes_link(&self) -> bool {
        self.has_link() && self.link_command_ns > 0
    }

    /// Whether answers wait for a further delay.
    pub(super) fn waits(&self) -> bool {
        self.latency_read_ns + self.latency_write_ns + self.latency_other_ns > 0
    }

    /// Whether link or controller take any time.
    pub fn takes_time(&self) -> bool {
        self.has_link() || self.has_cores() || self.waits()
    }

    pub(super) fn has_cores(&self) -> bool {
        [Op::Read, Op::Write].iter().any(|&op| self.core_times_ns(op) != [0, 0])
    }

    /// Collects the keys without effect, with the reason.
    pub(crate) fn ignored(&self, found: &mut Ignored) {
        let keys = ["device.link_duplex", "device.link_command"];
        found.unless(self.has_link(), &keys, "device.link = \"none\"");
        let busy = "device.command_time and device.unit_time are 0, and those of a write";
        found.unless(self.has_cores(), &["device.cores"], busy);
    }

    /// Returns how long a core works on a command of this kind, and on each logical page of it, ns.
    pub(super) fn core_times_ns(&self, op: Op) -> [u64; 2] {
        match op {
            Op::Write => {
                [self.command_write_ns.unwrap_or(self.command_ns), self.unit_write_ns.unwrap_or(self.unit_ns)]
            }
            Op::Read | Op::Trim | Op::Flush => [self.command_ns, self.unit_ns],
        }
    }

    /// Returns how long the transfer of `bytes` holds the link, ns, rounded to the nearest (half up).
    pub(super) fn transfer_ns(&self, bytes: u64) -> u64 {
        let link = u128::from(self.link);
        ((u128::from(bytes) * 1_000_000_000 + link / 2) / link) as u64
    }

    /// Returns the names of the servers: the directions of the link if there is one, then the cores if commands take
    /// core time.
    pub fn servers(&self) -> Vec<String> {
        let link: &[&str] = match (self.has_link(), self.duplex) {
            (false, _) => &[],
            (true, Duplex::Half) => &["link"],
            (true, Duplex::Full) => &["link to the device", "link to the host"],
        };
        let cores = if self.has_cores() { self.cores } else { 0 };
        link.iter().map(|&name| name.into()).chain((0..cores).map(|core| format!("core {core}"))).collect()
    }

    /// Returns the number of directions that the link serves separately.
    pub(super) fn directions(&self) -> usize {
        match (self.has_link(), self.duplex) {
            (false, _) => 0,
            (true, Duplex::Half) => 1,
            (true, Duplex::Full) => 2,
        }
    }

    pub(super) fn latency_ns(&self, op: Op) -> u64 {
        match op {
            Op::Read => self.latency_read_ns,
            Op::Write => self.latency_write_ns,
            Op::Trim | Op::Flush => self.latency_other_ns,
        }
    }
}

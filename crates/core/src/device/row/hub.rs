//! What the stages share: the link, and what is told about servers (the link's directions, the cores) and their
//! services.

use std::collections::VecDeque;

use crate::device::controller::{Duplex, Settings};
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
    pub(in crate::device) id: u32,
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

/// A command that the link carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub id: u32,
    pub op: Op,
}

/// The link, and the record of all services.
#[derive(Clone, Debug)]
pub(in crate::device) struct Hub {
    settings: Settings,
    /// The servers of the link: to the device, then to the host; of a half-duplex link the first serves both
    /// directions.
    link: [Server; 2],
    /// A number of bytes, and how long their transfer holds the link, ns: most commands are as long as others.
    transfer: (u64, u64),
    pub spent: Spent,
    /// For each server, the services that it has taken on, if they are recorded for a timeline.
    kept: Option<Vec<VecDeque<Served>>>,
}

impl Hub {
    /// Makes an idle link.
    pub(super) fn new(settings: &Settings) -> Hub {
        Hub {
            settings: settings.clone(),
            link: [Server::default(); 2],
            transfer: (0, 0),
            spent: Spent::default(),
            kept: None,
        }
    }

    /// Returns the time that commands have spent at link and controller, if these take any.
    pub fn spent(&self) -> Option<Spent> {
        self.settings.takes_time().then_some(self.spent)
    }

    /// Returns how long each direction of the link was busy up to a moment.
    pub(super) fn link_busy(&self, now_ns: u64) -> impl Iterator<Item = u64> {
        self.link[..self.settings.directions()].iter().map(move |server| server.busy_up_to(now_ns))
    }

    /// From now on, records the services of the link and the cores, for [`Hub::take_served`].
    pub fn keep_served(&mut self) {
        self.kept.get_or_insert_with(|| vec![VecDeque::new(); self.settings.servers().len()]);
    }

    /// Takes out the services that link and cores have completed by now. Their commands must still be in the pool.
    pub fn take_served(&mut self, now_ns: u64, mut take: impl FnMut(&Served)) {
        for line in self.kept.iter_mut().flatten() {
            while line.front().is_some_and(|served| served.end_ns <= now_ns) {
                line.pop_front().iter().for_each(&mut take);
            }
        }
    }

    /// Occupies the link for the transfer of `bytes`, as [`Hub::carry`] does.
    pub(super) fn transfer(&mut self, command: Carried, service: Service, bytes: u64, now_ns: u64) -> u64 {
        if self.transfer.0 != bytes {
            self.transfer = (bytes, self.settings.transfer_ns(bytes));
        }
        self.carry(command, service, self.transfer.1, now_ns)
    }

    /// Occupies a direction of the link for `ns` nanoseconds; returns when the transfer ends.
    pub(super) fn carry(
        &mut self,
        Carried { id, op }: Carried,
        service: Service,
        ns: u64,
        now_ns: u64,
    ) -> u64 {
        let half = self.settings.duplex == Duplex::Half;
        let direction = if half { 0 } else { service.direction() };
        let at_ns = self.link[direction].serve(now_ns, ns);
        self.spent.add(op, |spent| &mut spent.link_ns, at_ns - now_ns);
        self.keep(id, direction, service, [at_ns - ns, at_ns]);
        at_ns
    }

    /// Records a service of a core, if services are recorded.
    #[inline]
    pub(super) fn keep_core(&mut self, id: u32, core: usize, times: [u64; 2]) {
        if self.kept.is_some() {
            self.keep(id, self.settings.directions() + core, Service::Work, times);
        }
    }

    /// Records a service that a server takes on, if services are recorded.
    fn keep(&mut self, id: u32, server: usize, service: Service, [begin_ns, end_ns]: [u64; 2]) {
        let Some(kept) = &mut self.kept else { return };
        if begin_ns < end_ns {
            kept[server].push_back(Served { server: server as u32, service, id, begin_ns, end_ns });
        }
    }
}

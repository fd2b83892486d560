//! Controller and link: how a command reaches the device's queue, and how its answer gets back to the host.
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
//! Events due at the same nanosecond are handled in this order: first those of the flash, chip by chip; then those of
//! the link and the cores, in the order in which the commands came to them; last, arrivals of requests.
//!
//! Source: the stages are those of the transports of NVMe and UFS. The read curve of a measured drive shows a delay, a
//! number of servers, and a rate; here these are stage 7, the flash, and stages 2 and 5. Measured drives have one rate
//! for reads and another for writes into their buffer, so stage 2 has times for each.

use std::collections::VecDeque;

use super::service::{Served, Server, Service, Spent};
use crate::clock::NEVER;
use crate::config::section::{ANY_TIME, OPERATION, bandwidth, count};
use crate::config::{Ignored, choice, section};
use crate::request::{Pool, Request};
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
    fn has_link(&self) -> bool {
        self.link != u64::MAX
    }

    fn has_cores(&self) -> bool {
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
    fn core_times_ns(&self, op: Op) -> [u64; 2] {
        match op {
            Op::Write => {
                [self.command_write_ns.unwrap_or(self.command_ns), self.unit_write_ns.unwrap_or(self.unit_ns)]
            }
            Op::Read | Op::Trim | Op::Flush => [self.command_ns, self.unit_ns],
        }
    }

    /// Returns how long the transfer of `bytes` holds the link, ns, rounded to the nearest (half up).
    fn transfer_ns(&self, bytes: u64) -> u64 {
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
    fn directions(&self) -> usize {
        match (self.has_link(), self.duplex) {
            (false, _) => 0,
            (true, Duplex::Half) => 1,
            (true, Duplex::Full) => 2,
        }
    }

    fn latency_ns(&self, op: Op) -> u64 {
        match op {
            Op::Read => self.latency_read_ns,
            Op::Write => self.latency_write_ns,
            Op::Trim | Op::Flush => self.latency_other_ns,
        }
    }
}

/// The stage that a command reaches when an event is due.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Core,
    DataIn,
    Queue,
    Answer,
    Done,
}

/// Number of events, the last ones, among which a new one is put in place one by one.
const NEAR: usize = 16;

/// A command reaches a stage.
#[derive(Clone, Copy, Debug)]
struct Event {
    at_ns: u64,
    id: u32,
    stage: Stage,
}

/// Where a command that leaves the controller goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// The command goes to the device's queue.
    ToQueue(u32),
    /// The command goes back to the host, answered.
    Answered(u32),
}

/// The controller and its link, with the commands that they hold.
#[derive(Clone, Debug)]
pub struct Controller {
    settings: Settings,
    /// The servers of the link: to the device, then to the host; of a half-duplex link the first serves both
    /// directions.
    link: [Server; 2],
    cores: Vec<Server>,
    /// Events, of which those from the index `first` on are to come, by time; of equal times the one that was found first.
    /// Most events are found in this order.
    events: Vec<Event>,
    first: usize,
    /// How long a core works on a command and on each of its logical pages, ns: for a write, and for any other command.
    core_times_ns: [[u64; 2]; 2],
    /// A number of bytes, and how long their transfer holds the link, ns: most commands are as long as others.
    transfer: (u64, u64),
    spent: Spent,
    /// For each server, the services that it has taken on, if they are recorded for a timeline.
    kept: Option<Vec<VecDeque<Served>>>,
}

impl Controller {
    /// Returns a controller without commands; `None` if no stage takes any time.
    pub fn new(settings: &Settings) -> Option<Box<Controller>> {
        let Settings { latency_read_ns, latency_write_ns, latency_other_ns, .. } = *settings;
        let waits = latency_read_ns + latency_write_ns + latency_other_ns > 0;
        (settings.has_link() || settings.has_cores() || waits).then(|| {
            Box::new(Controller {
                settings: settings.clone(),
                link: [Server::default(); 2],
                cores: vec![Server::default(); settings.cores as usize],
                events: Vec::with_capacity(256),
                first: 0,
                core_times_ns: [Op::Write, Op::Read].map(|op| settings.core_times_ns(op)),
                transfer: (0, 0),
                spent: Spent::default(),
                kept: None,
            })
        })
    }

    /// Returns when the next command reaches its next stage, ns, or [`NEVER`].
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.events.get(self.first).map_or(NEVER, |event| event.at_ns)
    }

    /// Returns the time that commands have spent in the controller and at the link.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Returns how long each direction of the link was busy up to a moment.
    pub fn link_busy(&self, now_ns: u64) -> impl Iterator<Item = u64> {
        self.link[..self.settings.directions()].iter().map(move |server| server.busy_up_to(now_ns))
    }

    /// Returns how long each core was busy up to a moment; nothing if no command takes a core any time.
    pub fn cores_busy(&self, now_ns: u64) -> impl Iterator<Item = u64> {
        let cores = if self.settings.has_cores() { &self.cores[..] } else { &[] };
        cores.iter().map(move |server| server.busy_up_to(now_ns))
    }

    /// From now on, records the services of the link and the cores, for [`Controller::take_served`].
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

    /// Takes a command from the host; returns whether it goes on to the device's queue at once.
    pub fn receive(&mut self, id: u32, request: &Request, now_ns: u64) -> bool {
        if self.settings.has_link() && self.settings.link_command_ns > 0 {
            let at_ns = self.carry((id, request.op), Service::Command, self.settings.link_command_ns, now_ns);
            self.at(at_ns, id, Stage::Core);
            return false;
        }
        self.work_on(id, request, now_ns)
    }

    /// Takes a command that the device has finished; returns whether it is answered at once.
    pub fn finish(&mut self, id: u32, request: &Request, now_ns: u64) -> bool {
        if request.op == Op::Read && self.settings.has_link() && request.size > 0 && !request.failed {
            let ns = self.transfer_ns(request.size);
            let at_ns = self.carry((id, request.op), Service::DataOut, ns, now_ns);
            self.at(at_ns, id, Stage::Answer);
            return false;
        }
        self.answer(id, request, now_ns)
    }

    /// Lets the next command that is due go on. Returns `None` if none is due; otherwise where the command goes if it
    /// leaves the controller, or `Some(None)` if it stays.
    pub fn advance(&mut self, now_ns: u64, pool: &Pool) -> Option<Option<Leaves>> {
        let &Event { id, stage, .. } = self.events.get(self.first).filter(|event| event.at_ns <= now_ns)?;
        self.first += 1;
        let of = &pool[id];
        Some(match stage {
            Stage::Core => self.work_on(id, of, now_ns).then_some(Leaves::ToQueue(id)),
            Stage::DataIn => self.bring_in(id, of, now_ns).then_some(Leaves::ToQueue(id)),
            Stage::Queue => Some(Leaves::ToQueue(id)),
            Stage::Answer => self.answer(id, of, now_ns).then_some(Leaves::Answered(id)),
            Stage::Done => Some(Leaves::Answered(id)),
        })
    }

    /// Forgets all commands.
    pub fn forget(&mut self) {
        self.events.clear();
        self.first = 0;
    }

    /// Returns how long the transfer of `bytes` holds the link, ns.
    fn transfer_ns(&mut self, bytes: u64) -> u64 {
        if self.transfer.0 != bytes {
            self.transfer = (bytes, self.settings.transfer_ns(bytes));
        }
        self.transfer.1
    }

    /// Lets a command reach a stage at a time, ns.
    fn at(&mut self, at_ns: u64, id: u32, stage: Stage) {
        // The line moves to the front only if that gains as much room as it moves; otherwise it grows.
        let (all, full) = (self.events.len(), self.events.len() == self.events.capacity());
        if self.first == all || full && 2 * self.first >= all {
            self.events.drain(..std::mem::take(&mut self.first));
        }
        let event = Event { at_ns, id, stage };
        self.events.push(event);
        let line = &mut self.events[self.first..];
        let mut place = line.len() - 1;
        if place > NEAR && line[place - NEAR].at_ns > at_ns {
            let to = line[..place].partition_point(|other| other.at_ns <= at_ns);
            line.copy_within(to..place, to + 1);
            place = to;
        }
        while place > 0 && line[place - 1].at_ns > at_ns {
            line[place] = line[place - 1];
            place -= 1;
        }
        line[place] = event;
    }

    /// Occupies a direction of the link for `ns` nanoseconds; returns when the transfer ends.
    fn carry(&mut self, (id, op): (u32, Op), service: Service, ns: u64, now_ns: u64) -> u64 {
        let half = self.settings.duplex == Duplex::Half;
        let direction = if half { 0 } else { service.direction() };
        let at_ns = self.link[direction].serve(now_ns, ns);
        self.spent.add(op, |spent| &mut spent.link_ns, at_ns - now_ns);
        self.keep(id, direction, service, [at_ns - ns, at_ns]);
        at_ns
    }

    /// Records a service that a server takes on, if services are recorded.
    fn keep(&mut self, id: u32, server: usize, service: Service, [begin_ns, end_ns]: [u64; 2]) {
        let Some(kept) = &mut self.kept else { return };
        if begin_ns < end_ns {
            kept[server].push_back(Served { server: server as u32, service, id, begin_ns, end_ns });
        }
    }

    /// Brings a command to the cores; returns whether it goes on to the device's queue at once.
    fn work_on(&mut self, id: u32, request: &Request, now_ns: u64) -> bool {
        let [command_ns, unit_ns] = self.core_times_ns[usize::from(request.op != Op::Write)];
        let ns = command_ns + unit_ns * u64::from(request.pages.pages);
        if ns == 0 {
            return self.bring_in(id, request, now_ns);
        }
        let cores = self.cores.iter_mut().enumerate();
        let (at, core) = cores.min_by_key(|(_, core)| core.free_ns).expect("there is a core");
        let at_ns = core.serve(now_ns, ns);
        self.keep(id, self.settings.directions() + at, Service::Work, [at_ns - ns, at_ns]);
        self.spent.add(request.op, |spent| &mut spent.core_ns, at_ns - now_ns);
        let carried = request.op == Op::Write && self.settings.has_link();
        self.at(at_ns, id, if carried { Stage::DataIn } else { Stage::Queue });
        false
    }

    /// Brings in the data of a command that a core has worked on; returns whether the command goes on to the device's
    /// queue at once.
    fn bring_in(&mut self, id: u32, request: &Request, now_ns: u64) -> bool {
        if request.op != Op::Write || !self.settings.has_link() {
            return true;
        }
        let ns = self.transfer_ns(request.size);
        let at_ns = self.carry((id, request.op), Service::DataIn, ns, now_ns);
        self.at(at_ns, id, Stage::Queue);
        false
    }

    /// Sends the answer to a command whose data have left; returns whether it is answered at once.
    fn answer(&mut self, id: u32, request: &Request, now_ns: u64) -> bool {
        let mut at_ns = now_ns;
        if self.settings.has_link() && self.settings.link_command_ns > 0 {
            at_ns = self.carry((id, request.op), Service::Answer, self.settings.link_command_ns, now_ns);
        }
        let latency_ns = self.settings.latency_ns(request.op);
        self.spent.add(request.op, |spent| &mut spent.latency_ns, latency_ns);
        if at_ns + latency_ns == now_ns {
            return true;
        }
        self.at(at_ns + latency_ns, id, Stage::Done);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: with many commands under way, each event moved all others to the front of a full line.
    #[test]
    fn a_full_line_grows_rather_than_moving() {
        let settings = Settings { command_ns: 1, ..Settings::default() };
        let mut controller = Controller::new(&settings).expect("there is a core");
        let full = controller.events.capacity().max(1024);
        (0..full).for_each(|at| controller.at(at as u64, 0, Stage::Core));
        controller.first = 1;
        (0..2).for_each(|_| controller.at(full as u64, 0, Stage::Core));
        assert!(controller.first == 1 && controller.events.capacity() > full + 1);
    }
}

//! FLIN: the operations that wait at a die are ordered so that all tenants are slowed down alike (`flash.order`).
//!
//! Source: Tavakkol et al., "FLIN: Enabling Fairness and Enhancing Performance in Modern NVMe Solid State Drives", ISCA
//! 2018. Its abstract and its authors' slides (Ghose, Flash Memory Summit 2019) name the three stages and what they are
//! for; the algorithm was read from the authors' own simulator, MQSim (`src/ssd/TSU_FLIN.cpp`, commit 0d76b1d). Of the
//! second and third stage that program has a part only. Their rules are those of a public summary of sections 5.4 and
//! 5.5, and the formula of the waits is that of another program that was written after the paper. What was read into
//! them is in `docs/readings/tenants.md`.
//!
//! **Stage 1** puts an operation into the queue of its die, its class (`priority` of its tenant) and its kind, reads or
//! writes ([`insertion`]). **Stage 2** names from the queues of all classes one read and one write, and **stage 3**
//! says which of the two the die takes ([`selection`]).
//!
//! What is not the host's own data: reads of mappings go before everything. All other steps of a request, such as the
//! collection that a write has to wait for, wait in its tenant's queue of writes in front of that write, so tenants pay
//! for the collections that they cause. The steps of the device's own tasks go when nothing else can.

mod insertion;
mod places;
mod selection;

use super::{Arrival, Dies, Needs, Order, Own};
use crate::config::section;
use crate::config::section::{OPERATION, bytes, share};
use crate::flash::{Cause, Operation};
use crate::util::{Chain, Linked, NONE, Neighbours};
use crate::workload::tenants::Class;
use places::Place;

/// Number of classes.
const CLASSES: usize = Class::ALL.len();

/// Queues of a die: for each class one of reads and one of writes, then those of [`FIRST`] and [`LAST`].
const QUEUES: usize = 2 * CLASSES + 2;

/// Index, within a die's queues, of the reads of mappings, and of the steps of the device's own tasks.
const FIRST: usize = 2 * CLASSES;
const LAST: usize = FIRST + 1;

section! {
    /// The parameters of FLIN, with the values of its authors (MQSim, `src/exec/SSD_Device.cpp`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Keys {
        /// With flash.order flin: how often it is determined anew which tenants send little.
        epoch_ns: u64 = "flash.flin_epoch", OPERATION, "10ms" not in state;
        /// With flash.order flin: a tenant that reads less than this of the whole device in an epoch sends few reads.
        read_bytes: u64 = "flash.flin_read", bytes(0, 1 << 40), "32MiB" not in state;
        /// With flash.order flin: a tenant that writes less than this in an epoch sends few writes.
        write_bytes: u64 = "flash.flin_write", bytes(0, 1 << 40), "256KiB" not in state;
        /// With flash.order flin: if the least average slowdown of a die's tenants is below this share of the greatest,
        /// the tenant that is slowed down most goes in front of others that send much.
        least_ppm: u64 = "flash.flin_fairness", share(0, 1_000_000), "60%" not in state;
    }
}

pub(super) const NAME: &str = "flin";
pub(super) const DOC: &str = "the one that makes the slowdowns of the tenants most alike (FLIN)";

/// A step that waits, or the last one that waited in its slot.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    arrival: Arrival,
    links: Neighbours,
    /// Index of the step's queue.
    queue: usize,
    /// Number of the step's tenant, in the order in which they sent their first operation.
    tenant: usize,
    waits: bool,
    /// Whether the tenant's intensity was low when the step came.
    low: bool,
    /// Whether no later step of high intensity may go before this one.
    barrier: bool,
    since_ns: u64,
    /// How long the step would wait if its tenant were alone, estimated when it came.
    alone_ns: u64,
    /// Number of the step given in [`Arrival::ahead`].
    ahead: u64,
}

impl Linked for Ticket {
    fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.links
    }
}

/// The steps of one kind that a tenant has sent to a die.
#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    /// Number of the epoch in which the last step came, and how many came in it.
    epoch: u64,
    recent: u64,
    low: bool,
    /// Sum of the slowdowns of the steps that the die has taken, and their number.
    slowdowns: f64,
    taken: u64,
    /// Slot and number of the step that came last; the number is counted from 1.
    last: (u32, u64),
    /// What the waiting steps take that are not the host's own data, ns.
    extra_ns: u64,
}

/// What a die works on, as far as it could be told when the work began.
#[derive(Clone, Copy, Debug)]
struct Working {
    until_ns: u64,
    /// The tenant, or `usize::MAX`.
    tenant: usize,
    /// When the step would have ended if its tenant were alone.
    alone_until_ns: u64,
}

/// The queues of all dies.
#[derive(Clone, Debug)]
pub(super) struct Flin {
    keys: Keys,
    page_bytes: u64,
    dies: usize,
    /// Classes of the tenants, by stream; tenants beyond them have the class medium. `None`: all requests have one
    /// sender.
    classes: Option<Vec<Class>>,
    /// For each stream its tenant, counted from 1; 0 for a stream that is new.
    of_stream: Vec<u16>,
    /// Number of tenants that have sent an operation, the class of each, and the number of tenants in each class.
    tenants: usize,
    class_of_tenant: Vec<u8>,
    of_class: [u32; CLASSES],
    /// The queues, [`QUEUES`] of each die, and the first step of high intensity in each.
    queues: Vec<Chain>,
    high: Vec<u32>,
    tickets: Vec<Ticket>,
    /// For each tenant and die: reads, writes.
    activity: Vec<[Activity; 2]>,
    /// For each die the turns of the classes that come next: reads, writes.
    turns: Vec<[u8; 2]>,
    working: Vec<Working>,
    /// For stage 1: the steps among which a new one finds its place, when each would be finished, and the least and the
    /// greatest slowdown of those before each.
    places: Vec<Place>,
}

impl Order for Flin {
    const NEEDS: Needs = Needs { queues: true, classes: true, ..Needs::NOTHING };

    fn new(keys: &Own, &Dies { count: dies, page_bytes }: &Dies) -> Flin {
        Flin {
            keys: keys.flin,
            page_bytes: page_bytes.into(),
            dies,
            classes: None,
            of_stream: Vec::new(),
            tenants: 0,
            class_of_tenant: Vec::new(),
            of_class: [0; CLASSES],
            queues: vec![Chain::default(); dies * QUEUES],
            high: vec![NONE; dies * QUEUES],
            tickets: Vec::with_capacity(1024),
            activity: Vec::new(),
            turns: vec![[0; 2]; dies],
            working: vec![Working { until_ns: 0, tenant: usize::MAX, alone_until_ns: 0 }; dies],
            places: Vec::with_capacity(64),
        }
    }

    fn tell_apart(&mut self, classes: Vec<Class>) {
        self.classes = Some(classes);
        self.of_stream = vec![0; 1 << 16];
    }

    fn enter(&mut self, arrival: Arrival, now_ns: u64) {
        let Arrival { slot, die, stream, operation, cause, ahead, .. } = arrival;
        let maps = operation == Operation::Read && matches!(cause, Cause::Map | Cause::Dir);
        let reads = operation == Operation::Read && cause == Cause::Host;
        let at = match stream {
            None => LAST,
            Some(_) if maps => FIRST,
            Some(stream) => 2 * self.class_of(stream) + usize::from(!reads),
        };
        let ticket = Ticket {
            arrival,
            links: Neighbours::NONE,
            queue: die as usize * QUEUES + at,
            tenant: stream.map_or(usize::MAX, |stream| self.tenant_of(stream)),
            waits: true,
            low: false,
            barrier: false,
            since_ns: now_ns,
            alone_ns: 0,
            ahead: self.tickets.get(ahead as usize).map_or(0, |ticket| ticket.arrival.number),
        };
        if slot as usize >= self.tickets.len() {
            self.tickets.resize(slot as usize + 1, ticket);
        }
        self.tickets[slot as usize] = ticket;
        if at >= FIRST {
            return self.queues[ticket.queue].push_tail(slot, &mut self.tickets);
        }
        if cause != Cause::Host {
            self.activity(slot).extra_ns += arrival.service_ns;
        }
        self.insert(slot, now_ns);
    }

    fn leave(&mut self, slot: u32, now_ns: u64) {
        let Ticket { arrival, queue, tenant, since_ns, alone_ns, links, .. } = self.tickets[slot as usize];
        let Arrival { die, service_ns, cause, .. } = arrival;
        self.tickets[slot as usize].waits = false;
        if self.high[queue] == slot {
            self.high[queue] = links.behind;
        }
        self.queues[queue].unlink(slot, &mut self.tickets);
        let until_ns = now_ns + service_ns;
        let alone_until_ns = since_ns + alone_ns + service_ns;
        self.working[die as usize] = Working { until_ns, tenant, alone_until_ns };
        if queue % QUEUES >= FIRST {
            return;
        }
        let activity = self.activity(slot);
        activity.slowdowns += (until_ns - since_ns) as f64 / (alone_ns + service_ns).max(1) as f64;
        activity.taken += 1;
        if cause != Cause::Host {
            activity.extra_ns -= service_ns;
        }
        self.pass_turn(slot);
    }

    fn choose(&self, die: u32, now_ns: u64, able: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        self.select(die, now_ns, able)
    }
}

impl Flin {
    /// Returns the tenant of a stream.
    fn tenant_of(&mut self, stream: u16) -> usize {
        let known = match &self.classes {
            None => self.tenants,
            Some(_) => self.of_stream[usize::from(stream)].into(),
        };
        if known > 0 {
            return known - 1;
        }
        self.tenants += 1;
        let class = self.class_of(stream);
        self.class_of_tenant.push(class as u8);
        self.of_class[class] += 1;
        self.activity.resize(self.tenants * self.dies, Default::default());
        if let Some(tenant) = self.of_stream.get_mut(usize::from(stream)) {
            *tenant = self.tenants as u16;
        }
        self.tenants - 1
    }

    fn class_of(&self, stream: u16) -> usize {
        let classes = self.classes.as_deref().unwrap_or_default();
        classes.get(usize::from(stream)).copied().unwrap_or(Class::Medium) as usize
    }

    /// Returns what the tenant of a step, which waits for its turn, has sent to the step's die.
    fn activity(&mut self, slot: u32) -> &mut Activity {
        let Ticket { tenant, queue, arrival, .. } = self.tickets[slot as usize];
        &mut self.activity[tenant * self.dies + arrival.die as usize][queue % QUEUES % 2]
    }

    /// Whether the program or erasure still waits that a step has to wait for.
    fn is_behind(&self, slot: u32) -> bool {
        let Ticket { arrival, ahead, .. } = self.tickets[slot as usize];
        self.tickets
            .get(arrival.ahead as usize)
            .is_some_and(|other| other.waits && other.arrival.number == ahead)
    }
}

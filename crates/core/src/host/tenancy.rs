//! Tenants with pending queues of their own: whose queue it is, and whose turn.

use super::arbiter::{Arbitration, Claim};
use super::lane::Lane;
use crate::host::settings::{Queues, Settings};
use crate::util::Bits;
use crate::workload::settings::By;
use crate::workload::tenants::Class;

/// Number of streams that requests can have.
const STREAMS: usize = 1 << 16;

/// A function that makes an empty queue for this many requests.
pub(super) type MakeLane = Box<dyn Fn(u32) -> Box<Lane> + Send>;

/// The pending queues of tenants, except for the one whose turn it is, which is the host's.
pub(super) struct Tenancy {
    arbiter: Arbitration,
    /// The queues by tenant; in the place of the one whose turn it is stands an empty one.
    #[expect(clippy::vec_box)] // a queue changes places with the host's at nearly every request
    lanes: Vec<Box<Lane>>,
    /// The tenant whose queue is the host's.
    at: u32,
    /// The tenants that have requests, and those whose schedulers have just let none go.
    ready: Bits,
    idle: Vec<u32>,
    /// Whether a scheduler has ever chosen several requests at once.
    batches: bool,
    /// For each stream its tenant, counted from 1; 0 for a stream that is new. Empty if tenants are streams.
    of_stream: Vec<u32>,
    make: MakeLane,
    depth: u32,
    /// Whether the request that arrives next waits outside, because its tenant's queue is full.
    pub(super) is_shut: bool,
}

/// Returns the number of places in the queue of all requests: that of the only tenant, if it is to have a queue of its
/// own.
pub(super) fn depth_of_first(settings: &Settings) -> u32 {
    let only = settings.tenants.0.first().filter(|_| settings.host.queues == Queues::PerTenant);
    only.and_then(|tenant| tenant.own.queue_depth).unwrap_or(settings.host.queue_depth)
}

impl Tenancy {
    /// Makes the queues of the tenants. `None`: all requests share a queue.
    pub(super) fn new(settings: &Settings, make: MakeLane) -> Option<Tenancy> {
        let (by_stream, tenants) = (settings.workload.tenants == By::Stream, &settings.tenants.0);
        if settings.host.queues == Queues::Shared || (tenants.len() < 2 && !by_stream) {
            return None;
        }
        let arbiter = Arbitration::new(&settings.host.arbiter, &settings.host.arbiters);
        let mut tenancy = Tenancy {
            arbiter,
            lanes: Vec::new(),
            at: 0,
            ready: Bits::new(STREAMS),
            idle: Vec::new(),
            batches: false,
            of_stream: if by_stream { vec![0; STREAMS] } else { Vec::new() },
            make,
            depth: settings.host.queue_depth,
            is_shut: false,
        };
        for tenant in tenants {
            let claim = Claim { weight: tenant.own.weight, class: tenant.own.priority };
            tenancy.add(claim, tenant.own.queue_depth.unwrap_or(tenancy.depth));
        }
        Some(tenancy)
    }

    fn add(&mut self, claim: Claim, depth: u32) {
        self.arbiter.add(claim);
        self.lanes.push((self.make)(depth));
    }

    /// Returns the queue of the tenant whose turn is first, which the host keeps.
    pub(super) fn first(&self, depth: u32) -> Box<Lane> {
        (self.make)(self.lanes.first().map_or(depth, |lane| lane.depth))
    }

    /// Returns the queues that are not the host's.
    pub(super) fn parked(&self) -> impl Iterator<Item = &Lane> {
        (0..).zip(&self.lanes).filter(|&(tenant, _)| tenant != self.at).map(|(_, lane)| &**lane)
    }

    /// Returns the tenant of a stream, which is added if it is new.
    fn tenant_of(&mut self, stream: u16) -> u32 {
        let Some(known) = self.of_stream.get_mut(usize::from(stream)) else { return stream.into() };
        if *known == 0 {
            *known = self.lanes.len() as u32 + 1;
            let depth = self.depth;
            self.add(Claim { weight: 1, class: Class::Medium }, depth);
            return self.lanes.len() as u32 - 1;
        }
        *known - 1
    }

    /// Returns the queue of a stream's tenant; `lane` is the host's.
    pub(super) fn of_stream<'a>(&'a mut self, stream: u16, lane: &'a mut Lane) -> &'a mut Lane {
        let tenant = self.tenant_of(stream);
        if tenant == self.at { lane } else { &mut self.lanes[tenant as usize] }
    }

    /// Makes a tenant's queue the host's.
    fn turn(&mut self, tenant: u32, lane: &mut Box<Lane>) {
        if tenant != self.at {
            std::mem::swap(lane, &mut self.lanes[self.at as usize]);
            std::mem::swap(lane, &mut self.lanes[tenant as usize]);
            self.at = tenant;
        }
    }

    /// Whether the tenant whose turn it is has requests that were chosen but not handed over; `lane` is the host's
    /// queue.
    #[inline]
    pub(super) fn is_amid_batch(&self, lane: &Lane) -> bool {
        self.batches && self.has_chosen(lane)
    }

    #[inline(never)] // keeps the path of schedulers that choose one request at a time short
    fn has_chosen(&self, lane: &Lane) -> bool {
        let Some(tenant) = self.arbiter.choose(&self.ready) else { return false };
        let lane = if tenant == self.at { lane } else { &self.lanes[tenant as usize] };
        !lane.chosen.is_empty()
    }

    /// Makes the queue of a stream's tenant the host's; returns the tenant, and whether its queue has room. If it has,
    /// a request must then be admitted to it.
    pub(super) fn turn_to_stream(&mut self, stream: u16, lane: &mut Box<Lane>) -> (u32, bool) {
        let tenant = self.tenant_of(stream);
        self.turn(tenant, lane);
        let room = lane.pending < lane.depth;
        if room {
            self.ready.set(tenant);
        }
        (tenant, room)
    }

    /// Makes the queue of the tenant whose turn it is the host's; returns the tenant, or `None` if nobody has a request
    /// that may go.
    #[inline]
    pub(super) fn choose(&mut self, lane: &mut Box<Lane>) -> Option<u32> {
        let tenant = self.arbiter.choose(&self.ready)?;
        self.turn(tenant, lane);
        Some(tenant)
    }

    /// Notes whether a tenant has just sent a request. If its scheduler let none go, it is passed over until
    /// [`Tenancy::settle`].
    #[inline]
    pub(super) fn note(&mut self, tenant: u32, sent: bool, lane: &Lane) {
        self.batches |= !lane.chosen.is_empty();
        if sent {
            self.arbiter.sent(tenant);
        } else {
            self.idle.push(tenant);
        }
        if !sent || lane.waiting() == 0 {
            self.ready.clear(tenant);
        }
    }

    /// Ends the search for a request.
    #[inline]
    pub(super) fn settle(&mut self) {
        while let Some(tenant) = self.idle.pop() {
            self.ready.set(tenant);
        }
    }
}

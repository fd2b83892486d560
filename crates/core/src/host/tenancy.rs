//! Tenants with pending queues of their own: whose queue it is, and whose turn.

use super::arbiter::{Arbitration, Claim};
use super::lane::Lane;
use super::{Arrivals, Host};
use crate::host::awareness::DeviceView;
use crate::host::settings::{Queues, Settings};
use crate::util::Bits;
use crate::workload::SourceError;
use crate::workload::tenants::{By, Class};

/// Number of streams that requests can have.
const STREAMS: usize = 1 << 16;

/// A function that makes an empty queue for this many requests.
pub(super) type MakeLane = Box<dyn Fn(u32) -> Lane + Send>;

/// The pending queues of tenants, except for the one whose turn it is, which is the host's.
pub(super) struct Tenancy {
    arbiter: Arbitration,
    /// The queues by tenant; in the place of the one whose turn it is stands an empty one.
    lanes: Vec<Lane>,
    /// The tenant whose queue is the host's.
    at: u32,
    /// The tenants that have requests, and those whose schedulers have just let none go.
    ready: Bits,
    idle: Vec<u32>,
    /// For each stream its tenant, counted from 1; 0 for a stream that is new. Empty if tenants are streams.
    of_stream: Vec<u32>,
    make: MakeLane,
    depth: u32,
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
            of_stream: if by_stream { vec![0; STREAMS] } else { Vec::new() },
            make,
            depth: settings.host.queue_depth,
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
    pub(super) fn first(&self, depth: u32) -> Lane {
        (self.make)(self.lanes.first().map_or(depth, |lane| lane.depth))
    }

    /// Returns the queues that are not the host's.
    pub(super) fn parked(&self) -> impl Iterator<Item = &Lane> {
        (0..).zip(&self.lanes).filter(|&(tenant, _)| tenant != self.at).map(|(_, lane)| lane)
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

    /// Makes a tenant's queue the host's.
    fn turn(&mut self, tenant: u32, lane: &mut Lane) {
        if tenant != self.at {
            std::mem::swap(lane, &mut self.lanes[self.at as usize]);
            std::mem::swap(lane, &mut self.lanes[tenant as usize]);
            self.at = tenant;
        }
    }

    /// Whether the tenant whose turn it is has requests that were chosen but not handed over.
    fn is_amid_batch(&mut self, host: &Host) -> bool {
        if self.ready.next_set(0, self.lanes.len() as u32).is_none() {
            return false;
        }
        let tenant = self.arbiter.choose(&self.ready);
        let lane = if tenant == self.at { &host.lane } else { &self.lanes[tenant as usize] };
        !lane.chosen.is_empty()
    }

    /// Admits the requests that have arrived, in order, to the queues of their tenants. A request for which there is no
    /// room waits outside; those of other tenants pass it only if they come from other sources.
    fn admit(
        &mut self,
        host: &mut Host,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<(), SourceError> {
        while arrivals.next_ns() <= now_ns {
            let tenant = self.tenant_of(arrivals.next_stream());
            self.turn(tenant, &mut host.lane);
            if host.lane.pending < host.lane.depth {
                host.admit_one(arrivals, device)?;
                self.ready.set(tenant);
            } else if !arrivals.block(tenant, true) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the next request for the device.
    fn next(
        &mut self,
        host: &mut Host,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<Option<u32>, SourceError> {
        if !self.is_amid_batch(host) {
            self.admit(host, now_ns, arrivals, device)?;
        }
        let mut found = None;
        while found.is_none() && self.ready.next_set(0, self.lanes.len() as u32).is_some() {
            let tenant = self.arbiter.choose(&self.ready);
            self.turn(tenant, &mut host.lane);
            found = match host.lane.chosen.pop(&mut host.pool) {
                Some(id) => Some(id),
                None => host.decide(now_ns, arrivals, device),
            };
            match found {
                Some(_) => self.arbiter.sent(tenant),
                None => self.idle.push(tenant),
            }
            if found.is_none() || host.lane.waiting() == 0 {
                self.ready.clear(tenant);
            }
            arrivals.block(tenant, host.lane.pending >= host.lane.depth);
        }
        for tenant in self.idle.drain(..) {
            self.ready.set(tenant);
        }
        Ok(found)
    }
}

impl Host {
    /// Returns the next request for the device, where tenants have queues of their own.
    #[cold]
    pub(super) fn next_of_tenants(
        &mut self,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<Option<u32>, SourceError> {
        let Some(mut tenancy) = self.tenancy.take() else { return Ok(None) };
        let found = tenancy.next(self, now_ns, arrivals, device);
        self.tenancy = Some(tenancy);
        found
    }
}

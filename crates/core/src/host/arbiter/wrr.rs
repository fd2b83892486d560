//! Weighted round robin with an urgent class.
//!
//! Source: NVM Express Base Specification, "Weighted Round Robin with Urgent Priority Class Arbitration": urgent queues
//! come before all others and take turns, command by command; the others share by weight. There the weights are those
//! of the classes high, medium and low; here each tenant states its own, and the class says who comes first within a
//! round (`docs/readings/tenants.md`).

use super::{Arbiter, Claim, Needs, Own};
use crate::util::Bits;
use crate::workload::tenants::Class;

pub(super) const NAME: &str = "wrr";
pub(super) const DOC: &str = "urgent tenants first; of the others, each may send as many requests in a round as its weight (NVMe's wrr)";
pub type Keys = ();

#[derive(Debug)]
pub(super) struct Wrr {
    claims: Vec<Claim>,
    /// How many requests each tenant may still send in this round.
    left: Vec<u32>,
    /// The urgent tenant after the one that sent last.
    next_urgent: u32,
    /// The tenants that share by weight, in the order in which they send in a round.
    order: Vec<u32>,
}

impl Wrr {
    /// Returns the first tenant of the round that has a request and may still send one.
    fn first(&self, ready: &Bits) -> Option<u32> {
        self.order.iter().copied().find(|&tenant| ready.get(tenant) && self.left[tenant as usize] > 0)
    }
}

impl Arbiter for Wrr {
    const NEEDS: Needs = Needs { weights: true, classes: true, ..Needs::NOTHING };

    fn new(_keys: &Own) -> Wrr {
        Wrr { claims: Vec::new(), left: Vec::new(), next_urgent: 0, order: Vec::new() }
    }

    fn add(&mut self, claim: Claim) {
        let tenant = self.claims.len() as u32;
        self.claims.push(claim);
        self.left.push(claim.weight);
        if claim.class != Class::Urgent {
            let class = |tenant: &u32| self.claims[*tenant as usize].class as u8;
            let at = self.order.partition_point(|other| class(other) <= claim.class as u8);
            self.order.insert(at, tenant);
        }
    }

    fn choose(&self, ready: &Bits) -> Option<u32> {
        let count = self.claims.len() as u32;
        let urgent = |&tenant: &u32| ready.get(tenant) && self.claims[tenant as usize].class == Class::Urgent;
        if let Some(tenant) = (self.next_urgent..count).chain(0..self.next_urgent).find(urgent) {
            return Some(tenant);
        }
        // A round ends when a request goes though nobody who has one may send any more in this round.
        let next = || self.order.iter().copied().find(|&tenant| ready.get(tenant));
        self.first(ready).or_else(next)
    }

    fn sent(&mut self, tenant: u32) {
        if self.claims[tenant as usize].class == Class::Urgent {
            self.next_urgent = tenant + 1;
            return;
        }
        if self.left[tenant as usize] == 0 {
            self.left.iter_mut().zip(&self.claims).for_each(|(left, claim)| *left = claim.weight);
        }
        self.left[tenant as usize] -= 1;
    }
}

//! Round robin: the tenants send one request each, in turn.
//!
//! Source: NVM Express Base Specification, "Round Robin Arbitration", with an arbitration burst of one command.

use super::{Arbiter, Claim, Own};
use crate::util::Bits;

pub(super) const NAME: &str = "rr";
pub(super) const DOC: &str = "one request of each tenant in turn (NVMe's round robin)";
pub type Keys = ();

#[derive(Debug)]
pub(super) struct Rr {
    tenants: u32,
    /// The tenant after the one that sent last.
    next: u32,
}

impl Arbiter for Rr {
    fn new(_keys: &Own) -> Rr {
        Rr { tenants: 0, next: 0 }
    }

    fn add(&mut self, _claim: Claim) {
        self.tenants += 1;
    }

    #[inline]
    fn choose(&self, ready: &Bits) -> Option<u32> {
        ready.next_set(self.next, self.tenants).or_else(|| ready.next_set(0, self.next))
    }

    fn sent(&mut self, tenant: u32) {
        self.next = if tenant + 1 == self.tenants { 0 } else { tenant + 1 };
    }
}

//! FLIN: the tenants send one request each, in turn, and the device orders flash operations so that all are slowed down
//! alike.
//!
//! Source: Tavakkol et al., ISCA 2018. FLIN works at the queues of the dies ([`mod@crate::device::array`]); what goes
//! before, how commands get into the device, is the round robin of NVM Express.

use super::rr::Rr;
use super::{Arbiter, Claim, Needs, Own};
use crate::util::Bits;

pub(super) const NAME: &str = "flin";
pub(super) const DOC: &str = "one request of each tenant in turn, and flash.order = \"flin\" in the device";
pub type Keys = ();

#[derive(Debug)]
pub(super) struct Flin(Rr);

impl Arbiter for Flin {
    const NEEDS: Needs = Needs { order: Some("flin"), classes: true, ..Needs::NOTHING };

    fn new(keys: &Own) -> Flin {
        Flin(Rr::new(keys))
    }

    fn add(&mut self, claim: Claim) {
        self.0.add(claim);
    }

    fn choose(&self, ready: &Bits) -> Option<u32> {
        self.0.choose(ready)
    }

    fn sent(&mut self, tenant: u32) {
        self.0.sent(tenant);
    }
}

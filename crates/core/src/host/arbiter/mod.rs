//! Arbiters of the host: whose request goes next, where each tenant has a pending queue of its own.
//!
//! An arbiter sees which tenants have requests that could go, and what each may claim; it never sees a request. To add
//! one: a file here with `NAME`, `DOC`, `Keys` and a type that implements [`Arbiter`], and one line in the registry
//! below.

use std::fmt::Debug;

use crate::config::parts::{dispatch, registry};
use crate::util::Bits;
use crate::workload::tenants::Class;

/// What a tenant may claim.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// `weight` of the tenant, from 1.
    pub weight: u32,
    /// `priority` of the tenant.
    pub class: Class,
}

/// What an arbiter needs.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The order at a die (`flash.order`) that the arbiter is one half of.
    pub order: Option<&'static str>,
    /// Whether the arbiter goes by the weights of the tenants.
    pub weights: bool,
    /// Whether the arbiter goes by the classes of the tenants.
    pub classes: bool,
}

impl Needs {
    /// The needs of an arbiter to which all tenants are alike.
    pub const NOTHING: Needs = Needs { order: None, weights: false, classes: false };
}

registry! {
    /// A registered arbiter.
    #[derive(Debug)]
    pub enum Arbitration or AnyArbiter, for "host.arbiter";

    Rr = rr::Rr;
    Wrr = wrr::Wrr;
    Flin = flin::Flin;
}

dispatch! {
    /// An arbiter. Tenants are numbered from 0 in the order in which they are added.
    pub trait Arbiter: [Debug + Send], NEEDS: Needs = Needs::NOTHING;
    for Arbitration or AnyArbiter, which "host.arbiter" may name;

    /// Makes the arbiter with these keys, for no tenants.
    fn new(keys: &Own);
    /// Adds a tenant.
    fn add(self: &mut Self, claim: Claim);
    /// Returns the tenant whose request goes next, which is one of `ready`, the tenants that have a request; `None` if
    /// there are none. The question has no effect: it may be asked before others have arrived.
    fn choose(self: &Self, ready: &Bits) -> Option<u32>;
    /// Notes that a request of this tenant has gone.
    fn sent(self: &mut Self, tenant: u32);
}

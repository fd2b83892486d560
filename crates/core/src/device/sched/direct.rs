//! A scheduler without a queue of requests: they wait at the chips.
//!
//! Source: the transaction queues of SSDSim (Hu et al., ICS 2011) and MQSim (Tavakkol et al., FAST 2018):
//! every request is divided on arrival, and its operations wait at their chips. The die decides which of them
//! it serves next: in order of arrival, unless `flash.out_of_order` is on. Under dynamic allocation writes wait until
//! a die is free ([`super::unbound`]).
//!
//! Interpretation: a flush waits until everything before it has completed, and requests that came later wait behind it.

use super::unbound::Unbound;
use super::{Part, Scheduler, Space};
use crate::device::Array;
use crate::flash::Work;
use crate::ftl::Locate;
use crate::request::{Ages, Pool, Window};
use crate::util::NONE;
use crate::workload::Op;

pub(super) const NAME: &str = "direct";
pub(super) const DOC: &str = "every request issues at once and waits at its chips (SSDSim, MQSim)";
pub type Keys = ();

/// The scheduler: a waiting flush with the requests behind it, and the pages that wait for a die.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    waiting: Ages,
    /// Pages that wait for a die, if allocation is dynamic.
    unbound: Option<Box<Unbound>>,
}

impl Scheduler for Direct {
    fn new(_keys: &super::Keys, space: &Space) -> Direct {
        let unbound = space.dynamic.then(|| Box::new(Unbound::new(space)));
        Direct { waiting: Ages::default(), unbound }
    }

    fn admit(&mut self, id: u32, _chips: Window, pool: &mut Pool) {
        self.waiting.push(id, pool);
    }

    fn next(&mut self, array: &Array, ftl: &(impl Locate + ?Sized), pool: &mut Pool) -> Option<u32> {
        if let Some(unbound) = &mut self.unbound {
            return unbound.next(&mut self.waiting, array, ftl, pool);
        }
        let id = self.waiting.head();
        if id == NONE || (pool[id].op == Op::Flush && !array.all_idle()) {
            return None;
        }
        self.waiting.pop(pool)
    }

    fn divides(&self) -> bool {
        self.unbound.is_some()
    }

    fn part(&self, work: &mut Work) -> Option<Part> {
        self.unbound.as_ref()?.part(work)
    }
}

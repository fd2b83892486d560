//! No queue of requests at all: the chips hold it.
//!
//! Source: the transaction queues of SSDSim (Hu et al., ICS 2011) and MQSim (Tavakkol et al., FAST
//! 2018): every request is taken apart when it arrives, and its operations wait at their chips. Which
//! of them a die serves next is the die's to say: in the order of arrival, unless
//! `flash.out_of_order`.
//!
//! Read into it: a flush, and what came after it, waits until all before it has completed.

use super::Scheduler;
use crate::device::Array;
use crate::device::settings::Settings;
use crate::ftl::Ftl;
use crate::request::{Ages, Pool, Window};
use crate::util::NONE;
use crate::workload::Op;

pub(super) const NAME: &str = "direct";
pub(super) const DOC: &str = "every request issues at once and waits at its chips (SSDSim, MQSim)";
pub type Keys = ();

/// What waits for a flush, and the flush.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    waiting: Ages,
}

impl Scheduler for Direct {
    fn new(_settings: &Settings) -> Direct {
        Direct { waiting: Ages::default() }
    }

    fn admit(&mut self, id: u32, _chips: Window, pool: &mut Pool) {
        self.waiting.push(id, pool);
    }

    fn next(&mut self, array: &Array, _ftl: &Ftl, pool: &mut Pool) -> Option<u32> {
        let id = self.waiting.head();
        if id == NONE || (pool[id].op == Op::Flush && !array.all_idle()) {
            return None;
        }
        self.waiting.pop(pool)
    }
}

//! The link carries the data of a write, and on the way back those of a read.

use super::hub::{Carried, Hub, Service};
use super::{Next, Plan, Stage};
use crate::device::turn::Turn;
use crate::device::watch::Watch;
use crate::ftl::Running;
use crate::request::Request;
use crate::workload::Op;

pub type Keys = ();

#[derive(Debug)]
pub(in crate::device) struct Data;

impl Stage for Data {
    fn new(plan: &Plan, _keys: &super::Keys) -> Option<Data> {
        plan.controller.has_link().then_some(Data)
    }

    #[inline]
    fn come<F: Running>(&mut self, id: u32, hub: &mut Hub, turn: &mut Turn<F>, _watch: &mut Watch) -> Next {
        let &Request { op, size, .. } = &turn.pool[id];
        if op != Op::Write {
            return Next::On;
        }
        Next::Until(hub.transfer(Carried { id, op }, Service::DataIn, size, turn.now_ns))
    }

    #[inline]
    fn back(&mut self, id: u32, hub: &mut Hub, request: &Request, now_ns: u64) -> Next {
        if request.op != Op::Read || request.size == 0 || request.failed {
            return Next::On;
        }
        Next::Until(hub.transfer(Carried { id, op: Op::Read }, Service::DataOut, request.size, now_ns))
    }
}

//! The link carries the command. On the way back it carries the answer, which then waits for the further delay.

use super::hub::{Carried, Hub, Service};
use super::{Next, Plan, Stage};
use crate::device::controller;
use crate::device::turn::Turn;
use crate::device::watch::Watch;
use crate::ftl::Running;
use crate::request::Request;

pub type Keys = ();

#[derive(Debug)]
pub(in crate::device) struct Command(controller::Settings);

impl Stage for Command {
    fn new(&Plan { controller: own, .. }: &Plan, _keys: &super::Keys) -> Option<Command> {
        (own.takes_link() || own.waits()).then(|| Command(own.clone()))
    }

    #[inline]
    fn come<F: Running>(&mut self, id: u32, hub: &mut Hub, turn: &mut Turn<F>, _watch: &mut Watch) -> Next {
        if !self.0.takes_link() {
            return Next::On;
        }
        let op = turn.pool[id].op;
        Next::Until(hub.carry(Carried { id, op }, Service::Command, self.0.link_command_ns, turn.now_ns))
    }

    fn back(&mut self, id: u32, hub: &mut Hub, request: &Request, now_ns: u64) -> Next {
        let mut at_ns = now_ns;
        if self.0.takes_link() {
            at_ns =
                hub.carry(Carried { id, op: request.op }, Service::Answer, self.0.link_command_ns, now_ns);
        }
        let latency_ns = self.0.latency_ns(request.op);
        hub.spent.add(request.op, |spent| &mut spent.latency_ns, latency_ns);
        if at_ns + latency_ns == now_ns { Next::On } else { Next::Until(at_ns + latency_ns) }
    }
}

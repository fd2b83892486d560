//! The cores of the controller: each works on one command at a time.

use super::hub::{Hub, Server};
use super::{Next, Plan, Stage};
use crate::device::turn::Turn;
use crate::device::watch::Watch;
use crate::ftl::Running;
use crate::request::Request;
use crate::workload::Op;

pub type Keys = ();

#[derive(Debug)]
pub(in crate::device) struct Cores {
    cores: Vec<Server>,
    /// How long a core works on a command and on each of its logical pages, ns: for a write, and for any other command.
    times_ns: [[u64; 2]; 2],
}

impl Cores {
    /// Returns how long each core was busy up to a moment.
    pub(super) fn busy(&self, now_ns: u64) -> impl Iterator<Item = u64> {
        self.cores.iter().map(move |server| server.busy_up_to(now_ns))
    }
}

impl Stage for Cores {
    fn new(&Plan { controller: own, .. }: &Plan, _keys: &super::Keys) -> Option<Cores> {
        own.has_cores().then(|| Cores {
            cores: vec![Server::default(); own.cores as usize],
            times_ns: [Op::Write, Op::Read].map(|op| own.core_times_ns(op)),
        })
    }

    #[inline]
    fn come<F: Running>(&mut self, id: u32, hub: &mut Hub, turn: &mut Turn<F>, _watch: &mut Watch) -> Next {
        let Request { op, pages, .. } = &turn.pool[id];
        let [command_ns, unit_ns] = self.times_ns[usize::from(*op != Op::Write)];
        let ns = command_ns + unit_ns * u64::from(pages.pages);
        if ns == 0 {
            return Next::On;
        }
        let cores = self.cores.iter_mut().enumerate();
        let (at, core) = cores.min_by_key(|(_, core)| core.free_ns).expect("there is a core");
        let at_ns = core.serve(turn.now_ns, ns);
        hub.keep_core(id, at, [at_ns - ns, at_ns]);
        hub.spent.add(*op, |spent| &mut spent.core_ns, at_ns - turn.now_ns);
        Next::Until(at_ns)
    }
}

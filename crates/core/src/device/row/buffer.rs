//! The write buffer as a stage ([`crate::device::buffer`]): what it does with a command is told to the probes.

use super::hub::Hub;
use super::{Next, Plan, Stage};
pub(in crate::device) use crate::device::buffer::Buffer;
use crate::device::buffer::Taken;
use crate::device::turn::Turn;
use crate::device::watch::{Issue, Ram, Watch};
use crate::ftl::Running;
use crate::request::Pool;
use crate::util::NONE;
use crate::workload::Op;

pub type Keys = ();

/// A command that leaves the buffer: its id, and what becomes of it there.
type Leaving = (u32, Taken);

impl Stage for Buffer {
    fn new(plan: &Plan, _keys: &super::Keys) -> Option<Buffer> {
        Buffer::new(plan.buffer, plan.around)
    }

    fn come<F: Running>(&mut self, id: u32, _hub: &mut Hub, turn: &mut Turn<F>, watch: &mut Watch) -> Next {
        let (request, now_ns) = (&turn.pool[id], turn.now_ns);
        if request.mark.reads_map() {
            return Next::On;
        }
        let number = request.id;
        if request.op == Op::Flush {
            watch.ram(Ram::Flush { number }, now_ns);
        }
        let (ftl, heard) = (&*turn.ftl, watch.hears_issues());
        let keep = |lpn| {
            if heard {
                watch.ram(Ram::Keep { number, lpn, slot: ftl.slot(lpn) }, now_ns);
            }
        };
        let taken = self.take(id, request, now_ns, ftl, keep);
        decided(self, (id, taken), turn, watch)
    }

    #[inline]
    fn is_due(&self) -> bool {
        Buffer::is_due(self)
    }

    fn wake<F: Running>(&mut self, turn: &mut Turn<F>, watch: &mut Watch) {
        let Turn { now_ns, pool, ftl, .. } = turn;
        let heard = watch.hears_issues();
        self.admit(*now_ns, &**ftl, |id, lpn| {
            if heard {
                watch.ram(Ram::Keep { number: pool[id].id, lpn, slot: ftl.slot(lpn) }, *now_ns);
            }
        });
        self.resume_reads();
    }

    fn release<F: Running>(&mut self, turn: &mut Turn<F>, watch: &mut Watch) -> Option<(u32, Next)> {
        let leaving = self.leave()?;
        Some((leaving.0, decided(self, leaving, turn, watch)))
    }

    fn stirs(&self) -> bool {
        self.reads_ahead()
    }

    fn close(&mut self) {
        Buffer::close(self);
    }

    fn lose(&mut self) {
        Buffer::lose(self);
    }
}

/// Does what the write buffer has decided about a command; returns what becomes of it in the row.
fn decided(
    buffer: &mut Buffer,
    (id, taken): Leaving,
    turn: &mut Turn<impl Running>,
    watch: &mut Watch,
) -> Next {
    match taken {
        Taken::ToQueue => return Next::On,
        Taken::Waits => return Next::Stays,
        Taken::Answered | Taken::Refused => {}
    }
    let request = &turn.pool[id];
    if request.op == Op::Read && watch.hears_issues() {
        let (pages, now_ns) = (request.pages, turn.now_ns);
        let issue = Issue { request, pages, entries: &[], buffer: Some(buffer), now_ns };
        watch.answers(&issue, turn.ftl);
    }
    turn.pool[id].failed |= taken == Taken::Refused;
    buffer.answers(id);
    pass_prefetch(id, turn.pool);
    Next::Back
}

/// Makes the next request of a batch load the mappings that the rest of the batch needs, if the request that would have
/// loaded them is answered without the flash.
fn pass_prefetch(id: u32, pool: &mut Pool) {
    let next = pool.behind(id);
    if pool[id].host.prefetch && next != NONE && pool[next].host.batch == pool[id].host.batch {
        pool[next].host.prefetch = true;
    }
}

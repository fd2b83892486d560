//! Which step a die takes next where tenants are to be slowed down alike ([`super::flin`]), and what it has to wait for
//! all the same.

use super::flin::Arrival;
use super::frame::Frame;
use super::lines::{CHANGES, LINE};
use super::overlap::Overlap;
use super::state::Extra;
use super::steps::{NO_STEP, Reference};
use crate::flash::{Cause, Operation};
use crate::util::{Chain, NONE};

impl Overlap {
    /// Returns the step that a die takes next where tenants are to be slowed down alike.
    pub(super) fn choose_fairly(&mut self, frame: &mut Frame, die: u32, now_ns: u64) -> Option<u32> {
        let flin = self.flin.take()?;
        let chosen = flin.choose(die, now_ns, |slot| self.is_able(frame, slot));
        self.flin = Some(flin);
        chosen
    }

    /// Whether a step can begin, no matter what it overtakes. If it waits for a step elsewhere, its die is served again
    /// when that step has finished.
    fn is_able(&mut self, frame: &mut Frame, slot: u32) -> bool {
        let step = frame.steps[slot].step;
        let last = step.operation == Operation::Erase || step.settled != 0;
        let older = |line: &Chain<LINE>| self.number(line.head) < self.number(slot);
        let lines = &self.luns[step.lun as usize].lines.all;
        let keeps = self.in_order || step.cause != Cause::Host;
        let keeps = keeps && step.operation == Operation::Program;
        if last && lines.iter().any(older) || keeps && older(&lines[CHANGES]) {
            return false; // else recovery could not undo a collection: it goes by the block programmed last
        }
        let Some(awaited) = self.awaited(frame, step.lun, slot) else { return true };
        frame.steps[awaited].awaited = true;
        self.stall(frame, step.lun);
        false
    }

    /// Adds a step to the queues in which tenants are slowed down alike.
    #[cold]
    pub(super) fn queue(&mut self, frame: &Frame, slot: u32, stream: Option<u16>, now_ns: u64) {
        let Some(flin) = &mut self.flin else { return };
        let (step, Extra { number, change, .. }) = (&frame.steps[slot].step, self.extras[slot as usize]);
        let lun = &mut self.luns[step.lun as usize];
        let (mut block, mut before) = (NONE, NO_STEP);
        if step.operation != Operation::Read && step.page != NONE {
            // The newer of the two waits for the older one itself.
            let age = |at: &Reference| frame.steps.unfinished(*at).then(|| self.extras[at.0 as usize].number);
            before = if age(&change) > age(&lun.erased) { change } else { lun.erased };
            block = self.pages_per_block.div(step.page);
        }
        if step.operation == Operation::Erase {
            lun.erased = frame.steps.reference(slot);
        }
        let arrival = Arrival {
            slot,
            number,
            die: lun.die,
            stream,
            operation: step.operation,
            cause: step.cause,
            block,
            ahead: if frame.steps.unfinished(before) { before.0 } else { NONE },
            service_ns: step.in_ns + step.cell_ns + step.out_ns,
        };
        flin.enter(arrival, now_ns);
    }
}

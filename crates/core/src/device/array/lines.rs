//! Where steps wait until a die begins them.
//!
//! Each LUN keeps its waiting steps in lines, in the order of emission. Where reads may overtake, a read that is
//! found to wait for an unfinished step is put aside, and not considered again until that step has finished. So the
//! cost of a choice does not grow with the number of waiting steps.

use super::frame::Frame;
use super::order::Arrival;
use super::overlap::Overlap;
use super::state::Extra;
use super::steps::{NO_STEP, Reference};
use crate::flash::Operation;
use crate::util::{Chain, Linked, NONE, Neighbours};

/// Kind of list: the line of a LUN in which a step waits.
pub(super) const LINE: usize = 0;
/// Kind of list: a LUN's reads that are not put aside; used where reads may overtake.
pub(super) const OPEN: usize = 1;
/// Kind of list: a LUN's reads with the same page number in their blocks; used where only such reads go together.
pub(super) const ALIKE: usize = 2;

/// Index of the line with programs and erasures. A LUN has one line for the reads of read requests, one for other
/// reads, and this one. Where reads may not overtake, all steps are in the first line.
pub(super) const CHANGES: usize = 2;

impl<const KIND: usize> Linked<KIND> for Extra {
    fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.links[KIND]
    }
}

/// Inserts a step into a list, which is ordered by number, if the step `waits`; its place is near one of the ends.
/// Otherwise removes the step from the list.
fn set<const KIND: usize>(list: &mut Chain<KIND>, extras: &mut [Extra], slot: u32, waits: bool) {
    if !waits {
        return list.unlink(slot, extras);
    }
    let number = |slot: u32| extras[slot as usize].number;
    let (mut ahead, mut behind) = (list.tail, list.head);
    while ahead != NONE && number(ahead) > number(slot) {
        if number(behind) > number(slot) {
            return list.insert(slot, behind, extras);
        }
        ahead = extras[ahead as usize].links[KIND].before;
        behind = extras[behind as usize].links[KIND].behind;
    }
    let behind = if ahead == NONE { list.head } else { extras[ahead as usize].links[KIND].behind };
    list.insert(slot, behind, extras);
}

/// The steps that wait at a LUN.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// All steps that have not begun, by line.
    pub all: [Chain<LINE>; 3],
    /// The waiting reads that are not put aside, by line.
    pub open: [Chain<OPEN>; 2],
}

impl Lines {
    /// Whether no step waits.
    pub fn are_empty(&self) -> bool {
        self.all.iter().all(|line| line.head == NONE)
    }
}

impl Overlap {
    fn line_of(&self, frame: &Frame, slot: u32) -> usize {
        match frame.steps[slot].step.operation {
            _ if !self.passing => 0,
            Operation::Read => usize::from(!self.extras[slot as usize].urgent),
            _ => CHANGES,
        }
    }

    /// Returns where [`Overlap::alike`] lists the reads with this page's number in its block, if such reads are
    /// listed.
    pub(super) fn alike_at(&self, lun: u32, page: u32) -> Option<usize> {
        let offset = self.pages_per_block.rem(page);
        let at = lun as usize * self.pages_per_block.get() as usize + offset as usize;
        (page != NONE && !self.alike.is_empty()).then_some(at)
    }

    /// Adds a step to its lists when it begins to wait, or removes it from them when it no longer waits.
    pub(super) fn list(&mut self, frame: &Frame, slot: u32, waits: bool) {
        let (line, step) = (self.line_of(frame, slot), &frame.steps[slot].step);
        let alike = self.alike_at(step.lun, step.page);
        let Overlap { luns, extras, alike: lists, .. } = self;
        let lines = &mut luns[step.lun as usize].lines;
        set(&mut lines.all[line], extras, slot, waits);
        if self.passing && line != CHANGES {
            set(&mut lines.open[line], extras, slot, waits);
            alike.into_iter().for_each(|at| set(&mut lists[at], extras, slot, waits));
        }
    }

    /// Puts a read aside until a step has finished.
    pub(super) fn put_aside(&mut self, frame: &Frame, slot: u32, awaited: u32) {
        let line = self.line_of(frame, slot);
        let lun = frame.steps[slot].step.lun as usize;
        set(&mut self.luns[lun].lines.open[line], &mut self.extras, slot, false);
        let next = std::mem::replace(&mut self.extras[awaited as usize].waiting, slot);
        (self.extras[slot as usize].aside, self.extras[slot as usize].next) = (true, next);
    }

    /// Puts the reads that waited for this step, which has finished, back on their lists.
    pub(super) fn take_up(&mut self, frame: &Frame, awaited: u32) {
        let mut slot = std::mem::replace(&mut self.extras[awaited as usize].waiting, NONE);
        while slot != NONE {
            let line = self.line_of(frame, slot);
            let lun = frame.steps[slot].step.lun as usize;
            self.extras[slot as usize].aside = false;
            set(&mut self.luns[lun].lines.open[line], &mut self.extras, slot, true);
            slot = self.extras[slot as usize].next;
        }
    }

    /// Tells the order at a die about a step that begins to wait, if the order has queues of its own.
    #[cold]
    pub(super) fn queue(&mut self, frame: &Frame, slot: u32, stream: Option<u16>, now_ns: u64) {
        let Some(queues) = &mut self.queues else { return };
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
        queues.enter(arrival, now_ns);
    }
}

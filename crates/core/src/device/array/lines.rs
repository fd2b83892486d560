//! Where steps wait until a die begins them.
//!
//! Each LUN has its steps in lines, in the order of emission. Where reads may pass, a read is considered only
//! when it may have nothing left to wait for: one that waits for an unfinished step is put aside until that
//! has finished. So the cost of a choice does not grow with the number of waiting steps.

use super::frame::Frame;
use super::overlap::Overlap;
use super::state::Extra;
use crate::flash::Operation;
use crate::util::NONE;

/// The line of a LUN that a step is in.
pub(super) const LINE: usize = 0;
/// Reads of a LUN that are not put aside, where reads may pass.
pub(super) const OPEN: usize = 1;
/// Reads of a LUN with the same page number in their blocks, where those go together.
pub(super) const ALIKE: usize = 2;

/// Number of the line with programs and erasures. A LUN has one for reads that belong to a request that
/// reads, one for other reads, and this one. Where reads may not pass, all steps are in the first.
pub(super) const CHANGES: usize = 2;

/// Steps in the order of their numbers, linked through [`Extra::links`].
#[derive(Clone, Copy, Debug)]
pub(super) struct List<const KIND: usize> {
    pub head: u32,
    tail: u32,
}

impl<const KIND: usize> Default for List<KIND> {
    fn default() -> Self {
        List { head: NONE, tail: NONE }
    }
}

impl<const KIND: usize> List<KIND> {
    /// Puts a step where its number belongs, which is near one of the ends.
    pub fn insert(&mut self, extras: &mut [Extra], slot: u32) {
        let number = extras[slot as usize].number;
        let (mut ahead, mut behind) = (self.tail, self.head);
        loop {
            if ahead == NONE || extras[ahead as usize].number < number {
                behind = if ahead == NONE { self.head } else { extras[ahead as usize].links[KIND][1] };
                break;
            }
            if extras[behind as usize].number > number {
                ahead = extras[behind as usize].links[KIND][0];
                break;
            }
            ahead = extras[ahead as usize].links[KIND][0];
            behind = extras[behind as usize].links[KIND][1];
        }
        extras[slot as usize].links[KIND] = [ahead, behind];
        self.join(extras, ahead, slot, slot, behind);
    }

    /// Takes a step out.
    pub fn remove(&mut self, extras: &mut [Extra], slot: u32) {
        let [ahead, behind] = extras[slot as usize].links[KIND];
        self.join(extras, ahead, behind, ahead, behind);
    }

    /// Links `first` behind `ahead` and `last` ahead of `behind`.
    fn join(&mut self, extras: &mut [Extra], ahead: u32, first: u32, last: u32, behind: u32) {
        match ahead {
            NONE => self.head = first,
            ahead => extras[ahead as usize].links[KIND][1] = first,
        }
        match behind {
            NONE => self.tail = last,
            behind => extras[behind as usize].links[KIND][0] = last,
        }
    }
}

/// The steps that wait at a LUN.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// All steps that have not begun.
    pub all: [List<LINE>; 3],
    /// The reads among them that are not put aside.
    pub open: [List<OPEN>; 2],
}

impl Lines {
    /// Whether nothing waits.
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

    /// Where reads like this one are listed in [`Overlap::alike`], if they are.
    pub(super) fn alike_at(&self, lun: u32, page: u32) -> Option<usize> {
        let offset = self.pages_per_block.rem(page);
        let at = lun as usize * self.pages_per_block.get() as usize + offset as usize;
        (page != NONE && !self.alike.is_empty()).then_some(at)
    }

    /// Puts a step at the end of its line.
    pub(super) fn enqueue(&mut self, frame: &Frame, slot: u32) {
        let (line, step) = (self.line_of(frame, slot), &frame.steps[slot].step);
        let alike = self.alike_at(step.lun, step.page);
        let Overlap { luns, extras, alike: lists, .. } = self;
        let lines = &mut luns[step.lun as usize].lines;
        lines.all[line].insert(extras, slot);
        if self.passing && line != CHANGES {
            lines.open[line].insert(extras, slot);
            alike.into_iter().for_each(|at| lists[at].insert(extras, slot));
        }
    }

    /// Takes a step that begins out of its line.
    pub(super) fn unlink(&mut self, frame: &Frame, slot: u32) {
        let (line, step) = (self.line_of(frame, slot), &frame.steps[slot].step);
        let alike = self.alike_at(step.lun, step.page);
        let Overlap { luns, extras, alike: lists, .. } = self;
        let lines = &mut luns[step.lun as usize].lines;
        lines.all[line].remove(extras, slot);
        if self.passing && line != CHANGES {
            lines.open[line].remove(extras, slot);
            alike.into_iter().for_each(|at| lists[at].remove(extras, slot));
        }
    }

    /// Puts a read aside until a step has finished.
    pub(super) fn put_aside(&mut self, frame: &Frame, slot: u32, awaited: u32) {
        let line = self.line_of(frame, slot);
        let lun = frame.steps[slot].step.lun as usize;
        self.luns[lun].lines.open[line].remove(&mut self.extras, slot);
        let next = std::mem::replace(&mut self.extras[awaited as usize].waiting, slot);
        (self.extras[slot as usize].aside, self.extras[slot as usize].next) = (true, next);
    }

    /// Takes up again what was put aside until this step has finished.
    pub(super) fn take_up(&mut self, frame: &Frame, awaited: u32) {
        let mut slot = std::mem::replace(&mut self.extras[awaited as usize].waiting, NONE);
        while slot != NONE {
            let line = self.line_of(frame, slot);
            let lun = frame.steps[slot].step.lun as usize;
            self.extras[slot as usize].aside = false;
            self.luns[lun].lines.open[line].insert(&mut self.extras, slot);
            slot = self.extras[slot as usize].next;
        }
    }
}

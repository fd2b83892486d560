//! Which step a die takes up next, and which steps of other planes go with it.
//!
//! In order: each LUN's steps in the order of emission; of its LUNs' first steps a die takes the
//! oldest that waits for nothing. Out of order, and to interrupt an operation and while one is
//! suspended, reads pass programs and erasures that wait: the oldest read goes that waits for nothing.
//! Out of order, when `flash.max_passed` reads have gone ahead of the oldest waiting program or erasure,
//! that one goes. A read out of order waits for the program of its own page and for erasures of its block,
//! one that interrupts for all programs of its block too, a program or erasure for all of its LUN's
//! steps, as far as they were emitted before it.
//!
//! A multi-plane operation takes, from every other plane of the same die, the step that this plane
//! would take up, if it does the same, and has the same page number in its block where that is asked
//! for; erasures need not have the same. Nothing waits for company.

use super::frame::Frame;
use super::overlap::Overlap;
use super::state::{Die, Group, Lun};
use crate::flash::Operation;
use crate::flash::parallel::MultiPlane;
use crate::util::NONE;

/// Steps of a LUN that have not begun, in the order of emission: all, or the reads and the others where
/// reads may pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    ends: [[u32; 2]; 2],
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { ends: [[NONE; 2]; 2] }
    }
}

impl Lines {
    /// Whether nothing waits.
    pub(super) fn are_empty(&self) -> bool {
        self.ends.iter().all(|[head, _]| *head == NONE)
    }
}

/// Which steps are looked for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Reads, or everything else.
    reads: bool,
    /// Reads that pass waiting programs and erasures.
    passing: bool,
    /// Only steps with smaller numbers, of the same operation.
    before: u64,
    operation: Option<Operation>,
    /// Only this page number within a block.
    offset: Option<u32>,
    /// Only reads that may interrupt this operation.
    interrupts: Option<Group>,
}

impl Overlap {
    fn line_of(&self, frame: &Frame, slot: u32) -> usize {
        usize::from(self.passing && frame.steps[slot].step.operation != Operation::Read)
    }

    /// Any reads, or other steps. With `before` they are reads while an operation is suspended.
    fn wanted(&self, reads: bool, before: Option<u64>) -> Wanted {
        let passing = self.options.out_of_order || before.is_some();
        let before = before.unwrap_or(u64::MAX);
        Wanted { reads, passing, before, operation: None, offset: None, interrupts: None }
    }

    /// Puts a step at the end of its line.
    pub(super) fn enqueue(&mut self, frame: &mut Frame, slot: u32) {
        let line = self.line_of(frame, slot);
        let [head, tail] = &mut self.luns[frame.steps[slot].step.chip as usize].lines.ends[line];
        let last = std::mem::replace(tail, slot);
        match last {
            NONE => *head = slot,
            last => frame.steps[last].behind = slot,
        }
        self.extras[slot as usize].ahead = last;
    }

    /// Takes a step out of its line.
    pub(super) fn unlink(&mut self, frame: &mut Frame, slot: u32) {
        let line = self.line_of(frame, slot);
        let (ahead, behind) = (self.extras[slot as usize].ahead, frame.steps[slot].behind);
        let [head, tail] = &mut self.luns[frame.steps[slot].step.chip as usize].lines.ends[line];
        match ahead {
            NONE => *head = behind,
            ahead => frame.steps[ahead].behind = behind,
        }
        match behind {
            NONE => *tail = ahead,
            behind => self.extras[behind as usize].ahead = ahead,
        }
    }

    /// The step a die takes up next, if one can begin; while an operation is suspended, of the reads
    /// with numbers below `before`.
    pub(super) fn choose(&mut self, frame: &mut Frame, die: u32, before: Option<u64>) -> Option<u32> {
        let mut best = [NONE; 2];
        let (first, end) = self.dies[die as usize].luns;
        for at in first..end {
            let lun = self.order[at as usize];
            for (kind, best) in best.iter_mut().enumerate().take(if before.is_some() { 1 } else { 2 }) {
                let wanted = self.wanted(kind == 0, before);
                let found = self.candidate(frame, lun, wanted);
                if found != NONE && (*best == NONE || self.number(found) < self.number(*best)) {
                    *best = found;
                }
            }
        }
        let [read, other] = best;
        let read_goes = other == NONE
            || read != NONE
                && (self.number(read) < self.number(other)
                    || self.options.out_of_order && self.dies[die as usize].passed < self.options.max_passed);
        let chosen = if read_goes { read } else { other };
        (chosen != NONE).then_some(chosen)
    }

    fn number(&self, slot: u32) -> u64 {
        self.extras[slot as usize].number
    }

    /// The step that a LUN would take up, of those wanted, or [`NONE`]. A die that has to wait for a
    /// step elsewhere is served again when that has finished.
    fn candidate(&mut self, frame: &mut Frame, lun: u32, wanted: Wanted) -> u32 {
        let [[first, _], [first_other, _]] = self.luns[lun as usize].lines.ends;
        let (mut slot, rival) = match (self.passing, wanted.reads) {
            (false, _) => (first, NONE),
            (true, true) => (first, if wanted.passing { NONE } else { first_other }),
            (true, false) => (first_other, first),
        };
        // Nothing else of the LUN may be older.
        let turn = |slot| rival == NONE || self.number(slot) < self.number(rival);
        if slot == NONE || !turn(slot) {
            return NONE;
        }
        while slot != NONE && self.number(slot) < wanted.before {
            let is_read = frame.steps[slot].step.operation == Operation::Read;
            if is_read == wanted.reads && self.fits(frame, slot, wanted) && self.can_begin(frame, lun, slot) {
                return slot;
            }
            if !(wanted.passing && wanted.reads) {
                return NONE;
            }
            slot = frame.steps[slot].behind;
        }
        NONE
    }

    fn fits(&self, frame: &Frame, slot: u32, wanted: Wanted) -> bool {
        let step = &frame.steps[slot].step;
        let offset = |page| if page == NONE { NONE } else { self.pages_per_block.rem(page) };
        wanted.operation.is_none_or(|operation| operation == step.operation)
            && wanted.offset.is_none_or(|wanted| wanted != NONE && wanted == offset(step.page))
            && wanted.interrupts.is_none_or(|group| self.interrupts(frame, &group, slot))
    }

    /// Whether all that a step waits for has finished.
    fn can_begin(&mut self, frame: &mut Frame, lun: u32, slot: u32) -> bool {
        let queued = frame.steps[slot];
        let mut waits = [queued.after, queued.needs, self.extras[slot as usize].change].into_iter();
        let mut awaited = waits.find(|&wanted| frame.steps.unfinished(wanted)).map(|(awaited, _)| awaited);
        if queued.step.settled != 0 && awaited.is_none() {
            awaited = self.unsettled(frame, lun, queued.step.settled);
        }
        if let Some(awaited) = awaited {
            frame.steps[awaited].awaited = true;
            let die = self.luns[lun as usize].die;
            if !std::mem::replace(&mut self.dies[die as usize].stalled, true) {
                frame.stalled.push_back(die);
            }
            return false;
        }
        let suspended = &self.dies[self.luns[lun as usize].die as usize].suspended;
        !suspended.is_some_and(|suspended| self.shares_block(frame, &suspended.group, slot))
    }

    /// A program or erasure up to this number that some other LUN has not finished. A LUN finishes them
    /// in the order of their numbers.
    #[cold]
    fn unsettled(&self, frame: &Frame, lun: u32, number: u32) -> Option<u32> {
        let others = (0..self.luns.len() as u32).filter(|&other| other != lun);
        let older = |slot: &u32| number.wrapping_sub(frame.steps[*slot].step.number) < 1 << 31;
        others.filter_map(|other| self.oldest_change(frame, other)).find(older)
    }

    /// The oldest unfinished program or erasure of a LUN.
    fn oldest_change(&self, frame: &Frame, lun: u32) -> Option<u32> {
        let Lun { die, held: [_, changes], lines: Lines { ends }, .. } = &self.luns[lun as usize];
        if *changes == 0 {
            return None;
        }
        let Die { groups, front, suspended, .. } = &self.dies[*die as usize];
        let [waiting, _] = ends[usize::from(self.passing)];
        let heads = [
            suspended.map_or(NONE, |suspended| suspended.group.head),
            groups[*front].head,
            groups[1 - *front].head,
            waiting,
        ];
        heads.into_iter().find_map(|head| {
            frame.steps.line(head).find(|&slot| {
                let step = &frame.steps[slot].step;
                step.chip == lun && step.operation != Operation::Read
            })
        })
    }

    /// Whether a step concerns a block that an operation programs or erases.
    fn shares_block(&self, frame: &Frame, group: &Group, slot: u32) -> bool {
        let block = |page| if page == NONE { NONE } else { self.pages_per_block.div(page) };
        let wanted = block(frame.steps[slot].step.page);
        wanted != NONE && frame.steps.line(group.head).any(|at| block(frame.steps[at].step.page) == wanted)
    }

    /// Whether a read waits that may interrupt an operation.
    pub(super) fn interrupted(&mut self, frame: &mut Frame, die: u32, group: Group) -> bool {
        let (first, end) = self.dies[die as usize].luns;
        let wanted = Wanted { interrupts: Some(group), ..self.wanted(true, Some(u64::MAX)) };
        (first..end).any(|at| self.candidate(frame, self.order[at as usize], wanted) != NONE)
    }

    /// Whether a read may interrupt an operation: it belongs to a request that reads, and the
    /// operation to another one, and it does not concern the same block.
    fn interrupts(&self, frame: &Frame, group: &Group, slot: u32) -> bool {
        let read = &frame.steps[slot];
        self.extras[slot as usize].urgent
            && !self.shares_block(frame, group, slot)
            && !self.belongs(frame, group, read.owner)
    }

    fn belongs(&self, frame: &Frame, group: &Group, owner: u32) -> bool {
        frame.steps.line(group.head).any(|at| frame.steps[at].owner == owner)
    }

    /// Counts a read that goes ahead of an older program or erasure.
    pub(super) fn count_passed(&mut self, frame: &Frame, die: u32, slot: u32) {
        if !self.passing {
            return;
        }
        let (first, end) = self.dies[die as usize].luns;
        let number = self.number(slot);
        let older = |&lun: &u32| {
            let [head, _] = self.luns[lun as usize].lines.ends[1];
            head != NONE && self.number(head) < number
        };
        let passes = frame.steps[slot].step.operation == Operation::Read
            && self.order[first as usize..end as usize].iter().any(older);
        let passed = &mut self.dies[die as usize].passed;
        *passed = if passes { passed.saturating_add(1) } else { 0 };
        self.overlaps.passed += u64::from(passes);
    }

    /// Links steps of the other planes of the die behind a step that begins; whether there are any.
    pub(super) fn gather(&mut self, frame: &mut Frame, die: u32, slot: u32, before: Option<u64>) -> bool {
        let step = frame.steps[slot].step;
        let package = self.luns[step.chip as usize].package;
        let same = self.options.multi_plane == MultiPlane::SameOffset && step.operation != Operation::Erase;
        let offset = |page| if page == NONE { NONE } else { self.pages_per_block.rem(page) };
        let wanted = Wanted {
            operation: Some(step.operation),
            offset: same.then(|| offset(step.page)),
            ..self.wanted(step.operation == Operation::Read, before)
        };
        let (first, end) = self.dies[die as usize].luns;
        let mut last = slot;
        for at in first..end {
            let lun = self.order[at as usize];
            if lun == step.chip || self.luns[lun as usize].package != package {
                continue;
            }
            let found = self.candidate(frame, lun, wanted);
            if found != NONE {
                self.unlink(frame, found);
                frame.steps[last].behind = found;
                frame.steps[found].behind = NONE;
                last = found;
            }
        }
        last != slot
    }
}

//! Which step a die takes next, and which steps of other planes go with it.
//!
//! In order, each LUN runs its steps as they were emitted; among the first steps of its LUNs, a die takes the oldest
//! that waits for nothing. Reads overtake waiting programs and erasures in three cases: where they run out of order,
//! where they interrupt an operation, and while an operation is suspended. Then the oldest read that waits for nothing
//! goes first. Out of order, once `flash.max_passed` reads have gone ahead of the oldest waiting program or erasure,
//! that program or erasure goes. A read that goes out of order waits for the program of its own page and for erasures
//! of its block; one that interrupts an operation also waits for all programs of its block. Programs and erasures of a
//! LUN begin in the order of their emission, after all reads emitted before them.
//!
//! Where the order has queues of its own ([`super::order`]), a read waits as one out of order, a program for earlier
//! ones of its block and erasures of its LUN (if it is not of the host's own data, or the FTL maps blocks, for all
//! earlier ones of its LUN), and an erasure, like whatever waits for other LUNs, for all earlier steps.
//!
//! A multi-plane operation also takes, from every other plane of the same die, the step that that plane would take
//! next, provided it is the same operation and, where `flash.multi_plane` requires it, on the same page number in its
//! block (erasures are exempt from this). No step waits for others to join it.

use super::frame::Frame;
use super::lines::{ALIKE, CHANGES, Extra, LINE, Lines, OPEN};
use super::order::Arrival;
use super::overlap::Overlap;
use super::state::{Die, Group, Lun};
use super::steps::{NO_STEP, Reference};
use crate::flash::{Cause, Operation, parallel::MultiPlane};
use crate::util::{Chain, NONE};

/// Criteria for the steps that a die may take.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Whether reads are wanted; if not, programs and erasures are.
    reads: bool,
    /// Whether reads may overtake waiting programs and erasures.
    passing: bool,
    /// Only steps with numbers below this one are wanted.
    before: u64,
    /// If given, only steps of this operation are wanted.
    operation: Option<Operation>,
    /// If given, only steps on this page number within their block are wanted.
    offset: Option<u32>,
    /// If given, only reads that may interrupt this operation are wanted.
    interrupts: Option<Group>,
}

impl Overlap {
    /// Returns criteria that every read meets or, if `reads` is false, every other step. `before` is given while an
    /// operation is suspended: then only reads with smaller numbers are wanted.
    fn wanted(&self, reads: bool, before: Option<u64>) -> Wanted {
        let passing = self.options.out_of_order || before.is_some();
        let before = before.unwrap_or(u64::MAX);
        Wanted { reads, passing, before, operation: None, offset: None, interrupts: None }
    }

    /// Returns the step that a die takes next, if one can begin; while an operation is suspended, only reads with
    /// numbers below `before` are considered.
    pub(super) fn choose(
        &mut self,
        frame: &mut Frame,
        die: u32,
        before: Option<u64>,
        now_ns: u64,
    ) -> Option<u32> {
        if before.is_none()
            && let Some(queues) = self.queues.take()
        {
            let chosen = queues.choose(die, now_ns, &mut |slot| self.is_able(frame, slot));
            self.queues = Some(queues);
            return chosen;
        }
        let mut best = [NONE; 2];
        let (first, end) = self.dies[die as usize].luns;
        for at in first..end {
            let lun = self.order[at as usize];
            for (kind, best) in best.iter_mut().enumerate().take(if before.is_some() { 1 } else { 2 }) {
                let wanted = self.wanted(kind == 0, before);
                let found = self.candidate(frame, lun, wanted);
                if found != NONE && (*best == NONE || self.waiting.number(found) < self.waiting.number(*best))
                {
                    *best = found;
                }
            }
        }
        let [read, other] = best;
        let read_goes = other == NONE
            || read != NONE
                && (self.waiting.number(read) < self.waiting.number(other)
                    || self.options.out_of_order && self.dies[die as usize].passed < self.options.max_passed);
        let chosen = if read_goes { read } else { other };
        (chosen != NONE).then_some(chosen)
    }

    /// Removes a step that begins from its lists.
    pub(super) fn take_out(&mut self, frame: &Frame, slot: u32, now_ns: u64) {
        self.waiting.list(frame, slot, false);
        if let Some(queues) = &mut self.queues {
            queues.leave(slot, now_ns);
        }
    }

    /// Whether a step can begin, no matter what it overtakes. If it waits for a step elsewhere, its die is served again
    /// when that step has finished.
    fn is_able(&mut self, frame: &mut Frame, slot: u32) -> bool {
        let step = frame.steps[slot].step;
        let last = step.operation == Operation::Erase || step.settled != 0;
        let older = |line: &Chain<LINE>| self.waiting.number(line.head) < self.waiting.number(slot);
        let lines = &self.waiting.lines[step.lun as usize].all;
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

    fn older(&self, one: u32, other: u32) -> u32 {
        if self.waiting.number(one) <= self.waiting.number(other) { one } else { other }
    }

    /// Returns which of the wanted steps a LUN would take, or [`NONE`]. If the LUN has to wait for a step elsewhere,
    /// its die is served again when that step has finished.
    fn candidate(&mut self, frame: &mut Frame, lun: u32, wanted: Wanted) -> u32 {
        if wanted.passing && wanted.reads {
            return self.passing_read(frame, lun, wanted);
        }
        // In order, only the oldest step of the LUN can be taken.
        let [urgent, other, changes] = self.waiting.lines[lun as usize].all.map(|line| line.head);
        let slot = self.older(self.older(urgent, other), changes);
        let takes = self.waiting.number(slot) < wanted.before
            && (frame.steps[slot].step.operation == Operation::Read) == wanted.reads
            && self.fits(frame, slot, wanted);
        if !takes {
            return NONE;
        }
        if let Some(awaited) = self.awaited(frame, lun, slot) {
            frame.steps[awaited].awaited = true;
            self.stall(frame, lun);
            return NONE;
        }
        if self.shares_suspended(frame, lun, slot) { NONE } else { slot }
    }

    /// Returns the LUN's oldest wanted read that waits for nothing, no matter what it overtakes.
    fn passing_read(&mut self, frame: &mut Frame, lun: u32, wanted: Wanted) -> u32 {
        let Lines { all, open } = &self.waiting.lines[lun as usize];
        let (mut reads, open) = ([all[0].head, all[1].head], open.map(|list| list.head));
        let (kind, mut at) = match wanted.offset {
            Some(NONE) => return NONE,
            Some(offset) => {
                (ALIKE, [self.waiting.alike[self.waiting.alike_at(lun, offset).expect("listed")].head, NONE])
            }
            None => (OPEN, open),
        };
        if wanted.interrupts.is_some() {
            // Only reads that belong to read requests interrupt anything.
            (at[1], reads[1]) = (NONE, NONE);
        }
        let (mut found, mut waits) = (NONE, false);
        while found == NONE {
            let slot = self.older(at[0], at[1]);
            if self.waiting.number(slot) >= wanted.before {
                break;
            }
            at[usize::from(slot != at[0])] = self.waiting.extras[slot as usize].links[kind].behind;
            if !self.fits(frame, slot, wanted) {
                continue;
            }
            if self.waiting.extras[slot as usize].aside {
                waits = true;
            } else if let Some(awaited) = self.awaited(frame, lun, slot) {
                frame.steps[awaited].awaited = true;
                self.waiting.put_aside(frame, slot, awaited);
                waits = true;
            } else if !self.shares_suspended(frame, lun, slot) {
                found = slot;
            }
        }
        // If an older wanted read waits, the die is served again when the step that the read waits for has finished.
        let end = self.waiting.number(found).min(wanted.before);
        if waits || kind == OPEN && self.has_aside(frame, reads, end, wanted) {
            self.stall(frame, lun);
        }
        found
    }

    /// Whether the lines with these heads hold a wanted read, numbered below `end`, that was put aside.
    fn has_aside(&self, frame: &Frame, heads: [u32; 2], end: u64, wanted: Wanted) -> bool {
        heads.into_iter().any(|mut slot| {
            while self.waiting.number(slot) < end {
                let Extra { aside, links, .. } = &self.waiting.extras[slot as usize];
                if *aside && self.fits(frame, slot, wanted) {
                    return true;
                }
                slot = links[LINE].behind;
            }
            false
        })
    }

    /// Arranges for the die of a LUN to be served again once an awaited step has finished.
    pub(super) fn stall(&mut self, frame: &mut Frame, lun: u32) {
        let die = self.luns[lun as usize].die;
        if !std::mem::replace(&mut self.dies[die as usize].stalled, true) {
            frame.stalled.push_back(die);
        }
    }

    /// Returns a page's number within its block, or [`NONE`] if there is no page.
    fn offset(&self, page: u32) -> u32 {
        if page == NONE { NONE } else { self.waiting.pages_per_block.rem(page) }
    }

    fn fits(&self, frame: &Frame, slot: u32, wanted: Wanted) -> bool {
        let step = &frame.steps[slot].step;
        wanted.operation.is_none_or(|operation| operation == step.operation)
            && wanted.offset.is_none_or(|wanted| wanted != NONE && wanted == self.offset(step.page))
            && wanted.interrupts.is_none_or(|group| self.interrupts(frame, &group, slot))
    }

    /// Returns an unfinished step that the given step waits for, if there is one.
    pub(super) fn awaited(&self, frame: &Frame, lun: u32, slot: u32) -> Option<u32> {
        let step = &frame.steps[slot].step;
        // Programs and erasures of a block begin in the order of emission anyway; with cached programs, the next one
        // begins before the last has ended.
        let reads = step.operation == Operation::Read;
        let change = if reads { self.waiting.extras[slot as usize].change } else { NO_STEP };
        let mut waits = frame.steps.awaited_by(slot).into_iter().chain([change]);
        let awaited = waits.find(|&wanted| frame.steps.unfinished(wanted)).map(|(awaited, _)| awaited);
        match step.settled {
            0 => awaited,
            settled => awaited.or_else(|| self.unsettled(frame, lun, settled)),
        }
    }

    /// Whether a step concerns a block with a suspended operation.
    fn shares_suspended(&self, frame: &Frame, lun: u32, slot: u32) -> bool {
        let suspended = &self.dies[self.luns[lun as usize].die as usize].suspended;
        suspended.is_some_and(|suspended| self.shares_block(frame, &suspended.group, slot))
    }

    /// Returns an unfinished program or erasure of another LUN whose number is at most `number`. A LUN finishes its
    /// programs and erasures in the order of their numbers.
    #[cold]
    fn unsettled(&self, frame: &Frame, lun: u32, number: u32) -> Option<u32> {
        let others = (0..self.luns.len() as u32).filter(|&other| frame.settles(lun, other));
        let older = |slot: &u32| number.wrapping_sub(frame.steps[*slot].step.number) < 1 << 31;
        others.filter_map(|other| self.oldest_change(frame, other)).find(older)
    }

    /// Returns the oldest unfinished program or erasure of a LUN.
    fn oldest_change(&self, frame: &Frame, lun: u32) -> Option<u32> {
        let Lun { die, held: [_, changes], .. } = &self.luns[lun as usize];
        let all = &self.waiting.lines[lun as usize].all;
        if *changes == 0 {
            return None;
        }
        let Die { groups, front, suspended, .. } = &self.dies[*die as usize];
        let begun = [
            suspended.map_or(NONE, |suspended| suspended.group.head),
            groups[*front].head,
            groups[1 - *front].head,
        ];
        let changes = |&slot: &u32| {
            let step = &frame.steps[slot].step;
            step.lun == lun && step.operation != Operation::Read
        };
        let first = all[if self.waiting.passing { CHANGES } else { 0 }].head;
        let some = |slot: u32| (slot != NONE).then_some(slot);
        let behind = |&slot: &u32| some(self.waiting.extras[slot as usize].links[LINE].behind);
        let waiting = std::iter::successors(some(first), behind).find(changes);
        let begun = begun.into_iter().flat_map(|head| frame.steps.line(head)).filter(changes);
        begun.chain(waiting).min_by_key(|&slot| self.waiting.number(slot))
    }

    /// Whether a step concerns a block that an operation programs or erases.
    fn shares_block(&self, frame: &Frame, group: &Group, slot: u32) -> bool {
        let block = |page| if page == NONE { NONE } else { self.waiting.pages_per_block.div(page) };
        let wanted = block(frame.steps[slot].step.page);
        wanted != NONE && frame.steps.line(group.head).any(|at| block(frame.steps[at].step.page) == wanted)
    }

    /// Whether a waiting read may interrupt an operation.
    pub(super) fn interrupted(&mut self, frame: &mut Frame, die: u32, group: Group) -> bool {
        let (first, end) = self.dies[die as usize].luns;
        let wanted = Wanted { interrupts: Some(group), ..self.wanted(true, Some(u64::MAX)) };
        (first..end).any(|at| self.candidate(frame, self.order[at as usize], wanted) != NONE)
    }

    /// Whether a read may interrupt an operation: it belongs to a read request, the operation belongs to another
    /// request, and they concern different blocks.
    fn interrupts(&self, frame: &Frame, group: &Group, slot: u32) -> bool {
        let read = &frame.steps[slot];
        self.waiting.extras[slot as usize].urgent
            && !self.shares_block(frame, group, slot)
            && !self.belongs(frame, group, read.owner)
    }

    fn belongs(&self, frame: &Frame, group: &Group, owner: u32) -> bool {
        frame.steps.line(group.head).any(|at| frame.steps[at].owner == owner)
    }

    /// Counts a read that overtakes an older program or erasure.
    pub(super) fn count_passed(&mut self, frame: &Frame, die: u32, slot: u32) {
        if !self.waiting.passing {
            return;
        }
        let (first, end) = self.dies[die as usize].luns;
        let number = self.waiting.number(slot);
        let older =
            |&lun: &u32| self.waiting.number(self.waiting.lines[lun as usize].all[CHANGES].head) < number;
        let passes = frame.steps[slot].step.operation == Operation::Read
            && self.order[first as usize..end as usize].iter().any(older);
        let passed = &mut self.dies[die as usize].passed;
        *passed = if passes { passed.saturating_add(1) } else { 0 };
        self.overlaps.passed += u64::from(passes);
    }

    /// Links steps of the die's other planes behind a step that begins; returns whether there are any.
    pub(super) fn gather(
        &mut self,
        frame: &mut Frame,
        die: u32,
        slot: u32,
        before: Option<u64>,
        now_ns: u64,
    ) -> bool {
        let step = frame.steps[slot].step;
        let package = self.luns[step.lun as usize].package;
        let same = self.options.multi_plane == MultiPlane::SameOffset && step.operation != Operation::Erase;
        let wanted = Wanted {
            operation: Some(step.operation),
            offset: same.then(|| self.offset(step.page)),
            ..self.wanted(step.operation == Operation::Read, before)
        };
        let (first, end) = self.dies[die as usize].luns;
        let mut last = slot;
        for at in first..end {
            let lun = self.order[at as usize];
            if lun == step.lun || self.luns[lun as usize].package != package {
                continue;
            }
            let found = self.candidate(frame, lun, wanted);
            if found != NONE {
                self.take_out(frame, found, now_ns);
                frame.steps[last].behind = found;
                last = found;
            }
        }
        last != slot
    }

    /// Tells the order at a die about a step that begins to wait, if the order has queues of its own.
    #[cold]
    pub(super) fn queue(&mut self, frame: &Frame, slot: u32, stream: Option<u16>, now_ns: u64) {
        let Some(queues) = &mut self.queues else { return };
        let (step, Extra { number, change, .. }) =
            (&frame.steps[slot].step, self.waiting.extras[slot as usize]);
        let lun = &mut self.luns[step.lun as usize];
        let (mut block, mut before) = (NONE, NO_STEP);
        if step.operation != Operation::Read && step.page != NONE {
            // The newer of the two waits for the older one itself.
            let age = |at: &Reference| {
                frame.steps.unfinished(*at).then(|| self.waiting.extras[at.0 as usize].number)
            };
            before = if age(&change) > age(&lun.erased) { change } else { lun.erased };
            block = self.waiting.pages_per_block.div(step.page);
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

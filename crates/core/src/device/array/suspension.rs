//! **Suspension**: a read that belongs to a read request interrupts the cells of another request's program or
//! erasure, unless both concern the same block, the operation ends no later than the suspension would take effect, a
//! cached program waits, or the operation has been interrupted `flash.max_suspensions` times. Reads that have arrived
//! by the time the suspension takes effect are served; later ones interrupt again.

use super::frame::Frame;
use super::overlap::Overlap;
use super::state::{Die, Group, Lun, Phase, Suspended};
use crate::flash::Operation;
use crate::flash::parallel::{Parallel, Suspend};

impl Overlap {
    /// Whether the die of a LUN has no operation.
    pub(super) fn is_resting(&self, lun: u32) -> bool {
        let die = &self.dies[self.luns[lun as usize].die as usize];
        let at_work = die.groups.iter().any(|group| group.phase != Phase::Idle);
        !at_work && !die.stalled && die.suspended.is_none()
    }

    /// Whether a LUN could begin a program now: its die is idle, except for what other planes received at
    /// this instant, or its cells are programming and its register is free for the data of the next program.
    pub(super) fn is_free(&self, frame: &Frame, lun: u32) -> bool {
        let Lun { held, die, .. } = &self.luns[lun as usize];
        if *held == [0; 2] && self.is_resting(lun) {
            return true;
        }
        let Die { groups, front, suspended, .. } = &self.dies[*die as usize];
        let Group { phase, operation, head, .. } = groups[*front];
        self.options.cache_program
            && (phase, operation) == (Phase::Cells, Operation::Program)
            && frame.steps[head].step.in_ns > 0
            && groups[1 - front].phase == Phase::Idle
            && suspended.is_none()
            && self.waiting.lines[lun as usize].are_empty()
    }

    /// Whether a LUN can accept a read (if `read`) or a write before it has run out of other work.
    #[cold]
    pub(super) fn takes(&self, lun: u32, read: bool) -> bool {
        let Lun { held: [reads, others], die, .. } = self.luns[lun as usize];
        let Parallel { out_of_order, cache_read, cache_program, .. } = self.options;
        if !read {
            return reads == 0 && others <= u32::from(cache_program);
        }
        let die = &self.dies[die as usize];
        let interrupts = die.suspended.is_some() || self.suspends(die.groups[die.front].operation);
        out_of_order || interrupts || (others == 0 && reads <= u32::from(cache_read))
    }

    pub(super) fn suspends(&self, operation: Operation) -> bool {
        match operation {
            Operation::Read => false,
            Operation::Program => self.options.suspend == Suspend::ProgramErase,
            Operation::Erase => self.options.suspend != Suspend::Off,
        }
    }

    /// Interrupts the cells if a read may go first.
    pub(super) fn suspend(&mut self, frame: &mut Frame, die: u32, index: usize, now_ns: u64) {
        let group = self.dies[die as usize].groups[index];
        let left_ns = group.until_ns - now_ns;
        if group.suspensions >= self.options.max_suspensions || left_ns <= self.options.suspend_ns {
            return;
        }
        if !self.interrupted(frame, die, group) {
            return;
        }
        self.overlaps.suspensions[group.operation as usize - 1] += 1;
        let state = &mut self.dies[die as usize];
        let group = &mut state.groups[index];
        group.phase = Phase::Suspending;
        group.suspensions += 1;
        state.suspended = Some(Suspended { group: *group, left_ns, before: 0 });
        frame.clock.set(die, now_ns + self.options.suspend_ns);
    }

    /// Resumes a suspended operation.
    pub(super) fn resume(&mut self, frame: &mut Frame, die: u32, suspended: Suspended, now_ns: u64) {
        let state = &mut self.dies[die as usize];
        let until_ns = now_ns + self.options.resume_ns + suspended.left_ns;
        let group = Group { phase: Phase::Resuming, since_ns: now_ns, until_ns, ..suspended.group };
        state.suspended = None;
        let front = state.front;
        state.groups[front] = group;
        self.use_cells(frame, die, front, now_ns, self.options.resume_ns);
    }
}

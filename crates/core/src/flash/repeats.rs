//! The part of a [`Work`] in which reads meet errors ([`super::errors`]).

use super::errors::Past;
use super::work::At;
use super::{Cause, Flash, Operation, Reliability, Work};
use crate::util::NONE;

impl Work {
    /// Repeats the read that was just emitted as often as its errors need: each repetition is a step of its own, in
    /// which the cells work and the same data cross the bus.
    pub(super) fn repeat(&mut self, at: At, cause: Cause, times: [u64; 2]) {
        let Some(reliability) = self.reliability.as_mut().filter(|_| at.page != NONE) else { return };
        let repetition = reliability.read(at.page, cause == Cause::Host, times);
        let out_ns = times[1];
        for nth in 0..repetition.count {
            let cell_ns = repetition.cells_ns[usize::from(nth > 0)];
            self.counts.busy_ns[cause] += cell_ns + out_ns;
            // A read counts once by its type, however often it is repeated.
            let tally = self.tally.take();
            self.push(at, Operation::Read, cause, [0, cell_ns, out_ns]);
            self.tally = tally;
        }
    }

    /// Notes a program of consecutive pages of a block, from this one on.
    pub(super) fn note_program(&mut self, first: u32) {
        if let Some(reliability) = &mut self.reliability {
            reliability.program(first);
        }
    }

    /// Returns the errors that reads meet, if they can meet any.
    pub fn reliability(&self) -> Option<&Reliability> {
        self.reliability.as_deref()
    }

    /// Returns what [`Work::reliability`] does, to be changed.
    pub fn reliability_mut(&mut self) -> Option<&mut Reliability> {
        self.reliability.as_deref_mut()
    }

    /// Takes the errors that reads meet, which are then none.
    pub(crate) fn take_reliability(&mut self) -> Option<Box<Reliability>> {
        self.differ = self.cells.have_types() || self.superblocks.is_some();
        self.reliability.take()
    }

    /// Lets reads meet these errors, with all counts at 0.
    pub(crate) fn set_reliability(&mut self, reliability: Option<Box<Reliability>>) {
        self.differ |= reliability.is_some();
        self.reliability = reliability;
        if let Some(reliability) = &mut self.reliability {
            reliability.reset_counts();
        }
    }

    /// Sets the time at which operations are emitted from now on, ns.
    #[inline]
    pub(crate) fn set_now(&mut self, now_ns: u64) {
        if let Some(reliability) = &mut self.reliability {
            reliability.set_now(now_ns);
        }
    }

    /// Whether a read of the host's data has failed since this was last asked.
    #[inline]
    pub(crate) fn take_failure(&mut self) -> bool {
        self.reliability.as_mut().is_some_and(|reliability| reliability.take_failure())
    }

    /// Returns what each block has gone through until now, in block order; `None` if reads meet no errors.
    pub(crate) fn past(&self, now_ns: u64) -> Option<Vec<Past>> {
        self.reliability().map(|reliability| reliability.past(now_ns))
    }

    /// Gives the blocks the pasts that a saved state states, in block order; without any, blocks with data have never
    /// been read.
    pub(crate) fn set_past(&mut self, past: Option<Vec<Past>>, has_data: impl Fn(u32) -> bool) {
        let Some(reliability) = &mut self.reliability else { return };
        let fresh = |block| Past { reads: 0, last: 0, age_ns: has_data(block).then_some(0) };
        match past {
            Some(past) => reliability.set_past(past.into_iter()),
            None => reliability.set_past((0u32..).map(fresh)),
        }
    }

    /// Lets all data have lain for `age_ns` longer; returns false if reads meet no errors, for which age means nothing.
    pub(crate) fn age(&mut self, age_ns: u64) -> bool {
        self.reliability.as_mut().map(|reliability| reliability.age(age_ns)).is_some()
    }

    /// Gives each block another erase count, in block order, while a device runs.
    pub(crate) fn wear(&mut self, erases: impl Iterator<Item = u32>) {
        self.set_erases(erases);
        if let Some(reliability) = &mut self.reliability {
            reliability.watch_anew();
        }
    }

    /// Makes the cells take `factor` times as long as the settings of `flash` say, from the next operation on.
    pub(crate) fn slow(&mut self, flash: &Flash, factor: f64) {
        self.cells.slow(flash, factor, self.counts.programs.total());
        if let Some(reliability) = &mut self.reliability {
            reliability.slow(flash, factor);
        }
    }

    /// Looks for blocks that are to be rewritten now; returns when it must look again, ns.
    pub(crate) fn look_for_worn(&mut self) -> Option<u64> {
        self.reliability.as_mut()?.look()
    }

    /// Takes a block of a LUN that is to be rewritten.
    pub(crate) fn take_worn(&mut self, lun: u32) -> Option<u32> {
        self.reliability.as_mut()?.take_worn(lun)
    }

    /// Puts a block back that cannot be rewritten now.
    pub(crate) fn put_back_worn(&mut self, block: u32) {
        if let Some(reliability) = &mut self.reliability {
            reliability.put_back(block);
        }
    }
}

//! The way of a command through controller and write buffer, to the queue and back to the host.

use super::buffer::{Buffer, Taken};
use super::controller::Leaves;
use super::{COMMAND, Device};
use crate::clock::NEVER;
use crate::flash::media::Tape;
use crate::flash::moves::{Move, Moves};
use crate::ftl::{Locate, Running};
use crate::request::{Entry, Pages, Pool};
use crate::util::NONE;
use crate::workload::Op;

impl Device {
    /// Whether requests that are handed over do not simply join the queue: [`Device::accept_apart`] takes them.
    #[inline]
    pub fn is_apart(&self) -> bool {
        self.apart
    }

    /// Takes a request where there is a controller or a write buffer, or the device is read-only.
    #[inline(never)] // keeps the path of all other requests short
    pub fn accept_apart(
        &mut self,
        id: u32,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &impl Running,
        done: &mut Vec<u32>,
    ) {
        if self.read_only_ns.is_some() && pool[id].op != Op::Read {
            pool[id].failed = true;
            done.push(id);
            return;
        }
        self.held += 1;
        if let Some(controller) = &mut self.controller {
            pool[id].task = COMMAND;
            if !controller.receive(id, &pool[id], now_ns) {
                return;
            }
        }
        self.enter(id, now_ns, pool, ftl, done);
    }

    /// Takes a request into the write buffer, if there is one, or into the queue; returns whether anything can begin
    /// because of it.
    fn enter(
        &mut self,
        id: u32,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &impl Running,
        done: &mut Vec<u32>,
    ) -> bool {
        let Device { buffer: Some(buffer), tape, moves, .. } = self else { return self.join(id, pool, ftl) };
        if pool[id].mark.reads_map() {
            return self.join(id, pool, ftl);
        }
        let notes = Notes { tape, moves, number: pool[id].id, now_ns };
        if pool[id].op == Op::Flush {
            notes.come();
        }
        let taken = buffer.take(id, &pool[id], now_ns, ftl, |lpn| notes.page(lpn, ftl));
        let reads_ahead = buffer.reads_ahead();
        self.go_on(id, taken, now_ns, pool, ftl, done) || reads_ahead
    }

    /// Does what the write buffer has decided about a request; returns whether anything can begin because of it.
    fn go_on(
        &mut self,
        id: u32,
        taken: Taken,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &impl Running,
        done: &mut Vec<u32>,
    ) -> bool {
        match taken {
            Taken::ToQueue => return self.join(id, pool, ftl),
            Taken::Waits => {}
            Taken::Answered | Taken::Refused => {
                if let (Op::Read, Some(moves)) = (pool[id].op, &self.moves) {
                    moves.note(Move::Issue { request: Some(pool[id].id) });
                    note_read(moves, (pool[id].pages, &[]), self.buffer.as_deref(), ftl);
                }
                pool[id].failed |= taken == Taken::Refused;
                if let Some(buffer) = &mut self.buffer {
                    buffer.answers(id);
                }
                pass_prefetch(id, pool);
                self.answer(id, now_ns, pool, done);
            }
        }
        true
    }

    /// Takes a request that does not come straight from the host into the queue; returns whether a request may issue.
    #[inline(never)] // `Waiting::accept` is long
    fn join(&mut self, id: u32, pool: &mut Pool, ftl: &impl Running) -> bool {
        let waits = self.waiting.sched.waits(&self.array);
        self.waiting.accept(id, pool, &self.array, ftl);
        !waits
    }

    /// Answers a request of the host, by way of the controller if there is one.
    pub(super) fn answer(&mut self, id: u32, now_ns: u64, pool: &Pool, done: &mut Vec<u32>) {
        if self.controller.as_mut().is_none_or(|controller| controller.finish(id, &pool[id], now_ns)) {
            self.held -= 1;
            done.push(id);
        }
    }

    /// Whether commands go through a controller or a write buffer: then [`Device::go_through`] must
    /// follow each [`Device::advance`].
    pub fn has_stages(&self) -> bool {
        self.controller.is_some() || self.buffer.is_some()
    }

    /// Returns when the next command is due in controller or write buffer, or [`NEVER`]; a time in the past stands for
    /// now.
    #[inline]
    pub fn stages_ns(&self) -> u64 {
        if self.buffer.as_ref().is_some_and(|buffer| buffer.is_due()) {
            return 0;
        }
        self.controller.as_ref().map_or(NEVER, |controller| controller.next_ns())
    }

    /// Lets commands that are due at `now_ns` go through write buffer and controller, if there are any. Returns whether
    /// anything can begin because of it.
    #[inline(always)] // called in one place
    pub fn go_through(
        &mut self,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &impl Running,
        done: &mut Vec<u32>,
    ) -> bool {
        let mut any = self.buffer.as_ref().is_some_and(|buffer| buffer.is_due());
        let Device { buffer: at, tape, moves, .. } = self;
        if let (Some(buffer), true) = (at, any) {
            let notes = |id: u32| Notes { tape, moves, number: pool[id].id, now_ns };
            buffer.admit(now_ns, ftl, |id, lpn| notes(id).page(lpn, ftl));
            buffer.resume_reads();
        }
        while let Some((id, taken)) = self.buffer.as_mut().and_then(|buffer| buffer.leave()) {
            self.go_on(id, taken, now_ns, pool, ftl, done);
        }
        while let Some(leaves) = self.controller.as_mut().and_then(|at| at.advance(now_ns, pool)) {
            match leaves {
                None => {}
                Some(Leaves::ToQueue(id)) => any |= self.enter(id, now_ns, pool, ftl, done),
                Some(Leaves::Answered(id)) => {
                    self.held -= 1;
                    done.push(id);
                    any = true;
                }
            }
        }
        any
    }

    /// Whether anything can begin because chips or buses have moved on: a request has ended, a LUN may take more, or the
    /// device has worked for itself, since this was last asked.
    pub(super) fn has_changed(&mut self, done: &[u32]) -> bool {
        let before = std::mem::replace(&mut self.changes, self.array.changes());
        before != self.changes || !done.is_empty() || self.array.overlaps_steps()
    }

    /// Forgets the commands in controller and write buffer, whose power is cut.
    pub fn forget_commands(&mut self) {
        if let Some(buffer) = &mut self.buffer {
            buffer.lose();
        }
        if let Some(controller) = &mut self.controller {
            controller.forget();
        }
    }
}

/// Makes the next request of a batch load the mappings that the rest of the batch needs, if the request that would have
/// loaded them is answered without the flash.
fn pass_prefetch(id: u32, pool: &mut Pool) {
    let next = pool.behind(id);
    if pool[id].host.prefetch && next != NONE && pool[next].host.batch == pool[id].host.batch {
        pool[next].host.prefetch = true;
    }
}

/// The tape and the moves, if they are kept, which record what the write buffer does for a request.
struct Notes<'a> {
    tape: &'a Option<Tape>,
    moves: &'a Option<Moves>,
    /// Number of the request.
    number: u64,
    now_ns: u64,
}

impl Notes<'_> {
    /// Notes that the request has come.
    fn come(&self) {
        if let Some(tape) = self.tape {
            tape.issue(self.number, self.now_ns, false);
        }
    }

    /// Notes that a page of the request has come into the buffer.
    fn page(&self, lpn: u32, ftl: &impl Locate) {
        if let Some(tape) = self.tape {
            tape.issue(self.number, self.now_ns, false);
            tape.next(Some(lpn), false);
        }
        if let Some(moves) = self.moves {
            moves.note(Move::Issue { request: Some(self.number) });
            moves.note(Move::Keep { lpn, slot: ftl.slot(lpn) });
        }
    }
}

/// Notes where a read finds its pages; it carries these entries, one for each page, or none.
pub(super) fn note_read(
    moves: &Moves,
    (pages, entries): (Pages, &[Entry]),
    buffer: Option<&Buffer>,
    ftl: &impl Locate,
) {
    for lpn in pages.first..pages.first + pages.pages {
        let named = entries.get((lpn - pages.first) as usize).and_then(|&entry| ftl.slot_named(lpn, entry));
        // A version on its way to the flash already has its slot there.
        moves.note(match buffer.is_some_and(|buffer| buffer.is_dirty(lpn)) {
            true => Move::Kept { lpn },
            false => Move::Read { lpn, slot: named.unwrap_or_else(|| ftl.slot(lpn)) },
        });
    }
}

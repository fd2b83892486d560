//! What happens when a request issues: its pages go through the FTL, whose steps start on the chips.

use super::entries::Entries;
use super::turn::Turn;
use super::{Device, commands, sched};
use crate::flash::moves::Move;
use crate::flash::{Cause, Work};
use crate::ftl::Running;
use crate::request::{Entry, Mark, Pages, Request};
use crate::workload::Op;

impl Device {
    /// Reports to the tape, the moves and the lookups which pages of a request issue.
    #[cold]
    fn tell(&mut self, (id, request): (u32, &Request), pages: Pages, now_ns: u64, ftl: &impl Running) {
        if let Some(tape) = &self.tape {
            // Padding is not a request of the workload.
            tape.issue(if request.mark.pad { u64::MAX } else { request.id }, now_ns, request.mark.fua());
        }
        if let Some(moves) = &self.moves {
            moves.note(Move::Issue { request: (!request.mark.pad).then_some(request.id) });
            if request.op == Op::Read {
                let entries = self.entries_of(id, request, pages);
                commands::note_read(moves, (pages, entries), self.buffer.as_deref(), ftl);
            }
        }
        if let Some(lookups) = &mut self.lookups {
            lookups.request(pages, ftl);
        }
    }

    /// Issues a request: runs it through the FTL, and starts its steps. `ATTENDED` says whether more may be done for it.
    #[inline(always)] // for every request
    pub(super) fn begin<const ATTENDED: bool>(&mut self, id: u32, turn: &mut Turn<impl Running>) {
        turn.work.clear();
        let attended = ATTENDED && self.attended;
        if attended {
            turn.work.set_now(turn.now_ns);
            if turn.pool[id].mark.reads_map() {
                return self.begin_hand_out(id, turn);
            }
            if let Some(part) = self.waiting.sched.part(turn.work) {
                return self.begin_part(id, part, turn);
            }
            if self.reads_buffer(turn.pool[id].op, turn.pool[id].pages) {
                return self.begin_rest(id, turn);
            }
            self.tell((id, &turn.pool[id]), turn.pool[id].pages, turn.now_ns, turn.ftl);
            self.discard(turn.pool[id].op, turn.pool[id].pages, turn.pool[id].mark);
        }
        let request = &turn.pool[id];
        self.waiting.leave(request, &self.array, turn.ftl, turn.work);
        let (op, pages) = (request.op, request.pages);
        if request.host.prefetch && (op == Op::Read || !turn.ftl.updates_free()) {
            turn.again().fetch_for_batch(id);
        }
        let request = &turn.pool[id];
        let misses = if request.mark.any() {
            let entries = self.entries_of(id, request, pages);
            let mark = request.mark;
            turn.again().serve_marked(op, pages, mark, entries)
        } else {
            match op {
                Op::Read => turn.ftl.read(pages, turn.work),
                Op::Write => turn.ftl.write(pages, turn.work),
                Op::Trim | Op::Flush => turn.again().serve(op, pages, Mark::default(), &[]),
            }
        };
        let request = &mut turn.pool[id];
        if turn.ftl.is_read_only() {
            request.failed = self.turned_read_only(turn.now_ns, turn.ftl);
        }
        request.misses = misses;
        if attended {
            request.failed |= turn.work.take_failure() && op == Op::Read;
        }
        self.launch(id, Some(pages.stream), 0, turn);
    }

    /// Starts the steps of a request that the FTL has decided on, for a stream or for none. Ends the request if there are no
    /// steps and nothing else `remains` of it: pages that have not issued yet.
    #[inline(always)] // for every request
    pub(super) fn launch(&mut self, id: u32, stream: Option<u16>, remains: u32, turn: &mut Turn<impl Sized>) {
        let request = &mut turn.pool[id];
        let (steps, op) = (turn.work.steps().len() as u32, request.op);
        request.device.steps_left = remains + steps;
        if remains + steps == 0 {
            self.end(id, turn.now_ns, turn.pool, turn.done);
        } else if remains == 0 || steps > 0 {
            self.array.start((id, stream), turn.work, op == Op::Read, turn.now_ns);
        }
    }

    /// Issues a request for which more may be done: where tenants are told apart or the host holds entries, charges the
    /// flash's work to its stream, and notes whether mappings were read for it.
    #[inline(never)] // keeps the path of all other requests short
    pub(super) fn begin_attended(&mut self, id: u32, mut turn: Turn<impl Running>) {
        debug_assert!(self.ledger.as_ref().is_none_or(|ledger| ledger.is_current(turn.work.counts())));
        let mapped = turn.work.counts().reads[Cause::Map];
        self.begin::<true>(id, &mut turn);
        if self.noted {
            let request = &mut turn.pool[id];
            request.host.fetched |= turn.work.counts().reads[Cause::Map] > mapped;
            // The entries that the host reads belong to nobody.
            self.charge((!request.mark.reads_map()).then_some(request.pages.stream), turn.work);
        }
    }

    /// Charges the work since the last call to a stream or to nobody, if tenants are told apart.
    #[inline]
    pub(super) fn charge(&mut self, stream: Option<u16>, work: &Work) {
        match (&mut self.ledger, stream) {
            (None, _) => {}
            (Some(ledger), None) => ledger.pass(work.counts()),
            (Some(ledger), Some(stream)) => ledger.charge(stream, work.counts()),
        }
    }

    /// Whether a request is a read some of whose pages are in the write buffer.
    #[cold]
    fn reads_buffer(&self, op: Op, pages: Pages) -> bool {
        let Some(buffer) = self.buffer.as_ref().filter(|_| op == Op::Read && pages.pages > 0) else {
            return false;
        };
        buffer.run(pages, 0) != (false, pages.pages)
    }

    /// Drops from the write buffer, as a request issues, the pages that it trims or writes past the buffer. If a page
    /// is written in part, what the buffer holds of the rest goes with the write.
    #[cold]
    fn discard(&mut self, op: Op, pages: Pages, mark: Mark) {
        let Some(buffer) = self.buffer.as_mut().filter(|_| matches!(op, Op::Write | Op::Trim)) else {
            return;
        };
        if let Some(moves) = &self.moves {
            for lpn in pages.first..pages.first + pages.pages {
                moves.note(if op == Op::Write { Move::Destage { lpn } } else { Move::Drop { lpn } });
            }
        }
        buffer.discard(pages, mark.pad);
    }

    /// Begins a read some of whose pages are in the write buffer.
    #[cold]
    fn begin_rest(&mut self, id: u32, turn: &mut Turn<impl Running>) {
        self.waiting.leave(&turn.pool[id], &self.array, turn.ftl, turn.work);
        if turn.pool[id].host.prefetch {
            turn.fetch_for_batch(id);
        }
        let pages = turn.pool[id].pages;
        turn.pool[id].misses = self.read_rest(id, pages, turn);
        turn.pool[id].failed |= turn.work.take_failure();
        self.launch(id, Some(pages.stream), 0, turn);
    }

    /// Reads those of a request's pages that are not in the write buffer; returns the number of mapping-cache misses.
    #[cold]
    fn read_rest(&mut self, id: u32, pages: Pages, turn: &mut Turn<impl Running>) -> u32 {
        let (mut at, mut misses) = (0, 0);
        while at < pages.pages {
            let Some(buffer) = &mut self.buffer else { break };
            let (held, count) = buffer.run(pages, at);
            let part = pages.part(at, count);
            if held {
                buffer.hit(id, part);
                if let Some(moves) = &self.moves {
                    moves.note(Move::Issue { request: Some(turn.pool[id].id) });
                    commands::note_read(moves, (part, &[]), Some(buffer), turn.ftl);
                }
            } else {
                self.tell((id, &turn.pool[id]), part, turn.now_ns, turn.ftl);
                misses += self.serve_part(id, part, turn);
            }
            at += count;
        }
        misses
    }

    /// Runs pages of a request through the FTL, with its mark and the entries that it carries for them; returns the number of
    /// mapping-cache misses.
    fn serve_part(&self, id: u32, pages: Pages, turn: &mut Turn<impl Running>) -> u32 {
        let request = &turn.pool[id];
        let (op, mark, entries) = (request.op, request.mark, self.entries_of(id, request, pages));
        turn.serve(op, pages, mark, entries)
    }

    /// Begins a part of a request. Pages that have not issued yet count as unfinished steps.
    #[cold]
    fn begin_part(&mut self, id: u32, part: sched::Part, turn: &mut Turn<impl Running>) {
        let Request { op, pages, mark, failed, host, .. } = turn.pool[id];
        let sched::Part::Pages { at, count } = part else {
            self.waiting.leave(&turn.pool[id], &self.array, turn.ftl, turn.work);
            turn.pool[id].device.steps_left = pages.pages;
            return;
        };
        let issuing = pages.part(at, count);
        if self.buffer.is_none() || op != Op::Read {
            self.tell((id, &turn.pool[id]), issuing, turn.now_ns, turn.ftl);
            self.discard(op, issuing, mark);
        }
        if host.prefetch && (op == Op::Read || !turn.ftl.updates_free()) {
            turn.fetch_for_batch(id);
            turn.pool[id].host.prefetch = false;
        }
        let mut unreadable = false;
        // A read of which a part cannot be read still reads the rest.
        if !failed || op == Op::Read {
            let misses = match op {
                Op::Write => turn.ftl.write_page(pages, at, mark, turn.work),
                Op::Read if self.buffer.is_some() => self.read_rest(id, issuing, turn),
                _ => self.serve_part(id, issuing, turn),
            };
            turn.pool[id].misses += misses;
            unreadable = turn.work.take_failure() && op == Op::Read;
            if turn.ftl.is_read_only() {
                turn.pool[id].failed = self.turned_read_only(turn.now_ns, turn.ftl);
            }
        }
        let request = &mut turn.pool[id];
        request.failed |= unreadable;
        let remains = request.device.steps_left - count;
        self.launch(id, Some(pages.stream), remains, turn);
    }

    /// From now on, takes entries that come with reads, up to `most` with each.
    pub fn take_entries(&mut self, most: u32) {
        self.entries = Some(Box::new(Entries::new(most)));
        (self.apart, self.attended, self.noted) = (true, true, true);
    }

    /// Takes the entries that a read of this many pages carries, one for each of them.
    pub fn carry(&mut self, id: u32, pages: u32, carried: impl Iterator<Item = Entry>) {
        if let Some(entries) = &mut self.entries {
            entries.take(id, pages, carried);
        }
    }

    /// Forgets the entries that a request carried, which has completed.
    pub fn forget_carried(&mut self, id: u32, request: &Request) {
        if let Some(entries) = &mut self.entries {
            entries.forget(id, request);
        }
    }

    /// Returns the entries that the command that completes now has brought, if it was one that reads entries.
    pub fn handed_out(&self) -> &[Entry] {
        self.entries.as_ref().map_or(&[], |entries| &entries.handed)
    }

    /// Returns the entries that a request carries for these of its pages; none if it carries none.
    pub(super) fn entries_of(&self, id: u32, request: &Request, pages: Pages) -> &[Entry] {
        let entries = self.entries.as_ref().filter(|_| request.mark.has_entries());
        entries.map_or(&[], |entries| entries.of(id, request, pages))
    }

    /// Begins a command that reads entries.
    #[cold]
    pub(super) fn begin_hand_out(&mut self, id: u32, turn: &mut Turn<impl Running>) {
        self.waiting.leave(&turn.pool[id], &self.array, turn.ftl, turn.work);
        let Some(Entries { handed, .. }) = self.entries.as_deref_mut() else { return };
        handed.clear();
        let Request { pages, size, .. } = turn.pool[id];
        turn.ftl.hand_out(pages.first..pages.first + (size / Entry::BYTES) as u32, handed, turn.work);
        turn.pool[id].failed |= turn.work.take_failure();
        self.launch(id, None, 0, turn);
    }
}

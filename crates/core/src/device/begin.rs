//! What happens when a request issues: its pages go through the FTL, whose steps start on the chips.

use super::{Device, commands, sched};
use crate::flash::moves::Move;
use crate::flash::{Cause, Work};
use crate::ftl::Running;
use crate::request::{Entry, HostSide, Mark, Pages, Pool, Request};
use crate::util::NONE;
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

    /// Issues a request: runs it through the FTL, and starts its steps. `APART` says whether more may be done for it.
    #[inline(always)] // for every request
    pub(super) fn begin<const APART: bool>(
        &mut self,
        id: u32,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut impl Running,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        work.clear();
        let attended = APART && self.attended;
        if attended {
            work.set_now(now_ns);
            if pool[id].mark.reads_map() {
                return self.begin_hand_out(id, now_ns, pool, ftl, work, done);
            }
            if let Some(part) = self.waiting.sched.part(work) {
                return self.begin_part((id, part), now_ns, pool, ftl, work, done);
            }
            if self.reads_buffer(pool[id].op, pool[id].pages) {
                return self.begin_rest(id, now_ns, pool, ftl, work, done);
            }
            self.tell((id, &pool[id]), pool[id].pages, now_ns, ftl);
            self.discard(pool[id].op, pool[id].pages, pool[id].mark);
        }
        let request = &pool[id];
        self.waiting.leave(request, &self.array, ftl, work);
        let (op, pages) = (request.op, request.pages);
        if request.host.prefetch && (op == Op::Read || !ftl.updates_free()) {
            fetch_for_batch(id, pool, ftl, work);
        }
        let request = &mut pool[id];
        let misses = if request.mark.any() {
            marked(ftl, op, pages, (request.mark, self.entries_of(id, request, pages)), work)
        } else {
            match op {
                Op::Read => ftl.read(pages, work),
                Op::Write => ftl.write(pages, work),
                Op::Trim | Op::Flush => serve(ftl, op, pages, (Mark::default(), &[]), work),
            }
        };
        if ftl.is_read_only() {
            request.failed = self.turned_read_only(now_ns, ftl);
        }
        request.misses = misses;
        if attended {
            request.failed |= work.take_failure() && op == Op::Read;
        }
        request.device.steps_left = work.steps().len() as u32;
        if request.device.steps_left == 0 {
            self.end(id, now_ns, pool, done);
        } else {
            self.array.start((id, Some(pages.stream)), work, op == Op::Read, now_ns);
        }
    }

    /// Issues a request for which more may be done: where tenants are told apart or the host holds entries, charges the
    /// flash's work to its stream, and notes whether mappings were read for it.
    #[inline(never)] // keeps the path of all other requests short
    pub(super) fn begin_attended(
        &mut self,
        id: u32,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut impl Running,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        debug_assert!(self.ledger.as_ref().is_none_or(|ledger| ledger.is_current(work.counts())));
        let mapped = work.counts().reads[Cause::Map];
        self.begin::<true>(id, now_ns, pool, ftl, work, done);
        if self.noted {
            let request = &mut pool[id];
            request.host.fetched |= work.counts().reads[Cause::Map] > mapped;
            // The entries that the host reads belong to nobody.
            self.charge((!request.mark.reads_map()).then_some(request.pages.stream), work);
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
    fn begin_rest(
        &mut self,
        id: u32,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut impl Running,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        self.waiting.leave(&pool[id], &self.array, ftl, work);
        if pool[id].host.prefetch {
            fetch_for_batch(id, pool, ftl, work);
        }
        let pages = pool[id].pages;
        pool[id].misses = self.read_rest((id, &pool[id]), pages, now_ns, ftl, work);
        pool[id].failed |= work.take_failure();
        pool[id].device.steps_left = work.steps().len() as u32;
        if pool[id].device.steps_left == 0 {
            return self.end(id, now_ns, pool, done);
        }
        self.array.start((id, Some(pages.stream)), work, true, now_ns);
    }

    /// Reads those of a request's pages that are not in the write buffer; returns the number of mapping-cache misses.
    #[cold]
    fn read_rest(
        &mut self,
        (id, request): (u32, &Request),
        pages: Pages,
        now_ns: u64,
        ftl: &mut impl Running,
        work: &mut Work,
    ) -> u32 {
        let (mut at, mut misses) = (0, 0);
        while at < pages.pages {
            let Some(buffer) = &mut self.buffer else { break };
            let (held, count) = buffer.run(pages, at);
            let part = pages.part(at, count);
            if held {
                buffer.hit(id, part);
                if let Some(moves) = &self.moves {
                    moves.note(Move::Issue { request: Some(request.id) });
                    commands::note_read(moves, (part, &[]), Some(buffer), ftl);
                }
            } else {
                self.tell((id, request), part, now_ns, ftl);
                let entries = self.entries_of(id, request, part);
                misses += serve(ftl, Op::Read, part, (request.mark, entries), work);
            }
            at += count;
        }
        misses
    }

    /// Begins a part of a request. Pages that have not issued yet count as unfinished steps.
    #[cold]
    fn begin_part(
        &mut self,
        (id, part): (u32, sched::Part),
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut impl Running,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        let Request { op, pages, mark, failed, host, .. } = pool[id];
        let sched::Part::Pages { at, count } = part else {
            self.waiting.leave(&pool[id], &self.array, ftl, work);
            pool[id].device.steps_left = pages.pages;
            return;
        };
        let issuing = pages.part(at, count);
        if self.buffer.is_none() || op != Op::Read {
            self.tell((id, &pool[id]), issuing, now_ns, ftl);
            self.discard(op, issuing, mark);
        }
        if host.prefetch && (op == Op::Read || !ftl.updates_free()) {
            fetch_for_batch(id, pool, ftl, work);
            pool[id].host.prefetch = false;
        }
        let mut unreadable = false;
        // A read of which a part cannot be read still reads the rest.
        if !failed || op == Op::Read {
            let misses = match op {
                Op::Write => ftl.write_page(pages, at, mark, work),
                Op::Read if self.buffer.is_some() => {
                    self.read_rest((id, &pool[id]), issuing, now_ns, ftl, work)
                }
                _ => {
                    let entries = self.entries_of(id, &pool[id], issuing);
                    serve(ftl, op, issuing, (mark, entries), work)
                }
            };
            pool[id].misses += misses;
            unreadable = work.take_failure() && op == Op::Read;
            if ftl.is_read_only() {
                pool[id].failed = self.turned_read_only(now_ns, ftl);
            }
        }
        pool[id].failed |= unreadable;
        let steps = work.steps().len() as u32;
        let left = &mut pool[id].device.steps_left;
        *left = *left - count + steps;
        if *left == 0 {
            self.end(id, now_ns, pool, done);
        }
        if steps > 0 {
            self.array.start((id, Some(pages.stream)), work, op == Op::Read, now_ns);
        }
    }
}

/// When the first request of a batch issues, loads the mappings of the batch's translation page that the batch misses.
fn fetch_for_batch(id: u32, pool: &Pool, ftl: &mut impl Running, work: &mut Work) {
    let HostSide { batch, translation_page, .. } = pool[id].host;
    let mut at = id;
    // A scheduler of the device may have let later members of the batch overtake this one; the slot of a member that
    // has completed may by now hold a request of another batch.
    let mut needs = std::iter::from_fn(|| {
        let member = (at != NONE && pool[at].host.batch == batch).then(|| &pool[at])?;
        at = pool.behind(at);
        // A read that carries entries needs no mapping.
        Some(if member.mark.has_entries() { Pages::NONE } else { member.pages })
    });
    ftl.prefetch(translation_page, &mut needs, work);
}

/// Runs a request that the host has marked, with the commands of cooperation that go before and after it.
#[cold]
fn marked(
    ftl: &mut impl Running,
    op: Op,
    pages: Pages,
    (mark, entries): (Mark, &[Entry]),
    work: &mut Work,
) -> u32 {
    let block = ftl.block_size().map_or(0, |size| pages.first / size.pages);
    if mark.begin {
        ftl.coop_issue(block, work);
    }
    let misses = serve(ftl, op, pages, (mark, entries), work);
    if mark.end {
        ftl.coop_complete(block, work);
    }
    misses
}

/// Runs a request through the FTL, with its mark and the entries that it carries; returns the number of its
/// mapping-cache misses.
#[inline(never)] // keeps the path of reads and writes without marks short
fn serve(
    ftl: &mut impl Running,
    op: Op,
    pages: Pages,
    (mark, entries): (Mark, &[Entry]),
    work: &mut Work,
) -> u32 {
    match op {
        Op::Read if entries.is_empty() => ftl.read_marked(pages, mark, work),
        Op::Read => ftl.read_with(pages, entries, mark, work),
        Op::Write => ftl.write_marked(pages, mark, work),
        Op::Trim => ftl.trim(pages, work),
        Op::Flush => {
            ftl.flush(work);
            0
        }
    }
}

//! How requests come into the device, and what happens when they issue: their pages go through the FTL, whose steps
//! start on the chips.

use super::array::{Array, Owner};
use super::entries::{Entries, carried};
use super::queue::Waiting;
use super::row::{Ends, Queue, Row};
use super::turn::{Asked, Turn, fetch_for_batch, serve, serve_marked};
use super::watch::{Issue, Ram};
use super::{COMMAND, Device, sched};
use crate::flash::{Cause, Work};
use crate::ftl::Running;
use crate::request::{Entry, Mark, Pages, Pool, Request};
use crate::workload::Op;

/// The queue behind the row, with the chips that requests wait for.
struct Behind<'a>(&'a mut Waiting, &'a Array);

impl Queue for Behind<'_> {
    #[inline(never)] // `Waiting::accept` is long
    fn join(&mut self, id: u32, turn: &mut Turn<impl Running>) -> bool {
        let Behind(waiting, array) = self;
        let waits = waiting.sched.waits(array);
        waiting.accept(id, turn.pool, array, turn.ftl);
        !waits
    }
}

impl Device {
    /// Takes a request from the host: into the queue, or into the row before it. `carried` returns the mapping entries
    /// that a request carries.
    #[inline(always)] // called in one place, for every request
    pub fn accept<E: Iterator<Item = Entry>>(
        &mut self,
        id: u32,
        turn: &mut Turn<impl Running>,
        carried: impl FnOnce(&Request) -> E,
    ) {
        if !self.straight {
            return self.accept_by_row(id, turn.again(), carried);
        }
        self.held += 1;
        self.waiting.accept(id, turn.pool, &self.array, turn.ftl);
    }

    #[inline(never)] // keeps the path of all other requests short
    fn accept_by_row<E: Iterator<Item = Entry>>(
        &mut self,
        id: u32,
        mut turn: Turn<impl Running>,
        carried: impl FnOnce(&Request) -> E,
    ) {
        let request = &mut turn.pool[id];
        if self.read_only_ns.is_some() && request.op != Op::Read {
            request.failed = true;
            turn.done.push(id);
            return;
        }
        if let (Some(entries), true) = (&mut self.entries, request.mark.has_entries()) {
            entries.take(id, request.pages.pages, carried(request));
        }
        self.held += 1;
        request.task = COMMAND;
        let (row, mut ends) = self.row_and_ends();
        row.accept(id, &mut turn, &mut ends);
    }

    /// Returns the row, and what lies at its ends.
    #[inline]
    fn row_and_ends(&mut self) -> (&mut Row, Ends<'_, Behind<'_>>) {
        let Device { row, waiting, array, held, watch, .. } = self;
        (row, Ends { queue: Behind(waiting, array), held, watch })
    }

    /// Whether commands go through a row: then [`Device::go_through`] must follow each [`Device::advance`].
    pub fn has_stages(&self) -> bool {
        !self.row.is_empty()
    }

    /// Returns when the next command is due in the row, or [`crate::clock::NEVER`]; a time in the past stands for now.
    #[inline]
    pub fn stages_ns(&self) -> u64 {
        self.row.next_ns()
    }

    /// Lets commands that are due go on in the row, if there is one. Returns whether anything can begin because of it.
    #[inline(always)] // called in one place
    pub fn go_through(&mut self, turn: &mut Turn<impl Running>) -> bool {
        let (row, mut ends) = self.row_and_ends();
        row.advance(turn, &mut ends)
    }

    /// Whether anything can begin because chips or buses have moved on: a request has ended, a LUN may take more, or
    /// the device has worked for itself, since this was last asked.
    pub(super) fn has_changed(&mut self, done: &[u32]) -> bool {
        let before = std::mem::replace(&mut self.changes, self.array.changes());
        before != self.changes || !done.is_empty() || self.array.overlaps_steps()
    }

    /// Forgets the commands in the row, whose power is cut.
    pub fn forget_commands(&mut self) {
        self.row.lose();
    }

    /// Tells the probes which pages of a request issue or, if they are `answered`, are in the write buffer.
    fn tell(&mut self, id: u32, pages: Pages, answered: bool, turn: &Turn<impl Running>) {
        let request = &turn.pool[id];
        let entries = if answered { &[] } else { carried(&self.entries, id, request, pages) };
        let buffer = self.row.buffer.as_deref();
        let issue = Issue { request, pages, entries, buffer, now_ns: turn.now_ns };
        match answered {
            true => self.watch.answers(&issue, turn.ftl),
            false => self.watch.issues(&issue, turn.ftl),
        }
    }

    /// Issues a request: runs it through the FTL, and starts its steps. `MORE` says whether more may be done for
    /// it.
    #[inline(always)] // for every request
    pub(super) fn begin<const MORE: bool>(&mut self, id: u32, turn: &mut Turn<impl Running>) {
        turn.work.clear();
        let more = MORE && self.more_at_issue;
        if more && self.begins_otherwise(id, &mut turn.again()) {
            return;
        }
        let request = &turn.pool[id];
        self.waiting.leave(request, &self.array, turn.ftl, turn.work);
        let (op, pages) = (request.op, request.pages);
        if request.host.prefetch && (op == Op::Read || !turn.ftl.updates_free()) {
            fetch_for_batch(id, turn.pool, turn.ftl, turn.work);
        }
        let request = &mut turn.pool[id];
        let misses = if request.mark.any() {
            let entries = carried(&self.entries, id, request, pages);
            serve_marked(Asked { op, pages, mark: request.mark, entries }, turn.ftl, turn.work)
        } else {
            match op {
                Op::Read => turn.ftl.read(pages, turn.work),
                Op::Write => turn.ftl.write(pages, turn.work),
                Op::Trim | Op::Flush => {
                    serve(Asked { op, pages, mark: Mark::default(), entries: &[] }, turn.ftl, turn.work)
                }
            }
        };
        if turn.ftl.is_read_only() {
            request.failed = self.turned_read_only(turn.now_ns, turn.ftl);
        }
        request.misses = misses;
        if more {
            request.failed |= turn.work.take_failure() && op == Op::Read;
        }
        let owner = Owner { id, stream: Some(pages.stream) };
        if self.starts(owner, request, 0, turn.work, turn.now_ns) {
            self.end(id, turn.now_ns, turn.pool, turn.done);
        }
    }

    /// Begins a request that does not go through the FTL as a whole; returns whether it is one. If not, tells the
    /// probes about it, and drops from the write buffer what it overwrites.
    #[inline(never)] // keeps the path of requests that only are told about short
    fn begins_otherwise(&mut self, id: u32, turn: &mut Turn<impl Running>) -> bool {
        turn.work.set_now(turn.now_ns);
        let Request { op, pages, mark, .. } = turn.pool[id];
        if mark.reads_map() {
            self.begin_hand_out(id, turn);
        } else if let Some(part) = self.waiting.sched.part(turn.work) {
            self.begin_part(id, part, turn);
        } else if self.reads_buffer(op, pages) {
            self.begin_rest(id, turn);
        } else {
            if self.watch.hears_issues() {
                self.tell(id, pages, false, turn);
            }
            self.discard(op, pages, mark, turn.now_ns);
            return false;
        }
        true
    }

    /// Starts the steps of a request that the FTL has decided on, for a stream or for none. Ends the request if there
    /// are no steps and nothing else `remains` of it: pages that have not issued yet.
    pub(super) fn launch(&mut self, id: u32, stream: Option<u16>, remains: u32, turn: &mut Turn<impl Sized>) {
        let request = &mut turn.pool[id];
        let owner = Owner { id, stream };
        if self.starts(owner, request, remains, turn.work, turn.now_ns) {
            self.end(id, turn.now_ns, turn.pool, turn.done);
        }
    }

    /// Starts the steps of a request, as [`Device::launch`] does; returns whether there is nothing to wait for.
    #[inline(always)] // for every request
    fn starts(
        &mut self,
        owner: Owner,
        request: &mut Request,
        remains: u32,
        work: &Work,
        now_ns: u64,
    ) -> bool {
        let steps = work.steps().len() as u32;
        request.device.steps_left = remains + steps;
        if steps > 0 {
            self.array.start(owner, work, request.op == Op::Read, now_ns);
        }
        remains + steps == 0
    }

    /// Issues a request for which more may be done: where tenants are told apart or the host holds entries, charges the
    /// flash's work to its stream, and notes whether mappings were read for it.
    #[inline(never)] // keeps the path of all other requests short; a turn would go through memory
    pub(super) fn begin_with_more(
        &mut self,
        id: u32,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut impl Running,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        let mut turn = Turn { now_ns, pool, ftl, work, done };
        debug_assert!(self.watch.ledger.as_ref().is_none_or(|ledger| ledger.is_current(turn.work.counts())));
        let mapped = turn.work.counts().reads[Cause::Map];
        self.begin::<true>(id, &mut turn);
        if self.more_after_issue {
            let request = &mut turn.pool[id];
            request.host.fetched |= turn.work.counts().reads[Cause::Map] > mapped;
            // The entries that the host reads belong to nobody.
            let stream = (!request.mark.reads_map()).then_some(request.pages.stream);
            self.watch.works(stream, turn.work, turn.now_ns);
        }
    }

    /// Whether a request is a read some of whose pages are in the write buffer.
    fn reads_buffer(&self, op: Op, pages: Pages) -> bool {
        let Some(buffer) = self.row.buffer.as_ref().filter(|_| op == Op::Read && pages.pages > 0) else {
            return false;
        };
        buffer.run(pages, 0) != (false, pages.pages)
    }

    /// Drops from the write buffer, as a request issues, the pages that it trims or writes past the buffer. If a page
    /// is written in part, what the buffer holds of the rest goes with the write.
    fn discard(&mut self, op: Op, pages: Pages, mark: Mark, now_ns: u64) {
        let Some(buffer) = self.row.buffer.as_mut().filter(|_| matches!(op, Op::Write | Op::Trim)) else {
            return;
        };
        for lpn in pages.first..pages.first + pages.pages {
            self.watch.ram(if op == Op::Write { Ram::Pass { lpn } } else { Ram::Drop { lpn } }, now_ns);
        }
        buffer.discard(pages, mark.pad);
    }

    /// Begins a read some of whose pages are in the write buffer.
    fn begin_rest(&mut self, id: u32, turn: &mut Turn<impl Running>) {
        self.waiting.leave(&turn.pool[id], &self.array, turn.ftl, turn.work);
        if turn.pool[id].host.prefetch {
            fetch_for_batch(id, turn.pool, turn.ftl, turn.work);
        }
        let pages = turn.pool[id].pages;
        turn.pool[id].misses = self.read_rest(id, pages, turn);
        turn.pool[id].failed |= turn.work.take_failure();
        self.launch(id, Some(pages.stream), 0, turn);
    }

    /// Reads those of a request's pages that are not in the write buffer; returns the number of mapping-cache misses.
    fn read_rest(&mut self, id: u32, pages: Pages, turn: &mut Turn<impl Running>) -> u32 {
        let (mut at, mut misses) = (0, 0);
        while at < pages.pages {
            let Some(buffer) = &mut self.row.buffer else { break };
            let (held, count) = buffer.run(pages, at);
            let part = pages.part(at, count);
            if held {
                buffer.hit(id, part);
                self.tell(id, part, true, turn);
            } else {
                self.tell(id, part, false, turn);
                misses += self.serve_part(id, part, turn);
            }
            at += count;
        }
        misses
    }

    /// Runs pages of a request through the FTL, with its mark and the entries that it carries for them; returns the
    /// number of mapping-cache misses.
    fn serve_part(&self, id: u32, pages: Pages, turn: &mut Turn<impl Running>) -> u32 {
        let request = &turn.pool[id];
        let entries = carried(&self.entries, id, request, pages);
        serve(Asked { op: request.op, pages, mark: request.mark, entries }, turn.ftl, turn.work)
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
        if self.row.buffer.is_none() || op != Op::Read {
            self.tell(id, issuing, false, turn);
            self.discard(op, issuing, mark, turn.now_ns);
        }
        if host.prefetch && (op == Op::Read || !turn.ftl.updates_free()) {
            fetch_for_batch(id, turn.pool, turn.ftl, turn.work);
            turn.pool[id].host.prefetch = false;
        }
        let mut unreadable = false;
        // A read of which a part cannot be read still reads the rest.
        if !failed || op == Op::Read {
            let misses = match op {
                Op::Write => turn.ftl.write_page(pages, at, mark, turn.work),
                Op::Read if self.row.buffer.is_some() => self.read_rest(id, issuing, turn),
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
        (self.straight, self.more_at_issue, self.more_after_issue) = (false, true, true);
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

    /// Begins a command that reads entries.
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

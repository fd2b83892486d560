//! How clients' operations proceed, step by step, until the clients have to wait.

use super::bios::For;
use super::stats::Reason;
use super::{Blocked, ClientState, FileHost};
use crate::cache::PAGE;
use crate::clients::{FileOp, Moment, Step};
use crate::fs::Tid;
use ftlab_core::util::NONE;
use ftlab_core::workload::{Op, SourceError};

/// Simulated time after which no client continues, ns; with later times, the times of the device's steps would exceed
/// 64 bits.
const LATEST_NS: u64 = u64::MAX / 2;

/// Host time of an operation through the page cache, ns, unless the user says otherwise.
const OPERATION_NS: u64 = 10_000;

/// An operation in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub op: FileOp,
    pub begun_ns: u64,
    /// Where the next part of a read or write begins, in bytes from the start of the file.
    pub at: u64,
    pub stage: Stage,
    /// The newest token at the time at which the operation began (check mode).
    mark: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Begin,
    /// The data of an fsync is being written, for the first or the second time.
    Data(u8),
    /// An fsync waits for this commit.
    Commit(Tid),
    /// The operation's host time is passing; after that, the operation ends.
    Ending,
}

impl FileHost {
    /// Lets a client continue until it waits.
    pub(super) fn run_client(&mut self, client: u32) -> Result<(), SourceError> {
        if self.clients[client as usize].active.is_some_and(|active| active.stage == Stage::Ending) {
            self.end_operation(client);
        }
        while self.clients[client as usize].active.is_none() {
            if !self.next_step(client)? {
                return Ok(());
            }
        }
        let blocked = self.go_on(client)?;
        if blocked != Blocked::No {
            self.clients[client as usize].blocked = blocked;
            self.throttled += u32::from(blocked == Blocked::Throttled);
            return Ok(());
        }
        let active = self.active(client);
        active.stage = Stage::Ending;
        let op = active.op;
        // An operation that only prepares the load takes no time.
        let cost_ns = if op.kind().is_some() { self.cost_ns(op) } else { 0 };
        self.pause(client, cost_ns)
    }

    /// Lets a client continue once this much time has passed.
    fn pause(&mut self, client: u32, ns: u64) -> Result<(), SourceError> {
        let due_ns = self.now_ns.max(self.moved_ns).saturating_add(ns);
        if due_ns > LATEST_NS {
            return Err(SourceError::Input(
                "the workload runs for more than 292 years of simulated time; lower host.operation_time"
                    .into(),
            ));
        }
        self.clock.set(client, due_ns);
        Ok(())
    }

    /// Returns the host time that an operation takes which the client waits for.
    fn cost_ns(&self, op: FileOp) -> u64 {
        let [read, written] = op.bytes();
        let past = matches!(op, FileOp::Trim { .. }) || !self.fs.has_metadata();
        let operation_ns = self.config.operation_ns.unwrap_or(if past { 0 } else { OPERATION_NS });
        operation_ns + ((read + written) * self.config.copy_ps + 500) / 1000
    }

    /// Returns a client's operation in progress.
    pub(super) fn active(&mut self, client: u32) -> &mut Active {
        self.clients[client as usize].active.as_mut().expect("one is active")
    }

    fn end_operation(&mut self, client: u32) {
        let active = self.clients[client as usize].active.take().expect("one is ending");
        self.stats.operation(&active.op, active.begun_ns, self.now_ns);
        if let (Some(check), FileOp::Fsync(file) | FileOp::Fdatasync(file)) = (&mut self.check, active.op) {
            let inode = self.clients[client as usize].files[file as usize];
            check.synced(inode, active.mark);
        }
    }

    /// Asks the client for its next step; returns false if the client waits or has ended.
    fn next_step(&mut self, client: u32) -> Result<bool, SourceError> {
        let now_ns = self.now_ns;
        let state = &mut self.clients[client as usize];
        let step = state.client.next(Moment { now_ns, outstanding: state.outstanding });
        match step {
            Step::Do(op) => {
                let mark = self.check.as_ref().map_or(0, |check| check.mark());
                let at = match op {
                    FileOp::Read { offset, .. } | FileOp::Write { offset, .. } => offset,
                    _ => 0,
                };
                state.active = Some(Active { op, begun_ns: now_ns, at, stage: Stage::Begin, mark });
                return Ok(true);
            }
            Step::Start(op) => {
                state.outstanding += 1;
                self.start_direct(client, op);
                // Submitting the request takes host time, if the user says so.
                self.pause(client, self.config.operation_ns.unwrap_or(0))?;
            }
            Step::Await => {
                assert!(state.outstanding > 0, "a client waits for nothing");
                state.blocked = Blocked::Await;
            }
            Step::Until(at_ns) => self.clock.set(client, at_ns.max(now_ns)),
            Step::Gather => {
                state.blocked = Blocked::Gather;
                self.all_gathered();
            }
            Step::Begin => {
                self.stats.begin(now_ns);
                self.clock.set(client, now_ns);
            }
            Step::End => {
                self.stats.end(now_ns);
                self.clock.set(client, now_ns);
            }
            Step::Done => {
                state.done = true;
                self.live -= 1;
                self.all_gathered();
            }
        }
        Ok(false)
    }

    /// Lets the clients that have gathered go on, unless another is still missing.
    fn all_gathered(&mut self) {
        let missing = |client: &ClientState| !client.done && client.blocked != Blocked::Gather;
        if !self.clients.iter().any(missing) {
            self.wake(|blocked| blocked == Blocked::Gather);
        }
    }

    pub(super) fn inode(&self, client: u32, file: u32) -> u32 {
        self.clients[client as usize].files.get(file as usize).copied().unwrap_or(NONE)
    }

    fn go_on(&mut self, client: u32) -> Result<Blocked, SourceError> {
        let active = *self.active(client);
        let now_ns = self.now_ns;
        match active.op {
            FileOp::Lookup => {}
            FileOp::Create(file) => return self.create(client, file),
            FileOp::SetAttributes(file) => self.fs.touch(self.inode(client, file), 0, now_ns),
            FileOp::Close(file) => self.fs.close(self.inode(client, file)),
            FileOp::Rename(file) => {
                let inode = self.inode(client, file);
                if self.fs.rename(inode, now_ns).is_err() {
                    return self.no_room();
                }
            }
            FileOp::Unlink(file) => {
                let inode = self.inode(client, file);
                if !self.cache.forget(inode, true) {
                    return Ok(Blocked::Busy(inode));
                }
                self.fs.unlink(inode, now_ns);
                self.clients[client as usize].files[file as usize] = NONE;
                self.forget_tokens(inode);
                self.below_the_limit();
            }
            FileOp::Forget(file) => {
                self.cache.forget(self.inode(client, file), false);
            }
            FileOp::Share(owner) => self.clients[client as usize].files = vec![self.inode(owner, 0)],
            FileOp::Allocate { file, size } => return self.allocate(client, file, size),
            FileOp::Read { file, offset, size } => {
                return Ok(self.read(client, self.inode(client, file), offset, size));
            }
            FileOp::Write { file, offset, size } => {
                return self.write(client, self.inode(client, file), offset + size);
            }
            FileOp::Fsync(file) | FileOp::Fdatasync(file) => {
                return Ok(self.fsync(client, self.inode(client, file), active.stage));
            }
            FileOp::Trim { .. } if active.stage == Stage::Begin => {
                self.active(client).stage = Stage::Commit(0);
                self.start_direct(client, active.op);
                return Ok(Blocked::Flush);
            }
            FileOp::Trim { .. } => {}
            FileOp::WriteThrough { .. } => unreachable!("such a write is started, not waited for"),
        }
        self.arm_commit();
        Ok(Blocked::No)
    }

    fn forget_tokens(&mut self, inode: u32) {
        if let Some(check) = &mut self.check {
            check.gone(inode);
        }
    }

    fn create(&mut self, client: u32, file: u32) -> Result<Blocked, SourceError> {
        let there = self.inode(client, file);
        if there == NONE {
            let directory = self.clients[client as usize].directory;
            let Ok(inode) = self.fs.create(directory, self.now_ns) else { return self.no_room() };
            let files = &mut self.clients[client as usize].files;
            if files.len() <= file as usize {
                files.resize(file as usize + 1, NONE);
            }
            files[file as usize] = inode;
        } else {
            if !self.cache.forget(there, true) {
                return Ok(Blocked::Busy(there));
            }
            self.fs.truncate(there, self.now_ns);
            self.forget_tokens(there);
            self.below_the_limit();
        }
        self.arm_commit();
        Ok(Blocked::No)
    }

    /// Allocates space without writing to it.
    fn allocate(&mut self, client: u32, file: u32, size: u64) -> Result<Blocked, SourceError> {
        if self.inode(client, file) == NONE {
            self.create(client, file)?;
        }
        let inode = self.inode(client, file);
        for page in 0..size.div_ceil(PAGE) as u32 {
            if self.fs.allocate(inode, page, size, self.now_ns).is_err() {
                return self.no_room();
            }
        }
        self.fs.touch(inode, size, self.now_ns);
        self.arm_commit();
        Ok(Blocked::No)
    }

    /// Waits for a commit if one would free blocks; otherwise reports that the workload does not fit.
    pub(super) fn no_room(&mut self) -> Result<Blocked, SourceError> {
        let journal = &self.fs.journal;
        let running = (!journal.running.freed.is_empty()).then_some(journal.running.tid);
        let frees = running.or_else(|| {
            journal.committing.as_ref().filter(|commit| !commit.freed.is_empty()).map(|commit| commit.tid)
        });
        match frees {
            Some(tid) => {
                self.request_commit(tid);
                Ok(Blocked::Commit(tid))
            }
            None => Err(SourceError::Input(
                "the file system is full; make the workload's files smaller or raise flash.blocks_per_plane"
                    .into(),
            )),
        }
    }

    /// Performs an fsync or fdatasync: first writes the data, in units of the flush policy, then commits the
    /// transaction that holds the inode or, if no commit is needed, flushes the device. Of the inode an fdatasync needs
    /// the size and the blocks; so after an overwrite it is the data and one flush.
    fn fsync(&mut self, client: u32, inode: u32, stage: Stage) -> Blocked {
        let mut stage = stage;
        let data_only = matches!(self.active(client).op, FileOp::Fdatasync(_));
        loop {
            let rounds = match stage {
                Stage::Begin => 0,
                Stage::Data(rounds) => rounds,
                Stage::Commit(tid) if self.fs.journal.committed < tid => {
                    return Blocked::Commit(tid);
                }
                Stage::Commit(_) | Stage::Ending => return Blocked::No,
            };
            if self.cache.busy_of(inode) > 0 && rounds > 0 {
                return Blocked::Busy(inode);
            }
            // The second round writes the pages that were already being written when the first round began.
            if rounds < 2 && self.cache.dirty_of(inode) > 0 || rounds == 0 && self.cache.busy_of(inode) > 0 {
                self.flush_file(inode, u32::MAX, Reason::Fsync);
                stage = Stage::Data(rounds + 1);
                self.active(client).stage = stage;
                continue;
            }
            let file = self.fs.inode(inode);
            let tid = if data_only { file.data_tid } else { file.tid };
            if self.fs.has_metadata() && tid > self.fs.journal.committed {
                stage = Stage::Commit(tid);
                self.active(client).stage = stage;
                self.request_commit(tid);
                continue;
            }
            self.active(client).stage = Stage::Commit(0);
            if !self.config.barriers {
                return Blocked::No;
            }
            self.submit(Op::Flush, 0, 0, For::Flush(client));
            return Blocked::Flush;
        }
    }
}

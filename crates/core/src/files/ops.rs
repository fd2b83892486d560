//! How clients' operations go on, step by step, until they have to wait.

use super::{Blocked, Direct, FileHost, For, share};
use crate::files::cache::PAGE;
use crate::files::clients::{FileOp, Moment, Step};
use crate::files::fs::{Full, Tid};
use crate::util::NONE;
use crate::workload::{Op, SourceError};

/// Simulated time at which no client goes on, ns: beyond it the device's own steps would leave 64 bits.
const LATEST_NS: u64 = u64::MAX / 2;

/// An operation under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub op: FileOp,
    pub begun_ns: u64,
    /// How far a read or write has come, bytes of the file.
    at: u64,
    stage: Stage,
    /// Check mode: what was written when an fsync began.
    mark: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    /// An fsync's data is being written, for the first or the second time.
    Data(u8),
    /// An fsync waits for this commit.
    Commit(Tid),
    /// Its last instant is reached when its host time has passed.
    Ending,
}

/// Whether an operation goes on.
enum Progress {
    Wait(Blocked),
    Finished,
}

impl FileHost {
    /// Lets a client go on until it waits.
    pub(super) fn run_client(&mut self, client: u32) -> Result<(), SourceError> {
        if self.clients[client as usize].active.is_some_and(|active| active.stage == Stage::Ending) {
            self.end_operation(client);
        }
        while self.clients[client as usize].active.is_none() {
            if !self.next_step(client)? {
                return Ok(());
            }
        }
        match self.go_on(client)? {
            Progress::Wait(blocked) => {
                self.clients[client as usize].blocked = blocked;
                self.throttled += u32::from(blocked == Blocked::Throttled);
            }
            Progress::Finished => {
                let active = self.clients[client as usize].active.as_mut().expect("it has just finished");
                active.stage = Stage::Ending;
                // What only prepares takes no time.
                let cost_ns = if active.op.kind().is_some() { self.cost_ns(client) } else { 0 };
                self.pause(client, cost_ns)?;
            }
        }
        Ok(())
    }

    /// Lets a client go on after so long.
    fn pause(&mut self, client: u32, ns: u64) -> Result<(), SourceError> {
        let due_ns = self.now_ns.saturating_add(ns);
        if due_ns > LATEST_NS {
            return Err(SourceError::Input(
                "the workload runs for more than 292 years of simulated time; lower host.operation_time"
                    .into(),
            ));
        }
        self.clock.set(client, due_ns);
        Ok(())
    }

    /// Host time of the active operation.
    fn cost_ns(&self, client: u32) -> u64 {
        let op = self.clients[client as usize].active.expect("one is active").op;
        let copied = match op {
            FileOp::Read { size, .. } | FileOp::Write { size, .. } => size,
            _ => 0,
        };
        self.config.operation_ns + (copied * self.config.copy_ps + 500) / 1000
    }

    fn end_operation(&mut self, client: u32) {
        let active = self.clients[client as usize].active.take().expect("one is ending");
        self.stats.operation(&active.op, active.begun_ns, self.now_ns);
        if let (Some(check), FileOp::Fsync(file)) = (&mut self.check, active.op) {
            let inode = self.clients[client as usize].files[file as usize];
            check.synced(inode, active.mark);
        }
    }

    /// Asks for the next step; false if the client waits or has ended.
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
                self.start_direct(client, op)?;
                // The host's time to submit it.
                self.pause(client, self.config.operation_ns)?;
            }
            Step::Await => {
                assert!(state.outstanding > 0, "a client waits for nothing");
                state.blocked = Blocked::Await;
            }
            Step::Until(at_ns) => self.clock.set(client, at_ns.max(now_ns)),
            Step::Gather => {
                state.blocked = Blocked::Gather;
                let missing = |client: &super::ClientState| !client.done && client.blocked != Blocked::Gather;
                if !self.clients.iter().any(missing) {
                    self.wake(|blocked| blocked == Blocked::Gather);
                }
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
            }
        }
        Ok(false)
    }

    fn inode(&self, client: u32, file: u32) -> u32 {
        self.clients[client as usize].files.get(file as usize).copied().unwrap_or(NONE)
    }

    fn go_on(&mut self, client: u32) -> Result<Progress, SourceError> {
        let active = self.clients[client as usize].active.expect("one is active");
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
                    return Ok(Progress::Wait(Blocked::Busy(inode)));
                }
                self.fs.unlink(inode, now_ns);
                self.clients[client as usize].files[file as usize] = NONE;
                self.forget_tokens(inode);
                self.below_the_limit();
            }
            FileOp::Forget(file) => {
                self.cache.forget(self.inode(client, file), false);
            }
            FileOp::Allocate { file, size } => return self.allocate(client, file, size),
            FileOp::Read { file, offset, size } => {
                return Ok(self.read(client, self.inode(client, file), offset, size));
            }
            FileOp::Write { file, offset, size } => {
                return self.write(client, self.inode(client, file), offset + size);
            }
            FileOp::Fsync(file) => return Ok(self.fsync(client, self.inode(client, file), active.stage)),
            FileOp::DirectRead { .. } | FileOp::DirectWrite { .. } => unreachable!("started, not done"),
        }
        self.arm_commit();
        Ok(Progress::Finished)
    }

    fn forget_tokens(&mut self, inode: u32) {
        if let Some(check) = &mut self.check {
            check.gone(inode);
        }
    }

    fn create(&mut self, client: u32, file: u32) -> Result<Progress, SourceError> {
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
                return Ok(Progress::Wait(Blocked::Busy(there)));
            }
            self.fs.truncate(there, self.now_ns);
            self.forget_tokens(there);
            self.below_the_limit();
        }
        self.arm_commit();
        Ok(Progress::Finished)
    }

    /// Space that is given without being written.
    fn allocate(&mut self, client: u32, file: u32, size: u64) -> Result<Progress, SourceError> {
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
        Ok(Progress::Finished)
    }

    /// Waits for a commit if that frees blocks; else the workload does not fit.
    fn no_room(&mut self) -> Result<Progress, SourceError> {
        let journal = &self.fs.journal;
        let running = (!journal.running().freed.is_empty()).then_some(journal.running().tid);
        let frees = running.or_else(|| {
            journal.committing().filter(|commit| !commit.freed.is_empty()).map(|commit| commit.tid)
        });
        match frees {
            Some(tid) => {
                self.request_commit(tid);
                Ok(Progress::Wait(Blocked::Commit(tid)))
            }
            None => Err(SourceError::Input(
                "the file system is full; make the workload's files smaller or raise flash.blocks_per_plane"
                    .into(),
            )),
        }
    }

    fn write(&mut self, client: u32, inode: u32, end: u64) -> Result<Progress, SourceError> {
        let size = self.fs.inode(inode).size;
        loop {
            let at = self.clients[client as usize].active.expect("one is active").at;
            if at >= end {
                break;
            }
            if self.is_over_limit() {
                return Ok(Progress::Wait(Blocked::Throttled));
            }
            let index = (at / PAGE) as u32;
            let page_end = (u64::from(index) + 1) * PAGE;
            let whole = at.is_multiple_of(PAGE) && (end >= page_end || end >= size);
            let mut id = self.cache.find(inode, index);
            if id == NONE {
                let block = self.fs.inode(inode).block(index);
                self.stats.looked_up(false);
                // What a part of a page leaves must be there first.
                if !whole && block != NONE && u64::from(index) * PAGE < size {
                    self.read_pages(inode, index, index + 1);
                    return Ok(Progress::Wait(Blocked::Busy(inode)));
                }
                id = self.cache.insert(inode, index, block, true);
            } else if !self.cache.page(id).present {
                return Ok(Progress::Wait(Blocked::Busy(inode)));
            } else {
                self.stats.looked_up(true);
            }
            let Ok(block) = self.fs.allocate(inode, index, end, self.now_ns) else { return self.no_room() };
            self.cache.change(id, block, self.now_ns);
            if let Some(check) = &mut self.check {
                check.wrote(inode, index);
            }
            self.clients[client as usize].active.as_mut().expect("one is active").at = page_end;
        }
        self.fs.touch(inode, end, self.now_ns);
        self.arm_commit();
        Ok(Progress::Finished)
    }

    /// A file's pages that are not in the cache are read, with what sequential reading reads ahead.
    fn read(&mut self, client: u32, inode: u32, offset: u64, size: u64) -> Progress {
        let whole = self.fs.inode(inode).size;
        let end = (offset + size).min(whole);
        let (first, behind) = ((offset / PAGE) as u32, end.div_ceil(PAGE) as u32);
        let fresh = self.clients[client as usize].active.is_some_and(|active| active.stage == Stage::Begin);
        if fresh {
            self.clients[client as usize].active.as_mut().expect("one is active").stage = Stage::Data(1);
        }
        let mut waits = false;
        let mut missing = None;
        for index in first..behind {
            let id = self.cache.find(inode, index);
            if fresh {
                self.stats.looked_up(id != NONE);
            }
            if id != NONE {
                waits |= !self.cache.page(id).present;
            } else if missing.is_none() {
                missing = Some(index);
            }
        }
        if let Some(missing) = missing {
            let ahead = if fresh { self.read_ahead(client, inode, offset, behind - first) } else { 0 };
            let last = (whole.div_ceil(PAGE)).min(u64::from(behind) + u64::from(ahead)) as u32;
            waits |= self.read_pages(inode, missing, last);
        }
        if fresh {
            let state = &mut self.clients[client as usize];
            let ahead = state.last_read.2;
            state.last_read = (inode, end, ahead);
        }
        if waits { Progress::Wait(Blocked::Busy(inode)) } else { Progress::Finished }
    }

    /// Pages to read ahead: none of a read that does not go on where the last ended, then four times as
    /// many as asked for, doubled each time, up to the limit (Linux's on-demand read-ahead).
    fn read_ahead(&mut self, client: u32, inode: u32, offset: u64, pages: u32) -> u32 {
        let state = &mut self.clients[client as usize];
        let (file, end, before) = state.last_read;
        let sequential = (file == inode && end == offset) || offset == 0;
        let limit = (self.config.read_ahead_bytes / PAGE) as u32;
        let ahead = match (sequential, before) {
            (false, _) => 0,
            (true, 0) => (pages * 4).min(limit),
            (true, before) => (before * 2).min(limit),
        };
        state.last_read.2 = ahead;
        ahead
    }

    /// Reads what of these pages is neither in the cache nor without a block; whether anything is read.
    fn read_pages(&mut self, inode: u32, first: u32, end: u32) -> bool {
        let mut any = false;
        let mut run: Option<(u32, u32, u32)> = None;
        for index in first..end {
            let block = self.fs.inode(inode).block(index);
            let absent = self.cache.find(inode, index) == NONE;
            if absent {
                self.cache.insert(inode, index, block, block == NONE);
            }
            // A hole is there at once, as zeros.
            let wanted = absent && block != NONE;
            any |= wanted;
            run = match run {
                Some((from, at, pages)) if wanted && block == at + pages => Some((from, at, pages + 1)),
                Some(before) => {
                    self.submit_read(inode, before);
                    wanted.then_some((index, block, 1))
                }
                None => wanted.then_some((index, block, 1)),
            };
        }
        if let Some(last) = run {
            self.submit_read(inode, last);
        }
        any
    }

    fn submit_read(&mut self, inode: u32, (index, block, pages): (u32, u32, u32)) {
        if let Some(check) = &mut self.check {
            check.reads(inode, index, pages);
        }
        let purpose = For::Read { inode, index, pages };
        self.submit(Op::Read, u64::from(block) * PAGE, u64::from(pages) * PAGE, purpose);
    }

    /// Data first, in units of the flush policy; then a commit of the transaction that holds the inode,
    /// or where there is none to be made a flush of the device.
    fn fsync(&mut self, client: u32, inode: u32, stage: Stage) -> Progress {
        let mut stage = stage;
        loop {
            let rounds = match stage {
                Stage::Begin => 0,
                Stage::Data(rounds) => rounds,
                Stage::Commit(tid) if self.fs.journal.committed() < tid => {
                    return Progress::Wait(Blocked::Commit(tid));
                }
                Stage::Commit(_) | Stage::Ending => return Progress::Finished,
            };
            if self.cache.busy_of(inode) > 0 && rounds > 0 {
                return Progress::Wait(Blocked::Busy(inode));
            }
            // A page that was being written when the first round began goes with the second.
            if rounds < 2 && self.cache.dirty_of(inode) > 0 || rounds == 0 && self.cache.busy_of(inode) > 0 {
                self.flush_file(inode, u32::MAX, super::stats::Reason::Fsync);
                stage = Stage::Data(rounds + 1);
                self.clients[client as usize].active.as_mut().expect("one is active").stage = stage;
                continue;
            }
            let tid = self.fs.inode(inode).tid;
            if self.fs.has_metadata() && tid > self.fs.journal.committed() {
                stage = Stage::Commit(tid);
                self.clients[client as usize].active.as_mut().expect("one is active").stage = stage;
                self.request_commit(tid);
                continue;
            }
            self.clients[client as usize].active.as_mut().expect("one is active").stage = Stage::Commit(0);
            if !self.config.barriers {
                return Progress::Finished;
            }
            self.submit(Op::Flush, 0, 0, For::Flush(client));
            return Progress::Wait(Blocked::Flush);
        }
    }

    fn start_direct(&mut self, client: u32, op: FileOp) -> Result<(), SourceError> {
        let (file, offset, size, operation) = match op {
            FileOp::DirectRead { file, offset, size } => (file, offset, size, Op::Read),
            FileOp::DirectWrite { file, offset, size } => (file, offset, size, Op::Write),
            _ => unreachable!("only direct operations are started"),
        };
        let inode = self.inode(client, file);
        let direct = Direct { client, op, begun_ns: self.now_ns, bios: 0, next_free: NONE };
        let id = match self.free_direct {
            NONE => {
                self.directs.push(direct);
                self.directs.len() as u32 - 1
            }
            id => {
                self.free_direct = self.directs[id as usize].next_free;
                self.directs[id as usize] = direct;
                id
            }
        };
        self.clients[client as usize].outstanding += 1;
        // Runs of consecutive blocks, the ends cut to the bytes asked for.
        let mut at = offset;
        while at < offset + size {
            let begin = self.byte_of(inode, at);
            let mut end = at;
            while end < offset + size && self.byte_of(inode, end) == begin + (end - at) {
                end = (end / PAGE + 1) * PAGE;
            }
            let end = end.min(offset + size);
            self.submit(operation, begin, end - at, For::Direct(id));
            self.directs[id as usize].bios += 1;
            at = end;
        }
        if operation == Op::Write {
            self.fs.touch(inode, offset + size, self.now_ns);
            self.arm_commit();
        }
        Ok(())
    }

    /// Where a byte of a file that has its space lies on the device.
    fn byte_of(&self, inode: u32, at: u64) -> u64 {
        u64::from(self.fs.inode(inode).block((at / PAGE) as u32)) * PAGE + at % PAGE
    }

    pub(super) fn direct_landed(&mut self, id: u32) {
        let direct = &mut self.directs[id as usize];
        direct.bios -= 1;
        if direct.bios > 0 {
            return;
        }
        direct.next_free = self.free_direct;
        self.free_direct = id;
        let Direct { client, op, begun_ns, .. } = *direct;
        self.stats.operation(&op, begun_ns, self.now_ns);
        let state = &mut self.clients[client as usize];
        state.outstanding -= 1;
        if state.blocked == Blocked::Await {
            self.resume(client);
        }
    }

    /// Write-back starts above this many dirty bytes.
    pub(super) fn background_bytes(&self) -> u64 {
        share(self.config.page_cache_bytes, self.config.background_ppm)
    }
}

/// What a full file system is called where a workload meets it.
impl From<Full> for SourceError {
    fn from(_: Full) -> SourceError {
        SourceError::Input("the file system is full".into())
    }
}

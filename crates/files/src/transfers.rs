//! Reads and writes of files, through the page cache and around it.

use super::bios::{DirectRequest, For};
use super::ops::Stage;
use super::{Blocked, FileHost};
use crate::cache::PAGE;
use crate::clients::FileOp;
use ftlab_core::util::NONE;
use ftlab_core::workload::{Op, SourceError};

impl FileHost {
    pub(super) fn write(&mut self, client: u32, inode: u32, end: u64) -> Result<Blocked, SourceError> {
        let size = self.fs.inode(inode).size;
        loop {
            let at = self.active(client).at;
            if at >= end {
                break;
            }
            if self.is_over_limit() {
                return Ok(Blocked::Throttled);
            }
            let index = (at / PAGE) as u32;
            let page_end = (u64::from(index) + 1) * PAGE;
            let whole = at.is_multiple_of(PAGE) && (end >= page_end || end >= size);
            let mut id = self.cache.find(inode, index);
            if id == NONE {
                let block = self.fs.inode(inode).block(index);
                self.stats.looked_up(false);
                // The part of a page that is not overwritten must be in memory first.
                if !whole && block != NONE && u64::from(index) * PAGE < size {
                    self.read_pages(inode, index, index + 1);
                    return Ok(Blocked::Busy(inode));
                }
                id = self.cache.insert(inode, index, block, true);
            } else if !self.cache.page(id).present {
                return Ok(Blocked::Busy(inode));
            } else {
                self.stats.looked_up(true);
            }
            let Ok(block) = self.fs.allocate(inode, index, end, self.now_ns) else { return self.no_room() };
            self.cache.change(id, block, self.now_ns);
            if let Some(check) = &mut self.check {
                check.wrote(inode, index);
            }
            self.active(client).at = page_end;
        }
        self.fs.touch(inode, end, self.now_ns);
        self.arm_commit();
        Ok(Blocked::No)
    }

    /// Reads those of the requested pages that are not in the cache and, if the client reads sequentially, further
    /// pages ahead.
    pub(super) fn read(&mut self, client: u32, inode: u32, offset: u64, size: u64) -> Blocked {
        let whole = self.fs.inode(inode).size;
        let end = (offset + size).min(whole);
        let (first, behind) = ((offset / PAGE) as u32, end.div_ceil(PAGE) as u32);
        let fresh = std::mem::replace(&mut self.active(client).stage, Stage::Data(1)) == Stage::Begin;
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
        if waits { Blocked::Busy(inode) } else { Blocked::No }
    }

    /// Returns the number of pages to read ahead: none if the read neither continues the client's last read nor begins
    /// at the start of a file; at first four times the pages asked for, later twice as many as the last time, up to
    /// `host.read_ahead` (Linux's on-demand read-ahead).
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

    /// Reads the pages in `first..end` that are not in the cache and have a block; returns whether there were any such
    /// pages.
    fn read_pages(&mut self, inode: u32, first: u32, end: u32) -> bool {
        let mut any = false;
        let mut run: Option<(u32, u32, u32)> = None;
        for index in first..end {
            let block = self.fs.inode(inode).block(index);
            let absent = self.cache.find(inode, index) == NONE;
            if absent {
                self.cache.insert(inode, index, block, block == NONE);
            }
            // A hole is not read: its content is zeros.
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

    /// Begins a read, write or trim that bypasses the page cache.
    pub(super) fn start_direct(&mut self, client: u32, op: FileOp) {
        let (file, offset, size, operation) = match op {
            FileOp::Read { file, offset, size } => (file, offset, size, Op::Read),
            FileOp::Write { file, offset, size } | FileOp::WriteThrough { file, offset, size } => {
                (file, offset, size, Op::Write)
            }
            FileOp::Trim { file, offset, size } => (file, offset, size, Op::Trim),
            _ => unreachable!("only reads, writes and trims go past the page cache"),
        };
        let inode = self.inode(client, file);
        let id = self.directs.insert(DirectRequest { client, op, begun_ns: self.now_ns, bios: 0 });
        // One block I/O for each run of consecutive blocks, cut to the bytes requested.
        let mut at = offset;
        while at < offset + size {
            let begin = self.byte_of(inode, at);
            let mut end = at;
            while end < offset + size && self.byte_of(inode, end) == begin + (end - at) {
                end = (end / PAGE + 1) * PAGE;
            }
            let end = end.min(offset + size);
            self.submit(operation, begin, end - at, For::Direct(id));
            self.directs[id].bios += 1;
            at = end;
        }
        if operation == Op::Write {
            self.fs.touch(inode, offset + size, self.now_ns);
            self.arm_commit();
        }
    }

    /// Returns where a byte of a file with allocated space is on the device.
    fn byte_of(&self, inode: u32, at: u64) -> u64 {
        u64::from(self.fs.inode(inode).block((at / PAGE) as u32)) * PAGE + at % PAGE
    }

    /// Notes that a block I/O of a direct request has completed.
    pub(super) fn direct_landed(&mut self, id: u32) {
        let direct = &mut self.directs[id];
        direct.bios -= 1;
        if direct.bios > 0 {
            return;
        }
        let DirectRequest { client, op, begun_ns, .. } = *direct;
        self.directs.release(id);
        if matches!(op, FileOp::Trim { .. }) {
            return self.resume(client);
        }
        self.stats.operation(&op, begun_ns, self.now_ns);
        let state = &mut self.clients[client as usize];
        state.outstanding -= 1;
        if state.blocked == Blocked::Await {
            self.resume(client);
        }
    }
}

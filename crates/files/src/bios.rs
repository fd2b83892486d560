//! Block I/Os: how they are submitted, and what follows when they complete.

use super::stats::Reason;
use super::{Blocked, FileHost};
use crate::cache::PAGE;
use crate::clients::FileOp;
use crate::fs::Tid;
use ftlab_core::host::VersionOf;
use ftlab_core::request::{Asks, Request};
use ftlab_core::util::NONE;
use ftlab_core::workload::Op;

/// What a block I/O is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Write of a cached page.
    Page(u32),
    /// Read of `pages` pages of a file, starting at page `index`.
    Read { inode: u32, index: u32, pages: u32 },
    /// A step of the current commit.
    Commit,
    /// In-place write of a buffer, with the transaction whose copy of the buffer is written.
    InPlace(u32, Tid),
    /// Discard of freed blocks: the first block, and the number of blocks.
    Discard(u32, u32),
    /// Part of a direct request.
    Direct(u32),
    /// A client's flush of the device.
    Flush(u32),
}

/// A block I/O, as the file system submits it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bio {
    pub op: Op,
    pub offset: u64,
    pub size: u64,
    pub submitted_ns: u64,
    pub purpose: For,
    /// Token of the content to be written (check mode).
    pub token: u64,
    /// The next block I/O of the same request.
    pub next: u32,
    /// The number that the block I/O has in the outbox; 0 once it has left the outbox.
    pub waits: u64,
}

/// A direct request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectRequest {
    pub client: u32,
    pub op: FileOp,
    pub begun_ns: u64,
    pub bios: u32,
}

impl FileHost {
    /// Turns a block I/O of the outbox into a request.
    pub(super) fn hand_over(&mut self, id: u32) -> Request {
        self.bios[id].waits = 0;
        self.drop_departed();
        let bio = &self.bios[id];
        if let (Some(waiting), For::Page(_)) = (&mut self.waiting, bio.purpose) {
            let block = (bio.offset / PAGE) as u32;
            debug_assert_eq!(waiting.get(&block), Some(&id), "no two writes of a block wait");
            waiting.remove(&block);
        }
        self.arrived += 1;
        let pages = self.paging.pages(bio.op, bio.offset, bio.offset + bio.size);
        let mut request = Request::new(self.arrived, bio.submitted_ns, bio.op, bio.offset, bio.size, pages);
        request.tag = id;
        if let For::Direct(direct) = bio.purpose
            && matches!(self.directs[direct].op, FileOp::WriteThrough { .. })
        {
            request.mark.asks = Asks::Fua;
        }
        request
    }

    pub(super) fn drop_departed(&mut self) {
        while let Some(&(id, number)) = self.outbox.front() {
            if self.bios[id].waits == number {
                break;
            }
            self.outbox.pop_front();
        }
    }

    /// Makes the file system read-only, because the device refuses writes. All clients end, because their next write
    /// would fail (as with ext4 and errors=remount-ro).
    #[cold]
    pub(super) fn fail(&mut self) {
        self.end_clients();
        self.stats.fail(self.now_ns);
    }

    /// Ends all clients; what they have not yet handed over is never sent.
    pub(super) fn end_clients(&mut self) {
        self.live = 0;
        let waits = |&&(id, number): &&(u32, u64)| self.bios[id].waits == number;
        self.in_flight -= self.outbox.iter().filter(waits).count() as u32;
        self.outbox.clear();
        self.waiting = None;
    }

    /// Completes the block I/Os of a request; `first` is the first of them.
    pub(super) fn land_all(&mut self, first: u32) {
        let mut id = first;
        while id != NONE {
            let bio = self.bios[id];
            self.bios.release(id);
            self.in_flight -= 1;
            if self.live > 0 {
                self.land(bio);
            }
            id = bio.next;
        }
    }

    fn land(&mut self, bio: Bio) {
        match bio.purpose {
            For::Page(id) => {
                let inode = self.cache.page(id).inode;
                self.cache.written(id);
                self.no_longer_busy(inode);
                self.below_the_limit();
            }
            For::Read { inode, index, pages } => {
                for page in index..index + pages {
                    let id = self.cache.find(inode, page);
                    debug_assert_ne!(id, NONE, "pages being read stay");
                    self.cache.arrived(id);
                }
                self.wake(|blocked| blocked == Blocked::Busy(inode));
                self.no_longer_busy(inode);
            }
            For::Commit => self.commit_landed(),
            For::InPlace(buffer, tid) => {
                self.fs.journal.in_place(buffer, tid, &mut self.fs.buffers);
                self.room_in_journal();
            }
            For::Discard(first, count) => self.fs.release(first, count),
            For::Direct(direct) => self.direct_landed(direct),
            For::Flush(client) => {
                debug_assert_eq!(self.clients[client as usize].blocked, Blocked::Flush);
                self.resume(client);
            }
        }
    }

    pub(super) fn submit(&mut self, op: Op, offset: u64, size: u64, purpose: For) {
        self.submitted += 1;
        let waits = self.submitted;
        let token = match (&self.check, purpose) {
            (Some(check), For::Page(page)) => {
                let page = self.cache.page(page);
                check.token(page.inode, page.index)
            }
            _ => 0,
        };
        let bio = Bio { op, offset, size, submitted_ns: self.now_ns, purpose, token, next: NONE, waits };
        let id = self.bios.insert(bio);
        self.in_flight += 1;
        self.outbox.push_back((id, waits));
        if let (Some(waiting), For::Page(_)) = (&mut self.waiting, purpose) {
            waiting.insert((offset / PAGE) as u32, id);
        }
    }

    /// Submits the write of a dirty page.
    pub(super) fn submit_page(&mut self, id: u32) {
        let block = self.cache.page(id).block;
        self.cache.submit(id);
        self.submit(Op::Write, u64::from(block) * PAGE, PAGE, For::Page(id));
    }

    /// Submits, all together and in block order, all dirty pages, of whatever file, that are in blocks `first..end`.
    /// Needs the tree over logical pages.
    pub(super) fn flush_blocks(&mut self, first: u32, end: u32) {
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        self.cache.dirty_in(first, end, &mut found);
        found.iter().for_each(|&id| self.submit_page(id));
        self.stats.pages_written[Reason::Joined as usize] += found.len() as u64;
        self.scratch = found;
    }

    /// Notes, in check mode, that a write has reached the device; `version` returns the version of an LPN there. Must
    /// be called before [`ftlab_core::host::Arrivals::completed`].
    pub(super) fn follow(&mut self, request: &Request, version: VersionOf) {
        let Some(check) = self.check.as_mut().filter(|_| !request.failed) else { return };
        let mut id = request.tag;
        while id != NONE {
            let bio = &self.bios[id];
            check.landed(bio, version);
            id = bio.next;
        }
    }
}

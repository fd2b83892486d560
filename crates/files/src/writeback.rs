//! What the host writes without being asked: dirty pages, when they are too old or too many, and the journal.
//!
//! Source: the per-device flusher of Linux 2.6.32 (fs/fs-writeback.c, mm/page-writeback.c) and jbd2. The flusher wakes
//! every `host.dirty_writeback` and writes all dirty pages of the files that have been dirty for `host.dirty_expire`,
//! and metadata blocks of that age; above `host.dirty_background_ratio` it writes the files that have been dirty
//! longest until the dirty share is below that ratio. It submits up to 1024 pages (MAX_WRITEBACK_PAGES) of a file at a
//! time, and more pages once these have left for the queue.
//!
//! A commit writes the data of files with newly allocated blocks, then descriptors and metadata blocks, flushes the
//! device, writes the commit block, and flushes the device again; then the blocks that the transaction freed become
//! available, and are discarded if `host.discard` is set. If the ring has no room for a transaction, the blocks of the
//! oldest one are first written in place.

use super::bios::For;
use super::stats::Reason;
use super::{Blocked, FileHost, share};
use crate::cache::PAGE;
use crate::fs::Tid;
use ftlab_core::clock::NEVER;
use ftlab_core::workload::Op;

/// Number of a file's pages that the flusher submits before it checks the queue again.
const CHUNK: u32 = 1024;

/// The stage of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CommitStage {
    #[default]
    Idle,
    /// The commit waits for room in the ring.
    Room,
    /// Data of the transaction's files is being written.
    Data,
    /// Descriptors and metadata blocks are being written.
    Log,
    /// The device is flushed before the commit block.
    FlushBefore,
    /// The commit block is being written.
    Block,
    /// The device is flushed after the commit block.
    FlushAfter,
}

/// The current commit.
#[derive(Clone, Debug, Default)]
pub(super) struct Commit {
    stage: CommitStage,
    /// The newest transaction whose commit has been requested.
    wanted: Tid,
    /// Number of block I/Os of the stage that are in flight.
    left: u32,
}

impl FileHost {
    /// Lets the flusher look for old data.
    pub(super) fn wake_flusher(&mut self) {
        let Some(period_ns) = self.config.writeback_ns else { return };
        self.old_ns = self.now_ns.checked_sub(self.config.expire_ns);
        self.clock.set(self.flusher_slot(), self.now_ns + period_ns);
        if self.old_ns.is_some() {
            self.write_old_buffers();
        }
    }

    /// Writes in place the metadata blocks that have been dirty for a long time.
    fn write_old_buffers(&mut self) {
        let old_ns = self.old_ns.expect("there is a limit");
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        let which = |buffer: &crate::fs::Buffer| buffer.is_writable() && buffer.dirtied_ns <= old_ns;
        self.fs.journal.writable(&mut self.fs.buffers, which, &mut found);
        found.iter().for_each(|&id| self.write_in_place(id));
        self.scratch = found;
    }

    fn write_in_place(&mut self, id: u32) {
        let buffer = &mut self.fs.buffers[id as usize];
        buffer.writing = true;
        let (block, tid) = (buffer.block, buffer.logged);
        self.stats.file_system.checkpoint_blocks += 1;
        self.submit(Op::Write, u64::from(block) * PAGE, PAGE, For::InPlace(id, tid));
    }

    /// Lets the flusher continue while the queue accepts what it submits.
    pub(super) fn write_back(&mut self) {
        while self.outbox.is_empty() {
            let old = self.old_ns.and_then(|old_ns| self.first_dirty(old_ns));
            if self.old_ns.is_some() && old.is_none() {
                self.old_ns = None;
            }
            let background = u64::from(self.cache.dirty) * PAGE > self.background_bytes();
            let (inode, reason) = match old {
                Some(inode) => (inode, Reason::Expired),
                None if background => match self.first_dirty(NEVER) {
                    Some(inode) => (inode, Reason::Background),
                    None => return,
                },
                None => return,
            };
            self.flush_file(inode, CHUNK, reason);
        }
    }

    /// Returns the number of dirty bytes above which write-back starts.
    fn background_bytes(&self) -> u64 {
        share(self.config.page_cache_bytes, self.config.background_ppm)
    }

    /// Returns the file that has been dirty longest and has a page to write, if it became dirty at `since_ns` or
    /// before.
    fn first_dirty(&self, since_ns: u64) -> Option<u32> {
        let mut after = None;
        while let Some((inode, dirtied_ns)) = self.cache.dirty_file(after).filter(|file| file.1 <= since_ns) {
            debug_assert!(dirtied_ns <= self.now_ns);
            if self.cache.next_dirty(inode, 0).is_some() {
                return Some(inode);
            }
            after = Some(inode);
        }
        None
    }

    /// Submits up to `most` of a file's dirty pages, one unit at a time.
    pub(super) fn flush_file(&mut self, inode: u32, most: u32, reason: Reason) {
        let mut unit = std::mem::take(&mut self.scratch);
        let (mut pages, mut from) = (0, 0);
        while pages < most
            && let Some(id) = self.cache.next_dirty(inode, from)
        {
            unit.clear();
            self.policy.unit(&self.cache, id, &mut unit);
            from = self.cache.page(id).index;
            pages += unit.len() as u32;
            unit.iter().for_each(|&id| self.submit_page(id));
        }
        self.scratch = unit;
        self.stats.pages_written[reason as usize] += u64::from(pages);
    }

    /// Commits a transaction as soon as possible.
    pub(super) fn request_commit(&mut self, tid: Tid) {
        self.commit.wanted = self.commit.wanted.max(tid);
        self.start_commit();
    }

    /// Sets the commit timer for a transaction that has just begun.
    pub(super) fn arm_commit(&mut self) {
        let slot = self.commit_slot();
        if let Some(begun_ns) = self.fs.journal.running.begun_ns {
            self.clock.set(slot, begun_ns.saturating_add(self.config.commit_ns));
        }
    }

    fn start_commit(&mut self) {
        let running = &self.fs.journal.running;
        if !matches!(self.commit.stage, CommitStage::Idle | CommitStage::Room)
            || self.commit.wanted < running.tid
            || running.begun_ns.is_none()
        {
            return;
        }
        let (free, _) = self.fs.journal.room();
        if free < running.log_blocks() {
            self.commit.stage = CommitStage::Room;
            return self.make_room();
        }
        let files = self.fs.journal.begin_commit().files.clone();
        let slot = self.commit_slot();
        self.clock.set(slot, NEVER);
        self.stats.file_system.commits += 1;
        self.commit.stage = CommitStage::Data;
        for inode in files {
            self.flush_file(inode, u32::MAX, Reason::Ordered);
        }
        self.ordered_data_landed();
        // Room is made when less than a quarter of the ring is free, not only when it is full.
        let (free, len) = self.fs.journal.room();
        if free < len / 4 {
            self.make_room();
        }
    }

    /// Writes the oldest transaction's blocks in place; a block that has changed since is written from its copy in the
    /// ring.
    fn make_room(&mut self) {
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        let oldest = self.fs.journal.oldest;
        self.fs.journal.writable(&mut self.fs.buffers, |buffer| buffer.is_of(oldest), &mut found);
        found.iter().for_each(|&id| self.write_in_place(id));
        self.scratch = found;
    }

    /// Lets a commit that waits for room check again, after a copy has been written in place.
    pub(super) fn room_in_journal(&mut self) {
        if self.commit.stage == CommitStage::Room {
            self.start_commit();
        }
    }

    /// Goes on to the log of the commit, once the data of all its files has been written.
    pub(super) fn ordered_data_landed(&mut self) {
        if self.commit.stage != CommitStage::Data {
            return;
        }
        let commit = self.fs.journal.committing.as_ref().expect("one is under way");
        if commit.files.iter().any(|&inode| self.cache.busy_of(inode) > 0) {
            return;
        }
        self.commit.stage = CommitStage::Log;
        self.commit.left = commit.log_blocks() - 1;
        for _ in 0..self.commit.left {
            self.write_log();
        }
    }

    fn write_log(&mut self) {
        let block = self.fs.journal.advance();
        self.stats.file_system.journal_blocks += 1;
        self.submit(Op::Write, u64::from(block) * PAGE, PAGE, For::Commit);
    }

    /// Notes that a block I/O of the commit's stage has completed.
    pub(super) fn commit_landed(&mut self) {
        self.commit.left -= 1;
        if self.commit.left > 0 {
            return;
        }
        let next = match self.commit.stage {
            CommitStage::Log if self.config.barriers => CommitStage::FlushBefore,
            CommitStage::Log | CommitStage::FlushBefore => CommitStage::Block,
            CommitStage::Block if self.config.barriers => CommitStage::FlushAfter,
            _ => CommitStage::Idle,
        };
        self.commit.stage = next;
        self.commit.left = 1;
        match next {
            CommitStage::FlushBefore | CommitStage::FlushAfter => self.submit(Op::Flush, 0, 0, For::Commit),
            CommitStage::Block => self.write_log(),
            _ => self.committed(),
        }
    }

    fn committed(&mut self) {
        self.commit.left = 0;
        let done = self.fs.journal.end_commit(&mut self.fs.buffers, self.now_ns);
        for &(first, count) in &done.freed {
            if self.config.discard {
                self.stats.file_system.discarded_blocks += u64::from(count);
                let (offset, size) = (u64::from(first) * PAGE, u64::from(count) * PAGE);
                self.submit(Op::Trim, offset, size, For::Discard(first, count));
            } else {
                self.fs.release(first, count);
            }
        }
        let committed = self.fs.journal.committed;
        self.wake(|blocked| matches!(blocked, Blocked::Commit(tid) if tid <= committed));
        self.start_commit();
    }
}

//! The journal: which metadata blocks belong to which transaction, and which parts of the ring are free.
//!
//! Source: jbd2 of Linux 2.6.32, in ordered mode. A changed block (a buffer) belongs to the running transaction and may
//! not be written in place before that transaction is committed. After that it is dirty, and its part of the ring
//! becomes free when it has been written in place (a checkpoint) or committed again. A commit writes a descriptor for
//! every 508 blocks (8 B per tag), the blocks, then a commit block.
//!
//! Interpretation: there are no revoke records, and the journal's own superblock is not written.

use std::collections::VecDeque;

/// Number of blocks that one descriptor block describes.
const TAGS: u32 = 508;

/// Number of a transaction, from 1.
pub type Tid = u64;

/// A metadata block in memory.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Block of the device.
    pub block: u32,
    /// The uncommitted transaction that changed the block; 0: none.
    changed: Tid,
    /// The committed transaction whose copy of the block has not been written in place; 0: none.
    pub logged: Tid,
    /// Commit time, ns, of the oldest change that has yet to be written in place.
    pub dirtied_ns: u64,
    /// Whether the block is being written in place.
    pub writing: bool,
    /// Whether the buffer is in the list of dirty buffers.
    listed: bool,
}

impl Buffer {
    /// Makes a clean buffer.
    pub fn new(block: u32) -> Buffer {
        Buffer { block, changed: 0, logged: 0, dirtied_ns: 0, writing: false, listed: false }
    }

    /// Whether the buffer's logged copy belongs to this transaction and is not being written in place.
    pub fn is_of(&self, tid: Tid) -> bool {
        self.logged == tid && !self.writing
    }

    /// Whether the buffer is dirty and may be written in place now.
    pub fn is_writable(&self) -> bool {
        self.logged != 0 && self.changed == 0 && !self.writing
    }
}

/// A transaction that has not been committed.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Number of the transaction.
    pub tid: Tid,
    /// Buffers changed in the transaction.
    pub buffers: Vec<u32>,
    /// Files for which the transaction allocated blocks; their data is written first.
    pub files: Vec<u32>,
    /// Blocks freed in the transaction, which other files may use once it is committed: first block and count.
    pub freed: Vec<(u32, u32)>,
    /// Time at which the transaction began, ns.
    pub begun_ns: Option<u64>,
}

impl Transaction {
    /// Returns the number of blocks of the ring that the transaction occupies.
    pub fn log_blocks(&self) -> u32 {
        let blocks = self.buffers.len() as u32;
        blocks + blocks.div_ceil(TAGS).max(1) + 1
    }
}

#[derive(Clone, Copy, Debug)]
struct Logged {
    blocks: u32,
    /// Number of buffers whose copy has not been written in place.
    pending: u32,
}

/// The journal.
#[derive(Clone, Debug)]
pub struct Journal {
    first: u32,
    len: u32,
    /// Next block of the ring to be written.
    head: u32,
    free: u32,
    /// Committed transactions that are still in the ring, oldest first.
    log: VecDeque<Logged>,
    /// Number of the oldest transaction that occupies a part of the ring.
    pub oldest: Tid,
    /// The running transaction.
    pub running: Transaction,
    /// The transaction that is being committed.
    pub committing: Option<Transaction>,
    /// Number of the last transaction that has been committed.
    pub committed: Tid,
    /// Buffers that have to be written in place, and perhaps some that no longer have to.
    pub dirty: Vec<u32>,
}

impl Journal {
    /// Makes an empty ring of `len` blocks that begins at `first`.
    pub fn new(first: u32, len: u32) -> Journal {
        Journal {
            first,
            len,
            head: 0,
            free: len,
            log: VecDeque::new(),
            oldest: 1,
            running: Transaction { tid: 1, ..Transaction::default() },
            committing: None,
            committed: 0,
            dirty: Vec::new(),
        }
    }

    /// Returns the number of free blocks in the ring, and the number of all blocks in it.
    pub fn room(&self) -> (u32, u32) {
        (self.free, self.len)
    }

    /// Marks a buffer as changed by the running transaction, and returns that transaction's number.
    pub fn change(&mut self, id: u32, buffers: &mut [Buffer], now_ns: u64) -> Tid {
        let running = &mut self.running;
        running.begun_ns.get_or_insert(now_ns);
        let buffer = &mut buffers[id as usize];
        if buffer.changed != running.tid {
            buffer.changed = running.tid;
            running.buffers.push(id);
        }
        running.tid
    }

    /// Notes that data of a file must be written before the running transaction is committed.
    pub fn order(&mut self, file: u32) {
        // The same file often comes several times in a row.
        if self.running.files.last() != Some(&file) && !self.running.files.contains(&file) {
            self.running.files.push(file);
        }
    }

    /// Notes that these blocks become free when the running transaction has been committed.
    pub fn free(&mut self, first: u32, count: u32) {
        self.running.freed.push((first, count));
    }

    /// Begins to commit the running transaction; a new one starts.
    ///
    /// # Panics
    /// If another transaction is being committed.
    pub fn begin_commit(&mut self) -> &Transaction {
        assert!(self.committing.is_none(), "one commit at a time");
        let tid = self.running.tid;
        let next = Transaction { tid: tid + 1, ..Transaction::default() };
        self.committing.insert(std::mem::replace(&mut self.running, next))
    }

    /// Uses the next block of the ring, and returns its number on the device.
    ///
    /// # Panics
    /// If the ring is full.
    pub fn advance(&mut self) -> u32 {
        assert!(self.free > 0, "the ring is full");
        let block = self.first + self.head;
        self.head = (self.head + 1) % self.len;
        self.free -= 1;
        block
    }

    /// Ends a commit whose commit block has been written: the buffers may now be written in place. Returns the
    /// transaction.
    ///
    /// # Panics
    /// If no transaction is being committed.
    pub fn end_commit(&mut self, buffers: &mut [Buffer], now_ns: u64) -> Transaction {
        let done = self.committing.take().expect("one is being committed");
        let entry = Logged { blocks: done.log_blocks(), pending: done.buffers.len() as u32 };
        self.log.push_back(entry);
        for &id in &done.buffers {
            let buffer = &mut buffers[id as usize];
            match buffer.logged {
                0 => buffer.dirtied_ns = now_ns,
                before => self.settle(before),
            }
            buffer.logged = done.tid;
            if buffer.changed == done.tid {
                buffer.changed = 0;
            }
            if !buffer.listed {
                buffer.listed = true;
                self.dirty.push(id);
            }
        }
        self.committed = done.tid;
        self.trim();
        done
    }

    /// Notes that the copy of some buffer in this transaction is no longer needed.
    fn settle(&mut self, tid: Tid) {
        self.log[(tid - self.oldest) as usize].pending -= 1;
    }

    /// Frees the transactions at the ring's tail that are no longer needed.
    fn trim(&mut self) {
        while self.log.front().is_some_and(|logged| logged.pending == 0) {
            let logged = self.log.pop_front().expect("there is a first");
            self.free += logged.blocks;
            self.oldest += 1;
        }
    }

    /// Appends the dirty buffers that `which` selects to `found`, in block order.
    pub fn writable(
        &mut self,
        buffers: &mut [Buffer],
        which: impl Fn(&Buffer) -> bool,
        found: &mut Vec<u32>,
    ) {
        self.dirty.retain(|&id| {
            let buffer = &mut buffers[id as usize];
            buffer.listed = buffer.logged != 0;
            buffer.listed
        });
        found.extend(self.dirty.iter().copied().filter(|&id| which(&buffers[id as usize])));
        found.sort_unstable_by_key(|&id| buffers[id as usize].block);
    }

    /// Notes that the copy of a buffer in transaction `tid` has been written in place.
    pub fn in_place(&mut self, id: u32, tid: Tid, buffers: &mut [Buffer]) {
        let buffer = &mut buffers[id as usize];
        buffer.writing = false;
        if buffer.logged == tid {
            buffer.logged = 0;
            self.settle(tid);
            self.trim();
        }
    }
}

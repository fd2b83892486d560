//! The blocks of a hybrid FTL and their contents: what BAST and FAST have in common.
//!
//! `slots` maps each logical page to the physical page with its newest version, whether this is at its offset in
//! the data block or anywhere in a log block. A real device keeps such a map only for its log blocks, and finds
//! the rest through the data blocks; check mode verifies that this would be enough.

use super::layout::Shape;
use crate::flash::media::Kind;
use crate::flash::{Cause, Target, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::hybrid::merges::MergeStats;
use crate::ftl::settings::Settings;
use crate::ftl::slots::Slots;
use crate::ftl::spare::Spare;
use crate::util::{Divider, NONE};

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Erased, in the pool.
    Free,
    /// Data block of its owner.
    Data,
    /// Log block of its owner or, without an owner, of all logical blocks of its LUN.
    Log,
    /// Destination of a cooperative switch merge of its owner (CSM_Log).
    Cooperative,
}

/// An erase block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// What the block is used for.
    pub role: Role,
    /// Logical block to which the block belongs, or [`NONE`].
    pub owner: u32,
    /// Offset of the first page not programmed yet; skipped pages before it stay empty.
    pub next: u32,
    /// Number of pages that hold the newest version of a logical page.
    pub valid: u32,
    /// For a log block, whether every programmed page i holds its owner's page at offset i.
    pub in_order: bool,
    /// Whether the block has pages that the host wrote as padding.
    pub padded: bool,
}

impl Block {
    /// An erased block.
    pub(super) const FREE: Block =
        Block { role: Role::Free, owner: NONE, next: 0, valid: 0, in_order: true, padded: false };

    /// Returns the purpose for which the block was taken, as the spare areas of its pages record it.
    pub(super) fn kind(&self) -> Kind {
        match self.role {
            Role::Free | Role::Data => Kind::Data,
            Role::Log if self.owner == NONE => Kind::Shared,
            Role::Log => Kind::Log,
            Role::Cooperative => Kind::Cooperative,
        }
    }
}

/// The blocks, the pages and the map.
#[derive(Clone, Debug)]
pub struct Store {
    /// The sizes of the FTL.
    pub shape: Shape,
    by_block: Divider,
    lun_of: Divider,
    by_lun: Divider,
    /// Which slot holds the data of which owner; the logical pages come first, then each logical block's trims.
    pub(super) slots: Slots,
    /// Data block of each logical block, or [`NONE`].
    pub(super) data: Vec<u32>,
    pub(super) blocks: Vec<Block>,
    pub(super) pool: BlockPool,
    /// Block of the cooperative switch merge in progress, or [`NONE`].
    pub(super) cooperative: u32,
    /// Counts of the merges so far.
    pub merges: MergeStats,
    /// Number of logical pages that the host wrote.
    pub(super) host_pages: u64,
}

impl Store {
    /// Makes the store of a flash whose blocks are all erased.
    pub(crate) fn new(settings: &Settings, check: bool) -> Store {
        let shape = Shape::new(settings);
        // Only page-mapped FTLs have static wear levelling.
        let mut pool = BlockPool::new(settings, None);
        pool.withhold(settings);
        let pages = shape.blocks() * shape.pages_per_block;
        let mut store = Store {
            by_block: Divider::new(shape.pages_per_block),
            lun_of: Divider::new(shape.luns),
            by_lun: Divider::new(shape.blocks_per_lun),
            slots: Slots::new(shape.owners(), Spare::new(pages, 1, shape.luns)),
            data: vec![NONE; shape.logical_blocks() as usize],
            blocks: vec![Block::FREE; shape.blocks() as usize],
            pool,
            cooperative: NONE,
            merges: MergeStats::default(),
            host_pages: 0,
            shape,
        };
        if check {
            store.police();
        }
        store
    }

    /// Returns the logical block of a logical page, or the erase block of a physical page.
    #[inline]
    pub(crate) fn block_of(&self, page: u32) -> u32 {
        self.by_block.div(page)
    }

    /// Returns the logical block of an owner: a logical page, or a logical block's trims.
    #[inline]
    pub(crate) fn logical_of(&self, owner: u32) -> u32 {
        if owner < self.shape.lpns { self.by_block.div(owner) } else { owner - self.shape.lpns }
    }

    /// Returns the offset of a page in its block.
    #[inline]
    pub(crate) fn offset(&self, page: u32) -> u32 {
        self.by_block.rem(page)
    }

    /// Returns the LUN of a logical block.
    #[inline]
    pub(crate) fn lun(&self, logical: u32) -> u32 {
        self.lun_of.rem(logical)
    }

    /// Returns the LUN of an erase block.
    #[inline]
    pub(crate) fn lun_of_block(&self, block: u32) -> u32 {
        self.by_lun.div(block)
    }

    /// Returns the state of an erase block.
    #[inline]
    pub(crate) fn block(&self, block: u32) -> &Block {
        &self.blocks[block as usize]
    }

    /// Returns the physical page that holds a logical page, or [`NONE`].
    #[inline]
    pub(crate) fn page(&self, lpn: u32) -> u32 {
        self.slots.of(lpn)
    }

    /// Returns the logical block whose cooperative switch merge is in progress, or [`NONE`].
    #[inline]
    pub(crate) fn merging(&self) -> u32 {
        match self.cooperative {
            NONE => NONE,
            block => self.blocks[block as usize].owner,
        }
    }

    /// Takes an erased block of a LUN.
    pub(crate) fn take(&mut self, lun: u32, role: Role, owner: u32) -> u32 {
        let block = self.pool.take(lun).expect("the layout leaves erased blocks for merges");
        self.blocks[block as usize] = Block { role, owner, ..Block::FREE };
        block
    }

    /// Gives back to the pool a block in which nothing was programmed.
    pub(crate) fn give_back(&mut self, block: u32) {
        self.slots.tell(|medium| medium.rewind(block, 0));
        self.blocks[block as usize] = Block::FREE;
        self.pool.push(block);
    }

    #[inline]
    pub(super) fn invalidate(&mut self, page: u32) {
        self.slots.valid.clear(page);
        let block = self.by_block.div(page);
        self.blocks[block as usize].valid -= 1;
    }

    /// Records that a page of a block now holds the newest version of a logical page.
    #[inline]
    fn put(&mut self, block: u32, offset: u32, lpn: u32) {
        let old = self.slots.of(lpn);
        if old != NONE {
            self.invalidate(old);
        }
        let page = block * self.shape.pages_per_block + offset;
        let at = &mut self.blocks[block as usize];
        at.next = offset + 1;
        at.valid += 1;
        self.slots.valid.set(page);
        self.slots.place(page, lpn, || at.kind());
    }

    /// Writes a new version of a logical page into the given page of a block.
    #[inline]
    pub(crate) fn write(&mut self, block: u32, offset: u32, lpn: u32, cause: Cause, work: &mut Work) {
        let old = self.slots.of(lpn);
        self.slots.tell(|medium| medium.write(lpn, old));
        self.put(block, offset, lpn);
        self.blocks[block as usize].padded |= cause == Cause::Pad;
        self.host_pages += u64::from(cause == Cause::Host);
        let page = block * self.shape.pages_per_block + offset;
        work.program(self.lun_of_block(block), page, cause);
    }

    /// Writes a new version of a logical page into the next page of a log block.
    #[inline]
    pub(crate) fn append(&mut self, log: u32, lpn: u32, cause: Cause, work: &mut Work) {
        let next = self.blocks[log as usize].next;
        if next != self.by_block.rem(lpn) {
            self.blocks[log as usize].in_order = false;
        }
        self.write(log, next, lpn, cause, work);
    }

    /// Puts a logical page at its offset in its data block before time 0; pages may come in any order.
    pub(crate) fn prefill(&mut self, lpn: u32, work: &mut Work) {
        let (logical, offset) = (self.block_of(lpn), self.offset(lpn));
        if self.data[logical as usize] == NONE {
            self.data[logical as usize] = self.take(self.lun(logical), Role::Data, logical);
        }
        let block = self.data[logical as usize];
        let next = self.blocks[block as usize].next;
        self.slots.tell(|medium| medium.rewind(block, offset));
        self.write(block, offset, lpn, Cause::Host, work);
        self.blocks[block as usize].next = next.max(offset + 1);
        self.slots.tell(|medium| medium.leave_out(block, next));
    }

    /// Reads the newest version of a logical page; if there is none, reads some page of the LUN where static
    /// allocation would put it.
    #[inline]
    pub(crate) fn read(&self, lpn: u32, cause: Cause, work: &mut Work) {
        let lun = self.lun(self.block_of(lpn));
        match self.page(lpn) {
            NONE => work.read_unwritten(lun, cause, 1),
            page => work.read_part(lun, page, cause, 1),
        }
    }

    /// Drops the data of a logical page.
    pub(crate) fn trim(&mut self, lpn: u32) {
        let old = self.slots.trim(lpn);
        if old != NONE {
            self.invalidate(old);
        }
    }

    /// Fills a block, from its next page up to offset `end`, with copies of the newest versions of its owner's
    /// pages, each at its own offset; returns the number of copies. Offsets without data stay empty.
    pub(crate) fn fill(&mut self, block: u32, end: u32, work: &mut Work) -> u32 {
        let at = self.blocks[block as usize];
        let (owner, next, kind) = (at.owner, at.next, at.kind());
        let [first, to] = [owner, block].map(|block| block * self.shape.pages_per_block);
        let (mut copies, tells) = (0, work.tells_pages());
        for offset in next..end.min(self.shape.lpns - first) {
            let (lpn, target) = (first + offset, to + offset);
            let page = self.slots.of(lpn);
            if page != NONE {
                self.slots.tell(|medium| medium.copy(page, lpn));
                self.invalidate(page);
                self.slots.valid.set(target);
                self.slots.place(target, lpn, || kind);
                if tells {
                    work.source(page);
                    work.target(Target::page(target));
                }
                copies += 1;
            }
        }
        self.blocks[block as usize].valid += copies;
        if end > next {
            self.blocks[block as usize].next = end;
            self.slots.tell(|medium| medium.leave_out(block, end));
        }
        if copies > 0 {
            if !tells {
                work.unnamed([copies, copies]);
            }
            work.copy(self.lun_of_block(block), Cause::Merge);
        }
        copies
    }

    /// Erases a block without valid pages.
    pub(crate) fn erase(&mut self, block: u32, work: &mut Work) {
        self.slots.erase(block);
        self.blocks[block as usize] = Block::FREE;
        let lun = self.lun_of_block(block);
        self.pool.erased(lun, block);
        let successor = self.pool.successor(lun, block);
        self.pool.push(successor);
        work.erase(lun, block * self.shape.pages_per_block, Cause::Merge);
    }

    /// Makes a block the data block of its owner, and erases the owner's previous data block.
    pub(crate) fn adopt(&mut self, block: u32, work: &mut Work) {
        let at = &mut self.blocks[block as usize];
        at.role = Role::Data;
        let old = std::mem::replace(&mut self.data[at.owner as usize], block);
        if old != NONE {
            self.erase(old, work);
        }
    }

    /// Whether a log block that was written in order can become its owner's data block once the pages it lacks
    /// are programmed behind its last page.
    pub(super) fn continues(&self, log: u32) -> bool {
        let Block { owner, next, .. } = self.blocks[log as usize];
        let first = owner * self.shape.pages_per_block;
        let data = self.data[owner as usize];
        let elsewhere = |page| page == NONE || self.block_of(page) != data;
        (first..first + next.min(self.shape.lpns - first)).all(|lpn| elsewhere(self.page(lpn)))
    }

    /// Adds to `set` the logical blocks that have valid pages in a block, and puts `set` in ascending order.
    pub(crate) fn associated(&self, block: u32, set: &mut Vec<u32>) {
        let first = block * self.shape.pages_per_block;
        let valid = self.slots.valid.members(first, first + self.shape.pages_per_block);
        set.extend(valid.map(|page| self.logical_of(self.slots.spare.of(page))));
        set.sort_unstable();
        set.dedup();
    }

    /// Whether any page of a block, which must have an owner, has a newer version elsewhere or, if trims are
    /// durable, may have been trimmed.
    pub(crate) fn superseded(&self, block: u32) -> bool {
        let Block { owner, next, .. } = self.blocks[block as usize];
        let [first, page] = [owner, block].map(|block| block * self.shape.pages_per_block);
        let trimmed = self.has_trims(owner);
        (0..next.min(self.shape.lpns - first)).any(|offset| {
            let newest = self.slots.of(first + offset);
            newest != page + offset && (newest != NONE || trimmed)
        })
    }

    /// Returns the number of a LUN's log blocks, counted one by one.
    pub(crate) fn logs_in_use(&self, lun: u32) -> u32 {
        self.pool.of_lun(lun).filter(|&block| self.block(block).role == Role::Log).count() as u32
    }

    /// Returns the logical block of the first valid page of a block.
    pub(crate) fn first_associated(&self, block: u32) -> Option<u32> {
        let first = block * self.shape.pages_per_block;
        let page = self.slots.valid.next_set(first, first + self.shape.pages_per_block)?;
        Some(self.logical_of(self.slots.spare.of(page)))
    }
}

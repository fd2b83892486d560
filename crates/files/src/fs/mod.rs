//! The file system: a small model of ext4 as it is in Linux 2.6.32.
//!
//! Source: Shim et al., TC 2014, section 6.1 (ext4, delayed allocation off), and the layout that mke2fs makes: groups
//! of 128 MiB, with their bitmaps and inode tables together at the start (flex_bg), an inode of 256 B for every 16 KiB,
//! 4 KiB blocks, a journal of 4 to 128 MiB depending on the size. The model: blocks are allocated when a page is first
//! written, from a window that the file reserves in advance (mballoc's preallocation: 16 KiB to 2 MiB depending on the
//! file's size) and whose unused rest it gives back when it is closed; directory, inode and bitmap blocks, group
//! descriptors and the superblock (orphan list) change in the running transaction; freed blocks can be used by other
//! files after the commit.
//!
//! Interpretation: metadata blocks are in memory from the start, so none of them is ever read; the journal follows the
//! inode tables; a directory entry has 32 B; extent blocks (for a file of more than four extents) are left out. Every
//! write dirties the inode (its change time).

mod journal;
mod layout;
mod space;

pub use journal::{Buffer, Journal, Tid, Transaction};
pub use layout::{BLOCK, Mkfs};
use layout::{GROUP, INODES_PER_BLOCK, Layout};
use space::Space;

use ftlab_core::util::NONE;

const ENTRIES_PER_BLOCK: u32 = 128;

/// A file.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    /// Size of the file, bytes.
    pub size: u64,
    /// Number of the transaction in which the file last changed; 0: none.
    pub tid: Tid,
    /// The same for its size and blocks.
    pub data_tid: Tid,
    number: u32,
    directory: u32,
    entry: u32,
    /// Block of each page, or [`NONE`].
    map: Vec<u32>,
    /// The window reserved in advance: its first page, its first block, and its number of blocks.
    window: (u32, u32, u32),
}

impl Inode {
    /// Returns the block of a page, or [`NONE`].
    pub fn block(&self, page: u32) -> u32 {
        self.map.get(page as usize).copied().unwrap_or(NONE)
    }
}

#[derive(Clone, Debug)]
struct Directory {
    group: u32,
    number: u32,
    entries: Space,
    /// Buffers of the directory's blocks.
    buffers: Vec<u32>,
}

/// The file system.
#[derive(Clone, Debug)]
pub struct Fs {
    layout: Layout,
    /// Whether there is metadata; otherwise the device is used bare.
    meta: bool,
    blocks: Space,
    inode_numbers: Space,
    inodes: Vec<Inode>,
    free_inodes: Vec<u32>,
    directories: Vec<Directory>,
    /// Metadata blocks in memory; those before the journal have the numbers of their blocks.
    pub buffers: Vec<Buffer>,
    /// The journal.
    pub journal: Journal,
}

/// The error that the file system has no room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Fs {
    /// Makes and mounts a file system on a device of `count` blocks, with a directory for each of `clients`; if `made`
    /// is `None`, there are only files on the bare device.
    pub fn new(made: Option<Mkfs>, count: u32, clients: u32) -> Fs {
        let meta = made.is_some();
        let layout = made.map_or_else(Layout::raw, |made| Layout::new(made, count));
        let mut fs = Fs {
            layout,
            meta,
            blocks: Space::new(count),
            inode_numbers: Space::new(layout.inodes_per_group * layout.groups),
            inodes: Vec::new(),
            free_inodes: Vec::new(),
            directories: Vec::new(),
            buffers: (0..layout.journal).map(Buffer::new).collect(),
            journal: Journal::new(layout.journal, layout.journal_len),
        };
        fs.blocks.take(0, layout.data);
        for client in 0..clients {
            let group = client % layout.groups;
            // If there is no room for a directory, there is none for its files either, and creating its first file
            // fails.
            let number = fs.free_number(group);
            number.into_iter().for_each(|number| fs.inode_numbers.take(number, 1));
            let number = number.unwrap_or(0);
            let mut directory =
                Directory { group, number, entries: Space::new(1 << 20), buffers: Vec::new() };
            if meta && let Some((block, _)) = fs.blocks.run(fs.goal(group), 1) {
                fs.blocks.take(block, 1);
                directory.buffers.push(fs.new_buffer(block));
            }
            fs.directories.push(directory);
        }
        fs
    }

    /// Whether the file system keeps metadata.
    pub fn has_metadata(&self) -> bool {
        self.meta
    }

    /// Returns the file with this number.
    pub fn inode(&self, inode: u32) -> &Inode {
        &self.inodes[inode as usize]
    }

    /// Returns the number of data blocks that are free now.
    pub fn free_blocks(&self) -> u32 {
        self.blocks.free()
    }

    fn new_buffer(&mut self, block: u32) -> u32 {
        self.buffers.push(Buffer::new(block));
        self.buffers.len() as u32 - 1
    }

    /// Returns where a group's data begins.
    fn goal(&self, group: u32) -> u32 {
        (group * GROUP).max(self.layout.data)
    }

    /// Returns the number of a free inode, in this group if possible; the file system has one inode for every 16 KiB.
    fn free_number(&self, group: u32) -> Option<u32> {
        let first = group * self.layout.inodes_per_group;
        let inside = self.inode_numbers.first_free(first, first + self.layout.inodes_per_group);
        inside.or_else(|| self.inode_numbers.first_free(0, u32::MAX))
    }

    fn change(&mut self, buffer: u32, now_ns: u64) -> Tid {
        self.journal.change(buffer, &mut self.buffers, now_ns)
    }

    fn change_table(&mut self, number: u32, now_ns: u64) -> Tid {
        let block = self.layout.inode_tables + number / INODES_PER_BLOCK;
        self.change(block, now_ns)
    }

    fn change_inode(&mut self, inode: u32, now_ns: u64) {
        if self.meta {
            self.inodes[inode as usize].tid = self.change_table(self.inodes[inode as usize].number, now_ns);
        }
    }

    /// Changes a file's inode in a way that its data cannot be found without.
    fn change_extent(&mut self, inode: u32, now_ns: u64) {
        self.change_inode(inode, now_ns);
        self.inodes[inode as usize].data_tid = self.inodes[inode as usize].tid;
    }

    fn change_descriptor(&mut self, group: u32, now_ns: u64) {
        self.change(1 + group * 32 / BLOCK as u32, now_ns);
    }

    /// Marks the bitmap that covers an inode number, and its group's descriptor, as changed.
    fn change_inode_bitmap(&mut self, number: u32, now_ns: u64) {
        let group = number / self.layout.inodes_per_group;
        self.change(self.layout.bitmaps + self.layout.groups + group, now_ns);
        self.change_descriptor(group, now_ns);
    }

    /// Marks the bitmap that covers a block, and its group's descriptor, as changed.
    fn change_block_bitmap(&mut self, block: u32, now_ns: u64) {
        let group = block / GROUP;
        self.change(self.layout.bitmaps + group, now_ns);
        self.change_descriptor(group, now_ns);
    }

    /// Changes the directory's block for an entry, after allocating that block if necessary, and the directory's inode.
    fn change_entry(&mut self, directory: u32, entry: u32, now_ns: u64) -> Result<(), Full> {
        let at = (entry / ENTRIES_PER_BLOCK) as usize;
        let Directory { group, number, .. } = self.directories[directory as usize];
        while self.directories[directory as usize].buffers.len() <= at {
            let (block, _) = self.blocks.run(self.goal(group), 1).ok_or(Full)?;
            self.blocks.take(block, 1);
            self.change_block_bitmap(block, now_ns);
            let buffer = self.new_buffer(block);
            self.directories[directory as usize].buffers.push(buffer);
        }
        self.change(self.directories[directory as usize].buffers[at], now_ns);
        self.change_table(number, now_ns);
        Ok(())
    }

    /// Creates an empty file in a directory.
    ///
    /// # Errors
    /// [`Full`] if the directory has to grow and cannot, or no inode is left.
    pub fn create(&mut self, directory: u32, now_ns: u64) -> Result<u32, Full> {
        let number = self.free_number(self.directories[directory as usize].group).ok_or(Full)?;
        let entries = &mut self.directories[directory as usize].entries;
        let entry = entries.first_free(0, u32::MAX).expect("a million entries are more than files here need");
        if self.meta {
            self.change_entry(directory, entry, now_ns)?;
        }
        self.directories[directory as usize].entries.take(entry, 1);
        self.inode_numbers.take(number, 1);
        let inode = self.free_inodes.pop().unwrap_or(self.inodes.len() as u32);
        if inode as usize == self.inodes.len() {
            self.inodes.push(Inode::default());
        }
        // Reuses the map's memory.
        let kept = &mut self.inodes[inode as usize];
        kept.map.clear();
        (kept.size, kept.tid, kept.data_tid, kept.window) = (0, 0, 0, (0, 0, 0));
        (kept.number, kept.directory, kept.entry) = (number, directory, entry);
        if self.meta {
            self.change_inode_bitmap(number, now_ns);
            self.change_extent(inode, now_ns);
        }
        Ok(inode)
    }

    /// Deletes a file; its pages must be out of the cache.
    pub fn unlink(&mut self, inode: u32, now_ns: u64) {
        let Inode { number, directory, entry, .. } = self.inodes[inode as usize];
        self.truncate(inode, now_ns);
        if self.meta {
            // The entry's block exists already.
            let _ = self.change_entry(directory, entry, now_ns);
            // The orphan list begins in the superblock.
            self.change(0, now_ns);
            self.change_inode_bitmap(number, now_ns);
            self.change_inode(inode, now_ns);
        }
        self.directories[directory as usize].entries.give(entry, 1);
        self.inode_numbers.give(number, 1);
        self.free_inodes.push(inode);
    }

    /// Truncates a file to no bytes; its pages must be out of the cache.
    pub fn truncate(&mut self, inode: u32, now_ns: u64) {
        self.close(inode);
        let map = std::mem::take(&mut self.inodes[inode as usize].map);
        let mut run: Option<(u32, u32)> = None;
        let blocks = map.iter().copied().filter(|&block| block != NONE).chain([NONE]);
        for block in blocks {
            run = match run {
                Some((first, count)) if first + count == block => Some((first, count + 1)),
                Some((first, count)) => {
                    self.free(first, count, now_ns);
                    Some((block, 1))
                }
                None => Some((block, 1)),
            };
        }
        let file = &mut self.inodes[inode as usize];
        file.map = map;
        file.map.clear();
        let was_empty = std::mem::take(&mut file.size) == 0;
        if self.meta && !was_empty {
            self.change(0, now_ns);
        }
        self.change_extent(inode, now_ns);
    }

    fn free(&mut self, first: u32, count: u32, now_ns: u64) {
        if !self.meta {
            return self.blocks.give(first, count);
        }
        for group in first / GROUP..=(first + count - 1) / GROUP {
            self.change_block_bitmap(group * GROUP, now_ns);
        }
        self.journal.free(first, count);
    }

    /// Makes available the blocks that a committed transaction has freed.
    pub fn release(&mut self, first: u32, count: u32) {
        self.blocks.give(first, count);
    }

    /// Frees what is left of a file's window.
    pub fn close(&mut self, inode: u32) {
        let file = &mut self.inodes[inode as usize];
        let (page, block, count) = std::mem::take(&mut file.window);
        for at in 0..count {
            if file.map.get((page + at) as usize).copied().unwrap_or(NONE) != block + at {
                self.blocks.give(block + at, 1);
            }
        }
    }

    /// Renames a file within its directory.
    ///
    /// # Errors
    /// [`Full`] if the directory has to grow and cannot.
    pub fn rename(&mut self, inode: u32, now_ns: u64) -> Result<(), Full> {
        if !self.meta {
            return Ok(());
        }
        let Inode { directory, entry, .. } = self.inodes[inode as usize];
        let entries = &mut self.directories[directory as usize].entries;
        let new = entries.first_free(0, u32::MAX).expect("a million entries are more than files here need");
        self.change_entry(directory, new, now_ns)?;
        self.change_entry(directory, entry, now_ns)?;
        let entries = &mut self.directories[directory as usize].entries;
        entries.take(new, 1);
        entries.give(entry, 1);
        self.inodes[inode as usize].entry = new;
        self.change_inode(inode, now_ns);
        Ok(())
    }

    /// Changes a file's inode: its attributes, or its size and time after a write that ends at `end`.
    pub fn touch(&mut self, inode: u32, end: u64, now_ns: u64) {
        let file = &mut self.inodes[inode as usize];
        if end <= file.size {
            return self.change_inode(inode, now_ns);
        }
        file.size = end;
        self.change_extent(inode, now_ns);
    }

    /// Returns the block of a page that is being written by a write that ends at `end`; allocates a block if the page
    /// has none.
    ///
    /// # Errors
    /// [`Full`] if no block is free.
    pub fn allocate(&mut self, inode: u32, page: u32, end: u64, now_ns: u64) -> Result<u32, Full> {
        let file = &mut self.inodes[inode as usize];
        if file.map.len() <= page as usize {
            file.map.resize(page as usize + 1, NONE);
        }
        let there = file.map[page as usize];
        if there != NONE {
            return Ok(there);
        }
        let (first, _, count) = file.window;
        if page.wrapping_sub(first) >= count {
            self.close(inode);
            self.reserve(inode, page, end)?;
        }
        let file = &mut self.inodes[inode as usize];
        let block = file.window.1 + (page - file.window.0);
        file.map[page as usize] = block;
        if self.meta {
            self.change_block_bitmap(block, now_ns);
            self.change_extent(inode, now_ns);
            self.journal.order(inode);
        }
        Ok(block)
    }

    /// Gives a file a window that contains `page`.
    fn reserve(&mut self, inode: u32, page: u32, end: u64) -> Result<(), Full> {
        // mballoc's normalization: the file's expected size, rounded up.
        let pages = end.max(u64::from(page + 1) * BLOCK).div_ceil(BLOCK);
        let window = if pages <= 256 { pages.next_power_of_two().max(4) as u32 } else { 512 };
        let file = &self.inodes[inode as usize];
        let last = (page / window + 1) * window;
        let want = (page + 1..last).take_while(|&at| file.block(at) == NONE).count() as u32 + 1;
        let before = page.checked_sub(1).map_or(NONE, |before| file.block(before));
        let goal = match before {
            NONE if self.meta => self.goal(file.number / self.layout.inodes_per_group),
            NONE => 0,
            before => before + 1,
        };
        let (block, count) = match self.blocks.run(goal, want) {
            Some(run) => run,
            None => {
                // Windows of other files are given up first.
                (0..self.inodes.len() as u32).for_each(|other| self.close(other));
                self.blocks.run(goal, want).ok_or(Full)?
            }
        };
        self.blocks.take(block, count);
        self.inodes[inode as usize].window = (page, block, count);
        Ok(())
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod plain_places_tests;
#[cfg(test)]
mod plain_tests;
#[cfg(test)]
mod tests;

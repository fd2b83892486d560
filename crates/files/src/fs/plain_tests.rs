//! A model of what the file system has to do, made of plain sets and maps; it stores nothing that could be computed
//! from its other fields. It is written from the module's own sources (ext4 and jbd2 of Linux 2.6.32, mke2fs's layout),
//! so that random operations can compare the two implementations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use super::plain_places_tests::{GROUP, Places};

pub const NO_ROOM: &str = "no room";

#[derive(Clone, Default)]
pub struct File {
    pub size: u64,
    /// Number of the transaction in which the inode last changed.
    pub tid: u64,
    number: u32,
    directory: usize,
    entry: u32,
    /// Block of each page that has one.
    pub pages: BTreeMap<u32, u32>,
    /// The block reserved for each page of the window, including used blocks.
    window: BTreeMap<u32, u32>,
}

#[derive(Clone, Default)]
struct Directory {
    group: u32,
    number: u32,
    blocks: Vec<u32>,
    entries: BTreeSet<u32>,
}

/// A transaction.
#[derive(Clone, Default)]
pub struct Change {
    pub blocks: BTreeSet<u32>,
    /// Files, in the order in which they first got new blocks.
    pub files: Vec<u32>,
    pub freed: BTreeSet<u32>,
    pub begun_ns: Option<u64>,
}

impl Change {
    /// Returns the number of blocks of the ring that the transaction takes: a descriptor for every 508 blocks (at
    /// least one), the blocks, the commit block.
    pub fn log_blocks(&self) -> u32 {
        let blocks = self.blocks.len() as u32;
        blocks.div_ceil(508).max(1) + blocks + 1
    }
}

#[derive(Clone)]
pub struct Model {
    pub places: Places,
    blocks: u32,
    /// Whether there is a file system; otherwise the device is bare.
    meta: bool,
    pub free: BTreeSet<u32>,
    numbers: BTreeSet<u32>,
    pub files: BTreeMap<u32, File>,
    /// Ids of deleted files, which new files use again.
    gone: Vec<u32>,
    ids: u32,
    directories: Vec<Directory>,
    pub running: Change,
    pub committing: Option<Change>,
    /// Number of the last commit.
    pub committed: u64,
    /// Each commit that still occupies a part of the ring: its length, and the blocks that have not been
    /// written in place.
    ring: VecDeque<(u64, u32, BTreeSet<u32>)>,
    /// For each logged block, the time since which it has been waiting to be written in place.
    pub since_ns: BTreeMap<u32, u64>,
}

impl Model {
    pub fn new(blocks: u32, places: Option<Places>, clients: u32) -> Model {
        let meta = places.is_some();
        let none = Places { journal_blocks: 0, ..Places::of(blocks.max(1), 0) };
        let places = places.unwrap_or(Places { groups: 1, data: 0, inodes_per_group: 1 << 20, ..none });
        let mut model = Model {
            blocks,
            meta,
            free: (places.data..blocks).collect(),
            numbers: (0..places.inodes_per_group * places.groups).collect(),
            files: BTreeMap::new(),
            gone: Vec::new(),
            ids: 0,
            directories: Vec::new(),
            running: Change::default(),
            committing: None,
            committed: 0,
            ring: VecDeque::new(),
            since_ns: BTreeMap::new(),
            places,
        };
        // Directories are assigned to the groups round-robin.
        for client in 0..clients {
            let group = client % model.places.groups;
            let number = model.number_near(group).unwrap();
            model.numbers.remove(&number);
            let blocks = if meta { model.find(model.start_of(group), 1).unwrap() } else { Vec::new() };
            blocks.iter().for_each(|block| assert!(model.free.remove(block)));
            model.directories.push(Directory { group, number, blocks, entries: BTreeSet::new() });
        }
        model
    }

    fn start_of(&self, group: u32) -> u32 {
        self.places.data.max(group * GROUP)
    }

    /// Returns the least free inode number in a group, or in the whole file system if the group has none.
    fn number_near(&self, group: u32) -> Option<u32> {
        let first = group * self.places.inodes_per_group;
        let own = self.numbers.range(first..first + self.places.inodes_per_group).next();
        own.or(self.numbers.first()).copied()
    }

    /// Returns consecutive free blocks: as many as there are at the goal, up to `want`; else the first run of `want`
    /// blocks after the goal, or else before it; else the longest run.
    fn find(&self, goal: u32, want: u32) -> Option<Vec<u32>> {
        let goal = if goal < self.blocks { goal } else { 0 };
        let run = |from: u32, to: u32| -> Vec<u32> {
            (from..to.min(from.saturating_add(want))).take_while(|at| self.free.contains(at)).collect()
        };
        let here = run(goal, u32::MAX);
        if !here.is_empty() {
            return Some(here);
        }
        let mut all: Vec<Vec<u32>> = Vec::new();
        for (from, to) in [(goal, u32::MAX), (0, goal)] {
            let mut at = from;
            while let Some(&first) = self.free.range(at..to).next() {
                let found = run(first, to);
                at = found.last().unwrap() + 1;
                all.push(found);
            }
        }
        let whole = all.iter().find(|run| run.len() as u32 == want).cloned();
        whole.or_else(|| all.iter().rev().max_by_key(|run| run.len()).cloned())
    }

    fn change(&mut self, block: u32, now_ns: u64) {
        if self.meta {
            self.running.begun_ns.get_or_insert(now_ns);
            self.running.blocks.insert(block);
        }
    }

    fn change_descriptor(&mut self, group: u32, now_ns: u64) {
        self.change(1 + group / 128, now_ns);
    }

    fn change_number(&mut self, number: u32, now_ns: u64) {
        self.change(self.places.inode_tables + number / 16, now_ns);
    }

    fn change_number_bitmap(&mut self, number: u32, now_ns: u64) {
        let group = number / self.places.inodes_per_group;
        self.change(self.places.inode_bitmaps + group, now_ns);
        self.change_descriptor(group, now_ns);
    }

    fn change_block_bitmap(&mut self, block: u32, now_ns: u64) {
        self.change(self.places.block_bitmaps + block / GROUP, now_ns);
        self.change_descriptor(block / GROUP, now_ns);
    }

    fn change_file(&mut self, id: u32, now_ns: u64) {
        if self.meta {
            let tid = self.running_tid();
            let file = self.files.get_mut(&id).unwrap();
            file.tid = tid;
            let number = file.number;
            self.change_number(number, now_ns);
        }
    }

    /// Changes an entry of 32 B and the directory's own inode; if the entry lies beyond the directory's blocks, the
    /// directory first gets more blocks.
    fn change_entry(&mut self, directory: usize, entry: u32, now_ns: u64) -> Result<(), &'static str> {
        if !self.meta {
            return Ok(());
        }
        let at = (entry / 128) as usize;
        while self.directories[directory].blocks.len() <= at {
            let goal = self.start_of(self.directories[directory].group);
            let block = self.find(goal, 1).ok_or(NO_ROOM)?[0];
            self.free.remove(&block);
            self.change_block_bitmap(block, now_ns);
            self.directories[directory].blocks.push(block);
        }
        self.change(self.directories[directory].blocks[at], now_ns);
        self.change_number(self.directories[directory].number, now_ns);
        Ok(())
    }

    fn free_entry(&self, directory: usize) -> u32 {
        (0..).find(|entry| !self.directories[directory].entries.contains(entry)).unwrap()
    }

    /// Returns the number of the running transaction.
    pub fn running_tid(&self) -> u64 {
        self.committed + 1 + u64::from(self.committing.is_some())
    }

    pub fn create(&mut self, directory: usize, now_ns: u64) -> Result<u32, &'static str> {
        let number = self.number_near(self.directories[directory].group).ok_or(NO_ROOM)?;
        let entry = self.free_entry(directory);
        self.change_entry(directory, entry, now_ns)?;
        self.directories[directory].entries.insert(entry);
        self.numbers.remove(&number);
        let id = self.gone.pop().unwrap_or_else(|| {
            self.ids += 1;
            self.ids - 1
        });
        self.files.insert(id, File { number, directory, entry, ..File::default() });
        self.change_number_bitmap(number, now_ns);
        self.change_file(id, now_ns);
        Ok(id)
    }

    pub fn unlink(&mut self, id: u32, now_ns: u64) {
        self.truncate(id, now_ns);
        let File { directory, entry, number, .. } = self.files[&id].clone();
        self.change_entry(directory, entry, now_ns).unwrap();
        // The orphan list begins in the superblock.
        self.change(0, now_ns);
        self.change_number_bitmap(number, now_ns);
        self.change_file(id, now_ns);
        self.directories[directory].entries.remove(&entry);
        assert!(self.numbers.insert(number));
        self.files.remove(&id);
        self.gone.push(id);
    }

    pub fn truncate(&mut self, id: u32, now_ns: u64) {
        self.close(id);
        let file = self.files.get_mut(&id).unwrap();
        let was_empty = file.size == 0;
        file.size = 0;
        for block in std::mem::take(&mut file.pages).into_values() {
            if self.meta {
                self.change_block_bitmap(block, now_ns);
                assert!(self.running.freed.insert(block));
            } else {
                self.free.insert(block);
            }
        }
        if !was_empty {
            self.change(0, now_ns);
        }
        self.change_file(id, now_ns);
    }

    /// Frees what is left of a window.
    pub fn close(&mut self, id: u32) {
        let file = self.files.get_mut(&id).unwrap();
        for (page, block) in std::mem::take(&mut file.window) {
            if file.pages.get(&page) != Some(&block) {
                assert!(self.free.insert(block));
            }
        }
    }

    pub fn rename(&mut self, id: u32, now_ns: u64) -> Result<(), &'static str> {
        let File { directory, entry, .. } = self.files[&id].clone();
        if !self.meta {
            return Ok(());
        }
        let new = self.free_entry(directory);
        self.change_entry(directory, new, now_ns)?;
        self.change_entry(directory, entry, now_ns)?;
        self.directories[directory].entries.insert(new);
        self.directories[directory].entries.remove(&entry);
        self.files.get_mut(&id).unwrap().entry = new;
        self.change_file(id, now_ns);
        Ok(())
    }

    pub fn touch(&mut self, id: u32, end: u64, now_ns: u64) {
        let file = self.files.get_mut(&id).unwrap();
        file.size = file.size.max(end);
        self.change_file(id, now_ns);
    }

    /// Gives a page the block reserved for it, or the first block of a new window. A window has as many pages
    /// as the file is expected to have: a power of two from 4 to 256, or 512 above that, aligned, up to the
    /// next page that has a block.
    pub fn allocate(&mut self, id: u32, page: u32, end: u64, now_ns: u64) -> Result<u32, &'static str> {
        if let Some(&block) = self.files[&id].pages.get(&page) {
            return Ok(block);
        }
        if !self.files[&id].window.contains_key(&page) {
            self.close(id);
            let file = &self.files[&id];
            let coming = (end.div_ceil(4096) as u32).max(page + 1);
            let window = (2..=8).map(|power| 1 << power).find(|&size| coming <= size).unwrap_or(512);
            let behind = page - page % window + window;
            let want = (page + 1..behind).find(|at| file.pages.contains_key(at)).unwrap_or(behind) - page;
            let group = if self.meta { file.number / self.places.inodes_per_group } else { 0 };
            let before = page.checked_sub(1).and_then(|before| file.pages.get(&before));
            let goal = before.map_or(self.start_of(group), |before| before + 1);
            let found = self.find(goal, want);
            let found = match found {
                None => {
                    self.files.keys().copied().collect::<Vec<_>>().into_iter().for_each(|id| self.close(id));
                    self.find(goal, want).ok_or(NO_ROOM)?
                }
                Some(found) => found,
            };
            found.iter().for_each(|block| assert!(self.free.remove(block)));
            self.files.get_mut(&id).unwrap().window = (page..).zip(found).collect();
        }
        let file = self.files.get_mut(&id).unwrap();
        let block = file.window[&page];
        file.pages.insert(page, block);
        if self.meta {
            self.change_block_bitmap(block, now_ns);
            self.change_file(id, now_ns);
            if !self.running.files.contains(&id) {
                self.running.files.push(id);
            }
        }
        Ok(block)
    }

    pub fn begin_commit(&mut self) {
        self.committing = Some(std::mem::take(&mut self.running));
    }

    /// Ends a commit: its blocks have to be written in place, and older copies of them are no longer needed.
    pub fn end_commit(&mut self, now_ns: u64) {
        let done = self.committing.take().unwrap();
        self.committed += 1;
        for (_, _, pending) in &mut self.ring {
            pending.retain(|block| !done.blocks.contains(block));
        }
        for &block in &done.blocks {
            self.since_ns.entry(block).or_insert(now_ns);
        }
        self.ring.push_back((self.committed, done.log_blocks(), done.blocks));
        self.free.extend(done.freed);
        self.trim();
    }

    fn trim(&mut self) {
        while self.ring.front().is_some_and(|(_, _, pending)| pending.is_empty()) {
            self.ring.pop_front();
        }
    }

    /// Notes that the copy of a block in commit `tid` has been written in place.
    pub fn in_place(&mut self, block: u32, tid: u64) {
        if let Some((_, _, pending)) = self.ring.iter_mut().find(|(at, _, _)| *at == tid)
            && pending.remove(&block)
        {
            self.since_ns.remove(&block);
        }
        self.trim();
    }

    /// Returns the commit whose copy of a block has not been written in place.
    pub fn logged(&self, block: u32) -> Option<u64> {
        self.ring.iter().find(|(_, _, pending)| pending.contains(&block)).map(|(tid, _, _)| *tid)
    }

    /// Whether a block may be written in place: it is logged, and has not changed since.
    pub fn is_writable(&self, block: u32) -> bool {
        let changed =
            self.committing.iter().chain([&self.running]).any(|change| change.blocks.contains(&block));
        self.logged(block).is_some() && !changed
    }

    /// Returns the oldest commit that occupies a part of the ring.
    pub fn oldest(&self) -> u64 {
        self.ring.front().map_or(self.committed + 1, |(tid, _, _)| *tid)
    }

    /// Returns the number of blocks of the ring in use.
    pub fn ring_used(&self) -> u32 {
        self.ring.iter().map(|(_, blocks, _)| blocks).sum()
    }
}

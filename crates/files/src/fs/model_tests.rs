//! Random operations on the file system and on a plain model of it: after each operation, every block, transaction,
//! inode and free block has to be the same in both.

use std::collections::BTreeSet;

use super::plain_tests::{Model, NO_ROOM, Places};
use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    /// Creates this many files in one directory, so that it has to grow.
    CreateMany(usize, u32),
    /// Writes consecutive pages of a file: the file, the first page and the number of pages.
    Write(usize, u32, u32),
    Append(usize, u32),
    Touch(usize),
    Close(usize),
    Truncate(usize),
    Unlink(usize),
    Rename(usize),
    BeginCommit,
    EndCommit,
    /// Writes this many dirty buffers in place.
    Submit(usize),
    /// Completes some of the in-place writes under way.
    Arrive(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = prop_oneof![3 => 0u32..20, 2 => 0u32..700];
    let step = prop_oneof![
        3 => (0usize..3).prop_map(Step::Create),
        1 => (0usize..3, 50u32..150).prop_map(|(directory, count)| Step::CreateMany(directory, count)),
        5 => (0usize..20, page, 1u32..30).prop_map(|(file, page, count)| Step::Write(file, page, count)),
        5 => (0usize..20, 1u32..300).prop_map(|(file, count)| Step::Append(file, count)),
        1 => (0usize..20).prop_map(Step::Touch),
        2 => (0usize..20).prop_map(Step::Close),
        1 => (0usize..20).prop_map(Step::Truncate),
        2 => (0usize..20).prop_map(Step::Unlink),
        1 => (0usize..20).prop_map(Step::Rename),
        2 => Just(Step::BeginCommit),
        3 => Just(Step::EndCommit),
        2 => (1usize..30).prop_map(Step::Submit),
        2 => (1usize..30).prop_map(Step::Arrive),
    ];
    proptest::collection::vec(step, 1..120)
}

/// The file system and its model, and what the user of the file system remembers.
struct Pair {
    fs: Fs,
    model: Model,
    /// Ids of the existing files.
    files: Vec<u32>,
    /// Buffers that are being written in place, each with the commit whose copy is written.
    underway: Vec<(u32, u64)>,
    /// Next block of the ring, counted from the journal's first block.
    head: u32,
}

impl Pair {
    fn new(blocks: u32, journal: Option<u32>, clients: u32) -> Pair {
        let made = journal.map(|journal| Mkfs { journal_bytes: Some(u64::from(journal) * BLOCK) });
        let places = journal.map(|journal| Places::of(blocks, journal));
        let model = Model::new(blocks, places, clients);
        let fs = Fs::new(made, blocks, clients);
        Pair { fs, model, files: Vec::new(), underway: Vec::new(), head: 0 }
    }

    fn pick(&self, at: usize) -> Option<u32> {
        (!self.files.is_empty()).then(|| self.files[at % self.files.len()])
    }

    fn create(&mut self, directory: usize, now_ns: u64) -> Result<(), TestCaseError> {
        let id = self.fs.create(directory as u32, now_ns);
        prop_assert_eq!(id.map_err(|Full| NO_ROOM), self.model.create(directory, now_ns));
        self.files.extend(id);
        Ok(())
    }

    /// Does what the file host does for a write: allocates the blocks of the pages, then updates the file's size and
    /// time.
    fn write(&mut self, id: u32, first: u32, count: u32, now_ns: u64) -> Result<(), TestCaseError> {
        let end = u64::from(first + count) * BLOCK - 7;
        for page in first..first + count {
            let block = self.fs.allocate(id, page, end, now_ns);
            prop_assert_eq!(block.map_err(|Full| NO_ROOM), self.model.allocate(id, page, end, now_ns));
            if block.is_err() {
                return Ok(());
            }
        }
        self.fs.touch(id, end, now_ns);
        self.model.touch(id, end, now_ns);
        Ok(())
    }

    fn begin_commit(&mut self) -> Result<(), TestCaseError> {
        let needed = self.model.running.log_blocks();
        let room = self.model.places.journal_blocks - self.model.ring_used();
        if self.model.committing.is_some() || self.model.running.begun_ns.is_none() || needed > room {
            return Ok(());
        }
        prop_assert_eq!(self.fs.journal.begin_commit().log_blocks(), needed);
        self.model.begin_commit();
        let Places { journal, journal_blocks, .. } = self.model.places;
        for _ in 0..needed {
            prop_assert_eq!(self.fs.journal.advance(), journal + self.head);
            self.head = (self.head + 1) % journal_blocks;
        }
        Ok(())
    }

    fn end_commit(&mut self, now_ns: u64) {
        if self.model.committing.is_some() {
            let done = self.fs.journal.end_commit(&mut self.fs.buffers, now_ns);
            done.freed.iter().for_each(|&(first, count)| self.fs.release(first, count));
            self.model.end_commit(now_ns);
        }
    }

    fn submit(&mut self, count: usize) -> Result<(), TestCaseError> {
        let (mut oldest, tid) = (Vec::new(), self.model.oldest());
        self.fs.journal.writable(&mut self.fs.buffers, |buffer| buffer.is_of(tid), &mut oldest);
        let underway: BTreeSet<u32> = self.underway.iter().map(|&(id, _)| self.block(id)).collect();
        let free = |block: &u32| !underway.contains(block);
        let logged = self.model.since_ns.keys().copied().filter(free);
        let (of_oldest, all): (Vec<u32>, Vec<u32>) = (
            logged.clone().filter(|&block| self.model.logged(block) == Some(tid)).collect(),
            logged.filter(|&block| self.model.is_writable(block)).collect(),
        );
        prop_assert_eq!(oldest.iter().map(|&id| self.block(id)).collect::<Vec<_>>(), of_oldest);
        let mut writable = Vec::new();
        self.fs.journal.writable(&mut self.fs.buffers, Buffer::is_writable, &mut writable);
        prop_assert_eq!(writable.iter().map(|&id| self.block(id)).collect::<Vec<_>>(), all);
        for &id in writable.iter().take(count) {
            let buffer = &mut self.fs.buffers[id as usize];
            prop_assert_eq!(Some(buffer.logged), self.model.logged(buffer.block));
            prop_assert_eq!(Some(&buffer.dirtied_ns), self.model.since_ns.get(&buffer.block));
            buffer.writing = true;
            self.underway.push((id, buffer.logged));
        }
        Ok(())
    }

    fn arrive(&mut self, count: usize) {
        for (id, tid) in self.underway.drain(..count.min(self.underway.len())).collect::<Vec<_>>() {
            self.fs.journal.in_place(id, tid, &mut self.fs.buffers);
            self.model.in_place(self.block(id), tid);
        }
    }

    fn block(&self, buffer: u32) -> u32 {
        self.fs.buffers[buffer as usize].block
    }

    fn step(&mut self, step: &Step, now_ns: u64) -> Result<(), TestCaseError> {
        let directories = 3;
        match *step {
            Step::Create(directory) => return self.create(directory % directories, now_ns),
            Step::CreateMany(directory, count) => {
                return (0..count).try_for_each(|_| self.create(directory % directories, now_ns));
            }
            Step::BeginCommit => return self.begin_commit(),
            Step::EndCommit => self.end_commit(now_ns),
            Step::Submit(count) => return self.submit(count),
            Step::Arrive(count) => self.arrive(count),
            Step::Write(at, ..)
            | Step::Append(at, _)
            | Step::Touch(at)
            | Step::Close(at)
            | Step::Truncate(at)
            | Step::Unlink(at)
            | Step::Rename(at) => return self.pick(at).map_or(Ok(()), |id| self.change(step, id, now_ns)),
        }
        Ok(())
    }

    fn change(&mut self, step: &Step, id: u32, now_ns: u64) -> Result<(), TestCaseError> {
        match *step {
            Step::Write(_, page, count) => return self.write(id, page, count, now_ns),
            Step::Append(_, count) => {
                let behind = self.model.files[&id].size.div_ceil(BLOCK) as u32;
                return self.write(id, behind, count, now_ns);
            }
            Step::Touch(_) => {
                self.fs.touch(id, 0, now_ns);
                self.model.touch(id, 0, now_ns);
            }
            Step::Close(_) => {
                self.fs.close(id);
                self.model.close(id);
            }
            Step::Truncate(_) => {
                self.fs.truncate(id, now_ns);
                self.model.truncate(id, now_ns);
            }
            Step::Rename(_) => {
                let done = self.fs.rename(id, now_ns).map_err(|Full| NO_ROOM);
                prop_assert_eq!(done, self.model.rename(id, now_ns));
            }
            _ => {
                self.fs.unlink(id, now_ns);
                self.model.unlink(id, now_ns);
                self.files.retain(|&other| other != id);
            }
        }
        Ok(())
    }

    fn same_transaction(&self, real: &Transaction, model: &plain_tests::Change) -> Result<(), TestCaseError> {
        let blocks: BTreeSet<u32> = real.buffers.iter().map(|&id| self.block(id)).collect();
        prop_assert_eq!(blocks.len(), real.buffers.len(), "each buffer once");
        prop_assert_eq!(&blocks, &model.blocks);
        prop_assert_eq!(&real.files, &model.files);
        prop_assert_eq!(real.begun_ns, model.begun_ns);
        prop_assert_eq!(real.log_blocks(), model.log_blocks());
        let freed: Vec<u32> = real.freed.iter().flat_map(|&(first, count)| first..first + count).collect();
        prop_assert_eq!(freed.len(), model.freed.len(), "each block once");
        prop_assert_eq!(&freed.into_iter().collect::<BTreeSet<_>>(), &model.freed);
        Ok(())
    }

    fn same(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.fs.free_blocks() as usize, self.model.free.len());
        for (&id, model) in &self.model.files {
            let real = self.fs.inode(id);
            prop_assert_eq!((real.size, real.tid), (model.size, model.tid));
            let last = model.pages.last_key_value().map_or(0, |(&page, _)| page + 2);
            prop_assert!(
                (0..last).all(|page| real.block(page) == model.pages.get(&page).copied().unwrap_or(NONE))
            );
        }
        let journal = &self.fs.journal;
        self.same_transaction(&journal.running, &self.model.running)?;
        prop_assert_eq!(journal.committing.is_some(), self.model.committing.is_some());
        let advanced = match (journal.committing.as_ref(), &self.model.committing) {
            (Some(real), Some(model)) => {
                self.same_transaction(real, model)?;
                model.log_blocks()
            }
            _ => 0,
        };
        prop_assert_eq!(
            (journal.committed, journal.running.tid),
            (self.model.committed, self.model.running_tid())
        );
        prop_assert_eq!(journal.oldest, self.model.oldest());
        let all = self.model.places.journal_blocks;
        prop_assert_eq!(journal.room(), (all - self.model.ring_used() - advanced, all));
        prop_assert!(journal.dirty.len() >= self.model.since_ns.len());
        Ok(())
    }
}

/// Generates devices (their blocks, and the blocks of their journals): one that the files fill, one of a single group,
/// one of three groups, and a bare one.
fn pairs() -> impl Strategy<Value = (u32, Option<u32>)> {
    prop_oneof![
        Just((900, Some(100))),
        Just((16_384, Some(1024))),
        Just((70_000, Some(700))),
        Just((2000, None)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn behaves_as_the_plain_model((blocks, journal) in pairs(), steps in steps()) {
        let mut pair = Pair::new(blocks, journal, 3);
        pair.same()?;
        for (now_ns, step) in (1..).zip(&steps) {
            // A bare device has no journal and so no commits.
            let step = if journal.is_none() && matches!(step, Step::BeginCommit) { &Step::Close(0) } else { step };
            pair.step(step, now_ns)?;
            pair.same()?;
        }
        // When all files are deleted, all their space is free again.
        for id in pair.files.clone() {
            pair.change(&Step::Unlink(0), id, 0)?;
        }
        pair.same()?;
    }
}

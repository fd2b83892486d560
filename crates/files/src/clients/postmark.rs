//! PostMark: many files are created, read, appended to and deleted.
//!
//! Source: J. Katcher, "PostMark: A new file system benchmark", TR3022, 1997; version 1.51. A run creates its pool of
//! files, performs its transactions, and deletes the files that are left. A transaction reads a whole file or appends
//! to one, then creates or deletes a file; both choices have a bias of 5 in 10. An append adds RND(high - size) + 1
//! bytes and is skipped silently when the file is full. Shim et al., TC 2014, section 6.3: an fsync follows each
//! append, and the first of several runs ages the device.
//!
//! Interpretation: sizes run from PostMark's own minimum of 500 bytes to `file_size`; calls have `request`
//! bytes.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{FileId, FileOp, Parameters, Step};
use ftlab_core::util::{below, stream};

/// PostMark's own minimum file size.
const SMALLEST: u64 = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Start,
    /// Number of files still to be created.
    Make(u32),
    /// Number of transactions still to be performed, and whether the first half of the current one is done.
    Transact(u64, bool),
    Delete,
    Ended,
}

/// The operation in progress: it transfers bytes of one file, may then sync the file, and closes it.
#[derive(Clone, Copy, Debug)]
enum Task {
    Transfer { file: FileId, at: u64, end: u64, write: bool, sync: bool },
    Sync(FileId),
    Close(FileId),
}

/// The PostMark client.
#[derive(Clone, Debug)]
pub struct PostMark {
    random: Xoshiro256PlusPlus,
    of: Parameters,
    run: u64,
    phase: Phase,
    task: Option<Task>,
    /// The existing files.
    alive: Vec<FileId>,
    /// Bytes of each file, by number.
    sizes: Vec<u64>,
    /// Numbers of deleted files, to be used again.
    free: Vec<FileId>,
}

impl PostMark {
    /// Makes the client with these parameters.
    pub fn new(parameters: &Parameters, seed: u64) -> PostMark {
        PostMark {
            random: stream(seed, "postmark"),
            of: parameters.clone(),
            run: 0,
            phase: Phase::Start,
            task: None,
            alive: Vec::new(),
            sizes: Vec::new(),
            free: Vec::new(),
        }
    }

    fn draw(&mut self, bound: u64) -> u64 {
        below(self.random.next_u64(), bound)
    }

    /// Returns the next step.
    pub fn next(&mut self) -> Step {
        if let Some(task) = self.task.take() {
            return self.go_on(task);
        }
        match self.phase {
            Phase::Start => {
                self.phase = Phase::Make(self.of.files);
                if self.run >= self.of.ageing_runs { Step::Begin } else { self.next() }
            }
            Phase::Make(0) => {
                self.phase = Phase::Transact(self.of.transactions, false);
                self.next()
            }
            Phase::Make(left) => {
                self.phase = Phase::Make(left - 1);
                self.make()
            }
            Phase::Transact(0, _) => {
                self.phase = Phase::Delete;
                self.next()
            }
            Phase::Transact(left, false) => {
                self.phase = Phase::Transact(left, true);
                self.touch().unwrap_or_else(|| self.next())
            }
            Phase::Transact(left, true) => {
                self.phase = Phase::Transact(left - 1, false);
                if self.draw(10) < 5 { self.make() } else { self.delete().unwrap_or_else(|| self.make()) }
            }
            Phase::Delete => self.delete().unwrap_or_else(|| self.end_run()),
            Phase::Ended => Step::Done,
        }
    }

    fn end_run(&mut self) -> Step {
        let measured = self.run >= self.of.ageing_runs;
        self.run += 1;
        self.phase = if self.run == self.of.runs { Phase::Ended } else { Phase::Start };
        if measured { Step::End } else { Step::Do(FileOp::Lookup) }
    }

    /// Continues an operation: transfers the next bytes of its file, or syncs or closes the file.
    fn go_on(&mut self, task: Task) -> Step {
        match task {
            Task::Transfer { file, at, end, write, sync } => {
                let size = self.of.request.min(end - at);
                let offset = at;
                self.task = Some(if at + size < end {
                    Task::Transfer { file, at: at + size, end, write, sync }
                } else if sync {
                    Task::Sync(file)
                } else {
                    Task::Close(file)
                });
                Step::Do(if write {
                    FileOp::Write { file, offset, size }
                } else {
                    FileOp::Read { file, offset, size }
                })
            }
            Task::Sync(file) => {
                self.task = Some(Task::Close(file));
                Step::Do(FileOp::Fsync(file))
            }
            Task::Close(file) => Step::Do(FileOp::Close(file)),
        }
    }

    fn make(&mut self) -> Step {
        let low = SMALLEST.min(self.of.file_size);
        let size = low + self.draw(self.of.file_size - low + 1);
        let file = self.free.pop().unwrap_or(self.sizes.len() as FileId);
        if file as usize == self.sizes.len() {
            self.sizes.push(0);
        }
        self.sizes[file as usize] = size;
        self.alive.push(file);
        self.task = Some(Task::Transfer { file, at: 0, end: size, write: true, sync: false });
        Step::Do(FileOp::Create(file))
    }

    fn delete(&mut self) -> Option<Step> {
        if self.alive.is_empty() {
            return None;
        }
        let at = self.draw(self.alive.len() as u64) as usize;
        let file = self.alive.swap_remove(at);
        self.free.push(file);
        Some(Step::Do(FileOp::Unlink(file)))
    }

    /// Begins to read a whole file or to append to one; returns `None` if there is no file.
    fn touch(&mut self) -> Option<Step> {
        if self.alive.is_empty() {
            return None;
        }
        let at = self.draw(self.alive.len() as u64) as usize;
        let file = self.alive[at];
        let size = self.sizes[file as usize];
        if self.draw(10) < 5 {
            self.task = Some(Task::Transfer { file, at: 0, end: size, write: false, sync: false });
        } else {
            if size >= self.of.file_size {
                return None;
            }
            let end = size + self.draw(self.of.file_size - size) + 1;
            self.sizes[file as usize] = end;
            self.task = Some(Task::Transfer { file, at: size, end, write: true, sync: true });
        }
        // `Lookup` stands for opening the file.
        Some(Step::Do(FileOp::Lookup))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    /// Numbers of deleted files are used again, so that there are never more numbers in use than files; no file exceeds
    /// the bound on its size, though many reach it.
    #[test]
    fn numbers_are_used_again_and_files_have_a_bound() {
        let of = Parameters { transactions: 500, file_size: 520, ..Parameters::of(Kind::PostMark) };
        let mut client = PostMark::new(&of, 1);
        let (mut alive, mut most, mut made) = (0, 0, 0);
        loop {
            match client.next() {
                Step::Do(FileOp::Create(file)) => {
                    (alive, made) = (alive + 1, made + 1);
                    most = most.max(alive);
                    assert!(file < most, "file {file} of {alive}");
                }
                Step::Do(FileOp::Unlink(_)) => alive -= 1,
                Step::Do(FileOp::Write { offset, size, .. }) => assert!(offset + size <= 520),
                Step::Done => break,
                _ => {}
            }
        }
        assert!(alive == 0 && made > 4 * most, "{made} files were made, {most} at once");
    }
}

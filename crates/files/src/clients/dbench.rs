//! DBench: the load of a file server with several clients, each in a directory of its own.
//!
//! DBench replays a recorded client.txt, which is not part of ftlab. This client draws operations with the
//! shares and sizes of version 4.0 (458,344 operations): ReadX 27.10 %, NTCreateX 17.29, QPathInfo 15.67,
//! Close 12.70, WriteX 8.62, Find 6.06, Unlink 3.49, QFSInfo 2.87, QFileInfo 2.75, SetFileInfo 1.41, Flush
//! 1.21, Rename 0.73, LockX and UnlockX 0.06 each. Writes: 64 KiB 32 %, 4 KiB 25 %, 1 B 19 %, 2 KiB 4 %, mean
//! 25.7 KB; reads: 4 KiB 67 %, 60 KiB 13 %, mean 11.9 KB. Each client has 114 files, 23 MB.
//!
//! Interpretation: operations are drawn independently; file sizes are log-uniform from 4 KiB to 1.2 MiB, scaled to
//! their sum; call sizes that the list does not give are drawn uniformly, up to a bound that makes the overall mean
//! right. A quarter of the files are temporary: Unlink deletes only these, and the next NTCreateX recreates the file
//! deleted last. Writes go to one file, the one just created or a random other one, until it has been flushed: 64 KiB
//! writes continue where the last one ended, writes of 1 byte go to the end, other writes go to a random offset. Reads
//! go to files with data.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{FileId, FileOp, Moment, Parameters, Step};
use ftlab_core::util::{below, stream};

/// Shares of operations, in hundredths of a percent; the rest are locks.
const SHARES: [(Call, u64); 12] = [
    (Call::Read, 2710),
    (Call::Create, 1729),
    (Call::Lookup, 1567),
    (Call::Close, 1270),
    (Call::Write, 862),
    (Call::Lookup, 606),
    (Call::Unlink, 349),
    (Call::Lookup, 287),
    (Call::Lookup, 275),
    (Call::SetAttributes, 141),
    (Call::Flush, 121),
    (Call::Rename, 73),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Read,
    Create,
    Lookup,
    Close,
    Write,
    Unlink,
    SetAttributes,
    Flush,
    Rename,
}

const KIB: u64 = 1024;
/// Upper bounds of the read and write sizes that the list does not give, chosen to meet the stated means (11.9 and
/// 25.7 KB).
const OPEN_READ: u64 = 11_700;
const OPEN_WRITE: u64 = 36_200;

#[derive(Clone, Copy, Debug)]
struct ClientFile {
    /// Size to which the file grows, bytes.
    most: u64,
    /// Current size, bytes.
    size: u64,
    alive: bool,
}

/// One DBench client.
#[derive(Clone, Debug)]
pub struct DBench {
    random: Xoshiro256PlusPlus,
    files: Vec<ClientFile>,
    /// Files that are deleted or not yet created; the next file to be created is the last one in this list.
    missing: Vec<FileId>,
    /// The file that is being written, and where its next 64 KiB go.
    current: FileId,
    at: u64,
    end_ns: u64,
}

impl DBench {
    /// Makes client `number` with these parameters.
    pub fn new(parameters: &Parameters, seed: u64, number: u32) -> DBench {
        let mut random = stream(seed, &format!("dbench {number}"));
        let shares: Vec<f64> = (0..parameters.files)
            .map(|_| {
                let uniform = below(random.next_u64(), 1 << 32) as f64 / (1u64 << 32) as f64;
                // File sizes range from 4 KiB to 300 times as much; they are scaled below.
                libm::pow(300.0, uniform)
            })
            .collect();
        let sum: f64 = shares.iter().sum();
        let files = shares
            .iter()
            .map(|share| {
                let most = (parameters.file_size as f64 * share / sum) as u64;
                ClientFile { most: most.max(4 * KIB), size: 0, alive: false }
            })
            .collect();
        DBench {
            random,
            files,
            missing: (0..parameters.files).rev().collect(),
            current: 0,
            at: 0,
            end_ns: parameters.ageing_ns.saturating_add(parameters.duration_ns),
        }
    }

    fn draw(&mut self, bound: u64) -> u64 {
        below(self.random.next_u64(), bound)
    }

    /// Returns a random existing file.
    fn existing(&mut self) -> Option<FileId> {
        if self.missing.len() == self.files.len() {
            return None;
        }
        let mut file = self.draw(self.files.len() as u64) as usize;
        while !self.files[file].alive {
            file = (file + 1) % self.files.len();
        }
        Some(file as FileId)
    }

    /// Returns the next step.
    pub fn next(&mut self, moment: Moment) -> Step {
        if moment.now_ns >= self.end_ns {
            return Step::Done;
        }
        let mut draw = self.draw(10_000);
        let op = SHARES.iter().find_map(|&(op, share)| {
            let hit = draw < share;
            draw = draw.saturating_sub(share);
            hit.then_some(op)
        });
        Step::Do(match op {
            Some(Call::Read) => self.read(),
            Some(Call::Create) => self.create(),
            Some(Call::Write) => self.write(),
            Some(Call::Unlink) => self.unlink(),
            Some(Call::Flush) => self.flush(),
            Some(Call::Close) => self.existing().map_or(FileOp::Lookup, FileOp::Close),
            Some(Call::SetAttributes) => self.existing().map_or(FileOp::Lookup, FileOp::SetAttributes),
            Some(Call::Rename) => self.existing().map_or(FileOp::Lookup, FileOp::Rename),
            Some(Call::Lookup) | None => FileOp::Lookup,
        })
    }

    fn create(&mut self) -> FileOp {
        let Some(file) = self.missing.pop() else { return FileOp::Lookup };
        let entry = &mut self.files[file as usize];
        (entry.alive, entry.size) = (true, 0);
        (self.current, self.at) = (file, 0);
        FileOp::Create(file)
    }

    fn unlink(&mut self) -> FileOp {
        let temporary = self.files.len().div_ceil(4) as u64;
        let file = self.draw(temporary) as FileId;
        if !self.files[file as usize].alive {
            return FileOp::Lookup;
        }
        let entry = &mut self.files[file as usize];
        (entry.alive, entry.size) = (false, 0);
        self.missing.push(file);
        FileOp::Unlink(file)
    }

    fn read(&mut self) -> FileOp {
        let Some(mut file) = self.existing() else { return FileOp::Lookup };
        let all = self.files.len() as FileId;
        let from = file;
        while self.files[file as usize].size == 0 {
            file = (file + 1) % all;
            if file == from {
                return FileOp::Lookup;
            }
        }
        let size = match self.draw(100) {
            0..67 => 4 * KIB,
            67..80 => 60 * KIB,
            _ => 1 + self.draw(OPEN_READ),
        };
        let there = self.files[file as usize].size;
        let offset = if size < there { self.draw((there - size) / (4 * KIB) + 1) * 4 * KIB } else { 0 };
        FileOp::Read { file, offset, size: size.min(there - offset) }
    }

    /// Returns the file to write to: the current one, or another if the current one no longer exists.
    fn target(&mut self) -> Option<FileId> {
        if !self.files[self.current as usize].alive {
            self.turn_to_another()?;
        }
        Some(self.current)
    }

    fn turn_to_another(&mut self) -> Option<()> {
        self.current = self.existing()?;
        let file = self.files[self.current as usize];
        // Writes extend a file that has not reached its full size and rewrite one that has.
        self.at = if file.size < file.most { file.size } else { 0 };
        Some(())
    }

    fn write(&mut self) -> FileOp {
        let Some(file) = self.target() else { return FileOp::Lookup };
        let ClientFile { most, size: there, .. } = self.files[file as usize];
        let (offset, size) = match self.draw(100) {
            0..32 => {
                let offset = if self.at >= most { 0 } else { self.at };
                self.at = offset + 64 * KIB;
                (offset, 64 * KIB)
            }
            32..57 => (self.draw(there / (4 * KIB) + 1) * 4 * KIB, 4 * KIB),
            57..76 => (there.saturating_sub(1), 1),
            76..80 => (self.draw(there / (2 * KIB) + 1) * 2 * KIB, 2 * KIB),
            _ => {
                let size = 1 + self.draw(OPEN_WRITE);
                (self.draw(there / (4 * KIB) + 1) * 4 * KIB, size)
            }
        };
        let entry = &mut self.files[file as usize];
        entry.size = entry.size.max(offset + size);
        FileOp::Write { file, offset, size }
    }

    fn flush(&mut self) -> FileOp {
        let Some(file) = self.target() else { return FileOp::Lookup };
        // This fails only if there is no file, and then there was no target.
        let _ = self.turn_to_another();
        FileOp::Fsync(file)
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Kind;
    use super::*;

    /// Operations and sizes that the client draws have the shares that reference.md lists for DBench's client.txt.
    #[test]
    fn operations_and_sizes_are_as_listed() {
        let mut client = DBench::new(&Parameters::of(Kind::DBench), 1, 0);
        let (mut ops, mut sizes, mut counts) = ([0u64; 9], [0u64; 2], [0u64; 2]);
        let mut whole = [0u64; 2];
        let total = 400_000;
        for _ in 0..total {
            let Step::Do(op) = client.next(Moment { now_ns: 0, outstanding: 0 }) else { panic!("not ended") };
            ops[op.kind().unwrap()] += 1;
            if let FileOp::Write { offset, size, .. } = op
                && size == 2 * KIB
            {
                assert!(offset.is_multiple_of(2 * KIB), "2 KiB at {offset}");
            }
            for (half, bytes) in op.bytes().into_iter().enumerate().filter(|&(_, bytes)| bytes > 0) {
                sizes[half] += bytes;
                counts[half] += 1;
                whole[half] += u64::from(bytes == [4 * KIB, 64 * KIB][half]);
            }
        }
        let share = |kind: usize| ops[kind] as f64 * 100.0 / f64::from(total);
        for (kind, expected) in [(3, 12.70), (4, 27.10), (5, 8.62), (6, 1.21), (7, 0.73), (8, 3.49)] {
            assert!((share(kind) - expected).abs() < 0.3, "{}: {}", FileOp::KINDS[kind], share(kind));
        }
        let mean = |half: usize| sizes[half] as f64 / counts[half] as f64;
        assert!((mean(1) - 25_700.0).abs() < 500.0, "{}", mean(1));
        // Reads stop at the end of files that are shorter than the read.
        assert!(mean(0) > 9_000.0 && mean(0) < 12_200.0, "{}", mean(0));
        assert!((whole[1] as f64 / counts[1] as f64 - 0.32).abs() < 0.01);
        let footprint: u64 = client.files.iter().map(|file| file.most).sum();
        assert!((footprint as f64 / 23e6 - 1.0).abs() < 0.02, "{footprint}");
    }

    #[test]
    fn seeds_and_clients_differ() {
        let ops = |seed, number| -> Vec<Step> {
            let mut client = DBench::new(&Parameters::of(Kind::DBench), seed, number);
            (0..200).map(|_| client.next(Moment { now_ns: 0, outstanding: 0 })).collect()
        };
        assert_eq!(ops(1, 0), ops(1, 0));
        assert_ne!(ops(1, 0), ops(1, 1));
        assert_ne!(ops(1, 0), ops(2, 0));
    }
}

//! Recovery after a power cut: what is found on flash, which part of it counts, and the cost of finding it.
//!
//! Nothing of the FTL's RAM is left, so every page's spare area is read. For each owner the version with the
//! highest sequence number counts; among versions with the same number (a copy and its original), the one
//! programmed last. Torn pages cannot be read. The rest is up to each FTL: `page_mapped/room.rs` and
//! `hybrid/recover.rs`.

use std::cmp::Reverse;

use super::blocks::pool::BlockPool;
use crate::flash::media::{Change, Kind, Media, Page, Tape};
use crate::flash::{Cause, Work};
use crate::util::NONE;

/// A deliberate defect in recovery, which tests must notice.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flaw {
    /// No defect.
    #[default]
    None,
    /// Spare areas of user data are ignored: the mapping is taken from the translation pages alone.
    SkipScan,
    /// The first version found counts, not the newest.
    IgnoreOrder,
    /// Trims that were made durable are ignored.
    ForgetTrims,
    /// Once recovered, the FTL treats a write with FUA like any other.
    PlainFua,
    /// Hybrid FTLs: a merge that was cut counts as complete.
    TrustMerges,
}

/// The cost of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Number of pages whose spare areas were read.
    pub scan_reads: u64,
    /// Number of translation pages and trim pages read.
    pub map_reads: u64,
    /// Number of other pages read, while mappings were written back.
    pub gc_reads: u64,
    /// Number of pages programmed.
    pub programs: u64,
    /// Number of blocks erased.
    pub erases: u64,
    /// Number of torn pages found.
    pub torn_pages: u64,
}

impl Recovery {
    /// Returns the cost of everything done since the power came back; `work` must not have counted anything else.
    pub(crate) fn of(found: &Found, map_reads: u64, work: &Work) -> Recovery {
        let counts = work.counts();
        Recovery {
            scan_reads: found.reads,
            map_reads,
            gc_reads: counts.reads.total() - found.reads - map_reads,
            programs: counts.programs.total(),
            erases: counts.erases.total(),
            torn_pages: found.torn_pages,
        }
    }
}

/// A version of an owner on flash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// Owner, numbered over all logs.
    pub owner: u32,
    /// Sequence number of the write.
    pub seq: u64,
    /// Number of the program that wrote the version.
    pub number: u64,
    /// Page in which the version lies.
    pub page: u32,
    /// Slot in which the version lies.
    pub slot: u32,
}

/// What the scan found in a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The purpose for which the block was taken; `None`: nothing in it is readable.
    pub kind: Option<Kind>,
    /// Whether the block is used with one bit a cell.
    pub slc: bool,
    /// Number of leading pages that cannot be programmed any more.
    pub used: u32,
    /// Number of the block's first readable program.
    pub first: u64,
    /// Number of the block's last readable program.
    pub last: u64,
    /// Whether the block will be erased.
    pub given_up: bool,
}

impl Seen {
    /// Whether the block is erased, or will be.
    pub(crate) fn is_erased(&self) -> bool {
        self.used == 0 || self.given_up
    }
}

/// What the scan found on flash.
#[derive(Debug)]
pub(crate) struct Found {
    /// What the scan found in each block.
    pub blocks: Vec<Seen>,
    /// Versions by owner; for each, the one that counts comes first.
    versions: Vec<Version>,
    /// Index in `versions` where each owner's versions begin and, last, the length of `versions`.
    starts: Vec<u32>,
    pages_per_block: u32,
    /// Number of pages whose spare areas were read.
    reads: u64,
    torn_pages: u64,
}

impl Found {
    /// Reads the spare areas of all pages or, if the FTL leaves no `gaps`, of each block up to the first erased
    /// page; later steps wait for these reads. `log` returns, for a kind of block, the offset of its owners in
    /// the numbering of all `owners`, and its slots per page; blocks for which it returns `None` are skipped.
    pub(crate) fn scan(
        media: &Media,
        gaps: bool,
        (owners, flaw): (u32, Flaw),
        log: impl Fn(Kind) -> Option<(u32, u32)>,
        work: &mut Work,
    ) -> Found {
        let mut found = Found {
            blocks: Vec::with_capacity(media.blocks() as usize),
            versions: Vec::new(),
            starts: Vec::with_capacity(owners as usize + 1),
            pages_per_block: media.pages_per_block(),
            reads: 0,
            torn_pages: 0,
        };
        let mut reads = vec![0; media.luns() as usize];
        for block in 0..media.blocks() {
            found.scan_block(media, block, &log);
            let read = if gaps { media.pages_per_block() } else { media.scanned(block) };
            reads[media.lun(block) as usize] += read * work.unit_pages();
        }
        found.reads = read_all(&reads, false, work);
        match flaw {
            Flaw::IgnoreOrder => found.versions.sort_by_key(|at| (at.owner, at.slot)),
            _ => found.versions.sort_by_key(|at| (at.owner, Reverse(at.seq), Reverse(at.number))),
        }
        let start = |owner| found.versions.partition_point(|version| version.owner < owner) as u32;
        found.starts = (0..=owners).map(start).collect();
        found
    }

    fn scan_block(&mut self, media: &Media, block: u32, log: &impl Fn(Kind) -> Option<(u32, u32)>) {
        let used = media.used(block);
        let mut seen = Seen { kind: None, slc: false, used, first: 0, last: 0, given_up: false };
        let first = block * self.pages_per_block;
        for page in first..first + used {
            let Page::Programmed { kind, number, spares } = media.page(page) else {
                self.torn_pages += u64::from(*media.page(page) == Page::Torn);
                continue;
            };
            seen.slc = *kind == Kind::Slc;
            let kind = kind.log();
            let Some((first_owner, slots_per_page)) = log(kind) else { continue };
            seen.first = if seen.kind.is_none() { *number } else { seen.first };
            // Those of a superblock may have ended in any order.
            (seen.kind, seen.last) = (Some(kind), seen.last.max(*number));
            let slots = page * slots_per_page..;
            for (slot, spare) in slots.zip(spares).filter(|(_, spare)| spare.owner != NONE) {
                let owner = first_owner + spare.owner;
                self.versions.push(Version { owner, seq: spare.seq, number: *number, page, slot });
            }
        }
        self.blocks.push(seen);
    }

    /// Returns the versions of an owner; the one that counts comes first.
    pub(crate) fn versions(&self, owner: u32) -> &[Version] {
        self.versions_of(owner..owner + 1)
    }

    /// Returns the versions of consecutive owners, in the order of the owners.
    pub(crate) fn versions_of(&self, owners: std::ops::Range<u32>) -> &[Version] {
        let [start, end] = [owners.start, owners.end].map(|owner| self.starts[owner as usize] as usize);
        &self.versions[start..end]
    }

    /// Returns the block of a version.
    pub(crate) fn block_of(&self, version: &Version) -> u32 {
        version.page / self.pages_per_block
    }

    /// Whether a version is in a block that is not given up.
    pub(crate) fn is_kept(&self, version: &Version) -> bool {
        !self.blocks[self.block_of(version) as usize].given_up
    }

    /// Fills a pool with the blocks that are erased or given up, in the order of their erasure.
    pub(crate) fn find_pool(&self, media: &Media, pool: &mut BlockPool) {
        let given_up = |block: u32| self.blocks[block as usize].given_up;
        let mut erased: Vec<u32> =
            (0..media.blocks()).filter(|&block| self.blocks[block as usize].is_erased()).collect();
        erased.sort_by_key(|&block| if given_up(block) { u64::MAX } else { media.erased(block) });
        pool.find(|block| media.erases(block) + u32::from(given_up(block)), &erased);
    }
}

/// Erases blocks: emits the steps, and notes the erases on the tape.
pub(crate) fn erase_all(blocks: &[u32], cause: Cause, (media, tape): (&Media, &Tape), work: &mut Work) {
    for &block in blocks {
        work.chain();
        work.erase(media.lun(block), block * media.pages_per_block(), cause);
        media.blocks_of(block).for_each(|block| tape.note(Change::Erase { block }));
    }
}

/// Reads this many NAND pages of each LUN, `whole` or only their spare areas, on all LUNs in parallel, and makes all
/// later chains wait for the last read, since what follows needs everything that is read. Returns the number of pages.
pub(crate) fn read_all(reads: &[u32], whole: bool, work: &mut Work) -> u64 {
    let luns = || reads.iter().enumerate().filter(|(_, reads)| **reads > 0);
    for (lun, &reads) in luns() {
        work.chain();
        (1..reads).for_each(|nth| work.read_nth(lun as u32, nth - 1, whole));
    }
    if luns().next().is_some() {
        work.chain();
        luns().for_each(|(lun, &reads)| work.read_nth(lun as u32, reads - 1, whole));
        work.fence();
    }
    reads.iter().copied().map(u64::from).sum()
}

//! The contents of the flash, for simulated power cuts: what every page and its spare area hold.
//!
//! An FTL changes its state when a request is issued; the array runs the steps later. In crash mode the logs record
//! every program and erase on a [`Tape`] as soon as they decide on it, in the order of emission; the harness
//! (`crates/crash`) applies each to the [`Media`] when the array has finished it. At a power cut, operations under way
//! are torn, those queued behind them never happen, and only the media are left.
//!
//! The media police their caller, as dhara's simulated NAND does: programming a page twice, or out of order
//! within its block, is a fault that is recorded and reported.
//!
//! A spare area holds, for each slot of the page, its owner (log and number) and the sequence number of the
//! write, which copies keep; and, for the page as a whole, the number of its program. The erase count of a
//! block is stored with the block. As for the data itself, user data is represented by its sequence number;
//! translation pages hold the slots of their entries, and pages of trims hold a bit for each LPN.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use super::superblocks::Superblocks;
use crate::util::NONE;

mod gathered;

/// The log that a page belongs to; for hybrid FTLs, the purpose for which its block was taken (`Data` for data
/// blocks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// User data and trim pages.
    Data,
    /// User data in a block that is used with one bit a cell.
    Slc,
    /// Translation pages.
    Map,
    /// A log block of one logical block: any log block of BAST, or FAST's log block for sequential writes.
    Log,
    /// A log block shared by all logical blocks.
    Shared,
    /// A block filled by a cooperative switch merge.
    Cooperative,
}

impl Kind {
    /// Returns the log of a page-mapped FTL to which the page belongs.
    pub fn log(self) -> Kind {
        if self == Kind::Slc { Kind::Data } else { self }
    }
}

/// The part of a spare area that belongs to one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// Number of the slot's owner within its log; [`NONE`] for padding.
    pub owner: u32,
    /// Sequence number of the write; copies keep it.
    pub seq: u64,
}

/// A change of the flash contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A page is programmed.
    Program {
        /// Number of the page, counted over the whole device.
        page: u32,
        /// The log to which the page belongs.
        kind: Kind,
        /// The spare areas of the page's slots.
        spares: Box<[Spare]>,
    },
    /// A block is erased.
    Erase {
        /// Number of the block, counted over the whole device.
        block: u32,
    },
}

/// Number of the request in whose name the device destages a page of its write buffer ([`Issue::request`]).
pub const DESTAGED: u64 = u64::MAX - 1;

/// A write or a trim of one logical page. A tape keeps these events in the order in which the FTL decided on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Number of the request.
    pub request: u64,
    /// Logical page that is written or trimmed.
    pub lpn: u32,
    /// Sequence number of the write or trim.
    pub seq: u64,
    /// Whether the event is a trim.
    pub trim: bool,
}

/// A request, noted when it was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Number of the request.
    pub request: u64,
    /// Time at which the request was issued, ns.
    pub time_ns: u64,
    /// The last sequence number given out before the request was issued.
    pub seq: u64,
    /// Whether the request's data must be durable when it completes (FUA).
    pub fua: bool,
}

/// The contents of owners other than logical pages; the key is the log, the owner and the sequence number.
type Contents = HashMap<(Kind, u32, u64), Arc<[u32]>>;

/// What the FTL has decided since its decisions were last taken from the tape.
#[derive(Debug, Default)]
struct Decided {
    seq: u64,
    issues: Vec<Issue>,
    changes: Vec<Change>,
    events: Vec<Event>,
    contents: Contents,
}

/// Records what the FTL decides, in order. A clone writes to the same tape.
#[derive(Clone, Debug, Default)]
pub struct Tape(Arc<Mutex<Decided>>);

impl Tape {
    /// Makes an empty tape; sequence numbers begin after `seq`.
    pub fn new(seq: u64) -> Tape {
        Tape(Arc::new(Mutex::new(Decided { seq, ..Decided::default() })))
    }

    fn open(&self) -> MutexGuard<'_, Decided> {
        self.0.lock().expect("no panic while the tape is written")
    }

    /// Notes that a request is issued now; the events noted from now on belong to it.
    pub fn issue(&self, request: u64, time_ns: u64, fua: bool) {
        let mut tape = self.open();
        let seq = tape.seq;
        tape.issues.push(Issue { request, time_ns, seq, fua });
    }

    /// Returns the next sequence number; if `lpn` is given, notes the write or trim of that logical page.
    pub(crate) fn next(&self, lpn: Option<u32>, trim: bool) -> u64 {
        let mut tape = self.open();
        tape.seq += 1;
        let seq = tape.seq;
        let request = tape.issues.last().map_or(0, |issue| issue.request);
        if let Some(lpn) = lpn {
            tape.events.push(Event { request, lpn, seq, trim });
        }
        seq
    }

    /// Notes a program or an erase.
    pub fn note(&self, change: Change) {
        self.open().changes.push(change);
    }

    /// Notes the content of version `seq` of an owner.
    pub fn hold(&self, kind: Kind, owner: u32, seq: u64, content: Arc<[u32]>) {
        self.open().contents.insert((kind, owner, seq), content);
    }

    /// Returns the content of version `seq` of an owner. Only for callers that have found that version on
    /// flash.
    pub(crate) fn content(&self, kind: Kind, owner: u32, seq: u64) -> Option<Arc<[u32]>> {
        self.open().contents.get(&(kind, owner, seq)).cloned()
    }

    /// Takes the content of version `seq` of an owner off the tape, so that it can be put on flash.
    pub fn give(&self, kind: Kind, owner: u32, seq: u64) -> Option<Arc<[u32]>> {
        self.open().contents.remove(&(kind, owner, seq))
    }

    /// Takes the noted programs and erases off the tape, in order.
    pub fn take_changes(&self) -> Vec<Change> {
        std::mem::take(&mut self.open().changes)
    }

    /// Takes the noted requests off the tape, and the noted writes and trims; both lists are in order.
    pub fn take_events(&self) -> (Vec<Issue>, Vec<Event>) {
        let mut tape = self.open();
        (std::mem::take(&mut tape.issues), std::mem::take(&mut tape.events))
    }

    /// Forgets the contents of all versions that are nowhere on the media.
    pub(crate) fn prune(&self, media: &Media) {
        let there: HashSet<(Kind, u32, u64)> = media.holders().collect();
        self.open().contents.retain(|key, _| there.contains(key));
    }
}

/// The state of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// Erased.
    Erased,
    /// Programmed.
    Programmed {
        /// The log to which the page belongs.
        kind: Kind,
        /// Number of the program, in the count of all programs and erases of the device.
        number: u64,
        /// The spare areas of the page's slots.
        spares: Box<[Spare]>,
    },
    /// A power cut interrupted a program or an erase of the page, which can be neither read nor programmed until it is
    /// erased.
    Torn,
}

#[derive(Clone, Copy, Debug)]
struct MediaBlock {
    /// Offset of the block's first page that is still erased.
    next: u32,
    erases: u32,
    /// Value of [`Media::number`] at the block's last erase.
    erased: u64,
}

/// The contents of all blocks, which are numbered LUN by LUN.
#[derive(Clone, Debug)]
pub struct Media {
    pages_per_block: u32,
    blocks_per_lun: u32,
    pages: Vec<Page>,
    blocks: Vec<MediaBlock>,
    /// Number of programs and erases so far; each of them is identified by its number in this count.
    number: u64,
    /// Whether pages may be skipped; even then, the pages of a block are programmed in ascending order.
    gaps: bool,
    /// Where the pages are if they are numbered by superblock.
    superblocks: Option<Superblocks>,
    fault: Option<String>,
}

impl Media {
    /// Makes media whose blocks are all erased and all have the erase count `erases`.
    pub fn new(luns: u32, blocks_per_lun: u32, pages_per_block: u32, erases: u32) -> Media {
        let blocks = luns * blocks_per_lun;
        Media {
            pages_per_block,
            blocks_per_lun,
            pages: vec![Page::Erased; (blocks * pages_per_block) as usize],
            blocks: vec![MediaBlock { next: 0, erases, erased: 0 }; blocks as usize],
            number: 0,
            gaps: false,
            superblocks: None,
            fault: None,
        }
    }

    /// Allows pages to be skipped, as hybrid FTLs skip pages that have no data.
    pub fn allow_gaps(&mut self) {
        self.gaps = true;
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns the number of pages of a block.
    pub(crate) fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Returns the LUN of a block.
    pub fn lun(&self, block: u32) -> u32 {
        block / self.blocks_per_lun
    }

    /// Returns the block of a page.
    pub fn block_of(&self, page: u32) -> u32 {
        page / self.pages_per_block
    }

    /// Returns the state of a page.
    pub fn page(&self, page: u32) -> &Page {
        &self.pages[page as usize]
    }

    /// Returns the offset, within a block, of the first page that can be programmed; the pages before it are not
    /// erased, or were skipped.
    pub(crate) fn used(&self, block: u32) -> u32 {
        self.blocks[block as usize].next
    }

    /// Returns the erase count of a block.
    pub fn erases(&self, block: u32) -> u32 {
        self.blocks[block as usize].erases
    }

    /// Returns the number of a block's last erase, in the count of all programs and erases.
    pub(crate) fn erased(&self, block: u32) -> u64 {
        self.blocks[block as usize].erased
    }

    /// Sets the erase count that a block has at time 0.
    pub fn set_erases(&mut self, block: u32, erases: u32) {
        self.blocks[block as usize].erases = erases;
    }

    /// Returns the sequence number of an owner's version in a slot, or `None` if the slot holds no version of
    /// that owner.
    pub(crate) fn seq(&self, slots_per_page: u32, slot: u32, owner: u32) -> Option<u64> {
        let Page::Programmed { spares, .. } = self.page(slot / slots_per_page) else { return None };
        let spare = spares.get((slot % slots_per_page) as usize)?;
        (spare.owner == owner).then_some(spare.seq)
    }

    /// Returns the sequence number of an owner's version in a slot of the given log, or `None` if the slot holds
    /// no version of that owner.
    pub fn version(&self, kind: Kind, slots_per_page: u32, slot: u32, owner: u32) -> Option<u64> {
        let Page::Programmed { kind: found, .. } = self.page(slot / slots_per_page) else { return None };
        if found.log() == kind { self.seq(slots_per_page, slot, owner) } else { None }
    }

    /// Returns the log, owner and sequence number of every version on the media.
    fn holders(&self) -> impl Iterator<Item = (Kind, u32, u64)> + '_ {
        self.pages.iter().flat_map(|page| {
            let (kind, spares): (Kind, &[Spare]) = match page {
                Page::Programmed { kind, spares, .. } => (*kind, spares),
                _ => (Kind::Data, &[]),
            };
            spares.iter().map(move |spare| (kind, spare.owner, spare.seq))
        })
    }

    /// Returns a message about the first forbidden operation on the flash, if there was one.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    fn fail(&mut self, message: String) {
        self.fault.get_or_insert(message);
    }

    /// Applies a change that the array has finished.
    pub fn apply(&mut self, change: Change) {
        self.number += 1;
        match change {
            Change::Program { page, kind, spares } => {
                if spares.iter().all(|spare| spare.owner == NONE) {
                    self.fail(format!("page {page} is programmed with nothing in it"));
                }
                self.program(page, Page::Programmed { kind, number: self.number, spares });
            }
            Change::Erase { block } => {
                self.fill(block, &Page::Erased);
                let number = self.number;
                let state = &mut self.blocks[block as usize];
                *state = MediaBlock { next: 0, erases: state.erases + 1, erased: number };
            }
        }
    }

    /// Applies a change that a power cut interrupted, which leaves torn pages.
    pub fn tear(&mut self, change: Change) {
        self.number += 1;
        match change {
            Change::Program { page, .. } => self.program(page, Page::Torn),
            Change::Erase { block } => {
                self.fill(block, &Page::Torn);
                self.blocks[block as usize].next = self.pages_per_block;
            }
        }
    }

    /// Programs a page before time 0.
    pub fn preset(&mut self, page: u32, kind: Kind, spares: Box<[Spare]>) {
        self.number += 1;
        self.program(page, Page::Programmed { kind, number: self.number, spares });
    }

    fn program(&mut self, page: u32, content: Page) {
        let (block, offset) = (self.block_of(page), page % self.pages_per_block);
        let due = self.blocks[block as usize].next;
        if offset != due && !(self.gaps && offset > due) {
            self.fail(format!("block {block}: page {offset} programmed on flash where page {due} was due"));
        }
        self.blocks[block as usize].next = offset + 1;
        self.pages[page as usize] = content;
    }

    fn fill(&mut self, block: u32, content: &Page) {
        let first = (block * self.pages_per_block) as usize;
        self.pages[first..first + self.pages_per_block as usize].fill(content.clone());
    }
}

#[cfg(test)]
#[path = "media_tests.rs"]
mod tests;

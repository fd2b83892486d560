//! Where user data goes, reported as soon as the FTL decides on it, for a driver that keeps the bytes that the
//! simulation leaves out.
//!
//! A read then returns the bytes of the slot to which the FTL maps the page when the read is served, so that a fault of
//! an FTL shows as wrong bytes.

use std::sync::{Arc, Mutex, MutexGuard};

/// One event in the life of user data. Slots are numbered LUN by LUN, block by block and page by page;
/// `u32::MAX` means that there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A submission arrives and becomes the request with this number; reported only if requests may merge. An
    /// earlier request that became part of another one may have had the same number.
    Arrive {
        /// The request's number.
        request: u64,
        /// The submission's number.
        submission: u64,
    },
    /// A submission became part of a pending request.
    Merge {
        /// The request's number.
        request: u64,
        /// The submission's number.
        submission: u64,
    },
    /// The moves that follow belong to this request, or to a part of it; if requests do not merge, its number is that
    /// of the submission. `None`: they belong to padding by the host, or to the write buffer.
    Issue {
        /// The request's number.
        request: Option<u64>,
    },
    /// The request that is being issued reads a logical page, whose data lies in this slot.
    Read {
        /// Logical page that is read.
        lpn: u32,
        /// Slot that holds its data.
        slot: u32,
    },
    /// The request that is being issued writes a logical page, whose data was in this slot. A `Program` of the
    /// page follows.
    Write {
        /// The slot that held the previous data.
        old: u32,
    },
    /// A page of the request comes into the write buffer. If only a part of the page is written, the rest is what the
    /// buffer holds of the page or, failing that, what this slot holds.
    Keep {
        /// The logical page.
        lpn: u32,
        /// The slot that holds the page on flash.
        slot: u32,
    },
    /// The request reads a logical page that the write buffer holds.
    Kept {
        /// The logical page.
        lpn: u32,
    },
    /// Whatever the write buffer holds of a page becomes part of the data of the `Write` and the `Program` that follow
    /// for this page: either the buffer hands the page to the FTL, or a request writes past the buffer, perhaps only to
    /// a part of the page.
    Destage {
        /// The logical page.
        lpn: u32,
    },
    /// Whatever the write buffer holds of a page is dropped.
    Drop {
        /// The logical page.
        lpn: u32,
    },
    /// A slot is about to be copied. The `Program` of the copy follows.
    Copy {
        /// The slot that is copied.
        from: u32,
    },
    /// A slot is programmed with the data that the previous move named.
    Program {
        /// Slot that is programmed.
        slot: u32,
        /// Logical page whose data goes into the slot.
        lpn: u32,
    },
    /// A block is erased.
    Erase {
        /// First slot of the block.
        first: u32,
        /// Number of slots in the block.
        slots: u32,
    },
}

/// The moves since they were last taken, in the order in which they were decided. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct Moves(Arc<Mutex<Vec<Move>>>);

impl Moves {
    fn open(&self) -> MutexGuard<'_, Vec<Move>> {
        self.0.lock().expect("no panic while moves are noted")
    }

    pub(crate) fn note(&self, what: Move) {
        self.open().push(what);
    }

    /// Takes the moves into `emptied`, whose previous content is dropped.
    pub fn take(&self, emptied: &mut Vec<Move>) {
        emptied.clear();
        std::mem::swap(&mut *self.open(), emptied);
    }
}

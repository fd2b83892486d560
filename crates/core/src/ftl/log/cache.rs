//! What a log knows about its SLC cache (`slc.rs`).

/// The cache's blocks, and what is kept about the data in them.
#[derive(Clone, Debug)]
pub(super) struct SlcCache {
    /// Whether the host's writes go there: only during a run, so that the cache is empty at time 0.
    pub(super) on: bool,
    /// The front whose blocks are in SLC mode.
    pub(super) front: u32,
    /// Whether a full cache is folded before a write, rather than passed by.
    pub(super) folds: bool,
    /// Number of slots of a word line, and of its first page; in a superblock, of a word line on each of its LUNs.
    pub(super) line: u32,
    pub(super) page: u32,
    /// Whether a word line is programmed at once.
    pub(super) whole: bool,
    pub(super) luns: Vec<OfLun>,
    /// For each logical page, the front to which its cached version will be folded; empty if there is only one.
    pub(super) kept: Vec<u8>,
}

/// The blocks of a LUN that are in SLC mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfLun {
    /// The oldest full block, and the youngest.
    pub(super) oldest: u32,
    pub(super) youngest: u32,
    pub(super) full: u32,
    /// Number of all blocks, the open one included.
    pub(super) held: u32,
}

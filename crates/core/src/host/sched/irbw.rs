//! IRBW: individual reads, bundled writes.
//!
//! Source: J. Kim et al., EMSOFT 2009 (IRBW-FIFO), as described in Shim et al., TC 2014, sections 3 and 4:
//! all queued writes of the victim's logical block go together, in sequence; the bundle has the place of its
//! first write; reads stay single. `bundles.rs` has the interpretation of bundles. On an FTL that does not
//! map by blocks a logical block is as large as an erase block.

use super::block_issues::{BlockIssue, ByBlocks};

pub(super) const NAME: &str = "irbw";
pub(super) const DOC: &str =
    "arrival order; with a write go all queued writes to its flash block (Kim et al., EMSOFT 2009)";
pub type Keys = ();

/// The scheduler `irbw`: block issues of the queued writes and nothing else.
pub(super) type Irbw = ByBlocks<Alone>;

/// Adds nothing to a block's writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Alone;

impl BlockIssue for Alone {}

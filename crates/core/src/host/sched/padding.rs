//! Padding: IRBW, but the pages that a block issue leaves out are read and written along with it.
//!
//! Source: H. Kim and S. Ahn, "BPLRU: A buffer management scheme for improving random writes in flash
//! storage", FAST 2008 (block padding), as described in Shim et al., TC 2014, sections 3 and 6.2: "all the
//! omitted pages of the victim block are filled by reading them from FTL", so that the block is written whole
//! and its log block becomes the data block, a padded switch merge; "Padding additionally applies page
//! padding for IRBW".
//!
//! Interpretation: pages that were never written are padded too, as the host cannot tell them apart. The
//! writes wait for the padding reads, which wait for writes of the block that the device holds. Padding is
//! not a request of the host: it appears in no latency, and completes nothing.

use super::Needs;
use super::block_issues::{BY_BLOCKS, BlockIssue, ByBlocks, Issue};
use crate::workload::Op;

pub(super) const NAME: &str = "padding";
pub(super) const DOC: &str =
    "as irbw, and pages that a flash block's writes leave out are read and written too (BPLRU, FAST 2008)";
pub type Keys = ();

/// The scheduler `padding`: block issues that [`Padded`] completes with the block's other pages.
pub(super) type Padding = ByBlocks<Padded>;

/// Adds the block's other pages to its writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Padded {
    /// For each page of the block, whether the block issue writes it.
    covered: Vec<bool>,
}

impl BlockIssue for Padded {
    const NEEDS: Needs = Needs { merges: true, ..BY_BLOCKS };

    fn issue(&mut self, Issue { block, writes, bundles, pool, around, batch }: &mut Issue) {
        let pages = around.pages_of(*block);
        self.covered.clear();
        self.covered.resize(pages.len(), false);
        for &id in writes.iter() {
            let written = pool[id].pages;
            let from = (written.first - pages.start) as usize;
            self.covered[from..from + written.pages as usize].fill(true);
        }
        let mut at = pages.start;
        for run in self.covered.chunk_by(|page, next| page == next) {
            let end = at + run.len() as u32;
            if !run[0] {
                batch.push(around.pad(Op::Read, at..end, pool), pool);
                writes.push(around.pad(Op::Write, at..end, pool));
            }
            at = end;
        }
        bundles.issue(writes, pool, batch);
    }
}

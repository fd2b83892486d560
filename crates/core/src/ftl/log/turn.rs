//! The LUNs from which a serial log takes its blocks: one that fills one block at a time, on any LUN (the update-block
//! scheme).
//!
//! Source: Kim and Lee, ICSOFT 2020, section 3.4: translation data goes page by page into one update block;
//! when the log has no other block left, the translation block with the fewest up-to-date units, on any LUN, is
//! collected, and its live units are gathered into full pages.
//!
//! Interpretation: the blocks are taken from the LUNs in turn, so that updates of the mapping do not always go to the
//! same LUN. `limit` and `reserve` of the [`super::Shape`] are those of the whole log; each LUN contributes up to its
//! equal part of the limit, which the FTL keeps free for it, so a block can always be taken below the limit. Within the
//! log all blocks count as blocks of one LUN, so what [`super::stock`] says holds unchanged.

use crate::ftl::blocks::pool::BlockPool;

/// Whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Number of blocks that the log holds on each LUN.
    pub(super) held: Vec<u32>,
    /// The largest number of blocks that the log may hold on each LUN.
    pub(super) most: u32,
    /// LUN that is asked first for the next block.
    pub(super) next_lun: u32,
}

impl Turn {
    pub(crate) fn new(luns: u32, limit: u32) -> Turn {
        Turn { held: vec![0; luns as usize], most: limit / luns, next_lun: 0 }
    }

    /// Takes an erased block from the next LUN that has one to give.
    pub(super) fn take(&mut self, pool: &mut BlockPool) -> u32 {
        let luns = self.held.len() as u32;
        for ahead in 0..luns {
            let lun = (self.next_lun + ahead) % luns;
            if self.held[lun as usize] < self.most
                && let Some(block) = pool.take(lun)
            {
                self.held[lun as usize] += 1;
                self.next_lun = (lun + 1) % luns;
                return block;
            }
        }
        unreachable!("below its limit the log finds an erased block");
    }
}

//! The frame of schedulers by flash blocks: requests in the order of arrival, writes as block issues.
//!
//! The oldest request goes next. A read, trim or flush goes alone; a write takes along all queued writes of
//! its logical block ([`super::bundles`]), and whatever a [`BlockIssue`] adds to them.

use super::bundles::Bundles;
use super::{Around, Decision, Needs, Scheduler};
use crate::request::{Pool, Queue};
use crate::util::NONE;

/// How the oldest writes go: what is issued with them, and in which order.
pub(super) trait BlockIssue: Default {
    /// As [`Scheduler::NEEDS`].
    const NEEDS: Needs = BY_BLOCKS;

    /// Appends block issues to `batch`, among them `writes`, all queued writes of a logical block; by default
    /// them alone.
    fn issue(
        &mut self,
        _block: u32,
        writes: &mut Vec<u32>,
        bundles: &mut Bundles,
        pool: &mut Pool,
        _around: &mut dyn Around,
        batch: &mut Queue,
    ) {
        bundles.issue(writes, pool, batch);
    }
}

/// What all of them need of the host.
pub(super) const BY_BLOCKS: Needs = Needs { blocks: true, ..Needs::NOTHING };

/// A scheduler by flash blocks.
#[derive(Clone, Debug)]
pub(super) struct ByBlocks<I> {
    bundles: Bundles,
    taken: Vec<u32>,
    how: I,
}

impl<I: BlockIssue> Scheduler for ByBlocks<I> {
    const NEEDS: Needs = I::NEEDS;

    fn new(_keys: &super::Keys, block_pages: u32) -> ByBlocks<I> {
        ByBlocks { bundles: Bundles::new(block_pages), taken: Vec::new(), how: I::default() }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.bundles.admit(id, pool);
    }

    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
        let ByBlocks { bundles, taken, how } = self;
        taken.clear();
        match bundles.take_oldest(pool, taken) {
            None => Decision::Nothing,
            Some(NONE) => Decision::One(taken[0]),
            Some(block) => {
                let mut batch = Queue::default();
                how.issue(block, taken, bundles, pool, around, &mut batch);
                Decision::Batch(batch)
            }
        }
    }

    fn batches(&self) -> u64 {
        self.bundles.issues
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        self.bundles.verify(pool)
    }
}

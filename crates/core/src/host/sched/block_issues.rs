//! The frame of schedulers that work on whole flash blocks: requests in the order of arrival, writes as block issues.
//!
//! The oldest request goes next. A read, trim or flush goes alone; a write takes along all queued writes of
//! its logical block ([`super::bundles`]), and whatever a [`BlockIssue`] adds to them.

use super::bundles::Bundles;
use super::{Around, Decision, Needs, Scheduler};
use crate::request::{Pool, Queue};
use crate::util::NONE;

/// How the oldest writes are issued: what goes with them, and in which order.
pub(super) trait BlockIssue: Default {
    /// The needs of the scheduler, as in [`Scheduler::NEEDS`].
    const NEEDS: Needs = BY_BLOCKS;

    /// Appends block issues, including that of the writes, to the batch; by default, only that of the writes.
    fn issue(&mut self, Issue { writes, bundles, pool, batch, .. }: &mut Issue) {
        bundles.issue(writes, pool, batch);
    }
}

/// The chosen writes, which are the oldest, and what it takes to issue them.
pub(super) struct Issue<'a> {
    /// The logical block of the chosen writes.
    pub block: u32,
    /// All queued writes of that block.
    pub writes: &'a mut Vec<u32>,
    pub bundles: &'a mut Bundles,
    pub pool: &'a mut Pool,
    pub around: &'a mut dyn Around,
    /// The requests to issue, in this order.
    pub batch: Queue,
}

/// What all these schedulers need from the host.
pub(super) const BY_BLOCKS: Needs = Needs { blocks: true, ..Needs::NOTHING };

/// A scheduler that works on whole flash blocks.
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
                let batch = Queue::default();
                let mut issue = Issue { block, writes: taken, bundles, pool, around, batch };
                how.issue(&mut issue);
                Decision::Batch(issue.batch)
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

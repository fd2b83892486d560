//! IRBW: individual reads, bundled writes.
//!
//! Source: J. Kim et al., EMSOFT 2009 (IRBW-FIFO), as Shim et al., TC 2014, sections 3 and 4 tell it: all
//! queued writes of the victim's logical block go together, in sequence; the bundle's place is that of
//! its first write; reads stay single. How bundles were read: `bundles.rs`. On an FTL that does not map
//! by blocks a logical block is as large as an erase block.

use super::bundles::Bundles;
use super::{Decision, Scheduler};
use crate::request::{Pool, Queue};
use crate::util::NONE;

pub(super) const NAME: &str = "irbw";
pub(super) const DOC: &str =
    "arrival order, with a write all queued ones of its flash block (Kim et al., EMSOFT 2009)";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Irbw {
    bundles: Bundles,
    taken: Vec<u32>,
}

impl Scheduler for Irbw {
    const DEADLINE: bool = false;
    const BLOCKS: bool = true;

    fn new(_keys: &super::Keys) -> Irbw {
        Irbw { bundles: Bundles::new(), taken: Vec::new() }
    }

    fn set_block_size(&mut self, pages: u32) {
        self.bundles.set_size(pages);
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.bundles.admit(id, pool);
    }

    fn choose(&mut self, pool: &mut Pool) -> Decision {
        self.taken.clear();
        match self.bundles.take_oldest(pool, &mut self.taken) {
            None => Decision::Nothing,
            Some(NONE) => Decision::One(self.taken[0]),
            Some(_) => {
                let mut batch = Queue::default();
                self.bundles.issue(&mut self.taken, pool, &mut batch);
                Decision::Batch(batch)
            }
        }
    }

    fn batches(&self) -> u64 {
        self.bundles.issues()
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        self.bundles.verify(pool)
    }
}

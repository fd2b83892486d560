//! Padding: IRBW, and what a block issue leaves out is read and written with it.
//!
//! Source: H. Kim and S. Ahn, "BPLRU: A buffer management scheme for improving random writes in flash
//! storage", FAST 2008 (block padding), as Shim et al., TC 2014, sections 3 and 6.2 tell it: "all the
//! omitted pages of the victim block are filled by reading them from FTL", so that the block is written
//! whole and its log block becomes the data block, a padded switch merge; "Padding additionally applies page
//! padding for IRBW".
//!
//! Read into it: pages that were never written are padded too, as the host cannot tell; the reads go before
//! the writes and are waited for, and themselves wait for writes of the block under way in the device. Padding
//! is no request of the host: it appears in no latency, and completes nothing.

use super::bundles::Bundles;
use super::{Around, Decision, Scheduler};
use crate::request::{Pool, Queue};
use crate::util::NONE;
use crate::workload::Op;

pub(super) const NAME: &str = "padding";
pub(super) const DOC: &str =
    "irbw, and a flash block's omitted pages are read and written with it (BPLRU, FAST 2008)";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Padding {
    bundles: Bundles,
    writes: Vec<u32>,
    /// Of each page of the block, whether the issue brings it.
    covered: Vec<bool>,
}

impl Scheduler for Padding {
    const DEADLINE: bool = false;
    const BLOCKS: bool = true;

    fn new(_keys: &super::Keys) -> Padding {
        Padding { bundles: Bundles::new(), writes: Vec::new(), covered: Vec::new() }
    }

    fn set_block_size(&mut self, pages: u32) {
        self.bundles.set_size(pages);
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.bundles.admit(id, pool);
    }

    fn choose(&mut self, _pool: &mut Pool) -> Decision {
        unreachable!("it works by blocks");
    }

    fn choose_around(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
        self.writes.clear();
        let block = match self.bundles.take_oldest(pool, &mut self.writes) {
            None => return Decision::Nothing,
            Some(NONE) => return Decision::One(self.writes[0]),
            Some(block) => block,
        };
        let pages = around.pages_of(block);
        self.covered.clear();
        self.covered.resize(pages.len(), false);
        for &id in &self.writes {
            let written = pool[id].pages;
            let from = (written.first - pages.start) as usize;
            self.covered[from..from + written.pages as usize].fill(true);
        }
        let mut batch = Queue::default();
        let mut at = 0;
        while at < self.covered.len() {
            if self.covered[at] {
                at += 1;
                continue;
            }
            let end =
                self.covered[at..].iter().position(|&covered| covered).map_or(self.covered.len(), |n| at + n);
            let run = pages.start + at as u32..pages.start + end as u32;
            batch.push(around.pad(Op::Read, run.clone(), pool), pool);
            self.writes.push(around.pad(Op::Write, run, pool));
            at = end;
        }
        self.bundles.issue(&mut self.writes, pool, &mut batch);
        Decision::Batch(batch)
    }

    fn batches(&self) -> u64 {
        self.bundles.issues()
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        self.bundles.verify(pool)
    }
}

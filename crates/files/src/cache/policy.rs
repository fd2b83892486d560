//! Which dirty pages are flushed together.
//!
//! A flush of a file, whatever its cause, walks the dirty pages in file order and asks the policy at each one
//! for the unit that goes with it. The pages of these units go to the block queue in the order in which the
//! policy lists them.

use super::{PAGE, PageCache};
use ftlab_core::config::choice;

choice! {
    /// `host.flush_policy`.
    pub enum FlushPolicy {
        /// block under host.scheduler = coop, else baseline
        Auto = "auto",
        /// a file's dirty pages, in the order of the file (Linux 2.6.32)
        Baseline = "baseline",
        /// together with a dirty page, all dirty pages of the same file and flash block (Shim et al., TC 2014)
        Block = "block",
    }
}

/// A flush policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Page by page in the order of the file: Linux 2.6.32, the paper's Baseline.
    Baseline,
    /// One flash block after another, in the order of the first dirty page that the file has in each: block-level
    /// flush, Shim et al., TC 2014, section 5.3.1. "To avoid frequent page flushes, the flush unit excludes the other
    /// dirty pages of the same block from different inodes." Needs the tree over logical pages.
    Block {
        /// Size of a flash block, bytes.
        bytes: u64,
    },
}

impl Policy {
    /// Returns the policy for flash blocks of this many bytes, and the setting that it stands for: `Auto` is resolved
    /// to `Block` if the scheduler cooperates, otherwise to `Baseline`.
    pub fn new(stated: FlushPolicy, cooperates: bool, bytes: u64) -> (Policy, FlushPolicy) {
        match stated {
            FlushPolicy::Auto if !cooperates => (Policy::Baseline, FlushPolicy::Baseline),
            FlushPolicy::Baseline => (Policy::Baseline, FlushPolicy::Baseline),
            FlushPolicy::Auto | FlushPolicy::Block => (Policy::Block { bytes }, FlushPolicy::Block),
        }
    }

    /// Appends to `unit` the pages that are flushed together with dirty page `id`: `id` itself and, under `Block`,
    /// other pages of the same file that are dirty and not being written back.
    pub fn unit(self, cache: &PageCache, id: u32, unit: &mut Vec<u32>) {
        match self {
            Policy::Baseline => unit.push(id),
            Policy::Block { bytes } => {
                let page = cache.page(id);
                let block = u64::from(page.block) * PAGE / bytes;
                // A page belongs to the block in which it begins.
                let [first, end] = [block, block + 1].map(|block| (block * bytes).div_ceil(PAGE) as u32);
                cache.dirty_in(first, end, unit);
                unit.retain(|&other| cache.page(other).inode == page.inode);
            }
        }
    }
}

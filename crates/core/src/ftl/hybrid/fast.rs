//! FAST: log blocks shared by all data blocks, and one log block for sequential writes.
//!
//! Source: S.-W. Lee, D.-J. Park, T.-S. Chung, D.-H. Lee, S. Park, H.-J. Song, "A log buffer-based flash
//! translation layer using fully-associative sector translation", ACM TECS, 2007, as Shim et al., TC 2014,
//! section 2.2.2, describe it; COOP_Query is their Algorithm 4.
//!
//! A write request is sequential, and goes to the SW log block, if it begins at offset 0 of a logical block or
//! continues from the last page of the SW log block. A write at offset 0 first reclaims the SW log block, if one
//! is in use, by a partial merge; an SW log block that has become full is merged at once, by a switch merge. All
//! other requests go to the RW log blocks, one after another. When a page needs a new RW log block and the LUN
//! has as many as it may have, the one that was filled first (least recently written) is reclaimed: every
//! logical block with a valid page in it gets a full merge, and the log block is erased.
//!
//! Interpretation: each LUN has an SW log block, which counts towards its share of `ftl.log_blocks`. A partial
//! merge takes the newest version of each page it copies, from wherever it is; pages of the SW log block that
//! have since been written to an RW log block stay stale in the data block that it becomes. If one of a victim's
//! logical blocks owns the SW log block, the two are merged, by a partial merge; but if pages of the SW log
//! block have been superseded, the logical block gets a full merge, and the SW log block is erased. A log block
//! in which nothing is valid is erased, which is not a merge.
//!
//! **COOP_Query** (Algorithm 4): the query names the logical blocks of as many victims as are needed for the
//! pages that exceed the free ones, but of at least one victim. **Under cooperation** (`Mark::coop`) the size of
//! the host's block issues tells what is sequential, so everything that is not part of a cooperative switch
//! merge goes to RW log blocks.

use std::collections::VecDeque;

use super::frame::{Hybrid, complete};
use super::layout::Shape;
use super::logs::{BlockWrite, FoundLog, Logs};
use super::merges::MergeKind;
use super::store::{Role, Store};
use crate::flash::{Cause, Work};
use crate::util::NONE;

/// The name under which this FTL is registered.
pub const NAME: &str = "fast";
/// Description in one line, for `ftlab components`.
pub const DOC: &str =
    "hybrid: log blocks shared by all data blocks, one for sequential writes (Lee et al., TECS 2007)";
/// The keys that fast has in addition to those of all hybrid FTLs: none.
pub type Keys = ();

/// The FTL `fast`.
pub type Fast = Hybrid<Shared>;

#[derive(Clone, Debug)]
struct Lun {
    /// RW log blocks, the one filled first in front, the current one at the back.
    random: VecDeque<u32>,
    limit: usize,
    /// SW log block, or [`NONE`].
    sequential: u32,
}

/// The log blocks of each LUN.
#[derive(Clone, Debug)]
pub struct Shared(Vec<Lun>);

impl Shared {
    /// Reclaims a LUN's SW log block by the merge that its state allows.
    fn merge_sequential(&mut self, lun: u32, store: &mut Store, work: &mut Work) {
        let log = self.0[lun as usize].sequential;
        if store.merging() == store.block(log).owner {
            return complete(self, store, work);
        }
        self.0[lun as usize].sequential = NONE;
        if store.block(log).valid == 0 {
            store.drop_log(log, MergeKind::Partial, work);
        } else if store.block(log).in_order {
            store.merge_in_order(log, work);
        } else {
            // A power cut tore one of the log block's pages.
            store.merge_full(store.block(log).owner, work);
            store.drop_log(log, MergeKind::Full, work);
        }
    }

    /// Merges a logical block, so that none of its data is left in a log block.
    fn merge(&mut self, logical: u32, store: &mut Store, work: &mut Work) {
        if store.merging() == logical {
            return complete(self, store, work);
        }
        let lun = store.lun(logical);
        let log = self.0[lun as usize].sequential;
        if log == NONE || store.block(log).owner != logical {
            return store.merge_full(logical, work);
        }
        if store.superseded(log) {
            self.0[lun as usize].sequential = NONE;
            store.merge_full(logical, work);
            store.drop_log(log, MergeKind::Full, work);
        } else {
            self.merge_sequential(lun, store, work);
        }
    }

    /// Reclaims the RW log block that was filled first on a LUN.
    fn reclaim(&mut self, lun: u32, store: &mut Store, work: &mut Work) {
        let victim = self.0[lun as usize].random.pop_front().expect("all log blocks are in use");
        while let Some(logical) = store.first_associated(victim) {
            self.merge(logical, store, work);
            if store.has_trims(logical) && store.block_of(store.trims_page(logical)) == victim {
                store.forget_trims(logical);
            }
        }
        store.drop_log(victim, MergeKind::Full, work);
    }

    /// Takes an erased block as a LUN's next RW log block; first reclaims one if the LUN is at its limit.
    fn open(&mut self, lun: u32, store: &mut Store, work: &mut Work) -> u32 {
        let at = &self.0[lun as usize];
        if at.random.len() == at.limit {
            self.reclaim(lun, store, work);
        }
        let log = store.take(lun, Role::Log, NONE);
        self.0[lun as usize].random.push_back(log);
        log
    }

    /// Returns the RW log block that takes the next page of a LUN.
    #[inline]
    fn current(&mut self, lun: u32, store: &mut Store, work: &mut Work) -> u32 {
        match self.0[lun as usize].random.back() {
            Some(&log) if store.block(log).next < store.shape.pages_per_block => log,
            _ => self.open(lun, store, work),
        }
    }
}

impl Logs for Shared {
    const NAME: &'static str = NAME;
    const LEAST: u64 = 2;

    fn new(shape: &Shape) -> Shared {
        let lun = |lun| {
            let limit = shape.logs_of(lun) as usize - 1;
            Lun { random: VecDeque::with_capacity(limit), limit, sequential: NONE }
        };
        Shared((0..shape.luns).map(lun).collect())
    }

    fn sequential(&mut self, part: BlockWrite, store: &mut Store, work: &mut Work) -> bool {
        if part.coop {
            return false;
        }
        let lun = store.lun(part.logical);
        let log = self.0[lun as usize].sequential;
        let offset = store.offset(part.first);
        if offset > 0 {
            return log != NONE && {
                let at = store.block(log);
                at.owner == part.logical && at.next == offset && at.in_order
            };
        }
        if log != NONE {
            self.merge_sequential(lun, store, work);
        }
        self.0[lun as usize].sequential = store.take(lun, Role::Log, part.logical);
        true
    }

    #[inline]
    fn write(&mut self, lpn: u32, sequential: bool, cause: Cause, store: &mut Store, work: &mut Work) {
        let lun = store.lun(store.block_of(lpn));
        let full = store.shape.pages_per_block;
        if sequential {
            let log = self.0[lun as usize].sequential;
            store.append(log, lpn, cause, work);
            if store.block(log).next == full {
                self.merge_sequential(lun, store, work);
            }
            return;
        }
        let log = self.current(lun, store, work);
        store.append(log, lpn, cause, work);
    }

    fn make_room(&mut self, logical: u32, store: &mut Store, work: &mut Work) {
        self.current(store.lun(logical), store, work);
    }

    fn write_trims(&mut self, logical: u32, store: &mut Store, work: &mut Work) {
        let log = self.current(store.lun(logical), store, work);
        store.append_trims(log, logical, work);
    }

    fn each(&self, visit: &mut dyn FnMut(u32)) {
        for lun in &self.0 {
            let sequential = Some(lun.sequential).filter(|&log| log != NONE);
            lun.random.iter().copied().chain(sequential).for_each(&mut *visit);
        }
    }

    fn found(logs: &[FoundLog], store: &Store) -> Result<Shared, String> {
        let mut logs = logs.to_vec();
        logs.sort_by_key(|log| log.born);
        let mut shared = Shared::new(&store.shape);
        for FoundLog { block, .. } in logs {
            let Lun { random, limit, sequential } = &mut shared.0[store.lun_of_block(block) as usize];
            let room =
                if store.block(block).owner == NONE { random.len() < *limit } else { *sequential == NONE };
            if !room {
                return Err(format!("block {block} is a log block too many: {:?}", store.block(block)));
            }
            match store.block(block).owner {
                NONE => random.push_back(block),
                _ => *sequential = block,
            }
        }
        Ok(shared)
    }

    fn release(&mut self, logical: u32, store: &mut Store, work: &mut Work) {
        let Lun { random, sequential, .. } = &mut self.0[store.lun(logical) as usize];
        if *sequential != NONE && store.block(*sequential).owner == logical {
            store.erase(std::mem::replace(sequential, NONE), work);
        }
        random.retain(|&log| {
            let keep = store.block(log).valid > 0;
            if !keep {
                store.erase(log, work);
            }
            keep
        });
    }

    fn query(&self, first: u32, pages: u32, store: &Store, set: &mut Vec<u32>) {
        let logical = store.block_of(first);
        if pages > store.shape.csm_threshold {
            set.push(logical);
            return;
        }
        let Lun { random, limit, .. } = &self.0[store.lun(logical) as usize];
        let full = store.shape.pages_per_block as usize;
        let current = random.back().map_or(0, |&log| full - store.block(log).next as usize);
        let free = (limit - random.len()) * full + current;
        if (pages as usize) < free {
            return;
        }
        let victims = (pages as usize - free).div_ceil(full).max(1);
        random.iter().take(victims).for_each(|&victim| store.associated(victim, set));
    }

    fn verify(&self, store: &Store) -> Result<(), String> {
        for (number, lun) in (0..).zip(&self.0) {
            let full = store.shape.pages_per_block;
            for (index, &log) in lun.random.iter().enumerate() {
                let at = store.block(log);
                let current = index + 1 == lun.random.len();
                if at.role != Role::Log || at.owner != NONE || (!current && at.next < full) || at.next == 0 {
                    return Err(format!("block {log} is not an RW log block in its place: {at:?}"));
                }
            }
            let mut count = lun.random.len();
            if lun.sequential != NONE {
                let at = store.block(lun.sequential);
                // A power cut may have left an SW log block out of order; it then waits for its merge.
                let sound = (at.in_order && at.next < full) || (!at.in_order && store.shape.power_safe);
                if at.role != Role::Log || at.owner == NONE || !sound {
                    return Err(format!("block {} is not an SW log block: {at:?}", lun.sequential));
                }
                count += 1;
            }
            let used = store.logs_in_use(number);
            if count as u32 != used || lun.random.len() > lun.limit {
                return Err(format!("LUN {number} has {used} log blocks, {count} in its lists"));
            }
        }
        Ok(())
    }
}

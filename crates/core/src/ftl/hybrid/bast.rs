//! BAST: each log block belongs to one data block.
//!
//! Source: J. Kim, J. M. Kim, S. H. Noh, S. L. Min, Y. Cho, "A space-efficient flash translation layer for
//! CompactFlash systems", IEEE Transactions on Consumer Electronics, 2002, as Shim et al., TC 2014, section
//! 2.2.1, describe it; COOP_Query is their Algorithm 3.
//!
//! A page is appended to its logical block's log block. A log block whose last page is programmed is merged at
//! once: by a switch merge if page i holds offset i for all i, else by a full merge. When a log block is needed
//! and the LUN has as many as it may have, the least recently written one is merged: if it is in order from
//! offset 0 so far, by a partial merge, else by a full merge. Interpretation: recency counts writes, not reads;
//! a log block in which nothing is valid (all trimmed) is erased, which is not a merge.
//!
//! **COOP_Query** (Algorithm 3): the paper is silent on two cases. If the issue has exactly as many pages as the
//! log block has left, but does not continue the log block in order, the query names the logical block itself,
//! since filling the log block starts a full merge; if the logical block has no log block but the LUN may take
//! another, the query names nothing. A victim without valid pages needs no merge, so nothing is named for it.

use super::frame::{Hybrid, complete};
use super::layout::Shape;
use super::logs::{BlockWrite, FoundLog, Logs};
use super::merges::MergeKind;
use super::store::{Block, Role, Store};
use crate::flash::{Cause, Work};
use crate::util::{List, Lru, NONE};

/// The name under which this FTL is registered.
pub const NAME: &str = "bast";
/// Description in one line, for `ftlab components`.
pub const DOC: &str = "hybrid: each log block serves one data block (Kim et al., TCE 2002)";
/// The keys that bast has in addition to those of all hybrid FTLs: none.
pub type Keys = ();

/// The FTL `bast`.
pub type Bast = Hybrid<Pairs>;

/// The log blocks, found by their logical blocks and listed in the order of their last writes.
#[derive(Clone, Debug)]
pub struct Pairs {
    logs: Lru<u32>,
    /// The list of each LUN's log blocks, and how many the LUN may have.
    luns: Vec<(List, u32)>,
}

impl Pairs {
    /// Returns the log block of a logical block, or [`NONE`].
    fn log(&self, logical: u32) -> u32 {
        match self.logs.find(logical) {
            NONE => NONE,
            id => *self.logs.value(id),
        }
    }

    /// Gives a logical block a log block; returns the id that the log block has in `logs`.
    fn allocate(&mut self, logical: u32, store: &mut Store, work: &mut Work) -> u32 {
        let lun = store.lun(logical);
        let (list, limit) = self.luns[lun as usize];
        if list.len == limit {
            self.merge(self.logs.key(list.tail), store, work);
        }
        let id = self.logs.insert(logical, store.take(lun, Role::Log, logical));
        self.logs.push_head(&mut self.luns[lun as usize].0, id);
        id
    }

    /// Removes the log block of a logical block from the list, and returns it.
    fn detach(&mut self, logical: u32, store: &Store) -> u32 {
        let id = self.logs.find(logical);
        let log = *self.logs.value(id);
        self.logs.unlink(&mut self.luns[store.lun(logical) as usize].0, id);
        self.logs.remove(id);
        log
    }

    /// Merges a logical block with its log block.
    fn merge(&mut self, logical: u32, store: &mut Store, work: &mut Work) {
        if store.merging() == logical {
            return complete(self, store, work);
        }
        let log = self.detach(logical, store);
        let Block { valid, in_order, .. } = *store.block(log);
        if valid > 0 && in_order {
            return store.merge_in_order(log, work);
        }
        if valid > 0 {
            store.merge_full(logical, work);
        }
        store.forget_trims(logical);
        store.drop_log(log, MergeKind::Full, work);
    }

    /// Returns the id of the log block that takes a logical block's next page; merges and allocates if necessary.
    #[inline]
    fn ready(&mut self, logical: u32, store: &mut Store, work: &mut Work) -> u32 {
        match self.logs.find(logical) {
            NONE => self.allocate(logical, store, work),
            // After a power cut, the merge of a full log block may not have been done yet.
            id if store.block(*self.logs.value(id)).next == store.shape.pages_per_block => {
                self.merge(logical, store, work);
                self.allocate(logical, store, work)
            }
            id => {
                self.logs.touch(&mut self.luns[store.lun(logical) as usize].0, id);
                id
            }
        }
    }
}

impl Logs for Pairs {
    const NAME: &'static str = NAME;
    const LEAST: u64 = 1;

    fn new(shape: &Shape) -> Pairs {
        Pairs {
            logs: Lru::new(Some(shape.log_blocks)),
            luns: (0..shape.luns).map(|lun| (List::EMPTY, shape.logs_of(lun))).collect(),
        }
    }

    fn sequential(&mut self, _part: BlockWrite, _store: &mut Store, _work: &mut Work) -> bool {
        false
    }

    #[inline]
    fn write(&mut self, lpn: u32, _sequential: bool, cause: Cause, store: &mut Store, work: &mut Work) {
        let logical = store.block_of(lpn);
        let id = self.ready(logical, store, work);
        let log = *self.logs.value(id);
        store.append(log, lpn, cause, work);
        if store.block(log).next == store.shape.pages_per_block {
            self.merge(logical, store, work);
        }
    }

    fn make_room(&mut self, logical: u32, store: &mut Store, work: &mut Work) {
        self.ready(logical, store, work);
    }

    fn write_trims(&mut self, logical: u32, store: &mut Store, work: &mut Work) {
        let log = self.log(logical);
        store.append_trims(log, logical, work);
        if store.block(log).next == store.shape.pages_per_block {
            self.merge(logical, store, work);
        }
    }

    fn each(&self, visit: &mut dyn FnMut(u32)) {
        for (list, _) in &self.luns {
            self.logs.each(*list, &mut |id| visit(*self.logs.value(id)));
        }
    }

    fn found(logs: &[FoundLog], store: &Store) -> Result<Pairs, String> {
        let mut pairs = Pairs::new(&store.shape);
        for &FoundLog { block, .. } in logs {
            let logical = store.block(block).owner;
            let (list, limit) = &mut pairs.luns[store.lun(logical) as usize];
            if logical == NONE || pairs.logs.find(logical) != NONE || list.len == *limit {
                return Err(format!("block {block} is a log block too many, of logical block {logical}"));
            }
            let id = pairs.logs.insert(logical, block);
            pairs.logs.push_head(list, id);
        }
        Ok(pairs)
    }

    fn release(&mut self, logical: u32, store: &mut Store, work: &mut Work) {
        if self.logs.find(logical) != NONE {
            let log = self.detach(logical, store);
            store.forget_trims(logical);
            store.erase(log, work);
        }
    }

    fn query(&self, first: u32, pages: u32, store: &Store, set: &mut Vec<u32>) {
        let logical = store.block_of(first);
        let log = self.log(logical);
        if log != NONE {
            let Block { next, in_order, .. } = *store.block(log);
            let free = store.shape.pages_per_block - next;
            let continues = in_order && store.offset(first) == next && pages <= free;
            if pages >= free && !continues {
                set.push(logical);
            }
            return;
        }
        let (list, limit) = self.luns[store.lun(logical) as usize];
        if list.len == limit {
            let victim = list.tail;
            if store.block(*self.logs.value(victim)).valid > 0 {
                set.push(self.logs.key(victim));
            }
        }
    }

    fn verify(&self, store: &Store) -> Result<(), String> {
        for (lun, (list, limit)) in (0..).zip(&self.luns) {
            let mut id = list.tail;
            let mut count = 0;
            while id != NONE {
                let (logical, log) = (self.logs.key(id), *self.logs.value(id));
                let at = store.block(log);
                let sound = at.role == Role::Log && at.owner == logical && store.lun(logical) == lun;
                // Full log blocks are merged at once, except for those that a power cut left unmerged.
                let full = at.next == store.shape.pages_per_block;
                if !sound || (full && !store.shape.power_safe) || at.next == 0 {
                    return Err(format!(
                        "block {log} is not an open log block of logical block {logical}: {at:?}"
                    ));
                }
                count += 1;
                id = self.logs.newer(id);
            }
            let used = store.logs_in_use(lun);
            if count != used || count > *limit {
                return Err(format!("LUN {lun} has {used} log blocks, {count} in its list of {limit}"));
            }
        }
        Ok(())
    }
}

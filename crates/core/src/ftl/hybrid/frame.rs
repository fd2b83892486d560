//! Hybrid FTLs: data blocks are mapped as whole blocks, log blocks page by page, and merges turn log blocks into data
//! blocks.
//!
//! Source: H. Shim, J.-S. Kim, S. Maeng, "System-Wide Cooperative Optimization for NAND Flash-Based Mobile
//! Systems", IEEE Transactions on Computers, 2014, sections 2.2 and 5, Algorithm 1. Which log blocks there are
//! and when they are merged is up to [`super::bast`] and [`super::fast`]; the rest is common to both: the blocks
//! ([`super::store`]), the division of the flash ([`super::layout`]) and, in this file, the cooperative switch
//! merge.
//!
//! **A write goes to a log block**, even the first write of a page; a logical page has its fixed offset in
//! the data block. Requests are cut at the ends of logical blocks, and each part counts as a write request of
//! its own.
//!
//! **Cooperative switch merge** (Algorithm 1, word for word): COOP_Issue(FBN) takes an erased block, CSM_Log; writes of
//! FBN go there at their offsets, and pages that they skip are copied on the way; COOP_Complete(FBN) copies the rest
//! and makes CSM_Log the data block. The old data block is erased, and so are log blocks that no longer hold anything
//! valid. Interpretation: there is one CSM_Log, so the issue of another block completes the one in progress; a write to
//! an offset already passed ends the issue early (completes it) and goes the ordinary way, as do those after it; if an
//! ordinary write needs a merge of FBN meanwhile, this also ends the issue, whose completion then serves as that merge.
//! A COOP_Complete of any other block does nothing. Offsets without data are skipped. If neither the host nor an older
//! block has any data for CSM_Log, the block returns to the pool.
//!
//! **Wear-out** ([`crate::ftl::blocks::endurance`]): a block past its limit is replaced when it has been erased.
//! Without a spare block the device turns read-only once the current page, with the merges it needs, is done.

use std::io;

use super::layout::Shape;
use super::logs::{BlockWrite, Logs};
use super::merges::{MergeKind, MergeStats, merge_ns};
use super::state;
use super::store::{Role, Store};
use crate::config::Contradiction;
use crate::flash::media::{Media, Tape};
use crate::flash::{Cause, Work};
use crate::ftl::faces::BlockSize;
use crate::ftl::recovery::{Flaw, Recovery};
use crate::ftl::settings::PartialWrite;
use crate::ftl::settings::Settings;
use crate::ftl::{Cooperate, FlashTranslation, MapStats, Prepare, Serve};
use crate::request::{Mark, Pages};
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Divider, NONE};

/// Completes the cooperative switch merge in progress.
pub(crate) fn complete<L: Logs>(logs: &mut L, store: &mut Store, work: &mut Work) {
    let block = std::mem::replace(&mut store.cooperative, NONE);
    let logical = store.block(block).owner;
    let began = store.block(block).next > 0;
    if store.shape.power_safe && store.superseded(block) {
        // Pages that were torn or trimmed cannot be programmed again.
        store.merge_full(logical, work);
        store.drop_log(block, MergeKind::Cooperative, work);
        return logs.release(logical, store, work);
    }
    let since_ns = merge_ns(work);
    let copies = store.fill(block, store.shape.pages_per_block, work);
    if began || copies > 0 {
        store.adopt(block, work);
        store.merges.of_mut(MergeKind::Cooperative).count += 1;
    } else {
        store.give_back(block);
    }
    logs.release(logical, store, work);
    store.charge(MergeKind::Cooperative, copies, since_ns, work);
}

/// A hybrid FTL with the log blocks `L`.
#[derive(Clone, Debug)]
pub struct Hybrid<L> {
    pub(super) store: Store,
    pub(super) logs: L,
    pub(super) stats: MapStats,
    /// Divides by the number of logical pages whose entries would share a translation page, for schedulers that group
    /// requests by translation page.
    pub(super) by_entries: Divider,
    read_modify_write: bool,
    refused: u64,
}

impl<L: Logs> Hybrid<L> {
    /// Writes the pages of one logical block, up to LPN `end`; returns false if the device has turned
    /// read-only.
    fn write_part(
        &mut self,
        part: BlockWrite,
        end: u32,
        request: Pages,
        cause: Cause,
        work: &mut Work,
    ) -> bool {
        let Hybrid { store, logs, .. } = self;
        let last = request.first + request.pages - 1;
        // Remains `None` until a page goes to a log block.
        let mut sequential = None;
        for lpn in part.first..end {
            if store.pool.is_exhausted() {
                self.refused += 1;
                return false;
            }
            work.chain_for(lpn);
            let partial =
                (lpn == request.first && request.head_partial) || (lpn == last && request.tail_partial);
            if partial && self.read_modify_write && store.page(lpn) != NONE {
                store.read(lpn, cause, work);
            }
            if store.merging() == part.logical {
                if write_cooperative(store, lpn, cause, work) {
                    continue;
                }
                complete(logs, store, work);
            }
            let sequential = *sequential
                .get_or_insert_with(|| logs.sequential(BlockWrite { first: lpn, ..part }, store, work));
            logs.write(lpn, sequential, cause, store, work);
        }
        true
    }
}

impl<L: Logs> Hybrid<L> {
    /// Trims pages of one logical block; if trims are durable, the page that records them is written at once,
    /// so that no older data can come back.
    fn trim_part(&mut self, first: u32, end: u32, work: &mut Work) {
        let Hybrid { store, logs, .. } = self;
        work.chain_for(first);
        let logical = store.block_of(first);
        let durable = store.shape.power_safe && (first..end).any(|lpn| store.page(lpn) != NONE);
        if durable {
            logs.make_room(logical, store, work);
        }
        (first..end).for_each(|lpn| store.trim(lpn));
        if durable {
            logs.write_trims(logical, store, work);
        }
    }
}

/// Writes a page into CSM_Log, after copying the pages before it; returns false if CSM_Log is already past the
/// page's offset.
fn write_cooperative(store: &mut Store, lpn: u32, cause: Cause, work: &mut Work) -> bool {
    let (block, offset) = (store.cooperative, store.offset(lpn));
    if offset < store.block(block).next {
        return false;
    }
    let since_ns = merge_ns(work);
    let copies = store.fill(block, offset, work);
    store.charge(MergeKind::Cooperative, copies, since_ns, work);
    store.write(block, offset, lpn, cause, work);
    true
}

impl<L: Logs> FlashTranslation for Hybrid<L> {
    const IS_HYBRID: bool = true;

    fn new(settings: &Settings, check: bool, work: &mut Work) -> Hybrid<L> {
        let store = Store::new(settings, check);
        work.reset();
        let logs = L::new(&store.shape);
        Hybrid::assemble(settings, store, logs)
    }

    fn load(settings: &Settings, check: bool, from: &mut Decoder) -> Result<Hybrid<L>, Damage> {
        let (store, logs) = state::load(settings, check, from)?;
        Ok(Hybrid::assemble(settings, store, logs))
    }

    fn recover(
        settings: &Settings,
        media: &Media,
        tape: (&Tape, Flaw),
        work: &mut Work,
    ) -> Result<(Hybrid<L>, Recovery), String> {
        super::recover::recover(settings, media, tape, work)
    }

    fn check(settings: &Settings) -> Result<(), Contradiction> {
        super::layout::check(settings, L::NAME, L::LEAST)
    }
}

impl<L: Logs> Serve for Hybrid<L> {
    fn read_marked(&mut self, request: Pages, mark: Mark, work: &mut Work) -> u32 {
        let cause = if mark.pad { Cause::Pad } else { Cause::Host };
        let since_ns = work.counts().busy_ns[Cause::Pad];
        for lpn in request.first..request.first + request.pages {
            work.chain_for(lpn);
            self.store.read(lpn, cause, work);
        }
        self.stats.hits += u64::from(request.pages);
        self.charge_padding(0, since_ns, work);
        0
    }

    fn write_marked(&mut self, request: Pages, mark: Mark, work: &mut Work) -> u32 {
        let cause = if mark.pad { Cause::Pad } else { Cause::Host };
        let since_ns = work.counts().busy_ns[Cause::Pad];
        let end = request.first + request.pages;
        let mut first = request.first;
        while first < end {
            let logical = self.store.block_of(first);
            let next = first - self.store.offset(first) + self.store.shape.pages_per_block;
            let part = BlockWrite { logical, first, coop: mark.coop };
            if !self.write_part(part, next.min(end), request, cause, work) {
                break;
            }
            first = next.min(end);
        }
        self.stats.hits += u64::from(request.pages);
        self.charge_padding(if mark.pad { request.pages } else { 0 }, since_ns, work);
        0
    }

    fn trim(&mut self, request: Pages, work: &mut Work) -> u32 {
        if self.is_read_only() {
            self.refused += 1;
            return 0;
        }
        let end = request.first + request.pages;
        let mut first = request.first;
        while first < end {
            let offset = self.store.offset(first);
            let next = end.min(first - offset + self.store.shape.pages_per_block);
            self.trim_part(first, next, work);
            first = next;
        }
        self.stats.hits += u64::from(request.pages);
        0
    }

    /// Has nothing to write, since every write is programmed at once.
    fn flush(&mut self, _work: &mut Work) {
        self.refused += u64::from(self.is_read_only());
    }

    fn wear(&mut self, cycles: u32) -> bool {
        self.store.pool.wear(cycles);
        true
    }

    fn give_out(&mut self) -> bool {
        self.store.pool.set_exhausted(true);
        true
    }

    #[inline]
    fn is_read_only(&self) -> bool {
        self.store.pool.is_exhausted()
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}

impl<L: Logs> Cooperate for Hybrid<L> {
    fn coop_query(&self, first: u32, pages: u32, set: &mut Vec<u32>) {
        set.clear();
        self.logs.query(first, pages, &self.store, set);
    }

    fn coop_issue(&mut self, logical: u32, work: &mut Work) {
        let Hybrid { store, logs, .. } = self;
        let refused = logical >= store.shape.logical_blocks() || store.pool.is_exhausted();
        if refused || store.merging() == logical {
            return;
        }
        if store.cooperative != NONE {
            work.chain();
            complete(logs, store, work);
            if store.pool.is_exhausted() {
                return;
            }
        }
        store.cooperative = store.take(store.lun(logical), Role::Cooperative, logical);
    }

    fn coop_complete(&mut self, logical: u32, work: &mut Work) {
        if self.store.cooperative != NONE && self.store.merging() == logical && !self.is_read_only() {
            complete(&mut self.logs, &mut self.store, work);
        }
    }

    fn block_size(&self) -> Option<BlockSize> {
        let Shape { pages_per_block, page_bytes, .. } = self.store.shape;
        Some(BlockSize { pages: pages_per_block, page_bytes })
    }
}

impl<L: Logs> Prepare for Hybrid<L> {
    fn prefill(&mut self, lpns: &[u32], work: &mut Work) {
        self.store.slots.expect_data();
        for &lpn in lpns {
            if self.store.slots.of(lpn) == NONE {
                self.store.prefill(lpn, work);
                work.clear();
            }
        }
    }

    fn start(&mut self) {
        self.store.host_pages = 0;
        self.store.merges = MergeStats::default();
        self.stats = MapStats::default();
    }

    fn save(&self, out: &mut Encoder) -> io::Result<()> {
        state::save(&self.store, &self.logs, out)
    }
}

impl<L: Logs> Hybrid<L> {
    pub(super) fn assemble(settings: &Settings, store: Store, logs: L) -> Hybrid<L> {
        Hybrid {
            logs,
            store,
            stats: MapStats::default(),
            by_entries: Divider::new(settings.flash.page_bytes / settings.ftl.entry_bytes),
            read_modify_write: settings.ftl.partial_write == PartialWrite::Rmw,
            refused: 0,
        }
    }

    /// Charges the cost of padding to padded switch merges ("The cost of PSM includes the padding overhead").
    #[inline]
    fn charge_padding(&mut self, pages: u32, since_ns: u64, work: &Work) {
        let busy_ns = work.counts().busy_ns[Cause::Pad] - since_ns;
        if busy_ns > 0 {
            let count = self.store.merges.of_mut(MergeKind::PaddedSwitch);
            count.pages_copied += u64::from(pages);
            count.busy_ns += busy_ns;
        }
    }
}

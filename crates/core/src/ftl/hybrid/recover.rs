//! Rebuilds a hybrid FTL from what a power cut left on flash.
//!
//! Source: none of the papers describes recovery. Block-mapped FTLs keep in each spare area what they need to
//! rebuild their tables (Kim et al., TCE 2002, write the logical number there): here, for every page, the
//! logical page, the sequence number of its write (copies keep it), the number of the program, and the purpose
//! for which its block was taken ([`Kind`]): data block, log block of one logical block, shared log block,
//! CSM_Log. What became of a block later is not recorded anywhere, since a switch merge programs nothing; but it
//! follows from the other blocks.
//!
//! All blocks of a logical block are on one LUN, and a LUN runs its steps in the order in which the FTL decided
//! them: a cut leaves a prefix of these steps done, and at most the next one torn. A merge erases nothing
//! before its destination is complete, so:
//!
//! 1. Of each logical page the version with the highest sequence number counts; of a copy and its original, the
//!    one programmed last. A version that was trimmed later does not count ([`super::trims`]).
//! 2. **A full merge that was cut** left a block that was taken as a data block and an older block that still has pages
//!    that count. The newer block holds nothing but copies of pages that still exist elsewhere (if not, the older block
//!    is no longer a data block), so it is erased, and the originals count again. If the merge was complete, nothing in
//!    the old blocks counts.
//! 3. Blocks in which nothing counts are erased: torn ones, and the sources of a merge that was complete. So
//!    there is an erased block again without any copying.
//! 4. A logical block's data block is the block that was taken as its data block; if there is none, it is the
//!    oldest block that was written in order (a switch or partial merge made it the data block, or could have:
//!    the pages it lacks are in log blocks).
//! 5. Every other block that was taken as a log block is still a log block. It is in order only if the data
//!    block has no valid page at an offset that the log block has already passed (for example with a torn page);
//!    otherwise it gets a full merge when its turn comes. A full log block whose merge had not begun is merged
//!    at its next write.
//! 6. **A cooperative switch merge in progress** is completed, as COOP_Complete would do: the host that announced it is
//!    gone. If a page of CSM_Log was torn and has an older version, a full merge takes its place; the layout's second
//!    erased block is there for this.
//!
//! Each of these steps can itself be cut; the next recovery treats what the cut leaves like any other state.
//! Pages without data are skipped when blocks are merged, so only a scan of all pages finds everything.

use super::frame::{Hybrid, complete};
use super::logs::{FoundLog, Logs};
use super::store::{Block, Role, Store};
use crate::flash::media::{Kind, Media, Page, Tape};
use crate::flash::{Cause, Work};
use crate::ftl::recovery::{Flaw, Found, Recovery, Version, erase_all, read_all};
use crate::ftl::settings::Settings;
use crate::util::NONE;

/// What was found on flash, and which versions count.
struct Scan<'a> {
    found: Found,
    media: &'a Media,
    store: &'a Store,
    flaw: Flaw,
    /// For each block, the logical block to which it belongs; [`NONE`] for shared log blocks.
    logical: Vec<u32>,
    /// For each block, whether every page in it holds the logical page of its offset.
    ordered: Vec<bool>,
    /// For each block, how many of its pages count.
    live: Vec<u32>,
    /// The newest trims of each logical block, with a bit for each offset that they void.
    trims: Vec<Option<(Version, Box<[u32]>)>>,
    /// For each owner, the version that counts.
    best: Vec<Option<Version>>,
}

impl<'a> Scan<'a> {
    fn new((media, tape): (&'a Media, &Tape), store: &'a Store, flaw: Flaw, work: &mut Work) -> Scan<'a> {
        let read = |kind| flaw != Flaw::SkipScan || kind == Kind::Data;
        let log = |kind| read(kind).then_some((0, 1));
        let owners = store.shape.owners();
        let blocks = media.blocks() as usize;
        let mut scan = Scan {
            found: Found::scan(media, true, (owners, flaw), log, work),
            media,
            store,
            flaw,
            logical: vec![NONE; blocks],
            ordered: vec![true; blocks],
            live: vec![0; blocks],
            trims: vec![None; store.shape.logical_blocks() as usize],
            best: vec![None; owners as usize],
        };
        for version in scan.found.versions_of(0..owners) {
            let block = scan.found.block_of(version) as usize;
            let fixed = store.offset(version.owner) == store.offset(version.page);
            scan.ordered[block] &= fixed && version.owner < store.shape.lpns;
            if scan.found.blocks[block].kind != Some(Kind::Shared) {
                scan.logical[block] = store.logical_of(version.owner);
            }
        }
        for logical in (0..store.shape.logical_blocks()).filter(|_| flaw != Flaw::ForgetTrims) {
            scan.trims[logical as usize] = scan.trims_of(logical, tape);
        }
        scan.choose();
        scan
    }

    /// Returns a logical block's newest trims, if there are any on flash.
    fn trims_of(&self, logical: u32, tape: &Tape) -> Option<(Version, Box<[u32]>)> {
        let newest = self.found.versions(self.store.shape.lpns + logical).first()?;
        let Page::Programmed { kind, .. } = self.media.page(newest.page) else { return None };
        let bits = tape.content(*kind, newest.owner, newest.seq)?;
        Some((*newest, bits.iter().copied().collect()))
    }

    /// Whether a logical block's trims void a version.
    fn is_void(&self, version: &Version) -> bool {
        let logical = self.store.logical_of(version.owner);
        let offset = self.store.offset(version.owner);
        self.trims[logical as usize].as_ref().is_some_and(|(trims, bits)| {
            version.seq < trims.seq && bits[(offset / 32) as usize] >> (offset % 32) & 1 != 0
        })
    }

    /// Returns the one version of an owner that counts, if any does.
    fn pick(&self, owner: u32) -> Option<Version> {
        if owner < self.store.shape.lpns {
            let counts = |version: &&Version| self.found.is_kept(version) && !self.is_void(version);
            return self.found.versions(owner).iter().find(counts).copied();
        }
        let logical = owner - self.store.shape.lpns;
        let (trims, _) = self.trims[logical as usize].as_ref()?;
        let first = logical * self.store.shape.pages_per_block;
        let end = (first + self.store.shape.pages_per_block).min(self.store.shape.lpns);
        let elsewhere = |version: &Version| self.found.block_of(version) != self.found.block_of(trims);
        let needed = (first..end)
            .flat_map(|lpn| self.found.versions(lpn))
            .any(|version| elsewhere(version) && self.is_void(version));
        needed.then_some(*trims)
    }

    /// Finds which versions count, in blocks that are not given up.
    fn choose(&mut self) {
        self.live.fill(0);
        for owner in 0..self.best.len() {
            self.best[owner] = self.pick(owner as u32);
            if let Some(version) = self.best[owner] {
                self.live[self.found.block_of(&version) as usize] += 1;
            }
        }
    }

    /// Returns the blocks with pages that count, grouped by logical block, each group in the order of its
    /// blocks' first programs; shared log blocks are left out.
    fn by_logical(&self) -> Vec<(u32, Vec<u32>)> {
        let mut blocks: Vec<u32> = (0..self.media.blocks())
            .filter(|&block| self.live[block as usize] > 0 && !self.is(block, Kind::Shared))
            .collect();
        let of = |block: &u32| self.logical[*block as usize];
        blocks.sort_by_key(|block| (of(block), self.found.blocks[*block as usize].first));
        blocks.chunk_by(|one, other| of(one) == of(other)).map(|all| (of(&all[0]), all.to_vec())).collect()
    }

    /// Gives up the destinations of full merges that were cut, and all blocks in which nothing counts.
    fn settle(&mut self) {
        let mut undone = false;
        for (_, blocks) in self.by_logical() {
            let Some(last) = blocks.iter().rposition(|&block| self.is(block, Kind::Data)) else { continue };
            let older = blocks[..last].iter().any(|&block| self.may_be_data(block));
            if older && self.flaw == Flaw::TrustMerges {
                blocks[..last].iter().for_each(|&block| self.give_up(block));
                undone = true;
            } else if older && self.is_copied(blocks[last]) {
                self.give_up(blocks[last]);
                undone = true;
            }
        }
        if undone {
            self.choose();
        }
        for block in 0..self.media.blocks() {
            if self.media.used(block) > 0 && self.live[block as usize] == 0 {
                self.give_up(block);
            }
        }
    }

    fn give_up(&mut self, block: u32) {
        self.found.blocks[block as usize].given_up = true;
    }

    fn is(&self, block: u32, kind: Kind) -> bool {
        self.found.blocks[block as usize].kind == Some(kind)
    }

    fn may_be_data(&self, block: u32) -> bool {
        !self.is(block, Kind::Log) || self.ordered[block as usize]
    }

    /// Whether everything that counts in a block also exists elsewhere.
    fn is_copied(&self, block: u32) -> bool {
        let inside = |version: &&Version| self.found.block_of(version) == block;
        self.best.iter().flatten().filter(inside).all(|version| {
            self.found.versions(version.owner).iter().any(|other| {
                other.seq == version.seq && self.found.block_of(other) != block && self.found.is_kept(other)
            })
        })
    }

    /// Returns the blocks to erase.
    fn erase(&self) -> Vec<u32> {
        (0..self.media.blocks()).filter(|&block| self.found.blocks[block as usize].given_up).collect()
    }

    /// Returns the role of each block that is not erased, in the order of the blocks' last programs.
    fn roles(&self) -> Result<Vec<(u32, Role)>, String> {
        let mut roles = Vec::new();
        for (logical, blocks) in self.by_logical() {
            let taken = blocks.iter().copied().find(|&block| self.is(block, Kind::Data));
            let data = taken.or_else(|| blocks.iter().copied().find(|&block| self.may_be_data(block)));
            for block in blocks {
                let role = match self.found.blocks[block as usize].kind {
                    _ if Some(block) == data => Role::Data,
                    Some(Kind::Log) => Role::Log,
                    Some(Kind::Cooperative) => Role::Cooperative,
                    kind => {
                        return Err(format!("block {block}, {kind:?}, is one too many of block {logical}"));
                    }
                };
                roles.push((block, role));
            }
        }
        let shared = |block: &u32| self.is(*block, Kind::Shared) && self.live[*block as usize] > 0;
        roles.extend((0..self.media.blocks()).filter(shared).map(|block| (block, Role::Log)));
        roles.sort_by_key(|&(block, _)| self.found.blocks[block as usize].last);
        Ok(roles)
    }

    /// Returns a copy of the empty store, filled with what was found.
    fn fill(&self, roles: &[(u32, Role)]) -> Result<Store, String> {
        let mut store = self.store.clone();
        for &(block, role) in roles {
            let [owner, valid] = [self.logical[block as usize], self.live[block as usize]];
            let next = self.media.used(block);
            store.blocks[block as usize] = Block { role, owner, next, valid, ..Block::FREE };
            if role == Role::Data {
                store.data[owner as usize] = block;
            }
        }
        for version in self.best.iter().flatten() {
            store.slots.set(version.owner, version.page);
        }
        store.slots.count_map()?;
        for &(block, _) in roles.iter().filter(|(_, role)| *role == Role::Log) {
            store.blocks[block as usize].in_order = self.in_order(block, &store);
        }
        self.found.find_pool(self.media, &mut store.pool);
        store.police();
        Ok(store)
    }

    /// Whether a log block can become the data block once the pages it lacks are programmed behind its last
    /// page.
    fn in_order(&self, log: u32, store: &Store) -> bool {
        store.block(log).owner != NONE && self.ordered[log as usize] && store.continues(log)
    }
}

/// Rebuilds the FTL of `settings` as a power cut left it on the media, in check mode. The steps go into `work`, and the
/// changes of the media onto the tape; later requests use both in the same way.
pub(super) fn recover<L: Logs>(
    settings: &Settings,
    media: &Media,
    (tape, flaw): (&Tape, Flaw),
    work: &mut Work,
) -> Result<(Hybrid<L>, Recovery), String> {
    let empty = Store::new(settings, true);
    let mut scan = Scan::new((media, tape), &empty, flaw, work);
    let mut reads = vec![0; media.luns() as usize];
    for (trims, _) in scan.trims.iter().flatten() {
        reads[media.lun(media.block_of(trims.page)) as usize] += 1;
    }
    let map_reads = read_all(&reads, true, work);
    scan.settle();
    erase_all(&scan.erase(), Cause::Merge, (media, tape), work);
    let roles = scan.roles()?;
    let mut store = scan.fill(&roles)?;
    let found: Vec<FoundLog> = roles
        .iter()
        .filter(|(_, role)| *role == Role::Log)
        .map(|&(block, _)| FoundLog { block, born: scan.found.blocks[block as usize].first })
        .collect();
    let mut logs = L::found(&found, &store)?;
    store.keep_tape(tape, media);
    for &(block, _) in roles.iter().filter(|(_, role)| *role == Role::Cooperative) {
        work.chain();
        store.cooperative = block;
        complete(&mut logs, &mut store, work);
    }
    let recovery = Recovery::of(&scan.found, map_reads, work);
    Ok((Hybrid::assemble(settings, store, logs), recovery))
}

//! A hybrid FTL made anew from what a power cut left on flash.
//!
//! Source: none of the papers says how. Block-mapped FTLs keep in each spare area what they need to
//! rebuild their tables (Kim et al., TCE 2002, write the logical number there): here, of every page,
//! the logical page, the sequence number of its write (copies keep it), the number of the program, and
//! what its block was taken as ([`Kind`]): data block, log block of one logical block, shared log block,
//! CSM_Log. What became of a block later is not written anywhere, as a switch merge programs nothing;
//! it follows from what else there is.
//!
//! All blocks of a logical block lie on one chip, and a chip runs its steps in the order in which the
//! FTL decided them: a cut leaves a prefix of these, the next one torn at most. A merge erases nothing
//! before its destination is complete, so:
//!
//! 1. Of each logical page the highest sequence number counts; of a copy and its original the one
//!    programmed last; nothing of what was trimmed after it ([`super::trims`]).
//! 2. **A full merge that was cut** left a block taken as data block beside an older one that still has
//!    pages that count. It holds nothing but copies of what is still there (if not, the older is no data
//!    block any more): it is erased, the originals count again. If it is complete, nothing in the old
//!    blocks counts.
//! 3. Blocks in which nothing counts are erased: torn ones, the sources of a merge that was complete.
//!    An erased block is so back without a copy.
//! 4. A logical block's data block is the one taken as that; else the oldest that was written in order
//!    (a switch or partial merge made it one, or it might as well: what it lacks lies in log blocks).
//! 5. What else was taken as log block is one. It is in order only if no page of the data block belongs
//!    where it has gone on already, a torn page say; else it gets a full merge when its turn comes. A full
//!    one whose merge had not begun gets it when its next page is written.
//! 6. **A cooperative switch merge under way** is completed, as COOP_Complete would: the host that announced
//!    it is gone. If a page of it was torn that has an older version, a full merge takes its place, for
//!    which the layout has its second erased block.
//!
//! Each step can be cut; what it leaves is found by the next recovery like anything else. Pages without
//! data are left out when blocks are merged, so that only a scan of all pages finds all.

use super::frame::{Hybrid, complete};
use super::logs::{FoundLog, Logs};
use super::store::{Block, Role, Store};
use crate::flash::media::{Change, Kind, Media, Page, Tape};
use crate::flash::{Cause, Work};
use crate::ftl::recovery::{Flaw, Recovery, read_all};
use crate::ftl::settings::Settings;
use crate::util::NONE;

/// A version found.
#[derive(Clone, Copy, Debug)]
struct Version {
    owner: u32,
    seq: u64,
    /// Number of the program.
    number: u64,
    page: u32,
}

/// What was found of a block.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// What it was taken as; `None`: nothing can be read.
    kind: Option<Kind>,
    /// Its logical block, unless it is shared.
    logical: u32,
    /// Numbers of its first and its last readable program.
    born: u64,
    last: u64,
    /// Every page holds the logical page of its offset.
    ordered: bool,
    /// Pages that count.
    live: u32,
    /// It is to be erased.
    given_up: bool,
}

/// What was found on flash.
struct Scan<'a> {
    media: &'a Media,
    store: &'a Store,
    flaw: Flaw,
    blocks: Vec<Seen>,
    /// By owner, the one that counts first.
    versions: Vec<Version>,
    /// Where each owner's versions begin, and the last one's end.
    starts: Vec<u32>,
    /// Of each logical block: since when which offsets are void.
    trims: Vec<Option<(Version, Box<[u32]>)>>,
    /// Version of each owner that counts.
    best: Vec<Option<Version>>,
    torn: u64,
}

impl<'a> Scan<'a> {
    fn new(media: &'a Media, store: &'a Store, tape: &Tape, flaw: Flaw) -> Scan<'a> {
        let mut scan = Scan {
            media,
            store,
            flaw,
            blocks: Vec::with_capacity(media.blocks() as usize),
            versions: Vec::new(),
            starts: Vec::new(),
            trims: vec![None; store.shape.logical_blocks() as usize],
            best: vec![None; store.shape.owners() as usize],
            torn: 0,
        };
        (0..media.blocks()).for_each(|block| scan.block(block));
        match flaw {
            // In the order of pages.
            Flaw::IgnoreOrder => scan.versions.sort_by_key(|at| (at.owner, at.page)),
            _ => scan
                .versions
                .sort_by_key(|at| (at.owner, std::cmp::Reverse(at.seq), std::cmp::Reverse(at.number))),
        }
        let mut at = 0;
        for owner in 0..=store.shape.owners() {
            at += scan.versions[at..].iter().take_while(|version| version.owner < owner).count();
            scan.starts.push(at as u32);
        }
        for logical in (0..store.shape.logical_blocks()).filter(|_| flaw != Flaw::ForgetTrims) {
            scan.trims[logical as usize] = scan.trims_of(logical, tape);
        }
        scan.choose();
        scan
    }

    /// Reads the spare areas of one block.
    fn block(&mut self, block: u32) {
        let mut seen =
            Seen { kind: None, logical: NONE, born: 0, last: 0, ordered: true, live: 0, given_up: false };
        let first = block * self.media.pages_per_block();
        for page in first..first + self.media.used(block) {
            let Page::Programmed { kind, number, spares } = self.media.page(page) else {
                self.torn += u64::from(*self.media.page(page) == Page::Torn);
                continue;
            };
            if self.flaw == Flaw::SkipScan && *kind != Kind::Data {
                continue;
            }
            let spare = spares[0];
            seen.born = if seen.kind.is_none() { *number } else { seen.born };
            (seen.kind, seen.last) = (Some(*kind), *number);
            if spare.owner == NONE {
                continue;
            }
            if *kind != Kind::Shared {
                seen.logical = self.store.logical_of(spare.owner);
            }
            seen.ordered &= spare.owner < self.store.shape.lpns
                && self.store.offset(spare.owner) == self.store.offset(page);
            self.versions.push(Version { owner: spare.owner, seq: spare.seq, number: *number, page });
        }
        self.blocks.push(seen);
    }

    fn versions(&self, owner: u32) -> &[Version] {
        &self.versions[self.starts[owner as usize] as usize..self.starts[owner as usize + 1] as usize]
    }

    fn block_of(&self, version: &Version) -> u32 {
        self.media.block_of(version.page)
    }

    /// A logical block's newest trims, if anything older outside their block still needs them.
    fn trims_of(&self, logical: u32, tape: &Tape) -> Option<(Version, Box<[u32]>)> {
        let newest = self.versions(self.store.shape.lpns + logical).first()?;
        let Page::Programmed { kind, .. } = self.media.page(newest.page) else { return None };
        let bits = tape.content(*kind, newest.owner, newest.seq)?;
        Some((*newest, bits.iter().copied().collect()))
    }

    /// Whether a logical block's trims make a version void.
    fn is_void(&self, version: &Version) -> bool {
        let logical = self.store.logical_of(version.owner);
        let offset = self.store.offset(version.owner);
        self.trims[logical as usize].as_ref().is_some_and(|(trims, bits)| {
            version.seq < trims.seq && bits[(offset / 32) as usize] >> (offset % 32) & 1 != 0
        })
    }

    /// Which version of an owner counts.
    fn pick(&self, owner: u32) -> Option<Version> {
        let there = |version: &&Version| !self.blocks[self.block_of(version) as usize].given_up;
        if owner < self.store.shape.lpns {
            return self.versions(owner).iter().filter(there).find(|version| !self.is_void(version)).copied();
        }
        let logical = owner - self.store.shape.lpns;
        let (trims, _) = self.trims[logical as usize].as_ref()?;
        let first = logical * self.store.shape.pages_per_block;
        let end = (first + self.store.shape.pages_per_block).min(self.store.shape.lpns);
        let elsewhere = |version: &Version| self.block_of(version) != self.block_of(trims);
        let needed = (first..end)
            .flat_map(|lpn| self.versions(lpn))
            .any(|version| elsewhere(version) && self.is_void(version));
        needed.then_some(*trims)
    }

    /// Finds which versions count, in blocks that are not given up.
    fn choose(&mut self) {
        self.blocks.iter_mut().for_each(|seen| seen.live = 0);
        for owner in 0..self.best.len() {
            self.best[owner] = self.pick(owner as u32);
            if let Some(version) = self.best[owner] {
                let block = self.block_of(&version);
                self.blocks[block as usize].live += 1;
            }
        }
    }

    /// Blocks with pages that count, by logical block, each one's in the order of their first programs; shared
    /// ones are left out.
    fn by_logical(&self) -> Vec<(u32, Vec<u32>)> {
        let mut blocks: Vec<u32> = (0..self.media.blocks())
            .filter(|&block| self.blocks[block as usize].live > 0)
            .filter(|&block| self.blocks[block as usize].kind != Some(Kind::Shared))
            .collect();
        let key = |block: &u32| (self.blocks[*block as usize].logical, self.blocks[*block as usize].born);
        blocks.sort_by_key(key);
        let of = |block: &u32| self.blocks[*block as usize].logical;
        blocks.chunk_by(|one, other| of(one) == of(other)).map(|all| (of(&all[0]), all.to_vec())).collect()
    }

    /// Erases the destinations of full merges that were cut, and what holds nothing that counts.
    fn settle(&mut self) {
        let mut undone = false;
        for (_, blocks) in self.by_logical() {
            let Some(last) = blocks.iter().rposition(|&block| self.is(block, Kind::Data)) else { continue };
            let older = blocks[..last].iter().any(|&block| self.may_be_data(block));
            if older && self.flaw == Flaw::TrustMerges {
                blocks[..last].iter().for_each(|&block| self.blocks[block as usize].given_up = true);
                undone = true;
            } else if older && self.is_copied(blocks[last]) {
                self.blocks[blocks[last] as usize].given_up = true;
                undone = true;
            }
        }
        if undone {
            self.choose();
        }
        for block in 0..self.media.blocks() {
            let seen = &mut self.blocks[block as usize];
            seen.given_up |= self.media.used(block) > 0 && seen.live == 0;
        }
    }

    fn is(&self, block: u32, kind: Kind) -> bool {
        self.blocks[block as usize].kind == Some(kind)
    }

    fn may_be_data(&self, block: u32) -> bool {
        !self.is(block, Kind::Log) || self.blocks[block as usize].ordered
    }

    /// Whether all that counts in a block is elsewhere too.
    fn is_copied(&self, block: u32) -> bool {
        let inside = |version: &&Version| self.block_of(version) == block;
        self.best.iter().flatten().filter(inside).all(|version| {
            self.versions(version.owner).iter().any(|other| {
                let at = self.block_of(other);
                other.seq == version.seq && at != block && !self.blocks[at as usize].given_up
            })
        })
    }

    /// Blocks to erase.
    fn erase(&self) -> Vec<u32> {
        (0..self.media.blocks()).filter(|&block| self.blocks[block as usize].given_up).collect()
    }

    /// What each block that is not erased is now; those whose cooperative switch merge is under way last.
    fn roles(&self) -> Result<Vec<(u32, Role)>, String> {
        let mut roles = Vec::new();
        for (logical, blocks) in self.by_logical() {
            let taken = blocks.iter().copied().find(|&block| self.is(block, Kind::Data));
            let data = taken.or_else(|| blocks.iter().copied().find(|&block| self.may_be_data(block)));
            for block in blocks {
                let role = match self.blocks[block as usize].kind {
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
        let shared = |block: &u32| self.is(*block, Kind::Shared) && self.blocks[*block as usize].live > 0;
        roles.extend((0..self.media.blocks()).filter(shared).map(|block| (block, Role::Log)));
        roles.sort_by_key(|&(block, _)| self.blocks[block as usize].last);
        Ok(roles)
    }

    /// Fills the store with what was found.
    fn fill(&self, roles: &[(u32, Role)]) -> Store {
        let mut store = self.store.clone();
        for &(block, role) in roles {
            let Seen { logical, live, kind, .. } = self.blocks[block as usize];
            let owner = if kind == Some(Kind::Shared) { NONE } else { logical };
            store.blocks[block as usize] =
                Block { role, owner, next: self.media.used(block), valid: live, ..Block::FREE };
            if role == Role::Data {
                store.data[owner as usize] = block;
            }
        }
        for version in self.best.iter().flatten() {
            store.map[version.owner as usize] = version.page;
            store.spare[version.page as usize] = version.owner;
            store.valid.set(version.page);
        }
        for &(block, _) in roles.iter().filter(|(_, role)| *role == Role::Log) {
            store.blocks[block as usize].in_order = self.in_order(block, &store);
        }
        let mut erased: Vec<u32> = (0..self.media.blocks())
            .filter(|&block| self.media.used(block) == 0 || self.blocks[block as usize].given_up)
            .collect();
        let given_up = |block: u32| self.blocks[block as usize].given_up;
        erased.sort_by_key(|&block| if given_up(block) { u64::MAX } else { self.media.erased(block) });
        store.pool.find(|block| self.media.erases(block) + u32::from(given_up(block)), &erased);
        store.remember();
        store
    }

    /// Whether a log block can become the data block with what it lacks behind its last page.
    fn in_order(&self, log: u32, store: &Store) -> bool {
        store.block(log).owner != NONE && self.blocks[log as usize].ordered && store.continues(log)
    }
}

/// The FTL of `settings` as a power cut left it on the media, in check mode. The steps go into
/// `work`, the changes of the media on the tape; later ones too.
///
/// # Errors
/// In words, if it cannot be recovered: a fault of ftlab.
pub(super) fn recover<L: Logs>(
    settings: &Settings,
    media: &Media,
    (tape, flaw): (&Tape, Flaw),
    work: &mut Work,
) -> Result<(Hybrid<L>, Recovery), String> {
    let empty = Store::new(settings, true);
    let pages = media.of_chip(0).len() as u32 * media.pages_per_block();
    let read = |chip: u32, work: &mut Work| work.read_part(chip, Cause::Map, 0);
    read_all(&vec![pages; media.chips() as usize], read, work);
    let scan_reads = work.counts().reads.iter().sum::<u64>();
    let mut scan = Scan::new(media, &empty, tape, flaw);
    let mut reads = vec![0; media.chips() as usize];
    for (trims, _) in scan.trims.iter().flatten() {
        reads[media.chip(media.block_of(trims.page)) as usize] += 1;
    }
    read_all(&reads, |chip, work| work.read(chip, Cause::Map), work);
    let map_reads = work.counts().reads.iter().sum::<u64>() - scan_reads;
    scan.settle();
    for block in scan.erase() {
        work.chain();
        work.at(block * media.pages_per_block()).erase(media.chip(block), Cause::Merge);
        tape.note(Change::Erase { block });
    }
    let roles = scan.roles()?;
    let mut store = scan.fill(&roles);
    let found: Vec<FoundLog> = roles
        .iter()
        .filter(|(_, role)| *role == Role::Log)
        .map(|&(block, _)| FoundLog { block, born: scan.blocks[block as usize].born })
        .collect();
    let mut logs = L::found(&found, &store)?;
    store.keep_tape(tape, media);
    for &(block, _) in roles.iter().filter(|(_, role)| *role == Role::Cooperative) {
        work.chain();
        store.cooperative = block;
        complete(&mut logs, &mut store, work);
    }
    let counts = work.counts();
    let recovery = Recovery {
        scan_reads,
        map_reads,
        gc_reads: counts.reads.iter().sum::<u64>() - scan_reads - map_reads,
        programs: counts.programs.iter().sum(),
        erases: counts.erases.iter().sum(),
        torn_pages: scan.torn,
    };
    Ok((Hybrid::assemble(settings, store, logs), recovery))
}

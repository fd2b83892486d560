//! Which blocks a page-mapped FTL erases after a power cut, so that it can go on.
//!
//! **Why recovery can always go on.** A LUN runs its steps in the order in which the FTL decided them, so a cut
//! leaves each LUN with a prefix of its steps, and at most the next one torn. Outside a collection every log
//! has its reserve of erased blocks. During a collection, some copies have gone into open blocks and all the
//! others into at most one block of the reserve, and the victim is intact:
//!
//! - if everything in the victim has been copied, the victim holds nothing that counts and is erased (the
//!   collection is finished); so is a block whose erase was torn;
//! - if not, the reserve block holds nothing but copies of what the victim still has: the originals count again
//!   and the reserve block is erased (the collection is undone). A trim page in that block was written for the
//!   collection, and is undone with it: the trimmed data is still in the victim.
//!
//! The erase of a superblock may be cut between its blocks. What is left of the victim counts for nothing either, but
//! it may hold trimmed data that only the collection's trim page makes void, while the originals in its erased blocks
//! are gone: it is erased, and the trim page stays in force.
//!
//! Either way there is an erased block again without any copying, so a cut during recovery leads to the same
//! situation. Torn pages and unused pages of a closed block are like invalid ones: the argument of
//! [`crate::ftl::log`] needs no more room for them, since live slots alone decide whether some closed block is
//! gainful, and a collection writes to the reserve, which is whole again.

use std::cmp::Reverse;
use std::ops::Range;

use crate::flash::Work;
use crate::flash::media::{Kind, Media, Tape};
use crate::ftl::log::{FoundBlock, Shape};
use crate::ftl::recovery::{Flaw, Found, Seen, Version};

/// How many blocks of each kind there may or must be, so that an FTL can go on after a power cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Number of erased blocks that each LUN must have, including spare and retired ones.
    reserve: u32,
    /// The largest number of blocks that may hold data on each LUN.
    data_limit: u32,
    /// The bounds for the log of translation units, if that log spans the LUNs.
    map: Option<MapRoom>,
}

/// The bounds for a log that fills one block at a time.
#[derive(Clone, Copy, Debug)]
struct MapRoom {
    /// Number of erased blocks that all LUNs together must have.
    reserve: u32,
    /// The largest number of blocks that are not erased, on all LUNs together.
    limit: u32,
    /// The largest number of blocks that the log may hold on one LUN.
    most: u32,
}

impl Room {
    /// Returns the bounds for logs of these shapes (user data, translation pages) if this many blocks of each LUN are
    /// spare or retired.
    pub(super) fn new(data: &Shape, map: &Shape, withheld: u32) -> Room {
        let whole = map.serial.then(|| MapRoom {
            reserve: map.reserve,
            limit: map.limit - map.reserve,
            most: map.limit / map.luns,
        });
        Room {
            reserve: withheld + data.reserve + if map.serial { 0 } else { map.reserve },
            data_limit: data.limit - data.reserve,
            map: whole,
        }
    }
}

/// What the scan found, and which versions count. Owners are LPNs, trim pages and, after them, translation units.
pub(super) struct Scan<'a> {
    /// What the scan found on flash.
    pub found: Found,
    media: &'a Media,
    tape: &'a Tape,
    flaw: Flaw,
    /// For each owner, the version that counts.
    best: Vec<Option<Version>>,
    /// The owners that are trim pages.
    trim_pages: Range<u32>,
    lpns_per_trim_page: u32,
    /// Blocks to erase.
    pub erase: Vec<u32>,
}

impl<'a> Scan<'a> {
    /// Reads everything on the media that logs of these shapes (user data, translation pages) may have written.
    pub(super) fn new(
        (media, tape): (&'a Media, &'a Tape),
        [data, map]: [&Shape; 2],
        flaw: Flaw,
        work: &mut Work,
    ) -> Scan<'a> {
        let owners = data.owners + map.owners;
        let log = |kind| match kind {
            Kind::Data => Some((0, data.slots_per_page)),
            _ => Some((data.owners, map.slots_per_page)),
        };
        let found = Found::scan(media, false, (owners, flaw), log, work);
        Scan {
            best: (0..owners).map(|owner| found.versions(owner).first().copied()).collect(),
            found,
            media,
            tape,
            flaw,
            trim_pages: data.owners - data.trim_pages..data.owners,
            lpns_per_trim_page: data.lpns_per_trim_page,
            erase: Vec::new(),
        }
    }

    /// Returns the owners of a log.
    fn owners(&self, kind: Kind) -> Range<usize> {
        match kind {
            Kind::Data => 0..self.trim_pages.end as usize,
            _ => self.trim_pages.end as usize..self.best.len(),
        }
    }

    /// Returns the one version of a translation unit that counts, if any does.
    pub(super) fn unit(&self, unit: u32) -> Option<Version> {
        self.best.get((self.trim_pages.end + unit) as usize).copied().flatten()
    }

    /// Sets which version of an owner counts, whatever was found.
    pub(super) fn put(&mut self, lpn: u32, version: Option<Version>) {
        self.best[lpn as usize] = version;
    }

    /// Returns the owners of a log that have data, with their slots.
    pub(super) fn map(&self, kind: Kind) -> impl Iterator<Item = (u32, u32)> + '_ {
        let versions = (0..).zip(&self.best[self.owners(kind)]);
        versions.filter_map(|(owner, version)| version.map(|at| (owner, at.slot)))
    }

    /// Returns all versions of trim pages, except for those in blocks that are given up.
    pub(super) fn trims(&self) -> impl Iterator<Item = &Version> {
        self.found.versions_of(self.trim_pages.clone()).iter().filter(|version| self.found.is_kept(version))
    }

    /// Returns, for each block, how many of its slots count or are relied on.
    fn live(&self) -> Vec<u32> {
        let mut live = vec![0; self.found.blocks.len()];
        for version in self.relied().iter().chain(self.best.iter().flatten()) {
            live[self.found.block_of(version) as usize] += 1;
        }
        live
    }

    /// Returns the LPNs that have no data because a trim page says so, each with the newest trim page that does.
    pub(super) fn trimmed(&self) -> Vec<(u32, Version)> {
        let mut trims: Vec<Version> =
            self.trims().filter(|_| self.flaw != Flaw::ForgetTrims).copied().collect();
        trims.sort_by_key(|trim| (Reverse(trim.seq), trim.slot));
        let lpns = self.trim_pages.start;
        let mut gone = vec![false; lpns as usize];
        let mut found = Vec::new();
        for trim in trims {
            let Some(bits) = self.tape.content(Kind::Data, trim.owner, trim.seq) else { continue };
            let first = (trim.owner - lpns) * self.lpns_per_trim_page;
            let end = first.saturating_add(self.lpns_per_trim_page).min(lpns);
            let none = |lpn: &u32| bits[((lpn - first) / 32) as usize] >> ((lpn - first) % 32) & 1 != 0;
            for lpn in (first..end).filter(none) {
                let older = self.best[lpn as usize].is_some_and(|written| written.seq < trim.seq);
                if older && !std::mem::replace(&mut gone[lpn as usize], true) {
                    found.push((lpn, trim));
                }
            }
        }
        found
    }

    /// Returns the versions of trim pages that are not the newest, but are still the only ones to say that some
    /// data is void: the newest version says that there was data again, which was lost in the cut.
    pub(super) fn relied(&self) -> Vec<Version> {
        let newest = |trim: &Version| self.best[trim.owner as usize].is_some_and(|at| at.seq == trim.seq);
        let mut relied: Vec<Version> =
            self.trimmed().into_iter().map(|(_, trim)| trim).filter(|trim| !newest(trim)).collect();
        relied.sort_by_key(|trim| trim.slot);
        relied.dedup_by_key(|trim| trim.slot);
        relied
    }

    /// Chooses the blocks to erase: those with nothing readable in them, then as many more as `room` requires.
    pub(super) fn make_room(&mut self, room: &Room) -> Result<(), String> {
        let media = self.media;
        for block in self.held(0..media.blocks(), None) {
            if self.found.blocks[block as usize].kind.is_none() {
                self.give_up(block);
            }
        }
        // First come blocks whose erasure loses no trim page: undoing a collection elsewhere may bring older
        // trim pages into force again.
        for last in [false, true] {
            for lun in 0..media.luns() {
                self.make_room_on(media.of_lun(lun), room, last)
                    .map_err(|what| format!("LUN {lun} has {what}, recovery needs {room:?}"))?;
            }
        }
        let Some(map) = &room.map else { return Ok(()) };
        loop {
            let [erased, _, held] = self.count(0..media.blocks());
            let may_give = |lun: u32| {
                let [erased, _, held] = self.count(media.of_lun(lun));
                erased > room.reserve && held < map.most
            };
            let enough = erased >= media.luns() * room.reserve + map.reserve && held <= map.limit;
            if enough && (0..media.luns()).any(may_give) {
                return Ok(());
            }
            self.make_one(0..media.blocks(), Some(Kind::Map), true).ok_or_else(|| {
                format!("{erased} blocks are erased, {held} hold mappings; needed: {room:?}")
            })?;
        }
    }

    /// Chooses blocks to erase until a LUN has enough erased ones; unless this is the `last` pass, the LUN may still
    /// lack some afterwards.
    fn make_room_on(&mut self, lun: Range<u32>, room: &Room, last: bool) -> Result<(), String> {
        loop {
            let [erased, data, _] = self.count(lun.clone());
            if erased >= room.reserve && data <= room.data_limit {
                return Ok(());
            }
            let kind = (data > room.data_limit).then_some(Kind::Data);
            match self.make_one(lun.clone(), kind, last) {
                Some(()) => (),
                None if last => return Err(format!("{erased} erased blocks and {data} with data")),
                None => return Ok(()),
            }
        }
    }

    /// Chooses a block to erase from a range (with `kind`, a block of that log): one with nothing that counts, or the
    /// destination of a collection that is undone. Only in the `last` pass may the block hold trim pages that do not
    /// count, or data that counts for nothing because a trim page says so. `None` if there is no such block.
    fn make_one(&mut self, among: Range<u32>, kind: Option<Kind>, last: bool) -> Option<()> {
        let live = self.live();
        let mut empty = self.held(among.clone(), kind);
        empty.retain(|&block| live[block as usize] == 0);
        let states = |block: u32| self.trims().any(|trim| self.found.block_of(trim) == block);
        let silent = empty.iter().copied().find(|&block| !states(block));
        let block = silent
            .or_else(|| self.undo(among.clone(), kind))
            .or_else(|| empty.first().copied().filter(|_| last))
            .or_else(|| last.then(|| self.void(among, kind, live)).flatten())?;
        self.give_up(block);
        Some(())
    }

    /// Returns a block of a range (with `kind`, of one log) in which trim pages elsewhere make everything void that
    /// would count. `live` says for each block how much of it would.
    fn void(&self, among: Range<u32>, kind: Option<Kind>, mut live: Vec<u32>) -> Option<u32> {
        for (lpn, _) in self.trimmed() {
            if let Some(version) = self.best[lpn as usize] {
                live[self.found.block_of(&version) as usize] -= 1;
            }
        }
        self.held(among, kind).into_iter().find(|&block| live[block as usize] == 0)
    }

    /// Returns the blocks of a range that are not erased; with `kind`, those of one log.
    fn held(&self, among: Range<u32>, kind: Option<Kind>) -> Vec<u32> {
        let blocks = &self.found.blocks;
        let of_log = |block: u32| kind.is_none() || blocks[block as usize].kind == kind;
        among.filter(|&block| !blocks[block as usize].is_erased() && of_log(block)).collect()
    }

    /// Returns how many blocks of a range are erased, how many hold data, and how many hold translation pages.
    fn count(&self, among: Range<u32>) -> [u32; 3] {
        let mut counts = [0; 3];
        for seen in &self.found.blocks[among.start as usize..among.end as usize] {
            let at = match seen.kind {
                _ if seen.is_erased() => 0,
                Some(Kind::Data) => 1,
                _ => 2,
            };
            counts[at] += 1;
        }
        counts
    }

    fn give_up(&mut self, block: u32) {
        self.found.blocks[block as usize].given_up = true;
        self.erase.push(block);
    }

    /// Undoes a collection that was cut, so that the originals count again, and returns the block of its copies: the
    /// block programmed last among those concerned, which holds nothing but copies and trim pages written for the
    /// collection. In a log of translation units that spans the LUNs, other blocks may have been programmed meanwhile.
    fn undo(&mut self, among: Range<u32>, wanted: Option<Kind>) -> Option<u32> {
        let seen = |block: &u32| self.found.blocks[*block as usize];
        let mut held = self.held(among, wanted);
        held.sort_by_key(|block| Reverse(seen(block).last));
        if wanted != Some(Kind::Map) {
            // Each log has its own last block: while one log collects in the background, the other may be written.
            let last = [Kind::Data, Kind::Map]
                .map(|log| held.iter().copied().find(|block| seen(block).kind == Some(log)));
            held.retain(|&block| last.contains(&Some(block)));
        }
        let undone = |&block: &u32| Some((block, self.others(seen(&block).kind?, block)?));
        let (block, others) = held.iter().find_map(undone)?;
        // If a trim page in the block is relied on, it is a copy or was written for the collection; in the
        // latter case, nothing that relies on it has been erased.
        for (owner, other) in others {
            self.best[owner as usize] = other;
        }
        Some(block)
    }

    /// Returns the original of everything that counts in a block; `None` if anything but a trim page has no original.
    fn others(&self, kind: Kind, block: u32) -> Option<Vec<(u32, Option<Version>)>> {
        let elsewhere =
            |version: &&Version| self.found.block_of(version) != block && self.found.is_kept(version);
        let inside = |version: &&Version| self.found.block_of(version) == block;
        let other = |version: &Version| {
            let others = self.found.versions(version.owner).iter().filter(elsewhere);
            if self.trim_pages.contains(&version.owner) {
                return Some((version.owner, others.max_by_key(|other| (other.seq, other.slot)).copied()));
            }
            let twin = others.filter(|other| other.seq == version.seq).min_by_key(|other| other.slot)?;
            Some((version.owner, Some(*twin)))
        };
        self.best[self.owners(kind)].iter().flatten().filter(inside).map(other).collect()
    }

    /// Returns the blocks of a log, in the order of their last programs.
    pub(super) fn blocks_of(&self, kind: Kind) -> Vec<FoundBlock> {
        let of_log = |seen: &Seen| !seen.is_erased() && seen.kind == Some(kind);
        let mut found: Vec<FoundBlock> = (0..)
            .zip(&self.found.blocks)
            .filter(|(_, seen)| of_log(seen))
            .map(|(block, seen)| FoundBlock { block, slc: seen.slc, used: seen.used, number: seen.last })
            .collect();
        found.sort_by_key(|found| found.number);
        found
    }
}

//! Recovery after a power cut: what is found on flash, and which of it counts.
//!
//! Nothing of the FTL's RAM is left, so every page's spare area is read, block by block up to the
//! first erased page. Of each owner the version with the highest sequence number counts; of equal
//! ones (a copy and its original) the one programmed last. What is torn cannot be read.
//!
//! **Why recovery can always go on.** A chip runs its steps in the order in which the FTL decided
//! them, so a cut leaves each chip with a prefix of its steps, the next one torn at most. Outside a
//! collection every log has its reserve of erased blocks. Within one, the copies have gone into the
//! frontier and then into at most one block of the reserve, and the victim is whole:
//!
//! - if all it held has been copied it holds nothing that counts, and is erased (the collection is
//!   finished); so is a block whose erase was torn;
//! - if not, the reserve block holds nothing but copies of what the victim still has: the originals
//!   count again and the block is erased (the collection is undone). A unit of trims in it was
//!   written for the collection, and is undone with it: what it speaks of is still in the victim.
//!
//! Either way an erased block is back without a copy made, so a cut within recovery finds the same
//! situation again. Torn pages and pages left over in a closed block are like invalid ones: the
//! argument of [`super::log`] needs no more room for them, since live slots alone decide whether
//! some closed block is gainful, and it is the reserve, whole again, that a collection writes to.

use std::collections::HashMap;
use std::ops::Range;

use super::log::{FoundBlock, Shape};
use crate::flash::media::{Kind, Media, Page, Tape};
use crate::flash::{Cause, Work};
use crate::util::NONE;

/// A defect built into recovery on purpose, to see that it is noticed. For tests alone.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flaw {
    /// None.
    #[default]
    None,
    /// Spare areas of user data are not looked at: the mapping is what the translation pages say.
    SkipScan,
    /// The first version found counts, not the newest.
    IgnoreOrder,
    /// Trims that were made durable are not looked at.
    ForgetTrims,
    /// Once recovered, the FTL takes a write with FUA for any other.
    PlainFua,
    /// Hybrid FTLs: a merge that was cut counts as complete.
    TrustMerges,
}

/// What recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Pages whose spare areas were read.
    pub scan_reads: u64,
    /// Translation pages and trims read.
    pub map_reads: u64,
    /// Other pages read, while mappings were written back.
    pub gc_reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Torn pages met.
    pub torn_pages: u64,
}

/// The version of an owner that counts.
#[derive(Clone, Copy, Debug)]
struct Version {
    seq: u64,
    slot: u32,
    /// Number of the program.
    number: u64,
}

const NOTHING: Version = Version { seq: 0, slot: NONE, number: 0 };

/// What was found of one log.
#[derive(Clone, Debug)]
pub struct Lot {
    slots_per_page: u32,
    best: Vec<Version>,
    /// Other copies of the version that counts.
    twins: HashMap<u32, Vec<Version>>,
    flaw: Flaw,
}

impl Lot {
    /// Nothing, of a log of so many owners.
    pub(crate) fn new(owners: u32, slots_per_page: u32, flaw: Flaw) -> Lot {
        Lot { slots_per_page, best: vec![NOTHING; owners as usize], twins: HashMap::new(), flaw }
    }

    fn add(&mut self, owner: u32, version: Version) {
        let Some(best) = self.best.get_mut(owner as usize) else { return };
        if best.slot == NONE || (version.seq > best.seq && self.flaw != Flaw::IgnoreOrder) {
            *best = version;
            self.twins.remove(&owner);
        } else if version.seq == best.seq {
            let twin = if version.number > best.number { std::mem::replace(best, version) } else { version };
            self.twins.entry(owner).or_default().push(twin);
        }
    }

    /// Sequence number and slot of the version of an owner that counts.
    pub(crate) fn of(&self, owner: u32) -> Option<(u64, u32)> {
        let Version { seq, slot, .. } = self.best[owner as usize];
        (slot != NONE).then_some((seq, slot))
    }

    /// Drops an owner's version.
    pub(crate) fn drop(&mut self, owner: u32) {
        self.best[owner as usize] = NOTHING;
        self.twins.remove(&owner);
    }

    /// Puts a version in place of what was found.
    pub(crate) fn put(&mut self, owner: u32, found: Option<(u64, u32)>) {
        self.drop(owner);
        if let Some((seq, slot)) = found {
            self.best[owner as usize] = Version { seq, slot, number: 0 };
        }
    }

    /// The slot of every owner.
    pub(crate) fn map(&self) -> Vec<u32> {
        self.best.iter().map(|version| version.slot).collect()
    }
}

/// A version of a unit of trims.
#[derive(Clone, Copy, Debug)]
pub struct Trim {
    /// Unit.
    pub unit: u32,
    /// Its sequence number.
    pub seq: u64,
    /// Slot it lies in.
    pub slot: u32,
}

/// What was found of a block.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Whose its readable pages are; `None`: it has none.
    kind: Option<Kind>,
    used: u32,
    /// Number of its last readable program.
    number: u64,
    erased: bool,
}

/// What an FTL cannot do without.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Erased blocks of each chip, spare and retired ones included.
    reserve: u32,
    /// Most blocks with data on each chip.
    data_limit: u32,
    /// Of a log of translation units that spans the chips.
    map: Option<MapRoom>,
}

/// What a log that fills one block at a time cannot do without.
#[derive(Clone, Copy, Debug)]
struct MapRoom {
    /// Erased blocks in all.
    reserve: u32,
    /// Most blocks in all that are not.
    limit: u32,
    /// Most blocks of one chip.
    most: u32,
}

impl Room {
    /// What logs of user data and of translation pages of these shapes need, beside so many spare and
    /// retired blocks of each chip.
    pub(crate) fn new(data: &Shape, map: &Shape, withheld: u32) -> Room {
        let whole = map.serial.then(|| MapRoom {
            reserve: map.reserve,
            limit: map.limit - map.reserve,
            most: map.limit / map.chips,
        });
        Room {
            reserve: withheld + data.reserve + if map.serial { 0 } else { map.reserve },
            data_limit: data.limit - data.reserve,
            map: whole,
        }
    }
}

/// What was found on flash.
#[derive(Clone, Debug)]
pub struct Scan {
    /// User data and trims.
    pub data: Lot,
    /// Translation pages.
    pub map: Lot,
    /// All versions of units of trims that can be read.
    pub trims: Vec<Trim>,
    /// Torn pages met.
    pub torn_pages: u64,
    blocks: Vec<Seen>,
    /// Owners of the data from here on are units of trims.
    lpns: u32,
    lpns_per_unit: u32,
    /// Blocks that recovery erases.
    erase: Vec<u32>,
    pages_per_block: u32,
}

impl Scan {
    /// Reads every spare area; owners of the data from `lpns` on are units of trims, each for so many
    /// LPNs. Later steps wait.
    pub(crate) fn new(
        media: &Media,
        [data, map]: [Lot; 2],
        (lpns, lpns_per_unit): (u32, u32),
        work: &mut Work,
    ) -> Scan {
        let mut scan = Scan {
            data,
            map,
            trims: Vec::new(),
            torn_pages: 0,
            blocks: Vec::with_capacity(media.blocks() as usize),
            lpns,
            lpns_per_unit,
            erase: Vec::new(),
            pages_per_block: media.pages_per_block(),
        };
        let mut reads = vec![0; media.chips() as usize];
        for block in 0..media.blocks() {
            reads[media.chip(block) as usize] += scan.block(media, block);
        }
        read_all(&reads, |chip, work| work.read_part(chip, Cause::Map, 0), work);
        scan
    }

    /// Looks at one block; the pages read.
    fn block(&mut self, media: &Media, block: u32) -> u32 {
        let used = media.used(block);
        let mut seen = Seen { kind: None, used, number: 0, erased: used == 0 };
        let first = block * self.pages_per_block;
        for page in first..first + used {
            let Page::Programmed { kind, number, spares } = media.page(page) else {
                self.torn_pages += 1;
                continue;
            };
            seen.kind = Some(*kind);
            seen.number = *number;
            let lot = if *kind == Kind::Data { &mut self.data } else { &mut self.map };
            for (at, spare) in spares.iter().enumerate().filter(|(_, spare)| spare.owner != NONE) {
                let slot = page * lot.slots_per_page + at as u32;
                lot.add(spare.owner, Version { seq: spare.seq, slot, number: *number });
                if *kind == Kind::Data && spare.owner >= self.lpns {
                    self.trims.push(Trim { unit: spare.owner, seq: spare.seq, slot });
                }
            }
        }
        self.blocks.push(seen);
        (used + 1).min(self.pages_per_block)
    }

    /// Slots that count or are relied on, by block.
    fn live(&self, tape: &Tape) -> Vec<u32> {
        let mut live = vec![0; self.blocks.len()];
        for trim in self.relied(tape) {
            live[(trim.slot / (self.pages_per_block * self.data.slots_per_page)) as usize] += 1;
        }
        for lot in [&self.data, &self.map] {
            for version in lot.best.iter().filter(|version| version.slot != NONE) {
                live[(version.slot / (self.pages_per_block * lot.slots_per_page)) as usize] += 1;
            }
        }
        live
    }

    /// LPNs whose data is none because a unit of trims says so, and the newest that does.
    pub(crate) fn trimmed(&self, tape: &Tape) -> Vec<(u32, Trim)> {
        let mut trims = self.trims.clone();
        trims.sort_by_key(|trim| std::cmp::Reverse(trim.seq));
        let mut gone = vec![false; self.lpns as usize];
        let mut found = Vec::new();
        for trim in trims.into_iter().filter(|_| self.data.flaw != Flaw::ForgetTrims) {
            let Some(bits) = tape.content(Kind::Data, trim.unit, trim.seq) else { continue };
            let first = (trim.unit - self.lpns) * self.lpns_per_unit;
            let end = first.saturating_add(self.lpns_per_unit).min(self.lpns);
            let none = |lpn: &u32| bits[((lpn - first) / 32) as usize] >> ((lpn - first) % 32) & 1 != 0;
            for lpn in (first..end).filter(none) {
                let older = self.data.of(lpn).is_some_and(|(written, _)| written < trim.seq);
                if older && !std::mem::replace(&mut gone[lpn as usize], true) {
                    found.push((lpn, trim));
                }
            }
        }
        found
    }

    /// Units of trims that are not the newest of theirs, and still say of some data alone that it is
    /// none: the newest says that there was data again, which the cut has taken.
    pub(crate) fn relied(&self, tape: &Tape) -> Vec<Trim> {
        let newest = |trim: &Trim| self.data.of(trim.unit).is_some_and(|(seq, _)| seq == trim.seq);
        let mut relied: Vec<Trim> =
            self.trimmed(tape).into_iter().map(|(_, trim)| trim).filter(|trim| !newest(trim)).collect();
        relied.sort_by_key(|trim| trim.slot);
        relied.dedup_by_key(|trim| trim.slot);
        relied
    }

    /// Chooses the blocks to erase: those with nothing readable in them, then as many as `room` lacks.
    ///
    /// # Errors
    /// In words, if they cannot be had without a copy.
    pub(crate) fn make_room(&mut self, media: &Media, room: &Room, tape: &Tape) -> Result<(), String> {
        for block in 0..media.blocks() {
            if !self.blocks[block as usize].erased && self.blocks[block as usize].kind.is_none() {
                self.give_up(block);
            }
        }
        // First where no unit of trims goes with a block: undoing a collection elsewhere may bring older
        // units into force again.
        for last in [false, true] {
            for chip in 0..media.chips() {
                self.make_room_on(media.of_chip(chip), room, tape, last)
                    .map_err(|what| format!("chip {chip} has {what}, recovery needs {room:?}"))?;
            }
        }
        let Some(map) = &room.map else { return Ok(()) };
        loop {
            let (erased, _, held) = self.count(0..media.blocks());
            let may_give = |chip: u32| {
                let (erased, _, held) = self.count(media.of_chip(chip));
                erased > room.reserve && held < map.most
            };
            let enough = erased >= media.chips() * room.reserve + map.reserve && held <= map.limit;
            if enough && (0..media.chips()).any(may_give) {
                return Ok(());
            }
            self.make_one(0..media.blocks(), Some(Kind::Map), tape, true).ok_or_else(|| {
                format!("{erased} blocks are erased, {held} hold mappings; needed: {room:?}")
            })?;
        }
    }

    /// Chooses as many of a chip's blocks as it lacks; it may lack some after all if it is not the `last`
    /// time.
    fn make_room_on(&mut self, chip: Range<u32>, room: &Room, tape: &Tape, last: bool) -> Result<(), String> {
        loop {
            let (erased, data, _) = self.count(chip.clone());
            if erased >= room.reserve && data <= room.data_limit {
                return Ok(());
            }
            let kind = (data > room.data_limit).then_some(Kind::Data);
            match self.make_one(chip.clone(), kind, tape, last) {
                Some(()) => (),
                None if last => return Err(format!("{erased} erased blocks and {data} with data")),
                None => return Ok(()),
            }
        }
    }

    /// Chooses one of these blocks, of a log if it matters: one with nothing that counts, or that of a
    /// collection that is undone. Only the last time may it hold units of trims that do not count.
    fn make_one(&mut self, among: Range<u32>, kind: Option<Kind>, tape: &Tape, last: bool) -> Option<()> {
        let live = self.live(tape);
        let slots = self.pages_per_block * self.data.slots_per_page;
        let empty: Vec<u32> = among
            .clone()
            .filter(|&block| {
                let seen = self.blocks[block as usize];
                !seen.erased && (kind.is_none() || seen.kind == kind) && live[block as usize] == 0
            })
            .collect();
        let states = |block: u32| self.trims.iter().any(|trim| trim.slot / slots == block);
        let silent = empty.iter().copied().find(|&block| !states(block));
        let block =
            silent.or_else(|| self.undo(among, kind)).or_else(|| empty.first().copied().filter(|_| last))?;
        self.give_up(block);
        self.trims.retain(|trim| trim.slot / slots != block);
        Some(())
    }

    /// Erased blocks, blocks of the data, and of the translation pages.
    fn count(&self, among: Range<u32>) -> (u32, u32, u32) {
        let (mut erased, mut data, mut map) = (0, 0, 0);
        for seen in &self.blocks[among.start as usize..among.end as usize] {
            match seen.kind {
                _ if seen.erased => erased += 1,
                Some(Kind::Data) => data += 1,
                _ => map += 1,
            }
        }
        (erased, data, map)
    }

    fn give_up(&mut self, block: u32) {
        self.blocks[block as usize].erased = true;
        self.erase.push(block);
    }

    /// Undoes a collection that was cut: of the blocks concerned, the one programmed last holds nothing
    /// but its copies, and units of trims that were written for it. The originals count again. In a log
    /// of translation units that spans the chips, others may have been programmed meanwhile.
    fn undo(&mut self, among: Range<u32>, wanted: Option<Kind>) -> Option<u32> {
        let mut held: Vec<u32> = among
            .filter(|&block| {
                let seen = self.blocks[block as usize];
                !seen.erased && (wanted.is_none() || seen.kind == wanted)
            })
            .collect();
        held.sort_by_key(|&block| std::cmp::Reverse(self.blocks[block as usize].number));
        if wanted != Some(Kind::Map) {
            // Each log's: while one collects in the background, the other is written.
            let kind = |block: &u32| self.blocks[*block as usize].kind;
            let last = [Kind::Data, Kind::Map]
                .map(|log| held.iter().copied().find(|block| kind(block) == Some(log)));
            held.retain(|&block| last.contains(&Some(block)));
        }
        let undone = |&block: &u32| {
            let kind = self.blocks[block as usize].kind?;
            Some((block, kind, self.others(kind, block)?))
        };
        let (block, kind, others) = held.iter().find_map(undone)?;
        let slots = self.pages_per_block * self.data.slots_per_page;
        // A unit in the block that is relied on is a copy, or was written for the collection: then
        // nothing that relies on it has been erased.
        let lot = if kind == Kind::Data { &mut self.data } else { &mut self.map };
        for (owner, other) in others {
            lot.best[owner as usize] = other;
            lot.twins.remove(&owner);
        }
        if kind == Kind::Data {
            self.trims.retain(|trim| trim.slot / slots != block);
        }
        Some(block)
    }

    /// The originals of all that counts in a block, if there are.
    fn others(&self, kind: Kind, block: u32) -> Option<Vec<(u32, Version)>> {
        let lot = if kind == Kind::Data { &self.data } else { &self.map };
        let of_block = |slot: u32| slot / (self.pages_per_block * lot.slots_per_page);
        let elsewhere = |slot| of_block(slot) != block && !self.blocks[of_block(slot) as usize].erased;
        let inside =
            |(_, version): &(usize, &Version)| version.slot != NONE && of_block(version.slot) == block;
        let other = |(owner, _): (usize, &Version)| {
            let owner = owner as u32;
            if kind == Kind::Data && owner >= self.lpns {
                let older = self.trims.iter().filter(|trim| trim.unit == owner && elsewhere(trim.slot));
                let newest = older.max_by_key(|trim| trim.seq);
                let version = |trim: &Trim| Version { seq: trim.seq, slot: trim.slot, number: 0 };
                return Some((owner, newest.map_or(NOTHING, version)));
            }
            let twin = lot.twins.get(&owner)?.iter().find(|twin| elsewhere(twin.slot))?;
            Some((owner, *twin))
        };
        lot.best.iter().enumerate().filter(inside).map(other).collect()
    }

    /// Blocks to erase.
    pub(crate) fn erase(&self) -> &[u32] {
        &self.erase
    }

    /// Erased blocks, those included that are about to be, in the order of their erasure.
    pub(crate) fn erased(&self, media: &Media) -> Vec<u32> {
        let mut erased: Vec<u32> =
            (0..media.blocks()).filter(|&block| self.blocks[block as usize].erased).collect();
        let number = |block: &u32| if self.erase.contains(block) { u64::MAX } else { media.erased(*block) };
        erased.sort_by_key(number);
        erased
    }

    /// The blocks of a log, in the order of their last programs.
    pub(crate) fn blocks_of(&self, kind: Kind) -> Vec<FoundBlock> {
        let mut found: Vec<FoundBlock> = self
            .blocks
            .iter()
            .enumerate()
            .filter(|(_, seen)| !seen.erased && seen.kind == Some(kind))
            .map(|(block, seen)| FoundBlock { block: block as u32, used: seen.used, number: seen.number })
            .collect();
        found.sort_by_key(|found| found.number);
        found
    }
}

/// Reads so many pages of each chip, the chips side by side, and lets all later chains wait for the
/// last of them: what follows needs all that is read.
pub(crate) fn read_all(reads: &[u32], read: impl Fn(u32, &mut Work), work: &mut Work) {
    let chips = || reads.iter().enumerate().filter(|(_, reads)| **reads > 0);
    for (chip, &reads) in chips() {
        work.chain();
        (1..reads).for_each(|_| read(chip as u32, work));
    }
    if chips().next().is_some() {
        work.chain();
        chips().for_each(|(chip, _)| read(chip as u32, work));
        work.fence();
    }
}

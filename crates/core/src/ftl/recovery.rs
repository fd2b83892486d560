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

use super::log::FoundBlock;
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
    pub fn new(owners: u32, slots_per_page: u32, flaw: Flaw) -> Lot {
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
    pub fn of(&self, owner: u32) -> Option<(u64, u32)> {
        let Version { seq, slot, .. } = self.best[owner as usize];
        (slot != NONE).then_some((seq, slot))
    }

    /// Drops an owner's version.
    pub fn drop(&mut self, owner: u32) {
        self.best[owner as usize] = NOTHING;
        self.twins.remove(&owner);
    }

    /// Puts a version in place of what was found.
    pub fn put(&mut self, owner: u32, found: Option<(u64, u32)>) {
        self.drop(owner);
        if let Some((seq, slot)) = found {
            self.best[owner as usize] = Version { seq, slot, number: 0 };
        }
    }

    /// The slot of every owner.
    pub fn map(&self) -> Vec<u32> {
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
    pub fn new(
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
    pub fn trimmed(&self, tape: &Tape) -> Vec<(u32, Trim)> {
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
    pub fn relied(&self, tape: &Tape) -> Vec<Trim> {
        let newest = |trim: &Trim| self.data.of(trim.unit).is_some_and(|(seq, _)| seq == trim.seq);
        let mut relied: Vec<Trim> =
            self.trimmed(tape).into_iter().map(|(_, trim)| trim).filter(|trim| !newest(trim)).collect();
        relied.sort_by_key(|trim| trim.slot);
        relied.dedup_by_key(|trim| trim.slot);
        relied
    }

    /// Chooses the blocks to erase: those with nothing readable in them, then on each chip as many as
    /// it lacks of `reserve` erased ones, or as the user data has beyond `limit`.
    ///
    /// # Errors
    /// In words, if a chip cannot have them without a copy.
    pub fn make_room(&mut self, media: &Media, reserve: u32, limit: u32, tape: &Tape) -> Result<(), String> {
        for block in 0..media.blocks() {
            if !self.blocks[block as usize].erased && self.blocks[block as usize].kind.is_none() {
                self.give_up(block);
            }
        }
        for chip in 0..media.chips() {
            loop {
                let erased = self.count(media, chip, |seen| seen.erased);
                let data = self.count(media, chip, |seen| !seen.erased && seen.kind == Some(Kind::Data));
                if erased >= reserve && data <= limit {
                    break;
                }
                let live = self.live(tape);
                let mut held = media.of_chip(chip).filter(|&block| {
                    let seen = self.blocks[block as usize];
                    !seen.erased && (data <= limit || seen.kind == Some(Kind::Data))
                });
                let empty = held.find(|&block| live[block as usize] == 0);
                let Some(block) = empty.or_else(|| self.undo(media, chip, tape)) else {
                    return Err(format!(
                        "chip {chip} has {erased} erased blocks and {data} with data; {reserve} at least and {limit} at \
                         most were promised"
                    ));
                };
                self.give_up(block);
            }
        }
        Ok(())
    }

    fn count(&self, media: &Media, chip: u32, is: impl Fn(Seen) -> bool) -> u32 {
        media.of_chip(chip).filter(|&block| is(self.blocks[block as usize])).count() as u32
    }

    fn give_up(&mut self, block: u32) {
        self.blocks[block as usize].erased = true;
        self.erase.push(block);
    }

    /// Undoes the collection that was cut on a chip: the block programmed last holds nothing but its
    /// copies, and units of trims that were written for it. The originals count again.
    fn undo(&mut self, media: &Media, chip: u32, tape: &Tape) -> Option<u32> {
        let held = media.of_chip(chip).filter(|&block| !self.blocks[block as usize].erased);
        let block = held.max_by_key(|&block| self.blocks[block as usize].number)?;
        let kind = self.blocks[block as usize].kind?;
        let others = self.others(kind, block)?;
        let slots = self.pages_per_block * self.data.slots_per_page;
        if kind == Kind::Data && self.relied(tape).iter().any(|trim| trim.slot / slots == block) {
            return None;
        }
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
    pub fn erase(&self) -> &[u32] {
        &self.erase
    }

    /// Erased blocks, those included that are about to be, in the order of their erasure.
    pub fn erased(&self, media: &Media) -> Vec<u32> {
        let mut erased: Vec<u32> =
            (0..media.blocks()).filter(|&block| self.blocks[block as usize].erased).collect();
        let number = |block: &u32| if self.erase.contains(block) { u64::MAX } else { media.erased(*block) };
        erased.sort_by_key(number);
        erased
    }

    /// The blocks of a log, in the order of their last programs.
    pub fn blocks_of(&self, kind: Kind) -> Vec<FoundBlock> {
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
pub fn read_all(reads: &[u32], read: impl Fn(u32, &mut Work), work: &mut Work) {
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

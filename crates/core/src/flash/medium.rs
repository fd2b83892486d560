//! Check mode: a medium that polices its caller, as dhara's simulated NAND does.
//!
//! It is told about every write, trim, program, copy and erase that an FTL decides on, and records what the FTL itself
//! does not: a version stamp for each slot, and how far each block is programmed. The model's contract is: "Version
//! stamp per page, no page programmed twice or out of order within its block". If power cuts are simulated, it also
//! records every program and erase, with the spare areas, on a [`Tape`].

use super::media::{Change, Kind, Media, Spare, Tape};
use super::moves::{Move, Moves};
use super::superblocks::Superblocks;
use crate::util::{Bits, NONE};

const PADDING: Spare = Spare { owner: NONE, seq: 0 };

/// The tape on which programs and erases are recorded, and the spare areas that go with them.
#[derive(Clone, Debug)]
struct Taped {
    tape: Tape,
    /// Owners whose number is below this are logical pages.
    lpns: u32,
    spares: Vec<Spare>,
    /// Sequence number of the data that is programmed next.
    next: u64,
}

/// What the flash remembers, independently of the FTL's own state.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    slots_per_block: u32,
    slots_per_page: u32,
    /// Whether pages may be skipped; even then, the pages of a block are programmed in ascending order.
    gaps: bool,
    /// Where the slots of superblocks are on the flash, if blocks are superblocks.
    superblocks: Option<Superblocks>,
    /// How many slots of each block are programmed or skipped.
    programmed: Vec<u32>,
    /// Version stamp in each slot; 0: unknown.
    stamps: Vec<u32>,
    /// Newest version of each owner; it grows with every write and trim.
    newest: Vec<u32>,
    /// The owners that have data: they were written, and not trimmed or forgotten since.
    present: Bits,
    fault: Option<String>,
    taped: Option<Box<Taped>>,
    /// The follower, if there is one; it follows the data of the owners below this number, which are logical pages.
    followed: Option<(Moves, u32)>,
}

impl Medium {
    /// Makes a medium of `blocks` erased blocks for `owners` owners; if `owners` is 0, no versions are kept.
    pub(crate) fn new(
        owners: u32,
        blocks: u32,
        (slots_per_block, slots_per_page): (u32, u32),
        gaps: bool,
        superblocks: Option<Superblocks>,
    ) -> Medium {
        Medium {
            slots_per_block,
            slots_per_page,
            gaps,
            superblocks,
            programmed: vec![0; blocks as usize],
            stamps: vec![0; if owners > 0 { (blocks * slots_per_block) as usize } else { 0 }],
            newest: vec![0; owners as usize],
            present: Bits::new(owners as usize),
            fault: None,
            taped: None,
            followed: None,
        }
    }

    /// Takes over an existing state: `map` lists each owner with the slot of its data, which becomes version 1,
    /// and `programmed` says how far each block is programmed.
    pub(crate) fn found(&mut self, map: impl Iterator<Item = (u32, u32)>, programmed: Vec<u32>) {
        self.programmed = programmed;
        for (owner, slot) in map {
            self.newest[owner as usize] = 1;
            self.present.set(owner);
            self.stamps[slot as usize] = 1;
        }
    }

    fn keeps_versions(&self) -> bool {
        !self.newest.is_empty()
    }

    fn fail(&mut self, message: String) {
        self.fault.get_or_insert(message);
    }

    /// Reports to a follower, from now on, what happens to the data of owners below `lpns`.
    pub(crate) fn follow(&mut self, moves: &Moves, lpns: u32) {
        self.followed = Some((moves.clone(), lpns));
    }

    /// Tells a follower, if there is one, what happens to an owner's data.
    fn told(&self, owner: u32, what: Move) {
        if let Some((moves, lpns)) = &self.followed
            && owner < *lpns
        {
            moves.note(what);
        }
    }

    /// Notes a new version of an owner; `old` is the slot of the previous version, or [`NONE`].
    pub(crate) fn write(&mut self, owner: u32, old: u32) {
        self.told(owner, Move::Write { old: self.on_flash(old) });
        if self.keeps_versions() {
            self.newest[owner as usize] += 1;
            self.present.set(owner);
        }
        if let Some(taped) = &mut self.taped {
            taped.next = taped.tape.next((owner < taped.lpns).then_some(owner), false);
        }
    }

    /// Notes that an owner's data was trimmed.
    pub(crate) fn trim(&mut self, owner: u32) {
        self.forget(owner);
        if let Some(taped) = &self.taped {
            taped.tape.next((owner < taped.lpns).then_some(owner), true);
        }
    }

    /// Notes that an owner's data is no longer needed.
    pub(crate) fn forget(&mut self, owner: u32) {
        if self.keeps_versions() {
            self.newest[owner as usize] += 1;
            self.present.clear(owner);
        }
    }

    /// Notes that a slot is programmed with the newest version of an owner, in a block that was taken for
    /// `kind`.
    pub(crate) fn program(&mut self, slot: u32, owner: u32, kind: Kind) {
        self.told(owner, Move::Program { slot: self.on_flash(slot), lpn: owner });
        self.advance(slot, 1);
        if self.keeps_versions() {
            self.stamps[slot as usize] = self.newest[owner as usize];
        }
        if let Some(taped) = &mut self.taped {
            taped.spares[slot as usize] = Spare { owner, seq: taped.next };
            self.page_done(slot + 1, kind);
        }
    }

    /// Notes that `count` slots from `slot` on stay unwritten because their page is programmed part-full.
    pub(crate) fn pad(&mut self, slot: u32, count: u32, kind: Kind) {
        self.advance(slot, count);
        let slots = slot as usize..(slot + count) as usize;
        if self.keeps_versions() {
            self.stamps[slots.clone()].fill(0);
        }
        if let Some(taped) = &mut self.taped {
            taped.spares[slots].fill(PADDING);
            self.page_done(slot + count, kind);
        }
    }

    fn advance(&mut self, slot: u32, count: u32) {
        let (block, offset) = (slot / self.slots_per_block, slot % self.slots_per_block);
        let due = self.programmed[block as usize];
        if offset != due && !(self.gaps && offset > due) {
            self.fail(format!("block {block}: slot {offset} programmed where slot {due} was due"));
        }
        self.programmed[block as usize] = offset + count;
    }

    fn page_done(&self, end: u32, kind: Kind) {
        let Some(taped) = &self.taped else { return };
        if end.is_multiple_of(self.slots_per_page) {
            let spares = &taped.spares[(end - self.slots_per_page) as usize..end as usize];
            let page = self.unit_on_flash(end / self.slots_per_page - 1);
            taped.tape.note(Change::Program { page, kind, spares: spares.into() });
        }
    }

    /// Notes that a block's slots before `next` are skipped, except for those already programmed.
    pub(crate) fn leave_out(&mut self, block: u32, next: u32) {
        let due = &mut self.programmed[block as usize];
        *due = next.max(*due);
    }

    /// Sets which slot of a block is due next; needed before time 0, when data is put in place in any order.
    pub(crate) fn rewind(&mut self, block: u32, next: u32) {
        self.programmed[block as usize] = next;
    }

    /// Notes that a valid slot is about to be copied; the copy will have the same version.
    pub(crate) fn copy(&mut self, slot: u32, owner: u32) {
        self.told(owner, Move::Copy { from: self.on_flash(slot) });
        if !self.keeps_versions() {
            return;
        }
        let (found, newest) = (self.stamps[slot as usize], self.newest[owner as usize]);
        if found != newest {
            self.fail(format!("slot {slot} is valid with version {found} of owner {owner}, newest {newest}"));
        }
        if let Some(taped) = &mut self.taped {
            taped.next = taped.spares[slot as usize].seq;
        }
    }

    /// Notes that a block is erased; `valid` marks the slots that the FTL considers valid.
    pub(crate) fn erase(&mut self, block: u32, valid: &Bits) {
        let first = block * self.slots_per_block;
        if let Some(slot) = valid.next_set(first, first + self.slots_per_block) {
            self.fail(format!("block {block} erased while its slot {slot} is valid"));
        }
        self.programmed[block as usize] = 0;
        match self.superblocks {
            None => self.erased(block, self.slots_per_block),
            Some(of) => {
                of.blocks(block).for_each(|block| self.erased(block, self.slots_per_block / of.luns()))
            }
        }
    }

    /// Reports that a block of the flash, which has this many slots, is erased.
    fn erased(&self, block: u32, slots: u32) {
        self.told(0, Move::Erase { first: block * slots, slots });
        if let Some(taped) = &self.taped {
            taped.tape.note(Change::Erase { block });
        }
    }

    /// Returns the slot of the flash that a slot is.
    fn on_flash(&self, slot: u32) -> u32 {
        match &self.superblocks {
            Some(of) if slot != NONE => of.slot(slot, self.slots_per_page),
            _ => slot,
        }
    }

    /// Returns the unit of the flash that a unit is.
    fn unit_on_flash(&self, unit: u32) -> u32 {
        self.superblocks.map_or(unit, |of| of.unit(unit))
    }

    /// Returns how many slots of a block are programmed or skipped.
    pub(crate) fn programmed(&self, block: u32) -> u32 {
        self.programmed[block as usize]
    }

    /// Returns the version stamp in a slot, which counts the writes and trims of the slot's owner.
    pub(crate) fn stamp(&self, slot: u32) -> u32 {
        self.stamps[slot as usize]
    }

    /// Checks that an owner resolves to its newest version, in its own slot.
    ///
    /// # Errors
    /// A message if it does not; if any operation on the flash was forbidden, a message about the first such
    /// operation.
    pub(crate) fn verify(
        &self,
        owner: u32,
        slot: u32,
        valid: &Bits,
        back: impl Fn(u32) -> u32,
    ) -> Result<(), String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if !self.keeps_versions() {
            return Ok(());
        }
        if self.present.get(owner) != (slot != NONE) {
            return Err(match slot {
                NONE => format!("the mapping of owner {owner}, which was written, is lost"),
                slot => format!("owner {owner} was never written or trimmed, and maps to slot {slot}"),
            });
        }
        if slot == NONE {
            return Ok(());
        }
        if !valid.get(slot) {
            return Err(format!("owner {owner} maps to slot {slot}, which is not valid"));
        }
        let back = back(slot);
        if back != owner {
            return Err(format!("owner {owner} maps to slot {slot}, which belongs to owner {back}"));
        }
        let (found, newest) = (self.stamps[slot as usize], self.newest[owner as usize]);
        if found != newest {
            return Err(format!("owner {owner} resolves to version {found}, newest {newest}"));
        }
        Ok(())
    }

    /// From now on, records programs and erases on a tape as the FTL decides on them. `media` must already hold the
    /// data of each owner, in the slot that `map` has for it (superblocks: [`Media::gathered`]); owners below `lpns`
    /// are logical pages.
    pub(crate) fn record(
        &mut self,
        tape: &Tape,
        lpns: u32,
        map: impl Iterator<Item = (u32, u32)>,
        media: &Media,
    ) {
        let mut spares = vec![PADDING; self.stamps.len()];
        for (owner, slot) in map {
            let seq = media.seq(self.slots_per_page, slot, owner).unwrap_or(0);
            spares[slot as usize] = Spare { owner, seq };
        }
        self.taped = Some(Box::new(Taped { tape: tape.clone(), lpns, spares, next: 0 }));
    }

    /// Returns the tape, if there is one.
    pub(crate) fn tape(&self) -> Option<&Tape> {
        self.taped.as_ref().map(|taped| &taped.tape)
    }

    /// Returns the sequence number of the version in a slot; 0 if there is no tape.
    pub(crate) fn seq(&self, slot: u32) -> u64 {
        self.taped.as_ref().map_or(0, |taped| taped.spares[slot as usize].seq)
    }

    /// Writes the programmed part of a block to the media, with each slot's version stamp as its sequence number;
    /// returns the largest of these numbers. Slots whose owner is unknown are written as padding.
    pub(crate) fn write_media(
        &self,
        (block, kind): (u32, Kind),
        owner: impl Fn(u32) -> Option<u32>,
        media: &mut Media,
    ) -> u64 {
        let spare = |slot| match (owner(slot), self.stamp(slot)) {
            (None, _) | (_, 0) => PADDING,
            (Some(owner), stamp) => Spare { owner, seq: u64::from(stamp) },
        };
        let first = block * self.slots_per_block / self.slots_per_page;
        let mut last = 0;
        for page in first..first + self.programmed(block) / self.slots_per_page {
            let slots = page * self.slots_per_page..(page + 1) * self.slots_per_page;
            let spares: Box<[Spare]> = slots.map(spare).collect();
            last = spares.iter().map(|spare| spare.seq).fold(last, u64::max);
            media.preset(self.unit_on_flash(page), kind, spares);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Erasing live data or programming a page twice is a fault; the first fault is the one reported.
    #[test]
    fn faults_of_an_ftl_are_found() {
        let found = |order: &[u32], valid: &[u32]| {
            let mut medium = Medium::new(8, 2, (4, 1), false, None);
            for &slot in order {
                medium.write(slot, NONE);
                medium.program(slot, slot, Kind::Data);
            }
            let mut bits = Bits::new(8);
            valid.iter().for_each(|&slot| bits.set(slot));
            medium.erase(0, &bits);
            medium.fault
        };
        assert_eq!(found(&[0, 1, 4], &[4]), None);
        let erased = "block 0 erased while its slot 1 is valid";
        assert_eq!(found(&[0, 1], &[1, 4]).as_deref(), Some(erased));
        let twice = "block 0: slot 0 programmed where slot 1 was due";
        assert_eq!(found(&[0, 0], &[0]).as_deref(), Some(twice));
    }
}

//! Check mode of a log: a medium that polices its caller, and the invariants of the model.
//!
//! "Version stamp per page, L2P and P2L a bijection, valid + invalid + free = all,
//! no page programmed twice or out of order within its block" (the model's contract).

use super::taped::Taped;
use super::{Block, Log, State};
use crate::util::{Bits, NONE};

/// What the medium remembers beside the log's own state.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    /// Slots programmed (or skipped) in each block, in order.
    programmed: Vec<u32>,
    /// Version stamp in each slot.
    stamps: Vec<u32>,
    /// Newest version of each owner; it grows with every write and trim.
    newest: Vec<u32>,
    /// Owners that have data: written, and not trimmed since.
    present: Bits,
    slots_per_block: u32,
    fault: Option<String>,
    /// Hears of everything too, if power cuts are simulated.
    pub taped: Option<Box<Taped>>,
}

impl Audit {
    pub(crate) fn new(owners: u32, slots: u32, slots_per_block: u32) -> Audit {
        Audit {
            programmed: vec![0; (slots / slots_per_block) as usize],
            stamps: vec![0; slots as usize],
            newest: vec![0; owners as usize],
            present: Bits::new(owners as usize),
            slots_per_block,
            fault: None,
            taped: None,
        }
    }

    /// What the medium of a log in its present state remembers, the versions counted from 1.
    pub(crate) fn of(log: &Log, slots: u32) -> Audit {
        let mut audit = Audit::new(log.shape.owners, slots, log.slots_per_block);
        for block in 0..log.blocks.len() as u32 {
            // What has no answer is left for verification to report.
            audit.programmed[block as usize] = log.programmed(block).unwrap_or(0);
        }
        for (owner, &slot) in log.map.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
            audit.newest[owner] = 1;
            audit.present.set(owner as u32);
            audit.stamps[slot as usize] = 1;
        }
        audit
    }

    fn fail(&mut self, message: String) {
        self.fault.get_or_insert(message);
    }

    /// A new version of an owner comes into being.
    pub(crate) fn write(&mut self, owner: u32) {
        self.newest[owner as usize] += 1;
        self.present.set(owner);
        if let Some(taped) = &mut self.taped {
            taped.write(owner);
        }
    }

    /// An owner's data is given up.
    pub(crate) fn trim(&mut self, owner: u32) {
        self.newest[owner as usize] += 1;
        self.present.clear(owner);
        if let Some(taped) = &self.taped {
            taped.trim(owner);
        }
    }

    /// A slot is programmed with the newest version of an owner.
    pub(crate) fn program(&mut self, slot: u32, owner: u32) {
        self.advance(slot, 1);
        self.stamps[slot as usize] = self.newest[owner as usize];
        if let Some(taped) = &mut self.taped {
            taped.place(slot, owner);
        }
    }

    /// Slots programmed (or skipped) in a block.
    pub(crate) fn programmed(&self, block: u32) -> u32 {
        self.programmed[block as usize]
    }

    /// Version stamp in a slot.
    pub(crate) fn stamp(&self, slot: u32) -> u32 {
        self.stamps[slot as usize]
    }

    /// Slots left unwritten when their page is programmed part-full.
    pub(crate) fn skip(&mut self, slot: u32, count: u32) {
        self.advance(slot, count);
        self.stamps[slot as usize..(slot + count) as usize].fill(0);
        if let Some(taped) = &mut self.taped {
            taped.skip(slot, count);
        }
    }

    fn advance(&mut self, slot: u32, count: u32) {
        let (block, offset) = (slot / self.slots_per_block, slot % self.slots_per_block);
        let at = self.programmed[block as usize];
        if at != offset {
            self.fail(format!("block {block}: slot {offset} programmed where slot {at} was due"));
        }
        self.programmed[block as usize] = offset + count;
    }

    /// A live slot is about to be copied.
    pub(crate) fn copy(&mut self, slot: u32, owner: u32) {
        let (found, newest) = (self.stamps[slot as usize], self.newest[owner as usize]);
        if found != newest {
            self.fail(format!("slot {slot} is valid with version {found} of owner {owner}, newest {newest}"));
        }
        if let Some(taped) = &mut self.taped {
            taped.copy(slot);
        }
    }

    /// A block is erased; `valid` is a slot of it that is still valid.
    pub(crate) fn erase(&mut self, block: u32, valid: Option<u32>) {
        if let Some(slot) = valid {
            self.fail(format!("block {block} erased while its slot {slot} is valid"));
        }
        self.programmed[block as usize] = 0;
        if let Some(taped) = &self.taped {
            taped.erase(block);
        }
    }
}

impl Log {
    /// Check mode: the version stamp in an owner's slot, counted in writes and trims; `None` for an
    /// owner without data, and outside check mode.
    pub(crate) fn version(&self, owner: u32) -> Option<u32> {
        let slot = self.map[owner as usize];
        (slot != NONE).then_some(())?;
        self.audit.as_ref().map(|audit| audit.stamps[slot as usize])
    }

    /// Checks one owner's mapping and the block it points into.
    ///
    /// # Errors
    /// The first broken invariant, in words. Always `Ok` outside check mode.
    pub(crate) fn verify_owner(&self, owner: u32) -> Result<(), String> {
        self.verify_mapping(owner)?;
        match self.map[owner as usize] {
            NONE => Ok(()),
            slot => self.verify_block(self.by_block.div(slot)),
        }
    }

    fn verify_mapping(&self, owner: u32) -> Result<(), String> {
        let Some(audit) = &self.audit else { return Ok(()) };
        if let Some(fault) = &audit.fault {
            return Err(fault.clone());
        }
        let slot = self.map[owner as usize];
        if audit.present.get(owner) != (slot != NONE) {
            return Err(match slot {
                NONE => format!("the mapping of owner {owner}, which was written, is lost"),
                slot => format!("owner {owner} was never written or trimmed, and maps to slot {slot}"),
            });
        }
        if slot == NONE {
            return Ok(());
        }
        if !self.valid.get(slot) {
            return Err(format!("owner {owner} maps to slot {slot}, which is not valid"));
        }
        let back = self.spare[slot as usize];
        if back != owner {
            return Err(format!("owner {owner} maps to slot {slot}, which belongs to owner {back}"));
        }
        let (found, newest) = (audit.stamps[slot as usize], audit.newest[owner as usize]);
        if found != newest {
            return Err(format!("owner {owner} resolves to version {found}, newest {newest}"));
        }
        Ok(())
    }

    /// Slots that must be programmed in a block of its state; `None` for an open block that is
    /// neither the frontier nor set aside.
    fn programmed(&self, block: u32) -> Option<u32> {
        let first = block * self.slots_per_block;
        match self.blocks[block as usize].state {
            State::Absent | State::Reserve => Some(0),
            State::Open => {
                let chip = self.by_group.div(first);
                let end = first + self.slots_per_block;
                let parked = self.by_speed.as_ref().and_then(|partly| partly.next_of(chip, first, end));
                let at = &self.chips[chip as usize];
                let nexts = [(at.next, at.end), (at.aside_next, at.aside_end)];
                let next = nexts.iter().find(|(_, its_end)| *its_end == end).map(|(next, _)| *next);
                parked.or(next).map(|next| next - first)
            }
            State::Closed | State::Begun => Some(self.slots_per_block),
        }
    }

    fn verify_block(&self, block: u32) -> Result<(), String> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let state = &self.blocks[block as usize];
        let first = block * self.slots_per_block;
        let programmed = audit.programmed[block as usize];
        let mut valid = 0;
        let mut from = first;
        while let Some(slot) = self.valid.next_set(from, first + self.slots_per_block) {
            if slot - first >= programmed {
                return Err(format!("block {block}: slot {} is valid but not programmed", slot - first));
            }
            valid += 1;
            from = slot + 1;
        }
        if valid != state.valid {
            return Err(format!("block {block} counts {} valid slots, has {valid}", state.valid));
        }
        let Some(expected) = self.programmed(block) else {
            return Err(format!("block {block} is open and neither the frontier nor set aside"));
        };
        if programmed != expected {
            return Err(format!(
                "block {block} ({:?}) has {programmed} programmed slots, not {expected}",
                state.state
            ));
        }
        Ok(())
    }

    /// Checks every owner, every block and every list.
    ///
    /// # Errors
    /// The first broken invariant, in words. Always `Ok` outside check mode.
    pub(crate) fn verify(&self) -> Result<(), String> {
        if self.audit.is_none() {
            return Ok(());
        }
        let mut mapped = 0;
        for owner in 0..self.shape.owners {
            self.verify_mapping(owner)?;
            mapped += u64::from(self.map[owner as usize] != NONE);
        }
        if self.valid.count() != mapped {
            return Err(format!("{} valid slots for {mapped} mapped owners", self.valid.count()));
        }
        for block in 0..self.blocks.len() as u32 {
            self.verify_block(block)?;
        }
        self.verify_serial()?;
        (0..self.chips.len() as u32).try_for_each(|group| self.verify_lists(group))
    }

    /// Reserve, open and closed blocks of a chip are all the log has of it, each in its list.
    fn verify_lists(&self, chip: u32) -> Result<(), String> {
        let at = &self.chips[chip as usize];
        let walk = |mut block: u32, wanted: State| {
            let mut count = 0;
            while block != NONE {
                let state = &self.blocks[block as usize];
                if state.state != wanted || self.by_group.div(block * self.slots_per_block) != chip {
                    return Err(format!("block {block} is {:?} in a list of {wanted:?} blocks", state.state));
                }
                count += 1;
                block = state.next;
            }
            Ok(count)
        };
        let reserve = walk(at.reserve, State::Reserve)?;
        // The copies of a victim that is begun may fill one of them.
        let begun = u32::from(self.is_collecting(chip));
        let whole = reserve == self.shape.reserve || reserve + begun == self.shape.reserve;
        if reserve != at.reserve_len || !whole {
            return Err(format!("chip {chip} has {reserve} reserve blocks of {}", self.shape.reserve));
        }
        let closed = self.verify_closed(chip)?;
        let open = u32::from(at.next != at.end)
            + u32::from(at.aside_next != at.aside_end)
            + self.by_speed.as_ref().map_or(0, |partly| partly.count(chip));
        if reserve + open + closed + begun != at.held {
            return Err(format!(
                "chip {chip}: {reserve} reserve + {open} open + {closed} closed + {begun} begun blocks are not \
                 the {} held",
                at.held
            ));
        }
        let of_chip = |block: &u32| self.by_group.div(block * self.slots_per_block) == chip;
        let live: u32 =
            (0..self.blocks.len() as u32).filter(of_chip).map(|b| self.blocks[b as usize].valid).sum();
        if live != at.live {
            return Err(format!("chip {chip} counts {} live slots, has {live}", at.live));
        }
        Ok(())
    }

    /// The policy holds every closed block of the chip once, under its number of valid slots.
    fn verify_closed(&self, chip: u32) -> Result<u32, String> {
        let mut held = Vec::new();
        let mut fault = None;
        self.victims.each(chip, &mut |block, filed| {
            let Block { valid, state, .. } = self.blocks[block as usize];
            let here = self.by_group.div(block * self.slots_per_block) == chip;
            if state != State::Closed || !here || filed.is_some_and(|filed| filed != valid) {
                fault.get_or_insert(format!(
                    "block {block} ({state:?}, {valid} valid) is filed for collection on chip {chip} under {filed:?}"
                ));
            }
            held.push(block);
        });
        held.sort_unstable();
        match (fault, held.windows(2).find(|pair| pair[0] == pair[1])) {
            (Some(fault), _) => Err(fault),
            (None, Some(twice)) => Err(format!("block {} is filed twice for collection", twice[0])),
            (None, None) => Ok(held.len() as u32),
        }
    }

    /// Whether a block is this log's.
    pub(crate) fn has(&self, block: u32) -> bool {
        self.blocks[block as usize].state != State::Absent
    }
}

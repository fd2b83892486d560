//! Check mode of a log: checks that the medium cannot make by itself, and the log's part in simulated power cuts.
//!
//! The model's contract is: "L2P and P2L a bijection, valid + invalid + free = all".

use super::{Block, Log, State};
use crate::flash::Cause;
use crate::flash::media::{Kind, Media};
use crate::flash::moves::Moves;
use crate::ftl::slots::Slots;
use crate::util::NONE;

impl Log {
    /// Turns check mode on; whatever the log holds now counts as correctly written.
    pub(super) fn police(&mut self, slots: &mut Slots) {
        self.keep_medium(slots, true);
    }

    fn keep_medium(&mut self, slots: &mut Slots, versions: bool) {
        // A block whose state does not say how much is programmed will be reported by verification.
        let programmed = (0..self.blocks()).map(|block| self.programmed(block).unwrap_or(0)).collect();
        let shape = (self.addresses.space.slots_per_block, self.shape.slots_per_page);
        slots.keep_medium(shape, false, programmed, versions, self.shape.superblocks);
    }

    /// Reports to a follower, from now on, what happens to the data of owners below `lpns`.
    pub(crate) fn follow(&mut self, slots: &mut Slots, moves: &Moves, lpns: u32) {
        if slots.medium().is_none() {
            self.keep_medium(slots, false);
        }
        slots.follow(moves, lpns);
    }

    /// Returns the purpose for which the log's blocks are taken.
    pub(super) fn kind(&self) -> Kind {
        if self.shape.gc == Cause::GcMap { Kind::Map } else { Kind::Data }
    }

    /// Writes to the media what the log has programmed; returns the largest sequence number.
    ///
    /// # Panics
    /// If not in check mode.
    pub(crate) fn write_media(&self, slots: &Slots, media: &mut Media) -> u64 {
        let medium = slots.medium().expect("in check mode");
        let used =
            |block: &u32| !matches!(self.blocks[*block as usize].state, State::Absent | State::Reserve);
        let owner = |slot| Some(slots.spare.of(slot));
        let write_media = |block| medium.write_media((block, self.kind_of(block)), owner, media);
        (0..self.blocks.len() as u32).filter(used).map(write_media).max().unwrap_or(0)
    }
}

impl Log {
    /// Checks one owner's mapping and the block that it points into.
    ///
    /// # Errors
    /// A message about the first broken invariant. Always `Ok` outside check mode.
    pub(crate) fn verify_owner(&self, slots: &Slots, owner: u32) -> Result<(), String> {
        slots.verify(owner)?;
        match slots.of(owner) {
            NONE => Ok(()),
            slot => self.verify_block(slots, self.addresses.block(slot)),
        }
    }

    /// Returns how many slots must be programmed in a block, judging by its state; `None` for an open block
    /// that is neither the frontier nor set aside.
    pub(super) fn programmed(&self, block: u32) -> Option<u32> {
        let first = self.addresses.first(block);
        match self.blocks[block as usize].state {
            State::Absent | State::Reserve => Some(0),
            State::Closed if self.blocks[block as usize].unwritten => Some(0),
            State::Open => {
                let lun = self.addresses.group(first);
                let end = self.addresses.end(block);
                let at = &self.luns[lun as usize];
                let frontier = (at.end == end).then_some(at.next);
                let waits = self.fronts.find(lun, first, end).map(|(_, next)| next);
                waits.or(frontier).map(|next| next - first)
            }
            State::Closed | State::Begun | State::Cached => Some(self.addresses.space.slots(block)),
        }
    }

    fn verify_block(&self, slots: &Slots, block: u32) -> Result<(), String> {
        let Some(medium) = slots.medium() else { return Ok(()) };
        let state = &self.blocks[block as usize];
        let first = self.addresses.first(block);
        let programmed = medium.programmed(block);
        let mut valid = 0;
        for slot in slots.valid.members(first, self.addresses.first(block + 1)) {
            if slot - first >= programmed {
                return Err(format!("block {block}: slot {} is valid but not programmed", slot - first));
            }
            valid += 1;
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
        if programmed == 0 && self.relies(block) {
            return Err(format!("block {block} is erased, but a trim page is due before it may be"));
        }
        Ok(())
    }

    /// Checks every owner, every block and every list.
    ///
    /// # Errors
    /// A message about the first broken invariant. Always `Ok` outside check mode.
    pub(crate) fn verify(&self, slots: &Slots) -> Result<(), String> {
        if slots.medium().is_none() {
            return Ok(());
        }
        (0..self.shape.owners).try_for_each(|owner| slots.verify(owner))?;
        slots.verify_count()?;
        for block in 0..self.blocks.len() as u32 {
            self.verify_block(slots, block)?;
        }
        self.verify_serial()?;
        (0..self.luns.len() as u32).try_for_each(|group| self.verify_lists(group))
    }

    /// Checks that a LUN's reserve, open and closed blocks are all the blocks that the log holds there, each in its
    /// list.
    fn verify_lists(&self, lun: u32) -> Result<(), String> {
        let at = &self.luns[lun as usize];
        let walk = |mut block: u32, wanted: State| {
            let mut count = 0;
            while block != NONE {
                let state = &self.blocks[block as usize];
                if state.state != wanted || self.addresses.group(self.addresses.first(block)) != lun {
                    return Err(format!("block {block} is {:?} in a list of {wanted:?} blocks", state.state));
                }
                count += 1;
                block = state.next;
            }
            Ok(count)
        };
        let reserve = walk(at.reserve, State::Reserve)?;
        // The copies of a victim whose collection has begun may take up one reserve block.
        let begun = u32::from(self.is_collecting(lun));
        let whole = reserve == self.shape.reserve || reserve + begun == self.shape.reserve;
        if reserve != at.reserve_len || !whole {
            return Err(format!("LUN {lun} has {reserve} reserve blocks of {}", self.shape.reserve));
        }
        let closed = self.verify_closed(lun)?;
        let open = self.open_blocks(lun);
        let (in_slc, cached) = self.verify_cached(lun)?;
        let most = match self.is_by_speed() {
            true => self.fronts.of_lun(),
            false => self.shape.fronts + u32::from(self.fronts.waits(lun, self.fronts.aside())),
        } + in_slc
            - cached;
        if open > most {
            return Err(format!("LUN {lun} has {open} open blocks"));
        }
        if reserve + open + closed + begun + cached != at.held {
            return Err(format!(
                "LUN {lun}: {reserve} reserve + {open} open + {closed} closed + {begun} begun + {cached} cached blocks \
                 are not the {} held",
                at.held
            ));
        }
        let of_lun = |block: &u32| self.addresses.group(self.addresses.first(*block)) == lun;
        let live: u32 =
            (0..self.blocks.len() as u32).filter(of_lun).map(|b| self.blocks[b as usize].valid).sum();
        if live != at.live {
            return Err(format!("LUN {lun} counts {} live slots, has {live}", at.live));
        }
        Ok(())
    }

    /// Checks that the SLC cache holds the blocks of a LUN that are in SLC mode; returns how many there are, and how many
    /// of them are full.
    fn verify_cached(&self, lun: u32) -> Result<(u32, u32), String> {
        let here = |block: &u32| self.addresses.group(self.addresses.first(*block)) == lun;
        let count = |of: &dyn Fn(&Block) -> bool| {
            (0..self.blocks()).filter(here).filter(|&block| of(&self.blocks[block as usize])).count() as u32
        };
        let found = (count(&|block| block.slc), count(&Block::is_cached));
        if found != self.cached_blocks(lun) || found.0 - found.1 > 1 {
            return Err(format!(
                "LUN {lun} has {found:?} blocks in SLC mode, not {:?}",
                self.cached_blocks(lun)
            ));
        }
        Ok(found)
    }

    /// Checks that the policy holds every closed block of the LUN once, under its number of valid slots.
    fn verify_closed(&self, lun: u32) -> Result<u32, String> {
        let mut held = Vec::new();
        let mut fault = None;
        self.victims.each(lun, &mut |block, filed| {
            let Block { valid, state, .. } = self.blocks[block as usize];
            let here = self.addresses.group(self.addresses.first(block)) == lun;
            if state != State::Closed || !here || filed.is_some_and(|filed| filed != valid) {
                fault.get_or_insert(format!(
                    "block {block} ({state:?}, {valid} valid) is filed for collection on LUN {lun} under {filed:?}"
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

    /// Whether a block belongs to this log.
    pub(crate) fn has(&self, block: u32) -> bool {
        self.blocks[block as usize].state != State::Absent
    }
}

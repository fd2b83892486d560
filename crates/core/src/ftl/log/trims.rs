//! Trims that survive a power cut.
//!
//! A trim leaves nothing on flash, and the trimmed data is still there. So the log of user data has
//! owners beside the logical pages: a *unit* for every `8 x` (bytes of a logical page) LPNs, one slot
//! that says with a bit for each of them whether it has data. The statement "no data" is about all
//! that was written before the unit, so every version of a unit that is still on flash stays true, and
//! copies keep their sequence number. A unit is written
//!
//! - at a host flush, if a page of it was trimmed since it was last written: behind all data that the
//!   flush programs, because a page that has data again has its bit cleared;
//! - when garbage collection is about to erase a slot whose page was trimmed since: an older version
//!   of the page may lie elsewhere, and must not come back in place of the one that was trimmed.
//!
//! The second case needs no room beyond the victim's: it has as many invalid slots as it causes
//! units to be written. Without trims nothing of this happens, and the units take no room.

use super::Log;
use crate::flash::media::Kind;
use crate::ftl::pool::BlockPool;
use crate::util::{Bits, NONE};
use serde::{Deserialize, Serialize};

/// What was trimmed since its unit was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trims {
    lpns: Bits,
    /// Units to be written, in the order of their first trim.
    units: Vec<u32>,
    /// Blocks with a slot that such a trim made invalid.
    blocks: Bits,
}

impl Log {
    /// Owners that are logical pages, or translation pages; those behind them are units of trims.
    pub fn pages(&self) -> u32 {
        self.shape.owners - self.shape.trim_units
    }

    /// Notes that an owner is trimmed whose data lies in a slot.
    #[cold]
    pub(super) fn note_trim(&mut self, owner: u32, slot: u32) {
        if self.shape.trim_units == 0 {
            return;
        }
        let (pages, blocks) = (self.pages(), self.blocks.len());
        let unit = pages + owner / self.shape.lpns_per_unit;
        let block = self.by_block.div(slot);
        let trims = self.trims.get_or_insert_with(|| {
            Box::new(Trims { lpns: Bits::new(pages as usize), units: Vec::new(), blocks: Bits::new(blocks) })
        });
        trims.lpns.set(owner);
        trims.blocks.set(block);
        if !trims.units.contains(&unit) {
            trims.units.push(unit);
        }
    }

    /// A unit that must be written before the trims so far survive a power cut.
    pub fn unit_due(&self) -> Option<u32> {
        self.trims.as_ref()?.units.first().copied()
    }

    /// A unit has been written.
    pub fn unit_written(&mut self, unit: u32) {
        let first = (unit - self.pages()) * self.shape.lpns_per_unit;
        let end = first.saturating_add(self.shape.lpns_per_unit).min(self.pages());
        if let Some(tape) = self.tape() {
            let mut bits = vec![0; (end - first).div_ceil(32) as usize];
            for lpn in (first..end).filter(|&lpn| self.map[lpn as usize] == NONE) {
                bits[((lpn - first) / 32) as usize] |= 1 << ((lpn - first) % 32);
            }
            tape.hold(Kind::Data, unit, self.seq(unit), bits.into());
        }
        let Some(trims) = &mut self.trims else { return };
        trims.units.retain(|&due| due != unit);
        while let Some(lpn) = trims.lpns.next_set(first, end) {
            trims.lpns.clear(lpn);
        }
        if trims.units.is_empty() {
            trims.blocks.reset();
        }
    }

    /// Writes the units without which trimmed data could come back once `victim` is erased. They go
    /// where its copies will go, and count among them (`here`).
    pub(super) fn state_trims(&mut self, chip: u32, victim: u32, here: &mut u32, pool: &mut BlockPool) {
        let Some(trims) = self.trims.as_ref().filter(|trims| trims.blocks.get(victim)) else { return };
        let first = victim * self.slots_per_block;
        let gone = |&slot: &u32| !self.valid.get(slot) && self.spare[slot as usize] < self.pages();
        let trimmed = |&owner: &u32| trims.lpns.get(owner);
        let mut units: Vec<u32> = (first..first + self.slots_per_block)
            .filter(gone)
            .map(|slot| self.spare[slot as usize])
            .filter(trimmed)
            .map(|owner| self.pages() + owner / self.shape.lpns_per_unit)
            .collect();
        units.sort_unstable();
        units.dedup();
        for unit in units {
            self.writes += 1;
            if let Some(audit) = &mut self.audit {
                audit.write(unit);
            }
            if self.map[unit as usize] != NONE {
                self.invalidate(self.map[unit as usize]);
            }
            if self.chips[chip as usize].next == self.chips[chip as usize].end {
                self.note_copies(chip, here, pool);
                self.next_for_copies(chip, pool);
            }
            self.place(chip, unit);
            *here += 1;
            self.close_if_full(chip);
            self.unit_written(unit);
        }
        self.note_copies(chip, here, pool);
    }
}

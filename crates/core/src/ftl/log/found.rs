//! A log rebuilt from what a power cut left on flash.

use super::check::police;
use super::heads::{At, Rest};
use super::{Log, Shape, State};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::settings::Settings;
use crate::ftl::slots::Slots;

/// A block of the log, as it was found after a power cut.
#[derive(Clone, Copy, Debug)]
pub struct FoundBlock {
    /// Number of the block.
    pub block: u32,
    /// Whether the block is used with one bit a cell.
    pub slc: bool,
    /// Number of leading pages that cannot be programmed any more.
    pub used: u32,
    /// Number of the block's last program.
    pub number: u64,
}

impl Log {
    /// Makes the log with these blocks, given in the order of their last programs, and this map. The reserve
    /// comes from the pool, which must have enough blocks. On each LUN the part-written block with the most room
    /// left continues as the frontier (a serial log has one frontier for all LUNs). All other blocks are closed;
    /// the room left in them is lost until they are collected.
    pub(crate) fn recover(
        shape: Shape,
        settings: &Settings,
        (slots, pool): (&mut Slots, &mut BlockPool),
        check: bool,
        found: &[FoundBlock],
        map: impl Iterator<Item = (u32, u32)>,
    ) -> Result<Log, String> {
        let mut log = Log::without_reserve(shape, settings, pool);
        if let Some(turn) = &mut log.stock.turn {
            // A serial log's reserve is taken from LUNs on which the blocks that were found leave room.
            let luns = found.iter().map(|found| found.block / pool.blocks_per_lun());
            luns.for_each(|lun| turn.held[lun as usize] += 1);
        }
        log.stock.take_reserve(pool);
        map.for_each(|(owner, slot)| _ = slots.set(owner, slot));
        log.count_map(slots)?;
        for &FoundBlock { block, slc, used, number } in found {
            let (first, end) = (log.addresses.first(block), log.addresses.end(block));
            let lun = log.addresses.group(first);
            let held = log.stock.hold(lun);
            if held > shape.limit {
                return Err(format!("LUN {lun}: a log has {held} blocks, of at most {}", shape.limit));
            }
            log.stock.writes = log.stock.writes.max(number);
            let rest = Rest { next: first + used * shape.slots_per_page, end };
            if slc {
                log.stock.cache(lun, block);
                log.stock.close(lun, block, number);
            } else if rest.left() > log.heads[At::first(lun)].left() {
                log.stock.blocks[block].state = State::Open;
                let before = std::mem::replace(&mut log.heads[At::first(lun)], rest);
                if !before.is_full() {
                    let before = log.addresses.block(before.next);
                    log.stock.close(lun, before, number);
                }
            } else {
                log.stock.close(lun, block, number);
            }
        }
        if shape.slots_per_page > 1 && !shape.serial {
            log.reset_cursors();
        }
        if check {
            police(&log, slots);
        }
        Ok(log)
    }

    /// Determines what follows from the map: which slots are valid, which owners they have, and how many there
    /// are.
    pub(super) fn count_map(&mut self, slots: &mut Slots) -> Result<(), String> {
        slots.count_map()?;
        for (_, slot) in slots.mapped() {
            let (lun, block) = (self.addresses.group(slot), self.addresses.block(slot));
            self.stock.fill(lun, block, 1);
        }
        Ok(())
    }
}

//! A log rebuilt from what a power cut left on flash.

use super::{Block, Log, Shape, State};
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
        // A serial log's reserve is taken from LUNs on which the blocks that were found leave room.
        let mut log;
        if shape.serial {
            log = Log::without_reserve(shape, settings, (slots, pool));
            log.take_reserve(pool, found);
        } else {
            log = Log::new(shape, settings, (slots, pool), false);
        }
        map.for_each(|(owner, slot)| _ = slots.set(owner, slot));
        log.count_map(slots)?;
        for &FoundBlock { block, slc, used, number } in found {
            let first = log.addresses.first(block);
            let lun = log.addresses.group(first);
            let (next, end) = (first + used * shape.slots_per_page, log.addresses.end(block));
            let valid = log.blocks[block as usize].valid;
            let at = &mut log.luns[lun as usize];
            at.held += 1;
            if at.held > shape.limit {
                return Err(format!("LUN {lun}: a log has {} blocks, of at most {}", at.held, shape.limit));
            }
            log.writes = log.writes.max(number);
            if slc {
                log.take_up_cached(lun, block, true);
                continue;
            }
            let at = &mut log.luns[lun as usize];
            let room = end - next;
            if room > at.end - at.next {
                let before = (!at.is_full()).then(|| at.end - 1);
                (at.next, at.end) = (next, end);
                log.blocks[block as usize] = Block { valid, ..Block::new(State::Open) };
                if let Some(before) = before {
                    log.close_found(lun, log.addresses.block(before), number);
                }
            } else {
                log.close_found(lun, block, number);
            }
        }
        if shape.slots_per_page > 1 && !shape.serial {
            log.reset_cursors();
        }
        if check {
            log.police(slots);
        }
        Ok(log)
    }

    /// Makes an empty log that has no blocks yet.
    pub(super) fn without_reserve(
        shape: Shape,
        settings: &Settings,
        under: (&mut Slots, &mut BlockPool),
    ) -> Log {
        let mut log = Log::new(Shape { reserve: 0, ..shape }, settings, under, false);
        log.shape = shape;
        log
    }

    /// Determines what follows from the map: which slots are valid, which owners they have, and how many there
    /// are.
    pub(super) fn count_map(&mut self, slots: &mut Slots) -> Result<(), String> {
        slots.count_map()?;
        for (_, slot) in slots.mapped() {
            self.blocks[self.addresses.block(slot) as usize].valid += 1;
            self.luns[self.addresses.group(slot) as usize].live += 1;
        }
        Ok(())
    }

    fn take_reserve(&mut self, pool: &mut BlockPool, found: &[FoundBlock]) {
        for found in found {
            let lun = self.addresses.lun(self.addresses.first(found.block));
            self.serial.as_mut().expect("a serial log").found(lun);
        }
        for _ in 0..self.shape.reserve {
            let block = self.take_block(0, pool).expect("below its limit the log finds an erased block");
            self.reserve_push(0, block);
        }
    }

    pub(super) fn close_found(&mut self, lun: u32, block: u32, now: u64) {
        let valid = self.blocks[block as usize].valid;
        self.blocks[block as usize] = Block { valid, ..Block::new(State::Closed) };
        self.victims.close(lun, block, valid, now);
    }
}

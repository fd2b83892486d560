//! The erase blocks of the flash, shared by the logs that write to them.

use crate::util::NONE;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Block {
    next: u32,
    erases: u32,
    free: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Chip {
    head: u32,
    tail: u32,
    len: u32,
    /// Erase count of the least worn block that could be moved, when that was looked at last.
    floor: u32,
}

/// Erased blocks of each chip, in the order of their erasure, and every block's erase count.
/// Blocks are numbered chip by chip.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockPool {
    blocks: Vec<Block>,
    chips: Vec<Chip>,
    blocks_per_chip: u32,
    /// Under wear levelling, by how much the erase counts of a chip may differ.
    threshold: Option<u32>,
    uneven: Option<u32>,
}

impl BlockPool {
    /// All blocks erased, with `pe_cycles` erasures behind each. With a `threshold` the pool watches
    /// for chips whose erase counts differ by more.
    pub fn new(chips: u32, blocks_per_chip: u32, pe_cycles: u32, threshold: Option<u32>) -> BlockPool {
        let mut pool = BlockPool {
            blocks: vec![
                Block { next: NONE, erases: pe_cycles, free: false };
                (chips * blocks_per_chip) as usize
            ],
            chips: vec![Chip { head: NONE, tail: NONE, len: 0, floor: pe_cycles }; chips as usize],
            blocks_per_chip,
            threshold,
            uneven: None,
        };
        (0..chips * blocks_per_chip).for_each(|block| pool.push(block));
        pool
    }

    /// Blocks on each chip.
    pub fn blocks_per_chip(&self) -> u32 {
        self.blocks_per_chip
    }

    /// Blocks in all.
    pub fn count(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Erased blocks of a chip that no log has.
    #[inline]
    pub fn free(&self, chip: u32) -> u32 {
        self.chips[chip as usize].len
    }

    /// Whether a block is erased and no log has it.
    pub fn is_free(&self, block: u32) -> bool {
        self.blocks[block as usize].free
    }

    /// Takes the block of a chip that was erased first.
    pub fn take(&mut self, chip: u32) -> Option<u32> {
        let list = &mut self.chips[chip as usize];
        let block = list.head;
        if block == NONE {
            return None;
        }
        list.head = self.blocks[block as usize].next;
        if list.head == NONE {
            list.tail = NONE;
        }
        list.len -= 1;
        self.blocks[block as usize].free = false;
        Some(block)
    }

    /// Counts an erasure.
    pub fn erased(&mut self, chip: u32, block: u32) {
        let erases = &mut self.blocks[block as usize].erases;
        *erases += 1;
        if let Some(threshold) = self.threshold
            && erases.saturating_sub(self.chips[chip as usize].floor) > threshold
        {
            self.uneven = Some(chip);
        }
    }

    /// Under wear levelling, by how much the erase counts of a chip may differ.
    pub fn threshold(&self) -> Option<u32> {
        self.threshold
    }

    /// The chip whose erase counts were last seen to differ too much.
    #[inline]
    pub fn uneven(&self) -> Option<u32> {
        self.uneven
    }

    /// Sets the erase count that the chip's blocks are measured against, and forgets what was seen.
    pub fn set_floor(&mut self, chip: u32, floor: u32) {
        self.uneven = None;
        self.chips[chip as usize].floor = floor;
    }

    /// Blocks of a chip.
    pub fn of_chip(&self, chip: u32) -> std::ops::Range<u32> {
        chip * self.blocks_per_chip..(chip + 1) * self.blocks_per_chip
    }

    /// Erasures of a block.
    #[inline]
    pub fn erase_count(&self, block: u32) -> u32 {
        self.blocks[block as usize].erases
    }

    /// Takes an erased block out of the pool and puts another into its place.
    ///
    /// # Panics
    /// If `out` is not in the pool.
    pub fn exchange(&mut self, out: u32, into: u32) {
        assert!(self.blocks[out as usize].free, "block {out} is not in the pool");
        let next = self.blocks[out as usize].next;
        let list = &mut self.chips[(out / self.blocks_per_chip) as usize];
        if list.tail == out {
            list.tail = into;
        }
        if list.head == out {
            list.head = into;
        } else {
            let mut before = list.head;
            while self.blocks[before as usize].next != out {
                before = self.blocks[before as usize].next;
            }
            self.blocks[before as usize].next = into;
        }
        self.blocks[out as usize].free = false;
        self.blocks[into as usize].free = true;
        self.blocks[into as usize].next = next;
    }

    /// Gives an erased block back.
    pub fn push(&mut self, block: u32) {
        let list = &mut self.chips[(block / self.blocks_per_chip) as usize];
        self.blocks[block as usize].next = NONE;
        self.blocks[block as usize].free = true;
        match list.tail {
            NONE => list.head = block,
            tail => self.blocks[tail as usize].next = block,
        }
        list.tail = block;
        list.len += 1;
    }

    /// Erase counts of all blocks.
    pub fn erases(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().map(|block| block.erases)
    }
}

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
}

/// Erased blocks of each chip, in the order of their erasure, and every block's erase count.
/// Blocks are numbered chip by chip.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockPool {
    blocks: Vec<Block>,
    chips: Vec<Chip>,
    blocks_per_chip: u32,
}

impl BlockPool {
    /// All blocks erased, with `pe_cycles` erasures behind each.
    pub fn new(chips: u32, blocks_per_chip: u32, pe_cycles: u32) -> BlockPool {
        let mut pool = BlockPool {
            blocks: vec![
                Block { next: NONE, erases: pe_cycles, free: false };
                (chips * blocks_per_chip) as usize
            ],
            chips: vec![Chip { head: NONE, tail: NONE, len: 0 }; chips as usize],
            blocks_per_chip,
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
    pub fn erased(&mut self, block: u32) {
        self.blocks[block as usize].erases += 1;
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

//! Where slots lie, and on which LUN each owner is at home: what follows from the geometry alone.

use std::ops::Range;

use super::Shape;
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::gc::Space;
use crate::ftl::settings::Settings;
use crate::util::{Divider, NONE};

/// How slots, pages, blocks and LUNs are numbered. A *group* is the set of LUNs that share one entry of a log's
/// `luns`: a single LUN, or all of them if one block is filled at a time.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// The shape of the log whose slots these are.
    pub(crate) shape: Shape,
    pub(super) space: Space,
    pub(super) by_block: Divider,
    by_lun: Divider,
    by_group: Divider,
    by_page: Divider,
    by_nand_page: Divider,
    pub(super) luns: Divider,
    /// LUN of each page of a cycle, if the LUNs do not take turns page by page; otherwise empty.
    cycle: Vec<u32>,
    cycle_of: Divider,
}

impl Addresses {
    pub(crate) fn new(shape: Shape, settings: &Settings, pool: &BlockPool) -> Addresses {
        let slots_per_block = shape.pages_per_block * shape.slots_per_page;
        let groups = if shape.serial { 1 } else { shape.luns };
        let blocks_per_lun = pool.count() / groups;
        let spread = settings.spread();
        let cycle = if spread.in_turn() { Vec::new() } else { spread.cycle() };
        Addresses {
            space: Space {
                luns: groups,
                blocks_per_lun,
                slots_per_block,
                slots_per_page: shape.slots_per_page,
                fronts: shape.fronts,
            },
            by_block: Divider::new(slots_per_block),
            by_lun: Divider::new(slots_per_block * pool.blocks_per_lun()),
            by_group: Divider::new(slots_per_block * blocks_per_lun),
            by_page: Divider::new(shape.slots_per_page),
            by_nand_page: Divider::new(shape.slots_per_nand_page()),
            luns: Divider::new(shape.luns),
            cycle_of: Divider::new(cycle.len().max(1) as u32),
            cycle,
            shape,
        }
    }

    /// Returns the block of a slot.
    #[inline]
    pub(crate) fn block(&self, slot: u32) -> u32 {
        self.by_block.div(slot)
    }

    /// Returns the first slot of a block.
    pub(crate) fn first(&self, block: u32) -> u32 {
        block * self.space.slots_per_block
    }

    /// Returns one past the last slot of a block.
    pub(crate) fn end(&self, block: u32) -> u32 {
        self.first(block + 1)
    }

    /// Returns the number of blocks of all LUNs.
    pub(crate) fn blocks(&self) -> u32 {
        self.space.luns * self.space.blocks_per_lun
    }

    /// Returns the LUN of a slot.
    pub(crate) fn lun(&self, slot: u32) -> u32 {
        self.by_lun.div(slot)
    }

    /// Returns the group of a slot.
    #[inline]
    pub(crate) fn group(&self, slot: u32) -> u32 {
        self.by_group.div(slot)
    }

    /// Returns the group of a block.
    pub(crate) fn group_of(&self, block: u32) -> u32 {
        self.group(self.first(block))
    }

    /// Returns the page of a slot, which is what is programmed at once: a NAND page or a word line.
    #[inline]
    pub(crate) fn page(&self, slot: u32) -> u32 {
        self.by_page.div(slot)
    }

    /// Returns the NAND page of a slot, which is what is read at once.
    pub(crate) fn nand_page(&self, slot: u32) -> u32 {
        self.by_nand_page.div(slot)
    }

    /// Returns how many slots of its page come before a slot: 0 if it is the first of the page.
    #[inline]
    pub(crate) fn in_page(&self, slot: u32) -> u32 {
        self.by_page.rem(slot)
    }

    /// Returns the LUN where static allocation puts an owner: channel first, then chip (VIOS, eq. (1)),
    /// unless another order is set.
    #[inline]
    pub(crate) fn home(&self, owner: u32) -> u32 {
        let page = self.page(owner);
        if self.cycle.is_empty() { self.luns.rem(page) } else { self.place_in_cycle(page) }
    }

    /// Returns the LUN of the flash where a slot is.
    pub(crate) fn lun_on_flash(&self, slot: u32) -> u32 {
        match &self.shape.superblocks {
            None => self.lun(slot),
            Some(of) => of.lun(self.page(slot)),
        }
    }

    /// Returns the LUN of the flash where an owner without data is read, and to which its first version is likely to
    /// go.
    pub(crate) fn home_on_flash(&self, owner: u32) -> u32 {
        let home = self.home(owner);
        match &self.shape.superblocks {
            None => home,
            Some(of) => of.luns_of(home).start + self.luns.div(self.page(owner)) % of.luns(),
        }
    }

    /// Returns the slot of the flash that a slot is.
    pub(crate) fn slot_on_flash(&self, slot: u32) -> u32 {
        match &self.shape.superblocks {
            Some(of) if slot != NONE => of.slot(slot, self.by_page.get()),
            _ => slot,
        }
    }

    /// Returns the group of a LUN of the flash, which is the LUN itself unless blocks are superblocks.
    pub(crate) fn group_on_flash(&self, lun: u32) -> u32 {
        self.shape.superblocks.map_or(lun, |of| of.group(lun))
    }

    /// Returns the LUNs of the flash whose blocks are collected together with those of this one.
    pub(crate) fn luns_with(&self, lun: u32) -> Range<u32> {
        self.shape.superblocks.map_or(lun..lun + 1, |of| of.luns_of(of.group(lun)))
    }

    /// Returns, for each block of the flash in order, the block that has it.
    pub(crate) fn blocks_on_flash(&self) -> impl Iterator<Item = u32> {
        let each = self.shape.superblocks.map_or(1, |of| of.luns());
        (0..self.blocks() * each).map(|block| self.block_on_flash(block))
    }

    /// Returns the block that has a block of the flash.
    pub(crate) fn block_on_flash(&self, block: u32) -> u32 {
        self.shape.superblocks.map_or(block, |of| of.superblock(block))
    }

    #[cold]
    fn place_in_cycle(&self, page: u32) -> u32 {
        self.cycle[self.cycle_of.rem(page) as usize]
    }
}

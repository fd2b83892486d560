//! How the media are numbered: by LUN and block or, for whoever fills superblocks, by group of LUNs and superblock.

use super::{Media, MediaBlock, Page};
use crate::flash::superblocks::Superblocks;

impl Media {
    /// Returns these media with their pages numbered by superblock. A superblock whose blocks are filled as far as no
    /// order of filling leaves them counts as full, since it cannot be filled further.
    pub(crate) fn gathered(&self, of: Superblocks) -> Media {
        let pages_per_block = self.pages_per_block * of.luns();
        let block = |superblock: u32| {
            let blocks = of.blocks(superblock).map(|block| self.blocks[block as usize]);
            MediaBlock {
                next: of.filled(blocks.clone().map(|block| block.next)).unwrap_or(pages_per_block),
                erases: blocks.clone().map(|block| block.erases).max().unwrap_or(0),
                erased: blocks.map(|block| block.erased).max().unwrap_or(0),
            }
        };
        Media {
            pages_per_block,
            pages: (0..self.pages.len() as u32).map(|page| self.page(of.unit(page)).clone()).collect(),
            blocks: (0..self.blocks() / of.luns()).map(block).collect(),
            superblocks: Some(of),
            ..self.clone()
        }
    }

    /// Returns the number of LUNs.
    pub(crate) fn luns(&self) -> u32 {
        self.blocks() / self.blocks_per_lun
    }

    /// Returns the block numbers of a LUN.
    pub(crate) fn of_lun(&self, lun: u32) -> std::ops::Range<u32> {
        lun * self.blocks_per_lun..(lun + 1) * self.blocks_per_lun
    }

    /// Returns the blocks of the flash that a block is: several if it is a superblock.
    pub(crate) fn blocks_of(&self, block: u32) -> impl Iterator<Item = u32> + use<> {
        let single = self.superblocks.is_none().then_some(block);
        single.into_iter().chain(self.superblocks.into_iter().flat_map(move |of| of.blocks(block)))
    }

    /// Returns how many pages of a block a scan reads: in each of its blocks of the flash, those up to the first erased
    /// one.
    pub(crate) fn scanned(&self, block: u32) -> u32 {
        let Some(of) = self.superblocks else { return (self.used(block) + 1).min(self.pages_per_block) };
        let luns = of.luns();
        let first = block * self.pages_per_block;
        let erased = |page: &u32| *self.page(first + page) == Page::Erased;
        let of_lun = |lun| (lun..self.pages_per_block).step_by(luns as usize);
        let rows = self.pages_per_block / luns;
        (0..luns).map(|lun| of_lun(lun).find(erased).map_or(rows, |page| page / luns + 1)).sum()
    }
}

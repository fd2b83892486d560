//! Superblocks: the blocks of one number on several LUNs, filled and erased together (`ftl.reclaim_unit`).
//!
//! Whoever fills superblocks numbers them as if each *group* of LUNs were one LUN with larger blocks. This is the
//! bijection to the flash: the unit with number `i` of a superblock is unit `i / n` of the block on the group's LUN
//! `i mod n`, where `n` is the number of LUNs in a group. Everything below the places where units are named for the
//! flash ([`super::Work`], [`super::medium`]) has the numbers of the flash.

use super::settings::Flash;
use crate::util::Divider;

/// The bijection from the units of superblocks to those of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblocks {
    /// Number of LUNs of a group.
    luns: Divider,
    blocks_per_lun: Divider,
    /// Number of units of a block, and of a superblock.
    units: u32,
    units_of_all: Divider,
    /// Number of NAND pages of a unit.
    unit_pages: Divider,
}

impl Superblocks {
    /// Makes the superblocks of `luns` blocks each; `None` if a superblock is a block.
    pub(crate) fn new(flash: &Flash, luns: u32) -> Option<Superblocks> {
        (luns > 1).then(|| Superblocks {
            luns: Divider::new(luns),
            blocks_per_lun: Divider::new(flash.blocks_per_lun() as u32),
            units: flash.units_per_block(),
            units_of_all: Divider::new(flash.units_per_block() * luns),
            unit_pages: Divider::new(flash.unit_pages()),
        })
    }

    /// Returns the number of LUNs in a group.
    pub(crate) fn luns(&self) -> u32 {
        self.luns.get()
    }

    /// Returns the group of a LUN.
    pub(crate) fn group(&self, lun: u32) -> u32 {
        self.luns.div(lun)
    }

    /// Returns the LUNs of a group.
    pub(crate) fn luns_of(&self, group: u32) -> std::ops::Range<u32> {
        group * self.luns()..(group + 1) * self.luns()
    }

    /// Returns the LUN of a unit of a superblock.
    #[inline]
    pub(crate) fn lun(&self, unit: u32) -> u32 {
        let group = self.blocks_per_lun.div(self.units_of_all.div(unit));
        group * self.luns() + self.luns.rem(unit)
    }

    /// Returns the unit of the flash that a unit of a superblock is.
    #[inline]
    pub(crate) fn unit(&self, unit: u32) -> u32 {
        let superblock = self.units_of_all.div(unit);
        let block = self.lun(unit) * self.blocks_per_lun.get() + self.blocks_per_lun.rem(superblock);
        block * self.units + self.luns.div(self.units_of_all.rem(unit))
    }

    /// Returns the LUN and the NAND page that a NAND page of a superblock is.
    #[inline]
    pub(crate) fn page(&self, page: u32) -> (u32, u32) {
        let unit = self.unit_pages.div(page);
        (self.lun(unit), self.unit(unit) * self.unit_pages.get() + self.unit_pages.rem(page))
    }

    /// Whether a unit is the first that is programmed in its superblock.
    pub(crate) fn is_first(&self, unit: u32) -> bool {
        self.units_of_all.rem(unit) == 0
    }

    /// Returns the slot of the flash that a slot of a superblock is, if a unit has `per_unit` slots.
    pub(crate) fn slot(&self, slot: u32, per_unit: u32) -> u32 {
        self.unit(slot / per_unit) * per_unit + slot % per_unit
    }

    /// Returns the superblock of a block.
    pub(crate) fn superblock(&self, block: u32) -> u32 {
        let group = self.group(self.blocks_per_lun.div(block));
        group * self.blocks_per_lun.get() + self.blocks_per_lun.rem(block)
    }

    /// Returns the blocks of a superblock, in the order of their LUNs.
    pub(crate) fn blocks(&self, superblock: u32) -> impl Iterator<Item = u32> + Clone + use<> {
        let (per_lun, at) = (self.blocks_per_lun.get(), self.blocks_per_lun.rem(superblock));
        self.luns_of(self.blocks_per_lun.div(superblock)).map(move |lun| lun * per_lun + at)
    }

    /// Returns how far a superblock is filled, in units, if its blocks, given in the order of their LUNs, are filled as
    /// far as `used` says; `None` if no order of filling leaves them so.
    pub(crate) fn filled(&self, used: impl Iterator<Item = u32> + Clone) -> Option<u32> {
        let units: u32 = used.clone().sum();
        let due = |(lun, used): (u32, u32)| used == (units + self.luns() - 1 - lun) / self.luns();
        (0..).zip(used).all(due).then_some(units)
    }
}

/// Where superblocks are, and what their programs wait for.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    pub(super) superblocks: Superblocks,
    /// Whether the first programs of a superblock wait for everything emitted before them.
    pub(super) power_safe: bool,
    /// For each LUN, the number up to which all programs and erases must finish before its next program.
    pub(super) due: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flash() -> Flash {
        Flash { channels: 6, blocks_per_plane: 5, pages_per_block: 4, ..Flash::default() }
    }

    /// Every unit of the flash is one unit of one superblock; those of a superblock lie in its blocks, and fill each of
    /// them in order.
    #[test]
    fn the_units_are_those_of_the_flash() {
        for luns in [2, 3, 6] {
            let of = Superblocks::new(&flash(), luns).expect("they are larger than blocks");
            let mut units: Vec<u32> = (0..6 * 5 * 4).map(|unit| of.unit(unit)).collect();
            for (unit, &at) in (0..).zip(&units) {
                let (superblock, block) = (unit / (4 * luns), at / 4);
                assert_eq!((of.lun(unit), of.superblock(block)), (block / 5, superblock));
                assert!(of.blocks(superblock).any(|other| other == block));
                let row = unit % (4 * luns) / luns;
                assert_eq!((at % 4, of.lun(unit) % luns), (row, unit % luns));
            }
            units.sort_unstable();
            assert_eq!(units, (0..6 * 5 * 4).collect::<Vec<_>>());
        }
        assert!(Superblocks::new(&flash(), 1).is_none());
    }

    #[test]
    fn blocks_that_no_order_of_filling_leaves_so() {
        let of = Superblocks::new(&flash(), 3).expect("they are larger than blocks");
        let filled = |used: [u32; 3]| of.filled(used.into_iter());
        assert_eq!([[0, 0, 0], [1, 0, 0], [2, 2, 1], [4, 4, 4]].map(filled), [0, 1, 5, 12].map(Some));
        assert_eq!([[0, 1, 0], [3, 1, 1], [1, 0, 1]].map(filled), [None; 3]);
    }
}

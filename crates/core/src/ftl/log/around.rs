//! What surrounds a log: the layers under it, and whoever keeps it.

use crate::flash::Work;
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::slots::Slots;

/// Whoever keeps a log, and wants to know what the log does by itself.
pub(crate) trait Keeper {
    /// Called with copies that the log has made: the slot that each is copied from, and its owner.
    fn moved(&mut self, copies: &[(u32, u32)]);
    /// Called when the log may take a block of a LUN that has no erased block left: gives one back to the pool that has
    /// been borrowed, if there is any.
    fn give_back(&mut self, _lun: u32, _pool: &mut BlockPool, _work: &mut Work) {}
}

/// The layers under a log, which several logs may share, and whoever keeps it.
pub(crate) struct Under<'a> {
    /// Which slot holds the data of which owner.
    pub(crate) slots: &'a mut Slots,
    /// The erased blocks.
    pub(crate) pool: &'a mut BlockPool,
    /// The sink for the steps.
    pub(crate) work: &'a mut Work,
    /// Whoever keeps the log; `None`: nobody wants to know.
    pub(crate) keeper: Option<&'a mut dyn Keeper>,
}

impl Under<'_> {
    /// Lends the layers for a while.
    #[inline]
    pub(crate) fn again(&mut self) -> Under<'_> {
        let keeper: Option<&mut dyn Keeper> = match &mut self.keeper {
            Some(keeper) => Some(&mut **keeper),
            None => None,
        };
        Under { slots: self.slots, pool: self.pool, work: self.work, keeper }
    }

    /// Lets whoever keeps the log give back an erased block of a LUN that has been borrowed.
    pub(super) fn ask_back(&mut self, lun: u32) {
        if let Some(keeper) = &mut self.keeper {
            keeper.give_back(lun, self.pool, self.work);
        }
    }
}

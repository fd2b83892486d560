//! Refresh: data are moved before they can no longer be read (`ftl.refresh`).
//!
//! A block is refreshed as a victim is collected, but chosen for its errors, not for what collecting it gains. What
//! [`super`] says about a victim's copies holds for any closed block: they fill the open blocks of their fronts and at
//! most one block of the reserve, and the erased block takes that one's place.

use super::{Log, State, Under};
use crate::flash::Cause;
use crate::ftl::Refreshed;

impl Log {
    /// Moves the live slots of a closed block to where a collection would move them, with cause [`Cause::Refresh`], and
    /// erases the block; `moved` is called for every moved owner.
    pub(crate) fn refresh(&mut self, under: &mut Under, block: u32, moved: &mut dyn FnMut(u32)) -> Refreshed {
        let lun = self.addresses.lun(self.addresses.first(block));
        match self.blocks[block as usize].state {
            // A log that fills one block at a time rewrites its blocks itself.
            _ if self.is_serial() => Refreshed::Needless,
            // What is in the SLC cache will be folded.
            State::Absent | State::Reserve | State::Cached => Refreshed::Needless,
            State::Open | State::Begun => Refreshed::Later,
            // Whatever was begun, or set aside, needs the reserve or comes first.
            State::Closed if self.is_collecting(lun) || self.is_short(lun) => Refreshed::Later,
            State::Closed if self.fronts.anyones(lun).is_some() => Refreshed::Later,
            State::Closed => {
                self.empty(under, lun, block, Cause::Refresh, moved);
                Refreshed::Moved
            }
        }
    }
}

//! A simulation whose driver keeps the bytes of the data.

use super::{Feed, Simulation};
use crate::flash::moves::Moves;
use crate::ftl::{Follow, Locate};

impl Simulation<'_> {
    /// Returns a record of where user data goes from now on; must be called before anything is submitted.
    pub fn follow(&mut self) -> Moves {
        let moves = Moves::default();
        self.ftl.follow(&moves);
        self.device.follow(&moves);
        if let Feed::Submitted(submitted) = &mut self.feed {
            submitted.moves = Some(moves.clone());
        }
        moves
    }

    /// Returns the slot of the user data that a logical page resolves to, or `u32::MAX` if it has no data.
    pub fn slot(&self, lpn: u32) -> u32 {
        self.ftl.slot(lpn)
    }
}

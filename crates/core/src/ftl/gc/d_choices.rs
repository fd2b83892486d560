//! d-choices: draws `ftl.gc_choices` blocks at random, with replacement, and takes the one with the
//! fewest valid slots; of equals, the one drawn first.
//!
//! Source: Van Houdt, "A mean field model for a class of garbage collection algorithms in flash-based solid state
//! drives", SIGMETRICS 2013. As in that paper, a block whose pages are all valid is collected if it is drawn ([`super`]
//! explains why this does not go on forever).

use super::bag::Bag;
use super::{Closed, Need, Own, Space, Victims};
use crate::config::section;
use crate::config::section::count;
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) const NAME: &str = "d-choices";
pub(super) const DOC: &str =
    "of ftl.gc_choices random blocks, the one with the fewest valid pages (Van Houdt, SIGMETRICS 2013)";

section! {
    /// The keys that only d-choices has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Number of blocks that ftl.gc d-choices draws for each collection.
        draws: u32 = "ftl.gc_choices", count(1, 65_536), "2";
    }
}

/// The policy `d-choices`, which draws as many blocks as its key says.
pub(super) type DChoices = Drawn<true>;

/// A policy that draws blocks at random: for each collection, either several blocks or one.
#[derive(Clone, Debug)]
pub(super) struct Drawn<const SEVERAL: bool> {
    draws: u32,
    closed: Bag,
}

impl<const SEVERAL: bool> Victims for Drawn<SEVERAL> {
    fn new(keys: &Own, space: Space, rng: Xoshiro256PlusPlus) -> Drawn<SEVERAL> {
        let draws = if SEVERAL { keys.d_choices.draws } else { 1 };
        Drawn { draws, closed: Bag::new(space, rng) }
    }

    fn close(&mut self, closed: Closed) {
        self.closed.push(closed.lun, closed.block);
    }

    fn choose(&mut self, need: Need, valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        self.closed.fewest_of(self.draws, need, valid)
    }

    fn remove(&mut self, lun: u32, block: u32, _valid: &dyn Fn(u32) -> u32) {
        self.closed.remove(lun, block);
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.closed.each(lun, visit);
    }

    fn random(&mut self) -> Option<&mut Xoshiro256PlusPlus> {
        Some(&mut self.closed.rng)
    }
}

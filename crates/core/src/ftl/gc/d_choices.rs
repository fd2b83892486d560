//! d-choices: the fewest valid slots among `ftl.gc_choices` blocks drawn at random, with
//! replacement; of equals, the one drawn first.
//!
//! Source: Van Houdt, "A mean field model for a class of garbage collection algorithms in
//! flash-based solid state drives", SIGMETRICS 2013. A block whose pages are all valid is
//! collected if it is drawn, as there (see [`super`] for the end of it).

use super::closed::Closed;
use super::{Need, Space, Victims};
use crate::config::{Ftl, Key, Kind};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

pub(super) const NAME: &str = "d-choices";
pub(super) const DOC: &str =
    "the fewest valid pages of ftl.gc_choices blocks drawn at random (Van Houdt, SIGMETRICS 2013)";
pub(super) const KEYS: &[Key] = &[Key {
    path: "ftl.gc_choices",
    kind: Kind::Count { min: 1, max: 65_536 },
    default: "2",
    words: &[],
    doc: "Blocks that ftl.gc d-choices draws for each collection.",
}];

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DChoices {
    draws: u32,
    closed: Closed,
}

impl Victims for DChoices {
    fn new(ftl: &Ftl, space: Space, rng: Xoshiro256PlusPlus) -> DChoices {
        DChoices { draws: ftl.gc_choices, closed: Closed::new(space, rng) }
    }

    fn close(&mut self, chip: u32, block: u32, _valid: u32, _now: u64) {
        self.closed.push(chip, block);
    }

    #[inline]
    fn invalidate(&mut self, _chip: u32, _block: u32, _valid: u32, _now: u64) {}

    fn choose(&mut self, need: Need, valid: impl Fn(u32) -> u32) -> u32 {
        self.closed.fewest_of(self.draws, need, valid)
    }

    fn remove(&mut self, chip: u32, block: u32, _valid: impl Fn(u32) -> u32) {
        self.closed.remove(chip, block);
    }

    fn each(&self, chip: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.closed.each(chip, visit);
    }
}

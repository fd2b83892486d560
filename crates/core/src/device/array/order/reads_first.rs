//! Reads first: a die takes the oldest read, and programs and erasures in the order of emission when there is none.

use super::{Dies, Needs, Order, Own};

pub(super) const NAME: &str = "reads-first";
pub(super) const DOC: &str = "reads before programs and erasures, however many; a read waits only for the program of its page and for \
     erasures of its block";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct ReadsFirst;

impl Order for ReadsFirst {
    const NEEDS: Needs = Needs { passes: true, ..Needs::NOTHING };

    fn new(_keys: &Own, _dies: &Dies) -> ReadsFirst {
        ReadsFirst
    }
}

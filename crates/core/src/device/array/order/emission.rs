//! The order of emission: a die takes the operation that was emitted first, with `flash.out_of_order` a limited number
//! of reads before it.

use super::{Dies, Order, Own};

pub(super) const NAME: &str = "emission";
pub(super) const DOC: &str =
    "the one that was emitted first; with flash.out_of_order, a limited number of reads before it";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Emission;

impl Order for Emission {
    fn new(_keys: &Own, _dies: &Dies) -> Emission {
        Emission
    }
}

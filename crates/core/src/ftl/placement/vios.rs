//! VIOS: the speed of blocks decides which of them takes a page.
//!
//! Source: Cui et al., NPC 2016, sections 3.1 and 3.3. The writable blocks of a LUN, partly written ones and
//! erased ones, are ordered by their detected speed. A write to a LUN for which other requests wait takes the
//! fastest block; any other write and every copy of garbage collection takes what `device.unhurried` says: the
//! slowest block, or the next one in order. A full block leaves the order; when it has been erased, it returns
//! to the order at its new place.
//!
//! **In order** means: a block is filled to its end, then comes the writable block that was erased first. Blocks
//! that hurried writes have begun are among the writable blocks.
//!
//! There are few speeds (ISPP steps), so the order is a list per speed and a word that says which speeds have a block:
//! this replaces the paper's red-black tree, with every operation in constant time. Among equally fast blocks a partly
//! written one goes first, then the one erased first; so each speed has at most one partly written block on a LUN.
//!
//! Interpretation: the paper's unhurried write takes "a slower block", which need not be the slowest one.

use super::{Needs, Own, Page, Placement, Space, Writable};
use crate::config::section;
use crate::ftl::blocks::by_speed::Unhurried;
use crate::util::NONE;

pub(super) const NAME: &str = "vios";
pub(super) const DOC: &str =
    "hurried writes go to the fastest block, others as device.unhurried says (Cui et al., NPC 2016)";

section! {
    /// The keys that only vios has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Under vios, if blocks differ in speed: the block for copies, and for writes that no request waits behind.
        unhurried: Unhurried = "device.unhurried", "in-order" not in state;
    }
}

#[derive(Clone, Debug)]
pub(super) struct Vios {
    unhurried: Unhurried,
    /// For each LUN, if blocks are taken in order: the front whose block is being filled, that block, and its
    /// place in the order.
    filled: Vec<(u32, (u32, u32))>,
}

impl Placement for Vios {
    const NEEDS: Needs = Needs { speeds: true, ..Needs::NOTHING };

    fn new(keys: &Own, space: Space) -> Vios {
        Vios { unhurried: keys.vios.unhurried, filled: vec![(0, (NONE, 0)); space.luns as usize] }
    }

    fn front(&mut self, page: Page, blocks: &(impl Writable + ?Sized)) -> u32 {
        let fronts = blocks.fronts();
        if page.hurried {
            return fronts.trailing_zeros();
        }
        if self.unhurried == Unhurried::Slowest {
            return fronts.ilog2();
        }
        let filled = &mut self.filled[page.lun as usize];
        if fronts >> filled.0 & 1 == 0 || blocks.first(filled.0) != filled.1 {
            // Each front has at most one partly written block, which was erased before the front's other
            // blocks.
            let writable = (0..u64::BITS).filter(|front| fronts >> front & 1 != 0);
            let first = writable.min_by_key(|&front| blocks.first(front).1).expect("some front has a block");
            *filled = (first, blocks.first(first));
        }
        filled.0
    }
}

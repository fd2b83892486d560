//! NOOP: arrival order, no deadline.
//!
//! The baseline of all four papers; "suggested for SSDs" in Ji et al., TCAD 2018, section V-A.

use super::{Around, Decision, Needs, Scheduler};
use crate::request::{Pool, Queue};

pub(super) const NAME: &str = "noop";
pub(super) const DOC: &str = "arrival order";
pub type Keys = ();

#[derive(Clone, Debug, Default)]
pub(super) struct Noop {
    queue: Queue,
}

impl Scheduler for Noop {
    const NEEDS: Needs = Needs::NOTHING;

    fn new(_keys: &super::Keys, _block_pages: u32) -> Noop {
        Noop::default()
    }

    #[inline]
    fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.queue.push(id, pool);
    }

    #[inline]
    fn choose(&mut self, pool: &mut Pool, _around: &mut dyn Around) -> Decision {
        self.queue.pop(pool).map_or(Decision::Nothing, Decision::One)
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        self.queue.verify(pool, |_| true)
    }
}

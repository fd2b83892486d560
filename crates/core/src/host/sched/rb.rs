//! RB: request batched.
//!
//! Source: Ji et al., TCAD 2018, section V-B. Pending requests that share a translation page form a
//! batch, dispatched whole after one read of that page; batch lists are first-in first-out, read
//! batches before write batches (section VI-A).
//!
//! Interpretation: requests that span several pages belong to the page of their first LPN; `host.alternate =
//! true` applies RoW's rule to batches, each of which counts as one dispatch. "The batch grouping operations are
//! not affected by the deadline" (section VI-B3): a late request goes with its whole batch; `host.late =
//! "request"` sends it alone.

use super::batches::{BATCHED, Batches};
use super::halves::Turn;
use super::{Around, Decision, Needs, Scheduler};
use crate::request::{Half, Pool};
use crate::util::NONE;

pub(super) const NAME: &str = "rb";
pub(super) const DOC: &str = "batches of requests that share a translation page (Ji et al., TCAD 2018)";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Rb {
    batches: Batches,
    turn: Turn,
}

impl Rb {
    fn waits(&self, half: Half) -> bool {
        self.batches.oldest(half) != NONE
    }
}

impl Scheduler for Rb {
    const NEEDS: Needs = BATCHED;

    fn new(keys: &super::Keys, _block_pages: u32) -> Rb {
        Rb { batches: Batches::new(), turn: Turn::new(keys.alternate) }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.batches.join(id, pool);
    }

    fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
        self.batches.grown(id, before, pool);
    }

    fn choose(&mut self, pool: &mut Pool, _around: &mut dyn Around) -> Decision {
        let Some(half) = self.turn.pick(self.waits(Half::Read), self.waits(Half::Write)) else {
            return Decision::Nothing;
        };
        self.turn.served(half);
        Decision::Batch(self.batches.take(self.batches.oldest(half), pool))
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        self.batches.remove(id, pool);
    }

    fn expire(&mut self, id: u32, pool: &mut Pool) -> Decision {
        Decision::Batch(self.batches.take(pool[id].host.slot, pool))
    }

    fn batches(&self) -> u64 {
        self.batches.created
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        self.batches.verify(pool, |_, _| Ok(()))
    }
}

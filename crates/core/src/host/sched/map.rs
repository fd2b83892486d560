//! MAP: mapping-cache-aware scheduling, HP for hits over RB for misses.
//!
//! Source: Ji et al., TCAD 2018, section V-B and Algorithm 1.

use super::hp::HitQueue;
use super::rb::Rb;
use super::{Around, Decision, Needs, Scheduler};
use crate::request::Pool;

pub(super) const NAME: &str = "map";
pub(super) const DOC: &str = "hp for hits, rb for misses (Ji et al., TCAD 2018)";
pub type Keys = ();

/// A hit queue over a scheduler of the misses.
#[derive(Clone, Debug)]
pub(super) struct HitsOver<S> {
    hits: HitQueue,
    misses: S,
}

/// MAP.
pub(super) type Map = HitsOver<Rb>;

impl<S: Scheduler> Scheduler for HitsOver<S> {
    const NEEDS: Needs = Needs { hits: true, ..S::NEEDS };

    fn new(keys: &super::Keys, block_pages: u32) -> HitsOver<S> {
        HitsOver { hits: HitQueue::new(keys), misses: S::new(keys, block_pages) }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        if pool[id].hit {
            self.hits.push(id, pool);
        } else {
            self.misses.admit(id, pool);
        }
    }

    fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
        if !pool[id].hit {
            self.misses.grown(id, before, pool);
        }
    }

    fn choose(&mut self, pool: &mut Pool, around: &mut impl Around) -> Decision {
        match self.hits.pop(pool) {
            Some(id) => Decision::One(id),
            None => self.misses.choose(pool, around),
        }
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        if pool[id].hit {
            self.hits.unlink(id, pool);
        } else {
            self.misses.remove(id, pool);
        }
    }

    fn batches(&self) -> u64 {
        self.misses.batches()
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        Ok(self.hits.verify(pool)? + self.misses.verify(pool)?)
    }
}

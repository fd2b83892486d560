//! HP: hit prioritized.
//!
//! Source: Ji et al., TCAD 2018, section V-A. A request whose pages are all cached when it enters
//! the pending queue goes to the hit queue, else to the miss queue; hits go before misses.
//!
//! Interpretation: the order is hit reads, hit writes, miss reads, miss writes, without RoW's alternation, since
//! section VI-A states that order without exception. `host.alternate = true` applies RoW's rule within the hit queue
//! and within the miss queue. Once a request has been classified, its class stays.

use super::halves::{Halves, Turn};
use super::row::ReadsFirst;
use super::{Around, Decision, Needs, Scheduler};
use crate::request::Pool;

pub(super) const NAME: &str = "hp";
pub(super) const DOC: &str = "first the requests whose mappings are cached (Ji et al., TCAD 2018)";
pub type Keys = ();

/// The scheduler `hp`: hits first, then misses, and reads before writes in both.
pub(super) type Hp = HitsOver<ReadsFirst<false>>;

/// The hit queue of HP, MAP and MAP+, on top of a scheduler for the misses. A request from the hit queue
/// counts as prioritized if the host has another pending request.
#[derive(Clone, Debug)]
pub(super) struct HitsOver<S> {
    hits: Halves,
    turn: Turn,
    misses: S,
}

impl<S: Scheduler> Scheduler for HitsOver<S> {
    const NEEDS: Needs = Needs { hits: true, ..S::NEEDS };

    fn new(keys: &super::Keys, block_pages: u32) -> HitsOver<S> {
        let (hits, turn) = (Halves::default(), Turn::new(keys.alternate));
        HitsOver { hits, turn, misses: S::new(keys, block_pages) }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        if pool[id].host.hit {
            self.hits.push(id, pool);
        } else {
            self.misses.admit(id, pool);
        }
    }

    fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
        if !pool[id].host.hit {
            self.misses.grown(id, before, pool);
        }
    }

    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
        let Some(id) = self.hits.pop(&mut self.turn, pool) else { return self.misses.choose(pool, around) };
        pool[id].host.prioritized = true;
        Decision::One(id)
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        if pool[id].host.hit {
            self.hits.unlink(id, pool);
        } else {
            self.misses.remove(id, pool);
        }
    }

    fn expire(&mut self, id: u32, pool: &mut Pool) -> Decision {
        if !pool[id].host.hit {
            return self.misses.expire(id, pool);
        }
        self.hits.unlink(id, pool);
        Decision::One(id)
    }

    fn batches(&self) -> u64 {
        self.misses.batches()
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        Ok(self.hits.verify(pool, |request| request.host.hit)? + self.misses.verify(pool)?)
    }
}

//! HP: hit prioritized.
//!
//! Source: Ji et al., TCAD 2018, section V-A. A request whose pages are all cached when it enters
//! the pending queue goes to the hit queue, else to the miss queue; hits go before misses.
//!
//! Read into it: the order is hit reads, hit writes, miss reads, miss writes, without RoW's
//! alternation, since section VI-A states that order without exception. `host.alternate = true`
//! applies RoW's rule within the hit queue and within the miss queue. The class is not revised.

use super::halves::{Halves, Turn};
use super::{Around, Decision, Needs, Scheduler};
use crate::request::Pool;

pub(super) const NAME: &str = "hp";
pub(super) const DOC: &str = "requests whose mappings are cached first (Ji et al., TCAD 2018)";
pub type Keys = ();

/// The hit queue of HP, MAP and MAP+: what leaves it is prioritized, if the host has another pending.
#[derive(Clone, Debug)]
pub(super) struct HitQueue {
    halves: Halves,
    turn: Turn,
}

impl HitQueue {
    pub fn new(keys: &super::Keys) -> HitQueue {
        HitQueue { halves: Halves::default(), turn: Turn::new(keys.alternate) }
    }

    pub fn push(&mut self, id: u32, pool: &mut Pool) {
        self.halves.push(id, pool);
    }

    pub fn pop(&mut self, pool: &mut Pool) -> Option<u32> {
        let id = self.halves.pop(&mut self.turn, pool)?;
        pool[id].prioritized = true;
        Some(id)
    }

    pub fn unlink(&mut self, id: u32, pool: &mut Pool) {
        self.halves.unlink(id, pool);
    }

    pub fn verify(&self, pool: &Pool) -> Result<u32, String> {
        self.halves.verify(pool, |request| request.hit)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Hp {
    hits: HitQueue,
    misses: Halves,
    turn: Turn,
}

impl Scheduler for Hp {
    const NEEDS: Needs = Needs { hits: true, deadline: true, ..Needs::NOTHING };

    fn new(keys: &super::Keys, _block_pages: u32) -> Hp {
        Hp { hits: HitQueue::new(keys), misses: Halves::default(), turn: Turn::new(keys.alternate) }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        if pool[id].hit {
            self.hits.push(id, pool);
        } else {
            self.misses.push(id, pool);
        }
    }

    fn choose(&mut self, pool: &mut Pool, _around: &mut impl Around) -> Decision {
        self.hits
            .pop(pool)
            .or_else(|| self.misses.pop(&mut self.turn, pool))
            .map_or(Decision::Nothing, Decision::One)
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        if pool[id].hit {
            self.hits.unlink(id, pool);
        } else {
            self.misses.unlink(id, pool);
        }
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        Ok(self.hits.verify(pool)? + self.misses.verify(pool, |request| !request.hit)?)
    }
}

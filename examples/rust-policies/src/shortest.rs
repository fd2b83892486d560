//! Shortest request first: chooses the request with the fewest pages; among equals, the oldest.

use std::collections::BTreeSet;

use ftlab_core::host::sched::{Around, Decision, Keys, Needs, Scheduler};
use ftlab_core::request::Pool;

/// The scheduler.
#[derive(Debug, Default)]
pub struct Shortest {
    /// Number of pages, request number and id of each pending request.
    pending: BTreeSet<(u32, u64, u32)>,
}

fn key(id: u32, pool: &Pool) -> (u32, u64, u32) {
    (pool[id].pages.pages, pool[id].id, id)
}

impl Scheduler for Shortest {
    const NEEDS: Needs = Needs { deadline: true, ..Needs::NOTHING };

    fn new(_keys: &Keys, _block_pages: u32) -> Shortest {
        Shortest::default()
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.pending.insert(key(id, pool));
    }

    fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
        self.pending.remove(&(before, pool[id].id, id));
        self.pending.insert(key(id, pool));
    }

    fn choose(&mut self, _pool: &mut Pool, _around: &mut dyn Around) -> Decision {
        self.pending.pop_first().map_or(Decision::Nothing, |(_, _, id)| Decision::One(id))
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        self.pending.remove(&key(id, pool));
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        match self.pending.iter().find(|&&(_, _, id)| !self.pending.contains(&key(id, pool))) {
            Some((pages, number, _)) => Err(format!("request {number} is filed under {pages} pages")),
            None => Ok(self.pending.len() as u32),
        }
    }
}

//! MAP+: MAP with batches sorted by density.
//!
//! Source: Ji et al., TCAD 2018, section V-C (BS), eq. (9): density = requests / pages; the densest
//! waiting batch goes first, read batches before write batches.
//!
//! Interpretation: ties go to the older batch; a request that grows by merging changes its batch's density, and so does
//! a late one that leaves without its batch (`host.late = "request"`); a batch with a single flush, which has no pages,
//! has density 0.

use std::cmp::Ordering;

use super::batches::{BATCHED, Batches};
use super::halves::Turn;
use super::hp::HitsOver;
use super::{Around, Decision, Needs, Scheduler};
use crate::request::{Half, Pool};
use crate::util::LazyHeap;

pub(super) const NAME: &str = "map+";
pub(super) const DOC: &str = "map with the densest batch first (Ji et al., TCAD 2018)";
pub type Keys = ();

/// The scheduler `map+`: hits first, then the densest batch of misses.
pub(super) type MapPlus = HitsOver<Densest>;

/// A batch's density at its last change. A denser batch compares as greater and, at equal density, an older one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Density {
    requests: u64,
    pages: u64,
    number: u64,
    slot: u32,
}

impl Ord for Density {
    fn cmp(&self, other: &Density) -> Ordering {
        (self.requests * other.pages)
            .cmp(&(other.requests * self.pages))
            .then(other.number.cmp(&self.number))
            .then(self.requests.cmp(&other.requests))
    }
}

impl PartialOrd for Density {
    fn partial_cmp(&self, other: &Density) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The batches of RB, densest first.
#[derive(Clone, Debug)]
pub(super) struct Densest {
    batches: Batches,
    heaps: [LazyHeap<Density>; 2],
    turn: Turn,
}

fn density(batches: &Batches, slot: u32) -> Density {
    let batch = batches.get(slot);
    // A batch without pages (a flush) has density 0: it goes after the writes it waits for.
    let (requests, pages) =
        if batch.pages > 0 { (u64::from(batch.queue.len()), batch.pages) } else { (0, 1) };
    Density { requests, pages, number: batch.number, slot }
}

impl Densest {
    /// Enters a batch's new density, which makes the old entry stale.
    fn enter(&mut self, slot: u32, half: Half, more: bool) {
        let Densest { batches, heaps, .. } = self;
        heaps[half as usize].push(density(batches, slot), more);
        heaps[half as usize].tidy(|entry| density(batches, entry.slot) == *entry);
    }
}

impl Scheduler for Densest {
    const NEEDS: Needs = BATCHED;

    fn new(keys: &super::Keys, _block_pages: u32) -> Densest {
        Densest { batches: Batches::new(), heaps: Default::default(), turn: Turn::new(keys.alternate) }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        let (slot, new) = self.batches.join(id, pool);
        self.enter(slot, pool[id].half(), new);
    }

    fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
        let slot = self.batches.grown(id, before, pool);
        self.enter(slot, pool[id].half(), false);
    }

    fn choose(&mut self, pool: &mut Pool, _around: &mut dyn Around) -> Decision {
        let [reads, writes] = self.heaps.each_ref().map(|heap| heap.live() > 0);
        let Some(half) = self.turn.pick(reads, writes) else { return Decision::Nothing };
        self.turn.served(half);
        let Densest { batches, heaps, .. } = self;
        let densest =
            heaps[half as usize].pop(|entry| density(batches, entry.slot) == *entry).expect("a batch waits");
        Decision::Batch(batches.take(densest.slot, pool))
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        let half = pool[id].half();
        match self.batches.remove(id, pool) {
            Some(slot) => self.enter(slot, half, false),
            None => {
                let batches = &self.batches;
                self.heaps[half as usize].forget(|entry| density(batches, entry.slot) == *entry);
            }
        }
    }

    fn expire(&mut self, id: u32, pool: &mut Pool) -> Decision {
        let (slot, half) = (pool[id].host.slot, pool[id].half());
        let queue = self.batches.take(slot, pool);
        let batches = &self.batches;
        self.heaps[half as usize].forget(|entry| density(batches, entry.slot) == *entry);
        Decision::Batch(queue)
    }

    fn batches(&self) -> u64 {
        self.batches.created
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        let Densest { batches, heaps, .. } = self;
        batches.verify(pool, |half, count| {
            heaps[half as usize].verify(count, |entry| density(batches, entry.slot) == *entry)
        })
    }
}

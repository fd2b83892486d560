//! Amphibian: smallest request first.
//!
//! Source: Mao and Wu, "Exploiting request characteristics and internal parallelism to improve SSD
//! performance", ICCD 2015, as Ji et al., TCAD 2018, section VI-A, implement it: "enhanced with the
//! RoW strategy", both queues sorted by request size.
//!
//! Interpretation: the size is in logical pages, including requests merged so far; ties are broken by
//! arrival; a flush, which has no pages, goes last. Delaying requests to chips that collect garbage would
//! have no effect on the paper's device and is left out.

use std::cmp::Reverse;

use super::halves::Turn;
use super::{Around, Decision, Needs, Scheduler};
use crate::request::Pool;
use crate::util::LazyHeap;

pub(super) const NAME: &str = "amphibian";
pub(super) const DOC: &str = "as row, smallest request first (Mao and Wu, ICCD 2015)";
pub type Keys = ();

/// The key that orders waiting requests, greatest first: pages, number and slot of a request, reversed.
type Size = Reverse<(u32, u64, u32)>;

#[derive(Clone, Debug)]
pub(super) struct Amphibian {
    heaps: [LazyHeap<Size>; 2],
    turn: Turn,
}

/// Returns the key that orders waiting requests.
fn size(id: u32, pool: &Pool) -> Size {
    let request = &pool[id];
    // A flush (no pages) is not small: it represents the writes before it.
    let pages = if request.pages.pages == 0 { u32::MAX } else { request.pages.pages };
    Reverse((pages, request.id, id))
}

fn waits(entry: &Size, pool: &Pool) -> bool {
    let id = entry.0.2;
    pool[id].host.queued && size(id, pool) == *entry
}

impl Scheduler for Amphibian {
    const NEEDS: Needs = Needs { deadline: true, ..Needs::NOTHING };

    fn new(_keys: &super::Keys, _block_pages: u32) -> Amphibian {
        Amphibian { heaps: Default::default(), turn: Turn::new(true) }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        pool[id].host.queued = true;
        self.heaps[pool[id].half() as usize].push(size(id, pool), true);
    }

    fn grown(&mut self, id: u32, _before: u32, pool: &mut Pool) {
        let heap = &mut self.heaps[pool[id].half() as usize];
        heap.push(size(id, pool), false);
        heap.tidy(|entry| waits(entry, pool));
    }

    fn choose(&mut self, pool: &mut Pool, _around: &mut dyn Around) -> Decision {
        let [reads, writes] = self.heaps.each_ref().map(|heap| heap.live() > 0);
        let Some(half) = self.turn.pick(reads, writes) else { return Decision::Nothing };
        self.turn.served(half);
        let Reverse((_, _, id)) =
            self.heaps[half as usize].pop(|entry| waits(entry, pool)).expect("one is live");
        pool[id].host.queued = false;
        Decision::One(id)
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        pool[id].host.queued = false;
        self.heaps[pool[id].half() as usize].forget(|entry| waits(entry, pool));
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        for heap in &self.heaps {
            heap.verify(heap.live(), |entry| waits(entry, pool))?;
        }
        Ok(self.heaps.iter().map(LazyHeap::live).sum::<usize>() as u32)
    }
}

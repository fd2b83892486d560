//! Amphibian: smallest request first.
//!
//! Source: Mao and Wu, "Exploiting request characteristics and internal parallelism to improve SSD
//! performance", ICCD 2015, as Ji et al., TCAD 2018, section VI-A, implement it: "enhanced with the
//! RoW strategy", both queues sorted by request size.
//!
//! Read into it: size in logical pages, ties by arrival; a flush, which has no pages, goes after all. Its delaying of requests to chips in
//! garbage collection has no object on the paper's device and is left out.

use std::cmp::Reverse;

use super::halves::Turn;
use super::{Decision, Scheduler};
use crate::config::{Host, Key};
use crate::request::{Half, Pool};
use crate::util::LazyHeap;

pub(super) const NAME: &str = "amphibian";
pub(super) const DOC: &str = "as row, smallest request first (Mao and Wu, ICCD 2015)";
pub(super) const KEYS: &[Key] = &[];

/// Pages, number of the request, slot.
type Size = Reverse<(u32, u64, u32)>;

#[derive(Clone, Debug)]
pub(super) struct Amphibian {
    heaps: [LazyHeap<Size>; 2],
    turn: Turn,
}

impl Scheduler for Amphibian {
    const BY_TRANSLATION_PAGE: bool = false;
    fn new(_host: &Host) -> Amphibian {
        Amphibian { heaps: Default::default(), turn: Turn::new(true) }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        let request = &mut pool[id];
        request.queued = true;
        // A flush (no pages) is not small: it stands for the writes before it.
        let size = if request.pages.pages == 0 { u32::MAX } else { request.pages.pages };
        let key = Reverse((size, request.id, id));
        self.heaps[request.half() as usize].push(key, true);
    }

    fn choose(&mut self, pool: &mut Pool) -> Decision {
        let [reads, writes] = self.heaps.each_ref().map(|heap| heap.live() > 0);
        let Some(half) = self.turn.pick(reads, writes) else { return Decision::Nothing };
        self.turn.served(half);
        let waits = |&Reverse((_, number, id)): &Size| pool[id].queued && pool[id].id == number;
        let Reverse((_, _, id)) = self.heaps[half as usize].pop(waits).expect("one is live");
        pool[id].queued = false;
        Decision::One(id)
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        let half: Half = pool[id].half();
        pool[id].queued = false;
        let waits = |&Reverse((_, number, id)): &Size| pool[id].queued && pool[id].id == number;
        self.heaps[half as usize].forget(waits);
    }
}

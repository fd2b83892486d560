//! What the host may ask the device, and how the host distinguishes hits from misses.
//!
//! The host asks only through [`DeviceView`]. Its advice (the prefetch of a batch's mappings; begin and end
//! of a block issue, [`crate::request::Mark`]) travels with the request. An opaque device is `awareness =
//! "none"` or `"lru"`.

use crate::config::choice;
use crate::ftl::{Cooperate, LookUp};
use crate::request::Pages;
use crate::util::{Bits, List, Lru, NONE};

choice! {
    /// `host.awareness`.
    pub enum AwarenessKind {
        /// the scheduler asks the device's mapping cache
        Full = "full",
        /// a snapshot of the cache, taken every 1000 admissions
        Polled = "polled",
        /// the host simulates an LRU cache of the same capacity
        Lru = "lru",
        /// every request counts as a miss
        None = "none",
    }
}

/// The device as the host may see it: mappings and merges.
pub trait DeviceView: LookUp + Cooperate {}

impl<D: LookUp + Cooperate> DeviceView for D {}

/// Admissions between two polls of the cache (Ji et al., TCAD 2018, section V-D.1).
const POLL_INTERVAL: u64 = 1000;

/// How the host classifies requests as hits or misses (Ji et al., TCAD 2018, section V-D.1).
#[derive(Clone, Debug)]
pub enum Awareness {
    /// The host asks the device.
    Full,
    /// The host holds a snapshot of the device's cache, taken at the admission of request 1, 1001, ...
    Polled {
        /// LPNs cached at the last poll.
        snapshot: Bits,
        /// Admissions so far.
        admissions: u64,
    },
    /// The host simulates an LRU cache of the same capacity, fed at dispatch page by page.
    Lru {
        /// The simulated cache.
        cache: Lru<()>,
        /// Recency order of the simulated cache.
        list: List,
    },
    /// Every request counts as a miss.
    None,
}

impl Awareness {
    /// Makes a classification of this kind, which has seen no request yet.
    pub fn new(kind: AwarenessKind, device: &impl DeviceView) -> Awareness {
        match kind {
            AwarenessKind::Full => Awareness::Full,
            AwarenessKind::Polled => {
                Awareness::Polled { snapshot: Bits::new(device.logical_pages() as usize), admissions: 0 }
            }
            AwarenessKind::Lru => {
                Awareness::Lru { cache: Lru::new(device.cache_capacity()), list: List::EMPTY }
            }
            AwarenessKind::None => Awareness::None,
        }
    }

    /// Whether all pages of a request that is being admitted count as cached.
    pub fn classify(&mut self, request: Pages, updates: bool, device: &impl DeviceView) -> bool {
        let mut pages = request.first..request.first + request.pages;
        match self {
            Awareness::Full if updates && device.updates_free() => true,
            Awareness::Full => pages.all(|lpn| device.cached(lpn)),
            Awareness::Polled { snapshot, admissions } => {
                if admissions.is_multiple_of(POLL_INTERVAL) {
                    snapshot.reset();
                    device.each_cached(&mut |lpn| snapshot.set(lpn));
                }
                *admissions += 1;
                pages.all(|lpn| snapshot.get(lpn))
            }
            Awareness::Lru { cache, .. } => device.map_complete() || pages.all(|lpn| cache.find(lpn) != NONE),
            Awareness::None => false,
        }
    }

    /// Notes that the pages of a request go to the device.
    #[inline]
    pub fn dispatched(&mut self, request: Pages) {
        let Awareness::Lru { cache, list } = self else { return };
        for lpn in request.first..request.first + request.pages {
            match cache.find(lpn) {
                NONE => {
                    if cache.is_full() {
                        let victim = list.tail;
                        cache.unlink(list, victim);
                        cache.remove(victim);
                    }
                    let id = cache.insert(lpn, ());
                    cache.push_head(list, id);
                }
                id => cache.touch(list, id),
            }
        }
    }
}

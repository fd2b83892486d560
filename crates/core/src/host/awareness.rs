//! Cooperation: what the device lets the host ask, and how the host uses it.
//!
//! The host asks through [`DeviceView`] alone; what it may advise (the prefetch of a batch's
//! mappings; begin and end of a block issue, [`crate::request::Mark`]) travels with the request. An opaque device is `awareness = "none"` or `"lru"`.

use crate::config::Choice;
use crate::ftl::{Cooperate, Ftl, LookUp};
use crate::request::{BlockSize, Pages};
use crate::util::{Bits, List, Lru, NONE};

/// Names for `host.awareness`.
pub fn choices() -> Vec<Choice> {
    const LIST: &[(&str, &str)] = &[
        ("full", "the scheduler asks the device's mapping cache"),
        ("polled", "a snapshot of the cache, taken every 1000 admissions"),
        ("lru", "the host simulates an LRU cache of the same capacity"),
        ("none", "every request counts as a miss"),
    ];
    LIST.iter().map(|&(name, doc)| Choice { name, doc }).collect()
}

/// The device as the host may see it.
#[derive(Clone, Copy, Debug)]
pub struct DeviceView<'a>(&'a Ftl);

impl<'a> DeviceView<'a> {
    /// Opens the view.
    pub fn new(ftl: &'a Ftl) -> DeviceView<'a> {
        DeviceView(ftl)
    }

    /// Is this LPN's mapping cached?
    #[inline]
    pub fn cached(self, lpn: u32) -> bool {
        self.0.cached(lpn)
    }

    /// A request with this LPN is on its way, so its mapping will be needed, and soon that of `earlier`.
    #[inline]
    pub fn expect(self, lpn: u32, earlier: u32) {
        self.0.expect(lpn, earlier);
    }

    /// Are mappings updated without being fetched, so that no write waits for one?
    pub fn updates_free(self) -> bool {
        self.0.updates_free()
    }

    /// Which translation page holds this LPN's mapping?
    #[inline]
    pub fn translation_page(self, lpn: u32) -> u32 {
        self.0.translation_page(lpn)
    }

    /// Which LPNs are cached?
    pub fn each_cached(self, visit: &mut dyn FnMut(u32)) {
        self.0.each_cached(visit);
    }

    /// How many mappings can be cached?
    pub fn cache_capacity(self) -> Option<u32> {
        self.0.cache_capacity()
    }

    /// Is the map in RAM whole, so that every mapping counts as cached?
    pub fn map_complete(self) -> bool {
        self.0.map_complete()
    }

    /// COOP_Query (Shim et al., TC 2014, Table 1): which logical blocks would a block issue of so many
    /// pages from an LPN on have merged, fully or partially? `set` holds them afterwards, ascending.
    pub fn coop_query(self, first: u32, pages: u32, set: &mut Vec<u32>) {
        self.0.coop_query(first, pages, set);
    }

    /// COOP_GetSize: how large are logical blocks and pages? `None` if data is not mapped by blocks.
    pub fn coop_size(self) -> Option<BlockSize> {
        self.0.block_size()
    }

    /// How many LPNs are there?
    pub fn logical_pages(self) -> u32 {
        self.0.logical_pages()
    }
}

/// Admissions between two polls of the cache (Ji et al., TCAD 2018, section V-D.1).
const POLL_INTERVAL: u64 = 1000;

/// How the host classifies requests as hits or misses (Ji et al., TCAD 2018, section V-D.1).
#[derive(Clone, Debug)]
pub enum Awareness {
    /// It asks the device.
    Full,
    /// It holds a snapshot of the device's cache, taken at the admission of request 1, 1001, ...
    Polled {
        /// LPNs cached at the last poll.
        snapshot: Bits,
        /// Admissions so far.
        admissions: u64,
    },
    /// It simulates an LRU cache of the same capacity, fed at dispatch page by page.
    Lru {
        /// The simulated cache.
        cache: Lru<()>,
        /// Its recency.
        list: List,
    },
    /// Every request counts as a miss.
    None,
}

impl Awareness {
    /// The awareness of this name.
    ///
    /// # Panics
    /// If the name is not one of [`choices`].
    pub fn new(name: &str, device: DeviceView) -> Awareness {
        match name {
            "full" => Awareness::Full,
            "polled" => {
                Awareness::Polled { snapshot: Bits::new(device.logical_pages() as usize), admissions: 0 }
            }
            "lru" => Awareness::Lru { cache: Lru::new(device.cache_capacity()), list: List::EMPTY },
            "none" => Awareness::None,
            other => panic!("unregistered awareness {other}"),
        }
    }

    /// Whether all pages of a request that is being admitted count as cached.
    pub fn classify(&mut self, request: Pages, updates: bool, device: DeviceView) -> bool {
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

    /// The pages of a request go to the device.
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

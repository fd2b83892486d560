//! The part of the device's map that the host holds: UFS Host Performance Booster (HPB).
//!
//! A read of up to `host.map_cache_read` carries the mapping entry of each of its pages, if the host holds them all;
//! the device uses an entry if the mapping has not changed since, and looks the page up otherwise
//! (`ftl/page_mapped/handed.rs`). Addresses are divided into regions, these into subregions. The host reads the entries
//! of a subregion with one command, and lets go of them by regions.
//!
//! Source: JESD220-3A (HPB 2.0), as described in public; the driver `drivers/ufs/core/ufshpb.c` of Linux 6.0; Jeong et
//! al., "Improving Flash Storage Performance by Caching Address Mapping Table in Host Memory", HotStorage 2017. From
//! the driver are the entry of 8 B, one command at a time that reads entries, ahead of all pending requests, the
//! threshold of 8 reads, entries that the host's own writes and trims make useless at once, and the counts of reads
//! that are halved when those of a region exceed the entries of a subregion.
//!
//! Interpretation:
//! - `lru` is the device control mode. When the device recommends a subregion is left to the device; here it does so
//!   when it has had to read mappings from flash for `host.map_threshold` reads that might have carried entries. The
//!   driver moves a region to the front of its list when it reads entries of it; here any such read does.
//! - `access-count` is the host control mode. The driver has further thresholds for a region that enters and one that
//!   leaves, and lets go of regions after a time without reads; here a region enters if it has more reads than the
//!   region with the fewest.
//! - A read carries all of its entries or none, as in the driver. Each page has an entry of its own.
//! - The host cannot tell that garbage collection has moved a page; only the device notices.
//! - Pinned regions and the command that tells the device that a region is no longer held are left out.

pub mod keys;

use std::collections::VecDeque;

use crate::host::settings::Settings;
use crate::request::{Asks, Entry, Pages, Pool, Request};
use crate::util::{Divider, List, Lru, NONE, Stat};
use crate::workload::Op;
use keys::{Keys, MapPolicy};

/// A part of the map that is read as a whole.
#[derive(Clone, Copy, Debug, Default)]
struct Subregion {
    /// Whether the host has its entries.
    held: bool,
    /// Whether its entries are to be read.
    wanted: bool,
    /// Whether the host has written or trimmed a page of it since its entries were last asked for.
    changed: bool,
    /// Reads that asked for its entries.
    reads: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    carried: u64,
    plain: u64,
    loads: u64,
    entries: u64,
    evictions: u64,
    refused: u64,
}

/// The held map.
#[derive(Clone, Debug)]
pub(super) struct Held {
    keys: Keys,
    page_bytes: u64,
    lpns: u32,
    /// Divides by the number of pages of a subregion, and by the number of subregions of a region.
    subregion: Divider,
    per_region: Divider,
    subregions: Vec<Subregion>,
    /// The regions for which there is memory, which is numbered by their ids; most recently read first.
    regions: Lru<()>,
    recency: List,
    /// The memory: a place for each page of as many regions as fit. An entry without a stamp is of no use.
    entries: Vec<Entry>,
    wanted: VecDeque<u32>,
    /// The subregion whose entries are being read, or [`NONE`].
    loading: u32,
    counted: Counted,
}

impl Held {
    /// Makes an empty map for a device of this many logical pages; `None` if the host holds no entries.
    pub(super) fn new(settings: &Settings, lpns: u32) -> Option<Box<Held>> {
        let keys = settings.host.map.clone();
        if !keys.are_on(settings) {
            return None;
        }
        let page_bytes = u64::from(settings.ftl.logical_page_bytes);
        let pages = (keys.subregion_bytes / page_bytes).min(u64::from(lpns)) as u32;
        let per_region =
            (keys.region_bytes / keys.subregion_bytes).min(u64::from(lpns.div_ceil(pages))) as u32;
        let subregions = lpns.div_ceil(pages);
        let of_region = u64::from(pages) * u64::from(per_region) * Entry::BYTES;
        let most = (keys.bytes / of_region).clamp(1, u64::from(subregions.div_ceil(per_region))) as u32;
        Some(Box::new(Held {
            keys,
            page_bytes,
            lpns,
            subregion: Divider::new(pages),
            per_region: Divider::new(per_region),
            subregions: vec![Subregion::default(); subregions as usize],
            regions: Lru::new(Some(most)),
            recency: List::EMPTY,
            entries: vec![Entry::default(); most as usize * per_region as usize * pages as usize],
            wanted: VecDeque::with_capacity(subregions as usize),
            loading: NONE,
            counted: Counted::default(),
        }))
    }

    /// Returns the number of pages of a subregion, and the greatest number of pages of a read that carries entries,
    /// which need not be aligned.
    pub(super) fn sizes(&self) -> (u32, u32) {
        (self.subregion.get(), (self.keys.read_bytes / self.page_bytes) as u32 + 2)
    }

    /// Whether a request is a read that may carry entries.
    fn is_short(&self, request: &Request) -> bool {
        request.op == Op::Read && request.size <= self.keys.read_bytes && request.pages.pages > 0
    }

    /// Returns the numbers of the subregions of a request.
    fn parts(&self, pages: Pages) -> std::ops::RangeInclusive<u32> {
        self.subregion.div(pages.first)..=self.subregion.div(pages.first + pages.pages - 1)
    }

    fn region_of(&self, subregion: u32) -> u32 {
        self.per_region.div(subregion)
    }

    /// Returns the subregions of a region.
    fn members(&self, region: u32) -> std::ops::Range<usize> {
        let (first, count) = ((region * self.per_region.get()) as usize, self.per_region.get() as usize);
        first..(first + count).min(self.subregions.len())
    }

    /// Returns the place in memory of a subregion's first entry; the region must be there.
    fn place(&self, subregion: u32) -> usize {
        let region = self.region_of(subregion);
        let frame = self.regions.find(region) as usize;
        let within = subregion - region * self.per_region.get();
        (frame * self.per_region.get() as usize + within as usize) * self.subregion.get() as usize
    }

    /// Returns the host's entry of an LPN, if it has one.
    pub(super) fn entry(&self, lpn: u32) -> Option<Entry> {
        let subregion = self.subregion.div(lpn);
        if !self.subregions[subregion as usize].held {
            return None;
        }
        let entry = self.entries[self.place(subregion) + self.subregion.rem(lpn) as usize];
        (entry.stamp > 0).then_some(entry)
    }

    /// Whether the host has an entry for each page of a read that may carry them.
    pub(super) fn covers(&self, request: &Request) -> bool {
        let Pages { first, pages, .. } = request.pages;
        self.is_short(request) && (first..first + pages).all(|lpn| self.entry(lpn).is_some())
    }

    /// Gives a read its entries, if the host holds all of them.
    fn hand_over(&self, request: &mut Request) {
        if request.op == Op::Read && !request.mark.fua() {
            request.mark.asks = if self.covers(request) { Asks::Entries } else { Asks::Nothing };
        }
    }

    /// Lets a request that goes to the device carry its entries, and notes what follows from it.
    pub(super) fn dispatch(&mut self, id: u32, pool: &mut Pool) {
        self.hand_over(&mut pool[id]);
        let request = &pool[id];
        if self.is_short(request) {
            self.read(request.pages, request.mark.has_entries());
        } else if matches!(request.op, Op::Write | Op::Trim) && request.pages.pages > 0 {
            self.change(request.pages);
        }
        if request.host.prefetch {
            // The device is to prefetch only for members of the batch that carry no entries.
            let batch = request.host.batch;
            let mut at = pool.behind(id);
            while at != NONE && pool[at].host.batch == batch {
                self.hand_over(&mut pool[at]);
                at = pool.behind(at);
            }
        }
    }

    fn read(&mut self, pages: Pages, carries: bool) {
        *(if carries { &mut self.counted.carried } else { &mut self.counted.plain }) += 1;
        for subregion in self.parts(pages) {
            let region = self.region_of(subregion);
            match self.regions.find(region) {
                NONE => (),
                frame => self.regions.touch(&mut self.recency, frame),
            }
            if self.keys.policy == MapPolicy::AccessCount {
                let part = &mut self.subregions[subregion as usize];
                part.reads += 1;
                if part.reads >= self.keys.threshold && (!part.held || part.changed) {
                    self.want(subregion);
                }
                if self.reads_of(region) > u64::from(self.subregion.get()) {
                    self.subregions.iter_mut().for_each(|part| part.reads /= 2);
                }
            }
        }
    }

    /// Forgets the entries of pages that the host writes or trims.
    fn change(&mut self, pages: Pages) {
        let end = pages.first + pages.pages;
        for subregion in self.parts(pages) {
            let start = subregion * self.subregion.get();
            let (from, to) = (pages.first.max(start) - start, end.min(start + self.subregion.get()) - start);
            let part = &mut self.subregions[subregion as usize];
            part.changed = true;
            if self.keys.policy == MapPolicy::AccessCount {
                part.reads = 0;
            }
            if part.held {
                let place = self.place(subregion);
                self.entries[place + from as usize..place + to as usize].fill(Entry::default());
            }
        }
    }

    /// Notes that a request has completed.
    pub(super) fn completed(&mut self, request: &Request) {
        if self.keys.policy == MapPolicy::Lru && request.host.fetched && self.is_short(request) {
            for subregion in self.parts(request.pages) {
                let part = &mut self.subregions[subregion as usize];
                part.reads += 1;
                if part.reads >= self.keys.threshold {
                    self.want(subregion);
                }
            }
        }
    }

    fn want(&mut self, subregion: u32) {
        let part = &mut self.subregions[subregion as usize];
        if !part.wanted && subregion != self.loading {
            part.wanted = true;
            self.wanted.push_back(subregion);
        }
    }

    fn reads_of(&self, region: u32) -> u64 {
        self.subregions[self.members(region)].iter().map(|part| u64::from(part.reads)).sum()
    }

    /// Makes sure that there is memory for a region; returns whether there is.
    fn make_room(&mut self, region: u32) -> bool {
        if self.regions.find(region) != NONE {
            return true;
        }
        if self.regions.is_full() {
            let mut victim = self.recency.tail;
            if self.keys.policy == MapPolicy::AccessCount {
                let mut fewest = u64::MAX;
                self.regions.each(self.recency, &mut |frame| {
                    let reads = self.reads_of(self.regions.key(frame));
                    (fewest, victim) = if reads < fewest { (reads, frame) } else { (fewest, victim) };
                });
                if fewest >= self.reads_of(region) {
                    return false;
                }
            }
            let left = self.members(self.regions.key(victim));
            self.subregions[left].iter_mut().for_each(|part| part.held = false);
            self.regions.unlink(&mut self.recency, victim);
            self.regions.remove(victim);
            self.counted.evictions += 1;
        }
        let frame = self.regions.insert(region, ());
        self.regions.push_head(&mut self.recency, frame);
        true
    }

    /// Makes the next command that reads entries, if one is due. From now on no read carries the subregion's entries,
    /// until they have come.
    pub(super) fn begin_load(&mut self, now_ns: u64, pool: &mut Pool) -> Option<u32> {
        if self.loading != NONE {
            return None;
        }
        while let Some(subregion) = self.wanted.pop_front() {
            self.subregions[subregion as usize].wanted = false;
            if !self.make_room(self.region_of(subregion)) {
                self.counted.refused += 1;
                continue;
            }
            let part = &mut self.subregions[subregion as usize];
            (part.held, part.changed) = (false, false);
            if self.keys.policy == MapPolicy::Lru {
                part.reads = 0;
            }
            self.loading = subregion;
            let first = subregion * self.subregion.get();
            let count = self.subregion.get().min(self.lpns - first);
            let (offset, size) = (u64::from(first) * self.page_bytes, u64::from(count) * Entry::BYTES);
            let mut request = Request::new(0, now_ns, Op::Read, offset, size, Pages { first, ..Pages::NONE });
            (request.mark.asks, request.dispatch_ns) = (Asks::Map, now_ns);
            return Some(pool.insert(request));
        }
        None
    }

    /// Stores the entries that a command has brought.
    pub(super) fn store(&mut self, entries: &[Entry], failed: bool) {
        let subregion = std::mem::replace(&mut self.loading, NONE);
        if failed {
            return;
        }
        let place = self.place(subregion);
        self.entries[place..place + entries.len()].copy_from_slice(entries);
        self.subregions[subregion as usize].held = true;
        self.counted.loads += 1;
        self.counted.entries += entries.len() as u64;
    }

    /// Returns the number of commands that read entries so far, and the bytes that they brought.
    pub(super) fn traffic(&self) -> [u64; 2] {
        [self.counted.loads, self.counted.entries * Entry::BYTES]
    }

    /// Whether a command that reads entries is under way.
    pub(super) fn loads(&self) -> bool {
        self.loading != NONE
    }

    /// Returns the figures of the held map.
    pub(super) fn stats(&self) -> Vec<Stat> {
        let Counted { carried, plain, loads, entries, evictions, refused } = self.counted;
        let bytes = entries * Entry::BYTES;
        vec![
            Stat::new("carried", carried as f64, "reads", "that carried their mapping entries"),
            Stat::new(
                "plain",
                plain as f64,
                "reads",
                "short enough to carry entries that the host did not have",
            ),
            Stat::new("loads", loads as f64, "subregions", "whose entries were read"),
            Stat::new("load_bytes", bytes as f64, "bytes", "of the entries read"),
            Stat::new("evictions", evictions as f64, "regions", "that left for others"),
            Stat::new("refused", refused as f64, "loads", "not begun, as no region had fewer reads"),
        ]
    }
}

//! Every mapping operation is charged exactly once: the flash operations of each request, by cause, are those that a
//! plain recomputation yields from what is observed (where each LPN's data is after each request, and which data pages
//! were programmed).

use ftlab_conformance as common;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use common::settings;
use ftlab_core::flash::{Cause, Operation, Work};
use ftlab_core::ftl::Ftl;
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::settings::{FlushCounts, HostFlush};
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Operations on the mapping caused by one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Charged {
    map_reads: u64,
    map_programs: u64,
    dir_programs: u64,
    gc_map_reads: u64,
    gc_map_programs: u64,
    gc_map_erases: u64,
}

/// Returns the mapping operations of the last request, and the number of pages that it programmed with user data and
/// with moved data.
fn charged(work: &Work) -> (Charged, u64, u64) {
    let of = |operation, cause| {
        work.labels().iter().filter(|l| l.operation == operation && l.cause == cause).count() as u64
    };
    let mapping = Charged {
        map_reads: of(Operation::Read, Cause::Map),
        map_programs: of(Operation::Program, Cause::Map),
        dir_programs: of(Operation::Program, Cause::Dir),
        gc_map_reads: of(Operation::Read, Cause::GcMap),
        gc_map_programs: of(Operation::Program, Cause::GcMap),
        gc_map_erases: of(Operation::Erase, Cause::GcMap),
    };
    let user = of(Operation::Program, Cause::Host) + of(Operation::Program, Cause::Pad);
    (mapping, user, of(Operation::Program, Cause::Gc) + of(Operation::Program, Cause::Wear))
}

/// One step of a workload, of one logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read(u32),
    Write(u32),
    Trim(u32),
    Flush,
}

/// An FTL driven step by step, and where the data of each LPN was last observed.
struct Device {
    ftl: Ftl,
    work: Work,
    slots: Vec<u32>,
}

impl Device {
    fn new(settings: &Settings) -> Device {
        let mut work = settings.work();
        let ftl = Ftl::new(settings, true, &mut work);
        work.label();
        let slots = vec![u32::MAX; settings.user_pages() as usize];
        Device { ftl, work, slots }
    }

    /// Performs a step; returns the LPNs whose data moved, except the step's own.
    fn take(&mut self, step: Step) -> Vec<u32> {
        self.work.clear();
        let page = |first| Pages { first, pages: 1, ..Pages::NONE };
        let mut own = None;
        match step {
            Step::Read(lpn) => drop(self.ftl.read(page(lpn), &mut self.work)),
            Step::Write(lpn) => {
                self.ftl.write(page(lpn), &mut self.work);
                own = Some(lpn);
            }
            Step::Trim(lpn) => {
                self.ftl.trim(page(lpn), &mut self.work);
                own = Some(lpn);
            }
            Step::Flush => self.ftl.flush(&mut self.work),
        }
        let mut moved = Vec::new();
        for lpn in 0..self.slots.len() as u32 {
            let slot = self.ftl.slot(lpn);
            if std::mem::replace(&mut self.slots[lpn as usize], slot) != slot && own != Some(lpn) {
                moved.push(lpn);
            }
        }
        moved
    }
}

/// Translation blocks as plain lists: the update-block scheme of the MSFTL paper.
struct Blocks {
    /// The owner in each slot of each block, by number of the block; the last block is open.
    blocks: BTreeMap<u64, Vec<Option<u32>>>,
    /// The newest place of each owner.
    newest: HashMap<u32, (u64, usize)>,
    /// Number of valid slots of each block, and when the block reached that number.
    valid: HashMap<u64, (usize, u64)>,
    open: u64,
    next: u64,
    now: u64,
    per_page: usize,
    per_block: usize,
    /// The largest number of blocks, one of which must be left erased.
    limit: usize,
    stale: bool,
    units: u32,
    directory: u32,
    charged: Charged,
}

impl Blocks {
    fn begin(&mut self) {
        self.open = self.next;
        self.next += 1;
        self.blocks.insert(self.open, Vec::new());
        self.valid.insert(self.open, (0, self.now));
    }

    fn is_full(&self) -> bool {
        self.blocks.get(&self.open).is_none_or(|slots| slots.len() == self.per_block)
    }

    fn change(&mut self, block: u64, by: isize) {
        self.now += 1;
        let (valid, _) = self.valid[&block];
        self.valid.insert(block, (valid.checked_add_signed(by).unwrap(), self.now));
    }

    /// Appends an owner to the open block; returns whether that fills a page.
    fn put(&mut self, owner: u32) -> bool {
        let slots = self.blocks.get_mut(&self.open).unwrap();
        slots.push(Some(owner));
        let at = (self.open, slots.len() - 1);
        let fills = slots.len().is_multiple_of(self.per_page);
        if let Some((old, _)) = self.newest.insert(owner, at) {
            self.change(old, -1);
        }
        self.change(self.open, 1);
        fills
    }

    /// Skips the rest of a page; returns whether there was a rest to skip.
    fn pad(&mut self) -> bool {
        let slots = self.blocks.get_mut(&self.open).unwrap();
        let part_full = !slots.len().is_multiple_of(self.per_page);
        while !slots.len().is_multiple_of(self.per_page) {
            slots.push(None);
        }
        part_full
    }

    /// Returns the number of blocks that the log holds: those in use, and the erased one.
    fn held(&self) -> usize {
        self.blocks.len() + 1
    }

    fn collect(&mut self) {
        let closed = self.blocks.keys().filter(|&&block| block != self.open || self.is_full());
        let victim = *closed.min_by_key(|block| self.valid[block]).unwrap();
        let mut pages = HashSet::new();
        for (index, owner) in self.blocks[&victim].clone().into_iter().enumerate() {
            let Some(owner) = owner.filter(|owner| self.newest[owner] == (victim, index)) else { continue };
            pages.insert(index / self.per_page);
            if self.is_full() {
                self.begin();
            }
            self.charged.gc_map_programs += u64::from(self.put(owner));
        }
        self.charged.gc_map_programs += u64::from(self.pad());
        self.charged.gc_map_reads += pages.len() as u64;
        self.charged.gc_map_erases += 1;
        self.blocks.remove(&victim);
    }

    /// Makes room before a page is begun.
    fn make_room(&mut self) {
        while self.is_full() && self.held() + 1 >= self.limit {
            while self.is_full() && self.held() >= self.limit {
                self.collect();
            }
            if self.is_full() {
                self.begin();
            }
            if std::mem::take(&mut self.stale) {
                for owner in self.units..self.units + self.directory {
                    while self.is_full() && self.held() >= self.limit {
                        self.collect();
                    }
                    if self.is_full() {
                        self.begin();
                    }
                    self.charged.dir_programs += u64::from(self.put(owner));
                }
            }
            while self.held() >= self.limit {
                self.collect();
            }
        }
    }

    /// Writes units, packed into pages.
    fn flush(&mut self, units: &BTreeSet<u32>) {
        self.write(&units.iter().copied().collect::<Vec<_>>(), units);
    }

    /// Writes units in this order; units of `dirty` are read along with them.
    fn write(&mut self, units: &[u32], dirty: &BTreeSet<u32>) {
        let mut left = dirty.clone();
        let mut loaded = HashSet::new();
        for &unit in units {
            if self.blocks.get(&self.open).is_none_or(|slots| slots.len().is_multiple_of(self.per_page)) {
                self.make_room();
                if self.is_full() {
                    self.begin();
                }
            }
            if let Some(&(block, index)) = self.newest.get(&unit)
                && !loaded.contains(&unit)
            {
                // One read brings in every unit of the page that will be written.
                self.charged.map_reads += 1;
                let page = index / self.per_page;
                let beside = left.iter().filter(|&&other| {
                    self.newest.get(&other).is_some_and(|&(b, i)| (b, i / self.per_page) == (block, page))
                });
                loaded.extend(beside.copied());
            }
            self.stale = true;
            left.remove(&unit);
            self.charged.map_programs += u64::from(self.put(unit));
        }
        self.charged.map_programs += u64::from(self.pad());
    }
}

/// A model of the operations that an FTL has to charge if it flushes its mappings after a given amount of data.
struct ByAmount {
    entries: u32,
    slots_per_page: u32,
    /// Number of data pages after which the FTL flushes its mappings.
    amount: u64,
    counts_moved: bool,
    host_flush: bool,
    programmed: u64,
    cached: HashSet<u32>,
    dirty: BTreeSet<u32>,
    blocks: Blocks,
    flushes: u64,
}

impl ByAmount {
    fn new(settings: &Settings, limit: u32) -> ByAmount {
        let (unit, page) = (ftlab_core::ftl::unit_bytes(settings), settings.flash.page_bytes);
        let entries = unit / settings.ftl.entry_bytes;
        let units = settings.user_pages().div_ceil(entries.into()) as u32;
        let directory_pages = (units * settings.ftl.entry_bytes).div_ceil(page);
        let per_page = page / unit;
        let mut blocks = Blocks {
            blocks: BTreeMap::new(),
            newest: HashMap::new(),
            valid: HashMap::new(),
            open: 0,
            next: 0,
            now: 0,
            per_page: per_page as usize,
            per_block: (per_page * settings.flash.pages_per_block) as usize,
            limit: limit as usize,
            stale: false,
            units,
            directory: directory_pages * per_page,
            charged: Charged::default(),
        };
        blocks.begin();
        ByAmount {
            entries,
            slots_per_page: page / settings.ftl.logical_page_bytes,
            amount: settings.ftl.flush_bytes.unwrap().div_ceil(page.into()),
            counts_moved: settings.ftl.flush_counts == FlushCounts::All,
            host_flush: settings.ftl.host_flush == HostFlush::Mapping,
            programmed: 0,
            cached: HashSet::new(),
            dirty: BTreeSet::new(),
            blocks,
            flushes: 0,
        }
    }

    fn flush(&mut self) {
        let units: BTreeSet<u32> =
            std::mem::take(&mut self.dirty).iter().map(|lpn| lpn / self.entries).collect();
        self.flushes += u64::from(!units.is_empty());
        self.blocks.flush(&units);
        self.programmed = 0;
    }

    /// Returns the operations that a step demands, given what was observed of the step.
    fn demand(
        &mut self,
        step: Step,
        moved: &[u32],
        (user, copies): (u64, u64),
        slot: Option<u32>,
    ) -> Charged {
        self.blocks.charged = Charged::default();
        for &lpn in moved {
            self.cached.insert(lpn);
            self.dirty.insert(lpn);
        }
        self.programmed += user + if self.counts_moved { copies } else { 0 };
        match step {
            Step::Read(lpn) => {
                let on_flash = self.blocks.newest.contains_key(&(lpn / self.entries));
                self.blocks.charged.map_reads += u64::from(self.cached.insert(lpn) && on_flash);
            }
            Step::Write(lpn) | Step::Trim(lpn) => {
                self.cached.insert(lpn);
                self.dirty.insert(lpn);
                let whole_pages = slot.is_some_and(|slot| (slot + 1).is_multiple_of(self.slots_per_page));
                if matches!(step, Step::Write(_)) && self.programmed >= self.amount && whole_pages {
                    self.flush();
                }
            }
            Step::Flush if self.host_flush => self.flush(),
            // If no page is ever part-full, a page programmed by a flush is a trim page, written like data.
            Step::Flush if self.slots_per_page == 1 && user > 0 && self.programmed >= self.amount => {
                self.flush()
            }
            Step::Flush => (),
        }
        self.blocks.charged
    }
}

fn device(unit: u32, channels: u32, slots: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = if unit == 0 { "dftl" } else { "msftl" }.into();
    settings.flash.ecc_unit_bytes = 64;
    settings.ftl.own.msftl.segment_bytes = unit;
    settings.flash.page_bytes = 512 * slots;
    settings.ftl.logical_page_bytes = 512;
    settings.flash.channels = channels;
    settings.flash.pages_per_block = 8;
    settings.flash.blocks_per_plane = 48 / channels;
    settings.ftl.over_provisioning_ppm = 500_000;
    settings.ftl.flush_bytes = Some(u64::from(5 * settings.flash.page_bytes));
    // There are as few translation blocks as possible, so that collected blocks are not empty.
    settings.ftl.translation_blocks = (1..48).find(|&blocks| {
        settings.ftl.translation_blocks = Some(blocks);
        ftlab_core::ftl::check(&settings).is_ok()
    });
    settings
}

/// Makes steps, most of them writes and some of those near each other, so that blocks of both kinds are collected.
fn workload(lpns: u32, seed: u64) -> Vec<Step> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut steps: Vec<_> = (0..lpns).map(Step::Write).collect();
    for _ in 0..4000 {
        let hot = random.random_bool(0.7);
        let lpn = random.random_range(0..if hot { lpns / 5 } else { lpns });
        steps.push(match random.random_range(0..100) {
            0..25 => Step::Read(lpn),
            25..28 => Step::Trim(lpn),
            28 => Step::Flush,
            _ => Step::Write(lpn),
        });
    }
    steps
}

#[test]
fn flushing_by_amount_charges_what_a_plain_recomputation_demands() {
    let mut seen = Charged::default();
    for (unit, channels, slots) in
        [(0, 1, 1), (64, 1, 1), (128, 3, 1), (512, 2, 1), (0, 2, 4), (64, 3, 4), (256, 2, 4)]
    {
        for (counts_moved, host_flush) in [(true, true), (false, false)] {
            let mut settings = device(unit, channels, slots);
            settings.ftl.flush_counts = if counts_moved { FlushCounts::All } else { FlushCounts::User };
            settings.ftl.host_flush = if host_flush { HostFlush::Mapping } else { HostFlush::Data };
            let limit = settings.ftl.translation_blocks.unwrap().next_multiple_of(channels);
            let mut model = ByAmount::new(&settings, limit);
            let mut device = Device::new(&settings);
            for (index, step) in
                workload(settings.user_pages() as u32, u64::from(unit)).into_iter().enumerate()
            {
                let moved = device.take(step);
                let (found, user, copies) = charged(&device.work);
                let slot = match step {
                    Step::Write(lpn) => Some(device.ftl.slot(lpn)),
                    _ => None,
                };
                let demanded = model.demand(step, &moved, (user, copies), slot);
                assert_eq!(found, demanded, "unit {unit}, {channels} chips, step {index}: {step:?}");
                device.ftl.verify().expect("every invariant holds");
                seen.gc_map_programs += found.gc_map_programs;
                seen.gc_map_reads += found.gc_map_reads;
                seen.dir_programs += found.dir_programs;
                seen.map_reads += found.map_reads;
            }
            assert_eq!(device.ftl.map_stats().flushes, model.flushes);
            assert!(device.work.counts().programs[Cause::Gc] > 100, "user blocks were collected");
            assert!(device.work.counts().erases[Cause::GcMap] > 5, "translation blocks were collected");
        }
    }
    assert!(
        seen.gc_map_programs > 1000
            && seen.gc_map_reads > 1000
            && seen.dir_programs > 1000
            && seen.map_reads > 1000,
        "{seen:?}"
    );
}

/// A model of what dftl with one LRU list has to charge for its cache, without translation-block collection.
struct ByEviction {
    entries: u32,
    capacity: usize,
    /// The entries, least recent first; true marks an entry that is not yet on flash.
    cache: Vec<(u32, bool)>,
}

impl ByEviction {
    /// Rewrites a translation page, so that its cached entries are on flash.
    fn rewrite(&mut self, page: u32, charged: &mut Charged) {
        charged.map_reads += 1;
        charged.map_programs += 1;
        self.cache.iter_mut().filter(|(lpn, _)| lpn / self.entries == page).for_each(|entry| entry.1 = false);
    }

    fn demand(&mut self, step: Step, moved: &[u32]) -> Charged {
        let mut charged = Charged::default();
        let (lpn, update) = match step {
            Step::Read(lpn) => (lpn, false),
            Step::Write(lpn) | Step::Trim(lpn) => (lpn, true),
            Step::Flush => {
                self.follow(moved, &mut charged);
                return charged;
            }
        };
        let entry = match self.cache.iter().position(|&(cached, _)| cached == lpn) {
            Some(at) => self.cache.remove(at),
            None => {
                if self.cache.len() == self.capacity {
                    let (victim, dirty) = self.cache.remove(0);
                    if dirty {
                        self.rewrite(victim / self.entries, &mut charged);
                    }
                }
                charged.map_reads += 1;
                (lpn, false)
            }
        };
        self.cache.push((lpn, entry.1 || update));
        self.follow(moved, &mut charged);
        charged
    }

    /// Updates the mappings of data that moved.
    fn follow(&mut self, moved: &[u32], charged: &mut Charged) {
        let mut pages = BTreeSet::new();
        for moved in moved {
            match self.cache.iter_mut().find(|(cached, _)| cached == moved) {
                Some(entry) => entry.1 = true,
                None => drop(pages.insert(moved / self.entries)),
            }
        }
        pages.into_iter().for_each(|page| self.rewrite(page, charged));
    }
}

#[test]
fn eviction_charges_what_a_plain_recomputation_demands() {
    for (channels, slots, capacity) in [(1, 1, 7), (3, 1, 40), (2, 4, 90)] {
        let mut settings = device(0, channels, slots);
        settings.ftl.flush_bytes = None;
        settings.ftl.own.dftl.replacement = "lru".to_owned();
        settings.ftl.mapping_cache_bytes = Some(capacity * u64::from(settings.ftl.entry_bytes));
        let entries = settings.flash.page_bytes / settings.ftl.entry_bytes;
        let mut model = ByEviction { entries, capacity: capacity as usize, cache: Vec::new() };
        let mut device = Device::new(&settings);
        for (index, step) in workload(settings.user_pages() as u32, capacity).into_iter().enumerate() {
            let moved = device.take(step);
            let (found, ..) = charged(&device.work);
            let demanded = model.demand(step, &moved);
            let of = |charged: Charged| (charged.map_reads, charged.map_programs, charged.dir_programs);
            assert_eq!(of(found), of(demanded), "{channels} chips, step {index}: {step:?}");
        }
        assert!(device.work.counts().programs[Cause::Gc] > 100, "user blocks were collected");
    }
}

/// A bounded cache with one LRU list charges what a plain recomputation demands. On this device no data moves:
/// otherwise the order of moves would decide what stays cached.
#[test]
fn a_bounded_cache_charges_what_a_plain_recomputation_demands() {
    for (amount, capacity) in [(Some(6), 20), (None, 20), (Some(40), 9), (None, 60)] {
        let mut settings = device(64, 2, 4);
        settings.flash.blocks_per_plane = 400;
        settings.ftl.over_provisioning_ppm = 960_000;
        settings.ftl.own.dftl.replacement = "lru".to_owned();
        settings.ftl.mapping_cache_bytes = Some(capacity * u64::from(settings.ftl.entry_bytes));
        settings.ftl.flush_bytes = Some(u64::from(settings.flash.page_bytes) * amount.unwrap_or(1 << 20));
        settings.ftl.translation_blocks = Some(12);
        let mut model = ByAmount::new(&settings, 12);
        if amount.is_none() {
            settings.ftl.flush_bytes = None;
            model.host_flush = false;
        }
        let mut cache: Vec<(u32, bool)> = Vec::new();
        let mut device = Device::new(&settings);
        let steps = workload(settings.user_pages() as u32, capacity);
        for (index, step) in steps.into_iter().enumerate() {
            assert_eq!(device.take(step), [0u32; 0], "data moves");
            let (found, user, copies) = charged(&device.work);
            let mut slot = None;
            // The victim's unit goes first, then as many of the following units as fill its page.
            let mut before = Charged::default();
            if let Step::Read(lpn) | Step::Write(lpn) | Step::Trim(lpn) = step {
                let update = !matches!(step, Step::Read(_));
                let cached = cache.iter().position(|&(cached, _)| cached == lpn).map(|at| cache.remove(at));
                if cached.is_none() && cache.len() as u64 == capacity {
                    let (victim, dirty) = cache[0];
                    if dirty {
                        let first = victim / model.entries;
                        let units: BTreeSet<u32> =
                            model.dirty.iter().map(|lpn| lpn / model.entries).collect();
                        let round = units.range(first..).chain(units.range(..first));
                        let page: Vec<u32> = round.take(model.blocks.per_page).copied().collect();
                        model.blocks.charged = Charged::default();
                        model.blocks.write(&page, &units);
                        before = model.blocks.charged;
                        model.dirty.retain(|lpn| !page.contains(&(lpn / model.entries)));
                        cache.iter_mut().for_each(|entry| entry.1 = model.dirty.contains(&entry.0));
                    }
                    model.cached.remove(&cache.remove(0).0);
                }
                cache.push((lpn, cached.is_some_and(|(_, dirty)| dirty) || update));
                slot = matches!(step, Step::Write(_)).then(|| device.ftl.slot(lpn));
            }
            let demanded = model.demand(step, &[], (user, copies), slot);
            cache.iter_mut().for_each(|entry| entry.1 = model.dirty.contains(&entry.0));
            let sum = Charged {
                map_reads: before.map_reads + demanded.map_reads,
                map_programs: before.map_programs + demanded.map_programs,
                dir_programs: before.dir_programs + demanded.dir_programs,
                gc_map_reads: before.gc_map_reads + demanded.gc_map_reads,
                gc_map_programs: before.gc_map_programs + demanded.gc_map_programs,
                gc_map_erases: before.gc_map_erases + demanded.gc_map_erases,
            };
            assert_eq!(found, sum, "{amount:?}, {capacity} entries, step {index}: {step:?}");
            device.ftl.verify().expect("every invariant holds");
        }
        assert!(device.work.counts().erases[Cause::GcMap] > 0, "translation blocks were collected");
    }
}

//! TPFTL (Zhou et al., EuroSys 2015): small cases worked out by hand, and its operations compared with a
//! plain recomputation by linear searches.

use ftlab_conformance as common;

use std::collections::BTreeSet;

use common::settings;
use ftlab_core::flash::{Cause, Operation, Work};
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::{Ftl, check};
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Number of entries of a translation page in these cases.
const PAGE: u32 = 8;

/// Returns a device with pages of 512 B and a cache of this many bytes.
fn small(bytes: Option<u64>) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "tpftl".into();
    settings.ftl.mapping_cache_bytes = bytes;
    settings.ftl.logical_page_bytes = 512;
    settings.ftl.entry_bytes = 512 / PAGE;
    settings.ftl.over_provisioning_ppm = 300_000;
    settings.flash.page_bytes = 512;
    settings.flash.ecc_unit_bytes = 1;
    settings.flash.pages_per_block = 8;
    settings.flash.blocks_per_plane = 64;
    settings
}

struct Device {
    ftl: Ftl,
    work: Work,
    slots: Vec<u32>,
}

impl Device {
    fn new(settings: &Settings) -> Device {
        check(settings).expect("a device that is accepted");
        let mut work = settings.work();
        let ftl = Ftl::new(settings, true, &mut work);
        work.label();
        Device { ftl, work, slots: vec![u32::MAX; settings.user_pages() as usize] }
    }

    /// Reads or writes pages; returns the numbers of mapping reads, mapping programs and misses.
    fn take(&mut self, write: bool, first: u32, pages: u32) -> (usize, usize, u32) {
        let request = Pages { first, pages, ..Pages::NONE };
        self.work.clear();
        let misses = if write {
            self.ftl.write(request, &mut self.work)
        } else {
            self.ftl.read(request, &mut self.work)
        };
        self.ftl.verify().expect("every invariant holds");
        let of = |operation| {
            let labels = self.work.labels().iter();
            labels.filter(|label| label.operation == operation && label.cause == Cause::Map).count()
        };
        (of(Operation::Read), of(Operation::Program), misses)
    }

    fn read(&mut self, first: u32, pages: u32) -> (usize, usize, u32) {
        self.take(false, first, pages)
    }

    fn write(&mut self, first: u32) -> (usize, usize, u32) {
        self.take(true, first, 1)
    }

    fn cached(&self) -> Vec<u32> {
        let mut all = Vec::new();
        self.ftl.each_cached(&mut |lpn| all.push(lpn));
        all.sort_unstable();
        assert!((0..self.slots.len() as u32).all(|lpn| self.ftl.cached(lpn) == all.contains(&lpn)));
        all
    }

    /// Returns the LPNs whose data has moved since the last call.
    fn moved(&mut self) -> Vec<u32> {
        let ftl = &self.ftl;
        let elsewhere = |(lpn, slot): (usize, &mut u32)| {
            let now = ftl.slot(lpn as u32);
            (std::mem::replace(slot, now) != now).then_some(lpn as u32)
        };
        self.slots.iter_mut().enumerate().filter_map(elsewhere).collect()
    }
}

/// Bytes for two nodes and three entries.
const TWO_AND_THREE: Option<u64> = Some(2 * 8 + 3 * 6);

#[test]
fn the_cache_is_counted_in_bytes_of_nodes_and_entries() {
    let refused = |bytes| check(&small(Some(bytes))).expect_err("too small").key;
    assert_eq!(refused(13), "ftl.mapping_cache");
    let mut one = Device::new(&small(Some(14)));
    assert_eq!(one.ftl.cache_capacity(), Some(1));
    one.read(0, 1);
    one.read(8, 1);
    assert_eq!(one.cached(), [8]);
    // 32 B hold one node with four entries (8 + 4 x 6 B), or two nodes with an entry each.
    let mut four = Device::new(&small(Some(32)));
    four.read(0, 4);
    assert_eq!((four.ftl.cache_capacity(), four.cached()), (Some(4), vec![0, 1, 2, 3]));
    four.read(8, 1);
    // Node 1 needs 14 B, so three entries leave.
    assert_eq!(four.cached(), [3, 8]);
}

#[test]
fn a_dirty_victim_has_all_dirty_entries_of_its_node_written_and_leaves_alone() {
    let mut device = Device::new(&small(TWO_AND_THREE));
    assert_eq!(device.write(0), (1, 0, 1));
    assert_eq!(device.write(1), (1, 0, 1));
    assert_eq!(device.read(8, 1), (1, 0, 1));
    // Node 0 is the coldest and completely dirty: its page is read and programmed once, and LPN 0 leaves.
    assert_eq!(device.read(9, 1), (2, 1, 1));
    assert_eq!(device.cached(), [1, 8, 9]);
    assert_eq!(device.ftl.map_stats().entries_updated, 2);
    // LPN 1 was cleaned together with LPN 0, so it leaves at no cost, and its node with it.
    assert_eq!(device.read(16, 1), (1, 0, 1));
    assert_eq!(device.cached(), [8, 9, 16]);
}

#[test]
fn a_clean_entry_leaves_before_an_older_dirty_one_of_its_node() {
    let mut device = Device::new(&small(TWO_AND_THREE));
    device.write(0);
    device.read(1, 1);
    device.read(8, 1);
    assert_eq!(device.read(9, 1), (1, 0, 1));
    assert_eq!(device.cached(), [0, 8, 9]);
}

#[test]
fn the_coldest_node_is_that_of_the_least_mean_recency() {
    let mut device = Device::new(&small(Some(2 * 8 + 6 * 6)));
    for lpn in [0, 1, 8, 9, 10, 2] {
        device.read(lpn, 1);
    }
    // Node 0 was touched at times 1, 2 and 6, node 1 at 3, 4 and 5: the means are 3 and 4, though node 0 is the most
    // recent.
    device.read(11, 1);
    assert_eq!(device.cached(), [1, 2, 8, 9, 10, 11]);
    // Now node 0 has times 2 and 6 (mean 4), node 1 has 3, 4, 5 and 7 (mean 4.75): node 0 loses an entry again.
    device.read(12, 1);
    assert_eq!(device.cached(), [2, 8, 9, 10, 11, 12]);
}

#[test]
fn a_miss_brings_in_the_rest_of_the_request_up_to_the_end_of_the_page() {
    let mut device = Device::new(&small(None));
    assert_eq!(device.read(6, 3), (2, 0, 2), "6 and 7 with one read, 8 with another");
    assert_eq!(device.cached(), [6, 7, 8]);
    // LPN 10 is cached; the miss of LPN 9 loads LPN 11 as well.
    device.read(10, 1);
    assert_eq!(device.read(9, 3), (1, 0, 1));
    assert_eq!(device.take(true, 16, 3), (1, 0, 1), "writes alike");
    assert_eq!(device.ftl.map_stats().prefetches, 0, "those are a batch's");
}

#[test]
fn a_prefetch_takes_its_room_from_one_node() {
    let mut device = Device::new(&small(TWO_AND_THREE));
    device.read(0, 1);
    device.read(8, 1);
    device.read(9, 1);
    // Node 0 leaves, which makes 14 B free for node 2 with LPN 16 alone. LPN 17 misses: node 1 leaves, and LPNs 17 to
    // 19 are loaded.
    assert_eq!(device.read(16, 4), (2, 0, 2));
    assert_eq!(device.cached(), [16, 17, 18, 19]);
}

#[test]
fn selective_prefetching_goes_on_when_nodes_leave() {
    let mut device = Device::new(&small(Some(7 * 14)));
    // Seven nodes enter: at +3 prefetching is switched off; at the next +3 it would be switched off again; +1 is left.
    for page in 0..7 {
        device.read(page * PAGE, 1);
    }
    // Page 7 is read in order: nodes 0 to 3 leave for its eight entries, and its own node enters: +1 - 4 + 1 = -2.
    for lpn in 56..64 {
        assert_eq!(device.read(lpn, 1), (1, 0, 1), "off at first: LPN {lpn}");
    }
    assert_eq!(device.cached(), [32, 40, 48, 56, 57, 58, 59, 60, 61, 62, 63]);
    // Node 4 leaves: at -3 prefetching is switched on. Node 8 enters.
    assert_eq!(device.read(64, 1), (1, 0, 1));
    // One entry is cached before LPN 65: 65 and 66 are loaded in place of node 5.
    assert_eq!(device.read(65, 1), (1, 0, 1));
    assert_eq!(device.read(66, 1), (0, 0, 0));
    // Three entries are cached before LPN 67, but node 6 has one entry: its 14 B and the 2 B left hold 67 and 68.
    assert_eq!(device.read(67, 1), (1, 0, 1));
    assert_eq!(device.read(68, 1), (0, 0, 0));
    // Five entries are cached before LPN 69, but the page ends: three entries of node 7 make room.
    assert_eq!(device.read(69, 1), (1, 0, 1));
    assert_eq!(device.cached(), [59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71]);
    // Since then node 8 has entered, and nodes 5 and 6 have left: -1. Node 7 makes room for nodes 10 and 11, and leaves
    // for 12; node 8 makes room for 13 and 14. At +3 prefetching is switched off, so that 81 brings nothing along
    // although 80 is cached before it.
    for lpn in [80, 88, 96, 104, 112] {
        assert_eq!(device.read(lpn, 1), (1, 0, 1));
    }
    assert_eq!(device.cached(), [69, 70, 71, 80, 88, 96, 104, 112]);
    assert_eq!(device.read(81, 1), (1, 0, 1));
    assert_eq!(device.read(82, 1), (1, 0, 1));
}

/// A translation page and its entries, least recent first: the LPN, when it was touched, and whether it is dirty.
type ModelNode = (u32, Vec<(u32, u64, bool)>);

/// A model of the cache as plain lists; its coldest node and its victims are found by scanning everything.
#[derive(Default)]
struct Model {
    bytes: usize,
    lpns: u32,
    nodes: Vec<ModelNode>,
    now: u64,
    change: i32,
    selective: bool,
    reads: usize,
    programs: usize,
}

impl Model {
    fn count(&mut self, change: i32) {
        self.change += change;
        if self.change.abs() == 3 {
            self.selective = self.change == -3;
            self.change = 0;
        }
    }

    fn node(&self, page: u32) -> Option<usize> {
        self.nodes.iter().position(|node| node.0 == page)
    }

    fn has(&self, lpn: u32) -> bool {
        self.nodes.iter().any(|node| node.1.iter().any(|entry| entry.0 == lpn))
    }

    fn room(&self, page: u32) -> usize {
        let used: usize = self.nodes.iter().map(|node| 8 + 6 * node.1.len()).sum();
        let node = if self.node(page).is_none() { 8 } else { 0 };
        self.bytes.saturating_sub(used + node) / 6
    }

    fn rewrite(&mut self, page: u32) {
        self.reads += 1;
        self.programs += 1;
        if let Some(at) = self.node(page) {
            self.nodes[at].1.iter_mut().for_each(|entry| entry.2 = false);
        }
    }

    fn make_room(&mut self, page: u32, wanted: usize) {
        let mean = |node: &ModelNode| {
            let sum: u64 = node.1.iter().map(|entry| entry.1).sum();
            // The mean is exact, since 840 is a multiple of all lengths up to 8.
            (sum * 840 / node.1.len() as u64, node.0)
        };
        let Some(coldest) = self.nodes.iter().min_by_key(|node| mean(node)).map(|node| node.0) else {
            return;
        };
        while self.room(page) < wanted {
            let at = self.node(coldest).expect("it has entries");
            let clean = self.nodes[at].1.iter().position(|entry| !entry.2);
            if clean.is_none() {
                self.rewrite(coldest);
            }
            self.nodes[at].1.remove(clean.unwrap_or(0));
            if self.nodes[at].1.is_empty() {
                self.nodes.remove(at);
                self.count(-1);
                return;
            }
        }
    }

    fn translate(&mut self, lpn: u32, ahead: u32, write: bool) {
        self.now += 1;
        let (page, now) = (lpn / PAGE, self.now);
        if self.has(lpn) {
            let at = self.node(page).expect("it is cached");
            let of = self.nodes[at].1.iter().position(|entry| entry.0 == lpn).expect("it is cached");
            let entry = self.nodes[at].1.remove(of);
            self.nodes[at].1.push((lpn, now, entry.2));
        } else {
            let before = (page * PAGE..lpn).rev().take_while(|&before| self.has(before)).count() as u32;
            let ahead = if self.selective { ahead.max(before) } else { ahead };
            let wanted: Vec<u32> =
                (lpn..=lpn + ahead).filter(|&each| each / PAGE == page && each < self.lpns).collect();
            self.make_room(page, wanted.iter().filter(|&&each| !self.has(each)).count());
            let room = self.room(page);
            self.reads += 1;
            let absent: Vec<u32> = wanted.into_iter().filter(|&each| !self.has(each)).take(room).collect();
            for each in absent {
                if self.node(page).is_none() {
                    self.nodes.push((page, Vec::new()));
                    self.count(1);
                }
                let at = self.node(page).expect("just entered");
                self.nodes[at].1.push((each, now, false));
            }
        }
        if write {
            self.mark_dirty(lpn);
        }
    }

    fn mark_dirty(&mut self, lpn: u32) {
        let entries = self.nodes.iter_mut().flat_map(|node| node.1.iter_mut());
        entries.filter(|entry| entry.0 == lpn).for_each(|entry| entry.2 = true);
    }
}

/// After every request, the mapping operations and the contents of the cache are those of a plain recomputation.
/// Requests read several pages, or write one page and make garbage collection move data.
#[test]
fn every_request_does_what_a_plain_recomputation_demands() {
    let mut moves = 0;
    let mut selective = 0;
    for (seed, bytes) in [14u64, 34, 60, 98, 200, 400].into_iter().enumerate() {
        let settings = small(Some(bytes));
        let mut device = Device::new(&settings);
        let lpns = settings.user_pages() as u32;
        let mut model = Model { bytes: bytes as usize, lpns, ..Model::default() };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed as u64);
        let mut next = 0;
        for step in 0..6000 {
            let write = random.random_bool(0.5);
            let pages = if write { 1 } else { random.random_range(1..12) };
            // Half of the requests begin where the last one ended.
            let at = if random.random_bool(0.5) { next } else { random.random_range(0..lpns) };
            let first = at.min(lpns - pages);
            next = (first + pages) % lpns;
            (model.reads, model.programs) = (0, 0);
            let (reads, programs, _) = device.take(write, first, pages);
            for lpn in first..first + pages {
                model.translate(lpn, first + pages - lpn - 1, write);
            }
            let moved: Vec<u32> = device.moved().into_iter().filter(|&lpn| !write || lpn != first).collect();
            moves += moved.len();
            let (cached, not): (Vec<u32>, Vec<u32>) = moved.into_iter().partition(|&lpn| model.has(lpn));
            cached.into_iter().for_each(|lpn| model.mark_dirty(lpn));
            not.into_iter()
                .map(|lpn| lpn / PAGE)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .for_each(|page| model.rewrite(page));
            assert_eq!((reads, programs), (model.reads, model.programs), "{bytes} B, step {step}");
            let mut held: Vec<u32> = model.nodes.iter().flat_map(|node| node.1.iter().map(|e| e.0)).collect();
            held.sort_unstable();
            assert_eq!(device.cached(), held, "{bytes} B, step {step}");
            selective += u32::from(model.selective);
        }
    }
    assert!(moves > 1000 && selective > 100, "{moves} moved, {selective} with selective prefetching");
}

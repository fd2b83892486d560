//! LeaFTL (Sun et al., ASPLOS 2023): small cases worked out by hand, and random loads in which every LPN must be
//! predicted within the bound.

use ftlab_conformance as common;

use common::settings;
use ftlab_core::flash::{Cause, Work};
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::{Ftl, check};
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;
use ftlab_core::util::codec::{Decoder, Encoder};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns a device of one chip with this bound and batches of `batch` mappings.
fn device(gamma: u32, batch: u32, cache: Option<u64>) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "leaftl".into();
    settings.ftl.mapping_cache_bytes = cache;
    settings.ftl.own.leaftl.gamma = gamma;
    settings.ftl.own.leaftl.batch = batch;
    settings
}

struct Device {
    ftl: Ftl,
    work: Work,
}

impl Device {
    fn new(settings: &Settings) -> Device {
        check(settings).expect("a device that is accepted");
        let mut work = settings.work();
        let mut ftl = Ftl::new(settings, true, &mut work);
        ftl.start();
        Device { ftl, work }
    }

    fn write(&mut self, first: u32, pages: u32) {
        self.work.clear();
        assert_eq!(
            self.ftl.write(Pages { first, pages, ..Pages::NONE }, &mut self.work),
            0,
            "no write misses"
        );
    }

    /// Reads a page; returns the numbers of misses, of reads for the mapping, and of reads of data.
    fn read(&mut self, lpn: u32) -> (u32, u64, u64) {
        let reads = |work: &Work| [Cause::Map, Cause::Host].map(|cause| work.counts().reads[cause]);
        let before = reads(&self.work);
        self.work.clear();
        let misses = self.ftl.read(Pages { first: lpn, pages: 1, ..Pages::NONE }, &mut self.work);
        let after = reads(&self.work);
        (misses, after[0] - before[0], after[1] - before[1])
    }

    fn stat(&self, name: &str) -> f64 {
        let parts = self.ftl.stats();
        let stats =
            parts.iter().find(|(part, _)| *part == "ftl").map(|(_, stats)| stats).expect("it has figures");
        stats.iter().find(|stat| stat.name == name).unwrap_or_else(|| panic!("no {name}")).value
    }
}

/// The pages of `segments_tests.rs` whose slope is 4/5: LPN 3 is predicted in the slot of LPN 2, which is read first.
#[test]
fn a_misprediction_costs_a_second_read() {
    let mut device = Device::new(&device(1, 5, None));
    device.write(0, 4);
    device.write(5, 1);
    assert_eq!((device.read(3), device.stat("batches")), ((0, 0, 1), 0.0), "what waits is known");
    // The next write finds a full batch, which is learned; its group's translation page is read.
    device.write(600, 1);
    assert_eq!((device.stat("batches"), device.stat("approximate"), device.stat("mapped")), (1.0, 1.0, 5.0));
    assert_eq!(device.work.counts().reads[Cause::Map], 1);
    for (lpn, second) in [(0, 0), (1, 0), (2, 0), (3, 1), (5, 0)] {
        assert_eq!(device.read(lpn), (0, second, 1), "LPN {lpn}");
    }
    assert_eq!((device.stat("predictions"), device.stat("mispredictions")), (5.0, 1.0));
    assert_eq!(device.stat("second_reads"), 1.0);
    // A segment, four bytes for two runs of LPNs and one to end them, and what finds the group.
    assert_eq!((device.stat("map_bytes"), device.stat("listed_bytes")), (4.0 + 8.0 + 5.0, 5.0));
}

/// A group that leaves with changes costs a read and a program of its translation page.
#[test]
fn groups_come_and_leave_as_a_whole() {
    // Two mappings that wait take 16 B, and a group with one segment takes 12 B.
    let mut device = Device::new(&device(0, 2, Some(32)));
    let counts = |device: &Device| {
        let counts = device.work.counts();
        (counts.reads[Cause::Map], counts.programs[Cause::Map])
    };
    for (first, expected) in [(0, (0, 0)), (600, (1, 0)), (1200, (2, 0))] {
        device.write(first, 2);
        assert_eq!(counts(&device), expected, "the page of the group learned last has been read");
    }
    device.write(1800, 2);
    assert_eq!(counts(&device), (2 + 1 + 1, 1), "a third group comes, so the first one's page is written");
    assert_eq!((device.read(601), device.read(1801)), ((0, 0, 1), (0, 0, 1)), "a group, and what waits");
    assert_eq!(device.read(1), (1, 1 + 2, 1), "what waits leaves room for one group of this size");
    assert_eq!(counts(&device).1, 3);
    // A group without segments takes 4 B, and those without changes leave as they are.
    assert_eq!((device.read(300), device.read(1)), ((1, 1, 1), (0, 0, 1)));
    assert_eq!((device.read(900), device.read(300), device.read(1)), ((1, 1, 1), (1, 1, 1), (1, 1, 1)));
    assert_eq!(counts(&device).1, 3);
    assert_eq!((device.stat("accurate"), device.stat("levels_max")), (3.0, 1.0));
}

/// Random loads, in which every LPN is predicted within the bound after each request, on small and on large caches and
/// with logical pages that share a NAND page.
#[test]
fn predictions_are_corrected_under_any_load() {
    let mut seen = [0.0; 3];
    for (case, gamma) in [0, 1, 4, 16, 31, 4].into_iter().enumerate() {
        let mut settings = device(gamma, [3, 40, 256][case % 3], [None, Some(300), Some(4096)][case / 2]);
        settings.flash.channels = 1 + case as u32 % 2;
        settings.ftl.own.leaftl.compact_after = [100, 1_000_000][case % 2];
        if case == 5 {
            settings.ftl.logical_page_bytes = settings.flash.page_bytes / 4;
        }
        let mut device = Device::new(&settings);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(case as u64);
        let lpns = device.ftl.logical_pages();
        for step in 0..3_000 {
            let pages = random.random_range(1..20);
            let request = Pages { first: random.random_range(0..lpns / 4 - 20), pages, ..Pages::NONE };
            device.work.clear();
            match random.random_range(0..10) {
                0..6 => device.ftl.write(request, &mut device.work),
                6..9 => device.ftl.read(request, &mut device.work),
                _ => device.ftl.trim(request, &mut device.work),
            };
            device.ftl.verify_request(request).expect("every invariant holds");
            if step % 50 == 0 {
                device.ftl.verify().expect("every invariant holds");
            }
        }
        if gamma == 0 {
            assert_eq!((device.stat("mispredictions"), device.stat("approximate")), (0.0, 0.0));
        }
        assert!(device.stat("second_reads") <= device.stat("mispredictions"));
        let stats = ["second_reads", "approximate", "compactions"].map(|name| device.stat(name));
        seen.iter_mut().zip(stats).for_each(|(sum, value)| *sum += value);
    }
    assert!(
        seen.iter().all(|&sum| sum > 0.0),
        "second reads, approximate segments and compactions: {seen:?}"
    );
}

/// A saved device is loaded with its segments, and goes on with the same predictions.
#[test]
fn segments_are_saved() {
    let settings = device(4, 50, Some(2048));
    let mut one = Device::new(&settings);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    for _ in 0..2_000 {
        one.write(random.random_range(0..1_500), random.random_range(1..9));
    }
    let mut bytes = Vec::new();
    one.ftl.save(&mut Encoder::new(&mut bytes)).unwrap();
    let loaded = Ftl::load(&settings, true, &mut Decoder::new(&mut &bytes[..])).unwrap();
    let mut other = Device { ftl: loaded, work: settings.work() };
    other.ftl.verify().expect("every invariant holds");
    let before = one.stat("mispredictions");
    for _ in 0..2_000 {
        let lpn = random.random_range(0..1_500);
        assert_eq!(one.read(lpn), other.read(lpn));
    }
    assert_eq!(one.stat("mispredictions") - before, other.stat("mispredictions"));
    assert!(other.stat("mispredictions") > 0.0);
}

//! What FTLs tell of themselves: which mappings are cached, how many can be, what was refused.

mod common;
#[path = "common/hybrids.rs"]
mod hybrids;

use std::collections::BTreeSet;

use common::settings;
use ftlab_core::flash::{Timing, Work};
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::settings::PartialWrite;
use ftlab_core::ftl::{Ftl, check};
use ftlab_core::request::Pages;
use ftlab_core::settings::{Endurance, Settings};
use hybrids::Driver;

const fn request(first: u32, pages: u32) -> Pages {
    Pages { first, pages, head_partial: false, tail_partial: false }
}

fn device(kind: &str) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    // 512 entries a translation page; a page and 100 entries beside it.
    settings.ftl.mapping_cache_bytes = Some(4096 + 100 * 8);
    check(&settings).expect("it fits");
    settings
}

/// The schedulers' knowledge of the mapping cache (polled, lru, full) is one and the same: what is told as
/// cached in a list is what is told one by one, and no more than fits.
#[test]
fn cached_mappings_are_listed() {
    for kind in common::page_mapped() {
        let settings = device(kind);
        let timing = Timing::new(&settings.flash, settings.ftl.logical_page_bytes);
        let mut work = Work::new(timing, 1);
        let mut ftl = Ftl::new(&settings, true, &mut work);
        let mut most = 0;
        for at in 0..400 {
            let first = at * 7919 % (ftl.logical_pages() - 8);
            ftl.write(request(first, 1 + at % 8), &mut work);
            ftl.read(request(first / 3, 1), &mut work);
            let mut listed = BTreeSet::new();
            ftl.each_cached(&mut |lpn| _ = listed.insert(lpn));
            let cached: BTreeSet<u32> = (0..ftl.logical_pages()).filter(|&lpn| ftl.cached(lpn)).collect();
            assert!(listed == cached, "{kind}: {} listed, {} cached", listed.len(), cached.len());
            most = most.max(cached.len());
        }
        let capacity = ftl.cache_capacity();
        assert_eq!(capacity.is_some(), !ftl.map_complete(), "{kind}");
        assert!(capacity.is_none_or(|most_ever| most <= most_ever as usize && most > 50), "{kind}: {most}");
    }
}

/// A worn-out hybrid FTL refuses writes and trims, and counts each.
#[test]
fn what_a_worn_hybrid_ftl_refuses_is_counted() {
    for kind in common::hybrids() {
        let mut settings = hybrids::device(kind, 4, 20, 5);
        settings.flash.endurance = Endurance::Cycles(3);
        let mut driver = Driver::new(&settings);
        let refused = |driver: &Driver| (driver.ftl.is_read_only(), driver.ftl.refused());
        let mut at = 0;
        while !refused(&driver).0 {
            driver.write(at * 29 % 80, 1);
            at += 1;
            assert!(at < 100_000, "{kind} wears out");
        }
        let before = refused(&driver).1;
        driver.trim(3, 2);
        driver.trim(8, 1);
        assert_eq!(refused(&driver), (true, before + 2), "{kind}");
        driver.write(3, 1);
        assert_eq!(refused(&driver), (true, before + 3), "{kind}");
    }
}

/// Of a page map, too; and no page that has no data.
#[test]
fn page_maps_read_what_is_covered_in_part() {
    for kind in common::page_mapped() {
        let mut settings = device(kind);
        settings.ftl.partial_write = PartialWrite::Rmw;
        let timing = Timing::new(&settings.flash, settings.ftl.logical_page_bytes);
        let mut work = Work::new(timing, 1);
        let mut ftl = Ftl::new(&settings, true, &mut work);
        ftl.write(request(8, 3), &mut work);
        let host_reads = |work: &Work| work.counts().reads[ftlab_core::flash::Cause::Host as usize];
        let parts = [(false, false, 0), (true, false, 1), (false, true, 1), (true, true, 2)];
        for (first, (head_partial, tail_partial, reads)) in
            parts.into_iter().flat_map(|part| [(8, part), (100, part)])
        {
            let before = host_reads(&work);
            ftl.write(Pages { first, pages: 3, head_partial, tail_partial }, &mut work);
            ftl.trim(request(100, 3), &mut work);
            let expected = if first == 8 { reads } else { 0 };
            assert_eq!(host_reads(&work) - before, expected, "{kind}, {first}");
        }
    }
}

/// A page that is covered in part is read before it is written where `ftl.partial_write` says so, and none else.
#[test]
fn hybrid_ftls_read_what_is_covered_in_part() {
    for (kind, reads) in common::hybrids().into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let mut settings = hybrids::device(kind, 4, 20, 5);
        settings.ftl.partial_write = if reads { PartialWrite::Rmw } else { PartialWrite::Ignore };
        let mut driver = Driver::new(&settings);
        driver.lay(0..40);
        for (head_partial, pages) in [(true, 3), (false, 3)] {
            driver.work.reset();
            let request = Pages { first: 8, pages, head_partial, tail_partial: false };
            driver.ftl.write(request, &mut driver.work);
            let host = driver.work.counts().reads[ftlab_core::flash::Cause::Host as usize];
            assert_eq!(host, u64::from(reads && head_partial), "{kind}");
        }
    }
}

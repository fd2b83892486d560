//! Write amplification under placements: closed forms of data in open blocks of its own, and what placements that infer
//! lifetimes gain on skewed loads and lose on uniform ones.
//!
//! Each front costs about half an open block of a LUN. The devices here have many blocks of few pages, so that six
//! fronts cost less than the differences that are tested.

use ftlab_conformance as common;

use crate::closed_forms;
use common::settings;
use ftlab_core::ftl::Ftl;
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::placement::{self, Own, Page, Placement, Space, Writable};
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;
use ftlab_core::util::NONE;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns a page-mapped device of one chip with `ratio` times as many pages as the user has.
fn device(placement: &str, gc: &str, blocks: u32, b: u32, ratio: f64) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.ftl.gc = gc.into();
    settings.ftl.placement = Some(placement.into());
    settings.flash.blocks_per_plane = blocks;
    settings.flash.pages_per_block = b;
    settings.ftl.over_provisioning_ppm = ((1.0 - 1.0 / ratio) * 1e6) as u64;
    settings
}

/// A filled device, and the load that the host writes to it.
struct Run<N> {
    ftl: Ftl,
    work: ftlab_core::flash::Work,
    random: Xoshiro256PlusPlus,
    next: N,
}

impl<N: FnMut(&mut Xoshiro256PlusPlus) -> u32> Run<N> {
    fn new(settings: &Settings, next: N) -> Run<N> {
        let mut work = settings.work();
        let mut ftl = Ftl::new(settings, false, &mut work);
        ftl.prefill(&Vec::from_iter(0..settings.user_pages() as u32), &mut work);
        Run { ftl, work, random: Xoshiro256PlusPlus::seed_from_u64(42), next }
    }

    /// Writes this many pages; returns the number of programs per page.
    fn write(&mut self, count: u64) -> f64 {
        let before = self.work.counts().programs.total();
        for _ in 0..count {
            self.work.clear();
            let first = (self.next)(&mut self.random);
            let page = Pages { first, pages: 1, ..Pages::NONE };
            self.ftl.write(page, &mut self.work);
        }
        (self.work.counts().programs.total() - before) as f64 / count as f64
    }
}

/// Returns the number of programs per page written, over 8 times as many pages as the user has, after 12 times as many
/// to warm up.
fn amplification(settings: &Settings, next: impl FnMut(&mut Xoshiro256PlusPlus) -> u32) -> f64 {
    let mut run = Run::new(settings, next);
    run.write(12 * settings.user_pages());
    run.write(8 * settings.user_pages())
}

/// The first fifth of the pages, which is hot, in one front, the rest in another; copies stay with their data.
#[derive(Clone, Debug)]
struct Fifth {
    hot: u32,
}

fn hot_pages(pages: u32) -> u32 {
    pages / 5
}

impl Placement for Fifth {
    fn new(_keys: &Own, space: Space) -> Fifth {
        Fifth { hot: hot_pages(space.pages) }
    }

    fn fronts(&self) -> u32 {
        2
    }

    fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        u32::from(page.lpn >= self.hot)
    }
}

/// Returns the number of blocks that hold cold data now.
fn cold_blocks(ftl: &Ftl, user: u32, b: u32) -> usize {
    let slots = (hot_pages(user)..user).map(|lpn| ftl.slot(lpn)).filter(|&slot| slot != NONE);
    let mut blocks: Vec<u32> = slots.map(|slot| slot / b).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks.len()
}

/// Uniform writes to hot and to cold data in fronts of their own: the total is that of two devices, each with the
/// blocks that its data ended up with.
#[test]
fn two_regions_are_two_devices() {
    placement::register::<Fifth>("fifth");
    for (gc, share) in [("greedy", 0.8), ("greedy", 0.5), ("fifo", 0.8), ("fifo", 0.5)] {
        let (blocks, b) = (1024, 32);
        let settings = device("fifth", gc, blocks, b, 1.15);
        let user = settings.user_pages() as u32;
        let hot = hot_pages(user);
        let mut run = Run::new(&settings, |random: &mut Xoshiro256PlusPlus| {
            if random.random_bool(share) {
                random.random_range(0..hot)
            } else {
                random.random_range(hot..user)
            }
        });
        run.write(12 * u64::from(user));
        let (mut found, mut cold) = (0.0, 0.0);
        for _ in 0..32 {
            found += run.write(u64::from(user) / 4) / 32.0;
            cold += cold_blocks(&run.ftl, user, b) as f64 / 32.0;
        }
        // One block is erased; blocks without valid pages are hot.
        let region = |blocks: f64, pages: u32| {
            closed_forms::shared_frontier(blocks.round() as u32, 0, b, f64::from(pages), |a| {
                if gc == "greedy" { closed_forms::greedy(a, b) } else { closed_forms::fifo(a) }
            })
        };
        let (hot_waf, cold_waf) = (region(f64::from(blocks - 1) - cold, hot), region(cold, user - hot));
        let expected = share * hot_waf + (1.0 - share) * cold_waf;
        let error = (found / expected - 1.0) * 100.0;
        println!(
            "{gc}, {share}: {found:.4}, closed form {expected:.4} ({hot_waf:.3}, {cold_waf:.3}), {error:+.2} %"
        );
        assert!(error.abs() < 2.0, "{gc}: {found} is {error:+.2} % off {expected}");
    }
}

/// Two regions that are each overwritten in order, one three times as fast as the other, lose nothing in fronts of
/// their own; in one front each block holds data of both, and pages must be copied.
#[test]
fn regions_overwritten_in_order() {
    placement::register::<Fifth>("fifth-in-order");
    let found = ["fifth-in-order", "one"].map(|name| {
        let settings = device(name, "greedy", 256, 16, 1.15);
        let user = settings.user_pages() as u32;
        let (hot, mut at, mut turn) = (hot_pages(user), [0, 0], 0);
        amplification(&settings, |_| {
            turn = (turn + 1) % 4;
            let (region, first, pages) = if turn == 0 { (1, hot, user - hot) } else { (0, 0, hot) };
            at[region] = (at[region] + 1) % pages;
            first + at[region]
        })
    });
    assert_eq!(found[0], 1.0);
    assert!(found[1] > 1.2, "{found:?}");
}

fn on_many_blocks(name: &str) -> Settings {
    device(name, "greedy", 2048, 16, 1.15)
}

/// Where no page is more likely to be written than another, no placement gains anything; nor does it lose more than its
/// open blocks.
#[test]
fn nothing_to_gain_from_uniform_writes() {
    let of = |name: &str| {
        let settings = on_many_blocks(name);
        let user = settings.user_pages() as u32;
        amplification(&settings, |random| random.random_range(0..user))
    };
    let apart = of("gc-apart");
    for name in ["hot-cold", "sepbit"] {
        let found = of(name);
        println!("{name}: {found:.4}, gc-apart {apart:.4}");
        assert!((found / apart - 1.0).abs() < 0.02, "{name}: {found}, gc-apart {apart}");
    }
}

/// On skewed loads both hot-cold and sepbit beat gc-apart; the more skewed, the more sepbit gains.
#[test]
fn skewed_writes() {
    let mut gains = Vec::new();
    for skew in [0.6, 0.99, 1.2] {
        let of = |name: &str| {
            let settings = on_many_blocks(name);
            let zipf = Zipf::new(settings.user_pages() as f64, skew).expect("a distribution");
            amplification(&settings, |random| zipf.sample(random) as u32 - 1)
        };
        let [apart, hot_cold, sepbit] = ["gc-apart", "hot-cold", "sepbit"].map(of);
        println!("Zipf {skew}: gc-apart {apart:.4}, hot-cold {hot_cold:.4}, sepbit {sepbit:.4}");
        assert!(hot_cold < apart && sepbit < apart, "Zipf {skew}: {apart} {hot_cold} {sepbit}");
        gains.push(apart / sepbit);
    }
    assert!(gains.is_sorted(), "{gains:?}");
}

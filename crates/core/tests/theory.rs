//! Compares the write amplification of victim policies with their closed forms, where they have one (greedy, fifo,
//! random and d-choices): on small devices, the difference must be below 1 %, or below 2 % where half a block is
//! subtracted for the frontier. Windowed greedy and cost-benefit are compared with greedy and fifo instead.
//! `ftlab-bench theory` tests closed forms on 4096 blocks, within 0.5 %.

use ftlab_conformance as common;

use crate::closed_forms;
use common::settings;
use ftlab_core::ftl::Ftl;
use ftlab_core::ftl::faces::*;
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The ratios of physical to logical pages at which the closed forms are tested.
const RATIOS: [f64; 3] = [1.07, 1.15, 1.28];

/// Returns a page-mapped device of one chip with this many blocks of `b` pages: after the reserve and half a block are
/// subtracted, it has `ratio` times the user's pages.
fn device(policy: &str, blocks: u32, b: u32, ratio: f64, reserve: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.ftl.gc = policy.into();
    settings.ftl.gc_free_blocks = reserve;
    settings.flash.blocks_per_plane = blocks;
    settings.flash.pages_per_block = b;
    let used = closed_forms::effective_ratio(blocks, reserve, 1, b, 1.0) / ratio / f64::from(blocks * b);
    settings.ftl.over_provisioning_ppm = ((1.0 - used) * 1e6) as u64;
    settings
}

/// Returns the value of a closed form, given as a function of the ratio, for the chips of a device.
fn expected(settings: &Settings, form: impl Fn(f64) -> f64) -> f64 {
    let flash = &settings.flash;
    let user = settings.user_pages() as f64 / f64::from(flash.chips());
    let (blocks, reserve) = (flash.blocks_per_chip() as u32, settings.ftl.gc_free_blocks);
    closed_forms::shared_frontier(blocks, reserve, flash.pages_per_block, user, form)
}

/// The next request of a host.
enum Next {
    Write(u32),
    Trim(u32),
}

/// Returns the number of programs per host write to the filled device. The measurement covers 8 times as many writes as
/// the user has pages, after 12 times as many to warm up.
fn amplification(settings: &Settings, mut next: impl FnMut(&mut Xoshiro256PlusPlus) -> Next) -> f64 {
    let mut work = settings.work();
    let Ftl::Page(mut ftl) = Ftl::new(settings, false, &mut work) else { panic!("a page-mapped device") };
    ftl.prefill(&Vec::from_iter(0..settings.user_pages() as u32), &mut work);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
    let page = |first| Pages { first, pages: 1, ..Pages::NONE };
    let mut run = |writes: u64| {
        let before = work.counts().programs.total();
        let mut written = 0;
        while written < writes {
            work.clear();
            match next(&mut random) {
                Next::Write(lpn) => {
                    ftl.write(page(lpn), &mut work);
                    written += 1;
                }
                Next::Trim(lpn) => {
                    ftl.trim(page(lpn), &mut work);
                }
            }
        }
        (work.counts().programs.total() - before) as f64 / writes as f64
    };
    run(12 * settings.user_pages());
    run(8 * settings.user_pages())
}

fn uniform(settings: &Settings) -> f64 {
    let user = settings.user_pages() as u32;
    amplification(settings, |random| Next::Write(random.random_range(0..user)))
}

/// Fails if the error exceeds `percent`; prints the error in any case.
fn meets(what: &str, found: f64, expected: f64, percent: f64) {
    let error = (found / expected - 1.0) * 100.0;
    println!("{what}: {found:.4}, closed form {expected:.4}, {error:+.2} %");
    assert!(error.abs() < percent, "{what}: {found:.4} is {error:+.2} % off {expected:.4}");
}

/// Tests a policy at all ratios and both block sizes on 256 blocks.
fn policy_meets(policy: &str, draws: u32, closed_form: impl Fn(f64, u32) -> f64) {
    for b in [64, 256] {
        for a in RATIOS {
            let mut settings = device(policy, 256, b, a, 1);
            settings.ftl.victims.d_choices.draws = draws;
            let what = format!("{policy} (d = {draws}), b = {b}, a = {a}");
            meets(&what, uniform(&settings), expected(&settings, |a| closed_form(a, b)), 1.0);
        }
    }
}

#[test]
fn greedy() {
    policy_meets("greedy", 1, closed_forms::greedy);
}

#[test]
fn fifo() {
    policy_meets("fifo", 1, |a, _| closed_forms::fifo(a));
}

#[test]
fn two_choices() {
    policy_meets("d-choices", 2, |a, b| closed_forms::d_choices(a, b, 2));
}

#[test]
fn five_choices() {
    policy_meets("d-choices", 5, |a, b| closed_forms::d_choices(a, b, 5));
}

#[test]
fn ten_choices() {
    policy_meets("d-choices", 10, |a, b| closed_forms::d_choices(a, b, 10));
}

/// A single block drawn at random is the victim: the closed form is 1 / (1 - rho).
#[test]
fn random() {
    for a in RATIOS {
        let settings = device("random", 256, 64, a, 1);
        let closed_form = expected(&settings, |a| a / (a - 1.0));
        meets(&format!("random, a = {a}"), uniform(&settings), closed_form, 1.0);
    }
}

/// With a window of one block, windowed greedy is exactly FIFO; with a window of all blocks, it is exactly greedy.
#[test]
fn windowed_greedy_lies_between_fifo_and_greedy() {
    let windowed = |window| {
        let mut settings = device("windowed-greedy", 256, 64, 1.15, 1);
        settings.ftl.victims.windowed_greedy.window = window;
        uniform(&settings)
    };
    let of = |policy| uniform(&device(policy, 256, 64, 1.15, 1));
    let (fifo, greedy) = (of("fifo"), of("greedy"));
    assert_eq!(windowed(1), fifo);
    assert_eq!(windowed(255), greedy);
    let between = windowed(32);
    assert!(greedy < between && between < fifo, "{greedy} {between} {fifo}");
}

/// Under uniform writes age reveals nothing, so cost-benefit can at best equal greedy; it does not beat
/// greedy on a skewed workload either, as long as one frontier mixes hot and cold data again.
#[test]
fn cost_benefit_lies_between_greedy_and_fifo_under_uniform_writes() {
    let of = |policy| uniform(&device(policy, 256, 64, 1.15, 1));
    let (greedy, cost_benefit, fifo) = (of("greedy"), of("cost-benefit"), of("fifo"));
    assert!(greedy < cost_benefit && cost_benefit < fifo * 1.02, "{greedy} {cost_benefit} {fifo}");
}

/// Subtracting half a block for the frontier, as is usual, is accurate to within 2 % for 512 blocks or more.
#[test]
fn half_a_frontier_is_near_enough() {
    let half = |settings: &Settings| {
        closed_forms::effective_ratio(settings.flash.blocks_per_plane, 1, 1, 64, settings.user_pages() as f64)
    };
    for a in RATIOS {
        let settings = device("greedy", 512, 64, a, 1);
        meets("greedy, f / 2", uniform(&settings), closed_forms::greedy(half(&settings), 64), 2.0);
        let settings = device("fifo", 512, 64, a, 1);
        meets("fifo, f / 2", uniform(&settings), closed_forms::fifo(half(&settings)), 2.0);
    }
}

/// Erased blocks that are kept in reserve are subtracted, and separate chips are separate devices.
#[test]
fn reserve_and_chips_are_accounted_for() {
    for (reserve, chips) in [(8, 1), (16, 1), (1, 2)] {
        for policy in ["greedy", "fifo"] {
            let mut settings = device(policy, 512, 64, 1.15, reserve);
            settings.flash.channels = chips;
            settings.flash.blocks_per_plane /= chips;
            let closed_form = expected(&settings, |a| {
                if policy == "greedy" { closed_forms::greedy(a, 64) } else { closed_forms::fifo(a) }
            });
            meets(&format!("{policy}, G = {reserve}, {chips} chips"), uniform(&settings), closed_form, 1.0);
        }
    }
}

/// With trims, write amplification is that of the closed form. One request in ten or five trims a page in use, drawn
/// uniformly; the others write.
#[test]
fn trims_make_room() {
    for q in [0.1, 0.2] {
        for policy in ["greedy", "fifo"] {
            let settings = device(policy, 256, 64, 1.07, 1);
            let user = settings.user_pages() as u32;
            // Pages in use come first, then the others.
            let mut pages: Vec<u32> = (0..user).collect();
            let mut place: Vec<u32> = (0..user).collect();
            let mut used = user;
            let mut swap = |pages: &mut [u32], one: u32, other: u32| {
                pages.swap(one as usize, other as usize);
                place[pages[one as usize] as usize] = one;
                place[pages[other as usize] as usize] = other;
            };
            let found = amplification(&settings, |random| {
                if random.random_bool(q) && used > 0 {
                    let at = random.random_range(0..used);
                    used -= 1;
                    swap(&mut pages, at, used);
                    return Next::Trim(pages[used as usize]);
                }
                let at = random.random_range(0..user);
                let lpn = pages[at as usize];
                if at >= used {
                    swap(&mut pages, at, used);
                    used += 1;
                }
                Next::Write(lpn)
            });
            let closed_form = expected(&settings, |a| {
                let a = a / closed_forms::in_use(q);
                if policy == "greedy" { closed_forms::greedy(a, 64) } else { closed_forms::fifo(a) }
            });
            meets(&format!("{policy}, {q} trims"), found, closed_form, 1.0);
        }
    }
}

/// A FIFO mixes hot and cold data in its blocks; its write amplification is that of the closed form for such data.
#[test]
fn hot_and_cold() {
    for (writes, data) in [(0.8, 0.2), (0.9, 0.1)] {
        let settings = device("fifo", 512, 64, 1.15, 1);
        let user = settings.user_pages() as u32;
        let hot = (f64::from(user) * data) as u32;
        let found = amplification(&settings, |random| {
            let hot_one = random.random_bool(writes);
            Next::Write(if hot_one { random.random_range(0..hot) } else { random.random_range(hot..user) })
        });
        let closed_form = expected(&settings, |a| closed_forms::fifo_hot_cold(a, writes, data));
        meets(&format!("fifo, {writes} of the writes to {data} of the data"), found, closed_form, 1.0);
    }
}

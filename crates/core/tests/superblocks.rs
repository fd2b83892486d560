//! Superblocks (`ftl.reclaim_unit`): what is filled and collected together is the blocks of one number on several
//! chips.

use ftlab_conformance as common;

use crate::closed_forms;
use common::{bursts, checked, page_mapped, pages, settings, small};
use ftlab_core::flash::{Cause, Operation};
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::reclaim::ReclaimUnit;
use ftlab_core::ftl::{Ftl, check};
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;
use ftlab_core::workload::{Op, Record};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns a page-mapped device of `chips` chips with superblocks on `luns` of them.
fn device(chips: u32, luns: Option<u32>) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.flash.channels = chips;
    settings.flash.blocks_per_plane = 64;
    settings.flash.pages_per_block = 8;
    settings.ftl.over_provisioning_ppm = 200_000;
    settings.ftl.reclaim_unit = ReclaimUnit::Superblock(luns);
    check(&settings).expect("it fits");
    settings
}

/// Writes one page to an FTL.
fn write(ftl: &mut Ftl, first: u32, work: &mut ftlab_core::flash::Work) {
    work.clear();
    ftl.write(Pages { first, pages: 1, ..Pages::NONE }, work);
}

/// A superblock on one chip is a block: every figure is the same.
#[test]
fn on_one_chip_it_is_a_block() {
    for kind in page_mapped() {
        for (chips, luns) in [(1, None), (1, Some(1)), (3, Some(1))] {
            let mut settings = small(kind, chips);
            let trace = bursts(7, 3000, settings.user_pages());
            let blocks = checked(&settings, trace.clone());
            settings.ftl.reclaim_unit = ReclaimUnit::Superblock(luns);
            let superblocks = checked(&settings, trace);
            let shown = |run: &(ftlab_core::metrics::Report, Vec<_>)| serde_json::to_string(&run.0).unwrap();
            assert_eq!(shown(&blocks), shown(&superblocks), "{kind}");
            assert_eq!(blocks.1, superblocks.1, "{kind}");
        }
    }
}

/// Single pages in a row go round the chips of a superblock, and a superblock is erased on all its chips.
#[test]
fn pages_go_round_the_chips() {
    let settings = device(4, None);
    let mut work = settings.work();
    let mut ftl = Ftl::new(&settings, true, &mut work);
    let user = settings.user_pages() as u32;
    for at in 0..4 * user {
        write(&mut ftl, at % user, &mut work);
        let steps = work.steps();
        assert_eq!(steps.last().map(|step| (step.lun, step.operation)), Some((at % 4, Operation::Program)));
        assert_eq!(ftl.read_lun(at % user), at % 4);
        let erased: Vec<u32> =
            steps.iter().filter(|step| step.operation == Operation::Erase).map(|step| step.lun).collect();
        assert!(erased.is_empty() || erased == [0, 1, 2, 3], "{erased:?}");
    }
    assert!(work.counts().erases.total() > 0);
    assert_eq!(work.counts().programs.total(), u64::from(4 * user), "in order, nothing is copied");
}

/// Every program lies on its LUN and follows the one before it in its block, for superblocks on two of six chips;
/// copies are read before they are programmed, and an erase waits for all of them.
#[test]
fn copies_cross_chips_in_order() {
    let mut settings = device(6, Some(2));
    settings.ftl.over_provisioning_ppm = 120_000;
    let mut work = settings.work();
    let mut ftl = Ftl::new(&settings, true, &mut work);
    let (user, per_block, per_lun) = (settings.user_pages() as u32, 8, 64);
    let mut next = vec![0; 6 * per_lun];
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut copied = 0;
    for at in 0..8 * user {
        let lpn = if at < user { at } else { random.random_range(0..user) };
        write(&mut ftl, lpn, &mut work);
        let steps = work.steps();
        for (index, step) in steps.iter().enumerate() {
            let block = step.page / per_block;
            assert_eq!(block / per_lun as u32, step.lun);
            match step.operation {
                Operation::Program => {
                    assert_eq!(step.page % per_block, next[block as usize]);
                    next[block as usize] += 1;
                    let after = steps.get(step.after as usize);
                    let read = after.filter(|after| after.operation == Operation::Read);
                    copied += u64::from(read.is_some());
                }
                Operation::Erase => {
                    assert_eq!(std::mem::take(&mut next[block as usize]), per_block);
                    let programs = steps[..index].iter().filter(|step| step.operation == Operation::Program);
                    assert!(programs.map(|step| step.number).all(|number| number <= step.settled));
                }
                Operation::Read => (),
            }
        }
    }
    assert_eq!(copied, work.counts().programs[Cause::Gc]);
    assert!(copied > 0);
    ftl.verify().expect("every invariant holds");
}

/// Under uniform writes greedy meets its closed form with the pages of a superblock in place of those of a block.
#[test]
fn greedy_meets_its_closed_form() {
    for (chips, luns, b) in [(4, 4, 32), (4, 2, 64)] {
        let mut settings = device(chips, Some(luns));
        settings.flash.blocks_per_plane = 256;
        settings.flash.pages_per_block = b;
        settings.ftl.over_provisioning_ppm = 140_000;
        check(&settings).expect("it fits");
        let mut work = settings.work();
        let mut ftl = Ftl::new(&settings, false, &mut work);
        let user = settings.user_pages() as u32;
        ftl.prefill(&Vec::from_iter(0..user), &mut work);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
        let mut run = |writes: u32| {
            let before = work.counts().programs.total();
            (0..writes).for_each(|_| write(&mut ftl, random.random_range(0..user), &mut work));
            (work.counts().programs.total() - before) as f64 / f64::from(writes)
        };
        run(8 * user);
        let found = run(6 * user);
        let group = f64::from(user) / f64::from(chips / luns);
        let expected =
            closed_forms::shared_frontier(256, 1, b * luns, group, |a| closed_forms::greedy(a, b * luns));
        println!("{luns} of {chips} chips: {found:.4}, closed form {expected:.4}");
        assert!((found / expected - 1.0).abs() < 0.02, "{found} against {expected}");
    }
}

/// Two streams that each overwrite their half in order, in superblocks of their own: nothing is ever copied. In one
/// open superblock they share, data is copied.
#[test]
fn two_streams_in_order_copy_nothing() {
    let run = |placement: &str| {
        let mut settings = device(4, None);
        settings.ftl.placement = Some(placement.into());
        check(&settings).expect("it fits");
        let mut work = settings.work();
        let mut ftl = Ftl::new(&settings, true, &mut work);
        let half = settings.user_pages() as u32 / 2;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut at = [0, 0];
        for _ in 0..20 * half {
            // The second stream is slower.
            let stream = usize::from(random.random_ratio(1, 5));
            work.clear();
            let first = stream as u32 * half + at[stream];
            let request = Pages { first, pages: 1, stream: stream as u16 + 1, ..Pages::NONE };
            at[stream] = (at[stream] + 1) % half;
            ftl.write(request, &mut work);
        }
        ftl.verify().expect("every invariant holds");
        work.counts().programs.total() as f64 / f64::from(20 * half)
    };
    let (apart, shared) = (run("stream"), run("one"));
    println!("WAF with stream {apart}, with one {shared:.3}");
    assert_eq!(apart, 1.0);
    assert!(shared > 1.05);
}

/// Single writes in a row, eight at a time, take as long as with blocks.
#[test]
fn bandwidth_is_that_of_blocks() {
    let mut settings = device(4, None);
    (settings.device.queue_depth, settings.host.queue_depth) = (8, 8);
    settings.device.scheduler = "direct".into();
    let user = settings.user_pages();
    let trace: Vec<Record> = (0..user).map(|lpn| pages(0, Op::Write, 4096, lpn, 1)).collect();
    let with = checked(&settings, trace.clone()).0.elapsed_ns;
    settings.ftl.reclaim_unit = ReclaimUnit::Block;
    assert_eq!(with, checked(&settings, trace).0.elapsed_ns);
}

/// What does not go together with superblocks is refused, at the key that names them.
#[test]
fn what_does_not_fit_is_refused() {
    let refused = |change: &dyn Fn(&mut Settings), word: &str| {
        let mut settings = device(4, None);
        change(&mut settings);
        let fault = check(&settings).expect_err("it is refused");
        assert_eq!(fault.key, "ftl.reclaim_unit");
        assert!(fault.message.contains(word), "{}", fault.message);
    };
    refused(&|settings| settings.ftl.reclaim_unit = ReclaimUnit::Superblock(Some(3)), "1 or 2 or 4");
    refused(&|settings| settings.ftl.kind = "bast".into(), "ftl.kind");
    refused(
        &|settings| settings.ftl.allocation = ftlab_core::flash::parallel::Allocation::Dynamic,
        "dynamic",
    );
    refused(&|settings| settings.ftl.placement = Some("vios".into()), "ftl.placement");
    refused(&|settings| settings.ftl.kind = "msftl".into(), "ftl.flush");
}

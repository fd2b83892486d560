//! Which victims background collections take if collecting most of the blocks would gain nothing.

use ftlab_conformance as common;

use common::settings;
use ftlab_core::flash::Work;
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::{Ftl, check};
use ftlab_core::request::Pages;
use ftlab_core::settings::{GcBackground, Settings};

/// Makes a device of one chip, whose background collections begin as early as the blocks allow.
fn device(gc: &str, seed: u64) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.ftl.over_provisioning_ppm = 400_000;
    (settings.ftl.gc, settings.ftl.victims.d_choices.draws, settings.seed) = (gc.into(), 1, seed);
    settings.flash.blocks_per_plane = 20;
    settings.flash.pages_per_block = 4;
    let with = |normal_blocks| {
        let mut settings = settings.clone();
        settings.ftl.gc_background = Some(GcBackground { normal_blocks, step_pages: 4 });
        settings
    };
    (2..20).rev().map(with).find(|settings| check(settings).is_ok()).expect("some threshold fits")
}

/// Random draws may miss for ever. So after as many collections without gain in succession as there are closed blocks,
/// the best of all blocks is taken. Here only one block has a page to gain.
#[test]
fn draws_that_gain_nothing_end() {
    let mut most = 0;
    for (gc, seed) in ["random", "d-choices"].into_iter().flat_map(|gc| (0..40).map(move |seed| (gc, seed))) {
        let settings = device(gc, seed);
        let mut work = settings.work();
        let Ftl::Page(mut ftl) = Ftl::new(&settings, true, &mut work) else { unreachable!("kind is page") };
        ftl.collect_in_background(settings.ftl.gc_background.expect("set above"));
        let request = |first, pages| Pages { first, pages, ..Pages::NONE };
        let lpns = ftl.logical_pages();
        ftl.write(request(0, lpns), &mut work);
        // Overwrites one block's pages again and again, until the chip has few erased blocks.
        let mut step = ftl.background_step(0, &mut work);
        for lpn in (0..4).cycle().take(80) {
            if step {
                break;
            }
            ftl.write(request(lpn, 1), &mut work);
            step = ftl.background_step(0, &mut work);
        }
        assert!(step, "something is collected");
        let erases = |work: &Work| work.counts().erases.total();
        let mut gainless = 0;
        let mut before = erases(&work);
        while ftl.background_step(0, &mut work) {
            gainless += erases(&work) - before;
            before = erases(&work);
        }
        most = most.max(gainless);
        ftl.verify().expect("every invariant holds");
    }
    assert!(most > 5, "some draws miss: {most}");
    assert!(most <= 20, "{most} collections in succession");
}

/// A threshold that is too high is refused; the message names the highest one that would fit.
#[test]
fn the_threshold_that_is_named_fits() {
    let mut settings = device("greedy", 1);
    let how = settings.ftl.gc_background.expect("set above");
    let with = |settings: &mut Settings, normal_blocks| {
        settings.ftl.gc_background = Some(GcBackground { normal_blocks, ..how });
        check(settings)
    };
    for above in 1..6 {
        let refused =
            with(&mut settings, how.normal_blocks + above).expect_err("it is the highest that fits");
        let named = format!("; {} would fit", how.normal_blocks);
        assert!(refused.message.contains(&named), "{}", refused.message);
    }
    assert!(with(&mut settings, how.normal_blocks).is_ok());
}

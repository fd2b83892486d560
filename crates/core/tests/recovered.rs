//! What recovery makes of flash laid out by hand: which blocks are written next, in which order the erased blocks are
//! used, and what is read.

use ftlab_conformance as common;

use crate::hybrids::Driver;
use common::settings;
use ftlab_core::flash::Work;
use ftlab_core::flash::media::{Change, Kind, Media, Spare, Tape};
use ftlab_core::ftl::faces::*;
use ftlab_core::ftl::recovery::{Flaw, Recovery};
use ftlab_core::ftl::{Ftl, check};
use ftlab_core::request::Pages;
use ftlab_core::settings::Settings;

fn page_mapped(blocks: u32, slots_per_page: u32) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.ftl.over_provisioning_ppm = 400_000;
    settings.flash.blocks_per_plane = blocks;
    settings.flash.pages_per_block = 4;
    settings.flash.page_bytes = 4096 * slots_per_page;
    settings
}

fn media(settings: &Settings) -> Media {
    let flash = &settings.flash;
    Media::new(flash.luns(), flash.blocks_per_lun() as u32, flash.pages_per_block, 0)
}

fn recover(settings: &Settings, media: &Media, tape: &Tape) -> (Ftl, Recovery, Work) {
    check(settings).expect("it fits");
    let mut work = settings.work();
    let (ftl, recovery) =
        Ftl::recover(settings, media, (tape, Flaw::None), &mut work).expect("it can be recovered");
    (ftl, recovery, work)
}

fn program(page: u32, kind: Kind, owner: u32, seq: u64) -> Change {
    Change::Program { page, kind, spares: Box::new([Spare { owner, seq }]) }
}

fn write(ftl: &mut Ftl, first: u32, pages: u32, work: &mut Work) {
    let request = Pages { first, pages, ..Pages::NONE };
    ftl.write(request, work);
}

/// Returns the pages programmed since the tape was last read, in order.
fn programmed(tape: &Tape) -> Vec<u32> {
    let page = |change| match change {
        Change::Program { page, .. } => Some(page),
        Change::Erase { .. } => None,
    };
    tape.take_changes().into_iter().filter_map(page).collect()
}

/// Erased blocks are used in the order of their erasure, as before the cut; a block that recovery itself erases, here a
/// torn block, comes last. The first erased block is kept for collections.
#[test]
fn erased_blocks_are_used_in_the_order_of_their_erasure() {
    let settings = page_mapped(9, 1);
    let order = [7, 3, 0, 5, 8, 1, 4, 6, 2];
    let mut media = media(&settings);
    order.iter().for_each(|&block| media.apply(Change::Erase { block }));
    media.tear(program(3 * 4, Kind::Data, 0, 1));
    let tape = Tape::new(1);
    let (mut ftl, recovery, mut work) = recover(&settings, &media, &tape);
    assert_eq!((recovery.erases, recovery.torn_pages), (1, 1));
    assert_eq!(tape.take_changes(), [Change::Erase { block: 3 }]);
    // The data fill eight of the device's nine blocks.
    let lpns = ftl.logical_pages();
    (0..32).for_each(|at| write(&mut ftl, at % lpns, 1, &mut work));
    let mut blocks: Vec<u32> = programmed(&tape).into_iter().map(|page| page / 4).collect();
    blocks.dedup();
    assert_eq!(blocks, [0, 5, 8, 1, 4, 6, 2, 3]);
}

/// Pages that gather several logical pages go to the chips in turn, starting with the first.
#[test]
fn writes_begin_on_the_first_chip() {
    let mut settings = page_mapped(8, 4);
    settings.flash.channels = 3;
    let (media, tape) = (media(&settings), Tape::new(0));
    let (mut ftl, _, mut work) = recover(&settings, &media, &tape);
    (0..4).for_each(|at| write(&mut ftl, at * 4, 4, &mut work));
    let chips: Vec<u32> = programmed(&tape).into_iter().map(|page| media.lun(media.block_of(page))).collect();
    assert_eq!(chips, [0, 1, 2, 0]);
}

/// Recovery reads every translation page once to compare it, and rewrites the stale pages from what it has read: no
/// page is read twice.
#[test]
fn stale_translation_units_are_not_read_twice() {
    for kind in common::by_amount() {
        let mut settings = page_mapped(24, 1);
        settings.ftl.kind = kind.into();
        settings.ftl.flush_bytes = Some(64 * 4096);
        settings.ftl.power_safe = true;
        check(&settings).expect("it fits");
        let mut work = settings.work();
        let mut ftl = Ftl::new(&settings, true, &mut work);
        let mut media = media(&settings);
        let tape = Tape::new(ftl.write_media(&mut media));
        ftl.record(&tape, &media);
        let request = Pages { first: 0, pages: 8, ..Pages::NONE };
        ftl.write(request, &mut work);
        ftl.flush(&mut work);
        ftl.write(request, &mut work);
        tape.take_changes().into_iter().for_each(|change| media.apply(change));
        let (_, recovery, _) = recover(&settings, &media, &tape);
        assert!(recovery.programs > 0, "{kind}: a unit is stale: {recovery:?}");
        assert_eq!((recovery.map_reads, recovery.gc_reads, recovery.erases), (1, 0, 0), "{kind}");
    }
}

/// The last logical block has three pages instead of six. None of its data survives its trims, so its physical block is
/// erased, even though the owners that follow its pages, the trims of block 0, have older versions.
#[test]
fn trims_of_the_last_logical_block_are_about_its_pages() {
    let mut settings = common::hybrid_device("bast", 6, 20, 3);
    settings.ftl.power_safe = true;
    // There are 117 pages, 19 blocks of 6 and one of 3; they are followed by the owners of trims.
    settings.ftl.over_provisioning_ppm = 805_000;
    let trims = |block: u32| 117 + block;
    let (mut media, tape) = (media(&settings), Tape::new(9));
    media.allow_gaps();
    media.apply(program(10 * 6, Kind::Log, trims(19), 9));
    tape.hold(Kind::Log, trims(19), 9, [0b111].into());
    media.apply(program(11 * 6, Kind::Log, trims(0), 2));
    media.apply(program(12 * 6, Kind::Log, trims(0), 5));
    tape.hold(Kind::Log, trims(0), 5, [0b1000].into());
    media.apply(program(13 * 6 + 3, Kind::Data, 3, 1));
    let (ftl, _, work) = recover(&settings, &media, &tape);
    assert_eq!(tape.take_changes(), [10, 11, 13].map(|block| Change::Erase { block }));
    let driver = Driver { ftl, work };
    driver.verify();
    assert_eq!((driver.lpns(), driver.version(3)), (117, None));
}

/// A log block that is in order remains so after the cut: pages that it lacks are copied behind its last page.
#[test]
fn a_log_block_in_order_stays_so() {
    let mut settings = common::hybrid_device("bast", 6, 20, 3);
    settings.ftl.power_safe = true;
    let (mut media, tape) = (media(&settings), Tape::new(9));
    media.allow_gaps();
    (0..6).for_each(|at| media.apply(program(18 + at, Kind::Data, at, 1 + u64::from(at))));
    media.apply(program(24, Kind::Log, 0, 9));
    let (ftl, _, work) = recover(&settings, &media, &tape);
    let mut driver = Driver { ftl, work };
    driver.verify();
    // These writes need data blocks, and then one log block more than there are.
    (0..6).for_each(|at| driver.write((1 + at / 2) * 6 + 1, 1));
    let [full, partial, ..] = driver.merges();
    assert_eq!((full, partial), ((0, 0), (1, 5)));
}

/// Data written before time 0 is on the media page by page, and later writes have higher numbers.
#[test]
fn what_was_laid_is_engraved() {
    for kind in common::hybrids() {
        let mut settings = common::hybrid_device(kind, 6, 20, 5);
        settings.ftl.power_safe = true;
        let mut driver = Driver::new(&settings);
        driver.prefill(0..40);
        let mut media = media(&settings);
        media.allow_gaps();
        let last = driver.ftl.write_media(&mut media);
        assert_eq!(media.fault(), None);
        let (ftl, _, _) = recover(&settings, &media, &Tape::new(last));
        let version = |lpn| ftl.version_on(lpn, &media);
        for lpn in 0..40 {
            let version = version(lpn).expect("it resolves").expect("it was laid");
            assert!(version > 0 && version <= last, "{kind}: {version} of {last}");
        }
    }
}

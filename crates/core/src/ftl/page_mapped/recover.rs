//! Page-mapped FTLs and power cuts: what they keep on flash, and how they are rebuilt from it.
//!
//! The steps are: scan all spare areas ([`crate::ftl::recovery`]); of each LPN, let the newest version count, unless a
//! trim page says that nothing written before the trim page counts ([`crate::ftl::log`]); erase torn blocks and restore
//! the reserves; read the translation pages, and rewrite those that disagree with what was found, so that the mapping
//! cache begins empty. Every step can itself be cut; the next recovery treats what the cut leaves like any other state.

use super::room::{Room, Scan};
use crate::flash::media::{Kind, Media, Tape};
use crate::flash::{Cause, Work};
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::log::{Log, Shape};
use crate::ftl::map::context::Context;
use crate::ftl::map::pages::TranslationPages;
use crate::ftl::map::translation::Translation;
use crate::ftl::page_mapped::layout::{Layout, shapes};
use crate::ftl::recovery::{Flaw, Recovery, Version, erase_all, read_all};
use crate::ftl::settings::Settings;
use crate::ftl::slots::Slots;
use crate::util::NONE;

/// The parts of an FTL that were rebuilt, and what that took.
pub(super) struct Rebuilt {
    pub(super) layout: Layout,
    pub(super) data: (Log, Slots),
    pub(super) pages: TranslationPages,
    pub(super) pool: BlockPool,
    pub(super) recovery: Recovery,
}

/// Rebuilds the parts of the FTL of `settings` as a power cut left them on the media. The steps go into `work`, and the
/// changes of the media onto the tape; later requests use both in the same way.
pub(super) fn recover<T: Translation>(
    settings: &Settings,
    media: &Media,
    (tape, flaw): (&Tape, Flaw),
    work: &mut Work,
) -> Result<Rebuilt, String> {
    let (layout, [data, map]) = shapes::<T>(settings);
    let gathered = data.superblocks.map(|superblocks| media.gathered(superblocks));
    let media = gathered.as_ref().unwrap_or(media);
    let lpns = data.owners - data.trim_pages;
    let mut scan = Scan::new((media, tape), [&data, &map], flaw, work);
    if flaw == Flaw::SkipScan {
        without_scan(&mut scan, lpns, layout.space.entries, data.slots_per_page, tape, media);
    }
    scan.make_room(&Room::new(&data, &map, settings.ftl.spare_blocks))?;
    let relied = scan.relied();
    scan.trimmed().into_iter().for_each(|(lpn, _)| scan.put(lpn, None));
    let in_slc = (0..).zip(&scan.found.blocks).filter(|(_, seen)| seen.slc);
    in_slc.for_each(|(block, _): (u32, _)| work.use_as_slc(block * media.pages_per_block()));
    erase_all(&scan.erase, Cause::Gc, (media, tape), work);
    let units = &settings.in_reclaim_units();
    let mut pool = BlockPool::new(units, settings.ftl.wear_leveling.map(|leveling| leveling.threshold));
    scan.found.find_pool(media, &mut pool);
    pool.withhold_found(settings);
    let settings = units;
    let mut log = |kind, shape: Shape, check| {
        let mut slots = shape.slots(&pool);
        let under = (&mut slots, &mut pool);
        Log::recover(shape, settings, under, check, &scan.blocks_of(kind), scan.map(kind))
            .map(|log| (log, slots))
    };
    let (mut data, mut slots) = log(Kind::Data, data, true)?;
    let (map, units) = log(Kind::Map, map, T::ON_FLASH)?;
    data.stock.close_unwritten(&mut pool);
    data.use_cache();
    slots.record(tape, lpns, media);
    relied.iter().for_each(|trim| data.durable.rely(&mut slots, trim.owner, trim.slot));
    let mut pages =
        TranslationPages::found((map, units, &layout.space), settings, T::ON_FLASH, (tape, media))?;
    let mut reads = pages.pages_by_lun(media.luns());
    scan.trims().for_each(|trim| reads[data.addresses.lun(trim.slot) as usize] += 1);
    let map_reads = read_all(&reads, true, work);
    if T::ON_FLASH {
        Context { data: &data, newest: &slots, pages: &mut pages, pool: &mut pool, work, ahead: 0 }.renew();
    }
    let recovery = Recovery::of(&scan.found, map_reads, work);
    Ok(Rebuilt { layout, data: (data, slots), pages, pool, recovery })
}

/// Replaces the versions of user data with what is known without their spare areas: the entries of the translation
/// pages on flash.
fn without_scan(scan: &mut Scan, lpns: u32, per_page: u32, slots_per_page: u32, tape: &Tape, media: &Media) {
    for lpn in 0..lpns {
        let entries =
            scan.unit(lpn / per_page).and_then(|unit| tape.content(Kind::Map, lpn / per_page, unit.seq));
        let slot = entries.map_or(NONE, |entries| entries[(lpn % per_page) as usize]);
        let seq = (slot != NONE).then(|| media.version(Kind::Data, slots_per_page, slot, lpn)).flatten();
        let version = |seq| Version { owner: lpn, seq, number: 0, page: slot / slots_per_page, slot };
        scan.put(lpn, seq.map(version));
    }
}

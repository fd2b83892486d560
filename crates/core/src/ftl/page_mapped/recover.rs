//! Page-mapped FTLs and power cuts: what they keep on flash, and how they are made anew from it.
//!
//! The order: scan all spare areas ([`crate::ftl::recovery`]); of each LPN the newest version counts,
//! unless a unit of trims says that nothing up to it does ([`crate::ftl::log`]); torn blocks are
//! erased and the reserves made whole; the translation pages are read, and those that do not say
//! what was found are written anew, so that the mapping cache begins empty. Every step can be cut:
//! what it leaves is found by the next recovery like anything else.

use super::PageMapped;
use crate::flash::media::{Change, Kind, Media, Tape};
use crate::flash::{Cause, Work};
use crate::ftl::Survive;
use crate::ftl::blocks::pool::BlockPool;
use crate::ftl::log::Log;
use crate::ftl::map::context::Context;
use crate::ftl::map::pages::TranslationPages;
use crate::ftl::map::translation::Translation;
use crate::ftl::page_mapped::layout::shapes;
use crate::ftl::recovery::{Flaw, Lot, Recovery, Room, Scan, read_all};
use crate::ftl::settings::Settings;
use crate::util::NONE;

/// The FTL of `settings` as a power cut left it on the media. The steps go into `work`, the
/// changes of the media on the tape; later ones too.
///
/// # Errors
/// In words, if it cannot be recovered: a fault of ftlab.
pub(super) fn recover<T: Translation>(
    settings: &Settings,
    media: &Media,
    (tape, flaw): (&Tape, Flaw),
    work: &mut Work,
) -> Result<(PageMapped<T>, Recovery), String> {
    let (layout, [data, map]) = shapes(settings, T::ON_FLASH);
    let lots = [&data, &map].map(|shape| Lot::new(shape.owners, shape.slots_per_page, flaw));
    let lpns = data.owners - data.trim_units;
    let mut scan = Scan::new(media, lots, (lpns, data.lpns_per_unit), work);
    let scan_reads = work.counts().reads.iter().sum();
    if flaw == Flaw::SkipScan {
        without_scan(&mut scan, lpns, (layout.space.entries, data.slots_per_page), tape, media);
    }
    scan.make_room(media, &Room::new(&data, &map, settings.ftl.spare_blocks), tape)?;
    let relied = scan.relied(tape);
    scan.trimmed(tape).into_iter().for_each(|(lpn, _)| scan.data.drop(lpn));
    for &block in scan.erase() {
        work.chain();
        work.erase(media.chip(block), Cause::Gc);
        tape.note(Change::Erase { block });
    }
    let mut pool = found_pool(settings, media, &scan);
    let blocks = scan.blocks_of(Kind::Data);
    let mut data = Log::recover(data, settings, &mut pool, true, &blocks, scan.data.map())?;
    let blocks = scan.blocks_of(Kind::Map);
    let map = Log::recover(map, settings, &mut pool, T::ON_FLASH, &blocks, scan.map.map())?;
    data.record(tape, lpns, media);
    relied.iter().for_each(|trim| data.rely(trim.unit, trim.slot));
    let mut pages = TranslationPages::found(map, settings, T::ON_FLASH, (tape, media))?;
    let mut reads = pages.pages_by_chip(media.chips());
    scan.trims.iter().for_each(|trim| reads[data.slot_chip(trim.slot) as usize] += 1);
    read_all(&reads, |chip, work| work.read(chip, Cause::Map), work);
    let map_reads = work.counts().reads.iter().sum::<u64>() - scan_reads;
    if T::ON_FLASH {
        Context { data: &data, pages: &mut pages, pool: &mut pool, work, ahead: 0 }.renew();
    }
    let counts = work.counts();
    let recovery = Recovery {
        scan_reads,
        map_reads,
        gc_reads: counts.reads.iter().sum::<u64>() - scan_reads - map_reads,
        programs: counts.programs.iter().sum(),
        erases: counts.erases.iter().sum(),
        torn_pages: scan.torn_pages,
    };
    let read_only = pool.is_exhausted();
    let ftl = PageMapped::<T>::assemble(settings, &layout, (data, pages, pool));
    Ok((PageMapped { read_only, flaw, ..ftl }, recovery))
}

impl<T: Translation> Survive for PageMapped<T> {
    fn engrave(&self, media: &mut Media) -> u64 {
        for block in 0..media.blocks() {
            media.set_erases(block, self.pool.erase_count(block));
        }
        let last = self.data.engrave(media);
        if T::ON_FLASH { last.max(self.pages.log().engrave(media)) } else { last }
    }

    fn record(&mut self, tape: &Tape, media: &Media) {
        self.data.record(tape, self.lpns, media);
        if T::ON_FLASH {
            self.pages.record(tape, media);
        }
    }

    fn version_on(&self, lpn: u32, media: &Media) -> Result<Option<u64>, String> {
        let slot = self.data.slot(lpn);
        if slot == NONE {
            return Ok(None);
        }
        let slots_per_page = self.data.shape().slots_per_page;
        let found = media.version(Kind::Data, slots_per_page, slot, lpn);
        found
            .map(Some)
            .ok_or_else(|| format!("LPN {lpn} maps to slot {slot}, which does not hold it on flash"))
    }
}

fn found_pool(settings: &Settings, media: &Media, scan: &Scan) -> BlockPool {
    let mut pool = BlockPool::new(settings, settings.ftl.wear_leveling.map(|leveling| leveling.threshold));
    let again = |block| u32::from(scan.erase().contains(&block));
    pool.find(|block| media.erases(block) + again(block), &scan.erased(media));
    pool.withhold_found(settings);
    pool
}

/// What is known without the spare areas of user data: the entries on flash.
fn without_scan(
    scan: &mut Scan,
    lpns: u32,
    (per_page, slots_per_page): (u32, u32),
    tape: &Tape,
    media: &Media,
) {
    for lpn in 0..lpns {
        let unit = lpn / per_page;
        let known = scan.map.map().get(unit as usize).is_some().then(|| scan.map.of(unit)).flatten();
        let entry = known
            .and_then(|(seq, _)| tape.content(Kind::Map, unit, seq))
            .map_or(NONE, |entries| entries[(lpn % per_page) as usize]);
        let found = (entry != NONE).then(|| media.version(Kind::Data, slots_per_page, entry, lpn)).flatten();
        scan.data.put(lpn, found.map(|seq| (seq, entry)));
    }
}

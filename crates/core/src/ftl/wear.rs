//! Static wear levelling: data that stays in place must not keep its block from taking its share of wear.
//!
//! Garbage collection erases the blocks whose data is overwritten; a block of cold data is left alone and the
//! others wear out first. When the erase count of an erased block exceeds that of the least worn movable block
//! of its LUN (user data and translation pages alike) by more than `ftl.wear_threshold`, the latter's data moves into
//! the former (this move is charged, with the cause `wear`), and the less worn block is written instead. This is the
//! rule of Linux's UBI (`ensure_wear_leveling`), and so is the default threshold, which UBI's configuration help
//! advises for flash that endures fewer than 10,000 cycles.
//!
//! Interpretation: the least worn block counts as the coldest. The most worn erased block is sought in the LUN's
//! two reserves, that of user data and that of translation pages, which exchange blocks for this purpose, since
//! erased blocks are all alike; a little-worn block that is erased and in the pool is exchanged without a copy.
//! An open block is moved only at twice the threshold: a block that is being written is usually full long before
//! that. While levelling is on, the least worn block of a reserve is used before the others. At most one block
//! moves per page that the host writes, so the threshold is not a strict bound: blocks that wear past it
//! meanwhile, or whose data turns out not to be cold, exceed it slightly. Translation blocks that are filled one
//! at a time (if mappings are flushed after an amount of data) are left out: the log itself rewrites them. Wear
//! is levelled within a LUN, since data does not change LUNs under static allocation.

use super::blocks::pool::BlockPool;
use super::log::{Keeper, Log, State, Under};
use super::map::pages::TranslationPages;
use super::slots::Slots;
use crate::flash::Work;

/// Where the least worn block of a LUN is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Data,
    Pages,
    Pool,
}

/// A block to be moved, if there is one: its erase count, its number, and where it is.
type Cold = Option<(u32, u32, Place)>;

fn colder(best: &mut Cold, erases: u32, block: u32, place: Place) {
    if best.is_none_or(|(least, ..)| erases < least) {
        *best = Some((erases, block, place));
    }
}

/// Returns the least worn movable block of a LUN and the most worn erased block that a log holds, if their erase
/// counts differ enough; tells the pool against which erase count it must measure.
fn apart(lun: u32, data: &Log, pages: &Log, pool: &mut BlockPool) -> Option<((u32, Place), u32)> {
    let threshold = pool.threshold()?;
    let left_out = |block| pages.shape().serial && pages.stock.has(block);
    let is = |block, state| data.stock.is(block, state) || pages.stock.is(block, state);
    let (mut settled, mut open, mut worn) = (None, None, None);
    for block in pool.of_lun(lun).filter(|&block| !left_out(block)) {
        let erases = pool.erase_count(block);
        if !(pool.is_free(block) || data.stock.has(block) || pages.stock.has(block)) {
            // The block is retired, or a spare one.
            continue;
        }
        if is(block, State::Begun) {
            // The block is being collected.
            continue;
        }
        if is(block, State::Reserve) {
            if worn.is_none_or(|(most, _)| erases > most) {
                worn = Some((erases, block));
            }
        } else if pool.is_free(block) {
            colder(&mut settled, erases, block, Place::Pool);
        } else {
            let place = if data.stock.has(block) { Place::Data } else { Place::Pages };
            let closed = is(block, State::Closed);
            colder(if closed { &mut settled } else { &mut open }, erases, block, place);
        }
    }
    pool.set_floor(lun, settled.map_or(0, |(least, ..)| least));
    let (most, worn) = worn?;
    let beyond = |cold: Cold, by: u32| cold.filter(|(least, ..)| most.saturating_sub(*least) > by);
    let (_, cold, place) =
        beyond(settled, threshold).or_else(|| beyond(open, threshold.saturating_mul(2)))?;
    Some(((cold, place), worn))
}

/// Called with copies of user data: the slot that each is copied from, and its LPN.
type Moved<'a> = dyn FnMut(&[(u32, u32)], &TranslationPages) + 'a;

/// Whoever is told about copies.
struct Told<'a, 'b> {
    pages: &'a TranslationPages,
    moved: &'a mut Moved<'b>,
}

impl Keeper for Told<'_, '_> {
    fn moved(&mut self, copies: &[(u32, u32)]) {
        (self.moved)(copies, self.pages);
    }
}

/// Moves the data of the least worn block of a LUN into its most worn erased block, if their erase counts differ
/// by more than the threshold. Calls `moved` with the copies of user data.
///
/// # Panics
/// If the log of user data cannot relocate a block on the LUN now.
#[cold]
pub(crate) fn level(
    lun: u32,
    (data, pages): (&mut Log, &mut TranslationPages),
    (slots, pool, work): (&mut Slots, &mut BlockPool, &mut Work),
    moved: &mut Moved,
) {
    // A background collection must first give back the reserve block that it has taken.
    if data.stock.is_short(lun) || (!pages.log().shape().serial && pages.log().stock.is_short(lun)) {
        return;
    }
    let Some(((cold, place), worn)) = apart(lun, data, pages.log(), pool) else { return };
    let worn_in_data = data.stock.is(worn, State::Reserve);
    match place {
        Place::Pool => {
            pool.exchange(cold, worn);
            let holder = if worn_in_data { data } else { pages.log_mut() };
            holder.stock.exchange_reserve(lun, worn, cold);
        }
        Place::Data => {
            data.program_newer(cold, slots, work);
            if !data.can_relocate(lun) {
                return;
            }
            if !worn_in_data {
                exchange(lun, worn, pages.log_mut(), data);
            }
            let mut told = Told { pages, moved };
            data.relocate(&mut Under { slots, pool, work, keeper: Some(&mut told) }, (cold, worn));
        }
        Place::Pages if pages.log().can_relocate(lun) => {
            let (log, under_pages) = pages.on_flash(pool, work);
            log.program_newer(cold, under_pages.slots, under_pages.work);
            if !pages.log().can_relocate(lun) {
                return;
            }
            if worn_in_data {
                exchange(lun, worn, data, pages.log_mut());
            }
            let (log, mut under) = pages.on_flash(pool, work);
            log.relocate(&mut under, (cold, worn));
        }
        Place::Pages => (),
    }
}

/// Hands the reserve block `worn` of the log `from` to the log `to`, in exchange for a reserve block of `to`.
fn exchange(lun: u32, worn: u32, from: &mut Log, to: &mut Log) {
    let spare = to.stock.any_reserve(lun);
    to.stock.exchange_reserve(lun, spare, worn);
    from.stock.exchange_reserve(lun, worn, spare);
}

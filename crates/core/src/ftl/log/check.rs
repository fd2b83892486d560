//! Check mode of a log: checks that the medium cannot make by itself, and the log's part in simulated power cuts.
//!
//! The model's contract is: "L2P and P2L a bijection, valid + invalid + free = all".

use super::blocks::{Block, State};
use super::writer::Writer;
use super::{Shape, Stock};
use crate::flash::media::Media;
use crate::flash::moves::Moves;
use crate::ftl::slots::Slots;
use crate::util::{Chain, NONE};

/// Turns check mode on; whatever the log holds now counts as correctly written.
pub(super) fn police(w: &Writer, slots: &mut Slots) {
    keep_medium(w, slots, true);
}

fn keep_medium(w: &Writer, slots: &mut Slots, versions: bool) {
    // A block whose state does not say how much is programmed will be reported by verification.
    let programmed = (0..w.addresses.blocks()).map(|block| programmed(w, block).unwrap_or(0)).collect();
    let Shape { slots_per_page, superblocks, .. } = *w.shape();
    slots.keep_medium((w.addresses.end(0), slots_per_page), false, programmed, versions, superblocks);
}

/// Reports to a follower, from now on, what happens to the data of owners below `lpns`.
pub(crate) fn follow(w: &Writer, slots: &mut Slots, moves: &Moves, lpns: u32) {
    if slots.medium().is_none() {
        keep_medium(w, slots, false);
    }
    slots.follow(moves, lpns);
}

/// Writes to the media what the log has programmed; returns the largest sequence number.
///
/// # Panics
/// If not in check mode.
pub(crate) fn write_media(w: &Writer, slots: &Slots, media: &mut Media) -> u64 {
    let medium = slots.medium().expect("in check mode");
    let used = |block: &u32| w.stock.has(*block) && !w.stock.is(*block, State::Reserve);
    let owner = |slot| Some(slots.spare.of(slot));
    let write_media = |block| medium.write_media((block, w.kind_of(block)), owner, media);
    (0..w.addresses.blocks()).filter(used).map(write_media).max().unwrap_or(0)
}

/// Returns how many slots must be programmed in a block, judging by its state; `None` for an open block under no head.
pub(super) fn programmed(w: &Writer, block: u32) -> Option<u32> {
    let (first, end) = (w.addresses.first(block), w.addresses.end(block));
    match w.stock.blocks[block].state {
        State::Absent | State::Reserve => Some(0),
        State::Closed if w.stock.blocks[block].unwritten => Some(0),
        State::Open => {
            let at = w.heads.find(w.addresses.group(first), end)?;
            Some(w.heads[at].next - first)
        }
        State::Closed | State::Begun | State::Cached => Some(end - first),
    }
}

/// Checks one owner's mapping and the block that it points into.
///
/// # Errors
/// A message about the first broken invariant. Always `Ok` outside check mode.
pub(crate) fn verify_owner(w: &Writer, slots: &Slots, owner: u32) -> Result<(), String> {
    slots.verify(owner)?;
    match slots.of(owner) {
        NONE => Ok(()),
        slot => verify_block(w, slots, w.addresses.block(slot)),
    }
}

fn verify_block(w: &Writer, slots: &Slots, block: u32) -> Result<(), String> {
    let Some(medium) = slots.medium() else { return Ok(()) };
    let state = &w.stock.blocks[block];
    let first = w.addresses.first(block);
    let there = medium.programmed(block);
    let mut valid = 0;
    for slot in slots.valid.members(first, w.addresses.end(block)) {
        if slot - first >= there {
            return Err(format!("block {block}: slot {} is valid but not programmed", slot - first));
        }
        valid += 1;
    }
    if valid != state.valid {
        return Err(format!("block {block} counts {} valid slots, has {valid}", state.valid));
    }
    let Some(expected) = programmed(w, block) else {
        return Err(format!("block {block} is open under no head"));
    };
    if there != expected {
        return Err(format!(
            "block {block} ({:?}) has {there} programmed slots, not {expected}",
            state.state
        ));
    }
    if there == 0 && w.durable.relies(block) {
        return Err(format!("block {block} is erased, but a trim page is due before it may be"));
    }
    Ok(())
}

/// Checks every owner, every block and every list.
///
/// # Errors
/// A message about the first broken invariant. Always `Ok` outside check mode.
pub(crate) fn verify(w: &Writer, slots: &Slots) -> Result<(), String> {
    if slots.medium().is_none() {
        return Ok(());
    }
    (0..w.shape().owners).try_for_each(|owner| slots.verify(owner))?;
    slots.verify_count()?;
    (0..w.addresses.blocks()).try_for_each(|block| verify_block(w, slots, block))?;
    for lun in w.stock.luns() {
        let aside = !w.heads[w.heads.aside(lun)].is_full();
        let most = match w.route.is_by_speed() {
            true => w.heads.of_lun() - 1,
            false => w.shape().fronts + u32::from(aside),
        };
        verify_stock(&w.stock, lun, w.heads.open(lun).count() as u32, most)?;
    }
    verify_turn(&w.stock)
}

/// Checks that a LUN's reserve, `open` blocks and closed blocks are all the blocks that the log holds there, each in
/// its list, and that no more than `most` fronts of all bits have an open block.
fn verify_stock(stock: &Stock, lun: u32, open: u32, most: u32) -> Result<(), String> {
    let at = &stock.luns[lun as usize];
    let count = |is: &dyn Fn(&Block) -> bool| {
        stock.of_lun(lun).filter(|&block| is(&stock.blocks[block])).count() as u32
    };
    let walk = |list: Chain, state: State| {
        stock.blocks.list(list).try_fold(0, |count, block| {
            match stock.is(block, state) && stock.of_lun(lun).contains(&block) {
                true => Ok(count + 1),
                false => Err(format!("block {block} is in a list of {state:?} blocks of LUN {lun}")),
            }
        })
    };
    let reserve = walk(at.reserve, State::Reserve)?;
    let cached = walk(at.full, State::Cached)?;
    let begun = count(&|block| block.state == State::Begun);
    // The copies of a victim whose collection has begun may take up one reserve block.
    let whole = at.reserve_len == stock.shape.reserve || at.reserve_len + begun.min(1) == stock.shape.reserve;
    if reserve != at.reserve_len || !whole {
        return Err(format!("LUN {lun} has {reserve} reserve blocks of {}", stock.shape.reserve));
    }
    let in_slc = (count(&|block| block.slc), cached);
    if in_slc != (at.in_slc, at.cached) || at.in_slc - at.cached > 1 {
        return Err(format!("LUN {lun} has {in_slc:?} blocks in SLC mode, not {at:?}"));
    }
    let closed = verify_closed(stock, lun)?;
    if open > most + at.in_slc - at.cached {
        return Err(format!("LUN {lun} has {open} open blocks"));
    }
    if closed != at.closed || reserve + open + closed + begun + cached != at.held {
        return Err(format!(
            "LUN {lun}: {reserve} reserve + {open} open + {closed} closed + {begun} begun + {cached} cached blocks \
             are not the {} held, {} closed",
            at.held, at.closed
        ));
    }
    let live: u32 = stock.of_lun(lun).map(|block| stock.blocks[block].valid).sum();
    if live != at.live {
        return Err(format!("LUN {lun} counts {} live slots, has {live}", at.live));
    }
    Ok(())
}

/// Checks that the policy holds every closed block of the LUN once, under its number of valid slots.
fn verify_closed(stock: &Stock, lun: u32) -> Result<u32, String> {
    let mut held = Vec::new();
    let mut fault = None;
    stock.victims.each(lun, &mut |block, filed| {
        let Block { valid, state, .. } = stock.blocks[block];
        let here = stock.of_lun(lun).contains(&block);
        if state != State::Closed || !here || filed.is_some_and(|filed| filed != valid) {
            fault.get_or_insert(format!(
                "block {block} ({state:?}, {valid} valid) is filed for collection on LUN {lun} under {filed:?}"
            ));
        }
        held.push(block);
    });
    held.sort_unstable();
    match (fault, held.windows(2).find(|pair| pair[0] == pair[1])) {
        (Some(fault), _) => Err(fault),
        (None, Some(twice)) => Err(format!("block {} is filed twice for collection", twice[0])),
        (None, None) => Ok(held.len() as u32),
    }
}

/// Checks the block counts of each LUN of a serial log.
fn verify_turn(stock: &Stock) -> Result<(), String> {
    let Some(turn) = &stock.turn else { return Ok(()) };
    let each = stock.blocks.count() / stock.shape.luns;
    let count = |lun| (lun * each..(lun + 1) * each).filter(|&block| stock.has(block)).count() as u32;
    let held: Vec<u32> = (0..stock.shape.luns).map(count).collect();
    if held != turn.held || held.iter().any(|&blocks| blocks > turn.most) {
        let (counted, most) = (&turn.held, turn.most);
        return Err(format!("translation blocks by LUN are {held:?}, counted {counted:?}, at most {most}"));
    }
    Ok(())
}

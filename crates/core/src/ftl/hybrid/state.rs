//! A hybrid FTL's saved state: its blocks and the map. Whatever follows from these is recomputed, as after a
//! power cut.

use std::io;

use super::logs::{FoundLog, Logs};
use super::store::{Block, Role, Store};
use crate::ftl::blocks::pool::Claims;
use crate::ftl::settings::Settings;
use crate::util::NONE;
use crate::util::codec::{Damage, Decoder, Encoder};

/// Writes the blocks and the map of a device in which no merge is in progress.
pub(super) fn save(store: &Store, logs: &impl Logs, out: &mut Encoder) -> io::Result<()> {
    debug_assert!(store.cooperative == NONE, "a merge is under way");
    store.pool.save(out)?;
    let next = |block: u32| if block == NONE { 0 } else { store.block(block).next };
    let data: Vec<(u32, u32)> = store.data.iter().map(|&block| (block, next(block))).collect();
    let mut kept = Vec::new();
    logs.each(&mut |log| {
        let Block { owner, next, in_order, .. } = *store.block(log);
        kept.push((log, owner, next, in_order));
    });
    out.value(&(data, kept))?;
    store.slots.save(out)
}

/// Restores the saved blocks and map, and makes the lists of log blocks. In check mode the versions of all pages
/// are counted from 1 again.
pub(super) fn load<L: Logs>(
    settings: &Settings,
    check: bool,
    from: &mut Decoder,
) -> Result<(Store, L), Damage> {
    let mut store = Store::new(settings, false);
    let mut claims = store.pool.load(from)?;
    type Saved = (Vec<(u32, u32)>, Vec<(u32, u32, u32, bool)>);
    let (data, logs): Saved = from.value()?;
    if data.len() != store.data.len() {
        return Damage::impossible("it holds a device of another size");
    }
    for (logical, (block, next)) in (0..).zip(data).filter(|(_, (block, _))| *block != NONE) {
        let at = Block { role: Role::Data, owner: logical, next, ..Block::FREE };
        take_up(&mut store, block, at, &mut claims)?;
        store.data[logical as usize] = block;
    }
    let mut found = Vec::with_capacity(logs.len());
    for (born, (block, owner, next, in_order)) in (0..).zip(logs) {
        let at = Block { role: Role::Log, owner, next, in_order, ..Block::FREE };
        take_up(&mut store, block, at, &mut claims)?;
        found.push(FoundLog { block, born });
    }
    store.pool.retire(&claims)?;
    store.slots.load(from)?;
    count_map(&mut store).or_else(Damage::impossible)?;
    for &FoundLog { block, .. } in &found {
        store.verify_order(block).or_else(Damage::impossible)?;
        let Block { owner, in_order, .. } = *store.block(block);
        if owner != NONE && in_order && !store.continues(block) {
            return Damage::impossible(format!("log block {block} has older pages than its data block"));
        }
    }
    let logs = L::found(&found, &store).or_else(Damage::impossible)?;
    logs.verify(&store).or_else(Damage::impossible)?;
    if check {
        store.police();
    }
    Ok((store, logs))
}

/// Checks a block that is in use in the saved state, and takes it into the store.
fn take_up(store: &mut Store, block: u32, at: Block, claims: &mut Claims) -> Result<(), Damage> {
    claims.claim(block)?;
    let owned = at.owner == NONE
        || (at.owner < store.shape.logical_blocks() && store.lun(at.owner) == store.lun_of_block(block));
    if !owned || at.next == 0 || at.next > store.shape.pages_per_block {
        return Damage::impossible(format!("block {block} cannot be {at:?}"));
    }
    store.blocks[block as usize] = at;
    Ok(())
}

/// Determines what follows from the map, and checks where each page lies.
fn count_map(store: &mut Store) -> Result<(), String> {
    store.slots.count_map()?;
    for (lpn, page) in store.slots.mapped() {
        store.verify_place(lpn, page)?;
        let (block, offset) = (store.block_of(page), store.offset(page));
        if offset >= store.block(block).next {
            return Err(format!("block {block} has data where nothing was programmed"));
        }
        store.blocks[block as usize].valid += 1;
    }
    Ok(())
}

//! A log's saved state: its blocks, in the order in which the log will go on to use them, and the map.
//!
//! Everything else follows from these and is recomputed, so that a saved state cannot contradict itself in those
//! respects; what could still be wrong in the blocks and the map is checked here. Which slots are valid, and which
//! owners they have, follows from the map. Stale owners of invalid slots are not kept: nothing reads them.

use std::io;

use super::{Log, Placed, Shape, State};
use crate::ftl::blocks::pool::{BlockPool, Claims};
use crate::ftl::settings::Settings;
use crate::ftl::slots::Slots;
use crate::util::NONE;
use crate::util::codec::{Damage, Decoder, Encoder, MOST_COUNTED};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// What is saved besides the map.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    writes: u64,
    cursor: u32,
    /// LUN that is asked first for the next block, if one block is filled at a time.
    turn: u32,
    /// Reserve blocks; the last one is used first.
    reserve: Vec<u32>,
    /// For each LUN, the next slots of the frontier and of the block set aside, or [`NONE`].
    open: Vec<[u32; 2]>,
    /// Closed blocks, in the order in which loading closes them again, with their times of modification.
    closed: Vec<(u32, u64)>,
    /// Closed blocks that were never written.
    unwritten: Vec<u32>,
    random: Option<Xoshiro256PlusPlus>,
    /// Blocks with a slot whose owner has a newer version in a page buffer, and the front of that page buffer.
    superseded: Vec<(u32, u32)>,
}

/// What is saved for the placement, if there is one.
#[derive(Serialize, Deserialize)]
struct KeptPlacement {
    /// By LUN and front, the next slot of the block that waits, or [`NONE`]; the block set aside is included.
    waiting: Vec<u32>,
    active: Vec<u32>,
    written: Vec<u64>,
    opened: Vec<(u32, u64)>,
    /// The LUNs of the cursors.
    cursors: Vec<u32>,
    /// The placement's own state.
    own: Vec<u64>,
    /// The full blocks of the SLC cache, oldest first, LUN by LUN.
    cached: Vec<u32>,
    /// For each logical page, the front to which its cached version will be folded.
    kept: Vec<u8>,
}

impl Log {
    /// Writes the log of an idle device, in which no trim page is due.
    pub(crate) fn save(&self, slots: &Slots, out: &mut Encoder) -> io::Result<()> {
        debug_assert!(!self.is_by_speed() && self.background.is_none() && self.trim_pages_due() == 0);
        let mut kept = Kept {
            writes: self.writes,
            cursor: self.cursor.luns[0],
            turn: self.serial.as_ref().map_or(0, |serial| serial.next_lun),
            unwritten: (0..self.blocks()).filter(|&block| self.blocks[block as usize].unwritten).collect(),
            random: self.victims.clone().random().cloned(),
            superseded: self.cursor.superseded.clone(),
            ..Kept::default()
        };
        for (group, at) in (0..).zip(&self.luns) {
            let first = kept.reserve.len();
            let mut block = at.reserve;
            while block != NONE {
                kept.reserve.push(block);
                block = self.blocks[block as usize].next;
            }
            kept.reserve[first..].reverse();
            let next = if at.is_full() { NONE } else { at.next };
            kept.open.push([next, self.fronts.next(group, self.fronts.aside())]);
            self.victims.each(group, &mut |block, _| kept.closed.push((block, self.victims.modified(block))));
        }
        out.value(&kept)?;
        if let Some(Placed { policy, active, written, opened, .. }) = self.placed.as_deref() {
            let (cached, kept) = self.save_cache();
            out.value(&KeptPlacement {
                waiting: self.fronts.all().to_vec(),
                active: active.clone(),
                written: written.clone(),
                opened: opened.clone(),
                cursors: self.cursor.luns.clone(),
                own: policy.save(),
                cached,
                kept,
            })?;
        }
        slots.save(out)
    }

    /// Reads a saved log of this shape. In check mode the versions of every owner are counted from 1 again.
    pub(crate) fn load(
        shape: Shape,
        settings: &Settings,
        (slots, pool, claims): (&mut Slots, &mut BlockPool, &mut Claims),
        check: bool,
        from: &mut Decoder,
    ) -> Result<Log, Damage> {
        let mut log = Log::without_reserve(shape, settings, (slots, pool));
        let kept: Kept = from.value()?;
        let placement: Option<KeptPlacement> = log.placed.is_some().then(|| from.value()).transpose()?;
        slots.load(from)?;
        log.count_map(slots).or_else(Damage::impossible)?;
        log.take_numbers(&kept)?;
        for &block in &kept.reserve {
            let group = log.take_up(block, claims)?;
            log.reserve_push(group, block);
        }
        for (group, [next, aside]) in (0..).zip(kept.open) {
            log.take_up_waiting(group, log.fronts.aside(), aside, claims)?;
            if next != NONE {
                let end = log.take_up_open(group, next, claims)?;
                let at = &mut log.luns[group as usize];
                (at.next, at.end) = (next, end);
            }
        }
        if let Some(placement) = placement {
            log.take_placement(placement, claims)?;
        }
        for (block, modified) in kept.closed {
            let group = log.take_up(block, claims)?;
            if modified > log.writes {
                return Damage::impossible(format!("block {block} was modified at {modified}"));
            }
            log.close_found(group, block, modified);
        }
        for &block in &kept.unwritten {
            let known = log.blocks.get_mut(block as usize).filter(|known| known.state == State::Closed);
            let Some(known) = known.filter(|_| shape.user_blocks > 0) else {
                return Damage::impossible(format!(
                    "block {block} is closed without ever having been written"
                ));
            };
            known.unwritten = true;
        }
        let (blocks, fronts) = (log.blocks(), log.cursor.luns.len());
        let known = |&(block, front): &(u32, u32)| block < blocks && (front as usize) < fronts;
        if !kept.superseded.iter().all(known) || (!shape.power_safe && !kept.superseded.is_empty()) {
            return Damage::impossible("it holds newer versions of what is in no block");
        }
        log.cursor.superseded.extend(kept.superseded);
        if let (Some(stream), Some(random)) = (log.victims.random(), kept.random) {
            *stream = random;
        }
        log.examine(slots)?;
        if check {
            log.police(slots);
        }
        Ok(log)
    }

    fn take_numbers(&mut self, kept: &Kept) -> Result<(), Damage> {
        let luns = self.shape.luns;
        let groups = self.luns.len();
        if kept.cursor >= luns || kept.turn >= luns || kept.writes > MOST_COUNTED || kept.open.len() != groups
        {
            return Damage::impossible("it holds a log of another shape");
        }
        (self.writes, self.cursor.luns[0]) = (kept.writes, kept.cursor);
        if let Some(serial) = &mut self.serial {
            serial.next_lun = kept.turn;
        }
        Ok(())
    }

    /// Claims a block for the log; returns its LUN, or 0 if all LUNs count as one.
    fn take_up(&mut self, block: u32, claims: &mut Claims) -> Result<u32, Damage> {
        claims.claim(block)?;
        if let Some(serial) = &mut self.serial {
            serial.found(self.addresses.lun(self.addresses.first(block)));
        }
        let group = self.addresses.group(self.addresses.first(block));
        self.luns[group as usize].held += 1;
        Ok(group)
    }

    /// Reopens the block of this slot, to be filled from this slot on; returns one past the block's last slot.
    fn take_up_open(&mut self, group: u32, next: u32, claims: &mut Claims) -> Result<u32, Damage> {
        let block = self.addresses.block(next);
        if self.take_up(block, claims)? != group || next >= self.addresses.end(block) {
            return Damage::impossible(format!("block {block} is open on another LUN than its own, or full"));
        }
        self.blocks[block as usize].state = State::Open;
        Ok(self.addresses.end(block))
    }

    /// Notes that the block of the slot `next` waits until its front is written; does nothing if `next` is [`NONE`].
    fn take_up_waiting(
        &mut self,
        group: u32,
        front: u32,
        next: u32,
        claims: &mut Claims,
    ) -> Result<(), Damage> {
        if next != NONE {
            self.take_up_open(group, next, claims)?;
            self.fronts.put(group, front, next);
        }
        Ok(())
    }

    /// Restores what was saved for the placement.
    fn take_placement(&mut self, kept: KeptPlacement, claims: &mut Claims) -> Result<(), Damage> {
        let KeptPlacement { waiting, active, written, opened, cursors, own, cached, kept } = kept;
        let Some(placed) = &mut self.placed else { return Ok(()) };
        let (fronts, of_lun, now) = (placed.fronts, self.fronts.of_lun(), self.writes);
        let fits = active.len() == placed.active.len()
            && waiting.len() == active.len() * of_lun as usize
            && written.len() == placed.written.len()
            && opened.len() == placed.opened.len()
            && cursors.len() == self.cursor.luns.len()
            && cursors.iter().all(|&lun| lun < self.shape.luns)
            && active.iter().all(|&front| front < fronts)
            && written.iter().all(|&at| at <= now)
            && opened.iter().all(|&(front, at)| front < fronts && at <= now);
        if !fits || !placed.policy.load(&own) {
            return Damage::impossible("it holds another placement of pages");
        }
        (placed.active, placed.written, placed.opened) = (active, written, opened);
        self.cursor.luns = cursors;
        if !self.take_kept(kept) || (self.slc.is_none() && !cached.is_empty()) {
            return Damage::impossible("it holds another SLC cache");
        }
        for block in cached {
            let lun = self.take_up(block, claims)?;
            self.take_up_cached(lun, block, true);
        }
        for (at, next) in (0..).zip(waiting).filter(|(at, _)| at % of_lun < fronts) {
            self.take_up_waiting(at / of_lun, at % of_lun, next, claims)?;
        }
        (0..self.luns.len() as u32).try_for_each(|lun| self.take_open_cached(lun))
    }

    /// Notes which open block of a LUN is in SLC mode.
    fn take_open_cached(&mut self, lun: u32) -> Result<(), Damage> {
        let Some(front) = self.slc.as_ref().map(|slc| slc.front) else { return Ok(()) };
        let at = self.luns[lun as usize];
        let next = match self.active(lun) == front {
            true if at.is_full() => NONE,
            true => at.next,
            false => self.fronts.next(lun, front),
        };
        if next == NONE {
            return Ok(());
        }
        let block = self.addresses.block(next);
        if !self.may_go_on(next - self.addresses.first(block)) {
            return Damage::impossible(format!("block {block} is in SLC mode and ends within a word line"));
        }
        self.take_up_cached(lun, block, false);
        Ok(())
    }

    /// Checks what could still be wrong in the order of the blocks and in the map.
    fn examine(&self, slots: &Slots) -> Result<(), Damage> {
        for block in 0..self.blocks() {
            let programmed = self.addresses.first(block) + self.programmed(block).unwrap_or(0);
            if slots.valid.next_set(programmed, self.addresses.first(block + 1)).is_some() {
                return Damage::impossible(format!("block {block} has data where nothing was programmed"));
            }
        }
        let by_home = !self.cursor.leads && !self.shape.serial;
        let strays = |&(owner, slot): &(u32, u32)| {
            by_home && owner < self.pages() && self.addresses.lun(slot) != self.addresses.home(owner)
        };
        if let Some((owner, slot)) = slots.mapped().find(strays) {
            return Damage::impossible(format!("page {owner} lies in slot {slot}, not on its LUN"));
        }
        (0..self.luns.len() as u32).try_for_each(|group| self.examine_lun(group))
    }

    fn examine_lun(&self, group: u32) -> Result<(), Damage> {
        let Shape { limit, reserve, serial, .. } = self.shape;
        let at = &self.luns[group as usize];
        // A serial log collects before it takes its last block.
        if at.reserve_len != reserve || at.held + u32::from(serial) > limit {
            return Damage::impossible(format!(
                "LUN {group} has {} blocks, {} in reserve",
                at.held, at.reserve_len
            ));
        }
        let begun = |next: u32| if next == NONE { 0 } else { self.addresses.in_page(next) };
        let of = |front| if front == self.fronts.aside() { NONE } else { front };
        let waiting = (0..self.fronts.of_lun()).map(|front| (of(front), self.fronts.next(group, front)));
        let mut more = 0;
        for (front, next) in waiting.chain([(self.active(group), at.next)]) {
            let goes_on =
                self.cursor.leads && !serial && self.cursor.luns.get(front as usize) == Some(&group);
            if begun(next) != 0 && !goes_on {
                return Damage::impossible(format!("LUN {group} has a page that is part-full"));
            }
            more += if goes_on && next != NONE { self.shape.slots_per_page - begun(next) } else { 0 };
        }
        if self.cursor.leads && !serial && u64::from(at.live) + u64::from(more) > self.room() {
            return Damage::impossible(format!("LUN {group} has more data than it can have"));
        }
        Ok(())
    }
}

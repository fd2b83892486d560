//! A log's saved state: its blocks, in the order in which the log will go on to use them, and the map.
//!
//! Everything else follows from these and is recomputed, so that a saved state cannot contradict itself in those
//! respects; what could still be wrong in the blocks and the map is checked here. Which slots are valid, and which
//! owners they have, follows from the map. Stale owners of invalid slots are not kept: nothing reads them.

use std::io;

use super::check::{police, programmed};
use super::heads::{At, Rest};
use super::placed::Placed;
use super::writer::Writer;
use super::{Log, Shape, State};
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
        debug_assert!(
            !self.route.is_by_speed() && !self.mover.in_background() && self.durable.due().is_empty()
        );
        let stock = &self.stock;
        let mut kept = Kept {
            writes: stock.writes,
            cursor: self.route.luns[0],
            turn: stock.turn.as_ref().map_or(0, |turn| turn.next_lun),
            unwritten: (0..stock.blocks.count()).filter(|&block| stock.blocks[block].unwritten).collect(),
            random: stock.victims.clone().random().cloned(),
            superseded: self.durable.superseded.clone(),
            ..Kept::default()
        };
        for lun in stock.luns() {
            let first = kept.reserve.len();
            kept.reserve.extend(stock.reserve(lun));
            kept.reserve[first..].reverse();
            let open = [self.route.facing(lun), self.heads.aside(lun)];
            kept.open.push(open.map(|at| self.heads[at].slot()));
            stock.victims.each(lun, &mut |block, _| kept.closed.push((block, stock.victims.modified(block))));
        }
        out.value(&kept)?;
        if let Some(Placed { policy, written, opened, kept, .. }) = self.route.placed.as_deref() {
            let waits = |at: At| at != self.route.facing(at.lun);
            let waiting = |at| if waits(at) { self.heads[at].slot() } else { NONE };
            out.value(&KeptPlacement {
                waiting: stock.luns().flat_map(|lun| self.heads.all(lun)).map(waiting).collect(),
                active: self.route.facing.clone(),
                written: written.clone(),
                opened: opened.clone(),
                cursors: self.route.luns.clone(),
                own: policy.save(),
                cached: stock.luns().flat_map(|lun| stock.cached(lun)).collect(),
                kept: kept.clone(),
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
        let mut log = Log::without_reserve(shape, settings, pool);
        let mut kept: Kept = from.value()?;
        let placement: Option<KeptPlacement> =
            log.route.placed.is_some().then(|| from.value()).transpose()?;
        slots.load(from)?;
        log.count_map(slots).or_else(Damage::impossible)?;
        log.take_numbers(&mut kept)?;
        for &block in &kept.reserve {
            let lun = log.take_up(block, claims)?;
            log.stock.reserve_push(lun, block);
        }
        let [cached, waiting] = log.take_placement(placement)?;
        for (lun, [next, aside]) in (0..).zip(kept.open) {
            log.take_up_open(log.heads.aside(lun), aside, claims)?;
            log.take_up_open(log.route.facing(lun), next, claims)?;
        }
        for block in cached {
            let lun = log.take_up(block, claims)?;
            log.stock.cache(lun, block);
            log.stock.close(lun, block, 0);
        }
        let heads: Vec<At> = log.stock.luns().flat_map(|lun| log.heads.all(lun)).collect();
        for (at, next) in heads.into_iter().zip(waiting) {
            // What is set aside is saved with the open blocks.
            if at != log.heads.aside(at.lun) {
                log.take_up_open(at, next, claims)?;
            }
        }
        log.stock.luns().try_for_each(|lun| log.take_open_cached(lun))?;
        for (block, modified) in kept.closed {
            let lun = log.take_up(block, claims)?;
            if modified > log.stock.writes {
                return Damage::impossible(format!("block {block} was modified at {modified}"));
            }
            log.stock.close(lun, block, modified);
        }
        for &block in &kept.unwritten {
            if block >= log.stock.blocks.count()
                || !log.stock.is(block, State::Closed)
                || shape.user_blocks == 0
            {
                return Damage::impossible(format!(
                    "block {block} is closed without ever having been written"
                ));
            }
            log.stock.blocks[block].unwritten = true;
        }
        log.examine(slots)?;
        if check {
            police(&log, slots);
        }
        Ok(log)
    }

    fn take_numbers(&mut self, kept: &mut Kept) -> Result<(), Damage> {
        let (luns, open) = (self.shape().luns, self.stock.luns().len());
        if kept.cursor >= luns || kept.turn >= luns || kept.writes > MOST_COUNTED || kept.open.len() != open {
            return Damage::impossible("it holds a log of another shape");
        }
        (self.stock.writes, self.route.luns[0]) = (kept.writes, kept.cursor);
        if let Some(turn) = &mut self.stock.turn {
            turn.next_lun = kept.turn;
        }
        let (blocks, fronts) = (self.stock.blocks.count(), self.route.luns.len());
        let known = |&(block, front): &(u32, u32)| block < blocks && (front as usize) < fronts;
        if !kept.superseded.iter().all(known) || (!self.shape().power_safe && !kept.superseded.is_empty()) {
            return Damage::impossible("it holds newer versions of what is in no block");
        }
        self.durable.superseded.append(&mut kept.superseded);
        if let (Some(stream), Some(random)) = (self.stock.victims.random(), kept.random.take()) {
            *stream = random;
        }
        Ok(())
    }

    /// Claims a block for the log; returns its LUN, or 0 if all LUNs count as one.
    fn take_up(&mut self, block: u32, claims: &mut Claims) -> Result<u32, Damage> {
        claims.claim(block)?;
        let first = self.addresses.first(block);
        let (lun, group) = (self.addresses.lun(first), self.addresses.group(first));
        if let Some(turn) = &mut self.stock.turn {
            turn.held[lun as usize] += 1;
        }
        self.stock.hold(group);
        Ok(group)
    }

    /// Reopens the block of this slot under a head, to be filled from this slot on; does nothing if `next` is [`NONE`].
    fn take_up_open(&mut self, at: At, next: u32, claims: &mut Claims) -> Result<(), Damage> {
        if next == NONE {
            return Ok(());
        }
        let block = self.addresses.block(next);
        if self.take_up(block, claims)? != at.lun || !self.heads[at].is_full() {
            return Damage::impossible(format!(
                "block {block} is open on another LUN than its own, or twice"
            ));
        }
        self.stock.blocks[block].state = State::Open;
        self.heads[at] = Rest { next, end: self.addresses.end(block) };
        Ok(())
    }

    /// Restores what was saved for the placement; returns the full blocks of the SLC cache, and what waits by LUN and
    /// front.
    fn take_placement(&mut self, kept: Option<KeptPlacement>) -> Result<[Vec<u32>; 2], Damage> {
        let Writer { addresses, stock, heads, route, .. } = &mut *self.mover;
        let (Some(placed), Some(saved)) = (&mut route.placed, kept) else { return Ok(Default::default()) };
        let KeptPlacement { waiting, active, written, opened, cursors, own, cached, kept } = saved;
        let (fronts, now) = (placed.fronts, stock.writes);
        let fits = active.len() == route.facing.len()
            && waiting.len() == active.len() * heads.of_lun() as usize
            && written.len() == placed.written.len()
            && opened.len() == placed.opened.len()
            && cursors.len() == route.luns.len()
            && cursors.iter().all(|&lun| lun < addresses.shape.luns)
            && active.iter().all(|&front| front < fronts)
            && written.iter().all(|&at| at <= now)
            && opened.iter().all(|&(front, at)| front < fronts && at <= now);
        if !fits || !placed.policy.load(&own) {
            return Damage::impossible("it holds another placement of pages");
        }
        let kept_fits =
            kept.len() == placed.kept.len() && kept.iter().all(|&front| u32::from(front) + 1 < fronts);
        if !kept_fits || (heads.gap.is_none() && !cached.is_empty()) {
            return Damage::impossible("it holds another SLC cache");
        }
        (placed.written, placed.opened, placed.kept) = (written, opened, kept);
        (route.facing, route.luns) = (active, cursors);
        Ok([cached, waiting])
    }

    /// Notes which open block of a LUN is in SLC mode.
    fn take_open_cached(&mut self, lun: u32) -> Result<(), Damage> {
        let Some(gap) = self.heads.gap else { return Ok(()) };
        let rest = self.heads[At { lun, head: gap.head }];
        if rest.is_full() {
            return Ok(());
        }
        let block = self.addresses.block(rest.next);
        if (rest.next - self.addresses.first(block)) % gap.line >= gap.page {
            return Damage::impossible(format!("block {block} is in SLC mode and ends within a word line"));
        }
        self.stock.cache(lun, block);
        Ok(())
    }

    /// Checks what could still be wrong in the order of the blocks and in the map.
    fn examine(&self, slots: &Slots) -> Result<(), Damage> {
        for block in 0..self.stock.blocks.count() {
            let programmed = self.addresses.first(block) + programmed(self, block).unwrap_or(0);
            if slots.valid.next_set(programmed, self.addresses.end(block)).is_some() {
                return Damage::impossible(format!("block {block} has data where nothing was programmed"));
            }
        }
        let by_home = !self.route.leads && !self.shape().serial;
        let strays = |&(owner, slot): &(u32, u32)| {
            let lpn = owner < self.shape().pages();
            by_home && lpn && self.addresses.lun(slot) != self.addresses.home(owner)
        };
        if let Some((owner, slot)) = slots.mapped().find(strays) {
            return Damage::impossible(format!("page {owner} lies in slot {slot}, not on its LUN"));
        }
        self.stock.luns().try_for_each(|lun| self.examine_lun(lun))
    }

    fn examine_lun(&self, lun: u32) -> Result<(), Damage> {
        let Shape { limit, reserve, serial, slots_per_page, .. } = *self.shape();
        let (held, erased) = (self.stock.held(lun), self.stock.reserve(lun).count() as u32);
        // A serial log collects before it takes its last block.
        if erased != reserve || held + u32::from(serial) > limit {
            return Damage::impossible(format!("LUN {lun} has {held} blocks, {erased} in reserve"));
        }
        let facing = self.route.facing(lun);
        let mut more = 0;
        for at in self.heads.all(lun).filter(|&at| at == facing || !self.heads[at].is_full()) {
            let goes_on = self.route.leads && self.route.luns.get(at.head as usize) == Some(&lun);
            if self.is_begun(at) && !goes_on {
                return Damage::impossible(format!("LUN {lun} has a page that is part-full"));
            }
            let begun = self.addresses.in_page(self.heads[at].next);
            more += if goes_on { slots_per_page - begun } else { 0 };
        }
        if self.route.leads && !self.stock.fits(lun, more, self.durable.has_trims()) {
            return Damage::impossible(format!("LUN {lun} has more data than it can have"));
        }
        Ok(())
    }
}

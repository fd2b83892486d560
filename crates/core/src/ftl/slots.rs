//! What lies where: the map from owners to slots, and what the flash records about each slot.
//!
//! A log of pages and the blocks of a hybrid FTL are both built on this. An owner is whatever can have data: a
//! logical page, a translation page, a trim page. A slot holds one owner's data: a NAND page, or a logical page
//! if that is smaller. In check mode the [`Medium`] is told about every change.

use std::io;

use crate::flash::media::{Kind, Media, Tape};
use crate::flash::medium::Medium;
use crate::flash::moves::Moves;
use crate::flash::superblocks::Superblocks;
use crate::ftl::spare::Spare;
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, NONE, memory};

/// The map and what follows from it.
#[derive(Debug)]
pub(crate) struct Slots {
    /// For each owner, the bitwise complement of the slot with its newest version; 0 if it has no data, so that a large
    /// device takes up memory only as its owners get data.
    map: Vec<u32>,
    /// The owner in each slot's spare area.
    pub spare: Spare,
    /// Slots that hold the newest version of their owner.
    pub valid: Bits,
    /// The medium, which is kept in check mode and for a follower of the data.
    medium: Option<Box<Medium>>,
    /// The owners whose slot has changed since [`Slots::forget_changes`], if the host holds mapping entries.
    changed: Option<Box<Bits>>,
}

impl Clone for Slots {
    fn clone(&self) -> Slots {
        Slots {
            map: memory::copied(&self.map),
            spare: self.spare.clone(),
            valid: self.valid.clone(),
            medium: self.medium.clone(),
            changed: self.changed.clone(),
        }
    }
}

impl Slots {
    /// Makes a map of owners that have no data, and slots that are all erased.
    pub(crate) fn new(owners: u32, spare: Spare) -> Slots {
        let mut map = vec![0; owners as usize];
        memory::prepare(&mut map, false);
        let valid = Bits::new(spare.len());
        Slots { map, spare, valid, medium: None, changed: None }
    }

    /// Prepares the map's memory for a device on which most owners have data.
    pub(crate) fn expect_data(&mut self) {
        memory::prepare(&mut self.map, true);
    }

    /// Returns the slot of an owner, or [`NONE`].
    #[inline]
    pub(crate) fn of(&self, owner: u32) -> u32 {
        !self.map[owner as usize]
    }

    /// Sets an owner's slot, or removes it if `slot` is [`NONE`]; returns the previous slot.
    #[inline]
    pub(crate) fn set(&mut self, owner: u32, slot: u32) -> u32 {
        if let Some(changed) = &mut self.changed {
            changed.set(owner);
        }
        !std::mem::replace(&mut self.map[owner as usize], !slot)
    }

    /// From now on, notes which owners' slots change, or no longer does.
    pub(crate) fn note_changes(&mut self, keep: bool) {
        self.changed = keep.then(|| Box::new(Bits::new(self.map.len())));
    }

    /// Notes that the slots of the owners from `first` up to `end` count as unchanged from now on.
    pub(crate) fn forget_changes(&mut self, first: u32, end: u32) {
        if let Some(changed) = &mut self.changed {
            changed.take(first, end);
        }
    }

    /// Whether an owner's slot has changed since [`Slots::forget_changes`].
    pub(crate) fn has_changed(&self, owner: u32) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.get(owner))
    }

    /// Begins to load the map entry of an owner into the CPU cache, if there is such an owner.
    #[inline]
    pub(crate) fn fetch(&self, owner: u32) {
        memory::fetch(&self.map, owner as usize);
    }

    /// Returns the owners that have data, with their slots.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        mapped(&self.map)
    }

    /// Writes the map.
    pub(crate) fn save(&self, out: &mut Encoder) -> io::Result<()> {
        out.words(self.map.iter().map(|kept| !kept))
    }

    /// Reads a map that has the same number of owners as this one.
    pub(crate) fn load(&mut self, from: &mut Decoder) -> Result<(), Damage> {
        self.expect_data();
        from.words(&mut self.map)?;
        self.map.iter_mut().for_each(|word| *word = !*word);
        Ok(())
    }

    /// Determines from the map which slots are valid, and which owner each of them has.
    pub(crate) fn count_map(&mut self) -> Result<(), String> {
        let Slots { map, spare, valid, .. } = self;
        for (owner, slot) in mapped(map) {
            if slot as usize >= spare.len() || valid.get(slot) {
                return Err(format!("page {owner} lies in slot {slot}, which is not its own"));
            }
            spare.set(slot, owner);
            valid.set(slot);
        }
        Ok(())
    }

    /// Tells the medium, if one is kept, what happens.
    #[inline]
    pub(crate) fn tell(&mut self, what: impl FnOnce(&mut Medium)) {
        if let Some(medium) = &mut self.medium {
            what(medium);
        }
    }

    /// Programs an owner's newest version into a slot, which the caller marks valid; `kind` returns the purpose
    /// for which the block was taken.
    #[inline(always)] // called for every write
    pub(crate) fn place(&mut self, slot: u32, owner: u32, kind: impl FnOnce() -> Kind) {
        self.spare.set(slot, owner);
        self.set(owner, slot);
        self.tell(|medium| medium.program(slot, owner, kind()));
    }

    /// Passes on each valid slot in `first..end` with its owner, and begins to load the owner's map entry into the CPU
    /// cache.
    #[inline]
    pub(crate) fn each_live(&self, first: u32, end: u32, mut take: impl FnMut(u32, u32)) {
        self.spare.each(&self.valid, first..end, |live, owner| {
            self.fetch(owner);
            take(live, owner);
        });
    }

    /// Programs owners' newest versions, each with the slot that it is copied from, into the slots from `first` on.
    #[inline(never)] // so that the loop has the arrays' addresses at hand
    pub(crate) fn place_copies(&mut self, first: u32, copies: &[(u32, u32)], kind: Kind) {
        if self.medium.is_some() || self.changed.is_some() {
            return self.place_followed(first, copies, kind);
        }
        self.spare.set_all(first, copies.iter().map(|&(_, owner)| owner));
        for (slot, &(_, owner)) in (first..).zip(copies) {
            self.map[owner as usize] = !slot;
        }
    }

    #[cold]
    fn place_followed(&mut self, first: u32, copies: &[(u32, u32)], kind: Kind) {
        for (slot, &(live, owner)) in (first..).zip(copies) {
            self.tell(|medium| medium.copy(live, owner));
            self.place(slot, owner, || kind);
        }
    }

    /// Places the first versions of owners, from slot `first` on, until it comes to an owner that has a version
    /// already; returns how many it placed.
    #[inline(never)] // so that the loop has the arrays' addresses at hand
    pub(crate) fn prefill(&mut self, first: u32, owners: &[u32], kind: Kind) -> u32 {
        let mut slot = first;
        for &owner in owners {
            if self.of(owner) != NONE {
                break;
            }
            self.tell(|medium| medium.write(owner, NONE));
            self.valid.set(slot);
            self.place(slot, owner, || kind);
            slot += 1;
        }
        slot - first
    }

    /// Removes an owner's data; returns its slot, which is still marked valid: the caller must invalidate it.
    pub(crate) fn trim(&mut self, owner: u32) -> u32 {
        self.tell(|medium| medium.trim(owner));
        self.set(owner, NONE)
    }

    /// Removes an owner's data that is no longer needed, as [`Slots::trim`] does, but not because the host has
    /// trimmed it.
    pub(crate) fn forget(&mut self, owner: u32) -> u32 {
        self.tell(|medium| medium.forget(owner));
        self.set(owner, NONE)
    }

    /// Tells the medium, if one is kept, that a block is erased.
    pub(crate) fn erase(&mut self, block: u32) {
        if let Some(medium) = &mut self.medium {
            medium.erase(block, &self.valid);
        }
    }
}

/// What check mode and simulated power cuts need.
impl Slots {
    /// Keeps a medium from now on, with blocks of this shape; `programmed` says how many slots of each block are
    /// programmed, `superblocks` where they are on the flash. With `gaps`, slots may be skipped. With `versions`, which
    /// check mode needs but followers do not, the medium keeps the version of each owner, counted from 1.
    pub(crate) fn keep_medium(
        &mut self,
        shape: (u32, u32),
        gaps: bool,
        programmed: Vec<u32>,
        versions: bool,
        superblocks: Option<Superblocks>,
    ) {
        let owners = if versions { self.map.len() as u32 } else { 0 };
        let mut medium = Medium::new(owners, programmed.len() as u32, shape, gaps, superblocks);
        medium.found(self.mapped().filter(|_| versions), programmed);
        self.medium = Some(Box::new(medium));
    }

    /// Returns the medium, if one is kept.
    pub(crate) fn medium(&self) -> Option<&Medium> {
        self.medium.as_deref()
    }

    /// Records programs and erases on a tape from now on; owners below `lpns` are logical pages.
    ///
    /// # Panics
    /// If not in check mode.
    pub(crate) fn record(&mut self, tape: &Tape, lpns: u32, media: &Media) {
        self.medium.as_mut().expect("in check mode").record(tape, lpns, mapped(&self.map), media);
    }

    /// Reports to a follower, from now on, what happens to the data of owners below `lpns`.
    ///
    /// # Panics
    /// If there is no medium.
    pub(crate) fn follow(&mut self, moves: &Moves, lpns: u32) {
        self.medium.as_mut().expect("one is kept").follow(moves, lpns);
    }

    /// Returns the tape, if there is one.
    pub(crate) fn tape(&self) -> Option<&Tape> {
        self.medium.as_ref()?.tape()
    }

    /// Returns the sequence number of an owner's newest version; 0 if it has no data, or there is no tape.
    pub(crate) fn seq(&self, owner: u32) -> u64 {
        match (&self.medium, self.of(owner)) {
            (None, _) | (_, NONE) => 0,
            (Some(medium), slot) => medium.seq(slot),
        }
    }

    /// Returns the version stamp in an owner's slot, which counts the owner's writes and trims; `None` for an owner
    /// without data, and outside check mode.
    pub(crate) fn version(&self, owner: u32) -> Option<u32> {
        let slot = self.of(owner);
        (slot != NONE).then_some(())?;
        self.medium.as_ref().map(|medium| medium.stamp(slot))
    }

    /// Checks that an owner resolves to its newest version.
    ///
    /// # Errors
    /// A message, if it does not. Always `Ok` outside check mode.
    pub(crate) fn verify(&self, owner: u32) -> Result<(), String> {
        let Some(medium) = &self.medium else { return Ok(()) };
        medium.verify(owner, self.of(owner), &self.valid, |slot| self.spare.of(slot))
    }

    /// Checks that there are as many valid slots as owners that have data.
    pub(crate) fn verify_count(&self) -> Result<(), String> {
        let (mapped, valid) = (self.mapped().count() as u64, self.valid.count());
        match mapped == valid {
            true => Ok(()),
            false => Err(format!("{valid} valid slots for {mapped} mapped owners")),
        }
    }
}

fn mapped(map: &[u32]) -> impl Iterator<Item = (u32, u32)> + '_ {
    (0..).zip(map).filter(|&(_, &kept)| kept != 0).map(|(owner, &kept)| (owner, !kept))
}

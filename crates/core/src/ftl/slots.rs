//! What lies where: the map of owners to slots, and what the flash says of each slot.
//!
//! A log of pages and the blocks of a hybrid FTL both stand on this. An owner is what has data: a logical page, a
//! translation page, a trim page. A slot holds one owner's data: a NAND page, or a logical page where that is
//! smaller. In check mode the [`Medium`] hears of everything.

use std::io;

use crate::flash::media::{Kind, Media, Tape};
use crate::flash::medium::Medium;
use crate::flash::moves::Moves;
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, NONE, memory};

/// The map and what follows from it.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Complement of the slot with each owner's newest version: an owner without data is zero, so that a large device
    /// takes up memory as its owners get data.
    map: Vec<u32>,
    /// Owner in each slot's spare area.
    pub spare: Vec<u32>,
    /// Slots that hold the newest version of their owner.
    pub valid: Bits,
    /// In check mode, or where somebody follows the data.
    medium: Option<Box<Medium>>,
}

impl Clone for Slots {
    fn clone(&self) -> Slots {
        Slots {
            map: memory::copied(&self.map),
            spare: self.spare.clone(),
            valid: self.valid.clone(),
            medium: self.medium.clone(),
        }
    }
}

impl Slots {
    /// Erased slots, and owners without data.
    pub(crate) fn new(owners: u32, slots: u32) -> Slots {
        let mut map = vec![0; owners as usize];
        memory::prepare(&mut map, false);
        Slots { map, spare: vec![0; slots as usize], valid: Bits::new(slots as usize), medium: None }
    }

    /// Most owners will have data.
    pub(crate) fn expect_data(&mut self) {
        memory::prepare(&mut self.map, true);
    }

    /// Slot of an owner, or [`NONE`].
    #[inline]
    pub(crate) fn of(&self, owner: u32) -> u32 {
        !self.map[owner as usize]
    }

    /// Gives an owner a slot, or none; the one before.
    #[inline]
    pub(crate) fn set(&mut self, owner: u32, slot: u32) -> u32 {
        !std::mem::replace(&mut self.map[owner as usize], !slot)
    }

    /// Begins to load the map's entry of an owner, if there is that owner.
    #[inline]
    pub(crate) fn fetch(&self, owner: u32) {
        memory::fetch(&self.map, owner as usize);
    }

    /// Owners that have data, with their slots.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        mapped(&self.map)
    }

    /// Writes the map.
    pub(crate) fn save(&self, out: &mut Encoder) -> io::Result<()> {
        out.words(self.map.iter().map(|kept| !kept))
    }

    /// Reads a map of as many owners.
    pub(crate) fn load(&mut self, from: &mut Decoder) -> Result<(), Damage> {
        self.expect_data();
        from.words(&mut self.map)?;
        self.map.iter_mut().for_each(|word| *word = !*word);
        Ok(())
    }

    /// Finds out from the map which slots are valid and whose they are.
    pub(crate) fn count_map(&mut self) -> Result<(), String> {
        let Slots { map, spare, valid, .. } = self;
        for (owner, slot) in mapped(map) {
            if slot as usize >= spare.len() || valid.get(slot) {
                return Err(format!("page {owner} lies in slot {slot}, which is not its own"));
            }
            spare[slot as usize] = owner;
            valid.set(slot);
        }
        Ok(())
    }

    /// Tells the medium what is done, in check mode.
    #[inline]
    pub(crate) fn tell(&mut self, what: impl FnOnce(&mut Medium)) {
        if let Some(medium) = &mut self.medium {
            what(medium);
        }
    }

    /// Programs an owner's newest version into a slot, which the caller marks valid; `kind` says what its block was taken
    /// as.
    #[inline(always)] // for every write
    pub(crate) fn place(&mut self, slot: u32, owner: u32, kind: impl FnOnce() -> Kind) {
        self.spare[slot as usize] = owner;
        self.set(owner, slot);
        self.tell(|medium| medium.program(slot, owner, kind()));
    }

    /// Places first versions of owners from a slot on, up to one that has a version; how many.
    #[inline(never)] // so that the loop keeps the arrays at hand
    pub(crate) fn lay(&mut self, first: u32, owners: &[u32], kind: Kind) -> u32 {
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

    /// Takes an owner's data away; the slot it was in stays valid until its block has been told.
    pub(crate) fn trim(&mut self, owner: u32) -> u32 {
        self.tell(|medium| medium.trim(owner));
        self.set(owner, NONE)
    }

    /// Takes away an owner's data that is needed no more, as [`Slots::trim`] does; the host has trimmed nothing.
    pub(crate) fn forget(&mut self, owner: u32) -> u32 {
        self.tell(|medium| medium.forget(owner));
        self.set(owner, NONE)
    }

    /// A block is erased.
    pub(crate) fn erase(&mut self, block: u32) {
        if let Some(medium) = &mut self.medium {
            medium.erase(block, &self.valid);
        }
    }
}

/// Check mode, and what power cuts need of it.
impl Slots {
    /// Keeps a medium from now on: blocks of this shape, of which so many slots are programmed. With `gaps`, slots
    /// may be left out. In check mode with versions, which count from 1; for those who only follow, without.
    pub(crate) fn keep_medium(
        &mut self,
        shape: (u32, u32),
        gaps: bool,
        programmed: Vec<u32>,
        versions: bool,
    ) {
        let owners = if versions { self.map.len() as u32 } else { 0 };
        let mut medium = Medium::new(owners, programmed.len() as u32, shape, gaps);
        medium.found(self.mapped().filter(|_| versions), programmed);
        self.medium = Some(Box::new(medium));
    }

    /// The medium in check mode.
    pub(crate) fn medium(&self) -> Option<&Medium> {
        self.medium.as_deref()
    }

    /// Programs and erases go on a tape after this; owners below `lpns` are logical pages.
    ///
    /// # Panics
    /// Outside check mode.
    pub(crate) fn record(&mut self, tape: &Tape, lpns: u32, media: &Media) {
        self.medium.as_mut().expect("in check mode").record(tape, lpns, mapped(&self.map), media);
    }

    /// Tells whoever follows the data of owners below `lpns`.
    ///
    /// # Panics
    /// Without a medium.
    pub(crate) fn follow(&mut self, moves: &Moves, lpns: u32) {
        self.medium.as_mut().expect("one is kept").follow(moves, lpns);
    }

    /// The tape, if there is one.
    pub(crate) fn tape(&self) -> Option<&Tape> {
        self.medium.as_ref()?.tape()
    }

    /// Sequence number of an owner's newest version; 0 if it has none, or nothing is recorded.
    pub(crate) fn seq(&self, owner: u32) -> u64 {
        match (&self.medium, self.of(owner)) {
            (None, _) | (_, NONE) => 0,
            (Some(medium), slot) => medium.seq(slot),
        }
    }

    /// Version stamp in an owner's slot, counted in writes and trims; `None` for an owner without data, and
    /// outside check mode.
    pub(crate) fn version(&self, owner: u32) -> Option<u32> {
        let slot = self.of(owner);
        (slot != NONE).then_some(())?;
        self.medium.as_ref().map(|medium| medium.stamp(slot))
    }

    /// Checks that an owner resolves to the newest of its versions.
    ///
    /// # Errors
    /// In words, if it does not. Always `Ok` outside check mode.
    pub(crate) fn verify(&self, owner: u32) -> Result<(), String> {
        let Some(medium) = &self.medium else { return Ok(()) };
        medium.verify(owner, self.of(owner), &self.valid, &self.spare)
    }

    /// Checks that every valid slot is some owner's.
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

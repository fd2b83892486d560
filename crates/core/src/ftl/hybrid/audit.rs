//! Check mode of a hybrid FTL: checks that the medium cannot make by itself, and the FTL's part in simulated power
//! cuts.
//!
//! The model's contract is: "L2P and P2L a bijection, valid + invalid + free = all". Pages of a data block may
//! be skipped where there is no data.

use super::store::{Role, Store};
use crate::flash::media::{Media, Page, Tape};
use crate::flash::moves::Moves;
use crate::util::NONE;

impl Store {
    /// Turns check mode on; whatever the FTL holds now counts as correctly written.
    pub(super) fn police(&mut self) {
        self.keep_medium(true);
    }

    fn keep_medium(&mut self, versions: bool) {
        let programmed = self.blocks.iter().map(|block| block.next).collect();
        self.slots.keep_medium((self.shape.pages_per_block, 1), true, programmed, versions, None);
    }

    /// Reports to a follower, from now on, what happens to the user's data.
    pub(super) fn follow(&mut self, moves: &Moves) {
        if self.slots.medium().is_none() {
            self.keep_medium(false);
        }
        self.slots.follow(moves, self.shape.lpns);
    }

    /// From now on, records programs and erases on a tape as the FTL decides on them.
    ///
    /// # Panics
    /// If not in check mode.
    pub(crate) fn keep_tape(&mut self, tape: &Tape, media: &Media) {
        let lpns = self.shape.lpns;
        for (owner, page) in self.slots.mapped().filter(|&(owner, _)| owner >= lpns) {
            if let Page::Programmed { kind, .. } = media.page(page) {
                let seq = media.seq(1, page, owner).unwrap_or(0);
                tape.hold(*kind, owner, seq, self.trimmed(owner - lpns).into());
            }
        }
        self.slots.record(tape, lpns, media);
    }

    /// Returns the sequence number of the version to which an LPN resolves on the media.
    pub(crate) fn version_on(&self, lpn: u32, media: &Media) -> Result<Option<u64>, String> {
        match self.page(lpn) {
            NONE => Ok(None),
            page => media
                .seq(1, page, lpn)
                .map(Some)
                .ok_or_else(|| format!("LPN {lpn} maps to page {page}, which does not hold it on flash")),
        }
    }

    /// Writes to the media what the FTL has programmed so far; returns the largest sequence number. Pages that are not
    /// valid are written as padding. Log blocks come last, in the order in which `logs` visits them, since recovery
    /// relies on the order of programs.
    ///
    /// # Panics
    /// If not in check mode.
    pub(crate) fn write_media(&self, logs: impl Fn(&mut dyn FnMut(u32)), media: &mut Media) -> u64 {
        let medium = self.slots.medium().expect("in check mode");
        let owner = |page| self.slots.valid.get(page).then(|| self.slots.spare.of(page));
        let mut last = 0;
        let mut write = |block, media: &mut Media| {
            last = last.max(medium.write_media((block, self.block(block).kind()), owner, media));
        };
        for block in 0..self.shape.blocks() {
            media.set_erases(block, self.pool.erase_count(block));
            if !matches!(self.block(block).role, Role::Free | Role::Log) {
                write(block, media);
            }
        }
        logs(&mut |block| write(block, media));
        last
    }
}

impl Store {
    /// Checks a logical page and the block that holds it.
    ///
    /// # Errors
    /// A message about the first broken invariant. Always `Ok` outside check mode.
    pub(crate) fn verify_lpn(&self, lpn: u32) -> Result<(), String> {
        self.verify_mapping(lpn)?;
        match self.page(lpn) {
            NONE => Ok(()),
            page => self.verify_block(self.block_of(page)),
        }
    }

    fn verify_mapping(&self, lpn: u32) -> Result<(), String> {
        self.slots.verify(lpn)?;
        match self.page(lpn) {
            NONE => Ok(()),
            page => self.verify_place(lpn, page),
        }
    }

    /// Checks that a logical page lies where a search through block-level mapping and log blocks would find it.
    pub(super) fn verify_place(&self, lpn: u32, page: u32) -> Result<(), String> {
        let (logical, block) = (self.logical_of(lpn), self.block_of(page));
        let at = self.block(block);
        let fixed = self.offset(page) == self.offset(lpn);
        let found = match at.role {
            Role::Data | Role::Cooperative if lpn >= self.shape.lpns => false,
            Role::Free => false,
            Role::Data => self.data[logical as usize] == block && fixed,
            Role::Log => at.owner == logical || at.owner == NONE,
            Role::Cooperative => self.cooperative == block && at.owner == logical && fixed,
        };
        let same_lun = self.lun(logical) == self.lun_of_block(block);
        match found && same_lun {
            true => Ok(()),
            false => Err(format!("LPN {lpn} lies in page {page} of block {block}, {:?}", at.role)),
        }
    }

    fn verify_block(&self, block: u32) -> Result<(), String> {
        let Some(medium) = self.slots.medium() else { return Ok(()) };
        let at = self.block(block);
        let first = block * self.shape.pages_per_block;
        let valid =
            |from, to| (from..to).filter(|&offset| self.slots.valid.get(first + offset)).count() as u32;
        let (live, beyond) = (valid(0, at.next), valid(at.next, self.shape.pages_per_block));
        if live != at.valid || beyond > 0 {
            return Err(format!("block {block} counts {} valid pages, has {live} and {beyond}", at.valid));
        }
        let programmed = medium.programmed(block);
        if at.next != programmed {
            return Err(format!("block {block} is said to go on at page {}, not {programmed}", at.next));
        }
        let idle = [self.pool.is_free(block), self.pool.is_spare(block), self.pool.is_retired(block)];
        let idle = idle.iter().filter(|&&is| is).count();
        if idle != usize::from(at.role == Role::Free) || (idle > 0 && at.next > 0) {
            return Err(format!(
                "block {block} is {:?}, page {} next, and not as the pool has it",
                at.role, at.next
            ));
        }
        let owned = at.owner != NONE && self.data[at.owner as usize] == block;
        if owned != (at.role == Role::Data) {
            return Err(format!("block {block} is {:?} of logical block {}", at.role, at.owner));
        }
        if (at.role == Role::Cooperative) != (self.cooperative == block) {
            return Err(format!("block {block} is {:?}, block {} cooperative", at.role, self.cooperative));
        }
        self.verify_order(block)
    }

    /// Checks that a log block written in order holds its owner's pages at their offsets.
    pub(super) fn verify_order(&self, block: u32) -> Result<(), String> {
        let at = self.block(block);
        if at.role != Role::Log || !at.in_order || at.owner == NONE {
            return Ok(());
        }
        let [first, owned] = [block, at.owner].map(|block| block * self.shape.pages_per_block);
        let displaced = |&offset: &u32| {
            self.slots.valid.get(first + offset) && self.slots.spare.of(first + offset) != owned + offset
        };
        match (0..at.next).find(displaced) {
            Some(offset) => Err(format!("log block {block} is not in order at page {offset}")),
            None => Ok(()),
        }
    }

    /// Checks all mappings, all blocks and the counts.
    ///
    /// # Errors
    /// A message about the first broken invariant. Always `Ok` outside check mode.
    pub(crate) fn verify(&self) -> Result<(), String> {
        if self.slots.medium().is_none() {
            return Ok(());
        }
        (0..self.shape.owners()).try_for_each(|owner| self.verify_mapping(owner))?;
        (0..self.shape.blocks()).try_for_each(|block| self.verify_block(block))?;
        self.slots.verify_count()?;
        for (logical, &block) in self.data.iter().enumerate().filter(|(_, block)| **block != NONE) {
            if self.block(block).role != Role::Data || self.block(block).owner != logical as u32 {
                return Err(format!("block {block} is not a data block of logical block {logical}"));
            }
        }
        Ok(())
    }
}

//! Check mode of a hybrid FTL: a medium that polices its caller, and the invariants of the model.
//!
//! "Version stamp per page, L2P and P2L a bijection, valid + invalid + free = all, no page programmed
//! twice or out of order within its block" (the model's contract). Pages of a data block may be left
//! out, where there is no data, but never programmed backwards.

use super::layout::Shape;
use super::store::{Role, Store};
use super::taped::Taped;
use crate::flash::media::Kind;
use crate::util::{Bits, NONE};

/// What the medium remembers beside the FTL's own state.
#[derive(Clone, Debug)]
pub struct Audit {
    /// First page of each block that may be programmed.
    next: Vec<u32>,
    /// Version stamp in each page.
    stamps: Vec<u32>,
    /// Newest version of each logical page; it grows with every write and trim.
    newest: Vec<u32>,
    /// Logical pages that have data: written, and not trimmed since.
    present: Bits,
    fault: Option<String>,
    /// Hears of everything too, if power cuts are simulated.
    pub(super) taped: Option<Box<Taped>>,
}

impl Audit {
    /// Of erased flash.
    pub(crate) fn new(shape: &Shape) -> Audit {
        let (blocks, owners) = (shape.blocks() as usize, shape.owners() as usize);
        Audit {
            next: vec![0; blocks],
            stamps: vec![0; blocks * shape.pages_per_block as usize],
            newest: vec![0; owners],
            present: Bits::new(owners),
            fault: None,
            taped: None,
        }
    }

    /// Of a store in its present state, the versions counted from 1.
    pub(crate) fn of(store: &Store) -> Audit {
        let mut audit = Audit::new(&store.shape);
        for (next, block) in audit.next.iter_mut().zip(&store.blocks) {
            *next = block.next;
        }
        for (lpn, &page) in store.map.iter().enumerate().filter(|(_, page)| **page != NONE) {
            audit.newest[lpn] = 1;
            audit.present.set(lpn as u32);
            audit.stamps[page as usize] = 1;
        }
        audit
    }

    fn fail(&mut self, message: String) {
        self.fault.get_or_insert(message);
    }

    /// A new version of a logical page comes into being.
    pub(crate) fn write(&mut self, lpn: u32) {
        self.newest[lpn as usize] += 1;
        self.present.set(lpn);
        if let Some(taped) = &mut self.taped {
            taped.write(lpn);
        }
    }

    /// A logical page is given up.
    pub(crate) fn trim(&mut self, lpn: u32) {
        self.forget(lpn);
        if let Some(taped) = &self.taped {
            taped.trim(lpn);
        }
    }

    /// What an owner had is needed no more.
    pub(crate) fn forget(&mut self, owner: u32) {
        self.newest[owner as usize] += 1;
        self.present.clear(owner);
    }

    /// Version stamp in a page of a block that was programmed since its erasure; 0: none is known.
    pub(crate) fn stamp(&self, page: u32) -> u32 {
        self.stamps[page as usize]
    }

    /// A page is programmed with the newest version of a logical page; what its block was taken as.
    pub(crate) fn program(&mut self, (block, kind): (u32, Kind), offset: u32, page: u32, lpn: u32) {
        let due = self.next[block as usize];
        if offset < due {
            self.fail(format!("block {block}: page {offset} programmed where page {due} was due"));
        }
        self.next[block as usize] = offset + 1;
        self.stamps[page as usize] = self.newest[lpn as usize];
        if let Some(taped) = &mut self.taped {
            taped.program(page, kind, lpn);
        }
    }

    /// Pages before `next` are left out.
    pub(crate) fn skip(&mut self, block: u32, next: u32) {
        let due = &mut self.next[block as usize];
        *due = next.max(*due);
    }

    /// What is put in place before time 0 is in no order.
    pub(crate) fn rewind(&mut self, block: u32, next: u32) {
        self.next[block as usize] = next;
    }

    /// A valid page is about to be copied.
    pub(crate) fn copy(&mut self, page: u32, lpn: u32) {
        let (found, newest) = (self.stamps[page as usize], self.newest[lpn as usize]);
        if found != newest {
            self.fail(format!("page {page} is valid with version {found} of LPN {lpn}, newest {newest}"));
        }
        if let Some(taped) = &mut self.taped {
            taped.copy(page);
        }
    }

    /// A block is erased.
    pub(crate) fn erase(&mut self, block: u32, valid: u32) {
        if valid > 0 {
            self.fail(format!("block {block} erased while {valid} of its pages are valid"));
        }
        self.next[block as usize] = 0;
        if let Some(taped) = &self.taped {
            taped.erase(block);
        }
    }
}

impl Store {
    /// Check mode: the version stamp that a logical page resolves to, counted in writes and trims.
    pub(crate) fn version(&self, lpn: u32) -> Option<u32> {
        let page = self.page(lpn);
        (page != NONE).then_some(())?;
        self.audit.as_ref().map(|audit| audit.stamps[page as usize])
    }

    /// Checks a logical page and the block it lies in.
    ///
    /// # Errors
    /// The first broken invariant, in words. Always `Ok` outside check mode.
    pub(crate) fn verify_lpn(&self, lpn: u32) -> Result<(), String> {
        self.verify_mapping(lpn)?;
        match self.page(lpn) {
            NONE => Ok(()),
            page => self.verify_block(self.block_of(page)),
        }
    }

    fn verify_mapping(&self, lpn: u32) -> Result<(), String> {
        let Some(audit) = &self.audit else { return Ok(()) };
        if let Some(fault) = &audit.fault {
            return Err(fault.clone());
        }
        let page = self.page(lpn);
        if audit.present.get(lpn) != (page != NONE) {
            return Err(match page {
                NONE => format!("LPN {lpn}, which was written, is lost"),
                page => format!("LPN {lpn} was never written or trimmed, and lies in page {page}"),
            });
        }
        if page == NONE {
            return Ok(());
        }
        if !self.valid.get(page) {
            return Err(format!("LPN {lpn} lies in page {page}, which is not valid"));
        }
        let back = self.spare[page as usize];
        if back != lpn {
            return Err(format!("LPN {lpn} lies in page {page}, which belongs to LPN {back}"));
        }
        let (found, newest) = (audit.stamps[page as usize], audit.newest[lpn as usize]);
        if found != newest {
            return Err(format!("LPN {lpn} resolves to version {found}, newest {newest}"));
        }
        self.verify_place(lpn, page)
    }

    /// A page lies where block-level mapping and the log blocks would find it.
    fn verify_place(&self, lpn: u32, page: u32) -> Result<(), String> {
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
        let same_chip = self.chip(logical) == self.chip_of_block(block);
        match found && same_chip {
            true => Ok(()),
            false => Err(format!("LPN {lpn} lies in page {page} of block {block}, {:?}", at.role)),
        }
    }

    fn verify_block(&self, block: u32) -> Result<(), String> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let at = self.block(block);
        let first = block * self.shape.pages_per_block;
        let valid = |from, to| (from..to).filter(|&offset| self.valid.get(first + offset)).count() as u32;
        let (live, beyond) = (valid(0, at.next), valid(at.next, self.shape.pages_per_block));
        if live != at.valid || beyond > 0 {
            return Err(format!("block {block} counts {} valid pages, has {live} and {beyond}", at.valid));
        }
        if at.next != audit.next[block as usize] {
            let programmed = audit.next[block as usize];
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
        if at.role == Role::Log && at.in_order && at.owner != NONE {
            let displaced = (0..at.next).find(|&offset| {
                let page = first + offset;
                self.valid.get(page)
                    && self.spare[page as usize] != at.owner * self.shape.pages_per_block + offset
            });
            if let Some(offset) = displaced {
                return Err(format!("log block {block} is not in order at page {offset}"));
            }
        }
        Ok(())
    }

    /// Checks everything.
    ///
    /// # Errors
    /// The first broken invariant, in words. Always `Ok` outside check mode.
    pub(crate) fn verify(&self) -> Result<(), String> {
        if self.audit.is_none() {
            return Ok(());
        }
        (0..self.map.len() as u32).try_for_each(|owner| self.verify_mapping(owner))?;
        (0..self.shape.blocks()).try_for_each(|block| self.verify_block(block))?;
        let mapped = self.map.iter().filter(|&&page| page != NONE).count() as u64;
        let valid = self.valid.count();
        if mapped != valid {
            return Err(format!("{mapped} logical pages have data, {valid} pages are valid"));
        }
        for (logical, &block) in self.data.iter().enumerate().filter(|(_, block)| **block != NONE) {
            if self.block(block).role != Role::Data || self.block(block).owner != logical as u32 {
                return Err(format!("block {block} is no data block of logical block {logical}"));
            }
        }
        Ok(())
    }
}

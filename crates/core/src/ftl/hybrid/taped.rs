//! A hybrid FTL whose programs and erases go on a tape, for power cuts ([`crate::flash::media`]).
//!
//! Check mode hears of everything already; what it hears is passed on here.

use super::store::{Role, Store};
use crate::flash::media::{Change, Kind, Media, Page, Spare, Tape};
use crate::util::NONE;

/// What goes into the spare areas.
#[derive(Clone, Debug)]
pub struct Taped {
    tape: Tape,
    /// Owners below this are logical pages.
    lpns: u32,
    /// Sequence number in each page.
    seqs: Vec<u64>,
    /// Sequence number of what is programmed next.
    next: u64,
}

impl Taped {
    /// An owner gets a new version.
    pub(crate) fn write(&mut self, owner: u32) {
        self.next = self.tape.next((owner < self.lpns).then_some(owner), false);
    }

    /// A logical page is trimmed.
    pub(crate) fn trim(&self, lpn: u32) {
        self.tape.next(Some(lpn), true);
    }

    /// A page is copied: its version stays.
    pub(crate) fn copy(&mut self, page: u32) {
        self.next = self.seqs[page as usize];
    }

    /// A page is programmed.
    pub(crate) fn program(&mut self, page: u32, kind: Kind, owner: u32) {
        self.seqs[page as usize] = self.next;
        let spares = Box::new([Spare { owner, seq: self.next }]);
        self.tape.note(Change::Program { page, kind, spares });
    }

    /// A block is erased.
    pub(crate) fn erase(&self, block: u32) {
        self.tape.note(Change::Erase { block });
    }

    /// What was programmed last holds this.
    pub(crate) fn hold(&self, kind: Kind, owner: u32, content: Vec<u32>) {
        self.tape.hold(kind, owner, self.next, content.into());
    }
}

/// Version of an owner that a page on the media holds.
fn version(media: &Media, page: u32, owner: u32) -> Option<u64> {
    match media.page(page) {
        Page::Programmed { spares, .. } => {
            spares.first().filter(|spare| spare.owner == owner).map(|spare| spare.seq)
        }
        _ => None,
    }
}

impl Store {
    /// From now on programs and erases go on a tape; check mode only.
    ///
    /// # Panics
    /// Outside check mode.
    pub(crate) fn keep_tape(&mut self, tape: &Tape, media: &Media) {
        let mut seqs = vec![0; self.spare.len()];
        for (owner, &page) in self.map.iter().enumerate().filter(|(_, page)| **page != NONE) {
            seqs[page as usize] = version(media, page, owner as u32).unwrap_or(0);
            if owner as u32 >= self.shape.lpns {
                let content = self.trimmed(owner as u32 - self.shape.lpns);
                let Page::Programmed { kind, .. } = media.page(page) else { continue };
                tape.hold(*kind, owner as u32, seqs[page as usize], content.into());
            }
        }
        let taped = Taped { tape: tape.clone(), lpns: self.shape.lpns, seqs, next: 0 };
        self.audit.as_mut().expect("in check mode").taped = Some(Box::new(taped));
    }

    /// Version on the media that an LPN resolves to.
    ///
    /// # Errors
    /// In words, if it resolves to a page that does not hold it.
    pub(crate) fn version_on(&self, lpn: u32, media: &Media) -> Result<Option<u64>, String> {
        match self.page(lpn) {
            NONE => Ok(None),
            page => version(media, page, lpn)
                .map(Some)
                .ok_or_else(|| format!("LPN {lpn} maps to page {page}, which does not hold it on flash")),
        }
    }

    /// Puts what was programmed on the media, each page's version stamp for its sequence number; the
    /// largest of them. Pages whose versions do not count hold nothing.
    ///
    /// # Panics
    /// Outside check mode.
    pub(crate) fn engrave(&self, media: &mut Media) -> u64 {
        let audit = self.audit.as_ref().expect("in check mode");
        let mut last = 0;
        for block in 0..self.shape.blocks() {
            media.set_erases(block, self.pool.erase_count(block));
            let at = self.block(block);
            if at.role == Role::Free {
                continue;
            }
            let first = block * self.shape.pages_per_block;
            for page in first..first + at.next {
                let mut spare = Spare { owner: NONE, seq: 0 };
                if self.valid.get(page) {
                    spare = Spare { owner: self.spare[page as usize], seq: u64::from(audit.stamp(page)) };
                }
                last = last.max(spare.seq);
                media.engrave(page, at.kind(), Box::new([spare]));
            }
        }
        last
    }
}

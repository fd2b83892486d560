//! A log whose programs and erases go on a tape, for power cuts ([`crate::flash::media`]).
//!
//! Check mode hears of everything already; what it hears is passed on here.

use super::audit::Audit;
use super::{Log, State};
use crate::flash::media::{Change, Kind, Media, Spare, Tape};
use crate::util::NONE;

/// What goes into the spare areas of a log's pages.
#[derive(Clone, Debug)]
pub(super) struct Taped {
    tape: Tape,
    kind: Kind,
    slots_per_page: u32,
    /// Owners below this are logical pages.
    lpns: u32,
    spares: Vec<Spare>,
    /// Sequence number of what is programmed next.
    next: u64,
}

impl Taped {
    /// An owner gets a new version.
    pub(crate) fn write(&mut self, owner: u32) {
        self.next = self.tape.next((owner < self.lpns).then_some(owner), false);
    }

    /// An owner is trimmed.
    pub(crate) fn trim(&self, owner: u32) {
        self.tape.next((owner < self.lpns).then_some(owner), true);
    }

    /// A slot is copied: its version stays.
    pub(crate) fn copy(&mut self, slot: u32) {
        self.next = self.spares[slot as usize].seq;
    }

    /// A slot is filled.
    pub(crate) fn place(&mut self, slot: u32, owner: u32) {
        self.spares[slot as usize] = Spare { owner, seq: self.next };
        self.page_done(slot + 1);
    }

    /// Slots are left empty.
    pub(crate) fn skip(&mut self, slot: u32, count: u32) {
        let slots = slot as usize..(slot + count) as usize;
        self.spares[slots].fill(Spare { owner: NONE, seq: 0 });
        self.page_done(slot + count);
    }

    fn page_done(&self, end: u32) {
        if end.is_multiple_of(self.slots_per_page) {
            let spares = &self.spares[(end - self.slots_per_page) as usize..end as usize];
            let page = end / self.slots_per_page - 1;
            self.tape.note(Change::Program { page, kind: self.kind, spares: spares.into() });
        }
    }

    /// A block is erased.
    pub(crate) fn erase(&self, block: u32) {
        self.tape.note(Change::Erase { block });
    }
}

impl Log {
    /// From now on programs and erases go on a tape; check mode only. `lpns` owners are logical pages.
    ///
    /// # Panics
    /// Outside check mode.
    pub(crate) fn record(&mut self, tape: &Tape, kind: Kind, lpns: u32, media: &Media) {
        let slots_per_page = self.shape.slots_per_page;
        let mut spares = vec![Spare { owner: NONE, seq: 0 }; self.spare.len()];
        for (owner, &slot) in self.map.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
            let seq = media.version(kind, slots_per_page, slot, owner as u32).unwrap_or(0);
            spares[slot as usize] = Spare { owner: owner as u32, seq };
        }
        let tape = tape.clone();
        let taped = Taped { tape, kind, slots_per_page, lpns, spares, next: 0 };
        self.audit.as_mut().expect("in check mode").taped = Some(Box::new(taped));
    }

    /// Sequence number of an owner's newest version; 0 if it has none, or nothing is recorded.
    pub(crate) fn seq(&self, owner: u32) -> u64 {
        let taped = self.audit.as_ref().and_then(|audit| audit.taped.as_ref());
        match (taped, self.map[owner as usize]) {
            (None, _) | (_, NONE) => 0,
            (Some(taped), slot) => taped.spares[slot as usize].seq,
        }
    }

    /// The tape, if there is one.
    pub(crate) fn tape(&self) -> Option<&Tape> {
        self.audit.as_ref()?.taped.as_ref().map(|taped| &taped.tape)
    }

    /// Puts what the log has programmed on the media, each slot's version stamp for its sequence
    /// number; the largest of them. Slots whose stale owner is not known hold nothing.
    ///
    /// # Panics
    /// Outside check mode.
    pub(crate) fn engrave(&self, kind: Kind, media: &mut Media) -> u64 {
        let audit = self.audit.as_ref().expect("in check mode");
        let mut last = 0;
        let slots_per_page = self.shape.slots_per_page;
        for block in 0..self.blocks.len() as u32 {
            if matches!(self.blocks[block as usize].state, State::Absent | State::Reserve) {
                continue;
            }
            for page in 0..audit.programmed(block) / slots_per_page {
                let page = block * self.shape.pages_per_block + page;
                let slots = page * slots_per_page..(page + 1) * slots_per_page;
                let spares: Box<[Spare]> = slots.map(|slot| self.engraved(audit, slot)).collect();
                last = spares.iter().map(|spare| spare.seq).fold(last, u64::max);
                media.engrave(page, kind, spares);
            }
        }
        last
    }

    fn engraved(&self, audit: &Audit, slot: u32) -> Spare {
        let (owner, stamp) = (self.spare[slot as usize], audit.stamp(slot));
        if stamp == 0 { Spare { owner: NONE, seq: 0 } } else { Spare { owner, seq: u64::from(stamp) } }
    }
}

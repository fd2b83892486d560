//! What a write asks for, and which head it gets.

use super::around::Under;
use super::heads::At;
use super::mover::Mover;
use super::placed::Owned;
use super::slc::SlcCache;
use super::writer::Writer;
use crate::flash::Cause;
use crate::util::NONE;

/// What a write asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The owner whose new version is written, and why it is written.
    pub(crate) owner: u32,
    /// Why it is written.
    pub(crate) cause: Cause,
    /// Stream of the request; 0 for a request without a stream.
    pub(crate) stream: u16,
}

impl Asked {
    /// Makes what a write without a stream asks for.
    pub(crate) fn of(owner: u32, cause: Cause) -> Asked {
        Asked { owner, cause, stream: 0 }
    }

    /// Chooses the head that takes the version, and finishes what must be finished before.
    pub(super) fn choose(
        self,
        (w, mover, under): (&mut Writer, &mut Mover, &mut Under),
        slc: Option<SlcCache>,
    ) -> At {
        let slc = slc.filter(|_| self.owner < w.shape().pages());
        let buffered = w.shape().slots_per_page > 1;
        if buffered && w.route.placed.is_some() {
            w.route.front = self.front(w, under, NONE);
            if let Some(slc) = slc {
                let asked = (self.owner, w.route.front);
                w.route.front = slc.buffer((w, mover, under), asked);
            }
        }
        w.choose_lun(under.work);
        // Finishing a collection programs pages, which may move the cursor.
        while w.stock.is_short(self.lun(w)) && mover.end_begun(w, under, self.lun(w)) {
            w.choose_lun(under.work);
        }
        let lun = self.lun(w);
        if w.wants_block(lun) {
            under.ask_back(lun);
        }
        let Some(placed) = &w.route.placed else { return At::first(lun) };
        if placed.by_speed {
            let hurried = under.work.hurries(lun);
            w.turn_by_speed(under, lun, Some(hurried));
            return At::first(lun);
        }
        let mut head = w.route.front;
        if !buffered {
            head = self.front(w, under, lun);
            if let Some(slc) = slc {
                let asked = (self.owner, head);
                head = slc.head((w, mover, under), lun, asked);
            }
        }
        let at = At { lun, head };
        w.route.facing[lun as usize] = head;
        if w.heads[at].is_full() {
            mover.make_room(w, under, at);
        }
        self.count(w, at);
        at
    }

    fn lun(self, w: &Writer) -> u32 {
        w.route.lun(&w.addresses, self.owner)
    }

    /// Returns the front of the version; the placement is told about the version that it replaces.
    fn front(self, w: &mut Writer, under: &Under, lun: u32) -> u32 {
        let Asked { owner, cause, stream } = self;
        let Some(placed) = &mut w.route.placed else { return 0 };
        let old = under.slots.of(owner);
        placed.invalidated(&w.addresses, &w.stock, owner, old);
        let hurried = under.work.hurries(lun);
        placed.front(&w.addresses, &w.stock, Owned { lun, owner, old, cause, stream, hurried })
    }

    /// Tells the placement that the version is written under a head. Until now, a move may have copied the version that
    /// will be replaced.
    fn count(self, w: &mut Writer, at: At) {
        let Some(placed) = &mut w.route.placed else { return };
        placed.counts[at.head as usize].0 += 1;
        if let Some(written) = placed.written.get_mut(self.owner as usize) {
            *written = w.stock.writes;
        }
    }
}

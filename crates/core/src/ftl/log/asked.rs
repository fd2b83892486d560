//! What a write asks for, and which head it gets.

use super::around::Under;
use super::heads::At;
use super::mover::Mover;
use super::placed::page;
use super::slc::SlcCache;
use super::writer::Writer;
use crate::flash::Cause;
use crate::ftl::placement::Page;
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
    pub(super) fn choose(self, m: &mut Mover, under: &mut Under, slc: Option<SlcCache>) -> At {
        if m.shape().serial {
            return At::first(0);
        }
        let slc = slc.filter(|_| self.owner < m.shape().pages());
        let buffered = m.shape().slots_per_page > 1;
        if buffered && m.route.placed.is_some() {
            m.route.front = self.front(m, under, NONE);
            if let Some(slc) = slc {
                let asked = (self.owner, m.route.front);
                m.route.front = slc.buffer(m, under, asked);
            }
        }
        m.choose_lun(under.work);
        // Finishing a collection programs pages, which may move the cursor.
        while m.stock.is_short(self.lun(m)) && m.end_begun(under, self.lun(m)) {
            m.choose_lun(under.work);
        }
        let lun = self.lun(m);
        if under.pool.free(lun) == 0 && m.wants_block(lun) {
            under.ask_back(lun);
        }
        let Some(placed) = &m.route.placed else { return At::first(lun) };
        if placed.by_speed {
            let hurried = under.work.hurries(lun);
            m.turn_by_speed(under, lun, Some(hurried));
            return At::first(lun);
        }
        let mut head = m.route.front;
        if !buffered {
            head = self.front(m, under, lun);
            if let Some(slc) = slc {
                let asked = (self.owner, head);
                head = slc.head(m, under, lun, asked);
            }
        }
        let at = At { lun, head };
        m.route.facing[lun as usize] = head;
        if m.heads[at].is_full() {
            m.make_room(under, at);
        }
        self.count(m, at);
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
        placed.front(&w.addresses, &w.stock, old, Page { stream, hurried, ..page(lun, owner, cause) })
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

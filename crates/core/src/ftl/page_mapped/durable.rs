//! What a host makes durable besides the full pages of its writes: its trims, at a flush, and a page that a
//! write with FUA has begun.

use super::PageMapped;
use crate::flash::{Cause, Work};
use crate::ftl::log::Asked;
use crate::ftl::map::translation::Translation;
use crate::ftl::recovery::Flaw;
use crate::request::Pages;

impl<T: Translation> PageMapped<T> {
    /// Makes the trims so far durable ([`crate::ftl::log`]).
    pub(super) fn state_trims(&mut self, work: &mut Work) {
        if self.data.durable.due().is_empty() {
            return;
        }
        // All this is one chain: a trim page says which data is there, so the data must be on flash first. The
        // loop starts at the end, since a collection may write some of the trim pages meanwhile.
        for at in (0..self.data.durable.due().len()).rev() {
            if let Some(&owner) = self.data.durable.due().get(at) {
                self.data.durable.moves(&self.slots, owner);
                self.append(Asked::of(owner, Cause::Pad), work);
                self.data.durable.hold(&self.slots, owner);
            }
        }
        self.data.flush(&mut self.slots, work);
        self.data.durable.all_written(work);
    }

    /// Programs what a write with FUA has left in a page buffer; the spare area names the data's owner, so that
    /// recovery finds the mapping again.
    #[cold]
    pub(super) fn program_begun(&mut self, written: Pages, work: &mut Work) {
        if self.read_only || self.flaw == Flaw::PlainFua {
            return;
        }
        let owners = written.first..written.first + written.pages;
        self.data.flush_of(Some(owners), &mut self.slots, work);
        self.look_for_exhaustion(work);
    }
}

//! How a page-mapped FTL hands mapping entries to the host, and uses those that come back.

use std::ops::Range;

use super::PageMapped;
use crate::flash::Work;
use crate::ftl::map::translation::Translation;
use crate::request::Entry;

impl<T: Translation> PageMapped<T> {
    /// Whether the mapping of an LPN is still as this entry has it.
    pub(super) fn is_current(&self, lpn: u32, entry: Entry) -> bool {
        let Some(handed) = &self.handed else { return false };
        handed.is_last(lpn, entry) && !self.slots.has_changed(lpn)
    }

    /// Counts an entry that came with a read; returns whether the read goes where the entry says.
    pub(super) fn uses(&mut self, lpn: u32, entry: Entry) -> bool {
        let current = self.is_current(lpn, entry);
        if let Some(handed) = &mut self.handed {
            handed.count(lpn, entry, current, self.slots.of(lpn));
        }
        current
    }

    /// Hands the entries of these LPNs out.
    pub(super) fn hand_over(&mut self, lpns: Range<u32>, entries: &mut Vec<Entry>, work: &mut Work) {
        let Some(handed) = &mut self.handed else { return };
        let stamp = handed.begin(lpns.start);
        self.slots.forget_changes(lpns.start, lpns.end);
        entries.extend(lpns.clone().map(|lpn| Entry { slot: self.slots.of(lpn), stamp }));
        let (translation, mut context) = self.translation(work);
        let (first, last) = (context.pages.of(lpns.start), context.pages.of(lpns.end - 1));
        for unit in first..=last {
            let (from, end) = context.pages.range(unit);
            let mut within = from.max(lpns.start)..end.min(lpns.end);
            if !within.all(|lpn| translation.cached(lpn, context.pages)) {
                context.read_out(unit);
            }
        }
    }
}

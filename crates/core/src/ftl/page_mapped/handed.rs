//! Mapping entries in the host's hands: which of those that were handed out still hold.
//!
//! Source: JESD220-3A (UFS Host Performance Booster), as described in public; [`crate::host::held`] has the host's
//! part. The device keeps a dirty bitmap for each subregion, a bit for each entry, which is set when the mapping
//! changes, be it by the host or by garbage collection, and cleared when the subregion is read.
//!
//! Interpretation: an entry of 8 B holds a slot and the number of the reading that handed it out. The bitmap alone would
//! not do: a read may still carry an entry from before the last reading, whose bit that reading has cleared.

use std::ops::Range;

use super::PageMapped;
use crate::flash::Work;
use crate::ftl::map::translation::Translation;
use crate::request::Entry;
use crate::util::{Divider, Stat};

/// What the device knows about the entries that it has handed out.
#[derive(Clone, Debug)]
pub(super) struct Handed {
    /// Divides by the number of pages of a subregion.
    subregion: Divider,
    /// For each subregion, how often it has been read.
    stamps: Vec<u32>,
    used: u64,
    stale: u64,
    /// What was wrong with the first entry that was used and named another slot than the map; there is none unless
    /// ftlab has a fault.
    fault: Option<String>,
}

impl Handed {
    /// Makes the record for a map of which nothing has been handed out.
    pub(super) fn new(lpns: u32, subregion: u32) -> Handed {
        Handed {
            subregion: Divider::new(subregion),
            stamps: vec![0; lpns.div_ceil(subregion) as usize],
            used: 0,
            stale: 0,
            fault: None,
        }
    }

    /// Whether an entry is from the last reading of its subregion.
    fn is_last(&self, lpn: u32, entry: Entry) -> bool {
        entry.stamp > 0 && self.stamps[self.subregion.div(lpn) as usize] == entry.stamp
    }

    /// Returns the figures that the device counts.
    pub(super) fn stats(&self) -> Vec<Stat> {
        vec![
            Stat::new("hits", self.used as f64, "pages", "read where the entry that came with the read says"),
            Stat::new("stale", self.stale as f64, "pages", "looked up, because the entry was out of date"),
        ]
    }

    /// Checks that no entry was used that named another slot than the map.
    ///
    /// # Errors
    /// A message about the first such entry.
    pub(super) fn verify(&self) -> Result<(), String> {
        self.fault.clone().map_or(Ok(()), Err)
    }
}

impl<T: Translation> PageMapped<T> {
    /// Whether the mapping of an LPN is still as this entry has it.
    pub(super) fn is_current(&self, lpn: u32, entry: Entry) -> bool {
        let Some(handed) = &self.handed else { return false };
        handed.is_last(lpn, entry) && !self.slots.has_changed(lpn)
    }

    /// Counts an entry that came with a read; returns whether the read goes where the entry says.
    pub(super) fn uses(&mut self, lpn: u32, entry: Entry) -> bool {
        let current = self.is_current(lpn, entry);
        let slot = self.slots.of(lpn);
        let Some(handed) = &mut self.handed else { return false };
        *(if current { &mut handed.used } else { &mut handed.stale }) += 1;
        if current && entry.slot != slot {
            let (named, true_slot) = (entry.slot as i32, slot as i32);
            handed.fault.get_or_insert_with(|| {
                format!("the host's entry of LPN {lpn} names slot {named}, the map {true_slot}")
            });
        }
        current
    }

    /// Hands the entries of these LPNs out.
    pub(super) fn hand_over(&mut self, lpns: Range<u32>, entries: &mut Vec<Entry>, work: &mut Work) {
        let Some(handed) = &mut self.handed else { return };
        let stamp = &mut handed.stamps[handed.subregion.div(lpns.start) as usize];
        *stamp += 1;
        let stamp = *stamp;
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

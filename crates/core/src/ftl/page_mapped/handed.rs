//! Mapping entries in the host's hands: which of those that were handed out still hold.
//!
//! Source: JESD220-3A (UFS Host Performance Booster), as described in public; `host/held` has the
//! host's part. The device keeps a dirty bitmap for each subregion, a bit for each entry, which is set when the mapping
//! changes, be it by the host or by garbage collection, and cleared when the subregion is read.
//!
//! Interpretation: an entry of 8 B holds a slot and the number of the reading that handed it out. The bitmap alone
//! would not do: a read may still carry an entry from before the last reading, whose bit that reading has cleared.

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
    pub(super) fn is_last(&self, lpn: u32, entry: Entry) -> bool {
        entry.stamp > 0 && self.stamps[self.subregion.div(lpn) as usize] == entry.stamp
    }

    /// Counts an entry that came with a read and is `current`, or not; the map has `slot`.
    pub(super) fn count(&mut self, lpn: u32, entry: Entry, current: bool, slot: u32) {
        *(if current { &mut self.used } else { &mut self.stale }) += 1;
        if current && entry.slot != slot {
            let (named, slot) = (entry.slot as i32, slot as i32);
            self.fault.get_or_insert_with(|| {
                format!("the host's entry of LPN {lpn} names slot {named}, the map {slot}")
            });
        }
    }

    /// Returns the number of the reading of a subregion, given by one of its LPNs, that begins now.
    pub(super) fn begin(&mut self, lpn: u32) -> u32 {
        let stamp = &mut self.stamps[self.subregion.div(lpn) as usize];
        *stamp += 1;
        *stamp
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

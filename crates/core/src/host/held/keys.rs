//! `host.map_*`: the part of the device's map that the host holds.

use crate::config::section::{bytes, count};
use crate::config::{choice, section};
use crate::ftl;

choice! {
    /// `host.map_policy`.
    pub enum MapPolicy {
        /// the device recommends a subregion for which it had to read mappings; the region read least recently leaves
        Lru = "lru",
        /// the host counts reads; the region with the fewest leaves, if the new one has more
        AccessCount = "access-count",
    }
}

section! {
    /// The keys of the held map.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Memory of the host for mapping entries of the device, 8 B each (UFS Host Performance Booster); 0B: none.
        bytes: u64 = "host.map_cache", bytes(0, 1 << 40), "0B";
        /// Longest read that carries mapping entries (HPB 1.0: 4KiB).
        read_bytes: u64 = "host.map_cache_read", bytes(512, 1 << 24), "32KiB";
        /// Part of the addresses that is held or leaves as a whole: a multiple of host.map_subregion.
        region_bytes: u64 = "host.map_region", bytes(512, 1 << 40), "16MiB";
        /// Part of a region whose entries the host reads with one command: a multiple of ftl.logical_page.
        subregion_bytes: u64 = "host.map_subregion", bytes(512, 1 << 40), "4MiB";
        /// Which subregions the host reads, and which region leaves when the memory is full.
        policy: MapPolicy = "host.map_policy", "lru";
        /// A subregion is read after this many reads that ask for it: under lru those for which the device had to read
        /// mappings, under access-count all that may carry entries, since the last write.
        threshold: u32 = "host.map_threshold", count(1, 1 << 30), "8";
    }
}

impl Keys {
    /// Whether the host holds entries of the device with these settings.
    pub(crate) fn are_on(&self, device: &ftl::settings::Settings) -> bool {
        self.bytes > 0 && ftl::hands_out(device)
    }
}

//! `host.map_*`: the part of the device's map that the host holds.

use crate::config::section::{bytes, count};
use crate::config::units::BYTES;
use crate::config::{Contradiction, Ignored, choice, section};
use crate::host::settings::Settings;
use crate::request::Entry;

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

/// The keys that matter only if there is memory for entries.
const OTHERS: [&str; 5] =
    ["host.map_cache_read", "host.map_region", "host.map_subregion", "host.map_policy", "host.map_threshold"];

/// Whether the host holds mapping entries.
pub(crate) fn is_on(settings: &Settings) -> bool {
    settings.host.map.bytes > 0 && crate::ftl::hands_out(settings)
}

/// Checks the sizes against each other, if the host holds entries.
pub(crate) fn check(settings: &Settings) -> Result<(), Contradiction> {
    let Keys { bytes, read_bytes, region_bytes, subregion_bytes, .. } = settings.host.map;
    if !is_on(settings) {
        return Ok(());
    }
    let page = u64::from(settings.ftl.logical_page_bytes);
    let fail = |key, message| Err(Contradiction { key, message });
    if !subregion_bytes.is_multiple_of(page) {
        let message = format!(
            "{} is not a multiple of ftl.logical_page, {}",
            BYTES.format(subregion_bytes),
            BYTES.format(page)
        );
        return fail("host.map_subregion", message);
    }
    if !region_bytes.is_multiple_of(subregion_bytes) {
        let message = format!(
            "{} is not a multiple of host.map_subregion, {}",
            BYTES.format(region_bytes),
            BYTES.format(subregion_bytes)
        );
        return fail("host.map_region", message);
    }
    let of_region = region_bytes.min(settings.user_bytes()).div_ceil(page) * Entry::BYTES;
    if bytes < of_region {
        let message = format!(
            "the entries of a region (host.map_region) take {}; choose as much, or smaller regions",
            BYTES.format(of_region)
        );
        return fail("host.map_cache", message);
    }
    if read_bytes > subregion_bytes {
        let message = "longer than a subregion (host.map_subregion)";
        return fail("host.map_cache_read", message.into());
    }
    Ok(())
}

/// Collects the keys without effect, with the reason.
pub(crate) fn ignored(settings: &Settings, found: &mut Ignored) {
    let bytes = settings.host.map.bytes;
    found.unless(bytes > 0, &OTHERS, "host.map_cache = \"0B\": the host holds no mapping entries");
    let kind = &settings.ftl.kind;
    let why = match crate::ftl::maps_on_flash(settings) {
        true => format!("ftl.kind = \"{kind}\" has no mapping entries that the host could hold"),
        false => format!("ftl.kind = \"{kind}\" keeps its whole map in RAM"),
    };
    let of = [&["host.map_cache"][..], &OTHERS].concat();
    found.unless(bytes == 0 || crate::ftl::hands_out(settings), &of, &why);
}

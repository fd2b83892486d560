//! Checks of the keys of the map that the host holds.

use crate::config::units::BYTES;
use crate::config::{Contradiction, Ignored};
use crate::host::held::keys::{Keys, MapPolicy};
use crate::host::settings::Settings;
use crate::request::Entry;

/// The keys that matter only if there is memory for entries.
const OTHERS: [&str; 5] =
    ["host.map_cache_read", "host.map_region", "host.map_subregion", "host.map_policy", "host.map_threshold"];

/// Checks the sizes against each other, if the host holds entries.
pub(super) fn check(settings: &Settings) -> Result<(), Contradiction> {
    let Keys { bytes, read_bytes, region_bytes, subregion_bytes, policy, threshold, .. } = settings.host.map;
    if !settings.host.map.are_on(settings) {
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
    let pages = subregion_bytes / page;
    if policy == MapPolicy::AccessCount && u64::from(threshold) > pages {
        let message = format!(
            "more reads than a subregion has pages (host.map_subregion), {pages}: counts are halved before they come to it"
        );
        return fail("host.map_threshold", message);
    }
    if read_bytes > subregion_bytes {
        let message = "longer than a subregion (host.map_subregion)";
        return fail("host.map_cache_read", message.into());
    }
    Ok(())
}

/// Collects the keys without effect, with the reason.
pub(super) fn ignored(settings: &Settings, found: &mut Ignored) {
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

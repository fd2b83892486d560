//! Names of registered parts, found by their properties: a new part is tested without being named.

use ftlab_core::config::Choice;
use ftlab_core::ftl::{self, gathers, gc, is_hybrid, maps_blocks, maps_on_flash, placement};
use ftlab_core::host::sched;
use ftlab_core::settings::Settings;

use crate::stack::settings;

fn names(choices: Vec<Choice>) -> Vec<&'static str> {
    choices.iter().map(|choice| choice.name).collect()
}

/// Chooses an FTL by the name that tests use: the name in the registry or, for an FTL that could flush its mappings by
/// amount but is told not to, `base-` followed by that name.
pub fn set_ftl(settings: &mut Settings, kind: &str) {
    settings.ftl.kind = kind.trim_start_matches("base-").into();
    settings.ftl.flush_bytes = (kind.starts_with("base-") || gathers(settings)).then_some(64 << 10);
}

/// Returns the registered FTLs whose default settings satisfy `is`, so that a new FTL is tested without being named.
pub fn ftls(is: impl Fn(&Settings) -> bool) -> Vec<&'static str> {
    names(ftl::choices()).into_iter().filter(|kind| is(&with_ftl(kind))).collect()
}

fn with_ftl(kind: &str) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings
}

/// Returns all registered FTLs.
pub fn all_ftls() -> Vec<&'static str> {
    ftls(|_| true)
}

/// Returns the FTLs that map pages.
pub fn page_mapped() -> Vec<&'static str> {
    ftls(|settings| !maps_blocks(settings))
}

/// Returns the FTLs that map pages and write mappings back by eviction, if at all.
pub fn by_eviction() -> Vec<&'static str> {
    ftls(|settings| !maps_blocks(settings) && !gathers(settings))
}

/// Returns the FTLs that map pages, write mappings back by eviction and have translation pages.
pub fn demand_cached() -> Vec<&'static str> {
    ftls(|settings| maps_on_flash(settings) && !gathers(settings))
}

/// Returns the FTLs that map blocks, with log blocks or without.
pub fn block_mapped() -> Vec<&'static str> {
    ftls(|settings| maps_blocks(settings))
}

/// Returns the FTLs with log blocks.
pub fn hybrids() -> Vec<&'static str> {
    ftls(|settings| is_hybrid(settings))
}

/// Returns the FTLs that can flush their mappings by amount.
pub fn by_amount() -> Vec<&'static str> {
    ftls(|settings| {
        let mut settings = settings.clone();
        settings.ftl.flush_bytes = Some(64 << 10);
        gathers(&settings)
    })
}

/// Returns the FTLs that map pages; those that can flush by amount, but need not, also appear under `base-` followed by
/// their name.
pub fn page_mapped_both_ways() -> Vec<&'static str> {
    let by_amount = by_amount().into_iter().filter(|kind| !gathers(&with_ftl(kind)));
    let base = by_amount.map(|kind| &*format!("base-{kind}").leak());
    page_mapped().into_iter().chain(base).collect()
}

/// Returns the host schedulers that work on whole flash blocks, or those that do not.
pub fn schedulers(by_blocks: bool) -> Vec<&'static str> {
    names(sched::choices()).into_iter().filter(|name| sched::needs(name).blocks == by_blocks).collect()
}

/// Returns the host schedulers that group requests by translation page.
pub fn by_translation_page() -> Vec<&'static str> {
    names(sched::choices()).into_iter().filter(|name| sched::needs(name).translation_pages).collect()
}

/// Returns all registered arbiters.
pub fn arbiters() -> Vec<&'static str> {
    names(ftlab_core::host::arbiter::choices())
}

/// Returns all registered schedulers of the device.
pub fn device_schedulers() -> Vec<&'static str> {
    names(ftlab_core::device::sched::choices())
}

/// Sets the policy that chooses the victims among data blocks and among translation blocks.
pub fn set_gc(settings: &mut Settings, gc: &str) {
    (settings.ftl.gc, settings.ftl.translation_gc) = (gc.into(), gc.into());
}

/// Returns all registered victim policies.
pub fn victim_policies() -> Vec<&'static str> {
    names(gc::choices())
}

/// Returns all registered placements.
pub fn placements() -> Vec<&'static str> {
    names(placement::choices())
}

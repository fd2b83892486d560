//! Garbage collection in the background: which log of a LUN is collected, and when.
//!
//! There are two thresholds, as in firmware: with fewer than `ftl.gc_normal_blocks` erased blocks, a LUN
//! collects while it is idle, in steps ([`super::log`]); when only `ftl.gc_free_blocks` are left, the write that needs
//! a block collects in the foreground, at once and completely, and first finishes the collection that was begun in the
//! background.
//!
//! User data is collected when its log is within `ftl.gc_normal_blocks` blocks of its limit. Translation pages borrow
//! erased blocks; they are collected when the LUN has fewer than `ftl.gc_normal_blocks` erased blocks and they occupy
//! more than their share of its blocks. Together these rules aim at `ftl.gc_normal_blocks` erased blocks on each LUN:
//! if user data and translation pages both stay within their shares, there are enough erased blocks.
//!
//! A step that moves data ends by updating the mappings it changed: those that are not cached are written to
//! flash, one read and one program for each translation page concerned. Small steps therefore write more
//! translation pages than the collection of a whole block, which writes each of them once.

use super::blocks::pool::BlockPool;
use super::log::{self, Log};
use crate::config::Contradiction;
use crate::ftl::settings::Settings;

/// Which log is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// User data.
    Data,
    /// Translation pages.
    Pages,
}

/// Returns the log that is to be collected now on an idle LUN, or `None`; `normal` is `ftl.gc_normal_blocks`, and
/// `pages` is the log of translation pages, if there is one.
pub(crate) fn choose(
    lun: u32,
    normal: u32,
    data: &Log,
    pages: Option<&Log>,
    pool: &BlockPool,
) -> Option<Kind> {
    if data.is_collecting(lun) || (data.stock.nears_limit(lun, normal) && data.stock.has_gainful(lun)) {
        return Some(Kind::Data);
    }
    let pages = pages?;
    let share = pool.in_service() - data.shape().limit;
    let scarce = pool.free(lun) + data.shape().reserve < normal;
    let beyond = pages.stock.held(lun) > share && pages.stock.has_gainful(lun);
    (pages.is_collecting(lun) || (scarce && beyond)).then_some(Kind::Pages)
}

/// Refuses thresholds that are not in ascending order, or that cannot be kept because the user's data, which may occupy
/// `data_limit` blocks of each LUN, leaves no room for them.
pub(crate) fn check(settings: &Settings, data_limit: u32) -> Result<(), Contradiction> {
    let Some(how) = settings.ftl.gc_background else { return Ok(()) };
    let fail = |message| Err(Contradiction { key: "ftl.gc_normal_blocks", message });
    let (normal, urgent) = (how.normal_blocks, settings.ftl.gc_free_blocks);
    if normal <= urgent {
        return fail(format!(
            "{normal} is not above ftl.gc_free_blocks = {urgent}, at which the foreground collects, so that \
             ftl.gc_background would never begin; raise it or lower ftl.gc_free_blocks"
        ));
    }
    let flash = &settings.flash;
    let unit_slots = flash.unit_bytes() / settings.ftl.logical_page_bytes;
    let live = log::live_most(settings);
    let needed =
        log::blocks_at_least(live, flash.units_per_block(), unit_slots, normal, log::fronts(settings));
    if needed > u64::from(data_limit) {
        let most = u64::from(normal).saturating_sub(needed - u64::from(data_limit));
        let advice = if most > u64::from(urgent) {
            format!("{most} would fit, or withhold more (ftl.over_provisioning)")
        } else {
            "withhold more (ftl.over_provisioning), or set ftl.gc_background to false".to_owned()
        };
        return fail(format!(
            "a LUN that keeps {normal} blocks erased needs {needed} for the user's data, of {data_limit} it may have; \
             {advice}"
        ));
    }
    Ok(())
}

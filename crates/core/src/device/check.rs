//! Whether the device's scheduler fits the other settings.

use super::sched::{self, batches::MOST_CHIPS};
use super::settings::Settings;
use crate::config::{Contradiction, Ignored};
use crate::flash::parallel::Allocation;
use crate::ftl::check::placement_ignored;
use crate::ftl::placement::ONE;

/// Collects the keys that the chosen scheduler ignores, with the reason.
pub(crate) fn ignored(settings: &Settings, found: &mut Ignored) {
    let name = &settings.device.scheduler;
    let chosen = format!("device.scheduler = \"{name}\"");
    let needs = sched::needs(name);
    let auto = format!("{chosen} chooses no block by its speed");
    placement_ignored(settings, settings.placement(), &auto, found);
    found.unless(needs.chips, &["device.max_passed"], &format!("{chosen} makes no batches"));
    sched::own_ignored(&[name], &|_| chosen.clone(), found);
}

/// Checks that the chosen scheduler fits the other settings.
///
/// # Errors
/// [`Contradiction`] naming `device.scheduler` or `ftl.wear_leveling`.
pub fn check(settings: &Settings) -> Result<(), Contradiction> {
    let name = &settings.device.scheduler;
    if settings.allocates_by_speed() && settings.ftl.wear_leveling.is_some() {
        let message = format!(
            "moves data by wear, while {} ({}) chooses blocks by their speed (flash.variation.model); set \
             ftl.wear_leveling or flash.variation.model to \"none\", or choose {}",
            settings.placement(),
            if settings.ftl.placement.is_some() { "ftl.placement" } else { "device.scheduler" },
            if settings.ftl.placement.is_some() { ONE } else { "piq" },
        );
        return Err(Contradiction { key: "ftl.wear_leveling", message });
    }
    if !sched::needs(name).chips {
        return Ok(());
    }
    let fail = |message| Err(Contradiction { key: "device.scheduler", message });
    if settings.ftl.logical_page_bytes != settings.flash.unit_bytes() {
        return fail(format!(
            "{name} goes by the chips of static allocation, but logical pages smaller than what is \
             programmed at once are written wherever a page buffer is open; set ftl.logical_page to \"page\" and \
             flash.programming to \"page\", or choose noop"
        ));
    }
    if settings.ftl.allocation == Allocation::Dynamic {
        return fail(format!(
            "{name} goes by the chips of static allocation, which ftl.allocation dynamic leaves open; \
             set an order of the levels there, or choose noop or direct"
        ));
    }
    if settings.reclaim_luns() > 1 {
        return fail(format!(
            "{name} goes by the chips of static allocation, but the pages of a superblock (ftl.reclaim_unit) go round its \
             chips; set ftl.reclaim_unit to \"block\", or choose noop or direct"
        ));
    }
    if !settings.spread().in_turn() {
        return fail(format!(
            "{name} expects consecutive pages on consecutive chips, but ftl.allocation puts some on one chip \
             in succession; let it begin with c and w, or switch flash.interleave and flash.multi_plane on, \
             or choose noop or direct"
        ));
    }
    if settings.flash.luns() > MOST_CHIPS {
        return fail(format!(
            "{name} keeps its queues for at most {} {lun}s; there are {} ([flash]); choose noop or direct",
            MOST_CHIPS,
            settings.flash.luns(),
            lun = settings.flash.lun_name(),
        ));
    }
    Ok(())
}

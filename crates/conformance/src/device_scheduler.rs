//! What every scheduler of the device's queue must guarantee.

use crate::registered::all_ftls;
use crate::stack::{bursts, every_request_completes_once, small};

/// Tests a registered scheduler of the device, above every FTL.
///
/// # Panics
/// If a request does not complete exactly once, or an invariant is broken.
pub fn device_scheduler(name: &str) {
    for kind in all_ftls() {
        for (chips, depth, transfer_ps) in [(1, 3, 0), (4, u32::MAX, 0), (4, 12, 25_000)] {
            let mut settings = small(kind, chips);
            settings.device.scheduler = name.into();
            // Requests come in batches, and mappings are prefetched.
            settings.host.scheduler = "map+".into();
            settings.device.queue_depth = depth;
            settings.flash.transfer_ps = transfer_ps;
            let trace = bursts(u64::from(chips), 2000, settings.user_pages());
            every_request_completes_once(&settings, &trace);
        }
    }
}

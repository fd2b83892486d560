//! Folding of the SLC cache while the device is idle (`ftl.slc_cache`).
//!
//! Once the device has had no request for `ftl.slc_fold_idle`, every chip that has nothing to do folds its oldest full
//! block, and then the next, until a request comes. A fold that has begun runs to its end: a request that arrives waits
//! for what is left of it on the chips that it needs.

use super::{Moment, Task};
use crate::clock::NEVER;
use crate::device::Device;
use crate::device::settings::Settings;
use crate::ftl::Idle;
use crate::workload::Op;

pub type Keys = ();

#[derive(Debug)]
pub(super) struct Fold {
    idle_ns: u64,
    /// Since when the device has had no request; `None`: it has one.
    since_ns: Option<u64>,
}

impl Task for Fold {
    fn new(settings: &Settings) -> Option<Fold> {
        let idle_ns = settings.ftl.slc_fold_idle_ns.filter(|_| settings.ftl.slc_cache.is_some())?;
        Some(Fold { idle_ns, since_ns: Some(0) })
    }

    fn acts(&self, device: &Device) -> bool {
        self.since_ns.is_some() || !device.has_requests()
    }

    fn begin(&mut self, moment: &mut Moment) -> u64 {
        if moment.device.has_requests() || !moment.lull {
            self.since_ns = None;
            return NEVER;
        }
        let due_ns = self.since_ns.get_or_insert(moment.turn.now_ns).saturating_add(self.idle_ns);
        if moment.turn.now_ns < due_ns {
            return due_ns;
        }
        for chip in 0..moment.device.places.len() as u32 {
            if moment.rest_together(chip, |device, chip| device.array.is_resting(chip)) {
                moment.issue(Op::Write, |ftl, work| ftl.fold(chip, work));
            }
        }
        NEVER
    }
}

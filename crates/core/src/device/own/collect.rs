//! Garbage collection while chips are idle (`ftl.gc_background`), one step at a time on each chip.
//!
//! A chip is **idle** if it has no step in its queue and nothing that the device holds waits for it: no
//! waiting request touches it, and no flush waits (a flush needs every chip). Where logical pages are smaller
//! than NAND pages, or allocation is dynamic, the chips of a request are known only when it issues; there a
//! chip is idle while nothing waits in the device at all. A plane is idle while its die is: several planes of a die
//! may collect if they begin at the same time. The chips of a superblock collect together, once all of them are idle.
//! Requests that wait in the host are unknown to the device. A step that has begun runs to its end: a request that
//! arrives waits only for that step.

use super::{Moment, Task};
use crate::clock::NEVER;
use crate::device::Device;
use crate::device::settings::Settings;
use crate::ftl::Idle;
use crate::workload::Op;

pub type Keys = ();

#[derive(Debug)]
pub(super) struct Collect;

impl Task for Collect {
    fn new(settings: &Settings) -> Option<Collect> {
        settings.ftl.gc_background.map(|_| Collect)
    }

    fn begin(&mut self, moment: &mut Moment) -> u64 {
        for chip in 0..moment.device.places.len() as u32 {
            let rests = |device: &Device, chip| !device.waiting.wants(chip) && device.array.is_resting(chip);
            if moment.rest_together(chip, rests) {
                moment.issue(Op::Write, |ftl, work| ftl.background_step(chip, work));
            }
        }
        NEVER
    }
}

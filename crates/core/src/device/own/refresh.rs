//! Refresh: data are rewritten before they can no longer be read (`ftl.refresh`), a block at a time, while their LUN is
//! idle as it must be for a collection in the background ([`super::collect`]). Which blocks these are the flash knows
//! ([`crate::flash::errors`]); a request that arrives meanwhile waits for the rest of the block.

use super::{Moment, Task};
use crate::clock::NEVER;
use crate::device::settings::Settings;
use crate::flash::errors::rates::are_on;
use crate::ftl::{Idle, Locate, Refreshed};
use crate::workload::Op;

pub type Keys = ();

#[derive(Debug)]
pub(super) struct Refresh;

impl Task for Refresh {
    fn new(settings: &Settings) -> Option<Refresh> {
        (settings.ftl.refresh.is_some() && are_on(&settings.flash)).then_some(Refresh)
    }

    fn begin(&mut self, moment: &mut Moment) -> u64 {
        let next_ns = moment.turn.work.look_for_worn().unwrap_or(NEVER);
        for lun in 0..moment.device.places.len() as u32 {
            let rests = moment
                .turn
                .ftl
                .reclaimed_with(lun)
                .all(|lun| !moment.device.waiting.wants(lun) && moment.device.array.is_resting(lun));
            if rests && let Some(block) = moment.turn.work.take_worn(lun) {
                moment.issue(Op::Write, |ftl, work| {
                    let done = ftl.refresh(block, work);
                    if done == Refreshed::Later {
                        work.put_back_worn(block);
                    }
                    done == Refreshed::Moved
                });
            }
        }
        next_ns
    }
}

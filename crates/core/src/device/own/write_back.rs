//! Write-backs of dirty mappings while the device has nothing else to do (`ftl.background_flush`), one translation
//! page at a time; a request that arrives meanwhile waits for the write-back.

use super::{Moment, Task};
use crate::clock::NEVER;
use crate::device::settings::Settings;
use crate::ftl::Idle;
use crate::workload::Op;

pub type Keys = ();

#[derive(Debug)]
pub(super) struct WriteBack;

impl Task for WriteBack {
    fn new(settings: &Settings) -> Option<WriteBack> {
        settings.ftl.background_flush.then_some(WriteBack)
    }

    fn occupies(&self) -> bool {
        true
    }

    fn begin(&mut self, moment: &mut Moment) -> u64 {
        if moment.lull && moment.device.is_idle() {
            moment.issue(Op::Write, |ftl, work| {
                work.chain();
                ftl.write_back(work)
            });
        }
        NEVER
    }
}

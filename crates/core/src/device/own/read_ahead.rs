//! Read-ahead: reads of pages that a stream will ask for next (`device.read_ahead`).

use super::{Moment, Task};
use crate::clock::NEVER;
use crate::device::settings::Settings;
use crate::ftl::Serve;
use crate::util::Stat;
use crate::workload::Op;

pub type Keys = ();

#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    pages: u64,
}

impl Task for ReadAhead {
    fn new(settings: &Settings) -> Option<ReadAhead> {
        settings.device.buffer.reads_ahead().then(ReadAhead::default)
    }

    fn begin(&mut self, moment: &mut Moment) -> u64 {
        // Taken out, as the device must issue meanwhile.
        let Some(mut buffer) = moment.device.row.buffer.take() else { return NEVER };
        while let Some(pages) = buffer.next_ahead() {
            self.pages += u64::from(pages.pages);
            let runs = moment.issue_for((0, pages), Op::Read, |ftl, work| {
                ftl.read(pages, work);
                true
            });
            if !runs {
                buffer.came(pages);
            }
        }
        moment.device.row.buffer = Some(buffer);
        NEVER
    }

    fn stats(&self) -> Vec<Stat> {
        vec![Stat::new("pages", self.pages as f64, "pages", "Logical pages read before they were asked for.")]
    }
}

//! Destaging: pages of the write buffer go to the flash (`device.write_buffer`).
//!
//! Destaging begins when more than `device.write_buffer_high` of the buffer is in use, or when a write or a flush waits
//! in the buffer, and ends when less than `device.write_buffer_low` is in use; while the device has nothing else to do,
//! it goes on in any case. The pages wait in the queue of their LUN behind what has issued before. Fewer pages than
//! fill a NAND page are handed out only for a flush, for a write that would not get room otherwise, and as the last
//! pages of a logical block under policy `block`.

use super::{Moment, Task};
use crate::clock::NEVER;
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::settings::Settings;
use crate::device::watch::Ram;
use crate::ftl::{Locate, LookUp, Serve};
use crate::workload::Op;

pub type Keys = ();

#[derive(Debug)]
pub(super) struct Destage {
    /// Logical pages that fill a NAND page.
    unit: u32,
}

impl Task for Destage {
    fn new(settings: &Settings) -> Option<Destage> {
        let unit = settings.flash.unit_bytes() / settings.ftl.logical_page_bytes;
        settings.device.buffer.on().then_some(Destage { unit })
    }

    fn acts(&self, device: &Device) -> bool {
        let wants = |buffer: &Buffer| buffer.wants(!device.has_requests());
        device.read_only_ns.is_some() || device.row.buffer.as_deref().is_some_and(wants)
    }

    fn begin(&mut self, moment: &mut Moment) -> u64 {
        // The buffer is taken out of the device, which must issue meanwhile.
        let Some(mut buffer) = moment.device.row.buffer.take() else { return NEVER };
        // All that can begin must begin now: at how many instants this is called depends on whether activity is shown.
        while buffer.wants(!moment.device.has_requests()) && !moment.turn.ftl.is_read_only() {
            let Some(list) = buffer.next_list() else { break };
            // All of them are looked up side by side, rather than one after another as each is written.
            buffer.each_next(list, self.unit, |lpn| moment.turn.ftl.expect(lpn));
            buffer.each_next(list, self.unit, |lpn| moment.turn.ftl.preload(lpn));
            (0..self.unit).for_each(|_| destage(&mut buffer, list, moment));
        }
        moment.device.row.buffer = Some(buffer);
        if moment.turn.ftl.is_read_only() {
            // It may have been so from the start, and then no write of the host's has told.
            moment.device.turned_read_only(moment.turn.now_ns, moment.turn.ftl);
            moment.acted = true;
        }
        NEVER
    }
}

/// Hands the next page of a list to the FTL, if there is one.
fn destage(buffer: &mut Buffer, list: u32, moment: &mut Moment) {
    if moment.turn.ftl.is_read_only() {
        return;
    }
    let Some(page) = buffer.destage(list) else { return };
    moment.device.watch.ram(Ram::Destage { lpn: page.pages.first }, moment.turn.now_ns);
    let refused = moment.turn.ftl.refused();
    let runs = moment.issue_for((page.room, page.pages), Op::Write, |ftl, work| {
        ftl.write(page.pages, work);
        true
    });
    if moment.turn.ftl.refused() > refused {
        return buffer.take_back(page, moment.turn.ftl);
    }
    buffer.taken(page, moment.turn.ftl);
    if !runs {
        // The page is in a page buffer of the FTL, and takes up no more room in the write buffer.
        buffer.landed(page.pages.first, page.room);
    }
}

//! Mapping entries on their way between the device and the host (UFS Host Performance Booster, JESD220-3A).
//!
//! A read may carry an entry for each of its pages; the device keeps them with the command until the read issues. A
//! command that reads entries (HPB READ BUFFER) goes through link, controller and queue as a read does. When it issues,
//! the FTL hands the entries out, and they wait here until the command completes.
//!
//! Interpretation: such a command occupies a core for `device.command_time`, as a command without logical pages. What of
//! the entries is in the mapping cache need not be read from flash, and what is read does not enter the cache.

use super::Device;
use super::entries::Entries;
use crate::flash::Work;
use crate::ftl::Running;
use crate::request::{Entry, Pages, Pool, Request};

impl Device {
    /// From now on, takes entries that come with reads, up to `most` with each.
    pub fn take_entries(&mut self, most: u32) {
        self.entries = Some(Box::new(Entries::new(most)));
        (self.apart, self.attended, self.noted) = (true, true, true);
    }

    /// Takes the entries that a read of this many pages carries, one for each of them.
    pub fn carry(&mut self, id: u32, pages: u32, carried: impl Iterator<Item = Entry>) {
        if let Some(entries) = &mut self.entries {
            entries.take(id, pages, carried);
        }
    }

    /// Forgets the entries that a request carried, which has completed.
    pub fn forget_carried(&mut self, id: u32, request: &Request) {
        if let Some(entries) = &mut self.entries {
            entries.forget(id, request);
        }
    }

    /// Returns the entries that the command that completes now has brought, if it was one that reads entries.
    pub fn handed_out(&self) -> &[Entry] {
        self.entries.as_ref().map_or(&[], |entries| &entries.handed)
    }

    /// Returns the entries that a request carries for these of its pages; none if it carries none.
    pub(super) fn entries_of(&self, id: u32, request: &Request, pages: Pages) -> &[Entry] {
        let entries = self.entries.as_ref().filter(|_| request.mark.has_entries());
        entries.map_or(&[], |entries| entries.of(id, request, pages))
    }

    /// Begins a command that reads entries.
    #[cold]
    pub(super) fn begin_hand_out(
        &mut self,
        id: u32,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut impl Running,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        self.waiting.leave(&pool[id], &self.array, ftl, work);
        let Some(Entries { handed, .. }) = self.entries.as_deref_mut() else { return };
        handed.clear();
        let first = pool[id].pages.first;
        ftl.hand_out(first..first + (pool[id].size / Entry::BYTES) as u32, handed, work);
        pool[id].failed |= work.take_failure();
        pool[id].device.steps_left = work.steps().len() as u32;
        if pool[id].device.steps_left == 0 {
            return self.end(id, now_ns, pool, done);
        }
        self.array.start((id, None), work, true, now_ns);
    }
}

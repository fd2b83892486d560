//! Mapping entries on their way between the device and the host (UFS Host Performance Booster, JESD220-3A).
//!
//! A read may carry an entry for each of its pages; the device keeps them with the command until the read issues. A
//! command that reads entries (HPB READ BUFFER) goes through link, controller and queue as a read does. When it issues,
//! the FTL hands the entries out, and they wait here until the command completes.
//!
//! Interpretation: such a command occupies a core for `device.command_time`, as a command without logical pages. What
//! of the entries is in the mapping cache need not be read from flash, and what is read does not enter the cache.

use crate::request::{Entry, Pages, Request};
use crate::util::{NONE, Slab};

/// The entries under way.
#[derive(Debug)]
pub(super) struct Entries {
    /// The entries that reads carry, by the number of their pages: each room is for reads of up to as many pages as a
    /// power of two, so that memory follows what is under way and not what the longest read may carry.
    rooms: Vec<Room>,
    /// For each request its slot in its room, or [`NONE`].
    slots: Vec<u32>,
    /// The entries that were handed out last. The host reads one subregion at a time.
    pub(super) handed: Vec<Entry>,
}

#[derive(Debug, Default)]
struct Room {
    taken: Slab<()>,
    entries: Vec<Entry>,
}

/// Returns the room of reads of this many pages; its slots have two to this power of entries.
fn room(pages: u32) -> usize {
    pages.next_power_of_two().trailing_zeros() as usize
}

impl Entries {
    /// Makes room for reads with up to `most` entries each.
    pub(super) fn new(most: u32) -> Entries {
        let rooms = (0..=room(most)).map(|_| Room::default()).collect();
        Entries { rooms, slots: Vec::new(), handed: Vec::new() }
    }

    /// Takes the entries that a read of this many pages carries, one for each of them.
    pub(super) fn take(&mut self, id: u32, pages: u32, entries: impl Iterator<Item = Entry>) {
        let of = room(pages);
        let Room { taken, entries: places } = &mut self.rooms[of];
        let slot = taken.insert(());
        let (from, end) = ((slot as usize) << of, (slot as usize + 1) << of);
        places.resize(places.len().max(end), Entry::default());
        places[from..end].iter_mut().zip(entries).for_each(|(place, entry)| *place = entry);
        self.slots.resize(self.slots.len().max(id as usize + 1), NONE);
        self.slots[id as usize] = slot;
    }

    /// Returns the entries that a request carries for these of its pages.
    fn of(&self, id: u32, request: &Request, pages: Pages) -> &[Entry] {
        let of = room(request.pages.pages);
        let first = ((self.slots[id as usize] as usize) << of) + (pages.first - request.pages.first) as usize;
        &self.rooms[of].entries[first..first + pages.pages as usize]
    }

    /// Forgets what a request carried that has completed.
    pub(super) fn forget(&mut self, id: u32, request: &Request) {
        if request.mark.has_entries() {
            let slot = std::mem::replace(&mut self.slots[id as usize], NONE);
            self.rooms[room(request.pages.pages)].taken.release(slot);
        }
    }
}

/// Returns the entries that a request carries for these of its pages; none if it carries none.
pub(super) fn carried<'a>(
    entries: &'a Option<Box<Entries>>,
    id: u32,
    request: &Request,
    pages: Pages,
) -> &'a [Entry] {
    let entries = entries.as_ref().filter(|_| request.mark.has_entries());
    entries.map_or(&[], |entries| entries.of(id, request, pages))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Asks;
    use crate::workload::Op;

    fn read(first: u32, pages: u32) -> Request {
        let mut request = Request::of_pages(Op::Read, first, pages);
        request.mark.asks = Asks::Entries;
        request
    }

    fn entries(first: u32, pages: u32) -> impl Iterator<Item = Entry> {
        (first..first + pages).map(|lpn| Entry { slot: 7 * lpn, stamp: 1 })
    }

    #[test]
    fn entries_are_those_of_their_read_and_its_pages() {
        let mut held = Entries::new(34);
        let reads = [(9, 100, 34), (0, 200, 33), (3, 300, 1), (4, 400, 32)];
        for (id, first, pages) in reads {
            held.take(id, pages, entries(first, pages));
        }
        for (id, first, pages) in reads {
            let request = read(first, pages);
            assert!(held.of(id, &request, request.pages).iter().copied().eq(entries(first, pages)));
            let last = request.pages.part(pages - 1, 1);
            assert!(held.of(id, &request, last).iter().copied().eq(entries(first + pages - 1, 1)));
        }
        assert_eq!(under_way(&held), 4);
        reads.into_iter().for_each(|(id, first, pages)| held.forget(id, &read(first, pages)));
        assert_eq!(under_way(&held), 0);
    }

    fn under_way(held: &Entries) -> usize {
        held.rooms.iter().map(|room| room.taken.count()).sum()
    }

    /// The longest read has 32,768 pages. Ten thousand requests that carried one entry each, of which two were under
    /// way at a time, once took room for as many of the longest.
    #[test]
    fn memory_is_that_of_what_is_under_way() {
        let mut held = Entries::new(32_770);
        for id in 0..10_000 {
            held.take(id, 1, entries(id, 1));
            if id > 0 {
                held.forget(id - 1, &read(id - 1, 1));
            }
        }
        assert_eq!(held.rooms.iter().map(|room| room.entries.len()).sum::<usize>(), 2);
    }
}

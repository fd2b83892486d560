//! Mapping entries under way between the device and the host.

use crate::request::{Entry, Pages, Request};

/// The entries under way.
#[derive(Debug)]
pub(super) struct Entries {
    /// Number of entries that a read carries at most.
    most: u32,
    /// For each request that the device may hold, the entries that it carries.
    carried: Vec<Entry>,
    /// The entries that were handed out last. The host reads one subregion at a time.
    pub(super) handed: Vec<Entry>,
}

impl Entries {
    /// Makes room for reads with up to `most` entries each.
    pub(super) fn new(most: u32) -> Entries {
        Entries { most, carried: Vec::new(), handed: Vec::new() }
    }

    /// Takes the entries that a read carries, one for each of its pages.
    pub(super) fn take(&mut self, id: u32, entries: impl Iterator<Item = Entry>) {
        let (at, most) = (self.place(id), self.most as usize);
        if self.carried.len() < at + most {
            self.carried.resize(at + most, Entry::default());
        }
        self.carried[at..].iter_mut().zip(entries).for_each(|(place, entry)| *place = entry);
    }

    /// Returns the entries that a request carries for these of its pages.
    pub(super) fn of(&self, id: u32, request: &Request, pages: Pages) -> &[Entry] {
        let first = self.place(id) + (pages.first - request.pages.first) as usize;
        &self.carried[first..first + pages.pages as usize]
    }

    fn place(&self, id: u32) -> usize {
        id as usize * self.most as usize
    }
}

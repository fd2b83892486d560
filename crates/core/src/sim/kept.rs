//! What the RAM of a device with `device.power_loss_protection` still holds at a power cut: the newest version of every
//! page that the flash lacks. The device writes it to flash when power returns.

use std::collections::HashMap;

use crate::flash::media::{DESTAGED, Event, Media};
use crate::ftl::{Ftl, LookUp, Survive};

/// What was written and trimmed, page by page. A version is named by the sequence number that the write had when the
/// device took it; destaging gives the page another number, which is the one on flash.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// By page, the newest version; `None` after a trim.
    newest: HashMap<u32, Option<u64>>,
    /// By sequence number on flash, the version that was destaged under it.
    destaged: HashMap<u64, u64>,
}

impl Kept {
    /// Notes a write, a trim or the destaging of a page; events come in the order in which they were decided.
    pub fn note(&mut self, event: &Event) {
        let newest = self.newest.get(&event.lpn).copied().flatten();
        match (event.request, newest) {
            (DESTAGED, Some(version)) => _ = self.destaged.insert(event.seq, version),
            (DESTAGED, None) => {}
            _ => _ = self.newest.insert(event.lpn, (!event.trim).then_some(event.seq)),
        }
    }

    /// Returns the version that is on flash under this sequence number.
    pub fn version(&self, seq: u64) -> u64 {
        self.destaged.get(&seq).copied().unwrap_or(seq)
    }

    /// Returns the pages whose newest version is not on flash, in order, and for each whether that version is a trim.
    ///
    /// # Errors
    /// A message, if an LPN resolves to a page that holds no version of it.
    pub fn lost(&self, ftl: &Ftl, media: &Media) -> Result<Vec<(u32, bool)>, String> {
        let mut lost = Vec::new();
        for lpn in 0..ftl.logical_pages() {
            let Some(&newest) = self.newest.get(&lpn) else { continue };
            let found = ftl.version_on(lpn, media)?;
            if found.map(|seq| self.version(seq)) != newest {
                lost.push((lpn, newest.is_none()));
            }
        }
        Ok(lost)
    }

    /// Forgets which versions are the newest: power has returned, and the flash has all that there is.
    pub fn settle(&mut self) {
        self.newest.clear();
    }
}

//! For check mode: which version of a page the device has, whether it is in the write buffer or on flash.
//!
//! A page keeps its stamp when it is destaged, although the FTL then counts a version of its own.

use std::collections::HashMap;

use crate::ftl::Police;

/// Sets the stamps of the buffer apart from those of the FTL.
const BUFFERED: u32 = 1 << 31;

/// The newest version of each page that was in the buffer.
#[derive(Debug, Default)]
pub(super) struct Versions {
    stamps: u32,
    /// By page, the stamp, and the version that the FTL has given the page if it has been destaged.
    newest: HashMap<u32, (u32, Option<u32>)>,
}

impl Versions {
    /// Notes that a page is written into the buffer.
    pub fn written(&mut self, lpn: u32) {
        self.stamps += 1;
        self.newest.insert(lpn, (self.stamps, None));
    }

    /// Notes that the FTL has taken a page from the buffer and given it this version.
    pub fn destaged(&mut self, lpn: u32, version: Option<u32>) {
        self.newest.entry(lpn).and_modify(|newest| newest.1 = version);
    }

    /// Forgets a page, which was trimmed or overwritten past the buffer.
    pub fn discard(&mut self, lpn: u32) {
        self.newest.remove(&lpn);
    }

    /// Notes that the FTL is given again, past the buffer, what the device has of a page.
    pub fn repeated(&mut self, lpn: u32) {
        self.newest.entry(lpn).and_modify(|newest| newest.1 = None);
    }

    /// Returns the version that the device has of a page.
    pub fn of(&self, lpn: u32, ftl: &impl Police) -> Option<u32> {
        let flash = ftl.version(lpn);
        match self.newest.get(&lpn) {
            Some(&(stamp, destaged)) if destaged.is_none() || destaged == flash => Some(stamp | BUFFERED),
            _ => flash,
        }
    }
}

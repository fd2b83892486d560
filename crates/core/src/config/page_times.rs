//! Times that may differ between the page types of a word line.

use super::units::NANOS;
use std::fmt;

/// The largest number of bits that a cell can hold, and so of the page types of a word line.
pub const MOST_BITS: usize = 4;

/// A time for each page type of a word line, the lowest first, "56us/77us/106us"; or one time for all types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTimes {
    ns: [u64; MOST_BITS],
    given: u8,
}

impl PageTimes {
    /// Makes the times from the ones that are stated, ns.
    ///
    /// # Panics
    /// If there is no time, or more than [`MOST_BITS`].
    pub fn new(stated: &[u64]) -> PageTimes {
        let mut ns = [0; MOST_BITS];
        ns[..stated.len()].copy_from_slice(stated);
        assert!(!stated.is_empty());
        PageTimes { ns, given: stated.len() as u8 }
    }

    /// Returns the times as stated, ns.
    pub fn stated(&self) -> &[u64] {
        &self.ns[..usize::from(self.given)]
    }

    /// Returns the time of a page type, ns.
    pub fn of_type(&self, page_type: usize) -> u64 {
        self.ns[if self.given == 1 { 0 } else { page_type }]
    }

    /// Returns the shortest time, ns.
    pub fn least(&self) -> u64 {
        self.stated().iter().copied().fold(u64::MAX, u64::min)
    }

    /// Returns the longest time, ns.
    pub fn most(&self) -> u64 {
        self.stated().iter().copied().fold(0, u64::max)
    }

    /// Returns the mean of the stated times, rounded down, ns.
    pub fn mean(&self) -> u64 {
        self.stated().iter().sum::<u64>() / u64::from(self.given)
    }

    /// Whether all types have the same time.
    pub fn are_alike(&self) -> bool {
        self.least() == self.most()
    }
}

impl From<u64> for PageTimes {
    fn from(ns: u64) -> PageTimes {
        PageTimes::new(&[ns])
    }
}

impl fmt::Display for PageTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, &ns) in self.stated().iter().enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { "/" }, NANOS.format(ns))?;
        }
        Ok(())
    }
}

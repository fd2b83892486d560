//! Quantities that may differ between the page types of a word line.

use super::units::{ENERGY, NANOS, Unit};
use std::fmt;

/// The largest number of bits that a cell can hold, and so of the page types of a word line.
pub const MOST_BITS: usize = 4;

/// A quantity for each page type of a word line, the lowest first, "56us/77us/106us"; or one for all types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByPageType {
    steps: [u64; MOST_BITS],
    given: u8,
    unit: &'static Unit,
}

/// A time for each page type, ns.
pub type PageTimes = ByPageType;

impl ByPageType {
    /// Makes times from the ones that are stated, ns.
    ///
    /// # Panics
    /// If there is no time, or more than [`MOST_BITS`].
    pub fn new(stated: &[u64]) -> ByPageType {
        ByPageType::of_unit(&NANOS, stated)
    }

    /// Makes energies from the ones that are stated, fJ.
    ///
    /// # Panics
    /// If there is no energy, or more than [`MOST_BITS`].
    pub fn energies(stated: &[u64]) -> ByPageType {
        ByPageType::of_unit(&ENERGY, stated)
    }

    /// Makes quantities of this unit from the ones that are stated.
    ///
    /// # Panics
    /// If there is none, or more than [`MOST_BITS`].
    pub fn of_unit(unit: &'static Unit, stated: &[u64]) -> ByPageType {
        let mut steps = [0; MOST_BITS];
        steps[..stated.len()].copy_from_slice(stated);
        assert!(!stated.is_empty());
        ByPageType { steps, given: stated.len() as u8, unit }
    }

    /// Returns the quantities as stated.
    pub fn stated(&self) -> &[u64] {
        &self.steps[..usize::from(self.given)]
    }

    /// Returns the quantity of a page type.
    pub fn of_type(&self, page_type: usize) -> u64 {
        self.steps[if self.given == 1 { 0 } else { page_type }]
    }

    /// Returns these quantities times `factor`, each rounded.
    pub fn times(&self, factor: f64) -> ByPageType {
        ByPageType { steps: self.steps.map(|step| times(step, factor)), ..*self }
    }

    /// Returns the smallest quantity.
    pub fn least(&self) -> u64 {
        self.stated().iter().copied().fold(u64::MAX, u64::min)
    }

    /// Returns the largest quantity.
    pub fn most(&self) -> u64 {
        self.stated().iter().copied().fold(0, u64::max)
    }

    /// Returns the mean of the stated quantities, rounded down.
    pub fn mean(&self) -> u64 {
        self.stated().iter().sum::<u64>() / u64::from(self.given)
    }

    /// Whether all types have the same quantity.
    pub fn are_alike(&self) -> bool {
        self.least() == self.most()
    }
}

/// Returns a time times `factor`, rounded.
pub fn times(ns: u64, factor: f64) -> u64 {
    (ns as f64 * factor).round() as u64
}

impl From<u64> for ByPageType {
    fn from(ns: u64) -> ByPageType {
        ByPageType::new(&[ns])
    }
}

impl fmt::Display for ByPageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, &steps) in self.stated().iter().enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { "/" }, self.unit.format(steps))?;
        }
        Ok(())
    }
}

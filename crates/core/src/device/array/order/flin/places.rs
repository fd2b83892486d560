//! Places in a queue, and ranges of slowdowns.

/// A step among which a new one finds its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub slot: u32,
    /// Time from now until the step would be finished, ns.
    pub left_ns: u64,
    /// The least and the greatest slowdown of the steps before this one.
    pub before: Range,
}

/// The least and the greatest of some slowdowns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    least: f64,
    pub greatest: f64,
}

impl Range {
    pub const EMPTY: Range = Range { least: f64::INFINITY, greatest: 0.0 };

    pub fn with(self, slowdown: f64) -> Range {
        Range { least: self.least.min(slowdown), greatest: self.greatest.max(slowdown) }
    }

    pub fn and(self, other: Range) -> Range {
        Range { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }

    pub fn fairness(self) -> f64 {
        self.least / self.greatest
    }
}

//! A run: copies of a collected block that go into one front, one after another.

/// The copies that go into one front.
pub(super) struct Run {
    /// Whether the host has begun the page into which the first copy goes.
    pub(super) begun: bool,
    /// Whether there are any.
    pub(super) copies: bool,
    /// The fronts whose begun pages were filled with copies, as a bit set.
    pub(super) hosts: u64,
    /// Slots that have been placed and are not yet named as targets; trim pages come first among them.
    pub(super) slots: u32,
    /// Number of trim pages among these slots.
    pub(super) trims: u32,
}

//! How a read that the error correction cannot correct is repeated with shifted reference voltages (`flash.retry`).
//!
//! Sources: a drive tries the shifts of the manufacturer's table one after another, or begins where its last read of
//! the block succeeded. *pipelined* is PR2 of Park et al., "Reducing Solid-State Drive Read Latency by Optimizing
//! Read-Retry", ASPLOS 2021: the cells sense for the next step while the data of the last one are on the bus.
//! *sentinel* is Li et al., "Shaving Retries with Sentinels for Fast Read over High-Density 3D Flash", MICRO 2020: the
//! errors of reserved cells tell the right shift once the first read has failed. What was read into them is in
//! `docs/readings/errors-and-age.md`.

use crate::config::choice;

choice! {
    /// The values of `flash.retry`: which steps a read that needs one tries.
    pub enum Retry {
        /// steps 1, 2, 3, ... until one succeeds
        FromStart = "from-start",
        /// begin with the step at which the last read of the block succeeded
        Last = "last",
        /// as from-start, but the cells sense for the next step while the data of the last cross the bus (PR2, Park et
        /// al., ASPLOS 2021)
        Pipelined = "pipelined",
        /// the step that is needed follows the first failure at once (Li et al., MICRO 2020)
        Sentinel = "sentinel",
    }
}

/// The repetitions of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeats {
    /// How many there are.
    pub count: u32,
    /// Whether the cells work on each but the first while the data of the one before cross the bus.
    pub overlapped: bool,
}

impl Retry {
    /// Returns the repetitions of a read that needs the step `needed` (`None`: all `most` steps fail) on a block whose
    /// last read succeeded at step `last`. A block never needs a smaller step than before until it is erased.
    pub(super) fn repeats(self, needed: Option<u32>, last: u32, most: u32) -> Repeats {
        let steps = needed.unwrap_or(most);
        let count = match self {
            Retry::FromStart | Retry::Pipelined => steps,
            // The rate may have been another when a saved state was made.
            Retry::Last => steps.saturating_sub(last),
            // A shift that the sentinels did not give is sought in the table.
            Retry::Sentinel if needed.is_some() => steps.min(1),
            Retry::Sentinel => steps,
        };
        Repeats { count, overlapped: self == Retry::Pipelined }
    }
}

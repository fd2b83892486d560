//! Counts of reads and programs by page type, for energies that differ between the types.

use super::settings::Flash;
use super::{ByCause, Cause, Operation, cells};
use crate::config::MOST_BITS;
use crate::util::{Divider, NONE};

/// Counts of pages, by cause and page type.
pub type ByType = ByCause<[u64; MOST_BITS]>;

/// The pages read and programmed so far, by type. With whole word lines programmed at once, a word line counts as one
/// page of the lowest type.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Type of each page of a block.
    of_page: Vec<u8>,
    by_block: Divider,
    /// Pages read.
    pub reads: ByType,
    /// Pages programmed.
    pub programs: ByType,
}

impl Tally {
    /// Makes the counts of a device on which nothing was read or programmed.
    pub(super) fn new(flash: &Flash) -> Tally {
        let none = || ByCause::new(|_| [0; MOST_BITS]);
        Tally {
            of_page: cells::types(flash),
            by_block: Divider::new(flash.pages_per_block),
            reads: none(),
            programs: none(),
        }
    }

    /// Counts an operation on a page; a page that is not known ([`NONE`]) is of the lowest type.
    pub(super) fn count(&mut self, operation: Operation, cause: Cause, page: u32) {
        let counts = match operation {
            Operation::Read => &mut self.reads,
            Operation::Program => &mut self.programs,
            Operation::Erase => return,
        };
        let offset = if page == NONE { 0 } else { self.by_block.rem(page) };
        counts[cause][usize::from(self.of_page[offset as usize])] += 1;
    }

    /// Forgets what was counted.
    pub(super) fn reset(&mut self) {
        self.reads = ByCause::new(|_| [0; MOST_BITS]);
        self.programs = self.reads;
    }
}

//! Merges of hybrid FTLs, counted by kind.

/// How log and data blocks become one data block (Shim et al., TC 2014, sections 2.2 and 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MergeKind {
    /// All valid pages are copied into an erased block.
    Full = 0,
    /// A log block written in order from offset 0 gets the rest of its pages.
    Partial = 1,
    /// A log block written in order to its end becomes the data block as it is.
    Switch = 2,
    /// The same, with pages that the host wrote as padding.
    PaddedSwitch = 3,
    /// The host's block issue goes into an erased block, which gets the pages left out.
    Cooperative = 4,
}

/// Merges of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCount {
    /// How many.
    pub count: u64,
    /// Pages copied by them; of padded switch merges the padding pages.
    pub pages_copied: u64,
    /// Time of their flash operations, erasures included, ns; of padded switch merges also of reading
    /// and programming the padding.
    pub busy_ns: u64,
}

/// Merges by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeStats([MergeCount; 5]);

impl MergeStats {
    /// Those of one kind.
    pub fn of(&self, kind: MergeKind) -> MergeCount {
        self.0[kind as usize]
    }

    /// Those since `base`.
    pub(crate) fn since(&self, base: &MergeStats) -> MergeStats {
        let mut since = *self;
        for (count, base) in since.0.iter_mut().zip(base.0) {
            count.count -= base.count;
            count.pages_copied -= base.pages_copied;
            count.busy_ns -= base.busy_ns;
        }
        since
    }

    /// The same, to count on.
    pub(crate) fn of_mut(&mut self, kind: MergeKind) -> &mut MergeCount {
        &mut self.0[kind as usize]
    }
}

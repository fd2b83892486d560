//! What a device is told while it runs: to fail, to slow down, to age, to wear, to turn read-only.
//!
//! A failing sector is the engine's own: the simulation serves the request, and the client gets an error. So a
//! recording replays to the same result as ever. Everything else changes the simulation, and a replay that knows
//! nothing of it cannot be exact: the recording says so.

use std::ops::Range;

use ftlab_core::workload::Op;

/// Bytes of a logical block, as `ctl fail` counts them.
pub const LBA_BYTES: u64 = 512;

/// What the device has been told.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    /// Bytes whose reads fail until they are written or trimmed, and bytes whose writes fail.
    pub bad: [Vec<Range<u64>>; 2],
    /// Numbers of reads and of writes, trims and zeroes that failed because of this.
    pub failed: [u64; 2],
    /// What else the device was told: the simulated time, ns, and the command.
    pub told: Vec<(u64, String)>,
}

impl Orders {
    /// Whether a write, a trim or zeroes must fail; counts it if so.
    pub fn fail_write(&mut self, offset: u64, length: u64) -> bool {
        let fails = meets(&self.bad[1], &(offset..offset.saturating_add(length)));
        self.failed[1] += u64::from(fails);
        fails
    }

    /// Whether a submission that completes must fail, because it read bad sectors; counts it if so. What it wrote or
    /// trimmed is good again.
    pub fn fails(&mut self, op: Op, range: Range<u64>) -> bool {
        if self.bad[0].is_empty() {
            return false;
        }
        if op == Op::Read {
            let fails = meets(&self.bad[0], &range);
            self.failed[0] += u64::from(fails);
            return fails;
        }
        let whole = range.start.next_multiple_of(LBA_BYTES)..range.end / LBA_BYTES * LBA_BYTES;
        self.bad[0] = self.bad[0].iter().flat_map(|bad| without(bad, &whole)).collect();
        false
    }
}

/// Whether a range meets any of these.
fn meets(bad: &[Range<u64>], range: &Range<u64>) -> bool {
    bad.iter().any(|bad| bad.start < range.end && range.start < bad.end)
}

/// Returns what of a range is left without the bytes of another.
fn without(bad: &Range<u64>, gone: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let before = bad.start..bad.end.min(gone.start);
    let after = bad.start.max(gone.end)..bad.end;
    let parts = if gone.is_empty() { [bad.clone(), 0..0] } else { [before, after] };
    parts.into_iter().filter(|part| part.start < part.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write makes exactly the sectors good that it covers as a whole.
    #[test]
    fn what_is_written_is_good_again() {
        let mut orders = Orders {
            bad: [vec![512..2048, 4096..4608], vec![8192..8704, 65536..66048]],
            ..Orders::default()
        };
        assert!(orders.fails(Op::Read, 0..513) && !orders.fails(Op::Read, 2048..4096));
        assert!(!orders.fails(Op::Write, 1000..1600));
        assert_eq!(orders.bad[0], [512..1024, 1536..2048, 4096..4608]);
        assert!(!orders.fails(Op::Trim, 4096..8192));
        assert_eq!(orders.bad[0], [512..1024, 1536..2048]);
        assert!(orders.fail_write(8703, 1) && !orders.fail_write(8704, 512) && !orders.fail_write(0, 8192));
        assert_eq!(orders.failed, [1, 1]);
    }
}

//! What happens to cells from outside, while a device runs: data lie for longer, operations take longer.

use super::Reliability;

/// Data may have lain for this long, ns: 146 years.
const OLDEST_NS: i64 = i64::MAX / 2;

use crate::config::times;
use crate::flash::Flash;

impl Reliability {
    /// Lets all data have lain for `age_ns` longer.
    pub(in crate::flash) fn age(&mut self, age_ns: u64) {
        for block in &mut self.blocks {
            block.begin_at(|begun_ns| begun_ns.saturating_sub_unsigned(age_ns).max(-OLDEST_NS));
        }
        self.watch_anew();
    }

    /// Watches blocks from the beginning, because the moments at which they have to be rewritten have changed.
    pub(in crate::flash) fn watch_anew(&mut self) {
        self.watch = self.watch.as_ref().map(super::Watch::anew);
        (0..self.blocks.len() as u32).for_each(|block| self.list(block));
    }

    /// Makes repetitions of reads take `factor` times as long as the settings of `flash` say.
    pub(in crate::flash) fn slow(&mut self, flash: &Flash, factor: f64) {
        self.retry_ns = flash.errors.retry_ns.map(|ns| times(ns, factor));
    }
}

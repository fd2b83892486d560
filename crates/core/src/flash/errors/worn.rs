//! Which blocks are to be rewritten (`ftl.refresh`), and when each must be looked at.

use super::{ERASED, HOUR_NS, MOMENT_NS, MOST, Reliability};

const CENTURY_NS: f64 = 100.0 * 365.0 * 24.0 * HOUR_NS;

impl Reliability {
    /// Has a block with data looked at when it may first have to be rewritten, if blocks are watched for.
    pub(super) fn list(&mut self, block: u32) {
        let Some(watch) = &self.watch else { return };
        if watch.lists(block) {
            // It will be looked at earlier, for the data that were there before.
            return;
        }
        if let Some(at_ns) = self.worn_ns(block, watch.step)
            && let Some(watch) = &mut self.watch
        {
            watch.list(block, at_ns);
        }
    }

    /// Returns when a block that is not read meanwhile will need retry step `step`, ns; `None`: never, or not within a
    /// century.
    fn worn_ns(&self, block: u32, step: u32) -> Option<u64> {
        let [.., c, _, e] = self.rates.exponents;
        let (worn, block) = (&self.worn[block as usize], &self.blocks[block as usize]);
        let rate = self.limits[step as usize - 1] / self.codeword_bits;
        let left = rate - worn.fixed - worn.disturb * libm::pow(f64::from(block.reads), e);
        let begun_ns = block.begun_ns()?;
        if rate >= MOST || worn.fixed > rate {
            return None;
        }
        if left < 0.0 {
            return Some(self.now_ns);
        }
        if c == 0.0 {
            // Data that have lain are as bad as they will get.
            return (worn.retention > left).then_some(self.now_ns);
        }
        let age_ns = libm::pow(left / worn.retention, 1.0 / c) * HOUR_NS;
        // One more: at that moment the limit is only reached.
        let at_ns = begun_ns as f64 + age_ns + 1.0;
        (at_ns < CENTURY_NS).then(|| (at_ns.max(0.0) as u64).max(self.now_ns))
    }

    /// Takes a block of a LUN that is to be rewritten: its next read would need the step from which on blocks are.
    pub(in crate::flash) fn take_worn(&mut self, lun: u32) -> Option<u32> {
        loop {
            let watch = self.watch.as_mut()?;
            let (block, step) = (watch.take(lun)?, watch.step);
            // It may have been erased since it was found.
            if self.is_worn(block, step) {
                return Some(block);
            }
            self.list(block);
        }
    }

    /// Puts a block that cannot be rewritten now back in its line.
    pub(in crate::flash) fn put_back(&mut self, block: u32) {
        if let Some(watch) = &mut self.watch {
            watch.want(block);
        }
    }

    /// Looks at the blocks that are due; returns when the next one is, ns.
    pub(in crate::flash) fn look(&mut self) -> Option<u64> {
        loop {
            let watch = self.watch.as_mut()?;
            let Some(block) = watch.take_due(self.now_ns) else { return watch.next_ns() };
            let step = watch.step;
            if self.is_worn(block, step) {
                self.put_back(block);
            } else if let Some(at_ns) = self.worn_ns(block, step)
                && let Some(watch) = &mut self.watch
            {
                // The logarithms may be off by a moment.
                watch.list(block, at_ns.max(self.now_ns + MOMENT_NS));
            }
        }
    }

    /// Whether a block has data whose next read would need a step of at least `step`, unlike data that was just
    /// written.
    fn is_worn(&mut self, block: u32, step: u32) -> bool {
        self.blocks[block as usize].begun_ns != ERASED
            && self.rewriting_helps(block, step)
            && self.needed(block).is_none_or(|needed| needed >= step)
    }

    /// Whether data that was just written to a block would need a lower step than this one; otherwise rewriting gains
    /// nothing, however often it is done.
    pub(super) fn rewriting_helps(&self, block: u32, step: u32) -> bool {
        self.worn[block as usize].fixed * self.codeword_bits <= self.limits[step as usize - 1]
    }
}

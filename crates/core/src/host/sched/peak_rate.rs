//! How fast the device is, as bfq estimates it from what it dispatches, and from that the largest budget.
//!
//! Source: the functions on the peak rate in block/bfq-iosched.c of Linux 6.12. Dispatches are sampled for at least
//! 300 ms, normally a second. The sample counts if three quarters of its requests follow each other, or if it is
//! faster than the estimate, and then moves the estimate by at most a half of the difference: less, the fewer requests
//! follow each other and the shorter it is. The largest budget is what the device transfers at that rate within
//! `timeout_sync`. A pause of more than 100 ms, or a completion so late that the device must have rested, ends a
//! sample.

/// Unit of the rate: sectors per us, shifted by this.
const SHIFT: u32 = 16;
/// The estimate at the start: two thirds of the rate that the source takes for flash.
const AT_FIRST: u64 = 33_000 * 2 / 3;
/// Fewest dispatches, and shortest time, of a sample.
const FEWEST: u64 = 32;
const SHORTEST_NS: u64 = 300_000_000;
/// Time of a whole sample, ns.
const WHOLE_NS: u64 = 1_000_000_000;
/// After a pause of this length without requests in the device a sample ends, ns.
const PAUSE_NS: u64 = 100_000_000;
/// Requests that come within this time of a completion follow it at once, ns.
pub(super) const AT_ONCE_NS: u64 = 2_000_000;
/// Requests are far apart from this distance on, and small below this size, sectors.
const FAR: u64 = 800;
const SMALL: u64 = 64;
/// The largest budget as long as nothing is known, sectors.
pub(super) const DEFAULT_BUDGET: u64 = 16 * 1024;
/// The largest budget that can be set, and so that is estimated, sectors.
const MOST_BUDGET: u64 = 1 << 31;

/// Whether a request is far from where another ended, and small; positions and sizes in sectors.
pub(super) fn seeks(last: u64, sector: u64, sectors: u64) -> bool {
    last > 0 && sector.abs_diff(last) > FAR && sectors < SMALL
}

/// The estimate, and the sample that is being taken.
#[derive(Clone, Debug)]
pub(super) struct PeakRate {
    rate: u64,
    /// The largest budget, sectors; it stays if it was set.
    pub max_budget: u64,
    is_set: bool,
    timeout_ms: u64,
    /// Dispatches of the sample, how many of them follow the one before, and their sectors.
    samples: u64,
    sequential: u64,
    sectors: u64,
    /// Greatest size of the last dispatches, sectors.
    largest: u64,
    first_ns: u64,
    last_ns: u64,
    span_ns: u64,
    completed_ns: u64,
    /// Where the last dispatched request ended, sectors.
    pub position: u64,
}

impl PeakRate {
    /// Begins to estimate; `max_budget` is the largest budget in sectors, if it is set.
    pub fn new(max_budget: Option<u64>, timeout_ns: u64) -> PeakRate {
        PeakRate {
            rate: AT_FIRST,
            max_budget: max_budget.unwrap_or(DEFAULT_BUDGET),
            is_set: max_budget.is_some(),
            timeout_ms: timeout_ns / 1_000_000,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            first_ns: 0,
            last_ns: 0,
            span_ns: 0,
            completed_ns: 0,
            position: 0,
        }
    }

    /// Whether the largest budget was set.
    pub fn is_set(&self) -> bool {
        self.is_set
    }

    /// Notes a dispatch, while `outstanding` requests are in the device.
    pub fn dispatched(&mut self, now_ns: u64, (sector, sectors): (u64, u64), outstanding: u32) {
        if self.samples == 0 {
            self.restart(now_ns, sectors);
        } else if now_ns - self.last_ns > PAUSE_NS && outstanding == 0 {
            self.end();
            self.restart(now_ns, sectors);
        } else {
            self.samples += 1;
            let busy = outstanding > 0 || now_ns - self.completed_ns < AT_ONCE_NS;
            self.sequential += u64::from(busy && !seeks(self.position, sector, sectors));
            self.sectors += sectors;
            let anew = self.samples.is_multiple_of(32);
            self.largest = if anew { sectors } else { self.largest.max(sectors) };
            self.span_ns = now_ns - self.first_ns;
            if self.span_ns >= WHOLE_NS {
                self.end();
                self.restart(now_ns, sectors);
            }
        }
        self.position = sector + sectors;
        self.last_ns = now_ns;
    }

    /// Notes a completion.
    pub fn completed(&mut self, now_ns: u64) {
        let us = (now_ns - self.completed_ns) / 1000;
        if us > AT_ONCE_NS / 1000 && (self.largest << SHIFT) / us < 1 << (SHIFT - 10) {
            self.end();
            self.samples = 0;
        }
        self.completed_ns = now_ns;
    }

    fn restart(&mut self, now_ns: u64, sectors: u64) {
        (self.first_ns, self.samples, self.sequential) = (now_ns, 1, 0);
        (self.sectors, self.largest) = (sectors, sectors);
    }

    /// Ends a sample and moves the estimate if the sample counts.
    fn end(&mut self) {
        if self.samples < FEWEST || self.span_ns < SHORTEST_NS {
            return;
        }
        self.span_ns = self.span_ns.max(self.completed_ns.saturating_sub(self.first_ns));
        let rate = (self.sectors << SHIFT) / (self.span_ns / 1000);
        let follows = self.sequential >= self.samples * 3 / 4;
        if !follows && rate <= self.rate || rate > 20 << SHIFT {
            return;
        }
        let weight = (9 * self.sequential / self.samples * self.span_ns / WHOLE_NS).min(8);
        let part = 10 - weight;
        self.rate = (self.rate * (part - 1) / part + rate / part).max(1);
        if !self.is_set {
            let sectors = (u128::from(self.rate * 1000) * u128::from(self.timeout_ms)) >> SHIFT;
            self.max_budget = sectors.min(u128::from(MOST_BUDGET)) as u64;
        }
    }
}

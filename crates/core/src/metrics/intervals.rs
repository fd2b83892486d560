//! What happened in each of a bounded number of intervals of simulated time.

use serde::Serialize;

use crate::flash::{ByCause, Cause, Counts};

/// Number of intervals at which neighbours are joined.
const INTERVALS: usize = 256;
/// Width of an interval at first, ns.
const FIRST_NS: u64 = 1_000;

/// The counters of a run at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Flash operations.
    pub flash: Counts,
    /// Logical pages that the host wrote.
    pub host_pages: u64,
    /// Reads and writes completed.
    pub requests: [u64; 2],
    /// Sums of their latencies, ns.
    pub latency_ns: [u128; 2],
    /// Translations that hit the mapping cache, and that missed.
    pub translations: [u64; 2],
}

/// Intervals of equal width. When their number has reached its bound, neighbours are joined and the width
/// doubles.
#[derive(Clone, Debug)]
pub struct Intervals {
    from_ns: u64,
    width_ns: u64,
    /// The counters at the end of each interval.
    ends: Vec<Counters>,
}

/// What happened in each interval k, which is from b(k) to b(k + 1).
#[derive(Clone, Debug, Serialize)]
pub struct IntervalsReport {
    /// b(0) = first arrival.
    pub from_ns: u64,
    /// b(k + 1) - b(k); the last may end earlier.
    pub width_ns: u64,
    /// L.
    pub logical_pages_per_page: u32,
    /// Logical pages that the host wrote.
    pub host_pages: Vec<u64>,
    /// R of each cause.
    pub reads: ByCause<Vec<u64>>,
    /// P of each cause.
    pub programs: ByCause<Vec<u64>>,
    /// E of each cause.
    pub erases: ByCause<Vec<u64>>,
    /// Requests with b(k) <= c(i) < b(k + 1).
    pub requests: ByHalf<u64>,
    /// Mean of c(i) - a(i) over these requests; null where there were none.
    pub latency_mean_ns: ByHalf<Option<f64>>,
    /// Translations that found their entry in the mapping cache.
    pub hits: Vec<u64>,
    /// Translations that did not find their entry in the mapping cache.
    pub misses: Vec<u64>,
}

/// A value for each interval, for reads and for writes.
#[derive(Clone, Debug, Serialize)]
pub struct ByHalf<T> {
    /// Reads.
    pub read: Vec<T>,
    /// Writes.
    pub write: Vec<T>,
}

impl Intervals {
    /// Makes intervals from `from_ns` on.
    pub fn new(from_ns: u64) -> Intervals {
        Intervals { from_ns, width_ns: FIRST_NS, ends: Vec::with_capacity(INTERVALS + 1) }
    }

    /// Returns when the interval under way ends, ns.
    pub fn due_ns(&self) -> u64 {
        self.from_ns.saturating_add(self.width_ns.saturating_mul(self.ends.len() as u64 + 1))
    }

    /// Ends the intervals that are over before anything happens at `now_ns`.
    pub fn sample(&mut self, now_ns: u64, counters: &Counters) {
        while self.due_ns() <= now_ns {
            self.ends.push(*counters);
            if self.ends.len() == INTERVALS {
                self.join();
            }
        }
    }

    fn join(&mut self) {
        self.width_ns *= 2;
        for at in 0..self.ends.len() / 2 {
            self.ends[at] = self.ends[2 * at + 1];
        }
        self.ends.truncate(INTERVALS / 2);
    }

    /// Returns the intervals of a run that ends with these counters.
    pub fn report(mut self, end: &Counters, logical_pages_per_page: u32) -> IntervalsReport {
        if self.ends.last().copied().unwrap_or_default() != *end {
            self.ends.push(*end);
        }
        let starts = std::iter::once(Counters::default()).chain(self.ends.iter().copied());
        let spans: Vec<(Counters, Counters)> = starts.zip(self.ends.iter().copied()).collect();
        let each = |of: &dyn Fn(&Counters) -> u64| -> Vec<u64> {
            spans.iter().map(|(start, end)| of(end) - of(start)).collect()
        };
        let counted = |of: fn(&Counters) -> &ByCause<u64>, cause: Cause| {
            let counts = each(&|counters| of(counters)[cause]);
            // Without any count, a rare cause is left out.
            if cause.is_rare() && counts.iter().all(|&count| count == 0) { Vec::new() } else { counts }
        };
        let causes = |of: fn(&Counters) -> &ByCause<u64>| ByCause::new(|cause| counted(of, cause));
        let latency = |half: usize| -> Vec<Option<f64>> {
            let mean = |(start, end): &(Counters, Counters)| {
                let requests = end.requests[half] - start.requests[half];
                let ns = end.latency_ns[half] - start.latency_ns[half];
                (requests > 0).then(|| ns as f64 / requests as f64)
            };
            spans.iter().map(mean).collect()
        };
        IntervalsReport {
            from_ns: self.from_ns,
            width_ns: self.width_ns,
            logical_pages_per_page,
            host_pages: each(&|counters| counters.host_pages),
            reads: causes(|counters| &counters.flash.reads),
            programs: causes(|counters| &counters.flash.programs),
            erases: causes(|counters| &counters.flash.erases),
            requests: ByHalf {
                read: each(&|counters| counters.requests[0]),
                write: each(&|counters| counters.requests[1]),
            },
            latency_mean_ns: ByHalf { read: latency(0), write: latency(1) },
            hits: each(&|counters| counters.translations[0]),
            misses: each(&|counters| counters.translations[1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(host_pages: u64) -> Counters {
        Counters { host_pages, ..Counters::default() }
    }

    /// With a page written every 7 us, and one pause, each interval holds the pages written during it, however often
    /// intervals were joined.
    #[test]
    fn intervals_hold_what_happened_in_them() {
        let time = |page: u64| 500 + page * 7_000 + if page >= 3_000 { 60_000_000 } else { 0 };
        let mut intervals = Intervals::new(500);
        for page in 0..5_000 {
            intervals.sample(time(page), &written(page));
        }
        let report = intervals.report(&written(5_000), 1);
        let count = report.host_pages.len();
        assert!(count <= INTERVALS && count > INTERVALS / 2 - 1, "{count}");
        assert_eq!(report.width_ns, 512 * FIRST_NS);
        let mut expected = vec![0; count];
        (0..5_000).for_each(|page| expected[((time(page) - 500) / report.width_ns) as usize] += 1);
        assert_eq!(report.host_pages, expected);
        assert!(expected.contains(&0), "the pause");
    }

    #[test]
    fn a_run_without_anything_has_no_intervals() {
        assert!(Intervals::new(7).report(&Counters::default(), 1).host_pages.is_empty());
    }
}

//! What a result holds only if it is asked for (`[results]`).

use super::Run;
use crate::clock::NEVER;
use crate::config::Settings;
use crate::ftl::{FlashTranslation, with_ftl};
use crate::metrics::{Counters, EraseMap, Intervals, MissCurves, Report};

/// The intervals of a run, and when the one under way ends.
pub struct Sampler {
    /// [`NEVER`] where no intervals are kept.
    pub due_ns: u64,
    intervals: Option<Intervals>,
}

impl Sampler {
    /// For intervals from the first arrival on, if they are asked for.
    pub fn new(settings: &Settings, first_ns: u64) -> Sampler {
        let intervals = settings.results.series.then(|| Intervals::new(first_ns));
        Sampler { due_ns: intervals.as_ref().map_or(NEVER, Intervals::due_ns), intervals }
    }
}

impl Run<'_> {
    fn counters(&self) -> Counters {
        let (host_pages, stats) = with_ftl!(&self.ftl, ftl => (ftl.host_slots(), ftl.map_stats()));
        let (requests, latency_ns) = self.recorder.latencies();
        Counters {
            flash: *self.work.counts(),
            host_pages,
            requests,
            latency_ns,
            translations: [stats.hits, stats.misses],
        }
    }

    /// Ends the intervals that are over.
    #[cold]
    pub(super) fn sample(&mut self) {
        let counters = self.counters();
        if let Some(intervals) = &mut self.sampler.intervals {
            intervals.sample(self.now_ns, &counters);
            self.sampler.due_ns = intervals.due_ns();
        }
    }

    /// Adds to a report what else is asked for.
    pub(super) fn add_extras(&mut self, settings: &Settings, report: &mut Report) {
        let (per_page, unit_bytes) =
            with_ftl!(&self.ftl, ftl => (ftl.slots_per_page(), ftl.units().unit_bytes));
        let intervals = self.sampler.intervals.take();
        report.series = intervals.map(|intervals| intervals.report(&self.counters(), per_page));
        report.erase_map = settings
            .results
            .erase_map
            .then(|| EraseMap::new(&self.ftl, settings.flash.units(), settings.flash.unit_name()));
        let entry_bytes = u64::from(settings.ftl.entry_bytes);
        report.miss_curve =
            self.device.lookups().map(|lookups| MissCurves::new(lookups, entry_bytes, unit_bytes));
    }
}

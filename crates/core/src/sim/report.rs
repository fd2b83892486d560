//! What a result holds only on request (`[results]`).

use super::{Feed, Simulation};
use crate::clock::NEVER;
use crate::device::{Share, Used};
use crate::ftl::{Inspect, Locate, LookUp};
use crate::host::Arrivals;
use crate::metrics::energy;
use crate::metrics::{Counters, Done, Drawn, EnergyParts, EraseMap, Intervals, MissCurves, Report, Sources};
use crate::settings::Settings;
use crate::util::NONE;

/// The intervals of a run, and when the current one ends.
pub struct Sampler {
    /// When there is something to sample, ns: when the current interval ends, or always if it is counted for how long
    /// anything is under way; otherwise [`NEVER`].
    pub due_ns: u64,
    intervals: Option<Intervals>,
}

/// How long a run has taken, and how long the array has worked in that time.
pub(super) struct Extent {
    /// Arrival of the first request, once it is known.
    pub first_ns: Option<u64>,
    /// Time of the last completion of a request of the workload.
    pub last_ns: u64,
    /// Whether work that no request waits for may go on before the first arrival and after the last completion. If so,
    /// the time that the array has worked is noted at both moments.
    pub outlasts: bool,
    pub used_before: Option<Used>,
    pub used: Used,
}

impl Sampler {
    /// Makes intervals that start at the first arrival, if they are requested; until that arrival is known, they
    /// start at 0.
    pub fn new(settings: &Settings, first_ns: Option<u64>) -> Sampler {
        let intervals = settings.results.series.then(|| Intervals::new(first_ns.unwrap_or(0)));
        let mut sampler = Sampler { due_ns: NEVER, intervals };
        sampler.set_due(settings.energy.has_power());
        sampler
    }

    fn set_due(&mut self, always: bool) {
        self.due_ns = if always { 0 } else { self.intervals.as_ref().map_or(NEVER, Intervals::due_ns) };
    }
}

impl Simulation<'_> {
    fn counters(&self) -> Counters {
        let (host_pages, stats) = (self.ftl.host_slots(), self.ftl.map_stats());
        let (requests, latency_ns) = self.recorder.latencies();
        Counters {
            flash: *self.work.counts(),
            host_pages,
            requests,
            latency_ns,
            translations: [stats.hits, stats.misses],
        }
    }

    /// Ends the intervals that are over, and counts for how long anything has been under way.
    #[cold]
    pub(super) fn sample(&mut self) {
        self.device.passes(self.now_ns, self.extent.first_ns);
        if self.sampler.intervals.as_ref().is_some_and(|intervals| intervals.due_ns() <= self.now_ns) {
            let counters = self.counters();
            if let Some(intervals) = &mut self.sampler.intervals {
                intervals.sample(self.now_ns, &counters);
            }
        }
        self.sampler.set_due(self.device.hears_time());
    }

    /// Returns the number of requests of the workload that have arrived but not completed.
    #[inline]
    pub(super) fn under_way(&self) -> usize {
        self.host.under_way() - self.device.own as usize
    }

    /// Notes how long the array has worked at the first arrival, if nothing is due before it.
    #[cold]
    pub(super) fn note_first(&mut self, next_ns: u64) {
        let Some(first_ns) = self.extent.first_ns.filter(|&first_ns| first_ns <= next_ns) else { return };
        self.device.used(first_ns, &mut self.extent.used);
        self.extent.used_before = Some(self.extent.used.clone());
    }

    /// Notes how long the array has worked, if no request but the one that completes now is under way.
    #[inline]
    pub(super) fn note_last(&mut self) {
        if self.under_way() == 1 {
            self.note_used();
        }
    }

    #[cold]
    fn note_used(&mut self) {
        self.device.used(self.now_ns, &mut self.extent.used);
    }

    /// Returns how long the run has taken, ns, from the first arrival to the last completion or, while
    /// requests are under way, to now; and how long the array worked in that time.
    pub(super) fn extent(&self) -> (u64, Used) {
        let under_way = self.under_way() > 0;
        let end_ns = if under_way { self.now_ns } else { self.extent.last_ns };
        let mut used = self.extent.used.clone();
        if !(self.off || self.extent.outlasts && !under_way) {
            self.device.used(self.now_ns, &mut used);
        }
        if let Some(before) = &self.extent.used_before {
            used = used.since(before);
        }
        (self.extent.first_ns.map_or(0, |first_ns| end_ns.saturating_sub(first_ns)), used)
    }

    /// Returns the report on everything up to now, in the contract's form, without any effect on what follows.
    pub fn report(&self) -> Report {
        let settings = &self.settings;
        let (elapsed_ns, used) = self.extent();
        let mut report = Report::new(&Sources {
            recorder: &self.recorder,
            settings,
            source: self.feed.summary(),
            scheduler: (&settings.host.scheduler, self.host.batches()),
            device: &self.device,
            ftl: &self.ftl,
            precondition: &self.precondition,
            work: &self.work,
            elapsed_ns,
            used: &used,
            histograms: settings.results.histograms,
        });
        if let Some(tenants) = &self.tenants {
            let (whole, bins) = (Share::of(self.work.counts()), settings.results.histograms);
            let (each, rest) = tenants.report(whole, |stream| self.device.share(stream), elapsed_ns, bins);
            (report.tenants, report.beside_tenants) = (Some(each), Some(rest));
        }
        if let Feed::Above(above) = &self.feed {
            let done = Done { counts: *self.work.counts(), merges: self.ftl.merges() };
            above.add_to(&mut report, &done, self.host.merged());
        }
        self.add_extras(&mut report);
        let requests = report.trace.requests;
        report.energy = settings.energy.is_on().then(|| self.energy(elapsed_ns).report(requests));
        report
    }

    /// Returns for how long anything was under way in the device, ns, from the first arrival to the end of the run's
    /// extent; 0 if this is not counted.
    pub(super) fn awake_ns(&self) -> u64 {
        let Some(awake) = self.device.awake() else { return 0 };
        if self.under_way() == 0 {
            return awake.at_last_ns;
        }
        awake.active_ns
            + awake.more_ns(self.now_ns, self.extent.first_ns, self.device.is_under_way() && !self.off)
    }

    /// Returns the parts of the run's energy, given how long the run has taken, ns.
    fn energy(&self, elapsed_ns: u64) -> EnergyParts {
        let [beside, bytes_beside] = self.host.beside();
        let (commands, bytes) = self.recorder.commands();
        let active_ns = self.awake_ns();
        let drawn = Drawn {
            link_bytes: bytes + bytes_beside,
            commands: commands + beside,
            active_ns,
            idle_ns: elapsed_ns - active_ns,
        };
        EnergyParts::new(&self.settings.energy, &self.settings.flash, &self.work, drawn)
    }

    /// Checks, for check mode, that the device was not under way for longer than the run has taken, and that operations
    /// by page type are those by cause.
    ///
    /// # Errors
    /// A message that says what does not hold.
    pub(super) fn verify_energy(&self, elapsed_ns: u64) -> Result<(), String> {
        match self.awake_ns() {
            active_ns if active_ns > elapsed_ns => {
                Err(format!("energy: under way for {active_ns} of {elapsed_ns} ns"))
            }
            _ => energy::verify(&self.work, &self.settings.flash),
        }
    }

    /// Returns the number of requests that wait in the host, of requests that the device holds, and of erased blocks.
    pub fn levels(&self) -> (u32, u32, u64) {
        (self.host.waiting(), self.device.held(), self.ftl.life().erased)
    }

    /// Returns how many logical pages of user data each erase block holds now, in the order of the LUNs.
    /// Blocks of translation pages hold none.
    pub fn valid_pages(&self) -> Vec<u32> {
        let flash = &self.settings.flash;
        let mut valid = vec![0; flash.luns() as usize * flash.blocks_per_lun() as usize];
        let slots_per_block = self.ftl.slots_per_page() * flash.pages_per_block;
        let slots = (0..self.ftl.logical_pages()).map(|lpn| self.ftl.slot(lpn));
        slots.filter(|&slot| slot != NONE).for_each(|slot| valid[(slot / slots_per_block) as usize] += 1);
        valid
    }

    /// Adds to a report the parts' own figures, and the sections that `[results]` requests.
    fn add_extras(&self, report: &mut Report) {
        let settings = &self.settings;
        let (per_page, unit_bytes) = (self.ftl.slots_per_page(), self.ftl.units().unit_bytes);
        let intervals = self.sampler.intervals.clone();
        report.series = intervals.map(|intervals| intervals.report(&self.counters(), per_page));
        report.erase_map = settings
            .results
            .erase_map
            .then(|| EraseMap::new(&self.ftl, settings.flash.luns(), settings.flash.lun_name()));
        let entry_bytes = u64::from(settings.ftl.entry_bytes);
        report.add_own([("scheduler", self.host.stats()), ("device", self.device.stats())]);
        report.add_own([("host_map", self.host.held_stats())]);
        report.add_own(self.ftl.stats().into_iter().chain(self.device.tasks.stats()));
        report.add_own(self.device.watched());
        report.miss_curve =
            self.device.lookups().map(|lookups| MissCurves::new(lookups, entry_bytes, unit_bytes));
    }
}

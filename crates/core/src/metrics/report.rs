//! The report of a run: the contract's field names, filled from the parts' counters.

use std::collections::BTreeMap;

use serde::Serialize;

use super::flash::{Flash, per_second, ratio};
use super::{
    Conflicts, DeviceQueue, Health, Histogram, Merges, ParallelOperations, Parts, Preconditioning, Recorder,
    Summary, Utilization,
};
use crate::device::settings::Settings;
use crate::device::{Device, Used};
use crate::flash::{Cause, Counts, Work};
use crate::ftl::{Ftl, Inspect};
use crate::util::Stat;
use crate::workload::SourceSummary;

/// The measured part of a result: all fields but `schema`, `config` and `engine`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was requested.
    pub trace: Trace,
    /// c(i) - a(i): completion - arrival.
    pub latency: Parts,
    /// d(i) - a(i): dispatch - arrival.
    pub wait: Parts,
    /// c(i) - d(i): completion - dispatch.
    pub access: Parts,
    /// The mapping cache.
    pub mapping: MappingCache,
    /// The host's scheduler.
    pub scheduler: Scheduler,
    /// The device's scheduler.
    pub device: DeviceQueue,
    /// Requests that, when the device took them, needed a chip that was busy or wanted by an earlier request.
    pub conflicts: Conflicts,
    /// Flash operations by cause.
    pub flash: Flash,
    /// Errors of reads, where reads can meet any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<super::Errors>,
    /// Merges of hybrid FTLs; zeros for a page-mapped FTL.
    pub merges: Merges,
    /// Write amplification.
    pub waf: Waf,
    /// What went to each front, where `ftl.placement` has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<super::Placement>,
    /// Erase counts of the blocks.
    pub wear: super::Wear,
    /// The device's health, as a drive reports it.
    pub health: Health,
    /// How the device came to its state at time 0.
    pub precondition: Preconditioning,
    /// Busy time of each resource.
    pub utilization: Utilization,
    /// Where the energy went, with `[energy]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<super::Energy>,
    /// Operations that overlapped or passed each other at a die.
    pub parallel: ParallelOperations,
    /// Greatest c(i) - least a(i), over all requests; while requests are under way, up to now.
    pub elapsed_ns: u64,
    /// When the device did not keep up.
    #[serde(skip)]
    pub behind: super::Behind,
    /// Logical pages read that no request had ever written.
    #[serde(skip)]
    pub unwritten: u64,
    /// (bytes of completed reads + bytes of completed writes) x 10^9 / elapsed_ns.
    pub throughput_bytes_per_s: f64,
    /// What each tenant asked for and got, where there are tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenants: Option<Vec<super::Tenant>>,
    /// The flash's work for the device's own tasks, which no tenant's request asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside_tenants: Option<super::TenantFlash>,
    /// What sharing costs the tenants, with `--alone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<super::Fairness>,
    /// What the clients of a benchmark or a fio job saw, in runs with such clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<super::Benchmark>,
    /// The host's page cache, in runs with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<super::PageCache>,
    /// The host's file system, in runs with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<super::FileSystem>,
    /// What happened in each interval of simulated time, with `results.series`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<super::IntervalsReport>,
    /// How often blocks were erased, with `results.erase_map`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase_map: Option<super::EraseMap>,
    /// The misses that a mapping cache of every size would have, with `results.miss_curve`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss_curve: Option<super::MissCurves>,
    /// The parts' own figures, by part and name, where parts report any; null for a figure that is not a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<BTreeMap<&'static str, BTreeMap<String, Option<f64>>>>,
    /// What each figure of `own` means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_legend: Option<Vec<OwnLegend>>,
}

/// A figure of `own`.
#[derive(Clone, Debug, Serialize)]
pub struct OwnLegend {
    /// The part that reports it.
    pub part: &'static str,
    /// Name of the figure.
    pub name: String,
    /// Its unit in the plural; empty for a ratio.
    pub unit: String,
    /// What the figure means.
    pub doc: String,
}

/// What was requested, failed requests included.
#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    /// reads + writes + trims + flushes, not counting dropped records but counting every repetition of the trace.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Sum of the sizes of reads.
    pub bytes_read: u64,
    /// Sum of the sizes of writes.
    pub bytes_written: u64,
    /// Number of different logical pages touched x logical page size.
    pub footprint_bytes: u64,
    /// Number of time stamps that, after sorting among the 16,384 rows held, were smaller than the largest before them,
    /// and were raised to it.
    pub out_of_order: u64,
    /// Records dropped, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// What a reader of the figures should know about how the trace was read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The mapping cache.
#[derive(Clone, Debug, Serialize)]
pub struct MappingCache {
    /// Translations (one for each logical page of each request) whose entry was cached.
    pub hits: u64,
    /// Translations whose entry was not cached.
    pub misses: u64,
    /// Translation pages read for a scheduler's batch before its requests; lookups of what they bring in count as hits.
    pub prefetches: u64,
    /// (hits - prefetches) / (hits + misses).
    pub hit_ratio: Option<f64>,
    /// R(map).
    pub translation_reads: u64,
    /// P(map).
    pub translation_programs: u64,
    /// (P(map) + P(gc-map) + P(dir)) x NAND page size.
    pub map_bytes_programmed: u64,
    /// Entries that differed from their copy on flash / entries programmed, over the units programmed with
    /// cause map.
    pub updated_ratio: Option<f64>,
    /// Flushes of all updated mappings: those by amount (`ftl.flush`), and those that the host requested.
    pub flushes: u64,
    /// Size of a translation unit, which the mapping reads and writes on flash as a whole; 0 if the whole map is in
    /// RAM.
    pub unit_bytes: u64,
    /// Size of the directory (GTD, MSD) in RAM: translation units x `ftl.entry`.
    pub directory_bytes: u64,
}

/// The host's I/O scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Scheduler {
    /// `host.scheduler`.
    pub name: String,
    /// Requests that were chosen from a hit queue while another request was pending, and all but the first request of
    /// each chosen batch; not those dispatched by deadline.
    pub prioritized: u64,
    /// Batches (block issues) that the scheduler created.
    pub batches: u64,
    /// Requests dispatched because d(i) - a(i) had reached `host.deadline`.
    pub expired: u64,
}

/// Write amplification: pages programmed for each page that the host wrote.
#[derive(Clone, Debug, Serialize)]
pub struct Waf {
    /// P x L / H.
    pub total: Option<f64>,
    /// (P(gc) + P(wear)) x L / H.
    pub gc: Option<f64>,
    /// (P(map) + P(gc-map) + P(dir)) x L / H.
    pub map: Option<f64>,
    /// P(merge) x L / H.
    pub merge: Option<f64>,
    /// P(pad) x L / H.
    pub pad: Option<f64>,
    /// P(fold) x L / H, where an SLC cache was folded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<f64>,
    /// P(refresh) x L / H, where data was refreshed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<f64>,
}

/// Returns the program times of the pages programmed.
fn program_time(work: &Work) -> Summary {
    let mut histogram = Histogram::default();
    let programs = work.cells().programs(work.counts().programs.total());
    programs.into_iter().for_each(|(ns, pages)| histogram.add_many(ns, pages));
    Summary::new(&histogram, false)
}

impl MappingCache {
    fn new(ftl: &Ftl, counts: &Counts, page_bytes: u64) -> MappingCache {
        let (stats, units) = (ftl.map_stats(), ftl.units());
        let translations = stats.hits + stats.misses;
        let map_programs: u64 =
            [Cause::Map, Cause::GcMap, Cause::Dir].map(|c| counts.programs[c]).iter().sum();
        MappingCache {
            hits: stats.hits,
            misses: stats.misses,
            prefetches: stats.prefetches,
            hit_ratio: (translations > 0)
                .then(|| (stats.hits as f64 - stats.prefetches as f64) / translations as f64),
            translation_reads: counts.reads[Cause::Map],
            translation_programs: counts.programs[Cause::Map],
            map_bytes_programmed: map_programs * page_bytes,
            updated_ratio: ratio(stats.entries_updated, stats.entries_programmed),
            flushes: stats.flushes,
            unit_bytes: units.unit_bytes,
            directory_bytes: units.directory_bytes,
        }
    }
}

impl Waf {
    fn new(counts: &Counts, ftl: &Ftl) -> Waf {
        let (slots, per_page) = (ftl.host_slots(), u64::from(ftl.slots_per_page()));
        let of = |causes: &[Cause]| {
            let programs: u64 = causes.iter().map(|&cause| counts.programs[cause]).sum();
            ratio(programs * per_page, slots)
        };
        Waf {
            total: of(&Cause::ALL),
            gc: of(&[Cause::Gc, Cause::Wear]),
            map: of(&[Cause::Map, Cause::GcMap, Cause::Dir]),
            merge: of(&[Cause::Merge]),
            pad: of(&[Cause::Pad]),
            fold: of(&[Cause::Fold]).filter(|&share| share > 0.0),
            refresh: of(&[Cause::Refresh]).filter(|&share| share > 0.0),
        }
    }
}

impl Trace {
    fn new(recorder: &Recorder, source: &SourceSummary, settings: &Settings) -> Trace {
        let Recorder { requests: [reads, writes, trims, flushes], bytes, touched, .. } = recorder;
        Trace {
            requests: recorder.requests.iter().sum(),
            reads: *reads,
            writes: *writes,
            trims: *trims,
            flushes: *flushes,
            bytes_read: bytes[0],
            bytes_written: bytes[1],
            footprint_bytes: touched.count() * u64::from(settings.ftl.logical_page_bytes),
            out_of_order: source.out_of_order,
            dropped: source.dropped.clone(),
            notes: source.notes.clone(),
        }
    }
}

/// What the parts counted, for [`Report::new`].
pub struct Sources<'a> {
    /// The requests.
    pub recorder: &'a Recorder,
    /// The trace's reader.
    pub source: SourceSummary,
    /// What the device was made from.
    pub settings: &'a Settings,
    /// Name of the host's scheduler and its batches.
    pub scheduler: (&'a str, u64),
    /// The device.
    pub device: &'a Device,
    /// The FTL.
    pub ftl: &'a Ftl,
    /// How the device was prepared.
    pub precondition: &'a Preconditioning,
    /// The flash operations.
    pub work: &'a Work,
    /// Simulated time, ns.
    pub elapsed_ns: u64,
    /// How long the array worked in that time.
    pub used: &'a Used,
    /// `results.histograms`.
    pub histograms: bool,
}

impl Report {
    /// Adds the parts' own figures.
    pub fn add_own(&mut self, parts: impl IntoIterator<Item = (&'static str, Vec<Stat>)>) {
        for (part, stats) in parts {
            for stat in stats {
                debug_assert!(stat.is_named_well(), "{part}.{}", stat.name);
                let Stat { name, value, unit, doc } = stat;
                let of_part = self.own.get_or_insert_default().entry(part).or_default();
                of_part.insert(name.to_string(), value.is_finite().then_some(value));
                let line = OwnLegend { part, name: name.into(), unit: unit.into(), doc: doc.into() };
                self.own_legend.get_or_insert_default().push(line);
            }
        }
    }

    /// Makes the report from what the parts counted.
    pub fn new(sources: &Sources) -> Report {
        let Sources { recorder, settings, device, ftl, work, elapsed_ns, .. } = *sources;
        let (counts, requests): (_, u64) = (work.counts(), recorder.requests.iter().sum());
        let [latency, wait, access] =
            [0, 1, 2].map(|part| recorder.times.each_ref().map(|times| &times[part]));
        let (conflicts, threshold) = (device.conflicts().requests, settings.ftl.spare_threshold_ppm);
        Report {
            trace: Trace::new(recorder, &sources.source, settings),
            latency: Parts::new(latency, sources.histograms),
            wait: Parts::new(wait, sources.histograms),
            access: Parts::new(access, sources.histograms),
            mapping: MappingCache::new(ftl, counts, u64::from(settings.flash.page_bytes)),
            scheduler: Scheduler {
                name: sources.scheduler.0.to_string(),
                prioritized: recorder.prioritized,
                batches: sources.scheduler.1,
                expired: recorder.expired,
            },
            device: DeviceQueue::new(device, &settings.device.scheduler, sources.used, elapsed_ns),
            conflicts: Conflicts {
                read: conflicts[0],
                write: conflicts[1],
                ratio: ratio(conflicts[0] + conflicts[1], requests),
            },
            flash: Flash::new(counts, Some(program_time(work))),
            errors: super::Errors::new(work),
            merges: Merges::new(&ftl.merges(), counts.busy_ns[Cause::Host]),
            waf: Waf::new(counts, ftl),
            placement: super::Placement::new(ftl.front_counts()),
            wear: super::Wear::new(ftl),
            health: Health::new(&ftl.life(), recorder, (device.read_only_ns(), work), threshold),
            precondition: sources.precondition.clone(),
            utilization: Utilization::new(sources.used, settings.flash.dies_per_chip, elapsed_ns),
            energy: None,
            parallel: ParallelOperations::new(device.array().overlaps()),
            elapsed_ns,
            behind: recorder.behind,
            unwritten: counts.unwritten,
            throughput_bytes_per_s: per_second(recorder.served_bytes.iter().sum(), elapsed_ns),
            tenants: None,
            beside_tenants: None,
            fairness: None,
            benchmark: None,
            page_cache: None,
            file_system: None,
            series: None,
            erase_map: None,
            miss_curve: None,
            own: None,
            own_legend: None,
        }
    }
}

//! The typed form of a resolved configuration, and the checks across keys.

use super::workload::{Arrival, OutOfRange, Pattern, Replay, Synthetic, Workload};
use super::{Files, Results, Section, SizeMix, Value, Values};
pub use crate::device::settings::{Device, Precondition, PreconditionKind, WriteOrder};
pub use crate::flash::Endurance;
pub use crate::flash::Flash;
use crate::flash::parallel::Allocation;
pub use crate::ftl::background::GcBackground;

/// A value that contradicts another; the configuration front adds file and line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Contradiction {
    /// The key to point at.
    pub key: &'static str,
    /// What is wrong and what to do. Other keys it speaks of stand in it with their
    /// full paths (`flash.page`), or their table's name for all of them (`[flash]`): the
    /// configuration front lists those the user wrote, with their values and places.
    pub message: String,
}

/// Everything the stack reads, one part per layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Seed of every random stream.
    pub seed: u64,
    /// Source of requests.
    pub workload: Workload,
    /// The host's scheduler and pending queue.
    pub host: Host,
    /// The device's queue.
    pub device: Device,
    /// The flash translation layer.
    pub ftl: Ftl,
    /// Geometry and timing.
    pub flash: Flash,
    /// What the result holds.
    pub results: Results,
}

/// `[host]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Registered name of the scheduler.
    pub scheduler: String,
    /// Capacity of the pending queue; `u32::MAX`: unlimited.
    pub queue_depth: u32,
    /// Deadline, ns; `None`: none.
    pub deadline_ns: Option<u64>,
    /// Registered name of the awareness.
    pub awareness: String,
    /// hp, rb, map, map+: alternate reads and writes.
    pub alternate: bool,
    /// Most bytes of requests merged in the pending queue; `None`: the block layer's where requests come
    /// from a page cache, 0 (no merging) elsewhere.
    pub merge_limit: Option<u64>,
    /// Requests are not merged across multiples of this; `None`: there is no boundary.
    pub merge_boundary: Option<u64>,
    /// File system and page cache.
    pub files: Files,
}

/// `[ftl]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ftl {
    /// Registered name.
    pub kind: String,
    /// Capacity of the mapping cache, bytes; `None`: unlimited.
    pub mapping_cache_bytes: Option<u64>,
    /// `slru` or `lru`.
    pub cache_policy: String,
    /// A write-back cleans the whole translation page's entries.
    pub batch_update: bool,
    /// Write back while nothing is pending.
    pub background_flush: bool,
    /// Data programmed between two mapping flushes, bytes; `None`: mappings are written back by eviction.
    pub flush_bytes: Option<u64>,
    /// Data that garbage collection and wear levelling move counts towards it.
    pub flush_counts_moved: bool,
    /// A host's flush is a mapping flush too.
    pub host_flush_mappings: bool,
    /// Erases wait for what replaces their data, and a host's flush makes trims durable.
    pub power_safe: bool,
    /// msftl: bytes of a translation unit.
    pub segment_bytes: u32,
    /// Most blocks of translation units, of the device; `None`: what the layout leaves them.
    pub translation_blocks: Option<u32>,
    /// The user capacity is whole erase blocks.
    pub whole_blocks: bool,
    /// Bytes of a logical page.
    pub logical_page_bytes: u32,
    /// A partly written logical page is read first.
    pub read_modify_write: bool,
    /// Withheld share of the raw capacity, ppm.
    pub over_provisioning_ppm: u64,
    /// Registered victim policy.
    pub gc: String,
    /// Blocks drawn by policy d-choices.
    pub gc_choices: u32,
    /// Oldest blocks of a chip that policy windowed-greedy looks at.
    pub gc_window: u32,
    /// Difference of erase counts beyond which data is moved; `None`: no static wear levelling.
    pub wear_threshold: Option<u32>,
    /// Erased blocks each chip keeps.
    pub gc_free_blocks: u32,
    /// Collection in the background; `None`: none.
    pub gc_background: Option<GcBackground>,
    /// Blocks of each chip that only replace retired ones.
    pub spare_blocks: u32,
    /// Share of them below which a result warns, ppm.
    pub spare_threshold_ppm: u64,
    /// Bytes of a mapping entry.
    pub entry_bytes: u32,
    /// bast, fast: log blocks, a share of all erase blocks, ppm.
    pub log_blocks_ppm: u64,
    /// fast: largest block issue that goes to log blocks under cooperation, a share of a block, ppm.
    pub csm_threshold_ppm: u64,
    /// Where pages go.
    pub allocation: Allocation,
}

impl Settings {
    /// Reads the typed settings out of complete, individually checked values.
    ///
    /// # Errors
    /// [`Contradiction`] where values do not fit together.
    ///
    /// # Panics
    /// If a key with a default is missing from `values` or holds another kind's value.
    pub fn from_values(values: &Values) -> Result<Settings, Contradiction> {
        let get = Reader(values);
        let page_bytes = get.bytes("flash.page").expect("has a default") as u32;
        let settings = Settings {
            seed: get.count("seed").expect("has a default"),
            workload: get.workload(),
            host: get.host(),
            device: Device::read(values),
            ftl: get.ftl(page_bytes),
            flash: Flash::read(values),
            results: Results::read(values),
        };
        super::check::check(&settings, values)?;
        Ok(settings)
    }
}

/// Typed access to values.
pub(super) struct Reader<'a>(&'a Values);

impl Reader<'_> {
    pub(super) fn text(&self, key: &str) -> Option<String> {
        match self.0.get(key)? {
            Value::Text(text) => Some(text.clone()),
            other => panic!("{key} holds {other:?}"),
        }
    }

    pub(super) fn name(&self, key: &str) -> String {
        self.text(key).unwrap_or_else(|| panic!("{key} has a default"))
    }

    /// `None` where the key is absent or holds one of its words.
    pub(super) fn whole(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Count(n) | Value::Bytes(n) | Value::Nanos(n) | Value::PicosPerByte(n) | Value::Ppm(n) => {
                Some(*n)
            }
            Value::Word(_) => None,
            other => panic!("{key} holds {other:?}"),
        }
    }

    fn count(&self, key: &str) -> Option<u64> {
        self.whole(key)
    }

    fn bytes(&self, key: &str) -> Option<u64> {
        self.whole(key)
    }

    fn u32(&self, key: &str) -> u32 {
        self.whole(key).map_or(u32::MAX, |n| u32::try_from(n).expect("within the key's limits"))
    }

    pub(super) fn u64(&self, key: &str) -> u64 {
        self.whole(key).unwrap_or_else(|| panic!("{key} has a default"))
    }

    fn number(&self, key: &str) -> f64 {
        match self.0.get(key) {
            Some(Value::Number(n)) => *n,
            other => panic!("{key} holds {other:?}"),
        }
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        matches!(self.0.get(key), Some(Value::Bool(true)))
    }

    fn workload(&self) -> Workload {
        let synthetic = self.whole("workload.synthetic.requests").map(|requests| Synthetic {
            requests,
            pattern: self.pattern(),
            sequential_ppm: self.u64("workload.synthetic.sequential_share"),
            near_ppm: self.u64("workload.synthetic.near_share"),
            near_range: self.u64("workload.synthetic.near_range"),
            near_sequential_ppm: self.u64("workload.synthetic.near_sequential"),
            read_ppm: self.u64("workload.synthetic.read_share"),
            trim_ppm: self.u64("workload.synthetic.trim_share"),
            exact_mix: self.flag("workload.synthetic.exact_mix"),
            read_sizes: self.sizes("workload.synthetic.read_sizes"),
            write_sizes: self.sizes("workload.synthetic.write_sizes"),
            align: self.whole("workload.synthetic.align"),
            region: self.whole("workload.synthetic.region"),
            arrival: self.arrival(),
            interarrival_ns: self.u64("workload.synthetic.interarrival"),
            pause_ppm: self.u64("workload.synthetic.pause_share"),
            pause_ns: self.u64("workload.synthetic.pause"),
        });
        Workload {
            trace: self.text("workload.trace"),
            format: self.name("workload.format"),
            dedup_ns: self.u64("workload.dedup"),
            max_gap_ns: self.whole("workload.max_gap"),
            skip_bad: self.u64("workload.skip_bad"),
            repeat: self.u64("workload.repeat"),
            out_of_range: match self.name("workload.out_of_range").as_str() {
                "wrap" => OutOfRange::Wrap,
                "compact" => OutOfRange::Compact,
                _ => OutOfRange::Error,
            },
            replay: match self.name("workload.replay").as_str() {
                "closed" => Replay::Closed,
                _ => Replay::Open,
            },
            speed: self.number("workload.speed"),
            fio_time_unit_ns: self.whole("workload.fio_time_unit"),
            synthetic,
            benchmark: self.benchmark(),
            fio_job: self.text("workload.fio_job"),
        }
    }

    fn pattern(&self) -> Pattern {
        match self.name("workload.synthetic.pattern").as_str() {
            "sequential" => Pattern::Sequential,
            "zipf" => Pattern::Zipf { theta: self.number("workload.synthetic.zipf_theta") },
            "hot-cold" => Pattern::HotCold {
                share_ppm: self.u64("workload.synthetic.hot_share"),
                region_ppm: self.u64("workload.synthetic.hot_region"),
                piece: self.whole("workload.synthetic.hot_piece"),
            },
            _ => Pattern::Random,
        }
    }

    fn arrival(&self) -> Arrival {
        let length = self.number("workload.synthetic.burst_length");
        let read_length = "workload.synthetic.read_burst_length";
        match self.name("workload.synthetic.arrival").as_str() {
            "constant" => Arrival::Constant,
            "bursts" => Arrival::Bursts {
                length,
                read_length: match self.0.get(read_length) {
                    Some(Value::Word(_)) => length,
                    _ => self.number(read_length),
                },
                gap_ns: self.u64("workload.synthetic.burst_gap"),
                single: self.name("workload.synthetic.burst_ops") == "single",
            },
            _ => Arrival::Exponential,
        }
    }

    /// The sizes of a key; those of `workload.synthetic.size` where it says so.
    fn sizes(&self, key: &str) -> SizeMix {
        match self.0.get(key) {
            Some(Value::SizeMix(mix)) => mix.clone(),
            _ => SizeMix::single(self.u64("workload.synthetic.size")),
        }
    }

    fn host(&self) -> Host {
        Host {
            scheduler: self.name("host.scheduler"),
            queue_depth: self.u32("host.queue_depth"),
            deadline_ns: self.whole("host.deadline"),
            awareness: self.name("host.awareness"),
            alternate: self.flag("host.alternate"),
            merge_limit: self.whole("host.merge_limit"),
            merge_boundary: self.whole("host.merge_boundary"),
            files: self.files(),
        }
    }

    fn ftl(&self, page_bytes: u32) -> Ftl {
        Ftl {
            kind: self.name("ftl.kind"),
            mapping_cache_bytes: self.whole("ftl.mapping_cache"),
            cache_policy: self.name("ftl.cache_policy"),
            batch_update: self.flag("ftl.batch_update"),
            background_flush: self.flag("ftl.background_flush"),
            flush_bytes: self.whole("ftl.flush"),
            flush_counts_moved: self.name("ftl.flush_counts") == "all",
            host_flush_mappings: self.name("ftl.host_flush") == "mapping",
            power_safe: self.flag("ftl.power_safe"),
            segment_bytes: self.u32("ftl.segment"),
            translation_blocks: self.whole("ftl.translation_blocks").map(|n| n as u32),
            whole_blocks: self.name("ftl.capacity_step") == "block",
            logical_page_bytes: self.whole("ftl.logical_page").map_or(page_bytes, |n| n as u32),
            read_modify_write: self.name("ftl.partial_write") == "rmw",
            over_provisioning_ppm: self.u64("ftl.over_provisioning"),
            gc: self.name("ftl.gc"),
            gc_choices: self.u32("ftl.gc_choices"),
            gc_window: self.u32("ftl.gc_window"),
            wear_threshold: (self.name("ftl.wear_leveling") == "static")
                .then(|| self.u32("ftl.wear_threshold")),
            gc_free_blocks: self.u32("ftl.gc_free_blocks"),
            gc_background: self.flag("ftl.gc_background").then(|| GcBackground {
                normal_blocks: self.u32("ftl.gc_normal_blocks"),
                step_pages: self.u32("ftl.gc_step"),
            }),
            spare_blocks: self.u32("ftl.spare_blocks"),
            spare_threshold_ppm: self.u64("ftl.spare_threshold"),
            entry_bytes: self.u32("ftl.entry"),
            log_blocks_ppm: self.u64("ftl.log_blocks"),
            csm_threshold_ppm: self.u64("ftl.csm_threshold"),
            allocation: Allocation::named(&self.name("ftl.allocation")),
        }
    }
}

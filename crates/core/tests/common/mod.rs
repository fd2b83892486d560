//! Settings and runs for the tests.
#![allow(dead_code)]

use ftlab_core::config::{Device, Files, Flash, Ftl, Host, OutOfRange, Replay, Results, Settings, Workload};
use ftlab_core::flash::parallel::Allocation;
use ftlab_core::metrics::Report;
use ftlab_core::sim::{Completion, Observer, run};
use ftlab_core::workload::{Op, Record};

/// The device of the MAP+ paper, smaller: one chip, 35 us reads, 350 us programs, no bus time.
pub fn settings() -> Settings {
    Settings {
        seed: 1,
        workload: Workload {
            trace: None,
            format: "auto".into(),
            dedup_ns: 0,
            max_gap_ns: None,
            skip_bad: 0,
            repeat: 1,
            out_of_range: OutOfRange::Error,
            replay: Replay::Open,
            speed: 1.0,
            fio_time_unit_ns: None,
            synthetic: None,
            benchmark: None,
            fio_job: None,
        },
        host: Host {
            scheduler: "noop".into(),
            queue_depth: 128,
            deadline_ns: None,
            awareness: "full".into(),
            alternate: false,
            merge_limit: None,
            merge_boundary: None,
            files: Files::NONE,
        },
        device: Device::default(),
        ftl: Ftl {
            kind: "dftl".into(),
            mapping_cache_bytes: None,
            cache_policy: "slru".into(),
            batch_update: true,
            background_flush: false,
            flush_bytes: None,
            flush_counts_moved: true,
            host_flush_mappings: true,
            power_safe: false,
            segment_bytes: 1024,
            translation_blocks: None,
            whole_blocks: false,
            logical_page_bytes: 4096,
            read_modify_write: false,
            over_provisioning_ppm: 70_000,
            gc: "greedy".into(),
            gc_choices: 2,
            gc_window: 64,
            wear_threshold: None,
            gc_free_blocks: 1,
            gc_background: None,
            spare_blocks: 0,
            spare_threshold_ppm: 100_000,
            entry_bytes: 8,
            log_blocks_ppm: 50_000,
            csm_threshold_ppm: 500_000,
            allocation: Allocation::CHANNEL_FIRST,
        },
        flash: Flash { blocks_per_plane: 256, ..Flash::default() },
        results: Results::default(),
    }
}

/// A request of whole pages of `page` bytes.
pub fn pages(time_ns: u64, op: Op, page: u64, lpn: u64, count: u64) -> Record {
    Record { time_ns, op, offset: lpn * page, size: count * page, line: 0, flags: 0 }
}

/// Keeps every completion.
#[derive(Default)]
pub struct Log(pub Vec<Completion>);

impl Observer for Log {
    fn complete(&mut self, completion: &Completion) {
        self.0.push(*completion);
    }
}

/// Runs in check mode; completions in the order of ids.
pub fn checked(settings: &Settings, records: Vec<Record>) -> (Report, Vec<Completion>) {
    let mut log = Log::default();
    let report = run(settings, &mut records.into_iter(), &mut log, true).expect("every invariant holds");
    log.0.sort_by_key(|completion| completion.id);
    (report, log.0)
}

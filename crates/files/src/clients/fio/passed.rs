//! Options of fio that are not read: those that change nothing in a simulation, and those that would change the load.
//!
//! Logs of fio (`write_bw_log` and its like, with `log_avg_msec`) are among the former: ftlab's own series have the
//! same, by time, whatever the job asks for.

/// Options that change nothing here: they concern names, reports and logs, the machine that ran fio, the contents of
/// data, or what only another option, which is read or refused, brings into effect.
pub(super) const PASSED_OVER: &[&str] = &[
    "allow_file_create",
    "allow_mounted_write",
    "allrandrepeat",
    "block_error_percentiles",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "bwavgtime",
    "cgroup",
    "cgroup_nodelete",
    "clat_percentiles",
    "clocksource",
    "cmd_type",
    "continue_on_error",
    "cpumask",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_fsync",
    "create_on_open",
    "create_serialize",
    "dedupe_global",
    "dedupe_mode",
    "dedupe_percentage",
    "dedupe_working_set_percentage",
    "description",
    "disable_bw",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "error_dump",
    "eta",
    "exitall_on_error",
    "fadvise_hint",
    "fallocate",
    "fixedbufs",
    "flow_id",
    "flow_sleep",
    "flow_watermark",
    "force_async",
    "gid",
    "gtod_cpu",
    "gtod_reduce",
    "hipri",
    "hipri_percentage",
    "hugepage-size",
    "ignore_error",
    "ignore_zone_limits",
    "iodepth_batch",
    "iodepth_batch_complete_max",
    "iodepth_batch_submit",
    "iomem",
    "iomem_align",
    "iopsavgtime",
    "job_max_open_zones",
    "lat_percentiles",
    "latency_percentile",
    "latency_run",
    "latency_window",
    "lockfile",
    "lockmem",
    "log_alternate_epoch",
    "log_alternate_epoch_clock_id",
    "log_avg_msec",
    "log_compression",
    "log_compression_cpus",
    "log_entries",
    "log_hist_coarseness",
    "log_hist_msec",
    "log_issue_time",
    "log_max_value",
    "log_offset",
    "log_prio",
    "log_store_compressed",
    "log_unix_epoch",
    "log_window_value",
    "max_open_zones",
    "mem",
    "mem_align",
    "name",
    "nice",
    "nonvectored",
    "nowait",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "per_job_logs",
    "percentile_list",
    "prio",
    "prioclass",
    "rate_cycle",
    "ratecycle",
    "read_beyond_wp",
    "read_iolog_chunked",
    "refill_buffers",
    "registerfiles",
    "replay_align",
    "replay_no_stall",
    "replay_redirect",
    "replay_scale",
    "replay_skip",
    "replay_time_scale",
    "scramble_buffers",
    "significant_figures",
    "slat_percentiles",
    "softrandommap",
    "sqthread_poll",
    "sqthread_poll_cpu",
    "stats",
    "thinktime_spin",
    "thread",
    "trim_backlog_batch",
    "trim_verify_zero",
    "uid",
    "uncached",
    "unified_rw_reporting",
    "unique_filename",
    "unit_base",
    "unlink",
    "userspace_reap",
    "verify_async",
    "verify_async_cpus",
    "verify_dump",
    "verify_fatal",
    "verify_interval",
    "verify_offset",
    "verify_state_save",
    "verifysort",
    "verifysort_nr",
    "write_bw_log",
    "write_hist_log",
    "write_iolog",
    "write_iops_log",
    "write_lat_log",
    "zero_buffers",
    "zone_reset_frequency",
    "zone_reset_threshold",
    "zonecapacity",
];

/// Options that change the load in a way that is not simulated.
pub(super) struct Refused {
    /// The option's names.
    pub names: &'static [&'static str],
    /// The values with which it changes nothing.
    pub off: &'static [&'static str],
    /// What to do.
    pub instead: &'static str,
}

const fn refused(
    names: &'static [&'static str],
    off: &'static [&'static str],
    instead: &'static str,
) -> Refused {
    Refused { names, off, instead }
}

const ZERO: &[&str] = &["0"];
const COMMANDS: &str = "commands are not run here; leave it out";
const PRIORITY: &str = "requests have no priority here; leave it out";
const STOPPED: &str = "no job is stopped for being slow here; leave it out";

/// The options that are refused with values other than these.
pub(super) const REFUSED: &[Refused] = &[
    refused(&["atomic"], ZERO, "the drive has no atomic writes; write direct=1"),
    refused(&["bs_is_seq_rand"], ZERO, "sizes are for reads, writes and trims here; leave it out"),
    refused(
        &["bs_unaligned", "blocksize_unaligned"],
        ZERO,
        "sizes are multiples of the smallest here; leave it out",
    ),
    refused(&["cgroup_weight"], &[], "cgroups have no shares here; a tenant has one (tenant.NAME.weight)"),
    refused(&["cmdprio", "cmdprio_bssplit", "cmdprio_class", "cmdprio_percentage"], ZERO, PRIORITY),
    refused(&["create_only"], ZERO, "it makes files and no requests; leave the job out"),
    refused(&["exec_prerun", "exec_postrun"], &[], COMMANDS),
    refused(&["experimental_verify", "verify_only", "verify_state_load"], ZERO, "write a job that reads"),
    refused(&["file_append"], ZERO, "a job begins at its offset here; write offset="),
    refused(&["flow"], ZERO, "jobs do not wait for each other's shares here; give each a rate"),
    refused(&["io_submit_mode"], &["inline"], "a job submits its own requests here; leave it out"),
    refused(&["ioscheduler"], &[], "the key host.scheduler chooses it; leave it out"),
    refused(&["latency_target"], ZERO, "the depth is fixed here; write iodepth="),
    refused(&["max_latency", "rate_iops_min", "rate_min", "ratemin"], ZERO, STOPPED),
    refused(&["opendir"], &[], "name a file: filename="),
    refused(&["profile"], &[], "write its jobs out"),
    refused(&["rate_ignore_thinktime"], ZERO, "a rate makes up for pauses here; leave it out"),
    refused(&["read_iolog", "merge_blktrace_file"], &[], "ftlab run --trace FILE replays a log"),
    refused(&["serialize_overlap"], ZERO, "requests in flight may overlap here; leave it out"),
    refused(&["sync_file_range", "write_barrier"], ZERO, "write fsync= or fdatasync="),
    refused(&["thinktime_iotime"], ZERO, "pauses come after a number of requests here: thinktime_blocks="),
    refused(&["trim_backlog", "trim_percentage"], ZERO, "write rw=trimwrite or a job that trims"),
    refused(&["unlink_each_loop"], ZERO, "files stay here; leave it out"),
    refused(&["wait_for"], &[], "write stonewall, with which a job waits for all before it"),
    refused(&["write_hint"], &["none"], "writes have no lifetime here; leave it out"),
];

/// Those that change nothing with `direct=1`.
pub(super) const REFUSED_IN_A_CACHE: &[Refused] = &[
    refused(&["fill_device", "fill_fs"], ZERO, "a file system is not filled here; write size="),
    refused(&["invalidate"], &["1"], "a job begins with a cold page cache here; leave it out"),
    refused(
        &["overwrite"],
        ZERO,
        "files are laid out only for reads here; write a job that writes it before",
    ),
    refused(
        &["pre_read"],
        ZERO,
        "a job begins with a cold page cache here; write a job that reads it before",
    ),
];

/// Returns what a list says about an option with a value that changes something.
pub(super) fn refusal(list: &'static [Refused], option: &str, value: &str) -> Option<&'static Refused> {
    list.iter().find(|refused| refused.names.contains(&option) && !refused.off.contains(&value.trim()))
}

/// Returns whether an option changes nothing with any value, or with some that are not refused.
pub(super) fn is_passed_over(option: &str) -> bool {
    let in_list = |list: &[Refused]| list.iter().any(|refused| refused.names.contains(&option));
    PASSED_OVER.contains(&option) || in_list(REFUSED) || in_list(REFUSED_IN_A_CACHE)
}

//! Options of fio that change nothing in a simulation.
//!
//! Logs of fio (`write_bw_log` and its like, with `log_avg_msec`) are among them: ftlab's own series have the same, by
//! time, whatever the job asks for.

/// Options that change nothing here: they concern names, reports and logs, the machine that ran fio, or the contents
/// of data.
pub(super) const PASSED_OVER: &[&str] = &[
    "allow_file_create",
    "allrandrepeat",
    "buffer_compress_percentage",
    "buffer_pattern",
    "clat_percentiles",
    "clocksource",
    "cpumask",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_on_open",
    "create_serialize",
    "dedupe_percentage",
    "description",
    "directory",
    "disk_util",
    "eta",
    "exitall",
    "fallocate",
    "file_append",
    "filename_format",
    "filesize",
    "gid",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "hugepage-size",
    "invalidate",
    "iomem",
    "ioengine",
    "lat_percentiles",
    "log_avg_msec",
    "log_hist_msec",
    "log_unix_epoch",
    "mem",
    "name",
    "nice",
    "norandommap",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "opendir",
    "per_job_logs",
    "percentile_list",
    "prio",
    "prioclass",
    "randrepeat",
    "randseed",
    "refill_buffers",
    "scramble_buffers",
    "slat_percentiles",
    "thread",
    "uid",
    "unified_rw_reporting",
    "unlink",
    "write_bw_log",
    "write_hist_log",
    "write_iops_log",
    "write_lat_log",
    "zero_buffers",
];

/// Returns the options of a job file that are skipped because they change nothing here, each listed once, in the order
/// of the file.
pub fn passed_over(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let option = line.split([';', '#', '=']).next().unwrap_or_default().trim();
        if let Some(known) = PASSED_OVER.iter().find(|known| **known == option)
            && !found.contains(known)
        {
            found.push(*known);
        }
    }
    found
}

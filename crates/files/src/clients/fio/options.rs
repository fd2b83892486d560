//! The options of a job that are read.

use super::draft::Draft;
use super::values::{
    BETWEEN, count, distribution, each, engine, extent, filenames, flag, range, size, size_or_none, split,
    sync, time,
};
use super::{Exits, Extent, Mix, Pattern, Service};

/// Sets what an option's value says.
pub(super) type Set = fn(&mut Draft, &str) -> Result<(), String>;

/// An option's names, of which messages use the first, and what sets it.
pub(super) type Declared = (&'static [&'static str], Set);

const SECOND_NS: u64 = 1_000_000_000;
const US_NS: u64 = 1_000;

/// Most of a number that has no bound in fio.
const MOST: u64 = u64::MAX >> 1;

/// What a job's requests are, and where they go.
const REQUESTS: &[Declared] = &[
    (&["rw", "readwrite"], rw),
    (&["rw_sequencer"], |draft, value| {
        draft.group.1 = one_of(value, &["sequential", "identical"])? == 1;
        Ok(())
    }),
    (&["rwmixread"], |draft, value| to(&mut draft.share, count(value, 0, 100))),
    (&["rwmixwrite"], |draft, value| to(&mut draft.share, count(value, 0, 100).map(|share| 100 - share))),
    (&["bs", "blocksize"], |draft, value| {
        let kilo = draft.kilo;
        each(value, BETWEEN, &mut draft.bs, |part| size(part, kilo))
    }),
    (&["bsrange", "blocksize_range"], |draft, value| {
        let kilo = draft.kilo;
        each(value, &[','], &mut draft.ranges, |part| range(part, kilo).map(Some))
    }),
    (&["bssplit"], |draft, value| {
        let kilo = draft.kilo;
        each(value, &[','], &mut draft.splits, |part| split(part, kilo).map(Some))
    }),
    (&["blockalign", "ba"], |draft, value| {
        let kilo = draft.kilo;
        each(value, BETWEEN, &mut draft.job.align, |part| size(part, kilo).map(Some))
    }),
    (&["random_distribution"], |draft, value| {
        to(&mut draft.job.distribution, distribution(value, draft.kilo))
    }),
    (&["percentage_random"], |draft, value| {
        each(value, BETWEEN, &mut draft.job.random_percent, |part| count(part, 0, 100))
    }),
    (&["norandommap"], |draft, value| to(&mut draft.job.map, flag(value).map(|without| !without))),
    (&["random_generator"], |draft, value| {
        draft.lfsr = one_of(value, &["tausworthe", "tausworthe64", "lfsr"])? == 2;
        Ok(())
    }),
    (&["randrepeat"], |draft, value| to(&mut draft.job.repeat, flag(value))),
    (&["randseed"], |draft, _| to(&mut draft.job.repeat, Ok(false))),
    (&["zonemode"], |draft, value| {
        draft.strided = one_of(value, &["none", "strided"])? == 1;
        Ok(())
    }),
    (&["zonesize"], |draft, value| to(&mut draft.zone_bytes, size_or_none(value, draft.kilo))),
    (&["zonerange"], |draft, value| to(&mut draft.zone_range, size_or_none(value, draft.kilo))),
    (&["zoneskip"], |draft, value| to(&mut draft.zone_skip, size_or_none(value, draft.kilo))),
];

/// The file that a job works on, and how much it transfers.
const EXTENTS: &[Declared] = &[
    (&["filename"], |draft, value| to(&mut draft.names, filenames(value))),
    (&["nrfiles", "nr_files"], |draft, value| to(&mut draft.files, count(value, 1, 1 << 20))),
    (&["openfiles"], |draft, value| to(&mut draft.job.open_files, count(value, 1, 1 << 20))),
    (&["file_service_type"], |draft, value| {
        let (order, requests) = value.split_once(':').unwrap_or((value, "1"));
        let order = one_of(order, &["roundrobin", "sequential", "random"])?;
        let requests = count(requests, 1, MOST)?;
        draft.job.service =
            [Service::InTurn(requests), Service::Sequential, Service::Random(requests)][order];
        Ok(())
    }),
    (&["filename_format"], |draft, value| to(&mut draft.filename_format, Ok(Some(value.trim().into())))),
    (&["directory"], |draft, value| to(&mut draft.directory, Ok(Some(value.trim().into())))),
    (&["filesize"], |draft, value| to(&mut draft.filesize, size_or_none(value, draft.kilo))),
    (&["offset", "fileoffset"], |draft, value| to(&mut draft.job.offset, from(value, draft.kilo))),
    (&["offset_increment"], |draft, value| to(&mut draft.job.offset_increment, from(value, draft.kilo))),
    (&["offset_align"], |draft, value| to(&mut draft.job.offset_align, size_or_none(value, draft.kilo))),
    (&["size"], |draft, value| to(&mut draft.size, extent(value, draft.kilo).map(unless_none))),
    (&["io_size", "io_limit"], |draft, value| {
        to(&mut draft.io_size, extent(value, draft.kilo).map(unless_none))
    }),
    (&["number_ios"], |draft, value| to(&mut draft.job.number_ios, count(value, 0, MOST))),
    (&["loops"], |draft, value| to(&mut draft.job.loops, count(value, 0, 1 << 32).map(|loops| loops.max(1)))),
    (&["kb_base"], |draft, value| {
        draft.kilo = [1024, 1000][one_of(value, &["1024", "1000"])?];
        Ok(())
    }),
];

/// How a job issues its requests, and what makes them durable.
const ISSUE: &[Declared] = &[
    (&["ioengine"], |draft, value| to(&mut draft.job.engine, engine(value))),
    (&["iodepth"], |draft, value| {
        to(&mut draft.job.iodepth, count(value, 1, 65_536).map(|depth| depth as u32))
    }),
    (&["iodepth_low"], |draft, value| to(&mut draft.low, count(value, 0, 65_536))),
    (&["iodepth_batch_complete_min", "iodepth_batch_complete"], |draft, value| {
        to(&mut draft.batch, count(value, 0, 65_536))
    }),
    (&["numjobs"], |draft, value| to(&mut draft.job.numjobs, count(value, 1, 1024).map(|jobs| jobs as u32))),
    (&["direct"], |draft, value| to(&mut draft.job.direct, count(value, 0, 1).map(|on| on == 1))),
    (&["buffered"], |draft, value| to(&mut draft.job.direct, count(value, 0, 1).map(|on| on == 0))),
    (&["fsync"], |draft, value| to(&mut draft.job.fsync, count(value, 0, MOST))),
    (&["fdatasync"], |draft, value| to(&mut draft.job.fdatasync, count(value, 0, MOST))),
    (&["end_fsync", "fsync_on_close"], |draft, value| to(&mut draft.job.end_fsync, flag(value))),
    (&["sync"], |draft, value| to(&mut draft.job.sync, sync(value))),
    (&["verify"], |draft, value| {
        draft.verify.0 = Some(!["0", "none", "null"].contains(&value.trim()));
        Ok(())
    }),
    (&["verify_pattern"], |draft, _| to(&mut draft.verify.1, Ok(true))),
    (&["verify_backlog"], |draft, value| to(&mut draft.job.verify_backlog.0, count(value, 0, MOST))),
    (&["verify_backlog_batch"], |draft, value| to(&mut draft.job.verify_backlog.1, count(value, 0, MOST))),
    (&["do_verify"], |draft, value| to(&mut draft.verify.2, flag(value))),
];

/// When a job runs, and how fast.
const TIMES: &[Declared] = &[
    (&["stonewall", "wait_for_previous"], |draft, value| to(&mut draft.wall, flag(value))),
    (&["new_group"], |draft, value| to(&mut draft.new_group, flag(value))),
    (&["group_reporting"], |draft, value| to(&mut draft.job.group_reporting, flag(value))),
    (&["exitall"], |draft, value| to(&mut draft.exitall, flag(value))),
    (&["exit_what"], |draft, value| {
        const WHAT: [Exits; 3] = [Exits::Group, Exits::Running, Exits::All];
        draft.exit_what = WHAT[one_of(value, &["group", "stonewall", "all"])?];
        Ok(())
    }),
    (&["steadystate", "ss"], |draft, value| steady(draft, value)),
    (&["steadystate_duration", "ss_dur"], |draft, value| {
        draft.steady_ns = told(draft, "steadystate_duration", value, SECOND_NS)?;
        Ok(())
    }),
    (&["steadystate_ramp_time", "ss_ramp"], |draft, value| {
        draft.job.steady.ramp_ns = told(draft, "steadystate_ramp_time", value, SECOND_NS)?;
        Ok(())
    }),
    (&["steadystate_check_interval", "ss_interval"], |draft, value| {
        match told(draft, "steadystate_check_interval", value, SECOND_NS)? {
            ns if ns < SECOND_NS => Err("fio has no less than a second; write 1s".into()),
            ns => to(&mut draft.job.steady.interval_ns, Ok(ns)),
        }
    }),
    (&["startdelay"], |draft, value| {
        if value.contains('-') {
            return Err(format!("\"{value}\" is drawn by fio; write one time"));
        }
        draft.job.delay_ns = told(draft, "startdelay", value, SECOND_NS)?;
        Ok(())
    }),
    (&["ramp_time"], |draft, value| {
        draft.job.ramp_ns = told(draft, "ramp_time", value, SECOND_NS)?;
        Ok(())
    }),
    (&["runtime", "timeout"], |draft, value| {
        let ns = told(draft, "runtime", value, SECOND_NS)?;
        draft.job.runtime_ns = (ns > 0).then_some(ns);
        Ok(())
    }),
    (&["time_based"], |draft, value| to(&mut draft.job.time_based, flag(value))),
    (&["rate"], |draft, value| {
        let kilo = draft.kilo;
        each(value, BETWEEN, &mut draft.job.rate, |part| size_or_none(part, kilo))
    }),
    (&["rate_iops"], |draft, value| {
        each(value, BETWEEN, &mut draft.rate_iops, |part| count(part, 0, u32::MAX.into()))
    }),
    (&["rate_process"], |draft, value| {
        draft.job.poisson = one_of(value, &["linear", "poisson"])? == 1;
        Ok(())
    }),
    (&["thinktime"], |draft, value| {
        draft.job.think.ns = told(draft, "thinktime", value, US_NS)?;
        Ok(())
    }),
    (&["thinktime_blocks"], |draft, value| to(&mut draft.job.think.requests, count(value, 1, 1 << 32))),
    (&["thinktime_blocks_type"], |draft, value| {
        draft.job.think.issued = one_of(value, &["complete", "issue"])? == 1;
        Ok(())
    }),
];

/// Returns the options that are read.
pub(super) fn all() -> impl Iterator<Item = &'static Declared> {
    [REQUESTS, EXTENTS, ISSUE, TIMES].into_iter().flatten()
}

fn to<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

/// Returns which of these words a value is.
fn one_of(value: &str, words: &[&str]) -> Result<usize, String> {
    let value = value.trim();
    let at = words.iter().position(|word| *word == value);
    at.ok_or_else(|| format!("\"{value}\" is not one of {}", words.join(", ")))
}

/// Reads where something begins; 0 % is the beginning.
fn from(value: &str, kilo: u64) -> Result<Extent, String> {
    let offset = extent(value, kilo)?;
    Ok(if offset == Extent::Percent(0) { Extent::Bytes(0) } else { offset })
}

/// As in fio, no bytes are as if the option were not there.
fn unless_none(extent: Extent) -> Option<Extent> {
    (!matches!(extent, Extent::Bytes(0) | Extent::Percent(0))).then_some(extent)
}

/// Reads a time, and has the user told where fio does not read it as one would.
fn told(draft: &mut Draft, option: &str, value: &str, bare_ns: u64) -> Result<u64, String> {
    let (ns, known) = time(value, bare_ns)?;
    if !known {
        let value = value.trim();
        let us = ns / US_NS;
        draft.notes.push(format!("{option}={value} is {us} us to fio, which knows d, h, m, s, ms and us"));
    }
    Ok(ns)
}

/// Reads "randrw", or "randrw:8" with the size of a group, or "rw:4k" with what lies between requests.
fn rw(draft: &mut Draft, value: &str) -> Result<(), String> {
    const MIXES: [(&str, Mix); 6] = [
        ("read", Mix::Reads),
        ("write", Mix::Writes),
        ("trim", Mix::Trims),
        ("rw", Mix::Mixed(50)),
        ("readwrite", Mix::Mixed(50)),
        ("trimwrite", Mix::TrimWrites),
    ];
    let (name, postfix) = value.trim().split_once(':').unwrap_or((value.trim(), ""));
    let (pattern, of) = match name.strip_prefix("rand") {
        Some(rest) => (Pattern::Random, rest),
        None => (Pattern::Sequential, name),
    };
    let mix = MIXES.iter().find(|(word, _)| *word == of && (of != "readwrite" || of == name));
    let Some(&(_, mix)) = mix else {
        let known = "read, write, trim, rw, trimwrite, randread, randwrite, randtrim, randrw, randtrimwrite";
        return Err(format!("\"{value}\" is not one of {known}"));
    };
    (draft.job.pattern, draft.job.mix) = (pattern, mix);
    (draft.group.0, draft.job.stride) = (1, 0);
    match (postfix, pattern) {
        ("", _) => {}
        (_, Pattern::Random) => draft.group.0 = count(postfix, 1, MOST)?,
        (_, Pattern::Sequential) => {
            let bytes = size(postfix.strip_prefix('-').unwrap_or(postfix), draft.kilo)? as i64;
            draft.job.stride = if postfix.starts_with('-') { -bytes } else { bytes };
        }
    }
    Ok(())
}

/// Reads "iops:5%": a criterion and what it has to be below.
fn steady(draft: &mut Draft, value: &str) -> Result<(), String> {
    const CRITERIA: [&str; 4] = ["iops", "bw", "iops_slope", "bw_slope"];
    let Some((criterion, limit)) = value.split_once(':') else {
        return Err(format!("\"{value}\" has no limit; write for example iops_slope:0.3%"));
    };
    let at = one_of(criterion, &CRITERIA)?;
    let steady = &mut draft.job.steady;
    (steady.bytes, steady.slope) = (at % 2 == 1, at >= 2);
    let (number, percent) = limit.trim().strip_suffix('%').map_or((limit.trim(), false), |rest| (rest, true));
    steady.percent = percent;
    steady.limit =
        match (percent, steady.bytes) {
            (false, true) => size_or_none(number, draft.kilo)? as f64,
            _ => number.parse().ok().filter(|limit: &f64| limit.is_finite() && *limit >= 0.0).ok_or_else(
                || format!("\"{}\" is not a number from 0; write for example iops_slope:0.3%", limit.trim()),
            )?,
        };
    Ok(())
}

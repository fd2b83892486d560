//! Reads a fio job file.

use super::files::part;
use super::passed::PASSED_OVER;
use super::values::{count, distribution, extent, flag, or_zero, pair, size, splits, time};
use super::{Distribution, Engine, Extent, Group, Job, Mix, Pattern, Sizes, Strides, Sync, Think};

/// Why a job file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct JobError {
    /// Name of the job file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong, including the name of the option.
    pub message: String,
}

/// Upper bound on the number of characters in a message.
const MOST_MESSAGE: usize = 300;

/// The options that are understood, as messages list them.
const OPTIONS: &[&str] = &[
    "rw",
    "bs",
    "bssplit",
    "blockalign",
    "iodepth",
    "filename",
    "offset",
    "size",
    "io_size",
    "loops",
    "zonemode",
    "zonesize",
    "zonerange",
    "zoneskip",
    "rwmixread",
    "rwmixwrite",
    "random_distribution",
    "fsync",
    "rate",
    "rate_iops",
    "thinktime",
    "thinktime_blocks",
    "ramp_time",
    "runtime",
    "time_based",
    "numjobs",
    "stonewall",
    "direct",
    "buffered",
];

const SECOND_NS: u64 = 1_000_000_000;
const US_NS: u64 = 1_000;

/// A section that is being read: the job so far, and the options from which the rest of it follows.
#[derive(Clone)]
struct Draft {
    job: Job,
    reads: bool,
    writes: bool,
    mix: u64,
    sized: bool,
    rate_iops: [u64; 3],
    /// Whether `zonemode` is `strided`.
    strided: bool,
    zone_bytes: u64,
    zone_range: u64,
    zone_skip: u64,
    wall: bool,
}

impl Draft {
    fn new() -> Draft {
        let job = Job {
            name: String::new(),
            pattern: Pattern::Sequential,
            mix: Mix::Reads,
            block: [const { Sizes::One(4096) }; 3],
            align: [None; 3],
            engine: Engine::Waits,
            iodepth: 1,
            file: None,
            offset: Extent::Bytes(0),
            offset_increment: Extent::Bytes(0),
            offset_align: 0,
            size: Extent::Bytes(0),
            io_size: None,
            number_ios: 0,
            loops: 1,
            strides: None,
            distribution: Distribution::Random,
            map: true,
            repeat: true,
            random_percent: [100; 3],
            group: Group::Follows(1),
            stride: 0,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            sync: Sync::None,
            verify: false,
            rate: [0; 3],
            poisson: false,
            think: Think { ns: 0, requests: 1, issued: false },
            delay_ns: 0,
            ramp_ns: 0,
            runtime_ns: None,
            time_based: false,
            numjobs: 1,
            direct: false,
            stage: 0,
        };
        Draft {
            job,
            reads: true,
            writes: false,
            mix: 50,
            sized: false,
            rate_iops: [0; 3],
            strided: false,
            zone_bytes: 0,
            zone_range: 0,
            zone_skip: 0,
            wall: false,
        }
    }

    /// Returns the job, which follows these jobs in the file.
    fn finish(mut self, before: &[Job]) -> Result<Job, String> {
        self.job.stage = before.last().map_or(0, |last| last.stage + u32::from(self.wall));
        self.job.mix = match (self.reads, self.writes) {
            (true, true) => Mix::Mixed(self.mix),
            (true, false) => Mix::Reads,
            _ => Mix::Writes,
        };
        let name = &self.job.name;
        if !self.sized {
            return Err(format!("job \"{name}\" has no size; write for example size=64m"));
        }
        if self.job.time_based && self.job.runtime_ns.is_none() {
            return Err(format!("job \"{name}\": time_based without runtime never ends; add runtime=60"));
        }
        if self.rate_iops != [0; 3] {
            if self.job.rate != [0; 3] {
                return Err(format!("job \"{name}\": rate and rate_iops exclude each other; remove one"));
            }
            self.job.rate =
                [0, 1, 2].map(|half| self.rate_iops[half].saturating_mul(self.job.block[half].least()));
        }
        self.job.strides = self.strides().map_err(|why| format!("job \"{name}\": {why}"))?;
        if matches!((self.job.offset, self.job.size), (Extent::Bytes(_), Extent::Bytes(_))) {
            part(&self.job, u64::MAX).map_err(|why| format!("job \"{name}\": {why}"))?;
        }
        Ok(self.job)
    }

    /// Returns the zones, if the job has any.
    fn strides(&self) -> Result<Option<Strides>, String> {
        let bytes = self.zone_bytes;
        match (self.strided, bytes > 0) {
            (false, false) => return Ok(None),
            (false, true) => {
                return Err("zonesize without zonemode=strided; add it, or leave both out".into());
            }
            (true, false) => {
                return Err("zonemode=strided without zonesize; write for example zonesize=4k".into());
            }
            (true, true) => {}
        }
        let range = if self.zone_range > 0 { self.zone_range } else { bytes };
        Ok(Some(Strides { bytes, range, skip: self.zone_skip }))
    }
}

/// Reads a job file's text; `file` names it in messages.
///
/// # Errors
/// [`JobError`] for the first line at fault; its message also lists all other unknown options.
pub fn parse(file: &str, text: &str) -> Result<Vec<Job>, JobError> {
    // A line may be as long as the file, so messages are cut short.
    let short = |message: String| message.chars().take(MOST_MESSAGE).collect();
    let fail = |line: usize, message: String| JobError { file: file.into(), line, message: short(message) };
    let mut global = Draft::new();
    let mut current: Option<(Draft, usize)> = None;
    let mut in_global = false;
    let mut jobs = Vec::new();
    let mut last = 0;
    let mut refused: Vec<(usize, String)> = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        last = number;
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let Some(name) = section.strip_suffix(']') else {
                return Err(fail(number, format!("\"{line}\": a section ends with ]")));
            };
            if let Some((draft, at)) = current.take() {
                jobs.push(draft.finish(&jobs).map_err(|message| fail(at, message))?);
            }
            in_global = name == "global";
            if !in_global {
                let mut draft = global.clone();
                draft.job.name = name.into();
                current = Some((draft, number));
            }
            continue;
        }
        let (option, value) = match line.split_once('=') {
            Some((option, value)) => (option.trim(), value.trim()),
            None => (line, ""),
        };
        let draft = match (&mut current, in_global) {
            (_, true) => &mut global,
            (Some((draft, _)), false) => draft,
            (None, false) => {
                return Err(fail(
                    number,
                    format!("{option}: before any section; begin with [global] or [job]"),
                ));
            }
        };
        if let Err(message) = set(draft, option, value) {
            refused.push((number, message));
        }
    }
    if let Some((line, message)) = refusal(&refused, short) {
        return Err(JobError { file: file.into(), line, message });
    }
    if let Some((draft, at)) = current.take() {
        jobs.push(draft.finish(&jobs).map_err(|message| fail(at, message))?);
    }
    if jobs.is_empty() {
        return Err(fail(last.max(1), "no job: a section like [job1] describes one".into()));
    }
    Ok(jobs)
}

/// Makes one error for all refused lines, at the place of the first, so that a user can fix all of them in one go.
fn refusal(refused: &[(usize, String)], short: impl Fn(String) -> String) -> Option<(usize, String)> {
    let ((line, first), others) = refused.split_first()?;
    let others: String = others.iter().map(|(line, message)| format!("\n  line {line}: {message}")).collect();
    let unknown = refused.iter().any(|(_, message)| message.starts_with("option "));
    let known = if unknown { format!("\n  it knows {}", OPTIONS.join(", ")) } else { String::new() };
    Some((*line, short(format!("{first}{others}")) + &known))
}

fn set(draft: &mut Draft, option: &str, value: &str) -> Result<(), String> {
    let job = &mut draft.job;
    let of = |message: String| format!("{option}: {message}");
    match option {
        "rw" | "readwrite" => {
            let (pattern, reads, writes) = match value {
                "read" => (Pattern::Sequential, true, false),
                "write" => (Pattern::Sequential, false, true),
                "randread" => (Pattern::Random, true, false),
                "randwrite" => (Pattern::Random, false, true),
                "rw" | "readwrite" => (Pattern::Sequential, true, true),
                "randrw" => (Pattern::Random, true, true),
                _ => {
                    let known = "read, write, rw, randread, randwrite, randrw";
                    return Err(of(format!("\"{value}\" is not one of {known}")));
                }
            };
            (job.pattern, draft.reads, draft.writes) = (pattern, reads, writes);
        }
        "bs" | "blocksize" => job.block = pair(value, size).map_err(of)?.map(Sizes::One),
        "bssplit" => job.block = splits(value).map_err(of)?,
        "blockalign" | "ba" => job.align = [Some(size(value).map_err(of)?); 3],
        "ioengine" => job.engine = engine(value),
        "iodepth" => job.iodepth = count(value, 1, 65_536).map_err(of)? as u32,
        "filename" => job.file = Some(value.into()),
        "offset" => job.offset = if value == "0" { Extent::Bytes(0) } else { extent(value).map_err(of)? },
        "size" => {
            job.size = extent(value).map_err(of)?;
            draft.sized = true;
        }
        "io_size" | "io_limit" => job.io_size = Some(size(value).map_err(of)?),
        "loops" => job.loops = count(value, 1, 1 << 32).map_err(of)?,
        "rwmixread" => draft.mix = count(value, 0, 100).map_err(of)?,
        "rwmixwrite" => draft.mix = 100 - count(value, 0, 100).map_err(of)?,
        "random_distribution" => job.distribution = distribution(value).map_err(of)?,
        "fsync" => job.fsync = count(value, 0, u64::MAX >> 1).map_err(of)?,
        "rate" => job.rate = pair(value, size).map_err(of)?,
        "rate_iops" => draft.rate_iops = pair(value, |each| or_zero(each, size)).map_err(of)?,
        "runtime" => job.runtime_ns = Some(time(value, SECOND_NS).map_err(of)?),
        "time_based" => job.time_based = flag(value).map_err(of)?,
        "stonewall" | "wait_for_previous" => draft.wall = flag(value).map_err(of)?,
        "numjobs" => job.numjobs = count(value, 1, 1024).map_err(of)? as u32,
        "direct" => job.direct = count(value, 0, 1).map_err(of)? == 1,
        "buffered" => job.direct = count(value, 0, 1).map_err(of)? == 0,
        _ if option.starts_with("zone") => zone(draft, option, value)?,
        _ if option.starts_with("thinktime") || option == "ramp_time" => pause(job, option, value)?,
        _ if PASSED_OVER.contains(&option) => {}
        _ => return Err(unknown(option)),
    }
    Ok(())
}

/// Returns how an engine performs requests; those that are unknown here wait, as fio's default does.
fn engine(name: &str) -> Engine {
    match name {
        "libaio" => Engine::Queues,
        "io_uring" | "io_uring_cmd" | "posixaio" | "solarisaio" | "windowsaio" | "nvme" | "xnvme" => Engine::QueuesAll,
        _ => Engine::Waits,
    }
}

fn unknown(option: &str) -> String {
    format!("option {option} is not read by ftlab")
}

fn zone(draft: &mut Draft, option: &str, value: &str) -> Result<(), String> {
    let of = |message: String| format!("{option}: {message}");
    match option {
        "zonemode" => {
            draft.strided = match value {
                "none" => false,
                "strided" => true,
                _ => return Err(of(format!("\"{value}\" is not one of none, strided"))),
            }
        }
        "zonesize" => draft.zone_bytes = or_zero(value, size).map_err(of)?,
        "zonerange" => draft.zone_range = or_zero(value, size).map_err(of)?,
        "zoneskip" => draft.zone_skip = or_zero(value, size).map_err(of)?,
        _ => return Err(unknown(option)),
    }
    Ok(())
}

fn pause(job: &mut Job, option: &str, value: &str) -> Result<(), String> {
    let of = |message: String| format!("{option}: {message}");
    match option {
        "thinktime" => job.think.ns = or_zero(value, |each| time(each, US_NS)).map_err(of)?,
        "thinktime_blocks" => job.think.requests = count(value, 1, 1 << 32).map_err(of)?,
        "ramp_time" => job.ramp_ns = or_zero(value, |each| time(each, SECOND_NS)).map_err(of)?,
        _ => return Err(unknown(option)),
    }
    Ok(())
}

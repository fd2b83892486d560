//! Reads a fio job file.

use super::passed::PASSED_OVER;
use super::{Distribution, Job, Pattern};

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
    "iodepth",
    "size",
    "rwmixread",
    "rwmixwrite",
    "random_distribution",
    "fsync",
    "rate",
    "runtime",
    "time_based",
    "numjobs",
    "direct",
    "buffered",
];

/// A section that is being read: the job so far, and which of its required options have appeared.
#[derive(Clone)]
struct Draft {
    job: Job,
    reads: bool,
    writes: bool,
    mix: u64,
    sized: bool,
}

impl Draft {
    fn new() -> Draft {
        let job = Job {
            name: String::new(),
            pattern: Pattern::Sequential,
            read_percent: 100,
            block: [4096; 2],
            iodepth: 1,
            size: 0,
            distribution: Distribution::Random,
            fsync: 0,
            rate: [0; 2],
            runtime_ns: None,
            time_based: false,
            numjobs: 1,
            direct: false,
        };
        Draft { job, reads: true, writes: false, mix: 50, sized: false }
    }

    fn finish(mut self) -> Result<Job, String> {
        self.job.read_percent = match (self.reads, self.writes) {
            (true, true) => self.mix,
            (true, false) => 100,
            _ => 0,
        };
        let name = &self.job.name;
        if !self.sized {
            return Err(format!("job \"{name}\" has no size; write for example size=64m"));
        }
        if self.job.time_based && self.job.runtime_ns.is_none() {
            return Err(format!("job \"{name}\": time_based without runtime never ends; add runtime=60"));
        }
        if self.job.size < self.job.block[0].max(self.job.block[1]) {
            return Err(format!("job \"{name}\": bs is larger than size"));
        }
        Ok(self.job)
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
                jobs.push(draft.finish().map_err(|message| fail(at, message))?);
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
        jobs.push(draft.finish().map_err(|message| fail(at, message))?);
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
        "bs" | "blocksize" => job.block = pair(value, size).map_err(of)?,
        "iodepth" => job.iodepth = count(value, 1, 65_536).map_err(of)? as u32,
        "size" => {
            job.size = size(value).map_err(of)?;
            draft.sized = true;
        }
        "rwmixread" => draft.mix = count(value, 0, 100).map_err(of)?,
        "rwmixwrite" => draft.mix = 100 - count(value, 0, 100).map_err(of)?,
        "random_distribution" => job.distribution = distribution(value).map_err(of)?,
        "fsync" => job.fsync = count(value, 0, u64::MAX >> 1).map_err(of)?,
        "rate" => job.rate = pair(value, size).map_err(of)?,
        "runtime" => job.runtime_ns = Some(time(value).map_err(of)?),
        "time_based" => job.time_based = value.is_empty() || count(value, 0, 1).map_err(of)? == 1,
        "numjobs" => job.numjobs = count(value, 1, 1024).map_err(of)? as u32,
        "direct" => job.direct = count(value, 0, 1).map_err(of)? == 1,
        "buffered" => job.direct = count(value, 0, 1).map_err(of)? == 0,
        _ if PASSED_OVER.contains(&option) => {}
        _ => return Err(format!("option {option} is not read by ftlab")),
    }
    Ok(())
}

fn count(value: &str, min: u64, max: u64) -> Result<u64, String> {
    match value.parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(format!("\"{value}\" is not a whole number from {min} to {max}")),
    }
}

/// Parses a number with one of fio's suffixes.
fn scaled(value: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let unit = unit.to_ascii_lowercase();
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|&n| n < 1 << 62)
}

fn size(value: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("", 1),
        ("b", 1),
        ("k", 1 << 10),
        ("kb", 1 << 10),
        ("kib", 1 << 10),
        ("m", 1 << 20),
        ("mb", 1 << 20),
        ("mib", 1 << 20),
        ("g", 1 << 30),
        ("gb", 1 << 30),
        ("gib", 1 << 30),
        ("t", 1 << 40),
        ("tb", 1 << 40),
        ("tib", 1 << 40),
    ];
    match scaled(value, UNITS) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(format!("\"{value}\" is not a size; write for example 4k or 64m")),
    }
}

fn time(value: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("", 1_000_000_000),
        ("s", 1_000_000_000),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    match scaled(value, UNITS) {
        Some(ns) if ns > 0 => Ok(ns),
        _ => Err(format!("\"{value}\" is not a time; write for example 60 (seconds) or 500ms")),
    }
}

/// Parses one value for both reads and writes, or one value for each, as in "4k,8k".
fn pair(value: &str, read: fn(&str) -> Result<u64, String>) -> Result<[u64; 2], String> {
    match value.split_once(',') {
        None => read(value).map(|both| [both; 2]),
        Some((reads, writes)) => Ok([read(reads.trim())?, read(writes.trim())?]),
    }
}

fn number(value: &str, above: f64, below: f64) -> Result<f64, String> {
    match value.parse::<f64>() {
        Ok(number) if number > above && number < below => Ok(number),
        _ => Err(format!("\"{value}\" is not a number above {above} and below {below}")),
    }
}

fn distribution(value: &str) -> Result<Distribution, String> {
    let (name, rest) = value.split_once(':').unwrap_or((value, ""));
    match name {
        "random" if rest.is_empty() => Ok(Distribution::Random),
        "zipf" => number(rest, 0.0, 10.0).map(Distribution::Zipf),
        "pareto" => number(rest, 0.0, 1.0).map(Distribution::Pareto),
        "zoned" => zones(rest).map(Distribution::Zoned),
        _ => Err(format!("\"{value}\" is not one of random, zipf:THETA, pareto:H, zoned:ACCESSES/SIZE:...")),
    }
}

/// Parses "60/10:30/20:10/70": shares of accesses and of the size, in percent.
fn zones(value: &str) -> Result<Vec<(u64, u64)>, String> {
    let percent = |text: &str| number(text, 0.0, 100.000_1).map(|share| (share * 1e4).round() as u64);
    let mut zones = Vec::new();
    for zone in value.split(':') {
        let (accesses, size) =
            zone.split_once('/').ok_or_else(|| format!("\"{zone}\": a zone is ACCESSES/SIZE in percent"))?;
        zones.push((percent(accesses)?, percent(size)?));
    }
    let sums = zones.iter().fold((0, 0), |sum, zone| (sum.0 + zone.0, sum.1 + zone.1));
    if sums != (1_000_000, 1_000_000) {
        return Err(format!("zones of {value}: accesses and sizes must each come to 100 percent"));
    }
    Ok(zones)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse("a.fio", text).unwrap_err().to_string()
    }

    #[test]
    fn globals_hold_until_a_job_says_otherwise() {
        let text = "; two jobs\n[global]\nrw=randrw\nbs=8k,16K\nsize=64m\nrwmixread=70\n\n[a]\niodepth=4\n\
                    direct=1\n[b]\nrw=write\nnumjobs=3\nfsync=32\nrate=1m\nruntime=90s\ntime_based\n";
        let jobs = parse("a.fio", text).unwrap();
        let [a, b] = &jobs[..] else { panic!("two jobs") };
        assert_eq!((a.name.as_str(), a.read_percent, a.iodepth, a.direct), ("a", 70, 4, true));
        assert_eq!((a.block, a.size, a.pattern), ([8192, 16_384], 64 << 20, Pattern::Random));
        assert_eq!((b.read_percent, b.numjobs, b.fsync, b.rate), (0, 3, 32, [1 << 20; 2]));
        assert_eq!((b.runtime_ns, b.time_based, b.iodepth), (Some(90_000_000_000), true, 1));
    }

    #[test]
    fn jobs_as_people_have_them() {
        let text = "[global]\nioengine=libaio ; async\ngroup_reporting\nfilename=/dev/nvme0n1\nbuffered=0\n\
                    [a]\nsize=1m\nrw=randrw\nrwmixwrite=30\nioengine=io_uring\n";
        assert_eq!(crate::clients::fio::passed_over(text), ["ioengine", "group_reporting", "filename"]);
        let jobs = parse("a.fio", text).unwrap();
        assert_eq!((jobs[0].read_percent, jobs[0].direct), (70, true));
    }

    #[test]
    fn distributions() {
        let of = |value: &str| {
            let text = format!("[a]\nsize=1m\nrandom_distribution={value}\n");
            parse("a.fio", &text).map(|jobs| jobs[0].distribution.clone())
        };
        assert_eq!(of("zipf:1.2").unwrap(), Distribution::Zipf(1.2));
        assert_eq!(of("pareto:0.2").unwrap(), Distribution::Pareto(0.2));
        assert_eq!(
            of("zoned:60/10:40/90").unwrap(),
            Distribution::Zoned(vec![(600_000, 100_000), (400_000, 900_000)])
        );
        assert_eq!(
            of("zoned:60/10:30/90").unwrap_err().to_string(),
            "a.fio:3: random_distribution: zones of 60/10:30/90: accesses and sizes must each come to 100 percent"
        );
        assert!(of("normal:3").unwrap_err().message.contains("is not one of random, zipf:THETA"));
    }

    #[test]
    fn what_is_not_read_is_refused_by_name_and_line() {
        assert_eq!(
            refused("[a]\nsize=1m\nverify=crc32c\n"),
            "a.fio:3: option verify is not read by ftlab\n  it knows rw, bs, iodepth, size, rwmixread, rwmixwrite, \
             random_distribution, fsync, rate, runtime, time_based, numjobs, direct, buffered"
        );
        let all = refused("[a]\nsize=1m\nverify=crc32c\nioengine=libaio\nstonewall\nrw=trim\n");
        assert!(
            all.starts_with("a.fio:3: option verify is not read by ftlab\n  line 5: option stonewall is not")
        );
        assert!(all.contains("\n  line 6: rw: \"trim\" is not one of read"), "{all}");
        assert!(!all.contains("ioengine"));
        assert_eq!(refused("rw=read\n"), "a.fio:1: rw: before any section; begin with [global] or [job]");
        assert!(refused("[a]\nsize=1m\nrw=trim\n").starts_with("a.fio:3: rw: \"trim\" is not one of read"));
        assert!(refused("[a]\nsize=1m\nbs=4q\n").starts_with("a.fio:3: bs: \"4q\" is not a size"));
        assert!(refused("[a]\nsize=1m\niodepth=0\n").starts_with("a.fio:3: iodepth: \"0\" is not a whole"));
        assert!(
            refused("[a]\nsize=1m\nruntime=soon\n").starts_with("a.fio:3: runtime: \"soon\" is not a time")
        );
        assert_eq!(refused("[a]\nrw=read\n"), "a.fio:1: job \"a\" has no size; write for example size=64m");
        assert!(refused("[a]\nsize=1m\ntime_based=1\n").contains("time_based without runtime"));
        assert!(refused("[global]\nrw=read\n").starts_with("a.fio:2: no job"));
        assert!(refused("").starts_with("a.fio:1: no job"));
        assert!(refused("[a\n").starts_with("a.fio:1: \"[a\""));
        assert!(refused("[a]\nsize=4k\nbs=8k\n").contains("bs is larger than size"));
    }
}

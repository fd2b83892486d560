//! Which file each worker of a set of jobs uses, and which part of it.

use std::collections::HashMap;

use super::{Extent, Job, Mix, Sizes};

/// Offsets and sizes given as a share of the drive are multiples of this, so that files consist of whole pages; an
/// offset is also one of the smallest request, as in fio.
const UNIT: u64 = 4096;

const BEYOND: &str = "offset and size reach beyond any drive";

/// What a worker does with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where the worker's part of its first file begins.
    pub first: u64,
    /// Bytes of the worker's part of a file.
    pub bytes: u64,
    /// Bytes from a file to the next, and number of files: they lie one behind another, in one file here.
    pub each: u64,
    pub count: u64,
    /// Number of the worker that makes the file.
    pub owner: u32,
    /// Bytes of all its files.
    pub file: u64,
    /// Whether the file is written before the load, for reads through the page cache.
    pub laid_out: bool,
}

impl Place {
    /// Returns the bytes of the worker's parts of all its files.
    pub fn total(&self) -> u64 {
        self.bytes * self.count
    }
}

/// Returns what each worker does with its files, on a drive of `whole` bytes: the workers of the first job, of the
/// second, and so on.
///
/// # Errors
/// A message that names the job whose sizes do not fit each other.
pub(crate) fn files(jobs: &[Job], whole: u64) -> Result<Vec<Place>, String> {
    let mut places: Vec<Place> = Vec::new();
    let mut named: HashMap<&str, u32> = HashMap::new();
    check_names(jobs)?;
    for job in jobs {
        for worker in 0..job.numjobs {
            let (first, bytes) =
                part_of(job, worker, whole).map_err(|why| format!("job \"{}\": {why}", job.name))?;
            let number = places.len() as u32;
            let owner = job.file.as_deref().map_or(number, |name| *named.entry(name).or_insert(number));
            let laid_out = matches!(job.mix, Mix::Reads | Mix::Mixed(1..)) && !job.direct;
            let each = match job.files {
                1 => first + bytes,
                _ => (first + bytes).next_multiple_of(UNIT),
            };
            places.push(Place { first, bytes, each, count: job.files, owner, file: each, laid_out });
            let made = &mut places[owner as usize];
            made.each = made.each.max(each);
            made.laid_out |= laid_out;
        }
    }
    for at in 0..places.len() {
        places[at].each = places[places[at].owner as usize].each;
        places[at].file = places[at].each.checked_mul(places[at].count).ok_or(BEYOND)?;
    }
    Ok(places)
}

/// Checks that jobs that share a file share all of their files.
fn check_names(jobs: &[Job]) -> Result<(), String> {
    let mut of: HashMap<&str, &Job> = HashMap::new();
    for job in jobs {
        let Some(names) = &job.file else { continue };
        let each = if job.files > 1 { names.split(':') } else { "".split('\0') };
        for name in each.filter(|name| !name.is_empty()).chain([names.as_str()]) {
            let other = *of.entry(name).or_insert(job);
            if (&other.file, other.files) != (&job.file, job.files) {
                return Err(format!(
                    "jobs \"{}\" and \"{}\" share some of their files and not all; name the same ones in both",
                    other.name, job.name
                ));
            }
        }
    }
    Ok(())
}

/// Returns where the part of the file of a job's first worker begins, and the part's bytes.
pub(super) fn part(job: &Job, whole: u64) -> Result<(u64, u64), String> {
    part_of(job, 0, whole)
}

fn part_of(job: &Job, worker: u32, whole: u64) -> Result<(u64, u64), String> {
    let share = |percent: u64| (u128::from(whole) * u128::from(percent) / 100) as u64;
    let bytes_of = |extent: Extent| match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => share(percent),
    };
    let is_share = |extent| matches!(extent, Extent::Percent(_));
    if job.files > 1 && [job.offset, job.offset_increment, job.size].into_iter().any(is_share) {
        return Err("a share of a drive cannot be one of several files; write bytes".into());
    }
    let later = bytes_of(job.offset_increment).saturating_mul(u64::from(worker));
    let first = bytes_of(job.offset).saturating_add(later);
    // As in fio, a share is rounded up, and only a share.
    let unit = match job.offset_align {
        0 => job.block.iter().map(Sizes::least).min().unwrap_or(0).max(UNIT),
        align => align,
    };
    let first = match is_share(job.offset) || is_share(job.offset_increment) {
        true => first.checked_next_multiple_of(unit).unwrap_or(u64::MAX),
        false => first,
    };
    let bytes = match job.size {
        Extent::Bytes(bytes) => bytes / job.files,
        Extent::Percent(percent) => share(percent).min(whole.saturating_sub(first)) / UNIT * UNIT,
    };
    if first.checked_add(bytes).is_none_or(|end| end > 1 << 62) {
        return Err(BEYOND.into());
    }
    let ways = match job.mix {
        Mix::Reads => 0..1,
        Mix::Writes => 1..2,
        Mix::Mixed(_) => 0..2,
        Mix::Trims => 2..3,
        Mix::TrimWrites => 1..3,
    };
    let sizes = &job.block[ways];
    if sizes.iter().any(|sizes| sizes.least() > bytes) {
        return Err("bs is larger than size".into());
    }
    if let Some(strides) = job.strides {
        if strides.range > bytes {
            return Err(format!("zonerange of {} B is larger than size, {bytes} B", strides.range));
        }
        if sizes.iter().any(|sizes| sizes.most() > strides.range) {
            return Err("bs is larger than zonerange".into());
        }
    }
    Ok((first, bytes))
}

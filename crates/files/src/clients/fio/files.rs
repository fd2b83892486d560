//! Which file each worker of a set of jobs uses, and which part of it.

use std::collections::HashMap;

use super::{Extent, Job, Mix};

/// Offsets and sizes given as a share of the drive are multiples of this, so that files consist of whole pages; an
/// offset is also one of the smallest request, as in fio.
const UNIT: u64 = 4096;

/// What a worker does with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where the worker's part of the file begins.
    pub first: u64,
    /// Bytes of the worker's part.
    pub bytes: u64,
    /// Bytes that the worker transfers, once for each of the job's `loops`.
    pub limit: u64,
    /// Number of the worker that makes the file.
    pub owner: u32,
    /// Bytes of the file.
    pub file: u64,
    /// Whether the file is written before the load, for reads through the page cache.
    pub laid_out: bool,
}

/// Returns what each worker does with its file, on a drive of `whole` bytes: the workers of the first job, of the
/// second, and so on.
///
/// # Errors
/// A message that names the job whose sizes do not fit each other.
pub(crate) fn files(jobs: &[Job], whole: u64) -> Result<Vec<Place>, String> {
    let mut places: Vec<Place> = Vec::new();
    let mut named: HashMap<&str, u32> = HashMap::new();
    for job in jobs {
        let (first, bytes, limit) = part(job, whole).map_err(|why| format!("job \"{}\": {why}", job.name))?;
        for _ in 0..job.numjobs {
            let number = places.len() as u32;
            let owner = job.file.as_deref().map_or(number, |name| *named.entry(name).or_insert(number));
            let laid_out = matches!(job.mix, Mix::Reads | Mix::Mixed(1..)) && !job.direct;
            places.push(Place { first, bytes, limit, owner, file: first + bytes, laid_out });
            let place = places[number as usize];
            let made = &mut places[owner as usize];
            made.file = made.file.max(place.file);
            made.laid_out |= laid_out;
        }
    }
    Ok(places)
}

/// Returns where a job's part of its file begins, the part's bytes, and the bytes to transfer.
pub(super) fn part(job: &Job, whole: u64) -> Result<(u64, u64, u64), String> {
    let least = job.block[0].least().min(job.block[1].least());
    let share = |percent: u64| (u128::from(whole) * u128::from(percent) / 100) as u64;
    let first = match job.offset {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => share(percent).next_multiple_of(least.max(UNIT)),
    };
    let bytes = match job.size {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => share(percent).min(whole.saturating_sub(first)) / UNIT * UNIT,
    };
    let largest = job.block[0].most().max(job.block[1].most());
    if bytes < largest {
        return Err("bs is larger than size".into());
    }
    if let Some(strides) = job.strides {
        if strides.range > bytes {
            return Err(format!("zonerange of {} B is larger than size, {bytes} B", strides.range));
        }
        if strides.range < largest {
            return Err("bs is larger than zonerange".into());
        }
    }
    let limit = job.io_size.unwrap_or(bytes);
    if limit < least {
        return Err("bs is larger than io_size".into());
    }
    Ok((first, bytes, limit))
}

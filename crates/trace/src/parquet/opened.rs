//! A Parquet file whose footer was read: the columns of a trace among its own.

use super::footer::{self, Group, Holds, Numbers};
use super::written::Unit;
use crate::lines::{input_error, reason};
use ftlab_core::workload::SourceError;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// The bytes at both ends of a file, and of one whose footer is encrypted.
pub(super) const MAGIC: &[u8; 4] = b"PAR1";
pub(super) const ENCRYPTED: &[u8; 4] = b"PARE";
/// Bytes of the longest footer that is read.
const LONGEST_FOOTER: u64 = 64 << 20;
pub(super) const COLUMNS: [&str; 4] = ["ts_ns", "op", "offset", "size"];
/// Optional columns; that of latencies is the last.
pub(super) const FURTHER: [&str; 4] = ["flags", "stream", crate::depth::NAME, "latency_ns"];
pub(super) const LATENCY: &str = FURTHER[3];

/// A column of a trace.
pub(super) struct Chosen {
    pub(super) name: &'static str,
    pub(super) numbers: Numbers,
    pub(super) optional: bool,
}

/// A file whose footer was read.
pub(super) struct Opened {
    pub(super) path: String,
    pub(super) file: Arc<File>,
    pub(super) columns: Vec<Chosen>,
    pub(super) groups: Arc<[Group]>,
}

impl Opened {
    pub(super) fn new(path: &Path) -> Result<Opened, SourceError> {
        let name = path.to_string_lossy().into_owned();
        let fail = |error: std::io::Error| input_error(&name, &reason(&error));
        let file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if !meta.is_file() {
            return Err(input_error(&name, "not a regular file, so it cannot be read as Parquet"));
        }
        let damaged = |error: String| match error.as_str() {
            footer::ENCRYPTED => input_error(&name, &error),
            _ => input_error(&name, &format!("not a Parquet file: {error}")),
        };
        let footer = footer(&file, meta.len()).map_err(damaged)?;
        let all = footer::columns(&footer).map_err(damaged)?;
        let chosen = chosen(&all).map_err(|text| input_error(&name, &text))?;
        let leaves: Vec<_> = chosen.iter().map(|(leaf, _)| *leaf).collect();
        let groups: Arc<[Group]> = footer::groups(&footer, &leaves).map_err(damaged)?.into();
        if groups.iter().flat_map(|group| &group.parts).any(|part| part.end > meta.len()) {
            return Err(damaged("its data would be beyond its end".into()));
        }
        let columns = chosen.into_iter().map(|(_, column)| column).collect();
        Ok(Opened { path: name, file: Arc::new(file), columns, groups })
    }

    /// Fails if this file lacks a column of the first one, or has one more, or counts time from another moment.
    pub(super) fn check_like(&self, first: &Opened) -> Result<(), SourceError> {
        let kinds = |opened: &Opened| -> Vec<_> {
            let clock = |unit| matches!(unit, Unit::Clock(_));
            opened.columns.iter().map(|column| (column.name, clock(column.numbers.unit))).collect()
        };
        let (own, others) = (kinds(self), kinds(first));
        let differs = own.iter().find(|kind| !others.contains(kind));
        match differs.or(others.iter().find(|kind| !own.contains(kind))) {
            None => Ok(()),
            Some((name, _)) => Err(input_error(
                &self.path,
                &format!(
                    "its column {name} is not as in {}: all files of a trace have the same columns",
                    first.path
                ),
            )),
        }
    }
}

/// Returns the footer's bytes.
fn footer(mut file: &File, length: u64) -> Result<Vec<u8>, String> {
    let mut ends = [0; 12];
    let tail = length.checked_sub(8).filter(|&tail| tail >= 4).ok_or("it is too short")?;
    let mut read = |from, bytes: &mut [u8]| {
        file.seek(SeekFrom::Start(from)).and_then(|_| file.read_exact(bytes)).map_err(|error| reason(&error))
    };
    read(0, &mut ends[..4])?;
    read(tail, &mut ends[4..])?;
    if ends[..4] == *ENCRYPTED {
        return Err(footer::ENCRYPTED.into());
    }
    if ends[..4] != *MAGIC || ends[8..] != *MAGIC {
        return Err("it does not begin and end with PAR1".into());
    }
    let bytes = u64::from(u32::from_le_bytes(ends[4..8].try_into().expect("four bytes")));
    if bytes > LONGEST_FOOTER || bytes + 4 > tail {
        return Err(format!("its footer cannot have {bytes} bytes"));
    }
    let mut footer = vec![0; bytes as usize];
    read(tail - bytes, &mut footer)?;
    Ok(footer)
}

/// Returns the columns of a trace, each with its index among those with values, in the order of [`COLUMNS`], and those
/// of [`FURTHER`] that exist.
fn chosen(columns: &[footer::Column]) -> Result<Vec<(usize, Chosen)>, String> {
    let of =
        |name: &'static str| columns.iter().find(|column| column.name == name).map(|column| (name, column));
    let missing: Vec<_> = COLUMNS.into_iter().filter(|name| of(name).is_none()).collect();
    if !missing.is_empty() {
        const SHOWN: usize = 20;
        let names = columns.iter().take(SHOWN).map(|column| crate::fields::shown(column.name.as_bytes()));
        let names: Vec<_> = names.collect();
        return Err(format!(
            "no column {}; a Parquet trace has {}\n  it has: {}\n  write one with `ftlab trace convert IN OUT.parquet`",
            missing.join(", "),
            COLUMNS.join(", "),
            if names.is_empty() { "none".into() } else { names.join(", ") }
        ));
    }
    let (mut chosen, mut wrong) = (Vec::new(), Vec::new());
    for (name, column) in COLUMNS.into_iter().chain(FURTHER).filter_map(of) {
        let further = FURTHER.contains(&name);
        match column.holds {
            Holds::Numbers(numbers) if fits(name, numbers) => {
                chosen.push((column.leaf, Chosen { name, numbers, optional: column.optional }));
            }
            Holds::Numbers(Numbers { float: true, short, .. }) => {
                wrong.push((format!("{name} (Float{})", if short { 32 } else { 64 }), further));
            }
            Holds::Numbers(_) => wrong.push((format!("{name} (a time)"), further)),
            Holds::Other(kind) => wrong.push((format!("{name} ({kind})"), further)),
        }
    }
    if wrong.is_empty() {
        return Ok(chosen);
    }
    let named: Vec<_> = wrong.iter().map(|(named, _)| named.as_str()).collect();
    Err(match wrong.iter().all(|(_, further)| *further) {
        false => format!(
            "{} must hold whole numbers: ts_ns in nanoseconds, op 0 R 1 W 2 T 3 F, offset and size in bytes",
            named.join(", ")
        ),
        true => format!(
            "{} must hold numbers: flags 1 FUA and 2 a flush before it, stream 0 to 65535, outstanding a count, \
             latency_ns nanoseconds\n  a column of another meaning needs another name",
            named.join(", ")
        ),
    })
}

/// Whether a column may be of such numbers: a time is not a size, and what makes a request is whole.
fn fits(name: &str, numbers: Numbers) -> bool {
    match numbers.unit {
        Unit::One => !numbers.float || FURTHER.contains(&name),
        Unit::Span(_) => name == COLUMNS[0] || name == LATENCY,
        Unit::Clock(_) => name == COLUMNS[0],
    }
}

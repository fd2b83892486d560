//! Parquet traces: ftlab's own columns `ts_ns`, `op`, `offset`, `size` and perhaps `flags`, `stream`, `outstanding`
//! and `latency_ns`, found by name.
//!
//! A file is read a few rows at a time, with one page of each column in memory, so that the memory used depends
//! neither on its length nor on that of its row groups. Only the part of the format that columns of whole numbers need
//! is read. No length in a file is trusted: what is allocated for it is bounded.

mod column;
mod decode;
mod footer;
mod page;
mod thrift;

use crate::chunks::{Chunk, Chunks, MakeChunks};
use crate::lines::{input_error, reason};
use crate::options::{GoOn, Options};
use column::Column;
use footer::{Group, Holds};
use ftlab_core::workload::SourceError;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

/// Number of rows delivered at a time.
const ROWS: u64 = 4096;
/// The bytes at both ends of a file.
const MAGIC: &[u8; 4] = b"PAR1";
/// Bytes of the longest footer that is read.
const LONGEST_FOOTER: u64 = 64 << 20;
const COLUMNS: [&str; 4] = ["ts_ns", "op", "offset", "size"];
/// Index of the column `op`.
const OP: usize = 1;
/// Optional columns.
const FURTHER: [&str; 4] = ["flags", "stream", crate::depth::NAME, "latency_ns"];

/// Files with pages of version 1 and 2 that use every encoding and compression
/// (`tests/python/test_parquet.py` states their content).
pub(crate) const SAMPLES: [&[u8]; 2] =
    [include_bytes!("version-1.parquet"), include_bytes!("version-2.parquet")];

/// Returns whether the file begins as a Parquet file does; false if it cannot be read.
pub(crate) fn is_one(path: &str) -> bool {
    let mut magic = [0; 4];
    // Checking a pipe must not consume its beginning.
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file())
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && magic == *MAGIC
}

/// Opens a Parquet file; returns a function that reads its rows, from the start at each call.
///
/// # Errors
/// [`SourceError::Input`] if the file is not a Parquet file, or lacks a column.
pub(crate) fn open(path: &str, options: &Options) -> Result<MakeChunks, SourceError> {
    let fail = |error: std::io::Error| input_error(path, &reason(&error));
    let file = File::open(path).map_err(fail)?;
    let meta = file.metadata().map_err(fail)?;
    if !meta.is_file() {
        return Err(input_error(path, "not a regular file, so it cannot be read as Parquet"));
    }
    let damaged = |error: String| input_error(path, &format!("not a Parquet file: {error}"));
    let footer = footer(&file, meta.len()).map_err(damaged)?;
    let columns = footer::columns(&footer).map_err(damaged)?;
    let chosen = chosen(&columns).map_err(|text| input_error(path, &text))?;
    let groups: Arc<[Group]> = footer::groups(&footer, &chosen).map_err(damaged)?.into();
    if groups.iter().flat_map(|group| &group.parts).any(|part| part.end > meta.len()) {
        return Err(damaged("its data would be beyond its end".into()));
    }
    let (path, file, go_on) = (path.to_owned(), Arc::new(file), options.go_on.clone());
    Ok(Box::new(move || {
        let column = |column: &footer::Column| match column.holds {
            Holds::Whole { short, unsigned } => Column::new(file.clone(), short, unsigned, column.optional),
            Holds::Other(_) => unreachable!("columns of other kinds are refused"),
        };
        let mut rows = Rows {
            path: path.clone(),
            groups: groups.clone(),
            group: 0,
            left: 0,
            row: 0,
            columns: chosen.iter().map(column).collect(),
            names: chosen.iter().map(|column| column.name.clone()).collect(),
            values: vec![0; ROWS as usize],
            go_on: go_on.clone(),
        };
        let chunks: Chunks = Box::new(move |chunk| rows.fill(chunk));
        chunks
    }))
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

/// Returns the columns of a trace, in the order of [`COLUMNS`], and those of [`FURTHER`] that exist.
fn chosen(columns: &[footer::Column]) -> Result<Vec<footer::Column>, String> {
    let of = |name: &str| columns.iter().find(|column| column.name == name);
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
    let mut chosen: Vec<_> = COLUMNS.into_iter().filter_map(of).cloned().collect();
    let wrong = chosen.iter().filter_map(|column| match column.holds {
        Holds::Other(kind) => Some(format!("{} ({kind})", column.name)),
        Holds::Whole { .. } => None,
    });
    let wrong: Vec<_> = wrong.collect();
    if !wrong.is_empty() {
        return Err(format!(
            "{} must hold whole numbers: ts_ns in nanoseconds, op 0 R 1 W 2 T 3 F, offset and size in bytes",
            wrong.join(", ")
        ));
    }
    let whole = |column: &&footer::Column| matches!(column.holds, Holds::Whole { .. });
    chosen.extend(FURTHER.into_iter().filter_map(of).filter(whole).cloned());
    Ok(chosen)
}

/// The rows of one pass over the file.
struct Rows {
    path: String,
    groups: Arc<[Group]>,
    /// Index of the next row group, and the number of rows left in the current one.
    group: usize,
    left: u64,
    /// Number of rows delivered so far.
    row: u64,
    columns: Vec<Column>,
    names: Vec<String>,
    values: Vec<i64>,
    go_on: GoOn,
}

impl Rows {
    /// Reads the next rows; returns `false` if there are none.
    fn fill(&mut self, chunk: &mut Chunk) -> Result<bool, SourceError> {
        while self.left == 0 {
            let Some(group) = self.groups.get(self.group) else { return Ok(false) };
            self.group += 1;
            self.left = group.rows;
            for (column, &part) in self.columns.iter_mut().zip(&group.parts) {
                column.start(part);
            }
        }
        if !(self.go_on.0)(false) {
            return Err(SourceError::Interrupted);
        }
        let rows = self.left.min(ROWS) as usize;
        for index in 0..self.columns.len() {
            let lacking = self.columns[index].read(&mut self.values[..rows]).map_err(|error| {
                let name = &self.names[index];
                input_error(&self.path, &format!("cannot be read: column {name}: {error}"))
            })?;
            self.take(index, rows, lacking, chunk)?;
        }
        self.left -= rows as u64;
        self.row += rows as u64;
        Ok(true)
    }

    /// Stores the values of an optional column; refuses a row that lacks a latency.
    fn take_further(
        &self,
        index: usize,
        values: &[i64],
        lacking: Option<usize>,
        chunk: &mut Chunk,
    ) -> Result<(), SourceError> {
        let target = match FURTHER.iter().position(|name| self.names[index] == *name) {
            Some(0) => {
                chunk.flags.clear();
                chunk.flags.extend(values.iter().map(|&value| value as u8));
                return Ok(());
            }
            Some(1) => &mut chunk.stream,
            Some(2) => &mut chunk.outstanding,
            _ => &mut chunk.latency_ns,
        };
        target.clear();
        target.extend(values);
        match lacking.filter(|_| self.names[index] == FURTHER[3]) {
            None => Ok(()),
            Some(row) => {
                let place = format!("{}: row {}", self.path, self.row + 1 + row as u64);
                Err(input_error(&place, "latency_ns is empty; it must be -1 where it is not known"))
            }
        }
    }

    /// Stores the values of a column; refuses a row that lacks one.
    fn take(
        &self,
        index: usize,
        rows: usize,
        lacking: Option<usize>,
        chunk: &mut Chunk,
    ) -> Result<(), SourceError> {
        let values = &self.values[..rows];
        let bytes = values.iter().map(|&value| value as u8);
        let Some(&name) = COLUMNS.get(index) else {
            return self.take_further(index, values, lacking, chunk);
        };
        let unsigned = self.columns[index].unsigned;
        let most = match index {
            OP => u64::from(u8::MAX),
            _ if unsigned => i64::MAX as u64,
            // Negative values are refused where rows are checked.
            _ => u64::MAX,
        };
        let unfit = || values.iter().position(|&value| value as u64 > most);
        // Without an early exit from the loop, many values are compared at once.
        let any = values.iter().fold(false, |any, &value| any | (value as u64 > most));
        if let Some(row) = lacking.or_else(|| any.then(unfit).flatten()) {
            let shown = match values[row] {
                _ if lacking.is_some() => "empty".to_owned(),
                value if unsigned => (value as u64).to_string(),
                value => value.to_string(),
            };
            let allowed = if index == OP { "0 R, 1 W, 2 T or 3 F" } else { "a number up to 2^63 - 1" };
            let place = format!("{}: row {}", self.path, self.row + 1 + row as u64);
            return Err(input_error(&place, &format!("{name} is {shown}; it must be {allowed}")));
        }
        if index == OP {
            chunk.op.clear();
            chunk.op.extend(bytes);
        } else {
            let target = match index {
                0 => &mut chunk.ts_ns,
                2 => &mut chunk.offset,
                _ => &mut chunk.size,
            };
            target.clear();
            target.extend_from_slice(values);
        }
        Ok(())
    }
}

//! Parquet traces: ftlab's own columns `ts_ns`, `op`, `offset`, `size` and perhaps `flags`, `stream`, `outstanding`
//! and `latency_ns`, found by name.
//!
//! A trace may be several files, as many programs write them into a folder. Each is read a few rows at a time, with one
//! page of each column in memory, so that the memory used depends neither on its length nor on that of its row groups.
//! Only the part of the format that columns of numbers need is read. No length in a file is trusted: what is allocated
//! for it is bounded.

mod column;
mod decode;
mod footer;
mod opened;
mod page;
mod rows;
mod thrift;
mod written;

use crate::chunks::{Chunk, Chunks, MakeChunks};
use crate::lines::input_error;
use crate::options::Options;
use crate::series::files;
use crate::text::Stamps;
use ftlab_core::workload::SourceError;
use opened::{COLUMNS, ENCRYPTED, FURTHER, MAGIC, Opened};
use rows::Rows;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use written::Unit;

/// Files with pages of version 1 and 2 that use every encoding and compression
/// (`tests/python/test_parquet.py` states their content).
pub(crate) const SAMPLES: [&[u8]; 2] =
    [include_bytes!("version-1.parquet"), include_bytes!("version-2.parquet")];

/// Returns whether the file, or the first of those that the name stands for, begins as a Parquet file does; false if it
/// cannot be read.
pub(crate) fn is_one(path: &str) -> bool {
    let mut magic = [0; 4];
    // Checking a pipe must not consume its beginning.
    files(path).is_ok_and(|files| {
        files.first().is_some_and(|first| {
            first.is_file() && File::open(first).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        })
    }) && [MAGIC, ENCRYPTED].contains(&&magic)
}

/// Opens Parquet files; returns a function that reads their rows, from the start at each call, and what stamps mean.
///
/// # Errors
/// [`SourceError::Input`] if the first is not a Parquet file, or lacks a column.
pub(crate) fn open(path: &str, options: &Options) -> Result<(MakeChunks, Stamps), SourceError> {
    let all: Arc<[_]> = files(path)?.into();
    for folder in all.iter().flat_map(|file: &PathBuf| file.parent().into_iter().flat_map(Path::components)) {
        let name = folder.as_os_str().to_string_lossy();
        if COLUMNS
            .iter()
            .chain(&FURTHER)
            .any(|column| name.strip_prefix(column).is_some_and(|rest| rest.starts_with('=')))
        {
            let what = format!(
                "the folder {name} holds a column that its files lack: write them without partitions"
            );
            return Err(input_error(path, &what));
        }
    }
    let first = Arc::new(Opened::new(&all[0])?);
    let stamps = match first.columns[0].numbers.unit {
        Unit::Clock(_) => Stamps::Clock,
        Unit::One | Unit::Span(_) => Stamps::Own,
    };
    let go_on = options.go_on.clone();
    let make = move || {
        let (all, first, go_on) = (all.clone(), first.clone(), go_on.clone());
        let mut rows = Rows::new(&first, go_on.clone());
        let mut next = 1;
        let chunks: Chunks = Box::new(move |chunk: &mut Chunk| {
            while !rows.fill(chunk)? {
                let Some(path) = all.get(next) else { return Ok(false) };
                next += 1;
                let opened = Opened::new(path)?;
                opened.check_like(&first)?;
                rows = Rows::new(&opened, go_on.clone());
            }
            Ok(true)
        });
        chunks
    };
    Ok((Box::new(make), stamps))
}

//! The rows of one Parquet file, a few at a time.

use super::column::Column;
use super::footer::Group;
use super::opened::{COLUMNS, Chosen, FURTHER, LATENCY, Opened};
use crate::chunks::Chunk;
use crate::lines::input_error;
use crate::options::GoOn;
use ftlab_core::workload::SourceError;
use std::sync::Arc;

/// Number of rows delivered at a time.
const ROWS: u64 = 4096;
/// Index of the column `op`.
const OP: usize = 1;

/// The rows of one pass over a file.
pub(super) struct Rows {
    path: String,
    groups: Arc<[Group]>,
    /// Index of the next row group, and the number of rows left in the current one.
    group: usize,
    left: u64,
    /// Number of rows delivered so far.
    row: u64,
    columns: Vec<Column>,
    names: Vec<&'static str>,
    values: Vec<i64>,
    go_on: GoOn,
}

impl Rows {
    /// Starts at the first row.
    pub(super) fn new(opened: &Opened, go_on: GoOn) -> Rows {
        let column = |column: &Chosen| {
            // No flags, no stream; a latency that is not known.
            let missing = if column.name == LATENCY { -1 } else { 0 };
            let fractions = column.name == LATENCY;
            Column::new(opened.file.clone(), column.numbers, column.optional, missing, fractions)
        };
        Rows {
            path: opened.path.clone(),
            groups: opened.groups.clone(),
            group: 0,
            left: 0,
            row: 0,
            columns: opened.columns.iter().map(column).collect(),
            names: opened.columns.iter().map(|column| column.name).collect(),
            values: vec![0; ROWS as usize],
            go_on,
        }
    }

    /// Reads the next rows; returns `false` if there are none.
    pub(super) fn fill(&mut self, chunk: &mut Chunk) -> Result<bool, SourceError> {
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

    /// Stores the values of an optional column.
    fn take_further(&self, index: usize, values: &[i64], chunk: &mut Chunk) {
        let target = match FURTHER.iter().position(|name| self.names[index] == *name) {
            Some(0) => {
                chunk.flags.clear();
                chunk.flags.extend(values.iter().map(|&value| value as u8));
                return;
            }
            Some(1) => &mut chunk.stream,
            Some(2) => &mut chunk.outstanding,
            _ => &mut chunk.latency_ns,
        };
        target.clear();
        target.extend(values);
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
            self.take_further(index, values, chunk);
            return Ok(());
        };
        let unsigned = self.columns[index].numbers.unsigned;
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

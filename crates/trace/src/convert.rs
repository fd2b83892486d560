//! Writes a trace as ftlab's own csv.

use crate::atomic::{OutputError, OutputFile};
use ftlab_core::workload::{Record, Source, SourceError};
use std::io::Write;
use std::path::Path;

/// Writes all requests of `source` to the file `out` as csv (`time_ns,op,offset,size`, `stream` where the source has
/// streams, and `latency_ns` where it has completions; op WF for a write with FUA) and returns their number. The file
/// appears once it is complete.
///
/// # Errors
/// The source's error, or [`SourceError::Input`] if the file cannot be written.
pub fn convert_csv(source: &mut dyn Source, out: &Path) -> Result<u64, SourceError> {
    let fail = |error: OutputError| SourceError::Input(error.to_string());
    let mut file = OutputFile::create(out).map_err(fail)?;
    let rows = match write_rows(source, &mut file) {
        Ok(rows) => rows,
        Err(Failure::Source(error)) => return Err(error),
        Err(Failure::Write(error)) => return Err(fail(OutputError::new(out, error))),
    };
    file.finish().map_err(fail)?;
    Ok(rows)
}

/// Does the same as [`convert_csv`], but writes to `out`, which the caller buffers; `name` appears in messages.
///
/// # Errors
/// The source's error, or [`SourceError::Input`] if writing fails.
pub fn write_csv(source: &mut dyn Source, name: &str, out: &mut dyn Write) -> Result<u64, SourceError> {
    let rows = write_rows(source, out).and_then(|rows| {
        out.flush()?;
        Ok(rows)
    });
    rows.map_err(|failure| match failure {
        Failure::Source(error) => error,
        Failure::Write(error) => SourceError::Input(OutputError::new(Path::new(name), error).to_string()),
    })
}

enum Failure {
    Source(SourceError),
    Write(std::io::Error),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Write(error)
    }
}

fn write_rows(source: &mut dyn Source, out: &mut dyn Write) -> Result<u64, Failure> {
    let streams = source.has_streams().map_err(Failure::Source)?;
    out.write_all(b"time_ns,op,offset,size")?;
    let completions = source.has_completions().map_err(Failure::Source)?;
    for (there, name) in [(streams, &b",stream"[..]), (completions, b",latency_ns"), (true, b"\n")] {
        out.write_all(if there { name } else { b"" })?;
    }
    let mut rows = 0;
    let mut line = Vec::with_capacity(80);
    let mut digits = itoa::Buffer::new();
    while let Some(record) = source.next().map_err(Failure::Source)? {
        line.clear();
        line.extend_from_slice(digits.format(record.time_ns).as_bytes());
        line.extend_from_slice(&[b',', record.op.letter() as u8]);
        if record.flags & Record::FUA != 0 {
            line.push(b'F');
        }
        line.push(b',');
        line.extend_from_slice(digits.format(record.offset).as_bytes());
        line.push(b',');
        line.extend_from_slice(digits.format(record.size).as_bytes());
        if streams {
            line.push(b',');
            line.extend_from_slice(digits.format(record.stream).as_bytes());
        }
        if completions {
            line.push(b',');
            // Nothing between commas: not known.
            if record.latency_ns != Record::UNKNOWN {
                line.extend_from_slice(digits.format(record.latency_ns).as_bytes());
            }
        }
        line.push(b'\n');
        out.write_all(&line)?;
        rows += 1;
    }
    Ok(rows)
}

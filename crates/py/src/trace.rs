//! Traces without a device: figures, first rows, conversion.

use std::path::PathBuf;
use std::sync::Mutex;

use ftlab_core::workload::{Record, Source, SourceSummary};
use ftlab_trace::Completions;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde_json::json;

use crate::columns::Column;
use crate::config::Config;
use crate::errors::{Fault, guard};
use crate::source::{self, Raised, Watched};

fn trace_of(config: &Config) -> Result<&str, Fault> {
    let trace = config.resolved.settings.workload.trace.as_deref();
    trace.ok_or_else(|| Fault::User("no trace: workload.trace is not set".into()))
}

/// Returns the figures of a configuration's trace, in JSON.
#[pyfunction]
pub fn trace_info(py: Python<'_>, config: &Config) -> PyResult<String> {
    let work = || {
        let path = trace_of(config)?;
        let raised = Raised::default();
        let options = source::no_device(&config.resolved.settings, &raised);
        let info = ftlab_trace::info(path, &options).map_err(|error| raised.explain(error.into()))?;
        Ok(serde_json::to_string(&info).expect("figures are numbers and texts"))
    };
    Ok(py.detach(|| guard(work))?)
}

/// Returns reasons to doubt a configuration's trace, in a sentence or two each; the trace is read once, as a run reads
/// it. For `progress`, see `run`.
#[pyfunction]
#[pyo3(signature = (config, *, progress=None))]
pub fn trace_check(py: Python<'_>, config: &Config, progress: Option<Py<PyAny>>) -> PyResult<Vec<String>> {
    let settings = &config.resolved.settings;
    let work = || {
        let mut watched = Watched::new(source::once(settings)?, progress);
        let doubts = ftlab_trace::doubts(&mut watched, settings.workload.replay);
        doubts.map_err(|error| watched.explain(error.into()))
    };
    Ok(py.detach(|| guard(work))?)
}

/// Returns the files of a trace, in order: several if a `*` in its name stands for numbers.
#[pyfunction]
pub fn trace_files(path: &str) -> PyResult<Vec<std::path::PathBuf>> {
    Ok(guard(|| ftlab_trace::files(path).map_err(|error| Fault::User(error.to_string())))?)
}

/// The time of a request in ns, the letter of its operation (WF: a write with FUA), offset and size in bytes, stream.
type Shown = (u64, String, u64, u64, u16);

/// Returns the first `rows` requests of a configuration's trace, and whether requests of this trace may have streams.
#[pyfunction]
pub fn trace_head(py: Python<'_>, config: &Config, rows: usize) -> PyResult<(Vec<Shown>, bool)> {
    let work = || {
        let path = trace_of(config)?;
        let raised = Raised::default();
        let options = source::no_device(&config.resolved.settings, &raised);
        let head = ftlab_trace::head(path, &options, rows);
        let (records, streams) = head.map_err(|error| raised.explain(error.into()))?;
        let fua = |record: &Record| if record.flags & Record::FUA != 0 { "F" } else { "" };
        let op = |record: &Record| format!("{}{}", record.op.letter(), fua(record));
        Ok((records.iter().map(|r| (r.time_ns, op(r), r.offset, r.size, r.stream)).collect(), streams))
    };
    Ok(py.detach(|| guard(work))?)
}

/// Writes a configuration's workload as csv to `path`; returns what was read and dropped, in JSON. For `progress`, see
/// `run`.
#[pyfunction]
#[pyo3(signature = (config, path, *, progress=None))]
pub fn trace_convert_csv(
    py: Python<'_>,
    config: &Config,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let work = || {
        let opened = source::without_device(&config.resolved.settings, Completions::Kept)?;
        let mut watched = Watched::new(opened, progress);
        let converted = ftlab_trace::convert_csv(&mut watched, &path);
        converted.map_err(|error| watched.explain(error.into()))?;
        Ok(summary_json(&watched))
    };
    Ok(py.detach(|| guard(work))?)
}

fn summary_json(watched: &Watched) -> String {
    let SourceSummary { dropped, out_of_order, .. } = watched.summary();
    let (requests, last_ns) = (watched.requests, watched.last_ns);
    json!({"requests": requests, "last_ns": last_ns, "dropped": dropped, "out_of_order": out_of_order})
        .to_string()
}

/// Columns of some requests: ts_ns, op, offset, size, flags, stream and perhaps latency_ns (2^64 - 1: not known).
type Columns = Vec<Column>;

/// An iterator over a workload, in chunks of columns.
#[pyclass(frozen, module = "ftlab._core")]
pub struct TraceChunks {
    source: Mutex<Watched>,
    rows: usize,
    /// Whether requests may have streams.
    #[pyo3(get)]
    has_streams: bool,
    /// Whether there is a column of latencies.
    #[pyo3(get)]
    has_completions: bool,
}

/// Reads a configuration's workload in chunks of at most `rows` requests; `completions` asks for their latencies as
/// well. For `progress`, see `run`.
#[pyfunction]
#[pyo3(signature = (config, rows, *, completions=false, progress=None))]
pub fn trace_chunks(
    py: Python<'_>,
    config: &Config,
    rows: usize,
    completions: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<TraceChunks> {
    let work = || {
        let wanted = if completions { Completions::Kept } else { Completions::Ignored };
        let opened = source::without_device(&config.resolved.settings, wanted)?;
        let mut watched = Watched::new(opened, progress);
        let has_streams = watched.has_streams().map_err(|error| watched.explain(error.into()))?;
        let has = completions && watched.has_completions().map_err(|error| watched.explain(error.into()))?;
        let source = Mutex::new(watched);
        Ok(TraceChunks { source, rows: rows.max(1), has_streams, has_completions: has })
    };
    Ok(py.detach(|| guard(work))?)
}

#[pymethods]
impl TraceChunks {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let columns = py.detach(|| guard(|| self.read()))?;
        columns.map(|columns| PyTuple::new(py, columns)).transpose()
    }

    /// Returns a summary of what has been read and dropped, in JSON.
    fn summary(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let source = self.source.lock().expect("no panic while the lock is held");
            summary_json(&source)
        })
    }
}

impl TraceChunks {
    fn read(&self) -> Result<Option<Columns>, Fault> {
        let mut source = self.source.lock().expect("no panic while the lock is held");
        let (mut ts_ns, mut op) = (Vec::with_capacity(self.rows), Vec::with_capacity(self.rows));
        let (mut offset, mut size) = (Vec::with_capacity(self.rows), Vec::with_capacity(self.rows));
        let mut flags = Vec::with_capacity(self.rows);
        let mut stream = Vec::with_capacity(self.rows);
        let mut latency_ns = Vec::new();
        while ts_ns.len() < self.rows {
            let next = source.next().map_err(Fault::from);
            let Some(record) = next.map_err(|error| source.explain(error))? else { break };
            ts_ns.push(record.time_ns);
            op.push(record.op as u8);
            offset.push(record.offset);
            size.push(record.size);
            flags.push(u32::from(record.flags));
            stream.push(u32::from(record.stream));
            if self.has_completions {
                latency_ns.push(record.latency_ns);
            }
        }
        if ts_ns.is_empty() {
            return Ok(None);
        }
        let mut columns: Columns =
            vec![ts_ns.into(), op.into(), offset.into(), size.into(), flags.into(), stream.into()];
        if self.has_completions {
            columns.push(latency_ns.into());
        }
        Ok(Some(columns))
    }
}

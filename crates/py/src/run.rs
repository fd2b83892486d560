//! One simulation, started from Python.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use ftlab_config::Resolved;
use ftlab_core::metrics::Report;
use ftlab_core::sim::{self, Prepared, RunError};
use ftlab_embed::Fields;
use ftlab_files::settings::Settings;
use ftlab_trace::atomic::OutputError;
use ftlab_trace::timeline::{self, Timeline, Window};
use ftlab_trace::{Further, RequestsCsv};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::config::Config;
use crate::errors::{Fault, guard};
use crate::load::Load;
use crate::observe::{Pulse, Rows, Watch};
use crate::source::Raised;
use crate::state::{self, Device};

/// What a run measured.
#[pyclass(frozen, module = "ftlab._core")]
pub struct RunResult {
    /// The result, in JSON. The time in its engine block includes the reading of the trace.
    #[pyo3(get)]
    json: String,
    /// The part of the engine block's time that was spent on preparing the device, before time 0, seconds.
    #[pyo3(get)]
    prepare_s: f64,
    /// Number of events in the timeline, and when the timeline stopped because it reached its limit, ns.
    #[pyo3(get)]
    timeline: Option<(u64, Option<u64>)>,
    /// The time in which a backlog made reads or writes wait for more than a second, and the time over which those
    /// requests arrived, ns.
    #[pyo3(get)]
    behind: (u64, u64),
    /// Number of logical pages read that no request had ever written.
    #[pyo3(get)]
    unwritten: u64,
    rows: Mutex<Option<Rows>>,
}

impl RunResult {
    /// Makes the result of a simulation in progress.
    pub fn new(json: String, rows: Option<Rows>) -> RunResult {
        RunResult {
            json,
            prepare_s: 0.0,
            timeline: None,
            behind: (0, 0),
            unwritten: 0,
            rows: Mutex::new(rows),
        }
    }
}

#[pymethods]
impl RunResult {
    /// Returns the per-request columns by name; `None` if they were not kept or have been taken.
    fn take_columns<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let rows = self.rows.lock().expect("no panic while the lock is held").take();
        rows.map(|rows| rows.into_dict(py)).transpose()
    }
}

/// Runs a configuration; the GIL is released meanwhile.
///
/// `chunks` is a function that returns an iterator of `(ts_ns, op, offset, size, flags)` buffers, and perhaps a further
/// one of streams; it is called once for each pass over the caller's rows. `requests_csv` is the per-request file, and
/// `timeline` the file of the timeline, which covers `timeline_window`, or a limited number of events. `collect` keeps
/// the per-request columns; `check` verifies every invariant after every operation. `progress(requests)` is called
/// about every 50 ms, and stops the run by returning `False`; `preconditioning(pages, rounds, waf)` is called in the
/// same way before time 0. `save_state` is the file for the device's state at time 0. The file `load_state`, or the
/// device in memory `device`, takes the place of preconditioning. With `only`, the tenant of this name runs alone: the
/// others send nothing.
#[pyfunction]
#[pyo3(signature = (
    config, *, chunks=None, requests_csv=None, timeline=None, timeline_window=None, collect=false, check=false,
    progress=None, preconditioning=None, save_state=None, load_state=None, device=None, only=None
))]
#[allow(clippy::too_many_arguments)] // keywords in Python
pub fn run(
    py: Python<'_>,
    config: &Config,
    chunks: Option<Py<PyAny>>,
    requests_csv: Option<PathBuf>,
    timeline: Option<PathBuf>,
    timeline_window: Option<&str>,
    collect: bool,
    check: bool,
    progress: Option<Py<PyAny>>,
    preconditioning: Option<Py<PyAny>>,
    save_state: Option<PathBuf>,
    load_state: Option<PathBuf>,
    device: Option<Py<Device>>,
    only: Option<String>,
) -> PyResult<RunResult> {
    let resolved = &config.resolved;
    let settings = &resolved.settings;
    let window = timeline_window.map(window).transpose()?;
    let work = move || {
        let start = Instant::now();
        let (mut load, raised) = Load::open(settings, chunks, only.as_deref())?;
        let further = further(settings, &mut load, &raised)?;
        let csv = |path: &PathBuf| RequestsCsv::create(path, further);
        let csv = requests_csv.as_ref().map(csv).transpose().map_err(no_csv)?;
        let timeline = timeline
            .map(|path| Timeline::create(&path, sim::Tracks::new(settings), window, timeline::MOST_EVENTS))
            .transpose()
            .map_err(no_timeline)?;
        let rows = collect.then(|| Rows::new(further));
        let pulse = Pulse::new(progress).with_preconditioning(preconditioning);
        let mut watch = Watch { rows, csv, timeline, pulse };
        let before = start.elapsed();
        let prepared = match (&device, &load_state) {
            (Some(device), _) => device.get().at_time_0(resolved)?,
            (None, Some(path)) => state::load(resolved, path, check)?,
            (None, None) => Prepared::new(settings, &mut watch, check)
                .map_err(|error| explain(error, &mut watch, &raised))?,
        };
        let prepare = start.elapsed() - before;
        if let Some(path) = &save_state {
            ftlab_embed::save(resolved, &prepared, path)?;
        }
        let outcome = load.run(settings, prepared, &mut watch);
        let report = outcome.map_err(|error| explain(error, &mut watch, &raised))?;
        let result = ended(resolved, report, watch, start)?;
        Ok(RunResult { prepare_s: prepare.as_secs_f64(), ..result })
    };
    Ok(py.detach(|| guard(work))?)
}

/// Returns the columns that the rows of a run have besides the usual ones.
fn further(settings: &Settings, load: &mut Load, raised: &Raised) -> Result<Further, Fault> {
    let stream = load.has_streams();
    let stream = stream.map_err(|error| raised.explain(error.into()))?;
    Ok(Further { buffered: settings.device.buffer.any(), stream })
}

/// Closes the files of a finished run, and returns its result.
fn ended(resolved: &Resolved, report: Report, mut watch: Watch, start: Instant) -> Result<RunResult, Fault> {
    let drawn = watch.timeline.take().map(Timeline::finish).transpose().map_err(no_timeline)?;
    watch.csv.take().map(RequestsCsv::finish).transpose().map_err(no_csv)?;
    if let Some(rows) = &mut watch.rows {
        rows.sort();
    }
    Ok(RunResult {
        json: Fields::json(resolved, &report, start.elapsed().as_secs_f64()).to_string(),
        prepare_s: 0.0,
        timeline: drawn.map(|drawn| (drawn.events, drawn.cut_ns)),
        behind: (report.behind.ns, report.behind.arrivals_ns),
        unwritten: report.unwritten,
        rows: Mutex::new(watch.rows),
    })
}

/// Prepares a device once, for several runs; for `preconditioning` and `load_state`, see [`run`].
#[pyfunction]
#[pyo3(signature = (config, *, preconditioning=None, load_state=None))]
pub fn prepare(
    py: Python<'_>,
    config: &Config,
    preconditioning: Option<Py<PyAny>>,
    load_state: Option<PathBuf>,
) -> PyResult<Device> {
    let resolved = &config.resolved;
    let work = move || {
        let pulse = Pulse::new(None).with_preconditioning(preconditioning);
        let mut watch = Watch { rows: None, csv: None, timeline: None, pulse };
        let prepared = match &load_state {
            Some(path) => state::load(resolved, path, false)?,
            None => Prepared::new(&resolved.settings, &mut watch, false)
                .map_err(|error| explain(error, &mut watch, &Raised::default()))?,
        };
        Ok(Device::new(resolved, prepared))
    };
    Ok(py.detach(|| guard(work))?)
}

fn unwritable(error: &OutputError, which: &'static str) -> Fault {
    Fault::Unwritable(error.io_error().raw_os_error().unwrap_or(0), error.to_string(), which)
}

fn no_csv(error: OutputError) -> Fault {
    unwritable(&error, "requests_csv")
}

fn no_timeline(error: OutputError) -> Fault {
    unwritable(&error, "timeline")
}

fn window(text: &str) -> Result<Window, Fault> {
    Window::parse(text).map_err(|why| Fault::User(format!("--timeline-window {text}: {why}")))
}

/// Returns why the simulation ended early: what the observer or Python code reports takes precedence over
/// "interrupted".
fn explain(error: RunError, watch: &mut Watch, raised: &Raised) -> Fault {
    let fault = raised.explain(error.into());
    if !matches!(fault, Fault::Interrupted) {
        return fault;
    }
    match watch.pulse.take_stop() {
        Some(Some(error)) => return Fault::Python(error),
        Some(None) => return Fault::Interrupted,
        None => {}
    }
    // Nobody asked for the run to end: a file could not be written.
    if let Some(error) = watch.timeline.take().and_then(|timeline| timeline.finish().err()) {
        return no_timeline(error);
    }
    watch.csv.take().and_then(|csv| csv.finish().err()).map_or(fault, no_csv)
}

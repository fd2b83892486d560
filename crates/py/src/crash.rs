//! Power cuts, started from Python.

use ftlab_core::workload::{Source, SourceError};
use ftlab_crash::{CrashError, Cuts, Options, Requests, Summary, crash as cut_power};
use ftlab_files::settings::Settings;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::config::Config;
use crate::errors::{Fault, guard};
use crate::observe::Pulse;
use crate::source::{self, Raised};

/// Upper bound on the number of NAND pages of a device whose power is cut, since each recovery reads all of them.
const MOST_PAGES: u64 = 1 << 24;

/// Cuts the power of a configuration's device again and again; returns the result without its engine block, in JSON.
/// Its `fault` is `null`, or holds the number of the cut after which the device broke a promise, and what it broke.
///
/// There are `cuts` random cuts, each after `operations` programs and erases on average; with `at`, the cuts come
/// after these numbers of programs and erases since time 0. Without a workload the requests are random.
/// `progress(cuts)` is called about every 50 ms; `False` stops the campaign.
#[pyfunction]
#[pyo3(signature = (config, *, cuts, operations, at=None, progress=None))]
pub fn crash(
    py: Python<'_>,
    config: &Config,
    cuts: u64,
    operations: u64,
    at: Option<Vec<u64>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let resolved = &config.resolved;
    let settings = &resolved.settings;
    let work = move || {
        let seed = settings.seed;
        if settings.flash.pages() > MOST_PAGES {
            return Err(Fault::User(format!(
                "a device of {} pages is too large for power cuts, after which every page is read; choose at most \
                 {MOST_PAGES}: the preset crash, or for example --set flash.blocks_per_plane=16",
                settings.flash.pages()
            )));
        }
        let cuts = at.map_or(Cuts::Random { count: cuts, mean: operations }, Cuts::At);
        let options = Options { cuts, seed, flaw: Default::default() };
        let raised = Raised::default();
        let mut last = Summary::default();
        let mut pulse = Pulse::new(progress);
        let mut beat = |summary: &Summary| {
            last = summary.clone();
            pulse.beat(summary.cuts)
        };
        let mut stopped = None;
        let mut reopen = || open(settings, seed, &raised, &mut stopped);
        let fault = match cut_power(settings, &mut reopen, &options, &mut beat) {
            Ok(summary) => {
                last = summary;
                Value::Null
            }
            Err(CrashError::Fault { cut, what }) => json!({"cut": cut, "what": what}),
            Err(CrashError::Source(error)) => {
                return Err(match (stopped, pulse.take_stop()) {
                    (Some(fault), _) => fault,
                    (None, Some(Some(error))) => Fault::Python(error),
                    (None, _) => raised.explain(error.into()),
                });
            }
        };
        let mut result = json!({"schema": "ftlab.crash.v1", "config": resolved.to_json()});
        let Value::Object(counts) = serde_json::to_value(&last).expect("a summary holds numbers only") else {
            panic!("a summary is an object")
        };
        result.as_object_mut().expect("an object").extend(counts);
        result["fault"] = fault;
        Ok(result.to_string())
    };
    Ok(py.detach(|| guard(work))?)
}

/// Opens the requests from the start. Exceptions that the front end raises go into `stopped`.
fn open(
    settings: &Settings,
    seed: u64,
    raised: &Raised,
    stopped: &mut Option<Fault>,
) -> Result<Box<dyn Source + Send>, SourceError> {
    let workload = &settings.workload;
    let files = settings.files.benchmark.is_some() || workload.fio_job.is_some();
    let none = workload.trace.is_none() && workload.synthetic.is_none() && !files;
    if none && settings.tenants.0.is_empty() {
        return Ok(Box::new(Requests::new(settings, seed).with_fua(seed)));
    }
    match source::of_settings_raising(settings, raised.clone()) {
        Ok(source) => Ok(source),
        Err(fault) => {
            *stopped = Some(fault);
            Err(SourceError::Interrupted)
        }
    }
}

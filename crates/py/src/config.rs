//! Configurations, presets, and what can be configured.

use ftlab_config::{Base, Override, Resolved};
use ftlab_core::settings::Replay;
use pyo3::prelude::*;

use crate::errors::{Fault, guard};

/// A resolved configuration: every key has its value.
#[pyclass(frozen, module = "ftlab._core")]
pub struct Config {
    /// The configuration in the form that the Rust side runs.
    pub resolved: Resolved,
    /// What was chosen for the user because of the trace, in a sentence.
    chosen: Option<String>,
}

#[pymethods]
impl Config {
    /// Returns the configuration as it appears in a result, in JSON.
    fn json(&self) -> PyResult<String> {
        Ok(guard(|| Ok(self.resolved.to_json().to_string()))?)
    }

    /// Returns the configuration as a complete TOML file.
    fn toml(&self) -> PyResult<String> {
        Ok(guard(|| Ok(self.resolved.to_toml()))?)
    }

    /// Returns a hash of the configuration's meaning, in hexadecimal.
    fn hash(&self) -> PyResult<String> {
        Ok(guard(|| Ok(self.resolved.hash()))?)
    }

    /// Returns a sentence for each key that the user set and the chosen parts ignore.
    fn notes(&self) -> Vec<String> {
        self.resolved.notes().into_iter().chain(self.chosen.clone()).collect()
    }

    /// Returns what the user is told about the fio job file.
    fn job_notes(&self) -> Vec<String> {
        crate::source::job_notes(&self.resolved.settings)
    }

    /// Returns the number of bytes that the host can address, and the bytes of a logical page.
    #[getter]
    fn addresses(&self) -> (u64, u32) {
        let settings = &self.resolved.settings;
        (settings.user_bytes(), settings.ftl.logical_page_bytes)
    }

    /// Returns the trace to replay, if one is set.
    #[getter]
    fn trace(&self) -> Option<String> {
        self.resolved.settings.workload.trace.clone()
    }

    /// Returns the layout of the trace, which may be `auto`.
    #[getter]
    fn format(&self) -> String {
        self.resolved.settings.workload.format.clone()
    }
}

/// An override `(origin, key, value)`; messages show the origin, which is the option as the user gave it.
type Given = (String, String, String);

fn resolve_base(base: Base<'_>, overrides: Vec<Given>) -> Result<Config, Fault> {
    let mut overrides: Vec<Override> =
        overrides.into_iter().map(|(origin, key, value)| Override { origin, key, value }).collect();
    let resolved = ftlab_config::resolve(base, &overrides)?;
    let Some(trace) = waits_by_default(&resolved) else { return Ok(Config { resolved, chosen: None }) };
    let dependent = Replay::Dependent.name();
    let note = format!(
        "{REPLAY}: {trace} is a recording of a live device, so its requests wait for each other as they did there \
         (\"{dependent}\"); \"open\" goes by its times"
    );
    overrides.push(Override {
        origin: "a recording's default".into(),
        key: REPLAY.into(),
        value: dependent.into(),
    });
    Ok(Config { resolved: ftlab_config::resolve(base, &overrides)?, chosen: Some(note) })
}

const REPLAY: &str = "workload.replay";

/// Returns the trace if it is a recording of a live device and the user has not said how to replay it.
fn waits_by_default(resolved: &Resolved) -> Option<&str> {
    let trace = resolved.settings.workload.trace.as_deref()?;
    let workload = &resolved.settings.workload;
    let open = workload.replay == Replay::Open && !resolved.is_stated(REPLAY);
    (open && ftlab_trace::is_recording(trace, &workload.format)).then_some(trace)
}

/// Resolves a preset or a file, as the command line names it, with overrides.
#[pyfunction]
#[pyo3(signature = (config, overrides=Vec::new()))]
pub fn resolve(config: &str, overrides: Vec<Given>) -> PyResult<Config> {
    Ok(guard(|| {
        let input = ftlab_config::open(config)?;
        resolve_base(input.base(), overrides)
    })?)
}

/// Resolves a TOML text with overrides; `name` takes the place of its file in messages.
#[pyfunction]
#[pyo3(signature = (name, text, overrides=Vec::new()))]
pub fn resolve_text(name: &str, text: &str, overrides: Vec<Given>) -> PyResult<Config> {
    Ok(guard(|| resolve_base(Base::Text { name, text }, overrides))?)
}

/// Returns a TOML file as JSON, with its tables in the order of the text; in messages, `what` says what the file
/// should be.
#[pyfunction]
pub fn read_toml(path: &str, what: &str) -> PyResult<String> {
    Ok(guard(|| Ok(ftlab_config::read_toml(path, what)?.to_string()))?)
}

/// Returns the name, the one-line description and the TOML text of each preset.
#[pyfunction]
pub fn presets() -> Vec<(&'static str, &'static str, &'static str)> {
    ftlab_config::presets().iter().map(|preset| (preset.name, preset.doc, preset.text)).collect()
}

/// Returns the JSON Schema of a configuration file, as text.
#[pyfunction]
pub fn schema() -> PyResult<String> {
    Ok(guard(|| Ok(ftlab_config::schema().to_string()))?)
}

/// Returns the registered parts of every layer, in JSON.
#[pyfunction]
pub fn components() -> PyResult<String> {
    Ok(guard(|| Ok(ftlab_config::components().to_string()))?)
}

/// Returns the reference of all configuration keys, in Markdown.
#[pyfunction]
pub fn reference() -> PyResult<String> {
    Ok(guard(|| Ok(ftlab_config::reference_markdown()))?)
}

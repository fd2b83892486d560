//! A live device, served until Python stops it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ftlab_config::Resolved;
use ftlab_core::metrics::Report;
use ftlab_core::sim::Prepared;
use ftlab_live::engine::Live;
use ftlab_live::pace::Time;
use ftlab_live::{Address, LiveError, Options, Server};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::config::Config;
use crate::errors::{Fault, guard};
use crate::observe::{Pulse, Watch};
use crate::run::RunResult;

impl From<LiveError> for Fault {
    fn from(error: LiveError) -> Fault {
        match error {
            LiveError::User(text) => Fault::User(text),
            LiveError::Run(error) => error.into(),
            broken @ LiveError::Broken => Fault::Internal(broken.to_string()),
        }
    }
}

/// A device that NBD clients use. Its threads go on by themselves.
#[pyclass(frozen, module = "ftlab._core")]
pub struct LiveServer {
    config: Py<Config>,
    server: Mutex<Option<Server>>,
    since: Instant,
}

/// The result with its block `live`.
fn described(resolved: &Resolved, report: &Report, live: &Live, connections: u64) -> Value {
    let mut result = ftlab_embed::result(resolved, report);
    result["live"] = json!({
        "time": live.time,
        "speed": live.speed,
        "lateness": live.lateness,
        "payload_bytes": live.payload_bytes,
        "simulated_ns": live.now_ns,
        "waiting": live.queues[0],
        "held": live.queues[1],
        "free_blocks": live.free_blocks,
        "connections": connections,
    });
    result
}

#[pymethods]
impl LiveServer {
    /// Prepares the device of a configuration and starts to serve it. `nbd`: addresses; `fuse`: a directory for the
    /// device as a file; `control`: the control socket; `metrics`: a loopback address for Prometheus; `speed`: of simulated time against wall time, `None` where a request completes at once; `preconditioning` as in `run`.
    #[new]
    #[pyo3(signature = (
        config, nbd, *, fuse=None, control=None, metrics=None, speed=Some(1.0), read_only=false, record=None, load_state=None, check=false,
        patience_s=30.0, preconditioning=None
    ))]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn new(
        py: Python<'_>,
        config: Py<Config>,
        nbd: Vec<String>,
        fuse: Option<PathBuf>,
        control: Option<PathBuf>,
        metrics: Option<String>,
        speed: Option<f64>,
        read_only: bool,
        record: Option<PathBuf>,
        load_state: Option<PathBuf>,
        check: bool,
        patience_s: f64,
        preconditioning: Option<Py<PyAny>>,
    ) -> PyResult<LiveServer> {
        let known = config.clone_ref(py);
        let resolved = &config.get().resolved;
        let describe = move |report: &Report, live: &Live, connections| {
            described(&known.get().resolved, report, live, connections)
        };
        let work = move || {
            let nbd: Result<_, String> = nbd.iter().map(|text| Address::parse(text)).collect();
            let metrics = match metrics.map(|text| Address::parse(&format!("tcp:{text}"))).transpose() {
                Ok(Some(Address::Tcp(at))) => Some(at),
                Ok(_) => None,
                Err(why) => return Err(Fault::User(format!("--metrics {why}"))),
            };
            let options = Options {
                nbd: nbd.map_err(|why| Fault::User(format!("--nbd {why}")))?,
                fuse,
                control,
                metrics,
                time: speed.map_or(Time::Free, |speed| Time::Real { speed }),
                read_only,
                record,
                description: format!("ftlab: {}", resolved.settings.ftl.kind),
                patience: Duration::from_secs_f64(patience_s),
            };
            let pulse = Pulse::new(None).with_preconditioning(preconditioning);
            let mut watch = Watch { rows: None, csv: None, timeline: None, pulse };
            let prepared = match &load_state {
                Some(path) => ftlab_embed::load(resolved, path, check)?,
                None => Prepared::new(&resolved.settings, &mut watch, check)?,
            };
            Ok(Server::start(&resolved.settings, prepared, &options, Arc::new(describe))?)
        };
        let server = py.detach(|| guard(work))?;
        Ok(LiveServer { config, server: Mutex::new(Some(server)), since: Instant::now() })
    }

    /// Where it listens; empty once it has stopped.
    fn addresses(&self) -> Vec<String> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.iter().flat_map(Server::addresses).map(Address::to_string).collect()
    }

    /// Where Prometheus asks, if anywhere.
    fn metrics(&self) -> Option<String> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.as_ref().and_then(Server::metrics).map(Address::to_string)
    }

    /// Whether a command asked it to stop; raises what has ended it, if anything has.
    fn look(&self, py: Python<'_>) -> PyResult<bool> {
        let look = || match &*self.server.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(server) => server.look().map(|()| server.asked_to_stop()).map_err(Fault::from),
            None => Ok(true),
        };
        Ok(py.detach(|| guard(look))?)
    }

    /// Stops cleanly; the result, with its block `live`. `None` if it has stopped already.
    fn stop(&self, py: Python<'_>) -> PyResult<Option<RunResult>> {
        let work = || {
            let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(server) = server else { return Ok(None) };
            let connections = server.connections();
            let (report, live) = server.stop()?;
            let result = described(&self.config.get().resolved, &report, &live, connections);
            Ok(Some(RunResult::new(result.to_string(), self.since.elapsed().as_secs_f64(), None)))
        };
        Ok(py.detach(|| guard(work))?)
    }
}

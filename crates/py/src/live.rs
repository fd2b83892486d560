//! A live device, which is served until Python stops it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use ftlab_config::Resolved;
use ftlab_core::metrics::{Report, Summary};
use ftlab_core::sim::Prepared;
use ftlab_embed::Fields;
use ftlab_live::engine::{Live, OPERATIONS, Program, Slow};
use ftlab_live::media::{Nand, Opened, Stored};
use ftlab_live::pace::Time;
use ftlab_live::reopen::reopen;
use ftlab_live::{Address, Interference, LiveError, Options, Server, Wait};
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

/// A device that NBD clients use, served by threads of its own.
#[pyclass(frozen, module = "ftlab._core")]
pub struct LiveServer {
    config: Py<Config>,
    server: Mutex<Option<Server>>,
    since: Instant,
    opened: String,
}

/// Returns the result, with its block `live`, of a server that began at `since`.
fn described(resolved: &Resolved, since: Instant, report: &Report, live: &Live, connections: u64) -> Value {
    let mut result = Fields::json(resolved, report, since.elapsed().as_secs_f64());
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
    result["live"]["told"] =
        live.told.iter().map(|(ns, command)| json!({ "time_ns": ns, "command": command })).collect();
    result["live"]["failed"] = json!({ "reads": live.failed[0], "writes": live.failed[1] });
    if let Some(programs) = &live.programs {
        result["live"]["programs"] = programs.iter().map(program).collect();
        result["live"]["slowest"] = live.slowest.iter().map(|slow| slowest(slow, programs)).collect();
    }
    result["live"]["interference"] = live.interference.as_ref().map_or(Value::Null, interference);
    if let Some(recording) = &live.recording {
        result["live"]["recording"] =
            json!({ "requests": recording.requests, "files": recording.files, "error": recording.error });
    }
    if let Some(media) = &live.media {
        let mut told = opened(&media.opened);
        told["operations"] = media.operations.into();
        told["requests"] = media.requests.into();
        told["cut"] = media.cut.map_or(Value::Null, |cut| {
            json!({
                "time_ns": cut.time_ns,
                "finished": cut.finished,
                "torn_programs": cut.torn_programs,
                "torn_erases": cut.torn_erases,
            })
        });
        told["error"] = json!(media.error);
        result["live"]["media"] = told;
    }
    result
}

/// Returns what is known about a program.
fn program(program: &Program) -> Value {
    let mut told = json!({ "name": program.name, "processes": program.processes });
    for (name, latency) in OPERATIONS.iter().zip(&program.latency) {
        told[name] = json!(Summary::new(latency, false));
    }
    told
}

/// Returns one of the requests that took longest.
fn slowest(slow: &Slow, programs: &[Program]) -> Value {
    let (origin, answered) = (&slow.origin, slow.answered.duration_since(UNIX_EPOCH));
    json!({
        "program": programs[usize::from(origin.program)].name,
        "operation": OPERATIONS[origin.operation],
        "offset": origin.range.0,
        "length": origin.range.1,
        "arrival_ns": origin.arrival_ns,
        "latency_ns": slow.latency_ns,
        "answered_s": answered.map_or(0.0, |since| since.as_secs_f64()),
    })
}

/// Returns how much the device was interfered with.
fn interference(found: &Interference) -> Value {
    let wait_ns = found.waited.wait_ns;
    let share = wait_ns.filter(|_| found.served_ns > 0).map(|ns| ns as f64 / found.served_ns as f64);
    json!({
        "served_ns": found.served_ns,
        "wait_ns": wait_ns,
        "wait_share": share,
        "involuntary_switches": found.waited.involuntary_switches,
        "pressure": found.pressure,
    })
}

/// Returns the state in which a media file was found.
fn opened(how: &Opened) -> Value {
    match how {
        Opened::Made => json!({ "opened": "made" }),
        Opened::Checkpoint => json!({ "opened": "checkpoint" }),
        Opened::Recovered { recovery, elapsed_ns } => json!({
            "opened": "recovered",
            "recovery": {
                "scan_reads": recovery.scan_reads,
                "map_reads": recovery.map_reads,
                "gc_reads": recovery.gc_reads,
                "programs": recovery.programs,
                "erases": recovery.erases,
                "torn_pages": recovery.torn_pages,
                "elapsed_ns": elapsed_ns,
            },
        }),
    }
}

/// Returns how threads wait.
fn waits(name: &str) -> Result<Wait, Fault> {
    Wait::named(name).ok_or_else(|| Fault::User(format!("--wait {name}: it is auto, awake or sleep")))
}

/// Opens the device of a configuration, in the state that its file holds if that exists.
fn device(
    resolved: &Resolved,
    (media, load_state): (Option<&Path>, Option<&Path>),
    check: bool,
    watch: &mut Watch,
) -> Result<(Prepared, Option<Stored>), Fault> {
    let settings = &resolved.settings;
    let identity = resolved.state_identity();
    if let Some(path) = media {
        if !settings.ftl.power_safe {
            return Err(Fault::User(
                "--media: ftl.power_safe is false, and the flash would not be what was promised after a power cut; \
                 leave it out, or set it to true"
                    .into(),
            ));
        }
        if load_state.is_some() && path.metadata().is_ok_and(|meta| meta.len() > 0) {
            let why = "holds a device already; leave --load-state out, or name another file";
            return Err(Fault::User(format!("{}: {why}", path.display())));
        }
        if let Some((prepared, stored)) = reopen(path, settings, &identity)? {
            return Ok((prepared, Some(stored)));
        }
    }
    let check = check || media.is_some();
    let mut prepared = match load_state {
        Some(path) => crate::state::load(resolved, path, check)?,
        None => Prepared::new(settings, watch, check)?,
    };
    let stored = media.map(|path| Nand::create(path, settings, &identity, &mut prepared)).transpose()?;
    Ok((prepared, stored))
}

#[pymethods]
impl LiveServer {
    /// Prepares the device of a configuration and starts to serve it. `nbd`: the addresses for NBD clients; `fuse`: a
    /// directory in which the device appears as a file; `media`: the file with its flash; `control`: the control
    /// socket; `metrics`: a loopback address for Prometheus; `speed`: simulated time divided by wall time, `None` if
    /// requests complete immediately; `preconditioning`: the same as for `run`; `streams`: how many streams clients can
    /// choose by the name of their export; `trace_pids`: whether the latencies of each program that asks are kept;
    /// `rotate`: bytes after which the recording goes on in the next numbered file; `wait`: how threads wait (`auto`,
    /// `awake`, `sleep`).
    #[new]
    #[pyo3(signature = (
        config, nbd, *, fuse=None, media=None, control=None, metrics=None, speed=Some(1.0), read_only=false,
        record=None, load_state=None, check=false, patience_s=30.0, preconditioning=None,
        streams=0, trace_pids=false, rotate=None, wait="auto"
    ))]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn new(
        py: Python<'_>,
        config: Py<Config>,
        nbd: Vec<String>,
        fuse: Option<PathBuf>,
        media: Option<PathBuf>,
        control: Option<PathBuf>,
        metrics: Option<String>,
        speed: Option<f64>,
        read_only: bool,
        record: Option<PathBuf>,
        load_state: Option<PathBuf>,
        check: bool,
        patience_s: f64,
        preconditioning: Option<Py<PyAny>>,
        streams: u8,
        trace_pids: bool,
        rotate: Option<u64>,
        wait: &str,
    ) -> PyResult<LiveServer> {
        let wait = waits(wait)?;
        let known = config.clone_ref(py);
        let (resolved, since) = (&config.get().resolved, Instant::now());
        let describe = move |report: &Report, live: &Live, connections| {
            described(&known.get().resolved, since, report, live, connections)
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
                wait,
                read_only,
                record,
                rotate,
                description: format!("ftlab: {}", resolved.settings.ftl.kind),
                streams,
                identity: resolved.state_identity(),
                trace_pids,
                patience: Duration::from_secs_f64(patience_s),
            };
            let pulse = Pulse::new(None).with_preconditioning(preconditioning);
            let mut watch = Watch { rows: None, csv: None, timeline: None, pulse };
            let files = (media.as_deref(), load_state.as_deref());
            let (prepared, stored) = device(resolved, files, check, &mut watch)?;
            let opened = stored.as_ref().map_or(Value::Null, |stored| opened(&stored.opened));
            let server = Server::start(&resolved.settings, (prepared, stored), &options, Arc::new(describe))?;
            Ok((server, opened.to_string()))
        };
        let (server, opened) = py.detach(|| guard(work))?;
        Ok(LiveServer { config, server: Mutex::new(Some(server)), since, opened })
    }

    /// Returns the addresses where the server listens; none once it has stopped.
    fn addresses(&self) -> Vec<String> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.iter().flat_map(Server::addresses).map(Address::to_string).collect()
    }

    /// Returns the address for Prometheus, if there is one.
    fn metrics(&self) -> Option<String> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.as_ref().and_then(Server::metrics).map(Address::to_string)
    }

    /// Returns the state in which the media file was found, as in the result under `live.media`, in JSON; null without
    /// a file.
    fn opened(&self) -> &str {
        &self.opened
    }

    /// Returns why the recording has ended before the device, if it has.
    fn recording_error(&self, py: Python<'_>) -> Option<String> {
        let look = || {
            let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
            server.as_ref().and_then(Server::recording)?.error
        };
        py.detach(look)
    }

    /// Cuts the power in the `after`-th program or erase from now, or immediately if `after` is 0.
    fn cut(&self, py: Python<'_>, after: u64, seed: u64) -> PyResult<()> {
        let cut = || match &*self.server.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(server) => server.cut(after, seed).map_err(Fault::from),
            None => Ok(()),
        };
        Ok(py.detach(|| guard(cut))?)
    }

    /// Cuts the power when the `after`-th write, trim or flush from now comes, or immediately if `after` is 0.
    fn cut_at_request(&self, py: Python<'_>, after: u64, seed: u64) -> PyResult<()> {
        let cut = || match &*self.server.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(server) if after > 0 => server.cut_at_request(after, seed).map_err(Fault::from),
            Some(server) => server.cut(0, seed).map_err(Fault::from),
            None => Ok(()),
        };
        Ok(py.detach(|| guard(cut))?)
    }

    /// Returns whether a command asked the server to stop; raises the exception that has ended it, if there is one.
    fn look(&self, py: Python<'_>) -> PyResult<bool> {
        let look = || match &*self.server.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(server) => server.look().map(|()| server.asked_to_stop()).map_err(Fault::from),
            None => Ok(true),
        };
        Ok(py.detach(|| guard(look))?)
    }

    /// Stops the server cleanly; returns the result, with its block `live`, or `None` if the server has already
    /// stopped.
    fn stop(&self, py: Python<'_>) -> PyResult<Option<RunResult>> {
        let work = || {
            let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(server) = server else { return Ok(None) };
            let connections = server.connections();
            let (report, live) = server.stop()?;
            let result = described(&self.config.get().resolved, self.since, &report, &live, connections);
            Ok(Some(RunResult::new(result.to_string(), None)))
        };
        Ok(py.detach(|| guard(work))?)
    }
}

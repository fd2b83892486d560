//! Where requests come from: a trace file, rows that Python reads, or a generator.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use ftlab_core::config::ByteRange;
use ftlab_core::util::Bits;
use ftlab_core::workload::settings::By;
use ftlab_core::workload::tenants::{Tenant, told_of};
use ftlab_core::workload::{Record, Source, SourceError, SourceSummary};
use ftlab_files::Load;
use ftlab_files::clients::{Clients, fio};
use ftlab_files::settings::Settings;
use ftlab_generator::Generator;
use ftlab_trace::{Chunk, Chunks, Completions, GoOn, MakeChunks, Options};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::errors::{Fault, UserError};
use crate::observe::{LOOK, Pulse};

/// Number of requests between two checks of the clock in [`Watched`].
const LOOK_EVERY: u64 = 4096;

/// An exception that Python code raised while a source called it: a [`SourceError`] can only hold text.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn put(&self, error: PyErr) {
        *self.0.lock().expect("no panic while the lock is held") = Some(error);
    }

    /// Returns `error`, or the exception behind it.
    pub fn explain(&self, error: Fault) -> Fault {
        match (error, self.0.lock().expect("no panic while the lock is held").take()) {
            (Fault::Interrupted, Some(raised)) => Fault::Python(raised),
            (error, _) => error,
        }
    }
}

/// A source, and the exceptions that Python raised in it.
pub struct Opened {
    /// The requests.
    pub source: Box<dyn Source + Send>,
    /// The exceptions that interrupted the source.
    pub raised: Raised,
}

/// Opens the workload of a run.
///
/// # Errors
/// [`Fault::User`] if there is no workload, or the trace is at fault.
pub fn of_settings(settings: &Settings, chunks: Option<Py<PyAny>>) -> Result<Opened, Fault> {
    let raised = Raised::default();
    let options = Options { go_on: go_on(&raised), ..Options::from_settings(settings) };
    let source = open_raising(settings, settings.user_bytes(), &options, chunks, &raised)?;
    let source: Box<dyn Source + Send> = match settings.workload.tenants {
        By::None => source,
        By::Stream => Box::new(Bounded { source, seen: Bits::new(1 << 16), streams: 0 }),
    };
    Ok(Opened { source, raised })
}

/// The largest number of streams that can be tenants: each has a queue and histograms of its own.
const MOST_STREAMS: u32 = 1024;

/// A source whose streams are tenants.
struct Bounded {
    source: Box<dyn Source + Send>,
    seen: Bits,
    streams: u32,
}

impl Source for Bounded {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        let record = self.source.next()?;
        if let Some(record) = record.filter(|record| !self.seen.get(record.stream.into())) {
            self.seen.set(record.stream.into());
            self.streams += 1;
            if self.streams > MOST_STREAMS {
                return Err(SourceError::Input(format!(
                    "{}: more than {MOST_STREAMS} streams, which is how many tenants there may be \
                     (workload.tenants = \"by-stream\")",
                    self.source.locate(&record)
                )));
            }
        }
        Ok(record)
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        self.source.has_streams()
    }

    fn summary(&self) -> SourceSummary {
        self.source.summary()
    }

    fn locate(&self, record: &Record) -> String {
        self.source.locate(record)
    }
}

/// Opens a workload other than the caller's rows; exceptions from Python go into `raised`.
///
/// # Errors
/// Those of [`of_settings`].
pub fn of_settings_raising(settings: &Settings, raised: Raised) -> Result<Box<dyn Source + Send>, Fault> {
    let options = Options { go_on: go_on(&raised), ..Options::from_settings(settings) };
    open_raising(settings, settings.user_bytes(), &options, None, &raised)
}

/// Opens the workload of a run for a single pass.
///
/// # Errors
/// Those of [`of_settings`].
pub fn once(settings: &Settings) -> Result<Opened, Fault> {
    let raised = Raised::default();
    let options = Options { repeat: 1, go_on: go_on(&raised), ..Options::from_settings(settings) };
    let source = open_raising(settings, settings.user_bytes(), &options, None, &raised)?;
    Ok(Opened { source, raised })
}

/// Returns what the user is told about the configuration's fio job files; nothing if no job file is chosen or the files
/// cannot be read, which the run will report.
pub fn job_notes(settings: &Settings) -> Vec<String> {
    let own = settings.tenants.0.iter().filter_map(|tenant| tenant.workload.fio_job.as_ref());
    let read = own.chain(&settings.workload.fio_job).filter_map(|path| jobs(path).ok());
    let mut known = std::collections::HashSet::new();
    read.flat_map(|jobs| jobs.notes).filter(|note| known.insert(note.clone())).collect()
}

/// Reads a fio job file, with the variables of the environment and the files that it includes.
fn jobs(path: &str) -> Result<fio::Jobs, Fault> {
    let read = |path: &str| ftlab_config::read_text(path, "fio job file").map_err(|error| error.to_string());
    let around = fio::Around { variable: &|name| std::env::var(name).ok(), text: &read };
    let text = read(path).map_err(Fault::User)?;
    fio::parse_with(path, &text, &around).map_err(|error| Fault::User(error.to_string()))
}

/// Returns the clients of a load that has `user_bytes` of a device, if a benchmark or a fio job is chosen instead of a
/// trace.
///
/// # Errors
/// [`Fault::User`] if the job file cannot be read or is at fault.
pub fn clients(settings: &Settings, user_bytes: u64) -> Result<Option<Clients>, Fault> {
    let Some(path) = &settings.workload.fio_job else { return Ok(Clients::of_benchmark(settings)) };
    let clients = Clients::of_jobs(&jobs(path)?.jobs, settings, user_bytes);
    clients.map(Some).map_err(|message| Fault::User(format!("{path}: {message}")))
}

/// Opens the workload for use without a device: addresses have no limit, a trace without times is allowed, and
/// `completions` says what becomes of recorded completions.
///
/// # Errors
/// Those of [`of_settings`].
pub fn without_device(settings: &Settings, completions: Completions) -> Result<Opened, Fault> {
    let raised = Raised::default();
    let options = Options { completions, ..no_device(settings, &raised) };
    Ok(Opened { source: open_raising(settings, settings.user_bytes(), &options, None, &raised)?, raised })
}

/// Returns the reader's options for use without a device.
pub fn no_device(settings: &Settings, raised: &Raised) -> Options {
    Options { capacity_bytes: None, go_on: go_on(raised), ..Options::from_settings(settings) }
}

/// Opens the loads of all tenants. If `only` is a tenant's name, the others send nothing.
///
/// # Errors
/// [`Fault::User`] if a trace or a job file is at fault, or no tenant has the name `only`.
pub fn of_tenants(settings: &Settings, only: Option<&str>) -> Result<(Vec<Load>, Raised), Fault> {
    let (raised, tenants) = (Raised::default(), &settings.tenants.0);
    if let Some(name) = only.filter(|only| tenants.iter().all(|tenant| tenant.name != *only)) {
        return Err(Fault::User(format!("no tenant is called {name}")));
    }
    let ranges = settings.tenants.ranges(settings.user_bytes(), settings.ftl.logical_page_bytes.into());
    let open = |(number, (tenant, range)): (u16, (&Tenant, ByteRange))| -> Result<Load, Fault> {
        if only.is_some_and(|only| tenant.name != only) {
            return Ok(Load::Source(Box::new(Vec::new().into_iter())));
        }
        let (own, bytes) = (settings.of_tenant(number), range.to - range.from);
        if let Some(clients) = clients(&own, bytes)? {
            return Ok(Load::Clients(clients));
        }
        let options =
            Options { go_on: go_on(&raised), capacity_bytes: Some(bytes), ..Options::from_settings(&own) };
        let source = open_raising(&own, bytes, &options, None, &raised);
        source.map(Load::Source).map_err(|fault| match fault {
            Fault::User(text) => Fault::User(told_of(&tenant.name, &text)),
            other => other,
        })
    };
    let loads = (0..).zip(tenants.iter().zip(ranges)).map(open).collect::<Result<_, _>>()?;
    Ok((loads, raised))
}

/// Opens the workload of a run of which only one stream's requests are sent.
///
/// # Errors
/// [`Fault::User`] if `stream` is not the number of a stream, and those of [`of_settings`].
pub fn of_stream(settings: &Settings, chunks: Option<Py<PyAny>>, stream: &str) -> Result<Opened, Fault> {
    let number =
        stream.parse().map_err(|_| Fault::User(format!("{stream} is not the number of a stream")))?;
    let Opened { source, raised } = of_settings(settings, chunks)?;
    Ok(Opened { source: Box::new(OfStream { source, stream: number }), raised })
}

/// The requests of one stream of a source.
struct OfStream {
    source: Box<dyn Source + Send>,
    stream: u16,
}

impl Source for OfStream {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            match self.source.next()? {
                Some(record) if record.stream != self.stream => {}
                record => return Ok(record),
            }
        }
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        self.source.has_streams()
    }

    fn summary(&self) -> SourceSummary {
        self.source.summary()
    }

    fn locate(&self, record: &Record) -> String {
        self.source.locate(record)
    }
}

fn open_raising(
    settings: &Settings,
    bytes: u64,
    options: &Options,
    chunks: Option<Py<PyAny>>,
    raised: &Raised,
) -> Result<Box<dyn Source + Send>, Fault> {
    let workload = &settings.workload;
    Ok(match (&workload.trace, &workload.synthetic) {
        (Some(_), Some(_)) => return Err(Fault::User(TWO_WORKLOADS.into())),
        (None, None) if settings.files.benchmark.is_some() || workload.fio_job.is_some() => {
            return Err(Fault::User(NO_TRACE.into()));
        }
        (None, None) if !settings.tenants.0.is_empty() => return Err(Fault::User(TENANTS.into())),
        (None, None) => return Err(Fault::User(NO_WORKLOAD.into())),
        (None, Some(synthetic)) => {
            let generator = Generator::new(synthetic, bytes, settings.seed);
            if workload.speed == 1.0 {
                Box::new(generator)
            } else {
                Box::new(ftlab_trace::Paced::new(generator, workload.speed))
            }
        }
        (Some(path), None) => match chunks {
            Some(chunks) => ftlab_trace::open_chunks(path, make_chunks(chunks, raised.clone()), options)
                .map_err(|error| raised.explain(error.into()))?,
            None => ftlab_trace::open(path, options).map_err(|error| raised.explain(error.into()))?,
        },
    })
}

/// Returns the check for signals that a reader calls while it reads a file, since much may be read before a request is
/// found.
fn go_on(raised: &Raised) -> GoOn {
    let (raised, last) = (raised.clone(), Mutex::new(Instant::now()));
    GoOn(Arc::new(move |signalled| {
        let mut last = last.lock().expect("no panic while the lock is held");
        if !signalled && last.elapsed() < LOOK {
            return true;
        }
        *last = Instant::now();
        Python::attach(|py| py.check_signals()).map_err(|error| raised.put(error)).is_ok()
    }))
}

const TWO_WORKLOADS: &str = "workload.trace and workload.synthetic.requests are both set; choose one";
const TENANTS: &str = "each tenant has a load of its own ([tenant.NAME]), and this command takes one load; \
    ftlab run, compare, sweep and tune run them together";
const NO_TRACE: &str = "a benchmark or a fio job makes its requests while it runs, there is no trace of it; \
    ftlab run CONFIG --requests FILE.csv writes one";
const NO_WORKLOAD: &str = "no workload: name a trace (--trace FILE, or workload.trace), a generator \
    (--set workload.synthetic.requests=10000) or a benchmark (--set workload.benchmark.kind=dbench)";

/// Makes rows from a Python callable that returns an iterator of `(ts_ns, op, offset, size, flags)` buffers, and
/// perhaps further ones of streams (which may be empty) and of latencies.
fn make_chunks(chunks: Py<PyAny>, raised: Raised) -> MakeChunks {
    Box::new(move || -> Chunks {
        let started = Python::attach(|py| -> PyResult<Py<PyIterator>> {
            Ok(chunks.bind(py).call0()?.try_iter()?.unbind())
        });
        let raised = raised.clone();
        Box::new(move |chunk| {
            let next = Python::attach(|py| match &started {
                Ok(iterator) => next_chunk(iterator.bind(py)),
                Err(error) => Err(error.clone_ref(py)),
            });
            let next = next.map_err(|error| as_source_error(error, &raised))?;
            let more = next.is_some();
            *chunk = next.unwrap_or_default();
            Ok(more)
        })
    })
}

fn next_chunk(iterator: &Bound<'_, PyIterator>) -> PyResult<Option<Chunk>> {
    iterator.py().check_signals()?;
    let Some(columns) = iterator.clone().next().transpose()? else { return Ok(None) };
    Ok(Some(Chunk {
        ts_ns: column(&columns, 0)?,
        op: column(&columns, 1)?,
        offset: column(&columns, 2)?,
        size: column(&columns, 3)?,
        flags: column(&columns, 4)?,
        stream: if columns.len()? > 5 { column(&columns, 5)? } else { Vec::new() },
        outstanding: Vec::new(),
        latency_ns: if columns.len()? > 6 { column(&columns, 6)? } else { Vec::new() },
    }))
}

fn column<T: Element>(columns: &Bound<'_, PyAny>, index: usize) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(&columns.get_item(index)?)?.to_vec(columns.py())
}

fn as_source_error(error: PyErr, raised: &Raised) -> SourceError {
    Python::attach(|py| {
        if error.is_instance_of::<UserError>(py) {
            return SourceError::Input(error.value(py).to_string());
        }
        raised.put(error);
        SourceError::Interrupted
    })
}

/// A source that reports progress and can be interrupted, for use without a simulation.
pub struct Watched {
    inner: Opened,
    pulse: Pulse,
    /// Number of requests handed out.
    pub requests: u64,
    /// Arrival of the request handed out last, ns.
    pub last_ns: u64,
}

impl Watched {
    /// Watches `inner`; for `progress`, see [`Pulse::new`].
    pub fn new(inner: Opened, progress: Option<Py<PyAny>>) -> Watched {
        Watched { inner, pulse: Pulse::new(progress), requests: 0, last_ns: 0 }
    }

    /// Returns `error`, or the exception behind it.
    pub fn explain(&mut self, error: Fault) -> Fault {
        match (error, self.pulse.take_stop()) {
            (Fault::Interrupted, Some(Some(raised))) => Fault::Python(raised),
            (Fault::Interrupted, Some(None)) => Fault::Python(PyKeyboardInterrupt::new_err(())),
            (error, _) => self.inner.raised.explain(error),
        }
    }
}

impl Source for Watched {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.requests.is_multiple_of(LOOK_EVERY) && !self.pulse.beat(self.requests) {
            return Err(SourceError::Interrupted);
        }
        let record = self.inner.source.next()?;
        if let Some(record) = &record {
            self.requests += 1;
            self.last_ns = record.time_ns;
        }
        Ok(record)
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        self.inner.source.has_streams()
    }

    fn has_completions(&mut self) -> Result<bool, SourceError> {
        self.inner.source.has_completions()
    }

    fn summary(&self) -> SourceSummary {
        self.inner.source.summary()
    }

    fn locate(&self, record: &Record) -> String {
        self.inner.source.locate(record)
    }
}

//! One simulation that Python drives.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ftlab_core::Simulation as Object;
use ftlab_core::host::SubmitError;
use ftlab_core::sim::{Completion as Row, Observer, RunError};
use ftlab_core::workload::{Op, Record};
use ftlab_embed::Fields;
use ftlab_trace::Further;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::Column;
use crate::config::Config;
use crate::errors::{Fault, guard};
use crate::observe::{Pulse, Rows};
use crate::run::RunResult;
use crate::state;

/// A completed request: the fields of the per-request file, `None` where a field is empty there, and `failed`.
#[pyclass(frozen, get_all, module = "ftlab._core")]
pub struct Completion {
    id: u64,
    arrival_ns: u64,
    dispatch_ns: u64,
    complete_ns: Option<u64>,
    op: char,
    offset: u64,
    size: u64,
    mapping_misses: u32,
    prioritized: bool,
    expired: bool,
    batch: Option<u64>,
    channel_batch: Option<u64>,
    buffered: u32,
    stream: u16,
    failed: bool,
}

impl From<&Row> for Completion {
    fn from(row: &Row) -> Completion {
        Completion {
            id: row.id,
            arrival_ns: row.arrival_ns,
            dispatch_ns: row.dispatch_ns,
            complete_ns: (!row.failed).then_some(row.complete_ns),
            op: row.op.letter(),
            offset: row.offset,
            size: row.size,
            mapping_misses: row.mapping_misses,
            prioritized: row.prioritized,
            expired: row.expired,
            batch: Some(row.batch).filter(|&batch| batch > 0),
            channel_batch: Some(row.channel_batch).filter(|&batch| batch > 0),
            buffered: row.buffered,
            stream: row.stream,
            failed: row.failed,
        }
    }
}

#[pymethods]
impl Completion {
    fn __repr__(&self) -> String {
        format!(
            "Completion(id={}, op='{}', offset={}, size={}, arrival_ns={}, dispatch_ns={}, {})",
            self.id,
            self.op,
            self.offset,
            self.size,
            self.arrival_ns,
            self.dispatch_ns,
            self.complete_ns.map_or("failed=True".into(), |at_ns| format!("complete_ns={at_ns}"))
        )
    }
}

/// Collects completions until Python takes them.
struct Heard {
    answers: Vec<Row>,
    rows: Option<Rows>,
    pulse: Pulse,
}

impl Observer for Heard {
    fn complete(&mut self, completion: &Row) {
        if let Some(rows) = &mut self.rows {
            rows.push(completion);
        }
    }

    fn answer(&mut self, completion: &Row) {
        self.answers.push(*completion);
    }

    fn progress(&mut self, requests: u64) -> bool {
        self.pulse.beat(requests)
    }
}

struct Driven {
    object: Object<'static>,
    heard: Heard,
    wall: Duration,
    /// The message of a call that failed within the simulation, whose state can then not be trusted.
    broken: Option<String>,
}

impl Driven {
    fn submit(&mut self, record: Record) -> Result<u64, SubmitError> {
        let number = self.object.submit(record)?;
        if let (Some(rows), true) = (&mut self.heard.rows, record.stream > 0) {
            rows.keep_streams();
        }
        Ok(number)
    }
}

/// A device whose driver decides when time advances. Calls release the GIL; two concurrent calls are an error.
#[pyclass(frozen, module = "ftlab._core")]
pub struct Simulation {
    config: Py<Config>,
    /// The simulation; empty while a call uses it.
    driven: Mutex<Option<Box<Driven>>>,
}

/// The simulation and its driver's state, lent to one call. It is taken while the GIL is held, so calls that keep
/// the GIL throughout never conflict.
struct Taken<'a> {
    home: &'a Mutex<Option<Box<Driven>>>,
    driven: Option<Box<Driven>>,
}

impl Deref for Taken<'_> {
    type Target = Driven;

    fn deref(&self) -> &Driven {
        self.driven.as_ref().expect("it is given back at the end alone")
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut Driven {
        self.driven.as_mut().expect("it is given back at the end alone")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.driven.take();
    }
}

const BUSY: &str = "this simulation is busy in another call; an object takes one call at a time";

impl Simulation {
    fn open(&self) -> Result<Taken<'_>, Fault> {
        let driven = self.driven.lock().unwrap_or_else(PoisonError::into_inner).take();
        let taken =
            Taken { home: &self.driven, driven: Some(driven.ok_or_else(|| Fault::User(BUSY.into()))?) };
        match &taken.broken {
            Some(why) => Err(Fault::Internal(format!("the simulation ended early: {why}"))),
            None => Ok(taken),
        }
    }

    /// Advances time with the GIL released; returns the requests that completed.
    fn drive(
        &self,
        py: Python<'_>,
        how: impl FnOnce(&mut Object<'static>, &mut Heard) -> Result<(), RunError> + Send,
    ) -> PyResult<Vec<Completion>> {
        let mut driven = self.open()?;
        let work = || {
            let start = Instant::now();
            let Driven { object, heard, wall, broken } = &mut *driven;
            let outcome = guard(|| Ok(how(object, heard)));
            *wall += start.elapsed();
            let outcome = outcome.inspect_err(|fault| *broken = Some(fault.shown()))?;
            match outcome {
                Ok(()) => Ok(heard.answers.drain(..).map(|row| Completion::from(&row)).collect()),
                Err(error) => {
                    if let RunError::Check(what) = &error {
                        *broken = Some(what.clone());
                    }
                    match (Fault::from(error), heard.pulse.take_stop()) {
                        (Fault::Interrupted, Some(Some(raised))) => Err(Fault::Python(raised)),
                        (fault, _) => Err(fault),
                    }
                }
            }
        };
        Ok(py.detach(work)?)
    }
}

fn stream_of(stream: u64) -> Result<u16, Fault> {
    u16::try_from(stream)
        .map_err(|_| Fault::User(format!("stream is {stream}; it is a number from 0 to 65535")))
}

fn op_of(op: &str) -> Result<Op, Fault> {
    Op::ALL
        .into_iter()
        .find(|known| op.len() == 1 && op.starts_with(known.letter()))
        .ok_or_else(|| Fault::User(format!("op is {op:?}; it is one of R, W, T (trim) and F (flush)")))
}

fn column<T: Element>(columns: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<Vec<T>>> {
    let Some(values) = columns.get_item(name)? else { return Ok(None) };
    PyBuffer::<T>::get(&values)?.to_vec(columns.py()).map(Some)
}

#[pymethods]
impl Simulation {
    /// Makes a device at time 0.
    #[new]
    #[pyo3(signature = (config, *, load_state=None, check=false, collect=false))]
    fn new(
        py: Python<'_>,
        config: Py<Config>,
        load_state: Option<PathBuf>,
        check: bool,
        collect: bool,
    ) -> PyResult<Simulation> {
        let resolved = &config.get().resolved;
        let work = || {
            let rows = collect.then(|| {
                Rows::new(Further { buffered: resolved.settings.device.buffer.any(), stream: false })
            });
            let mut heard = Heard { answers: Vec::new(), rows, pulse: Pulse::new(None) };
            let object = match &load_state {
                Some(path) => {
                    let prepared = state::load(resolved, path, check || resolved.settings.ftl.power_safe)?;
                    ftlab_embed::simulation_of(resolved, prepared)?
                }
                None => ftlab_embed::simulation(resolved, None, check, &mut heard)?,
            };
            Ok(Box::new(Driven { object, heard, wall: Duration::ZERO, broken: None }))
        };
        let driven = py.detach(|| guard(work))?;
        Ok(Simulation { config, driven: Mutex::new(Some(driven)) })
    }

    /// Submits a request and returns its number.
    #[pyo3(signature = (op, offset, size, *, at_ns=None, fua=false, stream=0))]
    fn submit(
        &self,
        op: &str,
        offset: u64,
        size: u64,
        at_ns: Option<u64>,
        fua: bool,
        stream: u64,
    ) -> PyResult<u64> {
        let mut driven = self.open()?;
        let time_ns = at_ns.unwrap_or(driven.object.now_ns());
        let flags = if fua { Record::FUA } else { 0 };
        let stream = stream_of(stream)?;
        let record = Record { time_ns, op: op_of(op)?, offset, size, flags, stream, ..Record::FLUSH };
        Ok(driven.submit(record).map_err(Fault::from)?)
    }

    /// Submits rows of the columns op (uint8: 0 R, 1 W, 2 T, 3 F), offset, size and, if present, at_ns, fua (uint8)
    /// and stream; returns the numbers of the first and the last request. If a row is refused, the message names it,
    /// and the rows before it have been submitted.
    fn submit_columns(&self, py: Python<'_>, columns: &Bound<'_, PyDict>) -> PyResult<(u64, u64)> {
        let need = |name: &str| Fault::User(format!("no column {name}; op, offset and size are needed"));
        let op: Vec<u8> = column(columns, "op")?.ok_or_else(|| need("op"))?;
        let offset: Vec<u64> = column(columns, "offset")?.ok_or_else(|| need("offset"))?;
        let size: Vec<u64> = column(columns, "size")?.ok_or_else(|| need("size"))?;
        let at_ns: Option<Vec<u64>> = column(columns, "at_ns")?;
        let fua: Option<Vec<u8>> = column(columns, "fua")?;
        let stream: Option<Vec<u64>> = column(columns, "stream")?;
        let rows = op.len();
        let lengths = [
            offset.len(),
            size.len(),
            at_ns.as_ref().map_or(rows, Vec::len),
            fua.as_ref().map_or(rows, Vec::len),
            stream.as_ref().map_or(rows, Vec::len),
        ];
        if lengths.iter().any(|&length| length != rows) {
            return Err(Fault::User("the columns differ in length".into()).into());
        }
        let mut driven = self.open()?;
        let work = || {
            let now_ns = driven.object.now_ns();
            let (mut first, mut last) = (0, 0);
            for row in 0..rows {
                let Some(&op) = Op::ALL.get(usize::from(op[row])) else {
                    return Err(Fault::User(format!("row {row}: op is {}; it is 0 to 3", op[row])));
                };
                let time_ns = at_ns.as_ref().map_or(now_ns, |at_ns| at_ns[row]);
                let flags = if fua.as_ref().is_some_and(|fua| fua[row] != 0) { Record::FUA } else { 0 };
                let stream = stream_of(stream.as_ref().map_or(0, |stream| stream[row]))
                    .map_err(|fault| Fault::User(format!("row {row}: {}", fault.shown())))?;
                let record = Record {
                    time_ns,
                    op,
                    offset: offset[row],
                    size: size[row],
                    flags,
                    stream,
                    ..Record::FLUSH
                };
                last = driven.submit(record).map_err(|error| Fault::User(format!("row {row}: {error}")))?;
                first = if row == 0 { last } else { first };
            }
            Ok((first, last))
        };
        Ok(py.detach(work)?)
    }

    /// Returns the time of the next event that needs no further submission, ns; `None` if there is none.
    fn next_event_ns(&self) -> PyResult<Option<u64>> {
        Ok(self.open()?.object.next_event_ns())
    }

    /// Returns the simulated time, ns.
    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.open()?.object.now_ns())
    }

    /// Lets everything up to and including `until_ns` happen; returns the requests that completed.
    fn advance(&self, py: Python<'_>, until_ns: u64) -> PyResult<Vec<Completion>> {
        self.drive(py, |object, heard| object.advance(until_ns, heard))
    }

    /// Lets everything happen up to the completion of the last request; returns the requests that completed.
    fn run_until_idle(&self, py: Python<'_>) -> PyResult<Vec<Completion>> {
        self.drive(py, |object, heard| object.run_until_idle(heard))
    }

    /// Cuts the power now; returns the effects of the cut.
    fn cut<'py>(&self, py: Python<'py>, seed: u64) -> PyResult<Bound<'py, PyDict>> {
        let mut driven = self.open()?;
        let cut = py.detach(|| guard(|| Ok(driven.object.cut(seed)?)))?;
        let dict = PyDict::new(py);
        dict.set_item("operations", cut.finished)?;
        dict.set_item("torn_programs", cut.torn_programs)?;
        dict.set_item("torn_erases", cut.torn_erases)?;
        Ok(dict)
    }

    /// Recovers the device from its flash alone; returns the cost.
    fn recover<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut driven = self.open()?;
        let found = py.detach(|| guard(|| Ok(driven.object.recover()?)))?;
        let dict = PyDict::new(py);
        dict.set_item("scan_reads", found.recovery.scan_reads)?;
        dict.set_item("map_reads", found.recovery.map_reads)?;
        dict.set_item("gc_reads", found.recovery.gc_reads)?;
        dict.set_item("programs", found.recovery.programs)?;
        dict.set_item("erases", found.recovery.erases)?;
        dict.set_item("elapsed_ns", found.elapsed_ns)?;
        Ok(dict)
    }

    /// Returns the number of logical pages of user data in each erase block, LUN after LUN, and the number of
    /// LUNs.
    fn valid_pages(&self) -> PyResult<(Column, u32)> {
        let luns = self.config.get().resolved.settings.flash.luns();
        Ok((self.open()?.object.valid_pages().into(), luns))
    }

    /// Returns the result up to now.
    fn result(&self, py: Python<'_>) -> PyResult<RunResult> {
        let driven = self.open()?;
        let config = self.config.get();
        let work = move || {
            let report = driven.object.report();
            let result = Fields::json(&config.resolved, &report, driven.wall.as_secs_f64());
            let mut rows = driven.heard.rows.clone();
            if let Some(rows) = &mut rows {
                rows.sort();
            }
            Ok(RunResult::new(result.to_string(), rows))
        };
        Ok(py.detach(|| guard(work))?)
    }
}

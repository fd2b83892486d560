//! What a run hands out while it is in progress: rows, files, and calls that show its progress.

use std::time::{Duration, Instant};

use ftlab_core::metrics::Preconditioning;
use ftlab_core::sim::{Activity, Completion, Handling, Observer};
use ftlab_trace::timeline::Timeline;
use ftlab_trace::{Further, RequestsCsv};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::Column;

/// Shortest time between two calls to Python: signals and the progress callback need the GIL.
pub const LOOK: Duration = Duration::from_millis(50);

/// `complete_ns` of a request that a read-only device refused; Python shows it as null.
const NEVER: u64 = u64::MAX;

/// The per-request rows, kept in memory by column (75 bytes a request).
#[derive(Clone, Default)]
pub struct Rows {
    id: Vec<u64>,
    arrival_ns: Vec<u64>,
    dispatch_ns: Vec<u64>,
    complete_ns: Vec<u64>,
    op: Vec<u8>,
    offset: Vec<u64>,
    size: Vec<u64>,
    mapping_misses: Vec<u32>,
    prioritized: Vec<u8>,
    expired: Vec<u8>,
    batch: Vec<u64>,
    channel_batch: Vec<u64>,
    /// Only for devices that answer from RAM.
    buffered: Option<Vec<u32>>,
    /// Only for workloads with streams.
    stream: Option<Vec<u32>>,
}

impl Rows {
    /// Makes no rows; `further` adds columns.
    pub fn new(further: Further) -> Rows {
        let Further { buffered, stream } = further;
        Rows { buffered: buffered.then(Vec::new), stream: stream.then(Vec::new), ..Rows::default() }
    }

    /// Adds the column of streams, if there is none; requests so far had no stream.
    pub fn keep_streams(&mut self) {
        let rows = self.id.len();
        self.stream.get_or_insert_with(|| vec![0; rows]);
    }

    /// Adds a row.
    pub fn push(&mut self, row: &Completion) {
        self.id.push(row.id);
        self.arrival_ns.push(row.arrival_ns);
        self.dispatch_ns.push(row.dispatch_ns);
        self.complete_ns.push(if row.failed { NEVER } else { row.complete_ns });
        self.op.push(row.op as u8);
        self.offset.push(row.offset);
        self.size.push(row.size);
        self.mapping_misses.push(row.mapping_misses);
        self.prioritized.push(u8::from(row.prioritized));
        self.expired.push(u8::from(row.expired));
        self.batch.push(row.batch);
        self.channel_batch.push(row.channel_batch);
        if let Some(buffered) = &mut self.buffered {
            buffered.push(row.buffered);
        }
        if let Some(stream) = &mut self.stream {
            stream.push(u32::from(row.stream));
        }
    }

    /// Sorts the rows by id: they came in the order of completion.
    pub fn sort(&mut self) {
        if self.id.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.id.len()).collect();
        order.sort_unstable_by_key(|&row| self.id[row]);
        fn pick<T: Copy>(values: &mut Vec<T>, order: &[usize]) {
            *values = order.iter().map(|&row| values[row]).collect();
        }
        for values in [
            &mut self.id,
            &mut self.arrival_ns,
            &mut self.dispatch_ns,
            &mut self.complete_ns,
            &mut self.offset,
            &mut self.size,
            &mut self.batch,
            &mut self.channel_batch,
        ] {
            pick(values, &order);
        }
        for values in [&mut self.op, &mut self.prioritized, &mut self.expired] {
            pick(values, &order);
        }
        pick(&mut self.mapping_misses, &order);
        for values in [&mut self.buffered, &mut self.stream].into_iter().flatten() {
            pick(values, &order);
        }
    }

    /// Returns the columns by name, in the order of the per-request file.
    ///
    /// # Errors
    /// If Python is out of memory.
    pub fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("id", Column::from(self.id))?;
        dict.set_item("arrival_ns", Column::from(self.arrival_ns))?;
        dict.set_item("dispatch_ns", Column::from(self.dispatch_ns))?;
        dict.set_item("complete_ns", Column::from(self.complete_ns))?;
        dict.set_item("op", Column::from(self.op))?;
        dict.set_item("offset", Column::from(self.offset))?;
        dict.set_item("size", Column::from(self.size))?;
        dict.set_item("mapping_misses", Column::from(self.mapping_misses))?;
        dict.set_item("prioritized", Column::from(self.prioritized))?;
        dict.set_item("expired", Column::from(self.expired))?;
        dict.set_item("batch", Column::from(self.batch))?;
        dict.set_item("channel_batch", Column::from(self.channel_batch))?;
        for (name, values) in [("buffered", self.buffered), ("stream", self.stream)] {
            if let Some(values) = values {
                dict.set_item(name, Column::from(values))?;
            }
        }
        Ok(dict)
    }
}

/// Asks Python now and then whether to continue.
pub struct Pulse {
    callback: Option<Py<PyAny>>,
    preconditioning: Option<Py<PyAny>>,
    last: Instant,
    /// Why the run was stopped: an exception (for example an interrupt), or `None` if the callback returned
    /// `False`.
    stopped: Option<Option<PyErr>>,
}

impl Pulse {
    /// Makes the pulse of a run: it calls `callback(requests)` about every 50 ms; `False` stops the run.
    pub fn new(callback: Option<Py<PyAny>>) -> Pulse {
        Pulse { callback, preconditioning: None, last: Instant::now(), stopped: None }
    }

    /// Makes the pulse also call `callback(pages, rounds, waf)`, in the same way, before time 0.
    pub fn with_preconditioning(self, callback: Option<Py<PyAny>>) -> Pulse {
        Pulse { preconditioning: callback, ..self }
    }

    /// Returns whether to continue, after `requests` requests.
    pub fn beat(&mut self, requests: u64) -> bool {
        self.ask(|pulse, py| pulse.callback.as_ref().map(|call| call.bind(py).call1((requests,))))
    }

    /// Returns whether to continue preconditioning.
    pub fn beat_before(&mut self, done: &Preconditioning) -> bool {
        let shown = (done.pages_written, done.rounds, done.waf.last().copied());
        self.ask(|pulse, py| pulse.preconditioning.as_ref().map(|call| call.bind(py).call1(shown)))
    }

    fn ask(
        &mut self,
        call: impl for<'py> FnOnce(&Pulse, Python<'py>) -> Option<PyResult<Bound<'py, PyAny>>>,
    ) -> bool {
        if self.stopped.is_some() {
            return false;
        }
        if self.last.elapsed() < LOOK {
            return true;
        }
        self.last = Instant::now();
        let asked = Python::attach(|py| -> PyResult<bool> {
            py.check_signals()?;
            let Some(answer) = call(self, py).transpose()? else { return Ok(true) };
            Ok(!answer.is(pyo3::types::PyBool::new(py, false)))
        });
        match asked {
            Ok(true) => true,
            Ok(false) => {
                self.stopped = Some(None);
                false
            }
            Err(error) => {
                self.stopped = Some(Some(error));
                false
            }
        }
    }

    /// Returns why the run was stopped, if it was.
    pub fn take_stop(&mut self) -> Option<Option<PyErr>> {
        self.stopped.take()
    }
}

/// The observer of a run started from Python.
pub struct Watch {
    /// Rows kept in memory.
    pub rows: Option<Rows>,
    /// The per-request file.
    pub csv: Option<RequestsCsv>,
    /// The timeline.
    pub timeline: Option<Timeline>,
    /// Reports progress, and notices interrupts.
    pub pulse: Pulse,
}

impl Observer for Watch {
    fn complete(&mut self, completion: &Completion) {
        if let Some(rows) = &mut self.rows {
            rows.push(completion);
        }
        if let Some(csv) = &mut self.csv {
            csv.complete(completion);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.complete(completion);
        }
    }

    fn wants_completions(&self) -> bool {
        self.rows.is_some() || self.csv.is_some() || self.timeline.is_some()
    }

    fn preconditioning(&mut self, done: &Preconditioning) -> bool {
        self.pulse.beat_before(done)
    }

    fn progress(&mut self, requests: u64) -> bool {
        self.csv.as_mut().is_none_or(|csv| csv.progress(requests))
            && !self.timeline.as_ref().is_some_and(Timeline::failed)
            && self.pulse.beat(requests)
    }

    fn wants_activity(&self) -> bool {
        self.timeline.is_some()
    }

    fn activity(&mut self, activity: &Activity) {
        if let Some(timeline) = &mut self.timeline {
            timeline.activity(activity);
        }
    }

    fn handled(&mut self, handling: &Handling) {
        if let Some(timeline) = &mut self.timeline {
            timeline.handled(handling);
        }
    }

    fn pending(&mut self, now_ns: u64, requests: u32) {
        if let Some(timeline) = &mut self.timeline {
            timeline.pending(now_ns, requests);
        }
    }

    fn buffer(&mut self, now_ns: u64, pages: u32) {
        if let Some(timeline) = &mut self.timeline {
            timeline.buffer(now_ns, pages);
        }
    }
}

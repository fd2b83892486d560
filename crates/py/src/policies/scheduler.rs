//! A host scheduler in Python.

use std::collections::HashMap;

use ftlab_core::host::sched::{self, AnyScheduler, Around, Decision, Needs};
use ftlab_core::request::{self, Pool, Queue};
use ftlab_core::util::Stat;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::object::Object;

/// A request as a scheduler sees it.
#[pyclass(frozen, get_all, module = "ftlab._core")]
pub struct Request {
    /// Number, from 1 in order of arrival.
    id: u64,
    /// R, W, T or F.
    op: char,
    offset: u64,
    size: u64,
    arrival_ns: u64,
    /// First logical page; `None` for a request without pages.
    lpn: Option<u32>,
    /// Number of logical pages.
    pages: u32,
    /// Whether all mappings of the request are cached, as far as the host knows.
    hit: bool,
    /// Translation page of the first logical page; `None` for a request without pages.
    translation_page: Option<u32>,
}

impl Request {
    fn of(request: &request::Request) -> Request {
        let has_pages = request.pages.pages > 0;
        Request {
            id: request.id,
            op: request.op.letter(),
            offset: request.offset,
            size: request.size,
            arrival_ns: request.arrival_ns,
            lpn: has_pages.then_some(request.pages.first),
            pages: request.pages.pages,
            hit: request.host.hit,
            translation_page: has_pages.then_some(request.host.translation_page),
        }
    }
}

#[pymethods]
impl Request {
    fn __repr__(&self) -> String {
        format!("Request(id={}, op='{}', offset={}, size={})", self.id, self.op, self.offset, self.size)
    }
}

#[derive(Debug)]
struct Scheduler {
    object: Object,
    /// For each pending request, by its number, the id that the core uses.
    pending: HashMap<u64, u32>,
    batches: u64,
}

impl Scheduler {
    /// Removes and returns the pending request with this number.
    fn take(&mut self, number: u64) -> u32 {
        let id = self.pending.remove(&number);
        id.unwrap_or_else(|| self.object.wrong("choose", &format!("request {number} is not pending")))
    }

    fn number(&self, chosen: &Bound<'_, PyAny>) -> u64 {
        chosen.extract().unwrap_or_else(|_| {
            let shown = chosen.repr().map_or_else(|_| "?".into(), |text| text.to_string());
            self.object.wrong(
                "choose",
                &format!("gave {shown}; it gives the id of a request, a list of ids, or None"),
            )
        })
    }

    fn batch(&mut self, numbers: Vec<u64>, pool: &mut Pool) -> Decision {
        let mut queue = Queue::default();
        for number in numbers {
            let id = self.take(number);
            pool[id].host.prioritized = !queue.is_empty();
            queue.push(id, pool);
        }
        if queue.is_empty() {
            return Decision::Nothing;
        }
        let first = queue.head();
        if pool[first].host.batch == 0 {
            // The scheduler gave no batch number: batches are numbered as they leave.
            self.batches += 1;
            let mut id = first;
            while id != ftlab_core::util::NONE {
                pool[id].host.batch = self.batches;
                id = pool.behind(id);
            }
        }
        pool[first].host.prefetch = pool[first].pages.pages > 0;
        Decision::Batch(queue)
    }
}

impl AnyScheduler for Scheduler {
    fn admit(&mut self, id: u32, pool: &mut Pool) {
        let seen = Request::of(&pool[id]);
        let number = seen.id;
        self.object.now_ns = self.object.now_ns.max(seen.arrival_ns);
        self.pending.insert(number, id);
        let batch = Python::attach(|py| {
            self.object.tell_time(py, "admit");
            let given = self.object.call(py, "admit", Some(number), (seen,));
            let batch: Option<u64> = given.extract().unwrap_or_else(|_| {
                self.object.wrong(
                    "admit",
                    &format!("of request {number}: a batch's number is a whole number from 1, or None"),
                )
            });
            batch
        });
        if let Some(batch) = batch {
            pool[id].host.batch = batch;
            self.batches = self.batches.max(batch);
        }
    }

    fn grown(&mut self, id: u32, _before: u32, pool: &mut Pool) {
        let seen = Request::of(&pool[id]);
        Python::attach(|py| {
            self.object.tell_time(py, "grown");
            self.object.call(py, "grown", Some(seen.id), (seen,));
        });
    }

    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
        if self.pending.is_empty() {
            return Decision::Nothing;
        }
        self.object.now_ns = around.now_ns();
        let chosen = Python::attach(|py| {
            self.object.tell_time(py, "choose");
            let chosen = self.object.call(py, "choose", None, ());
            if chosen.is_none() {
                None
            } else if chosen.is_instance_of::<PyList>() || chosen.is_instance_of::<PyTuple>() {
                let members = chosen.try_iter().expect("a list can be gone through");
                Some((members.map(|member| self.number(&member.expect("as above"))).collect(), true))
            } else {
                Some((vec![self.number(&chosen)], false))
            }
        });
        match chosen {
            None => Decision::Nothing,
            Some((numbers, true)) => self.batch(numbers, pool),
            Some((numbers, false)) => Decision::One(self.take(numbers[0])),
        }
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        let number = pool[id].id;
        self.pending.remove(&number);
        Python::attach(|py| _ = self.object.call(py, "remove", Some(number), (number,)));
    }

    fn completed(&mut self, id: u32, now_ns: u64, pool: &Pool) {
        self.object.now_ns = now_ns;
        let number = pool[id].id;
        Python::attach(|py| {
            self.object.tell_time(py, "completed");
            self.object.call(py, "completed", Some(number), (number,));
        });
    }

    fn batches(&self) -> u64 {
        self.batches
    }

    fn stats(&self) -> Vec<Stat> {
        self.object.stats()
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        match self.pending.iter().find(|&(&number, &id)| pool[id].id != number) {
            Some((number, _)) => Err(format!("request {number} is pending and is not in the pool")),
            None => Ok(self.pending.len() as u32),
        }
    }
}

/// Registers a class under a name for `host.scheduler`; it may want to be told about completions, and may then hold
/// requests back.
#[pyfunction]
pub fn add_host_scheduler(name: &str, class: Py<PyAny>, completions: bool) {
    let needs = Needs { hits: true, translation_pages: true, deadline: true, completions, ..Needs::NOTHING };
    let of = name.to_owned();
    sched::register_made(name, needs, move |_, _| {
        Box::new(Scheduler { object: Object::new(&of, &class), pending: HashMap::new(), batches: 0 })
    });
}

//! An object of a Python class, and the messages for what it does wrong.

use std::fmt;

use ftlab_core::util::Stat;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::{Fault, end};

/// An object of the user's class, and the current simulated time, for messages.
pub(super) struct Object {
    name: String,
    object: Py<PyAny>,
    pub now_ns: u64,
}

impl fmt::Debug for Object {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

impl Object {
    /// Makes a new object of a class.
    pub fn new(name: &str, class: &Py<PyAny>) -> Object {
        Python::attach(|py| {
            let none = Object { name: name.to_owned(), object: py.None(), now_ns: 0 };
            let object = class.call0(py).unwrap_or_else(|error| none.fail(py, "__init__", None, &error));
            Object { object, ..none }
        })
    }

    /// Returns a copy of the object in the same state.
    pub fn copy(&self) -> Object {
        Python::attach(|py| {
            let copied = py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (&self.object,)));
            let object = copied.unwrap_or_else(|error| self.fail(py, "__deepcopy__", None, &error)).unbind();
            Object { name: self.name.clone(), object, now_ns: self.now_ns }
        })
    }

    /// Tells the object the simulated time, as its attribute `now_ns`.
    pub fn tell_time(&self, py: Python<'_>, method: &str) {
        let told = self.object.bind(py).setattr(pyo3::intern!(py, "now_ns"), self.now_ns);
        told.unwrap_or_else(|error| self.fail(py, method, None, &error));
    }

    /// Calls a method.
    pub fn call<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        of: Option<u64>,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> Bound<'py, PyAny> {
        let called = self.object.bind(py).call_method1(method, arguments);
        called.unwrap_or_else(|error| self.fail(py, method, of, &error))
    }

    /// Returns the object's own figures.
    pub fn stats(&self) -> Vec<Stat> {
        Python::attach(|py| {
            let given = self.call(py, "stats", None, ());
            let listed = py.get_type::<PyList>().call1((given,));
            let listed = listed.unwrap_or_else(|error| self.fail(py, "stats", None, &error));
            let rows: PyResult<Vec<(String, f64, String, String)>> = listed.extract();
            let stats = rows.unwrap_or_else(|_| {
                self.wrong("stats", &format!("gave {listed}; it gives ftlab.Stat(name, value, unit, doc)"))
            });
            let stats: Vec<Stat> = stats.into_iter().map(|(n, v, u, d)| Stat::new(n, v, u, d)).collect();
            if let Some(stat) = stats.iter().find(|stat| !stat.is_named_well()) {
                let why = "a name is of small letters, digits and underscores, and begins with a letter";
                self.wrong("stats", &format!("named a figure \"{}\"; {why}", stat.name));
            }
            stats
        })
    }

    /// Ends the run because an exception was raised.
    pub fn fail(&self, py: Python<'_>, method: &str, of: Option<u64>, error: &PyErr) -> ! {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            end(Fault::Python(error.clone_ref(py)));
        }
        let text = py
            .import("ftlab.policies")
            .and_then(|policies| policies.getattr("told"))
            .and_then(|told| {
                told.call1((&self.name, method, self.now_ns, of, error.clone_ref(py).into_value(py)))
            })
            .and_then(|text| text.extract::<String>());
        let fault = text.map_or_else(Fault::Python, Fault::User);
        let raised = PyErr::from(fault);
        raised.set_cause(py, Some(error.clone_ref(py)));
        end(Fault::Python(raised));
    }

    /// Ends the run because a method returned something impossible.
    pub fn wrong(&self, method: &str, what: &str) -> ! {
        end(Fault::User(format!("{}: {method}() at {} ns: {what}", self.name, self.now_ns)));
    }
}

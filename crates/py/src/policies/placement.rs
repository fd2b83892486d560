//! A placement in Python.

use std::sync::Arc;

use ftlab_core::ftl::placement::{self, AnyPlacement, MOST_FRONTS, Needs, Page, Writable};
use ftlab_core::util::Stat;
use pyo3::prelude::*;

use super::object::Object;
use crate::errors::UserError;

#[derive(Debug)]
struct Placement {
    /// `None` where only the number of fronts is wanted.
    object: Option<Object>,
    fronts: u32,
}

impl Placement {
    fn object(&self) -> &Object {
        self.object.as_ref().expect("it places the pages of a device")
    }
}

/// Returns an age as Python has it: None if there is none.
fn known(age: u64) -> Option<u64> {
    (age != u64::MAX).then_some(age)
}

impl AnyPlacement for Placement {
    fn fronts(&self) -> u32 {
        self.fronts
    }

    fn front_name(&self, front: u32) -> String {
        Python::attach(|py| self.object().call(py, "front_name", None, (front,)).to_string())
    }

    fn front(&mut self, page: Page, _blocks: &dyn Writable) -> u32 {
        let Page { lpn, cause, stream, age, .. } = page;
        let named = Python::attach(|py| {
            let front = self.object().call(py, "front", None, (lpn, cause.name(), stream, known(age)));
            let exists = front.extract::<u32>().ok().filter(|&front| front < self.fronts);
            exists.ok_or_else(|| front.to_string())
        });
        named.unwrap_or_else(|given| {
            let most = self.fronts - 1;
            let what =
                format!("gave {given} for page {lpn}; it gives the number of a front, from 0 to {most}");
            self.object().wrong("front", &what)
        })
    }

    fn invalidated(&mut self, lpn: u32, front: u32, age: u64) {
        Python::attach(|py| _ = self.object().call(py, "overwritten", None, (lpn, front, known(age))));
    }

    fn save(&self) -> Vec<u64> {
        Python::attach(|py| {
            let saved = self.object().call(py, "save", None, ());
            saved.extract().unwrap_or_else(|_| {
                self.object()
                    .wrong("save", &format!("gave {saved}; it gives a list of whole numbers below 2**64"))
            })
        })
    }

    fn load(&mut self, saved: &[u64]) -> bool {
        Python::attach(|py| _ = self.object().call(py, "load", None, (saved.to_vec(),)));
        true
    }

    fn stats(&self) -> Vec<Stat> {
        self.object().stats()
    }

    fn copy(&self) -> Box<dyn AnyPlacement> {
        Box::new(Placement { object: self.object.as_ref().map(Object::copy), ..*self })
    }
}

/// Registers a class under a name for `ftl.placement`.
#[pyfunction]
pub fn add_placement(py: Python<'_>, name: &str, class: Py<PyAny>) -> PyResult<()> {
    let given = class.bind(py).getattr("fronts")?;
    let fronts = given.extract().ok().filter(|fronts| (1..=MOST_FRONTS).contains(fronts));
    let fronts = fronts.ok_or_else(|| {
        UserError::new_err(format!("{name}: fronts is {given}; it is a whole number from 1 to {MOST_FRONTS}"))
    })?;
    let (of, class) = (name.to_owned(), Arc::new(class));
    placement::register_made(name, Needs { ages: true, ..Needs::NOTHING }, move |_, space| {
        let object = (space.luns > 0).then(|| Object::new(&of, &class));
        Box::new(Placement { object, fronts })
    });
    Ok(())
}

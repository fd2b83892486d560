//! A mapping cache's replacement policy in Python.

use std::collections::HashSet;

use ftlab_core::ftl::map::dftl;
use ftlab_core::util::Stat;
use pyo3::prelude::*;

use super::object::Object;

#[derive(Debug)]
struct Replacement {
    object: Object,
    held: HashSet<u32>,
}

impl Replacement {
    fn tell(&self, method: &str, lpn: u32) {
        Python::attach(|py| _ = self.object.call(py, method, None, (lpn,)));
    }
}

impl dftl::Replacement for Replacement {
    fn hit(&mut self, lpn: u32) {
        self.tell("hit", lpn);
    }

    fn insert(&mut self, lpn: u32) {
        self.held.insert(lpn);
        self.tell("insert", lpn);
    }

    fn victim(&mut self) -> u32 {
        let named = Python::attach(|py| {
            let key = self.object.call(py, "victim", None, ());
            key.extract::<u32>().ok().filter(|lpn| self.held.contains(lpn)).ok_or_else(|| key.to_string())
        });
        named.unwrap_or_else(|given| {
            self.object.wrong("victim", &format!("gave {given}, which is not a key in the cache"))
        })
    }

    fn remove(&mut self, lpn: u32) {
        self.held.remove(&lpn);
        self.tell("remove", lpn);
    }

    fn stats(&self) -> Vec<Stat> {
        self.object.stats()
    }

    fn copy(&self) -> Box<dyn dftl::Replacement> {
        Box::new(Replacement { object: self.object.copy(), held: self.held.clone() })
    }
}

/// Registers a class under a name for `ftl.cache_policy`.
#[pyfunction]
pub fn add_replacement(name: &str, class: Py<PyAny>) {
    let of = name.to_owned();
    dftl::register(name, move |_| {
        Box::new(Replacement { object: Object::new(&of, &class), held: HashSet::new() })
    });
}

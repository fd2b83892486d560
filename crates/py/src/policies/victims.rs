//! A victim policy in Python.

use std::collections::BTreeMap;
use std::sync::Arc;

use ftlab_core::ftl::gc::{self, AnyVictims, Closed, Need, Space};
use ftlab_core::util::Stat;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::object::Object;

/// What is known about a closed block.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The block's place among the blocks of its LUN.
    order: u64,
    valid: u32,
    closed: u64,
    changed: u64,
}

#[derive(Debug)]
struct Victims {
    object: Object,
    space: Space,
    blocks: Vec<Known>,
    /// Closed blocks of each LUN, in the order in which they reached their current numbers of valid pages.
    luns: Vec<BTreeMap<u64, u32>>,
    changes: u64,
    /// The counter value of the block that was closed last; no two blocks have the same value.
    last_closed: u64,
}

impl Victims {
    fn put(&mut self, lun: u32, block: u32, valid: u32) {
        self.changes += 1;
        let state = &mut self.blocks[block as usize];
        (state.order, state.valid) = (self.changes, valid);
        self.luns[lun as usize].insert(self.changes, block);
    }

    fn take(&mut self, lun: u32, block: u32) {
        self.luns[lun as usize].remove(&self.blocks[block as usize].order);
    }
}

impl AnyVictims for Victims {
    fn close(&mut self, Closed { lun, block, valid, now }: Closed) {
        self.last_closed = now.max(self.last_closed + 1);
        let closed = self.last_closed;
        self.blocks[block as usize] = Known { closed, changed: closed, ..Known::default() };
        self.put(lun, block, valid);
    }

    fn invalidate(&mut self, Closed { lun, block, valid, now }: Closed) {
        self.take(lun, block);
        let changed = &mut self.blocks[block as usize].changed;
        *changed = now.max(*changed);
        self.put(lun, block, valid);
    }

    fn choose(&mut self, need: Need, _valid: &dyn Fn(u32) -> u32, erases: &dyn Fn(u32) -> u32) -> u32 {
        let held: Vec<u32> = self.luns[need.lun as usize].values().copied().collect();
        let chosen = Python::attach(|py| {
            let column = |of: &dyn Fn(u32) -> u64| {
                let bytes: Vec<u8> = held.iter().flat_map(|&block| of(block).to_ne_bytes()).collect();
                PyBytes::new(py, &bytes)
            };
            let at = |block: u32| self.blocks[block as usize];
            let columns = (
                column(&u64::from),
                column(&|block| u64::from(at(block).valid)),
                column(&|block| u64::from(erases(block))),
                column(&|block| at(block).closed),
                column(&|block| at(block).changed),
            );
            let candidates = py
                .import("ftlab.policies")
                .and_then(|policies| policies.getattr("Candidates")?.call_method1("of_bytes", columns))
                .unwrap_or_else(|error| self.object.fail(py, "choose", None, &error));
            let chosen = self.object.call(py, "choose", None, (candidates,));
            let row = chosen.extract::<usize>().ok().filter(|&row| row < held.len());
            row.map(|row| held[row]).ok_or_else(|| chosen.to_string())
        });
        let block = chosen.unwrap_or_else(|given| {
            let what = format!("gave {given}; it gives the row of a candidate, from 0 to {}", held.len() - 1);
            self.object.wrong("choose", &what)
        });
        let gains = self.space.gainful(self.blocks[block as usize].valid);
        if !gains && need.gainless as usize > held.len() {
            let what =
                format!("{} victims in succession had no page to gain, and others had", need.gainless + 1);
            self.object.wrong("choose", &what);
        }
        block
    }

    fn remove(&mut self, lun: u32, block: u32, _valid: &dyn Fn(u32) -> u32) {
        self.take(lun, block);
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        for &block in self.luns[lun as usize].values() {
            visit(block, Some(self.blocks[block as usize].valid));
        }
    }

    fn modified(&self, block: u32) -> u64 {
        self.blocks[block as usize].changed
    }

    fn stats(&self) -> Vec<Stat> {
        self.object.stats()
    }

    fn copy(&self) -> Box<dyn AnyVictims> {
        let (blocks, luns) = (self.blocks.clone(), self.luns.clone());
        Box::new(Victims { object: self.object.copy(), blocks, luns, ..*self })
    }
}

/// Registers a class under a name for `ftl.gc` and `ftl.translation_gc`.
#[pyfunction]
pub fn add_victim_policy(name: &str, class: Py<PyAny>) {
    let of = name.to_owned();
    let class = Arc::new(class);
    gc::register_made(name, move |_, space, _| {
        Box::new(Victims {
            object: Object::new(&of, &class),
            space,
            blocks: vec![Known::default(); (space.luns * space.blocks_per_lun) as usize],
            luns: vec![BTreeMap::new(); space.luns as usize],
            changes: 0,
            last_closed: 0,
        })
    });
}

//! States of a device at time 0: in memory, and in files.

use std::fs::File;
use std::path::Path;

use ftlab_config::Resolved;
use ftlab_core::config::Values;
use ftlab_core::sim::{Prepared, StateError};
use ftlab_trace::atomic::{OutputError, OutputFile, reason};
use pyo3::prelude::*;

use crate::errors::Fault;

/// A device at time 0, kept in memory for several runs.
#[pyclass(frozen, module = "ftlab._core")]
pub struct Device {
    /// Everything but the workload.
    values: Values,
    prepared: Prepared,
}

impl Device {
    /// Keeps `prepared`, which belongs to the configuration `resolved`.
    pub fn new(resolved: &Resolved, prepared: Prepared) -> Device {
        Device { values: beside_workload(resolved), prepared }
    }

    /// A copy of it for a run of `resolved`.
    ///
    /// # Errors
    /// [`Fault::Internal`] if more than the workload differs there.
    pub fn at_time_0(&self, resolved: &Resolved) -> Result<Prepared, Fault> {
        if self.values != beside_workload(resolved) {
            return Err(Fault::Internal("the device was prepared for another configuration".into()));
        }
        Ok(self.prepared.clone())
    }
}

fn beside_workload(resolved: &Resolved) -> Values {
    let mut values = resolved.values.clone();
    values.retain(|path, _| !path.starts_with("workload."));
    values
}

/// Removes the files that are being written; for a process that ends right after it.
#[pyfunction]
pub fn discard_unfinished() {
    ftlab_trace::atomic::discard_unfinished();
}

/// Writes a prepared device to `path`.
///
/// # Errors
/// [`Fault::User`] if the file cannot be written.
pub fn save(resolved: &Resolved, prepared: &Prepared, path: &Path) -> Result<(), Fault> {
    let write = || {
        let mut file = OutputFile::create(path)?;
        let saved = prepared.save(&resolved.state_identity(), &mut file);
        saved.map_err(|error| OutputError::new(path, error))?;
        file.finish()
    };
    write().map_err(|error: OutputError| Fault::User(error.to_string()))
}

/// Reads the device of `path`.
///
/// # Errors
/// [`Fault::User`] if the file is no state of this device.
pub fn load(resolved: &Resolved, path: &Path, check: bool) -> Result<Prepared, Fault> {
    let fail = |error: StateError| match error {
        StateError::Check(error) => error.into(),
        StateError::Read(error) => {
            Fault::User(format!("{}: cannot read: {}", path.display(), reason(&error)))
        }
        error => Fault::User(format!("{}: {error}", path.display())),
    };
    let mut file = File::open(path).map_err(|error| fail(StateError::Read(error)))?;
    Prepared::load(&resolved.settings, &resolved.state_identity(), &mut file, check).map_err(fail)
}

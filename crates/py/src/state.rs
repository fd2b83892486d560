//! A device at time 0, in memory.

use std::path::Path;

use ftlab_config::Resolved;
use ftlab_core::config::Values;
use ftlab_core::sim::Prepared;
use pyo3::prelude::*;

use crate::errors::Fault;

/// A device at time 0, kept in memory for several runs.
#[pyclass(frozen, module = "ftlab._core")]
pub struct Device {
    /// Values of all keys except the workload's.
    values: Values,
    prepared: Prepared,
}

impl Device {
    /// Keeps `prepared`, which belongs to the configuration `resolved`.
    pub fn new(resolved: &Resolved, prepared: Prepared) -> Device {
        Device { values: beside_workload(resolved), prepared }
    }

    /// Returns a copy of the device for a run of `resolved`.
    ///
    /// # Errors
    /// [`Fault::Internal`] if more than the workload differs.
    pub fn at_time_0(&self, resolved: &Resolved) -> Result<Prepared, Fault> {
        if self.values != beside_workload(resolved) {
            return Err(Fault::Internal("the device was prepared for another configuration".into()));
        }
        Ok(self.prepared.clone())
    }
}

/// Returns the device in a file: a saved state, or the media file of a live device, which stays as it is.
///
/// # Errors
/// [`Fault::User`] if the file does not hold a state of this device.
pub fn load(resolved: &Resolved, path: &Path, check: bool) -> Result<Prepared, Fault> {
    if !ftlab_live::media::is_media(path) {
        return Ok(ftlab_embed::load(resolved, path, check)?);
    }
    Ok(ftlab_live::media::load(path, &resolved.settings, &resolved.state_identity(), check)?)
}

fn beside_workload(resolved: &Resolved) -> Values {
    let mut values = resolved.values.clone();
    values.retain(|path, _| !path.starts_with("workload."));
    values
}

/// Removes the files that are being written, for a process that ends right afterwards.
#[pyfunction]
pub fn discard_unfinished() {
    ftlab_trace::atomic::discard_unfinished();
}

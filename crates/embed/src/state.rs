//! Saved states of a device at time 0.

use std::fs::File;
use std::path::Path;

use ftlab_config::Resolved;
use ftlab_core::sim::{Prepared, StateError};
use ftlab_trace::atomic::{OutputError, OutputFile, reason};

use crate::Fault;

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

/// Reads the device saved in `path`.
///
/// # Errors
/// [`Fault::User`] if the file is not a state of this device.
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

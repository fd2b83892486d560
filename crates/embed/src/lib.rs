//! What every language binding needs: the device of a configuration, preconditioned or loaded; its result as
//! text; and whose fault an error is. The Python module and the C library are built on it.

mod fault;
mod result;
mod state;

pub use fault::{Fault, guard, install_panic_hook};
pub use result::{Engine, Fields, peak_rss_bytes};
pub use state::{load, save};

use std::path::Path;

use ftlab_config::Resolved;
use ftlab_core::Simulation;
use ftlab_core::sim::{Observer, Prepared};

/// Makes the device of a configuration at time 0, preconditioned or loaded from the file `load_state`, for requests
/// that the caller submits; with `ftl.power_safe` it can lose power. With `check`, every invariant is verified after
/// every request.
///
/// # Errors
/// [`Fault`] if the state cannot be loaded, the FTL cannot lose power, or the observer stopped preconditioning.
pub fn simulation(
    resolved: &Resolved,
    load_state: Option<&Path>,
    check: bool,
    observer: &mut dyn Observer,
) -> Result<Simulation<'static>, Fault> {
    let settings = &resolved.settings;
    let check = check || settings.ftl.power_safe;
    let prepared = match load_state {
        Some(path) => load(resolved, path, check)?,
        None => Prepared::new(settings, observer, check)?,
    };
    simulation_of(resolved, prepared)
}

/// Makes a simulation as [`simulation`] does, of a device at time 0, which with `ftl.power_safe` is in check mode.
///
/// # Errors
/// [`Fault`] if the FTL cannot lose power.
pub fn simulation_of(resolved: &Resolved, prepared: Prepared) -> Result<Simulation<'static>, Fault> {
    let settings = &resolved.settings;
    let mut simulation = Simulation::new(settings, prepared);
    if settings.ftl.power_safe {
        simulation.allow_cuts()?;
    }
    Ok(simulation)
}

//! What every language binding needs: the device of a configuration, preconditioned or loaded; its result as
//! text; and whose fault an error is. The Python module and the C library are built on it.

mod fault;
mod state;

pub use fault::{Fault, guard, install_panic_hook};
pub use state::{load, save};

use std::path::Path;

use ftlab_config::Resolved;
use ftlab_core::Simulation;
use ftlab_core::metrics::Report;
use ftlab_core::sim::{Observer, Prepared};
use serde_json::{Map, Value};

/// Makes the device of a configuration at time 0, preconditioned or loaded from the file `load_state`, for
/// submitted requests; with `ftl.power_safe` it can lose power. With `check`, every invariant is verified
/// after every request.
///
/// # Errors
/// [`Fault`] if the state cannot be loaded, the FTL cannot lose power, or the observer stopped it.
pub fn simulation(
    resolved: &Resolved,
    load_state: Option<&Path>,
    check: bool,
    observer: &mut dyn Observer,
) -> Result<Simulation<'static>, Fault> {
    let settings = &resolved.settings;
    let cuts = settings.ftl.power_safe;
    let prepared = match load_state {
        Some(path) => load(resolved, path, check || cuts)?,
        None => Prepared::new(settings, observer, check || cuts)?,
    };
    let mut simulation = Simulation::new(settings, prepared);
    if cuts {
        simulation.allow_cuts()?;
    }
    Ok(simulation)
}

/// Returns the result without its engine block, in its fixed order: schema, config, trace, then the rest of
/// the report.
///
/// # Panics
/// Never: a report holds only numbers and strings.
pub fn result(resolved: &Resolved, report: &Report) -> Value {
    let report = serde_json::to_value(report).expect("a report holds numbers and texts only");
    let Value::Object(mut report) = report else { panic!("a report is an object") };
    let trace = report.shift_remove("trace").expect("a report holds its trace");
    let mut result = Map::new();
    result.insert("schema".into(), "ftlab.result.v1".into());
    result.insert("config".into(), resolved.to_json());
    result.insert("trace".into(), trace);
    result.extend(report);
    Value::Object(result)
}

/// Returns the largest resident memory of this process so far, bytes; `None` where it is not known (only
/// Linux reports it). It covers this program alone: `getrusage` would begin with the peak of the parent
/// process.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

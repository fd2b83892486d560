//! A whole result: what it holds besides the report of the core.

use ftlab_config::Resolved;
use ftlab_core::metrics::Report;
use serde::Serialize;
use serde_json::Value;

/// A result.
#[derive(Debug, Serialize)]
pub struct Fields<'a> {
    /// Name and version of this layout.
    schema: &'static str,
    /// Every key with its value; running this configuration again gives the same result.
    config: Value,
    #[serde(flatten)]
    report: &'a Report,
    /// About the simulator itself; different in every run.
    engine: Engine,
}

/// What the run took.
#[derive(Debug, Serialize)]
pub struct Engine {
    /// Time that the simulation took, including reading the trace and preconditioning.
    wall_s: f64,
    /// trace.requests / wall_s.
    requests_per_s: Option<f64>,
    /// Largest resident memory of the process so far; null where it is not known.
    peak_rss_bytes: Option<u64>,
    /// Version of ftlab.
    version: &'static str,
}

impl Fields<'_> {
    /// Returns the JSON object of a result that took `wall_s` seconds.
    ///
    /// # Panics
    /// Never: a report holds only numbers and strings.
    pub fn json(resolved: &Resolved, report: &Report, wall_s: f64) -> Value {
        let rounded = |value: f64, to: f64| (value * to).round() / to;
        let requests = report.trace.requests as f64;
        let engine = Engine {
            wall_s: rounded(wall_s, 1e6),
            requests_per_s: (wall_s > 0.0).then(|| rounded(requests / wall_s, 10.0)),
            peak_rss_bytes: peak_rss_bytes(),
            version: env!("CARGO_PKG_VERSION"),
        };
        let whole = Fields { schema: "ftlab.result.v1", config: resolved.to_json(), report, engine };
        serde_json::to_value(whole).expect("a report holds numbers and texts only")
    }
}

/// Returns the largest resident memory of this process so far, bytes; `None` where it is not known (only
/// Linux reports it). It covers this program alone: `getrusage` would begin with the peak of the parent
/// process.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

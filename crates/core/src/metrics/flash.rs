//! `flash`: operations by cause; and the ratios that several sections state.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Summary;
use crate::flash::{Cause, Counts};

/// Numbers by cause; every cause is there.
pub type ByCause = BTreeMap<&'static str, u64>;

/// `flash`.
#[derive(Clone, Debug, Serialize)]
pub struct Flash {
    /// Page reads.
    pub reads: ByCause,
    /// Page programs.
    pub programs: ByCause,
    /// Block erases.
    pub erases: ByCause,
    /// Time of cells and bus, ns.
    pub busy_ns: ByCause,
    /// Time of the cells for each page programmed, of every cause; of a whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_time: Option<Summary>,
}

impl Flash {
    /// Makes the section from these counts.
    pub fn new(counts: &Counts, program_time: Option<Summary>) -> Flash {
        Flash {
            reads: by_cause(&counts.reads),
            programs: by_cause(&counts.programs),
            erases: by_cause(&counts.erases),
            busy_ns: by_cause(&counts.busy_ns),
            program_time,
        }
    }
}

/// Returns these counts, each with the name of its cause.
fn by_cause(counts: &[u64; 8]) -> ByCause {
    Cause::ALL.iter().map(|&cause| (cause.name(), counts[cause as usize])).collect()
}

/// Returns a share; `None` if the whole is 0.
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Returns a number of things per second of `ns`; 0 without time.
pub(super) fn per_second(count: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * 1e9 / ns as f64 }
}

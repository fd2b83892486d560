//! `flash`: operations by cause; and the ratios that several sections state.

use serde::Serialize;

use super::Summary;
use crate::flash::{ByCause, Counts};

/// Operations by cause.
#[derive(Clone, Debug, Serialize)]
pub struct Flash {
    /// R(cause): page reads.
    pub reads: ByCause<u64>,
    /// P(cause): page programs.
    pub programs: ByCause<u64>,
    /// E(cause): block erases.
    pub erases: ByCause<u64>,
    /// Time of cells and bus over all operations of the cause.
    pub busy_ns: ByCause<u64>,
    /// Time that the cells took for each page programmed, of every cause; only for a whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_time: Option<Summary>,
}

impl Flash {
    /// Makes the section from these counts.
    pub fn new(counts: &Counts, program_time: Option<Summary>) -> Flash {
        let Counts { reads, programs, erases, busy_ns, .. } = *counts;
        Flash { reads, programs, erases, busy_ns, program_time }
    }
}

/// Returns a share; `None` if the whole is 0.
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Returns a number of things per second of `ns`; 0 if `ns` is 0.
pub(super) fn per_second(count: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * 1e9 / ns as f64 }
}

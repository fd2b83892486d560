//! What reads of the flash met, as results show it.

use serde::Serialize;

use crate::flash::{Cause, Work};

/// Errors of reads, of all causes (`[flash.errors]`).
#[derive(Clone, Debug, Serialize)]
pub struct Errors {
    /// Repetitions of page reads, each at a step of a read retry.
    pub retries: u64,
    /// Page reads that were repeated; a read that begins at the step it needs is not (`flash.retry`).
    pub retried_reads: u64,
    /// Page reads that no step corrected.
    pub failed_reads: u64,
    /// Page reads by the step that they needed: none, 1, 2, ...; without failed_reads.
    pub steps: Vec<u64>,
    /// Blocks whose data were rewritten before they could no longer be read (`ftl.refresh`).
    pub refreshed_blocks: u64,
}

impl Errors {
    /// Makes the section; `None` if no read can meet an error.
    pub(super) fn new(work: &Work) -> Option<Errors> {
        let counts = work.reliability()?.counts();
        Some(Errors {
            retries: counts.retries,
            retried_reads: counts.retried,
            failed_reads: counts.failed,
            steps: counts.steps.clone(),
            refreshed_blocks: work.counts().erases[Cause::Refresh],
        })
    }
}

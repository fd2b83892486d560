//! What a run reports.

use serde::Serialize;

/// The measured part of a result; `ftlab run --json` prints it after `schema`, `config` and
/// before `engine`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {}
